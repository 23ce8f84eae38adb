"""Edges that fail at times: what a learner of them returns, and the choice between sure and lossy edges.

A source that is on switches each of its sensors on with a probability of its own, the reach; a sensor is also on by
itself at times, the leak. Sure edges never fail; there, what the rows lack is left to the noise and to more sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from bica.diagnose.goodness import Splinters, both_on
from bica.estimate.lattice import NoiseShape, lowest_rate
from bica.estimate.search import SourceSearch, Start
from bica.estimate.settings import WORD, Varying, as_sets
from bica.estimate.whole import CONVINCING, FIRST_FALSE_ALARM, FIRST_MISS, PER_SENSOR
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.text import counted, folded

NAMED = 6  # sensors of a family that are named
MOST_SHARED = 2  # unknown rates of noise that all sensors share; where there are more, each sensor has its own
FAR_AHEAD = 40.0  # nats: more than a search with sure edges gains that began with the sources nearest to lossy ones
FAR_FEWER = 30.0  # nats ahead where fewer sources alone decide
BY_CHANCE = 0.01  # the share of tables with sure edges in which lossy ones may explain the rows better than is needed
LEAST_ROWS = 3.0  # that a sure source to begin with is on in
MOST_FREQUENT = 0.95  # probability of such a source: its rate must be finite
LEAST_SENSORS = 3  # that tell a lossy edge from a rare source
NO_RATES = np.empty(0)
MOST_ERROR = 0.5  # of a probability; a larger standard error says nothing of it


@dataclass(frozen=True, slots=True)
class Family:
    """Sources with nearly the same sensors, which may be one source whose losses come together."""

    sensors: tuple[str, ...]
    n_pieces: int
    observed_change: float  # of the log-likelihood, where the pieces become exclusive modes of one source
    expected_change: float  # the same if the pieces were independent sources
    told: bool  # whether the rows could tell the one from the other
    joined: bool = True  # whether they are shown as one
    log_likelihood: float = math.nan  # with modes

    def sentence(self) -> str:
        """What the user must know of it.

        >>> Family(("a", "b", "c"), 4, -1.0, -2.0, told=False).sentence()
        'a, b, c: 4 sources reach these sensors alike; shown as one whose losses come together, which the rows cannot \
tell from 4 sources'
        """
        words = f"{folded(self.sensors, NAMED)}: {self.n_pieces} sources reach these sensors alike; "
        if not self.joined:
            return words + "the rows cannot tell them from one whose losses come together"
        known = "as the rows say" if self.told else f"which the rows cannot tell from {self.n_pieces} sources"
        return words + f"shown as one whose losses come together, {known}"


@dataclass(frozen=True, slots=True, eq=False)
class LossyFit:
    """Sources with lossy edges and their numbers, over the sensors that vary; known sources come first.

    Errors are standard errors: 0 where a number was given, NaN where the rows do not determine it.
    """

    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    probability: NDArray[np.float64]  # (n_sources,)
    reach: NDArray[np.float64]  # (n_sensors, n_sources), 0 where there is no edge
    leak: NDArray[np.float64]  # (n_sensors,)
    log_likelihood: float | None  # None where it cannot be computed
    score: float | None  # the log-likelihood minus what the sources and edges cost
    probability_error: NDArray[np.float64]  # (n_sources,)
    reach_error: NDArray[np.float64]  # (n_sensors, n_sources), NaN where there is no edge
    leak_error: NDArray[np.float64]  # (n_sensors,)
    interrupted: bool = False  # whether Ctrl-C ended the search early
    families: tuple[Family, ...] = ()  # sources that stand for several


@dataclass(eq=False)
class LossyRival:
    """The answer with lossy edges to a table, learned when it is first asked for."""

    table: Varying
    learn: Callable[[], LossyFit]
    joined: Callable[[LossyFit], LossyFit]  # families of sources made one
    may_win: bool = True  # whether lossy edges may be the answer, not only the start of another search
    may_go_on: list[bool] = field(default_factory=list)  # for each search with sure edges that was judged
    was_asked: bool = False  # whether the sources with lossy edges were needed so far

    @cached_property
    def found(self) -> LossyFit:
        """The sources with lossy edges."""
        found, self.was_asked = self.learn(), True
        return found

    @property
    def has_stopped_the_other(self) -> bool:
        """Whether every search with sure edges was given up."""
        return bool(self.may_go_on) and not any(self.may_go_on)

    def start(self, shape: NoiseShape) -> Start:
        """The sure sources nearest to the lossy ones: what each reaches best, its best two sensors, and so on.

        Sure sources that contain each other look exactly like one lossy source: its reach says how often the smaller
        and the larger ones are on. The known sources come first, as they are.
        """
        if self.found.interrupted:
            raise KeyboardInterrupt
        found, known = self.found, self.table.known
        sets = dict.fromkeys(self.table.known_sets.tolist(), 0.0)
        for column, share in self.nearest():
            inside = int(as_sets([column])[0])
            if len(column) >= shape.least_sensors and not any(inside & no == no for no in self.table.forbidden_sets):
                sets[inside] = sets.get(inside, 0.0) + share
        probability = np.minimum(np.array(list(sets.values())), MOST_FREQUENT)
        probability[: len(known)] = found.probability[: len(known)]
        free = np.array([source.probability is None for source in known] + [True] * (len(sets) - len(known)), bool)
        noise = np.repeat([FIRST_FALSE_ALARM, FIRST_MISS], shape.n_unknown // 2)
        noise = noise if noise.size else np.array([FIRST_FALSE_ALARM])
        return Start(np.array(list(sets), dtype=np.int64), -np.log1p(-probability), free, noise, len(known))

    def nearest(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """The sensors of sure sources that look like the lossy ones not known, and how often each is on."""
        known = len(self.table.known)
        for probability, reach in zip(self.found.probability[known:], self.found.reach.T[known:], strict=True):
            in_turn = np.argsort(-reach, kind="stable")[: np.count_nonzero(reach)]
            share = probability * (reach[in_turn] - np.append(reach[in_turn[1:]], 0.0))
            for size in np.flatnonzero(share * self._n_rows >= LEAST_ROWS) + 1:
                yield tuple(sorted(in_turn[:size].tolist())), float(share[size - 1])

    def is_dearer(self, search: SourceSearch) -> bool:
        """Whether sure sources that explain the rows as well as the lossy ones would still be far behind.

        Rows from lossy sources are explained ever better by more and more sure ones, each of which costs something.
        """
        if not self.may_win or self.found.log_likelihood is None:
            return False
        height = search.best.fit.point.log_likelihood
        most = self._score_of_search(search) + max(self.found.log_likelihood - height, 0.0)
        return self.score() > most + FAR_AHEAD

    def is_within_reach(self, search: SourceSearch) -> bool:
        """Whether a search with sure edges that began near the lossy ones may still be the answer."""
        if not self.may_win:
            return True
        self.may_go_on.append(not self.is_dearer(search) and self.score() <= self._score_of_search(search) + FAR_AHEAD)
        return self.may_go_on[-1]

    def _score_of_search(self, search: SourceSearch) -> float:
        point, noise = search.best.fit.point, search.surface.noise
        sizes = np.bitwise_count(point.sources.view(np.uint64))
        false_alarms = noise.rates(point.noise)[0] if noise.n_unknown > MOST_SHARED else np.empty(0)
        return self.sure_score(point.log_likelihood, sizes, noise.n_unknown, false_alarms)

    def chosen(self, sure: Fit) -> Fit:
        """The better of both fits, with the other's answer among its diagnostics."""
        ahead = self.score() - self.score_of(sure)
        if self.found.interrupted:
            return cut_short(sure)
        lossy = self.fit() if self._wins(sure, ahead) else None
        if lossy is None or (_tells_nothing(lossy) and not self.has_stopped_the_other):
            return _noted(sure, "sure", self.found.probability.size, self.found.log_likelihood, -ahead)
        so_far = " when the search was given up" if self.has_stopped_the_other else ""
        lossy = _noted(lossy, "lossy", sure.model.n_sources, sure.log_likelihood, ahead, so_far)
        return cut_short(lossy) if "interrupted" in sure.diagnostics else lossy

    def _wins(self, sure: Fit, ahead: float) -> bool:
        """Whether lossy edges are the answer.

        Sure sources that contain each other look exactly like one lossy source, which is cheaper. So fewer sources
        decide only if they are far fewer; else the rows must be explained better than the additional numbers would
        explain them by chance, a chi-square with as many degrees of freedom.
        """
        if ahead <= 0 or self.found.log_likelihood is None or sure.log_likelihood is None:
            return ahead > 0
        more = max(self._n_numbers - self._n_sure_numbers(sure), 1)
        by_chance = 0.5 * float(chdtri(more, BY_CHANCE))
        return ahead > FAR_FEWER or self.found.log_likelihood - sure.log_likelihood > by_chance

    @property
    def _n_numbers(self) -> int:
        """How many numbers the rows tell: probabilities, reaches and leaks."""
        found = self.found
        return found.probability.size + int(_n_told(found.mixing.sum(axis=0)).sum()) + found.leak.size

    def _n_sure_numbers(self, sure: Fit) -> int:
        varies = sure.model.mixing[self.table.places].any(axis=0)
        return int(varies.sum()) + int(sure.diagnostics["noise"].get("n_unknown", 1))

    def compared_with(self, sure: Fit) -> Fit:
        """A fit with sure edges, as the user wants it, with how far behind lossy edges it is."""
        if self.found.interrupted:
            return sure
        behind = self.score_of(sure) - self.score()
        return _noted(sure, "sure", self.found.probability.size, self.found.log_likelihood, behind)

    def fit(self) -> Fit:
        """The fit with lossy edges, families joined."""
        height, learned = self.found.log_likelihood, self.found
        try:
            learned = learned if learned.interrupted else self.joined(learned)
        except KeyboardInterrupt:
            learned = replace(learned, interrupted=True)
        found = lossy_as_fit(self.table, learned)
        return replace(found, diagnostics={**found.diagnostics, "log_likelihood_of_pieces": height})

    def score_of(self, sure: Fit) -> float:
        """The penalised likelihood of a fit with sure edges: what the choice of sensors and every number costs."""
        sizes, noise = sure.model.mixing[self.table.places].sum(axis=0), sure.diagnostics["noise"]
        false_alarms = np.array(noise["false_alarm"]["rate"] if noise.get("kind") == PER_SENSOR.name else ())
        height = -np.inf if sure.log_likelihood is None else sure.log_likelihood
        return self.sure_score(height, sizes[sizes > 0], int(noise.get("n_unknown", 1)), false_alarms)

    def sure_score(
        self,
        log_likelihood: float,
        sizes: NDArray[Any],
        n_noise: int = 1,
        false_alarms: NDArray[np.float64] = NO_RATES,
    ) -> float:
        """False alarms at rates of every sensor cost what leaks do, all other rates of noise half a log of all rows."""
        n_numbers = sizes.size + n_noise - false_alarms.size
        cost = n_numbers * half_log(self._n_rows) + half_log(self._n_rows * false_alarms).sum()
        return float(log_likelihood - self._choices(sizes) - cost)

    def score(self) -> float:
        """The same for lossy edges. Every number costs half a log of the rows that it is about.

        A probability is about all rows, a reach about those in which its source is on, a leak about those in which the
        sensor is on by itself.
        """
        found, n_rows = self.found, self._n_rows
        sizes = found.mixing.sum(axis=0)
        cost = sizes.size * half_log(n_rows) + _n_told(sizes) @ half_log(n_rows * found.probability)
        cost += half_log(n_rows * found.leak).sum()
        height = -np.inf if found.log_likelihood is None else found.log_likelihood
        return float(height - self._choices(sizes) - cost)

    @property
    def _n_rows(self) -> float:
        return self.table.data.n_samples

    def _choices(self, sizes: NDArray[Any]) -> float:
        n_sensors = self.table.data.n_sensors
        return sum(math.log(math.comb(n_sensors, int(size))) for size in sizes)


def _n_told(sizes: NDArray[Any]) -> NDArray[Any]:
    """How many reaches rows tell of sources of so many sensors: all, but two sensors tell nothing about theirs."""
    return np.where(sizes == 2, 0, sizes)


def _tells_nothing(lossy: Fit) -> bool:
    """Whether rows leave open how often some source of three or more sensors is on, though such rows could tell."""
    if lossy.probability_error is None:
        return False
    wide = lossy.model.mixing.sum(axis=0) >= LEAST_SENSORS
    return bool((lossy.probability_error[wide] > MOST_ERROR).any())


def cut_short(fit: Fit) -> Fit:
    """The fit, marked as interrupted: it is whole, but whether other edges fit better was left open."""
    return replace(fit, converged=False, diagnostics={**fit.diagnostics, "interrupted": True})


def half_log(n_rows: Any) -> Any:
    """What a number costs that so many rows are about."""
    return 0.5 * np.log(np.maximum(n_rows, 2.0))


def lossy_as_fit(table: Varying, found: LossyFit) -> Fit:
    """The fit of all sensors; one that never changes has hardly any leak, and a source of its own if always on."""
    n_sources, n_always, n_sensors = found.probability.size, table.always.size, table.whole.n_sensors
    reach, error = (np.zeros((n_sensors, n_sources + n_always)), np.full((n_sensors, n_sources + n_always), np.nan))
    reach[table.places, :n_sources], error[table.places, :n_sources] = found.reach, found.reach_error
    for column, source in enumerate(table.known):  # which may reach sensors that are always on
        reach[table.always, column] = np.isin(np.array(table.whole.sensors)[table.always], source.sensors)
    reach[table.always, np.arange(n_sources, n_sources + n_always)] = 1.0
    leak, leak_error = np.full(n_sensors, lowest_rate(table.data)), np.zeros(n_sensors)
    leak[table.places], leak_error[table.places] = found.leak, found.leak_error
    names = [source.name for source in table.known]
    names += [None] * (n_sources + n_always - len(names))
    probability = np.append(found.probability, np.ones(n_always))
    model = OrMixture(reach > 0, probability, Noise(leak, 0.0), reach, sensors=table.whole.sensors, names=names)
    noted: dict[str, Any] = {"score": found.score, "noise": {"estimated": True, "kind": "leaks"}, "edges": "lossy"}
    noted["spread_of_reach"] = spread_of_reach(found, table.data.n_samples)
    if found.families:
        noted["families"] = [{**asdict(family), "sentence": family.sentence()} for family in found.families]
    return Fit(
        model,
        method="likelihood",
        n_samples=table.data.n_samples,
        log_likelihood=found.log_likelihood,
        probability_error=np.append(found.probability_error, np.full(n_always, np.nan)),
        converged=not found.interrupted,
        diagnostics=noted | ({"interrupted": True} if found.interrupted else {}),
        reach_error=error,
        leak_error=leak_error,
    ).in_order()


def _noted(
    fit: Fit,
    edges: str,
    n_sources: int,
    log_likelihood: float | None = None,
    ahead: float | None = None,
    so_far: str = "",
) -> Fit:
    """The fit that was chosen, with what the other kind of edges would have said."""
    kind = "sure" if edges == "lossy" else "lossy"
    own = fit.diagnostics.get("log_likelihood_of_pieces", fit.log_likelihood)
    words = f"with {kind} edges: {counted(n_sources, 'source')}{so_far}"
    if own is not None and log_likelihood is not None:
        worse = own - log_likelihood
        words += f", {abs(worse):.0f} log-likelihood units {'worse' if worse >= 0 else 'better, but with more numbers'}"
    other = {"edges": kind, "n_sources": n_sources, "log_likelihood": log_likelihood, "score_behind": ahead}
    noted = {"edges": edges, "other_edges": {**other, "sentence": words}}
    return replace(fit, diagnostics={**fit.diagnostics, **noted})


# Many sensors: the likelihood of all of them together is out of reach, but that of a few is exact under both kinds of
# edges. With mean squared scores of the sensors: at most 0.6 on plain tables (m = 100 and 200, flips 0 to 10 %), 2.7 at
# reach ~ U(.9, 1) and 3000 rows, 10 at 10 000 rows, 30 at U(.8, 1), 50 at U(.4, 1).
MISFIT = 1.5  # mean squared standard score of how often each sensor is on, above which sure edges are in doubt
AT_A_TIME = 10  # sensors whose exact likelihood is compared
LEAST_SPREAD = 0.02  # variance of an edge that never failed, so that one failure is no surprise
# What the sure sources nearest to lossy ones cost: 0.7 to 1.35 times as much as these in real networks with sure edges
# and 2 or 5 % flips, 0.9 to 1.35 times in random networks with reach ~ U(.5, 1) to U(.95, 1), 1.9 to 2.1 times at
# U(.5, .95) where sources overlap little. So only a large ratio tells without a search.
MUCH_DEARER = 1.5
ALIKE = 0.6  # of the spread of all reaches: within sensors, less is left where sensors miss than where edges fail
FIRST_LEAKS, FIRST_MISSES = (1e-3, 0.2), (0.01, 0.5)  # limits of the rates of sensors to begin with
TINY = 1e-300
PRIOR_COUNT = 0.25  # keeps the spread of a small count above 0


def refutes_sure_edges(table: Varying, sure: Fit) -> bool:
    """Whether sensors are on much more or less often than sure edges say, or most sources are splinters of others.

    One flip rate for misses and false alarms cannot be right where sources miss their sensors far more often than these
    come on by themselves, so that the sensors of a model with lossy edges fit badly one by one. Takes no time.
    """
    data, total = table.whole, table.whole.times_observed()
    expected = np.diag(both_on(sure.model))
    z = (data.ones() - total * expected) / np.sqrt(total * expected * (1.0 - expected) + PRIOR_COUNT)
    return float(np.mean(z[table.places] ** 2)) > MISFIT or Splinters.of(sure.model) is not None


@dataclass(eq=False)
class RivalOfMany:
    """The answer with lossy edges beside one with sure edges, both judged by the likelihoods of sets of ten sensors.

    Blocks find too few sources where real networks share links, and lossy edges explain such rows better than that.
    So a search with sure edges that has not ended loses only where its sources cost too much, or where those nearest to
    the lossy ones would.
    """

    table: Varying
    found: LossyFit
    learn_misses: Callable[[Start, Callable[[SourceSearch], bool]], Fit | None]  # sure edges, sensors that miss
    has_stopped_the_other: bool = False  # whether a search with sure edges was given up

    def chosen(self, sure: Fit) -> Fit:
        """The fit with the higher penalised likelihood, with the other's answer in its diagnostics.

        ``spread_of_reach`` among them says whether edges fail at rates of their own, or all alike, as sensors that miss
        do. Where all edges of a sensor fail alike, sure edges with misses of that sensor are tried, too.
        """
        if self.found.interrupted:
            return cut_short(sure)
        score = self._score_of(sure)
        if self.with_misses is not None and self._score_of(self.with_misses) > score + CONVINCING:
            sure, score = self.with_misses, self._score_of(self.with_misses)
        ahead = self._rival.score() - score
        if ahead <= 0:
            return _noted(sure, "sure", self.found.probability.size, None, -ahead)
        so_far = " when the search was given up" if self.has_stopped_the_other else ""
        return _noted(lossy_as_fit(self.table, self.found), "lossy", sure.model.n_sources, None, ahead, so_far)

    def _score_of(self, sure: Fit) -> float:
        return self._rival.score_of(replace(sure, log_likelihood=self._height(sure.model)))

    @cached_property
    def with_misses(self) -> Fit | None:
        """The answer with sure edges and rates of every sensor; None if edges of a sensor fail unlike each other."""
        unlike, all_unlike = (
            spread_of_reach(self.found, self.table.data.n_samples, by_sensor=by_sensor) for by_sensor in (True, False)
        )
        if unlike > ALIKE * all_unlike or self.table.data.n_sensors > WORD or self.table.forbidden_sets.size:
            return None
        return self.learn_misses(start_of_misses(self.found), self.stops)

    @cached_property
    def is_unlike_sure(self) -> bool:
        """Whether the sure sources nearest to the lossy ones cost much more than these."""
        height = self._rival.found.log_likelihood
        if height is None:
            return True
        sizes = [len(column) for column in {column for column, _ in self._rival.nearest()}]
        cost = -self._rival.sure_score(0.0, np.array(sizes, int))
        return cost > MUCH_DEARER * (height - self._rival.score())

    def stops(self, search: SourceSearch) -> bool:
        """Whether sure sources would be far behind lossy ones even if they explained the rows as well."""
        sizes, best = np.bitwise_count(search.best.fit.point.sources.view(np.uint64)), self._rival.score() - FAR_AHEAD
        height = self._rival.found.log_likelihood or -np.inf
        noise = search.surface.noise
        false_alarms = noise.rates(search.best.fit.point.noise)[0] if noise.n_unknown > MOST_SHARED else NO_RATES
        dear = best > self._rival.sure_score(height, sizes, noise.n_unknown, false_alarms)
        if dear:  # else what they explain does not matter
            height = max(height, self._height(self._model(search)))
            dear = best > self._rival.sure_score(height, sizes, noise.n_unknown, false_alarms)
        self.has_stopped_the_other = dear
        return dear

    @cached_property
    def _rival(self) -> LossyRival:
        height = self._height(lossy_as_fit(self.table, self.found).model)
        return LossyRival(self.table, lambda: replace(self.found, log_likelihood=height), lambda alone: alone)

    @cached_property
    def _sets(self) -> list[NDArray[np.int64]]:
        """The sensors that vary in sets of ten, those of the same source together where possible."""
        mixing = self.found.mixing
        in_turn = np.concatenate([*(np.flatnonzero(column) for column in mixing.T), np.arange(len(mixing))])
        every = self.table.places[in_turn[np.sort(np.unique(in_turn, return_index=True)[1])]]
        return [every[begin : begin + AT_A_TIME] for begin in range(0, every.size, AT_A_TIME)]

    def _height(self, model: OrMixture) -> float:
        """The log-likelihoods of sets of sensors, each by itself, added up."""
        whole = self.table.whole
        whole.fetch(self._sets)
        return sum(model.of_sensors(sensors).log_likelihood(whole.counts_of(sensors)) for sensors in self._sets)

    def _model(self, search: SourceSearch) -> OrMixture:
        point = search.best.fit.point
        false_alarm, miss = search.surface.noise.rates(point.noise)
        mixing = (point.sources >> np.arange(self.table.data.n_sensors)[:, None]) & 1 == 1
        noise = Noise(*(self._of_all(rates) for rates in (false_alarm, miss)))
        return self.table.model(mixing, point.probability, np.full(point.sources.size, np.nan), noise)[0]

    def _of_all(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        every = np.full(self.table.whole.n_sensors, rates.mean())
        every[self.table.places] = rates
        return every


def start_of_misses(found: LossyFit) -> Start:
    """The sensors of lossy sources as those of sure ones, which every sensor misses as often as its edges fail."""
    several = found.mixing.sum(axis=0) >= PER_SENSOR.shape(1, 0.0).least_sensors
    columns = [tuple(np.flatnonzero(column).tolist()) for column in found.mixing.T[several]]
    sets, first = np.unique(as_sets(columns), return_index=True)
    weight = found.mixing * found.probability
    arrives = (weight * found.reach).sum(axis=1) / np.maximum(weight.sum(axis=1), TINY)
    noise = np.append(np.clip(found.leak, *FIRST_LEAKS), np.clip(1.0 - arrives, *FIRST_MISSES))
    rate = -np.log1p(-np.minimum(found.probability[several][first], MOST_FREQUENT))
    return Start(sets, rate, np.ones(sets.size, dtype=bool), noise)


def spread_of_reach(found: LossyFit, n_rows: float, *, by_sensor: bool = False) -> float:
    """Chi-square per degree of freedom of the reach of all edges about one common value, or about one of each sensor.

    Above 4, edges fail at rates of their own; about 1 to 3 where all fail alike, since overlaps are ignored. Sources of
    two sensors tell nothing; 0 where no edge can be told.
    """
    told = found.mixing & np.isfinite(found.reach_error)
    n_on = np.maximum(n_rows * found.probability, 1.0)
    weight = np.zeros(told.shape)
    weight[told] = 1.0 / np.maximum(found.reach_error**2, LEAST_SPREAD / n_on)[told]
    groups = weight if by_sensor else weight.reshape(1, -1)
    reach = found.reach.reshape(groups.shape)
    common = (groups * reach).sum(axis=1, keepdims=True) / np.maximum(groups.sum(axis=1, keepdims=True), TINY)
    n_more = np.count_nonzero(told) - np.count_nonzero(groups.any(axis=1))
    return float((groups * (reach - common) ** 2).sum() / max(n_more, 1))
