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

from bica.estimate.lattice import NoiseShape, lowest_rate
from bica.estimate.score import AT_BOUND, TYPICAL_RATE
from bica.estimate.search import SourceSearch, Start
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
FAR = 50.0  # nats: a lead that no further move with one flip rate makes up for
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


def never(_: SourceSearch) -> bool:
    """No search is beaten where there is nothing but searches."""
    return False


def with_best_noise(
    task: NoiseTask, search: SourceSearch, asked: str, is_beaten: Callable[[SourceSearch], bool] = never
) -> tuple[SourceSearch, NoiseKind]:
    """Run the search, with the kind of noise that was asked for or with the one that the rows speak for."""
    only_one = asked == FLIPS.name or task.table.data.n_sensors < LEAST_SENSORS
    for moves in (task.route.first_moves, task.route.moves):
        if not only_one and has_splinters(search):  # there may be hundreds, and each move with them is slow
            other, kind = _best_of_kinds(task, search, asked)
            if log_evidence(other) > log_evidence(search) + FAR or is_beaten(other):
                return other, kind
        search.run(moves)
    return (search, FLIPS) if only_one else _best_of_kinds(task, search, asked)


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


def has_splinters(search: SourceSearch) -> bool:
    """Whether most sources are contained in others."""
    sources = search.best.fit.point.sources
    return bool(2 * largest(sources).sum() < sources.size)


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
