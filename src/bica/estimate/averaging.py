"""Averaging over sets of sources: how probable each source is, and the set that is nearest to all that may be true.

Few noisy rows leave many sets of sources nearly as probable as the best. A random walk (``kernels/lattice/walk.py``)
visits them as often as they are probable, given a prior of how many sources of each size there are and that the rates
of a table resemble each other. The share of visits with a source is its support. The answer is not the most probable
set but the one whose expected distance from the truth is least: it has the sources that are more probable than not,
and where the rows leave open which sensors a source reaches, the version in the middle instead of none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from bica.data.pairs import own_order
from bica.estimate.lattice import NoiseShape, lowest_rate
from bica.estimate.score import RatePrior
from bica.estimate.search import SourceSearch, Start, relatives
from bica.estimate.settings import Settings, Varying
from bica.estimate.whole import FLIPS, PER_SENSOR, TWO_RATES, NoiseKind, WholeTask, support_of_columns
from bica.kernels.lattice.likelihood import CellGroups
from bica.kernels.lattice.walk import NORMALS, UNIFORMS, Beliefs, NoisyRows, Place, Suggestions, walk
from bica.model.files import LEVEL
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.progress import go_on

Sets = NDArray[np.int64]
Vector = NDArray[np.float64]

MOST_SENSORS = 12  # whose lattice is small enough for thousands of steps
MOST_SOURCES = 40  # at one time
SAYS_NOTHING = (1, 1)  # the prior that is none
SEED = 14  # the walk is the same for the same rows
STEPS = 12_000  # of a walk over up to ten sensors; fewer over more
BATCHES = 4  # in which they are walked: a clear answer needs only one
BURN_IN = 0.1  # of the steps
KEPT = 200  # places of each batch
CLEAR = 0.97  # share of the visits at one set of sources that leaves no doubt
ANOTHER = (0.0, 0.5, 0.8, 0.8, 0.8)  # how probable one more source of 0, 1, ... sensors is after each; halved beyond
SUGGESTED = 12  # sets of each size that a new source is likely to be
SUGGESTED_PROBABILITY = (0.03, 0.6)  # at least and at most
FLATTER = 1.5  # suggestions follow their score, divided by this
LEAST_SHARE = 0.05  # of all suggestions: any set
FIRST_RATE = 0.1  # of a source that was not in the fit
NUMBER_OFF = 3.0  # nats for each source more or fewer than is known to be there


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """Sets of sources, each as often as it is probable."""

    sources: NDArray[np.int64]  # (n_visits, most), 0 for none
    log_rate: NDArray[np.float64]  # (n_visits, most)
    noise: NDArray[np.float64]  # (n_visits, n_unknown)

    def support(self) -> dict[int, float]:
        """The share of the visits at which each set was a source, by falling share."""
        sets, times = np.unique(self.sources[self.sources > 0], return_counts=True)
        order = np.argsort(-times, kind="stable")
        return dict(zip(sets[order].tolist(), (times[order] / len(self.sources)).tolist(), strict=True))

    def clearest(self) -> float:
        """The share of the most frequent set of sources."""
        _, times = np.unique(np.sort(self.sources, axis=1), axis=0, return_counts=True)
        return float(times.max() / len(self.sources))

    def with_number(self, wanted: int) -> Visits:
        """Those with so many sources; all if there are none."""
        right = (self.sources > 0).sum(axis=1) == wanted
        return Visits(self.sources[right], self.log_rate[right], self.noise[right]) if right.any() else self

    def numbers(self, more: int = 0) -> dict[int, float]:
        """The share of the visits with each number of sources, some that are always there added."""
        number, times = np.unique((self.sources > 0).sum(axis=1), return_counts=True)
        return dict(zip((number + more).tolist(), (times / len(self.sources)).tolist(), strict=True))

    def with_bits(self, places: Sets) -> Visits:
        """The same sources as sets in which sensor i is bit ``places[i]``."""
        moved = np.zeros_like(self.sources)
        for sensor, bit in enumerate(places.tolist()):
            moved |= (self.sources >> sensor & 1) << bit
        return Visits(moved, self.log_rate, self.noise)

    def thinned(self, number: int) -> list[Sets]:
        """The sources at some of them, evenly spaced."""
        places = np.unique(np.linspace(0, len(self.sources) - 1, number).astype(np.int64))
        return [visit[visit > 0] for visit in self.sources[places]]


def beliefs_of(search: SourceSearch, wanted: int | None = None) -> Beliefs:
    """The prior: every number of sources of a size, then every choice of such sets is as probable as another."""
    n_sensors = search.surface.cells.n_sensors
    sets = np.arange(2**n_sensors)
    size = np.bitwise_count(sets).astype(np.int64)
    allowed = np.zeros(sets.size, dtype=bool)
    allowed[search.new(sets[1:], np.empty(0, np.int64))] = True
    number, sizes = np.arange(MOST_SOURCES + 1), np.arange(n_sensors + 1)
    another = np.array([*ANOTHER, *(ANOTHER[-1] * 0.5 ** np.arange(1, n_sensors + 1))])[: n_sensors + 1]
    n_sets = np.exp(gammaln(n_sensors + 1) - gammaln(sizes + 1) - gammaln(n_sensors - sizes + 1))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        choices = gammaln(n_sets + 1) - gammaln(number + 1) - gammaln(np.maximum(n_sets - number, 0) + 1)
        by_size = np.where(number <= n_sets, number * np.log(another)[:, None] - choices, -np.inf)
    by_size[0, 0] = 0.0
    by_number = np.zeros(number.size) if wanted is None else -NUMBER_OFF * np.abs(number - wanted)
    priors = [RatePrior(k) for k in number.tolist()]
    return Beliefs(
        np.where(allowed, size, -1),
        by_size,
        by_number,
        np.array([prior.constant for prior in priors]),
        np.array([prior.degrees for prior in priors]),
        RatePrior.MEAN,
        RatePrior.MEAN_COUNT,
        0.5 * RatePrior.VARIANCE_COUNT * RatePrior.VARIANCE,
    )


def suggestions_of(search: SourceSearch) -> Suggestions:
    """Sets that would gain much beside the sources found, or in place of one of them."""
    surface, scale, point = search.task.scale.surface, search.task.scale, search.best.fit.point
    n_sets = 2**surface.cells.n_sensors
    score, log_rate = np.full(n_sets, -np.inf), np.full(n_sets, RatePrior.MEAN)
    for place in range(-1, point.sources.size):
        kept = np.arange(point.sources.size) != place
        rest = surface.at(point.sources[kept], point.rate[kept], point.noise)
        if not np.isfinite(rest.log_likelihood):
            continue
        candidates = np.union1d(surface.steepest(rest), relatives(rest.sources, surface.cells.n_sensors))
        candidates = candidates[candidates > 0]
        gain, probability = surface.additions(rest, candidates)
        value = gain - scale.cost[np.bitwise_count(candidates)]
        value -= value.max(initial=0.0 if place < 0 else -np.inf)
        better = value > score[candidates]
        score[candidates[better]] = value[better]
        log_rate[candidates[better]] = np.log(-np.log1p(-np.clip(probability[better], *SUGGESTED_PROBABILITY)))
    anything = np.exp(-scale.cost[np.bitwise_count(np.arange(n_sets))])
    anything[0] = 0.0
    likely = np.exp(score / FLATTER)
    share = LEAST_SHARE * anything / anything.sum() + (1 - LEAST_SHARE) * likely / max(float(likely.sum()), 1e-300)
    return Suggestions(share, np.cumsum(share), log_rate)


def walked(search: SourceSearch, wanted: int | None = None) -> Visits:
    """The places of a walk that starts from the best set of sources found; it ends early where there is no doubt."""
    surface, fit = search.task.scale.surface, search.best.fit
    shape, cells, point = surface.noise, surface.cells, fit.point
    group = np.repeat(np.arange(cells.unobserved.size), np.diff(cells.starts))
    order = np.lexsort((cells.weights, group))  # equal weights follow each other
    rows = NoisyRows(
        CellGroups(cells.unobserved, cells.starts, cells.cells[order]),
        cells.weights[order],
        np.array(shape.false_alarm),  # copies are arrays of one kind, so that the walk is compiled once
        np.array(shape.miss),
        np.array(shape.false_alarm_of),
        np.array(shape.miss_of),
        float(shape.lowest),
        np.array(shape.highest),
    )
    n_sources = point.sources.size
    place = Place(
        np.zeros(MOST_SOURCES, np.int64),
        np.zeros(MOST_SOURCES),
        np.ones(MOST_SOURCES, bool),
        np.clip(point.noise, shape.lowest * 1.01, shape.highest * 0.99),
        np.array([n_sources, search.n_known]),
        np.zeros(1),
        np.zeros(1, np.int64),
    )
    place.sources[:n_sources], place.free[:n_sources] = point.sources, fit.free
    place.log_rate[:n_sources] = np.log(np.maximum(point.rate, 1e-9))
    beliefs, suggestions, rng = beliefs_of(search, wanted), suggestions_of(search), np.random.default_rng(SEED)
    walks: list[Visits] = []
    for batch in range(BATCHES):
        n_steps = steps_over(cells.n_sensors) // BATCHES // KEPT * KEPT
        part = Visits(
            np.zeros((KEPT, MOST_SOURCES), np.int64), np.zeros((KEPT, MOST_SOURCES)), np.zeros((KEPT, point.noise.size))
        )
        go_on()
        random = rng.random((n_steps, UNIFORMS)), rng.standard_normal((n_steps, NORMALS))
        walk(place, rows, beliefs, suggestions, *random, part.sources, part.log_rate, part.noise)
        walks.append(part if batch else _after(part, int(BURN_IN * BATCHES * KEPT)))
        if batch == 0 and walks[0].clearest() > CLEAR:
            break
    return Visits(*(np.concatenate([getattr(part, name) for part in walks]) for name in Visits.__slots__))


def _after(visits: Visits, number: int) -> Visits:
    return Visits(visits.sources[number:], visits.log_rate[number:], visits.noise[number:])


def steps_over(n_sensors: int) -> int:
    """How long a walk is, so that it takes no longer over more sensors than over ten."""
    return int(STEPS * min(1.0, 2.0 ** (10 - n_sensors) * 10 / n_sensors))


ROUNDING = 1e-9  # of a mean distance
INEXACT = 0.5  # what a source costs that is not exactly right, beside one for each wrong cell
COMPARED = 100  # visits that an answer is compared with
CANDIDATE = 0.08  # support from which on a set may be in the answer
BEYOND_DOUBT = 0.9  # support from which on a source is not exchanged
LIKE = 2  # sensors in which a set may differ from the source that it replaces


def distance(one: Sets, other: Sets) -> float:
    """How many cells of the mixing differ where sources are matched best, plus half of how many sources are not equal.

    >>> distance(np.array([3, 4]), np.array([7, 4]))
    1.5
    """
    cost = matching_costs(one, other)
    return float(cost[linear_sum_assignment(cost)].sum())


def matching_costs(one: Sets, other: Sets) -> Vector:
    """What it costs to take each source of one for each of the other; both are filled up with empty sets."""
    both = np.zeros((2, max(one.size, other.size)), np.int64)
    both[0, : one.size], both[1, : other.size] = one, other
    apart = both[0][:, None] ^ both[1]
    cost: Vector = np.bitwise_count(apart) + INEXACT * (apart != 0)
    return cost


def nearest_to_all(visits: Visits, known: Sets, wanted: int | None = None) -> Sets:
    """The sources with the least mean distance from those of all visits: sources are added, dropped and exchanged."""
    support, others = visits.support(), visits.thinned(COMPARED)
    candidates = np.array([s for s, share in support.items() if share > CANDIDATE], dtype=np.int64)
    ranked = np.array(list(support), dtype=np.int64)
    first = ranked[np.array(list(support.values())) > 0.5] if wanted is None else ranked[:wanted]
    answer = np.concatenate([known, np.setdiff1d(first, known)])
    if wanted is not None:
        answer = answer[:wanted]

    def mean_distance(sources: Sets) -> float:
        return float(np.mean([distance(sources, other) for other in others]))

    best = mean_distance(answer)
    while True:
        tried = [
            sources
            for sources in _changed(answer, candidates, known.size, support)
            if wanted is None or sources.size == wanted
        ]
        means = [mean_distance(sources) for sources in tried]
        if not means or min(means) >= best - ROUNDING:
            return answer
        best, answer = min(means), tried[int(np.argmin(means))]


def _changed(answer: Sets, candidates: Sets, n_known: int, support: dict[int, float]) -> list[Sets]:
    """The sets with one source more, one less, or one exchanged for a similar one."""
    new = np.setdiff1d(candidates, answer)
    changed = [np.append(answer, source) for source in new]
    for place in range(n_known, answer.size):
        rest = np.delete(answer, place)
        if support.get(int(answer[place]), 0.0) < BEYOND_DOUBT:
            changed.append(rest)
            like = new[np.bitwise_count(new ^ answer[place]) <= LIKE]
            changed += [np.append(rest, source) for source in like]
    return changed


def edge_support(mixing: NDArray[np.bool_], visits: Visits) -> Vector:
    """The share of the visits at which the source that stands for each of these reaches each sensor."""
    n_sensors, n_sources = mixing.shape
    sets = (1 << np.arange(n_sensors)) @ mixing.astype(np.int64)
    others, share = visits.thinned(COMPARED * 2), np.zeros((n_sensors, n_sources))
    for other in others:
        matched = np.pad(other, (0, max(0, n_sources - other.size)))
        _, places = linear_sum_assignment(matching_costs(sets, other))
        share += matched[places[:n_sources]] >> np.arange(n_sensors)[:, None] & 1
    return share / max(1, len(others))


Task = Callable[[Varying, Settings], WholeTask]  # how a table is learned on the lattice


def averaged(table: Varying, settings: Settings, fit: Fit, task: Task) -> Fit:
    """The fit, whose rows leave its sources in doubt, averaged over sets of sources if the lattice is small enough.

    The columns are walked over in an order of their own, so that their order in the table does not matter. Ctrl-C keeps
    the fit as it was, marked as interrupted.
    """
    n_sensors = table.data.n_sensors
    small = 2 <= n_sensors <= MOST_SENSORS and fit.model.n_sources <= MOST_SOURCES
    if not small or settings.prior not in (None, SAYS_NOTHING):
        return fit
    wanted = None if settings.n_sources is None else settings.n_sources - table.always.size
    try:
        visits = _walked_in_own_order(table, settings, fit, task, wanted)
    except KeyboardInterrupt:
        return replace(fit, converged=False, diagnostics={**fit.diagnostics, "interrupted": True})
    answer = nearest_to_all(visits, table.known_sets, wanted)
    present = start_of(table, fit, np.empty(0)).sources
    as_found = wanted is not None or np.array_equal(np.sort(answer), np.sort(present))  # of a given number, the best
    chosen = fit if as_found else _refitted(task(table, settings), fit, answer)
    return _with_support(table, chosen, visits)


def _walked_in_own_order(table: Varying, settings: Settings, fit: Fit, task: Task, wanted: int | None) -> Visits:
    order = own_order(table.whole)
    given = settings.noise.of_sensors(order) if isinstance(settings.noise, Noise) else settings.noise
    ordered = Varying.of(table.whole.project(order.tolist()), settings.known, settings.forbidden)
    here = replace(fit, model=fit.model.of_sensors(order))
    search = search_at(task(ordered, replace(settings, noise=given)), here)
    visits = walked(search, wanted).with_bits(np.searchsorted(table.places, order[ordered.places]))
    return visits if wanted is None else visits.with_number(wanted)


def kind_of(fit: Fit) -> NoiseKind:
    """The kind of noise that was estimated."""
    name = fit.diagnostics["noise"].get("kind", FLIPS.name)
    return next(kind for kind in (FLIPS, TWO_RATES, PER_SENSOR) if kind.name == name)


def start_of(table: Varying, fit: Fit, noise: Vector) -> Start:
    """The known sources, then the others that a fit has, with their rates."""
    columns, always = fit.model.mixing[table.places], np.isin(np.arange(table.whole.n_sensors), table.always)
    unknown = fit.model.mixing[~always].any(axis=0)
    sets = ((1 << np.arange(table.places.size)) @ columns.astype(np.int64))[unknown]
    rate = dict(zip(sets.tolist(), fit.model.rate[unknown].tolist(), strict=True))
    sources = np.concatenate([table.known_sets, np.setdiff1d(sets[sets > 0], table.known_sets)])
    free = np.ones(sources.size, dtype=bool)
    free[: len(table.known)] = [source.probability is None for source in table.known]
    return Start(sources, np.array([rate[s] for s in sources.tolist()]), free, noise, len(table.known))


def search_at(task: WholeTask, fit: Fit, sources: Sets | None = None) -> SourceSearch:
    """A search that stands at the sources of the fit, or at others, with the same kind of noise."""
    table, kind, n_sensors = task.table, kind_of(fit), task.table.data.n_sensors
    shape = kind.shape(n_sensors, lowest_rate(table.data))
    if isinstance(task.settings.noise, Noise):
        shape = NoiseShape.known(task.settings.noise.of_sensors(table.places), n_sensors)
    rates = [np.asarray(rate)[table.places] for rate in fit.model.noise.rates(table.whole.n_sensors)]
    noise = np.concatenate(rates) if kind is PER_SENSOR else np.array([rate[0] for rate in rates])
    start = start_of(table, fit, np.clip(noise[: shape.n_unknown], shape.lowest, shape.highest))
    if sources is not None:
        rate = dict(zip(start.sources.tolist(), start.rate.tolist(), strict=True))
        rates_there = np.array([rate.get(s, FIRST_RATE) for s in sources.tolist()])
        free = np.append(start.free[: start.n_known], np.ones(sources.size - start.n_known, dtype=bool))
        start = replace(start, sources=sources, rate=rates_there, free=free)
    return task.search(start, shape)


def _refitted(task: WholeTask, fit: Fit, answer: Sets) -> Fit:
    """The fit with other sources."""
    found = task.result(search_at(task, fit, answer), kind_of(fit), interrupted=False)
    return replace(found, n_iter=fit.n_iter, diagnostics={**fit.diagnostics, **found.diagnostics})


def _with_support(table: Varying, fit: Fit, visits: Visits) -> Fit:
    """The fit with the support of its sources and edges, and the noise that all visits leave possible."""
    every = np.ones(fit.model.mixing.shape)
    every[table.places] = edge_support(fit.model.mixing[table.places], visits)
    noted = {
        "support": support_of_columns(table, fit.model, visits.support()),
        "edge_support": [share[on].tolist() for share, on in zip(every.T, fit.model.mixing.T, strict=True)],
        "n_sources": {str(k): share for k, share in visits.numbers(table.always.size).items()},
    }
    noise = dict(fit.diagnostics["noise"])
    if "flip_rate" in noise:
        low, high = np.quantile(visits.noise[:, 0], [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
        noise["interval"] = [min(low, noise["flip_rate"]), max(high, noise["flip_rate"])]
    return replace(fit, diagnostics={**fit.diagnostics, "noise": noise, "averaging": noted})
