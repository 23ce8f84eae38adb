"""The likelihood of up to 64 sensors as a surface, from lists of the hidden states of every distinct row; and a search.

It offers what the lattice offers (``at``, ``gradient``, ``derivatives``, ``additions``), so refits, searches and errors
need not know which of the two they stand on. The lists leave out unlikely states, which makes the likelihood a little
too low; the limits say by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.estimate.lattice import NoiseShape, Pace, lowest_rate
from bica.estimate.score import standard_errors
from bica.estimate.search import BY_GAIN, SearchTask, SourceSearch, Start, add_several, drop, single
from bica.estimate.settings import WORD, Settings, Varying
from bica.estimate.whole import FLIPS, PER_SENSOR, Route, WholeTask
from bica.kernels.bits import unpacked
from bica.kernels.rows.ratios import best_gains, ratios, wrong_cells
from bica.kernels.rows.states import Errors, Limits, StateRows, States, StateSources, hidden_states
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.progress import go_on

Sets = NDArray[np.int64]
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Until = Callable[[SourceSearch], bool]

MOST_STATES = 1 << 15  # in a row; with 4096 gains were up to 35 off where many sources are on
QUICK = Limits(1e-3, 0.02, MOST_STATES, 1 << 21)  # for a search: off by a few units of log-likelihood
CAREFUL = Limits(1e-4, 1.0, MOST_STATES, 1 << 23)  # for numbers that are reported: off by a few tenths
IMPOSSIBLE = 1e-280  # what wrong cells cost at most: every logarithm is finite
BUILDING, DERIVING, LOOKING = 100.0, 1.0, 0.2  # nanoseconds to make a state, for a slope there, for one candidate
CLIMBING = 20.0  # nanoseconds per row to find the best probability of a candidate
AT_A_TIME = 512  # candidates whose ratios are in memory together


@dataclass(frozen=True)
class StateCells:
    """What was observed: distinct rows with their weights."""

    rows: StateRows
    weights: Vector  # (n_rows,)
    n_sensors: int
    n_samples: float  # the weight of all rows

    @classmethod
    def of(cls, data: PatternCounts) -> StateCells:
        """The distinct rows of a table of up to 64 sensors."""
        patterns, observed = (np.ascontiguousarray(words[:, 0]) for words in (data.patterns, data.observed_cells()))
        return cls(StateRows(patterns, observed), data.weights, data.n_sensors, data.n_samples)

    def without(self, left_out: NDArray[np.bool_]) -> StateCells:
        """The same without some rows."""
        rows, weights = StateRows(self.rows.patterns[~left_out], self.rows.observed[~left_out]), self.weights[~left_out]
        return StateCells(rows, weights, self.n_sensors, float(weights.sum()))

    def thinned(self, every: int) -> StateCells:
        """Every so many-th row: a systematic sample, with rows that came up often as often as they should."""
        chosen = np.floor_divide(np.cumsum(self.weights), every)
        weights = np.diff(chosen, prepend=0.0)
        kept = weights > 0
        rows = StateRows(self.rows.patterns[kept], self.rows.observed[kept])
        return StateCells(rows, weights[kept], self.n_sensors, float(weights.sum()))

    def times_observed(self) -> Vector:
        """The weight of the rows in which each sensor was observed: (n_sensors,)."""
        observed: Vector = self.weights @ (self.ones + self.zeros)
        return observed

    @cached_property
    def ones(self) -> Matrix:
        """1 where a cell shows 1: (n_rows, n_sensors)."""
        return unpacked(self.rows.patterns[:, None], self.n_sensors).astype(float)

    @cached_property
    def zeros(self) -> Matrix:
        """1 where a cell was observed and shows 0: (n_rows, n_sensors)."""
        return unpacked((self.rows.observed & ~self.rows.patterns)[:, None], self.n_sensors).astype(float)


@dataclass(frozen=True, slots=True, eq=False)
class RowPoint:
    """One set of sources with rates and noise, and the likelihood there."""

    sources: Sets  # (n_sources,), bit sets
    rate: Vector  # (n_sources,), -log(1 - probability)
    probability: Vector  # (n_sources,), that each source is on
    noise: Vector  # (n_unknown,), the unknown noise rates
    log_likelihood: float
    states: States
    errors: Errors
    slopes: list[Matrix]  # empty, or the derivatives once they were asked for


class RowSurface:
    """The log-likelihood of counted rows over all OR mixtures of up to 64 sensors."""

    pace: ClassVar[Pace] = Pace(tolerance=0.05, tries=4)  # lists make the likelihood a bit rough
    last_pace: ClassVar[Pace] = Pace(tolerance=1e-3, tries=4)

    def __init__(self, cells: StateCells, noise: NoiseShape, limits: Limits = QUICK) -> None:
        self.cells = cells
        self.noise = noise
        self.limits = limits
        self.work = 0.0  # states and rows visited so far, about a nanosecond each

    def at(self, sources: Sets, rate: Vector, noise: Vector) -> RowPoint:
        """The likelihood there: time goes with the number of likely states of all rows."""
        false_alarm, miss = self.noise.rates(noise)
        probability, errors = -np.expm1(-rate), error_costs(false_alarm, miss)
        model = StateSources(sources.view(np.uint64), probability / (1.0 - probability), float(np.exp(-rate.sum())))
        states = States(*hidden_states(self.cells.rows, model, errors, self.limits))
        self.work += BUILDING * states.starts[-1]
        without_errors = self.cells.ones @ np.log1p(-miss) + self.cells.zeros @ np.log1p(-false_alarm)
        with np.errstate(divide="ignore"):  # no chance where there are too many states
            log_likelihood = float(self.cells.weights @ (np.log(states.chance) + without_errors))
        return RowPoint(sources, rate, probability, noise, log_likelihood, states, errors, [])

    def derivatives(self, point: RowPoint) -> Matrix:
        """Derivatives of the log chance of each row, by rates, then by unknown noise: (n_parameters, n_rows)."""
        if not point.slopes:
            by_rate = np.empty((point.sources.size, self.cells.weights.size))
            ratios(point.sources.view(np.uint64), self.cells.rows, point.states, point.errors, by_rate)
            self.work += DERIVING * point.sources.size * point.states.starts[-1]
            point.slopes.append(np.concatenate([by_rate - 1.0, self._by_noise(point)]))
        return point.slopes[0]

    def _by_noise(self, point: RowPoint) -> Matrix:
        """The expected number of errors against what the rates let expect: (n_unknown, n_rows)."""
        if not self.noise.n_unknown:
            return np.empty((0, self.cells.weights.size))
        wrong = np.empty((self.cells.weights.size, self.cells.n_sensors))
        wrong_cells(self.cells.rows, point.states, point.errors, wrong)
        false_alarm, miss = self.noise.rates(point.noise)
        ones, zeros = self.cells.ones, self.cells.zeros
        by_false_alarm = ones * wrong / false_alarm - zeros * (1.0 - wrong) / (1.0 - false_alarm)
        by_miss = zeros * wrong / miss - ones * (1.0 - wrong) / (1.0 - miss)
        by_unknown: Matrix = (by_false_alarm @ self.noise.false_alarm_of + by_miss @ self.noise.miss_of).T
        return by_unknown

    def gradient(self, point: RowPoint) -> Vector:
        """The slope by the rates of the point's own sources, then by the unknown noise: (n_parameters,)."""
        slope: Vector = self.derivatives(point) @ self.cells.weights
        return slope

    def rising(self, point: RowPoint, pool: Sets) -> Sets:
        """The whole pool: gains cost no more than slopes here."""
        return pool

    def additions(self, point: RowPoint, candidates: Sets) -> tuple[Vector, Vector]:
        """How much each candidate alone would raise the log-likelihood, and its best probability."""
        gain, probability = np.empty(candidates.size), np.empty(candidates.size)
        self.work += candidates.size * (LOOKING * point.states.starts[-1] + CLIMBING * self.cells.weights.size)
        for part in _parts(candidates.size):
            go_on()
            ratio = np.empty((candidates[part].size, self.cells.weights.size))
            ratios(candidates[part].view(np.uint64), self.cells.rows, point.states, point.errors, ratio)
            best_gains(ratio, self.cells.weights, gain[part], probability[part])
        return gain, probability


def error_costs(false_alarm: Vector, miss: Vector) -> Errors:
    """What a wrong cell costs, from the rates of every sensor."""
    factors = np.ones((WORD, 2))
    factors[: miss.size] = np.stack([miss / (1.0 - false_alarm), false_alarm / (1.0 - miss)], axis=1)
    powers = np.maximum(factors[0, 0] ** np.arange(WORD + 1), IMPOSSIBLE)
    equal = not miss.size or np.ptp(factors[: miss.size]) == 0.0
    return Errors(powers, None if equal else factors)


def _parts(n: int) -> Iterator[slice]:
    return (slice(start, start + AT_A_TIME) for start in range(0, n, AT_A_TIME))


MOST_WORK = 1e10  # some ten to twenty seconds; a real table that nothing fits would be bettered for hours
BRIEF_WORK = 1.5e9  # one or two seconds, for answers on which all blocks agree, which are seldom wrong
MANY_STATES = 1 << 17  # of all rows: with more, a search begins with a part of the rows
FIRST_ROWS, FIRST_WORK = 4, 0.3  # every so many-th of the rows, and the share of the work that may be done with them
NOISE_WORK = 5e9  # five to ten seconds for every other kind of noise
OWN_STATES = 1 << 18  # of all rows, with rates of every sensor by default: with 2^20 it takes a minute
BETTER = 1e-3  # nats: lists leave states out, so a smaller rise of the score means nothing
MOST_CUT = 0.05  # share of the rows with too many states: without more of them a search would go astray
PROBED, FAR_TOO_MANY = 32, 1.25  # every so many-th row is tried first; times the limit, lest these few mislead
LEAST_FLIPS = 1e-4  # a flip rate to begin with: rows that no present source explains cost too many states with less


def fit_on_rows(
    table: Varying,
    settings: Settings,
    start: Start,
    *,
    briefly: bool = False,
    most_states: float = np.inf,
    until: Until | None = None,
) -> Fit | None:
    """Search from ``start`` on; None if the rows have too many hidden states, or if a brief search finds no end.

    ``start.noise`` is one flip rate, or empty where the noise is known. The search may end early, ``until`` something
    holds. Ctrl-C keeps the best so far.
    """
    if settings.noise == "auto":  # other kinds of noise multiply the hidden states: only on request
        settings = replace(settings, noise="estimate")
    start = replace(start, noise=np.maximum(start.noise, LEAST_FLIPS))
    shape, most_work = first_shape(table, settings), BRIEF_WORK if briefly else MOST_WORK
    task = row_task(table, settings, start, shape, QUICK, most_work, most_states)
    if task is None:
        return None
    search = first = task.search(start)
    try:
        search = after_a_sample(first.task, first, start, until)
        if search is not first:  # so the start was not that good
            search.task, briefly = replace(search.task, most_work=MOST_WORK), False
        for moves in (task.route.first_moves, task.route.moves) if until is not None else ():
            search.run(moves, until)
        if until is not None and until(search):
            return task.result(search, FLIPS, interrupted=False)
    except KeyboardInterrupt:
        return task.result(search, FLIPS, interrupted=True)
    fit = task.learned(search)
    return None if briefly and not fit.converged and "interrupted" not in fit.diagnostics else fit


def fit_with_own_rates(table: Varying, settings: Settings, start: Start, until: Until | None = None) -> Fit | None:
    """The same with misses and false alarms of every sensor, from a start that has them; Ctrl-C goes on to the caller.

    Such rows have many hidden states. Where these are not asked for, only few of them are worth the time.
    """
    shape, asked = PER_SENSOR.shape(table.data.n_sensors, lowest_rate(table.data)), settings.noise == PER_SENSOR.name
    most_work, most_states = (MOST_WORK, np.inf) if asked else (NOISE_WORK, OWN_STATES)
    task = row_task(table, settings, start, shape, QUICK, most_work, most_states)
    if task is None:
        return None
    search = task.search(start, shape)
    search = after_a_sample(search.task, search, start, until)
    search.run(until=until)
    return task.result(search, PER_SENSOR, interrupted=False)


@dataclass(frozen=True, slots=True, eq=False)
class PartFit:
    """What a search found among some sensors of a larger table."""

    sources: Sets  # (n_sources,), bit sets
    rate: Vector  # (n_sources,), -log(1 - probability)
    error: Vector  # (n_sources,), of the rates
    noise: Vector  # (n_unknown,)


def fit_part(table: Varying, settings: Settings, start: Start, cost: Vector, most_work: float) -> PartFit | None:
    """The best sources near ``start`` for so much work, at what they cost in the larger table; None as above."""
    start = replace(start, noise=np.maximum(start.noise, LEAST_FLIPS))
    task = row_task(table, settings, start, first_shape(table, settings), QUICK, most_work, cost=cost)
    if task is None:
        return None
    search = task.search(start)
    search = after_a_sample(search.task, search, start, None)
    fit = search.run().fit
    surface: Any = search.surface
    errors = standard_errors(surface, fit).probability
    return PartFit(fit.point.sources, fit.point.rate, errors * np.exp(fit.point.rate), fit.point.noise)


def after_a_sample(task: SearchTask, search: SourceSearch, start: Start, until: Until | None) -> SourceSearch:
    """The search at its start or, if that is better, where a search on every fourth row ends."""
    here: Any = search.best.fit.point
    whole: RowSurface = task.scale.surface
    if here.states.starts[-1] < MANY_STATES:
        return search
    sample = RowSurface(whole.cells.thinned(FIRST_ROWS), whole.noise, whole.limits)
    first = replace(task, scale=replace(task.scale, surface=sample), most_work=FIRST_WORK * task.most_work)
    found = SourceSearch(first, start).run(until=until).fit
    there = Start(found.point.sources, found.point.rate, found.free, found.point.noise, start.n_known)
    other = SourceSearch(task, there)
    whole.work += sample.work
    return other if task.scale.advantage(other.best, search.best) > 0 else search


def first_shape(table: Varying, settings: Settings) -> NoiseShape:
    """The noise as it is known, or one flip rate."""
    n_sensors, lowest = table.data.n_sensors, lowest_rate(table.data)
    if isinstance(settings.noise, Noise):
        return NoiseShape.known(settings.noise.of_sensors(table.places).at_least(lowest), n_sensors)
    return NoiseShape.shared_flips(n_sensors, lowest)


def _are_too_many(cells: StateCells, start: Start, shape: NoiseShape, limits: Limits, most_states: float) -> bool:
    """Whether a part of the rows shows already that all of them have far too many states."""
    if cells.weights.size < PROBED**2:
        return False
    few = cells.without(np.arange(cells.weights.size) % PROBED != 0)
    most = int(FAR_TOO_MANY * min(most_states, limits.most_in_all) / PROBED)
    states = RowSurface(few, shape, limits._replace(most_in_all=most)).at(start.sources, start.rate, start.noise).states
    return bool(states.starts[-1] > most)


def row_task(
    table: Varying,
    settings: Settings,
    start: Start,
    shape: NoiseShape,
    limits: Limits,
    most_work: float = MOST_WORK,
    most_states: float = np.inf,
    cost: Vector | None = None,
) -> WholeTask | None:
    """A task on all rows but a few that have too many states; None if they are not few, or all have too many."""
    every = StateCells.of(table.data.counts())
    if _are_too_many(every, start, shape, limits, most_states):
        return None
    states = RowSurface(every, shape, limits).at(start.sources, start.rate, start.noise).states
    cells = every.without(states.cut)
    if not states.chance.all() or cells.n_samples < (1 - MOST_CUT) * every.n_samples:
        return None
    if states.starts[-1] > most_states:
        return None

    surface = partial(RowSurface, cells, limits=limits)

    def last_surface(shape: NoiseShape, point: Any) -> RowSurface:
        """With longer lists and all rows where there is room for them, else that of the search."""
        longer = RowSurface(every, shape, CAREFUL)
        there = longer.at(point.sources, point.rate, point.noise)
        return longer if np.isfinite(there.log_likelihood) else surface(shape)

    pool = from_rows(cells.rows.patterns.view(np.int64), cells.weights, cells.n_sensors)
    first, noise_work = (add_several, drop), min(most_work, NOISE_WORK)
    route = Route(
        surface(shape), surface, BY_GAIN, first, pool, BETTER, False, most_work, noise_work, last_surface, cost
    )
    return WholeTask(table, settings, route)


MOST_ROWS = 1000  # distinct rows that are candidates themselves
FREQUENT_ROWS = 250  # rows whose intersections are looked at
MOST_SHARED = 1000  # intersections that are candidates


def from_rows(patterns: Sets, weights: Vector, n_sensors: int) -> Sets:
    """The most frequent rows, what two of them share, and single sensors.

    >>> from_rows(np.array([0, 3, 6]), np.array([5.0, 2.0, 1.0]), 3).tolist()
    [1, 2, 3, 4, 6]
    """
    frequent = patterns[np.argsort(-weights, kind="stable")]
    frequent = frequent[frequent != 0]
    return np.unique(np.concatenate([frequent[:MOST_ROWS], _shared(frequent[:FREQUENT_ROWS]), single(n_sensors)]))


def _shared(rows: Sets) -> Sets:
    """The intersections of pairs of rows that come up most often."""
    both = (rows[:, None] & rows)[np.triu_indices(rows.size, 1)]
    shared, times = np.unique(both[both != 0], return_counts=True)
    return shared[np.argsort(-times, kind="stable")[:MOST_SHARED]]
