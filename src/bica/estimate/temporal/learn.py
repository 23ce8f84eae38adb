"""Learning sources from consecutive slots, starting from a model learned from the rows without their order.

The search drops sources that do not pay and adds those that pay, until neither helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import MISSING
from bica.data.rows import Rows
from bica.errors import SettingError
from bica.estimate.score import cost_by_size
from bica.estimate.settings import Settings
from bica.estimate.temporal.state import MOST, NEVER_ZERO, ChainedSources, TemporalState, Trial, source_of
from bica.kernels.bits import Words
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture, in_order
from bica.progress import in_threads, report, tracked

Column = NDArray[np.bool_]


def candidates(mixing: NDArray[np.bool_]) -> list[Column]:
    """Columns to try: single sensors, pairs, present columns with one sensor more or less, and combinations of two.

    The order depends on the columns alone. There are at most some m² / 2 + m n + 2 n² for m sensors and n sources.

    >>> mixing = np.array([[1, 1, 0], [0, 1, 1]], dtype=bool).T  # the sources {0, 1} and {1, 2}
    >>> [np.flatnonzero(column).tolist() for column in candidates(mixing)]
    [[0], [1], [2], [0, 2], [0, 1, 2]]
    """
    one = np.eye(len(mixing), dtype=bool)
    columns = [*one, *(one[i] | one[k] for i, k in combinations(range(len(mixing)), 2))]
    for column in mixing.T:
        columns += [column ^ sensor for sensor in one]
    for left, right in combinations(mixing.T, 2):
        columns += [left | right, left & right, left & ~right, right & ~left]
    present = {column.tobytes() for column in mixing.T}
    distinct = {column.tobytes(): column for column in columns if column.any()}
    return [column for name, column in distinct.items() if name not in present]


FIRST_PROBABILITY, FIRST_STAY = 0.01, 3.0  # of a candidate, the stay in slots; both are fitted if it looks promising
GLANCE, LOOK = 4, 6  # neighbours whose courses are summed over, at first sight and in a closer look
PROMISING, MARGIN = 6, 20.0  # candidates that get a closer look, and how many nats they may fall short of their cost
STEPS = 5  # of expectation and maximisation for a promising candidate
MOST_ROUNDS = 30
LEAST_SLOTS = 2  # so that the log of the slots is positive


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What the user knows: sources that stay, and sets of sensors that no new source may contain."""

    kept: tuple[Column, ...] = ()
    forbidden: tuple[Column, ...] = ()

    def keeps(self, column: Column) -> bool:
        """Whether this source may not be dropped."""
        return any(np.array_equal(column, known) for known in self.kept)

    def allows(self, column: Column) -> bool:
        """Whether this source may be added."""
        return not any((column | ~together).all() for together in self.forbidden)


GainedSource = tuple[float, ChainedSources]  # what a source gains beyond its cost, and the source


class TimeSearch:
    """A search that exchanges sources until the penalised likelihood of all slots rises no more.

    Each source is judged with its nearest neighbours: their courses are summed over, all others keep theirs.
    """

    def __init__(self, state: TemporalState, bounds: Bounds, n_jobs: int | None = None) -> None:
        self.state, self._bounds, self._n_jobs = state, bounds, n_jobs
        self.converged, self.interrupted = False, False
        self._added: set[bytes] = set()
        self._refused: set[bytes] = set()  # added and dropped before: two mistakes could alternate for ever
        n_slots, n_sensors = state.cells.shape
        # here a source has two numbers, how often it is on and for how long; the usual cost is for one
        self._cost = cost_by_size(n_sensors, n_slots, n_sensors) + 0.5 * np.log(max(n_slots, LEAST_SLOTS))

    def run(self) -> None:
        """Search until nothing changes; Ctrl-C keeps the sources found so far."""
        try:
            self.converged = self._rounds()
        except KeyboardInterrupt:
            self.interrupted = True

    def _rounds(self) -> bool:
        self.state.settle()
        for turn in range(MOST_ROUNDS):
            report("sources in time", turn, None)
            dropped = self._drop_all()
            if not self._add() and not dropped:
                return True
        return False

    def _drop_all(self) -> bool:
        """Drop the source that gains least, as long as it does not pay; return whether any was dropped."""
        dropped = False
        while self.state.sources.n_sources:
            n_sources = self.state.sources.n_sources
            tried = in_threads(self._gain_of_present, range(n_sources), self._n_jobs)
            gains = list(tracked(tried, "sources in time, each left out", n_sources))
            worst = int(np.argmin(gains))
            if gains[worst] > 0:
                break
            self._refused |= self._added & {self.state.sources.mixing[:, worst].tobytes()}
            self.state.drop(worst)
            dropped = True
        return dropped

    def _gain(self, trial: Trial) -> float:
        """What the source on trial gains beyond its cost."""
        return trial.gain() - float(self._cost[trial.source.mixing.sum()])

    def _gain_of_present(self, place: int) -> float:
        source = self.state.sources.pick(np.array([place]))
        if self._bounds.keeps(source.mixing[:, 0]):
            return np.inf
        return self._gain(self.state.trial(source, LOOK, instead_of=place))

    def _glance(self, column: Column) -> float:
        return self._gain(self.state.trial(self._first(column), GLANCE))

    def _look(self, column: Column) -> GainedSource:
        source = self.state.trial(self._first(column), GLANCE).refined(STEPS).source
        return self._gain(self.state.trial(source, LOOK)), source

    def _first(self, column: Column) -> ChainedSources:
        """A candidate with a first guess of its numbers: it stays on about as long as other sources do."""
        stays = self.state.sources.stay
        return source_of(column, FIRST_PROBABILITY, float(np.median(stays)) if stays.size else FIRST_STAY)

    def _add(self) -> bool:
        """Add the candidates that gain most and have no sensors in common; return whether any was added."""
        columns = [
            column
            for column in candidates(self.state.sources.mixing)
            if column.tobytes() not in self._refused and self._bounds.allows(column)
        ]
        tried = in_threads(self._glance, columns, self._n_jobs)
        glances = list(tracked(tried, "sources in time, candidates", len(columns)))
        best = [k for k in np.argsort(-np.array(glances), kind="stable")[:PROMISING] if glances[k] > -MARGIN]
        found = list(in_threads(self._look, [columns[k] for k in best], self._n_jobs))
        taken = np.zeros(len(self.state.sources.mixing), bool)
        added = False
        for gain, source in sorted(found, key=lambda pair: -pair[0]):
            if gain > 0 and not (taken & source.mixing[:, 0]).any():
                taken |= source.mixing[:, 0]
                self._added.add(source.mixing[:, 0].tobytes())
                self.state.add(source, LOOK)
                added = True
        return added


SLOTS_OF_STAYS = 4096  # the first ones, enough for a rough mean stay
ROUNDING = 1e-9  # a probability of 0.9 needs stays of 9 slots, although 1 - 0.9 is a little below 0.1


@dataclass(frozen=True, slots=True, eq=False)
class LearnedInTime:
    """The sources learned from consecutive slots."""

    model: OrMixture  # sources by falling probability, then by columns
    persistence: NDArray[np.float64]  # (n_sources,), the mean number of slots that each source stays on
    converged: bool
    interrupted: bool = False  # by Ctrl-C: these are the sources so far


def learn_in_time(
    start: OrMixture,
    words: Words,
    observed: Words | None = None,
    *,
    noise: Noise | None = None,
    bounds: Bounds | None = None,
    n_jobs: int | None = None,
) -> LearnedInTime:
    """Revise a model that was learned from rows without their order, when the rows are consecutive slots.

    Two things go wrong without the order. Two independent sources that happen to be on together stay so for a while;
    that looks like many coincidences, so a third source is inferred. And a rare source of a single sensor is lost among
    flips, which come and go from slot to slot while the source stays. Here every source is a chain, and is kept if it
    raises the likelihood of all slots by more than its cost. If ``noise`` is None, one flip rate is estimated with the
    sources. A round takes about m² + n² passes over the rows for m sensors and n sources.

    >>> from bica.kernels.bits import packed
    >>> from bica.simulate import markov_activity
    >>> truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.05, 0.05])
    >>> rows = truth.observe(markov_activity(truth.probability, 5, 4000, np.random.default_rng(1)))
    >>> found = learn_in_time(OrMixture(np.zeros((3, 0)), []), packed(rows))
    >>> found.model.mixing.astype(int).tolist(), found.persistence.round().tolist()
    ([[0, 1], [1, 1], [1, 0]], [6.0, 5.0])
    """
    search = TimeSearch(_state(start, words, observed, noise), bounds or Bounds(), n_jobs)
    search.run()
    return _learned(start, search)


def stays_in_time(model: OrMixture, words: Words, observed: Words | None = None) -> NDArray[np.float64]:
    """For how many slots on average each source of a given model stays on: (n_sources,).

    Where many sources are connected this is faster and rougher than ``learn_persistence``: it takes a few neighbours at
    a time, and at most the first 4096 slots.

    >>> from bica.kernels.bits import packed
    >>> rows = np.tile([[0]] * 18 + [[1]] * 3, (50, 1)).astype(bool)
    >>> stays_in_time(OrMixture([[1]], [1 / 7], Noise.flips(0.01)), packed(rows)).round(1)
    array([3.])
    """
    part = slice(0, SLOTS_OF_STAYS)
    state = _state(model, words[part], None if observed is None else observed[part], model.noise)
    state.settle()
    stay = np.full(model.n_sources, FIRST_STAY)
    stay[_moving(model)] = state.sources.stay
    with np.errstate(divide="ignore"):
        least = np.where(_moving(model), model.probability / (1 - model.probability), 1.0)
    return np.asarray(np.maximum(stay, np.maximum(1.0, (1 + ROUNDING) * least)))


def _state(start: OrMixture, words: Words, observed: Words | None, noise: Noise | None) -> TemporalState:
    cells = Rows.of_words(words, observed, start.n_sensors).cells(start.n_sensors)
    always = start.mixing[:, start.probability == 1].any(axis=1)
    cells[:, always] = MISSING  # a source that is always on hides all others
    first = Noise.flips(_mean_flip_rate(start)) if noise is None else noise
    return TemporalState(cells, _chained(start, _moving(start)), first, known_noise=noise is not None)


def _moving(model: OrMixture) -> NDArray[np.bool_]:
    return (model.probability > 0) & (model.probability < 1)


def _chained(start: OrMixture, moving: NDArray[np.bool_]) -> ChainedSources:
    probability = np.minimum(start.probability[moving], MOST / 2)
    return ChainedSources(start.mixing[:, moving].copy(), probability, FIRST_STAY / (1 - probability))


def _mean_flip_rate(model: OrMixture) -> float:
    return max(float(np.mean(model.noise.rates(model.n_sensors))) if model.n_sensors else 0.0, NEVER_ZERO)


def _learned(start: OrMixture, search: TimeSearch) -> LearnedInTime:
    still = np.flatnonzero(~_moving(start))  # always on, or known but never on
    found = search.state.sources
    mixing = np.hstack([start.mixing[:, still], found.mixing])
    named = {column.tobytes(): name for column, name in zip(start.mixing.T, start.names, strict=True)}
    model = OrMixture(
        mixing,
        np.concatenate([start.probability[still], found.probability]),
        search.state.noise,
        sensors=start.sensors,
        names=[named.get(column.tobytes()) for column in mixing.T],
    )
    stay = np.concatenate([np.where(start.probability[still] == 1, np.inf, 1.0), found.stay])
    return LearnedInTime(*in_order(model, stay), search.converged, search.interrupted)


IN_TIME = "likelihood in time"  # how a fit names itself that made use of the order of the rows


def check_in_time(settings: Settings) -> None:
    """Refuse settings that learning in time does not know."""
    if settings.prior is not None:
        raise SettingError("a prior cannot be used when learning in time; leave it out, or the order")
    if any(source.probability is not None for source in settings.known):
        raise SettingError(
            "when learning in time a known source may be given by its sensors, but not with its probability; "
            "leave that out, or the order"
        )
    if settings.n_sources is not None:
        raise SettingError("the number of sources cannot be given when learning in time; leave it out, or the order")
    if settings.edges == "lossy" or any(source.reach is not None for source in settings.known):
        raise SettingError("when learning in time, edges are sure; leave out lossy edges, or the order")
    if settings.noise in ("two-rates", "per-sensor"):
        raise SettingError("in time, one flip rate is estimated for all sensors; give the rates, or leave them out")


def revised_in_time(first: Fit, rows: Rows, settings: Settings) -> Fit:
    """The fit without the order of the rows, revised with it; Ctrl-C keeps the best so far, marked as interrupted."""
    noise = settings.noise if isinstance(settings.noise, Noise) else None
    bounds = Bounds(
        tuple(np.isin(rows.sensors, source.sensors) for source in settings.known),
        tuple(np.isin(rows.sensors, names) for names in settings.forbidden),
    )
    found = learn_in_time(first.model, rows.words, rows.observed, noise=noise, bounds=bounds, n_jobs=settings.n_jobs)
    known = np.array([bounds.keeps(column) for column in found.model.mixing.T], dtype=bool)
    kept = np.flatnonzero(known | (found.model.probability >= (settings.min_probability or 0.0)))
    model, stays = found.model.pick(kept), found.persistence[kept]
    return Fit(
        model,
        method=IN_TIME,
        n_samples=first.n_samples,
        converged=found.converged,
        diagnostics={
            "persistence": [float(stay) if np.isfinite(stay) else None for stay in stays],
            "in_time": _what_changed(first.model, model),
        }
        | ({"interrupted": True} if found.interrupted else {}),
    )


def _what_changed(before: OrMixture, after: OrMixture) -> dict[str, list[list[str]]]:
    """The sources, each by its sensors, that are there or gone because of the order of the rows."""
    old, new = (
        {tuple(name for name, on in zip(model.sensors, column, strict=True) if on) for column in model.mixing.T}
        for model in (before, after)
    )
    return {"added": sorted(map(list, new - old)), "dropped": sorted(map(list, old - new))}
