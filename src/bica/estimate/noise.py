"""Which noise the sensors have: one flip rate, misses and false alarms apart, or both for every sensor.

One flip rate comes first. Where sensors err in other ways, it is refuted only after a fashion: rows that lack a sensor
become sources of their own, which contain each other like splinters. So every other kind of noise starts from the
sources that no other source contains, and the evidence decides. All unknown rates pay for themselves there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit

from bica.estimate.lattice import NoiseShape, lowest_rate
from bica.estimate.score import AT_BOUND, TYPICAL_RATE
from bica.estimate.search import SourceSearch, Start, drop
from bica.estimate.settings import Varying

Sets = NDArray[np.int64]
Vector = NDArray[np.float64]

MOST_FALSE_ALARMS, MOST_MISSES = 0.4, 0.55  # where both are estimated: together below 1, or on and off change roles
PULL = 1.0  # rows without an error that every such rate starts from: it decides only where the rows say nothing
TYPICAL_ERROR = 0.05  # the median of a half-Cauchy prior on rates of noise
FIRST_FALSE_ALARM, FIRST_MISS = 0.02, 0.1  # where the climb starts
LEAST_SENSORS = 3  # that tell misses from rare sources
PROMISING = 0.3  # of half a log of the rows per rate: without a reason for more rates, the slope promises a tenth
RIDGE = 1e-6  # of the information, relative to its mean: rates that nothing tells apart promise nothing
CONVINCING = 3.0  # nats, or twenty to one: more unknowns must be that much better
LEVEL = 0.01  # nats: searches that differ by less ended at the same sources, the first of them is taken
FAR = 50.0  # nats: a lead that no further move with one flip rate makes up for
SPLINTERS = 0.4  # of the sources: less one sensor than another
HOPELESS = 20.0  # nats: another kind of noise that starts this far behind is left alone


@dataclass(frozen=True, slots=True)
class NoiseKind:
    """A kind of noise, by the name that users give it."""

    name: str
    shape: Callable[[int, float], NoiseShape]


def two_rates(n_sensors: int, lowest: float) -> NoiseShape:
    """A false-alarm rate and a miss rate for all sensors."""
    zeros, ones = np.zeros(n_sensors), np.ones((n_sensors, 1))
    highest = np.array([MOST_FALSE_ALARMS, MOST_MISSES])
    return NoiseShape(zeros, zeros, ones * [1, 0], ones * [0, 1], highest, lowest, PULL)


def own_rates(n_sensors: int, lowest: float) -> NoiseShape:
    """A false-alarm rate for every sensor, then a miss rate for every sensor."""
    zeros, each, none = np.zeros(n_sensors), np.eye(n_sensors), np.zeros((n_sensors, n_sensors))
    highest = np.repeat([MOST_FALSE_ALARMS, MOST_MISSES], n_sensors)
    return NoiseShape(zeros, zeros, np.hstack([each, none]), np.hstack([none, each]), highest, lowest, PULL, 2)


FLIPS = NoiseKind("estimate", NoiseShape.shared_flips)
TWO_RATES = NoiseKind("two-rates", two_rates)
PER_SENSOR = NoiseKind("per-sensor", own_rates)
KINDS = (FLIPS, TWO_RATES, PER_SENSOR)


class NoiseTask(Protocol):
    """What choosing a kind of noise needs of a task (``whole.py``)."""

    @property
    def table(self) -> Varying:
        """The table, with the sensors that vary."""

    @property
    def route(self) -> Any:
        """The likelihood, and moves that soon show whether another kind of noise is worth a search."""

    def search(
        self, start: Start | None = None, shape: NoiseShape | None = None, *, another: bool = False
    ) -> SourceSearch:
        """A search from the known sources or as told, with the first noise or with ``another`` kind."""


class Rival(Protocol):
    """An answer of another kind, from which a search in doubt may start again, and to which it may lose."""

    def start(self, shape: NoiseShape) -> Start:
        """The sources with sure edges that are nearest to it."""

    def is_dearer(self, search: SourceSearch) -> bool:
        """Whether the sources found so far cost so much that even a perfect fit of the rows would not catch up."""

    def is_within_reach(self, search: SourceSearch) -> bool:
        """Whether the search, after its first moves, may still catch up with it."""


def with_best_noise(
    task: NoiseTask, search: SourceSearch, asked: str, rival: Rival | None = None
) -> tuple[SourceSearch, NoiseKind]:
    """Run the search, with the kind of noise that was asked for or with the one that the rows speak for.

    A search that splinters, or one flip rate that is not enough, tell of edges that fail, or of sources that contain
    each other. Then the search starts again from the ``rival``, which knows such edges, and stops where it is behind.
    """
    if asked == FLIPS.name or task.table.data.n_sensors < LEAST_SENSORS:
        search.run(task.route.first_moves)
        search.run()
        return search, FLIPS
    for moves in (task.route.first_moves, task.route.moves):
        if has_splinters(search):  # there may be hundreds, and each move with them is slow
            if rival is not None:
                return _against(rival, task, asked, search)
            other, kind = _best_of_kinds(task, search, asked)
            if log_evidence(other) > log_evidence(search) + FAR:
                return other, kind
        search.run(moves)
    found, kind = _best_of_kinds(task, search, asked)
    if rival is not None and looks_lossy(found.best.fit.point.sources, kind):
        return _against(rival, task, asked, found, kind)
    return found, kind


def _against(
    rival: Rival, task: NoiseTask, asked: str, search: SourceSearch, finished: NoiseKind | None = None
) -> tuple[SourceSearch, NoiseKind]:
    """The best search after new ones with every kind of noise, which begin with the sources nearest to the rival.

    The first search is with one flip rate and goes on as well, unless it is ``finished``.
    """
    searches = [(search, finished or FLIPS)]
    kinds = [kind for kind in KINDS if kind is FLIPS or asked in ("auto", kind.name)]
    n_sensors, lowest = task.table.data.n_sensors, lowest_rate(task.table.data)
    shapes = {kind.name: kind.shape(n_sensors, lowest) for kind in kinds}
    searches += [(task.search(rival.start(shapes[kind.name]), shapes[kind.name]), kind) for kind in kinds]
    for each, _ in searches[1 if finished else 0 :]:
        _first_moves(task, each, rival)
    if finished is None and any(rival.is_within_reach(each) for each, _ in searches):
        for kind in kinds[1:]:
            shape = shapes[kind.name]
            searches.append((task.search(without_splinters(search, shape), shape, another=True), kind))
            _first_moves(task, searches[-1][0], rival)
    top = max(log_evidence(each) for each, _ in searches)
    for each, _ in searches[1 if finished else 0 :]:
        if rival.is_within_reach(each) and log_evidence(each) > top - FAR:
            each.run()
            top = max(top, log_evidence(each))
    allowed = [pair for pair in searches if asked in ("auto", pair[1].name)]
    merits = [log_evidence(each) - CONVINCING * KINDS.index(kind) for each, kind in allowed]
    return next(pair for pair, merit in zip(allowed, merits, strict=True) if merit > max(merits) - LEVEL)


def _first_moves(task: NoiseTask, search: SourceSearch, rival: Rival) -> None:
    """Drop what is not needed and add what pays, while the sources may still be worth what they cost."""
    for moves in ((drop,), task.route.first_moves):
        search.run(moves, until=rival.is_dearer)


def _best_of_kinds(task: NoiseTask, search: SourceSearch, asked: str) -> tuple[SourceSearch, NoiseKind]:
    """From a search with one flip rate on: the other kinds of noise, and whichever has the best evidence."""
    n_sensors, lowest = task.table.data.n_sensors, lowest_rate(task.table.data)
    others = [(kind, kind.shape(n_sensors, lowest)) for kind in (TWO_RATES, PER_SENSOR) if asked in ("auto", kind.name)]
    chosen, evidence = FLIPS, log_evidence(search)
    for kind, shape in others:
        if asked != kind.name and not _is_worth_a_try(task, search, shape):
            continue
        tried = task.search(without_splinters(search, shape), shape, another=True)
        tried.run(task.route.first_moves)
        if asked == kind.name or log_evidence(tried) > evidence - HOPELESS:
            tried.run()
        if asked == kind.name or log_evidence(tried) > evidence + CONVINCING:
            search, chosen, evidence = tried, kind, log_evidence(tried)
    return search, chosen


def _is_worth_a_try(task: NoiseTask, search: SourceSearch, shape: NoiseShape) -> bool:
    """Whether sources look like splinters, or the slope promises much where one flip rate becomes several rates."""
    if has_splinters(search):
        return True
    n_more = shape.n_unknown - search.surface.noise.n_unknown
    return promised(search, task.route.surface(shape)) > float(
        PROMISING * 0.5 * n_more * math.log(task.table.data.n_samples)
    )


def drowns_in_splinters(search: SourceSearch) -> bool:
    """Whether there are more sources than sensors, most of them contained in others."""
    return search.n_sources > search.surface.cells.n_sensors and has_splinters(search)


def has_splinters(search: SourceSearch) -> bool:
    """Whether most sources are contained in others."""
    sources = search.best.fit.point.sources
    return bool(2 * largest(sources).sum() < sources.size)


def looks_lossy(sources: Sets, kind: NoiseKind) -> bool:
    """Whether one flip rate is not enough, or many sources are others less one sensor.

    That is what lossy edges look like to sure ones: half and more of all sources then. Of ten sure sources behind ten
    sensors, three are such at most.

    >>> looks_lossy(np.array([7, 3, 6]), FLIPS), looks_lossy(np.array([3, 6]), FLIPS)
    (True, False)
    """
    sizes = np.bitwise_count(sources.view(np.uint64))
    inside = sources[:, None] & sources == sources
    less_one = inside & (sizes >= 2) & (sizes[:, None] == sizes + 1)
    return kind is not FLIPS or bool(less_one.any(axis=0).sum() >= SPLINTERS * sources.size > 0)


def promised(search: SourceSearch, surface: Any) -> float:
    """What the log-likelihood would gain by more unknown rates with the same sources: half of Rao's score statistic."""
    point = search.best.fit.point
    false_alarm, miss = (rates.mean() for rates in search.surface.noise.rates(point.noise))
    noise = np.repeat([false_alarm, miss], surface.noise.n_unknown // 2)
    here = surface.at(point.sources, point.rate, noise)
    derivatives, weights = surface.derivatives(here), surface.cells.weights
    slope = derivatives @ weights
    moving = (slope > 0) | (np.append(point.rate, noise) > surface.noise.lowest + AT_BOUND)
    slope, derivatives = slope[moving], derivatives[moving]
    information = (derivatives * weights) @ derivatives.T
    ridge = RIDGE * np.trace(information) / slope.size
    return 0.5 * float(slope @ np.linalg.solve(information + ridge * np.eye(slope.size), slope))


def without_splinters(search: SourceSearch, shape: NoiseShape) -> Start:
    """The known sources and those that no other source contains, with false alarms and misses to begin with.

    Sources of a single sensor are left out where false alarms at a rate of their own explain the same.
    """
    fit, n_known = search.best.fit, search.n_known
    kept = largest(fit.point.sources)
    kept &= np.bitwise_count(fit.point.sources.view(np.uint64)) >= shape.least_sensors
    kept |= fit.point.probability > MOST_FALSE_ALARMS
    kept[:n_known] = True
    noise = np.repeat([FIRST_FALSE_ALARM, FIRST_MISS], shape.n_unknown // 2)
    return Start(fit.point.sources[kept], fit.point.rate[kept], fit.free[kept], noise, n_known)


def largest(sources: Sets) -> NDArray[np.bool_]:
    """Which sets are not contained in another one.

    >>> largest(np.array([3, 1, 6])).tolist()
    [True, False, True]
    """
    inside = (sources[:, None] & sources == sources[:, None]) & (sources[:, None] != sources)
    outermost: NDArray[np.bool_] = ~inside.any(axis=1)
    return outermost


def log_evidence(search: SourceSearch) -> float:
    """The score of the best found with the unknown rates of the noise integrated out as well.

    Laplace's approximation; along a rate at its lower bound, the likelihood falls exponentially instead.
    """
    fit, surface = search.best.fit, search.task.scale.surface
    n_sources, noise = fit.point.rate.size, fit.point.noise
    at_bound = noise <= surface.noise.lowest + AT_BOUND
    rates, inside = np.flatnonzero(fit.free), n_sources + np.flatnonzero(~at_bound)
    both, typical = np.append(rates, inside), np.repeat([TYPICAL_RATE, TYPICAL_ERROR], [rates.size, inside.size])
    precise = fit.information[np.ix_(both, both)] + np.diag(typical**-2.0)
    joint, alone = (float(np.linalg.slogdet(part)[1]) for part in (precise, precise[: rates.size, : rates.size]))
    volume = 0.5 * (inside.size * math.log(2 * math.pi) - joint + alone)
    fall = np.maximum(-surface.gradient(fit.point)[n_sources:][at_bound], 1.0 / TYPICAL_ERROR)
    density = math.log(2 / (math.pi * TYPICAL_ERROR)) - np.log1p((noise / TYPICAL_ERROR) ** 2)
    return search.best.score + volume + float(density.sum() - np.log(fall).sum())


LEAST_LOG_ODDS = -20.0  # of a flip rate: far below what any table can show
CURVATURE_STEP = 1e-3  # in the log odds, for a second difference


def rate_of_noise_alone(ones: Vector, observed: Vector) -> tuple[float, float]:
    """The flip rate of sensors that show noise and nothing else, given that each of them varies; and its error.

    Sensors that never change are left out of a table. Of few rows, the others are then a selection: a sensor shows both
    values in T rows with probability 1 - (1 - q)^T - q^T only, by which its likelihood is divided. With ten rows and
    q = 0.1, the plain share of ones in the sensors that vary is half as much again.

    >>> rows = np.random.default_rng(0).random((10, 5000)) < 0.1
    >>> ones = rows.sum(axis=0)[rows.any(axis=0)].astype(float)
    >>> rate, error = rate_of_noise_alone(ones, np.full(ones.size, 10.0))
    >>> round(float(ones.mean() / 10), 3), abs(rate - 0.1) < 3 * error
    (0.154, True)
    """

    def cost(log_odds: float) -> float:
        q = expit(log_odds)
        varies = -np.expm1(observed * np.log1p(-q)) - q**observed
        shown = ones.sum() * np.log(q) + (observed - ones).sum() * np.log1p(-q)
        return float(np.log(varies).sum() - shown)

    best = float(minimize_scalar(cost, bounds=(LEAST_LOG_ODDS, 0.0), method="bounded").x)
    above, below = cost(best + CURVATURE_STEP), cost(best - CURVATURE_STEP)
    curvature = (above - 2 * cost(best) + below) / CURVATURE_STEP**2
    rate = float(expit(best))
    return rate, rate * (1 - rate) / math.sqrt(curvature) if curvature > 0 else math.nan
