"""The exact likelihood as a surface: its height, slope and curvature anywhere, and the climb to its top.

``refit`` climbs to the best rates and noise by Fisher scoring, with expectation-maximisation where that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlogy

from bica.data.observations import Observations
from bica.data.patterns import PatternCounts
from bica.kernels.lattice.likelihood import (
    CellGroups,
    best_additions,
    candidate_gradient,
    mix_sources,
    noise_derivatives,
    read_cells,
    source_derivatives,
    spread_cells,
)
from bica.kernels.lattice.subsets import apply_channel_transposed, apply_matrices, channel_matrices
from bica.model.noise import Noise

Sets = NDArray[np.int64]  # bit sets of up to 64 sensors
Flags = NDArray[np.bool_]
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

LATTICE_SENSORS = 20  # that vary: a table over all their sets takes 8 MB


class Pace(NamedTuple):
    """How a refit climbs."""

    tolerance: float = 1e-3  # nats: a step that promises less is the last
    most_steps: int = 100
    tries: int = 14  # ever shorter steps in one direction; few where a likelihood is only nearly smooth


@dataclass(frozen=True, slots=True)
class Cells:
    """The observed rows as cells of the lattice with their weights, grouped by the sensors that were not observed."""

    unobserved: Sets  # (n_groups,), bit sets
    starts: Sets  # (n_groups + 1,), where each group's cells begin
    cells: Sets  # (n_cells,), patterns as bit sets, 0 where unobserved
    weights: Vector  # (n_cells,)
    n_sensors: int
    n_samples: float  # the total weight of all rows

    @classmethod
    def of(cls, data: PatternCounts) -> Cells:
        """The cells of a table of up to 20 sensors."""
        patterns, unobserved = data.patterns[:, 0].astype(np.int64), np.zeros(len(data.patterns), np.int64)
        if data.observed is not None:
            unobserved = (2**data.n_sensors - 1) ^ data.observed[:, 0].astype(np.int64)
        order = np.lexsort((patterns, unobserved))
        gaps, starts = np.unique(unobserved[order], return_index=True)
        weights = data.weights[order]
        return cls(gaps, np.append(starts, order.size), patterns[order], weights, data.n_sensors, float(weights.sum()))

    def times_observed(self) -> Vector:
        """The weight of the rows in which each sensor was observed: (n_sensors,)."""
        gaps = np.repeat(self.unobserved, np.diff(self.starts))
        observed: Vector = self.weights @ ((gaps[:, None] >> np.arange(self.n_sensors)) & 1 == 0)
        return observed

    def ones_share(self) -> Vector:
        """How often each sensor is on, among the rows in which it was observed: (n_sensors,)."""
        ones: Vector = self.weights @ ((self.cells[:, None] >> np.arange(self.n_sensors)) & 1)
        return ones / np.maximum(self.times_observed(), 1.0)

    def read(self, table: Vector) -> Vector:
        """The value of every cell in a table over the lattice, unobserved sensors summed out."""
        values = np.empty(self.cells.size)
        read_cells(table, self.unobserved, self.starts, self.cells, values)
        return values

    def spread(self, values: Vector) -> Vector:
        """A table over the lattice from values of the cells: the transpose of ``read``."""
        table = np.empty(2**self.n_sensors)
        spread_cells(values, self.unobserved, self.starts, self.cells, table)
        return table


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One set of sources with rates and noise, and the likelihood there."""

    sources: Sets  # (n_sources,), bit sets
    rate: Vector  # (n_sources,), -log(1 - probability)
    probability: Vector  # (n_sources,), that each source is on
    noise: Vector  # (n_unknown,), the unknown noise rates
    log_likelihood: float
    hidden: Vector  # (2^n_sensors,), probability of every set of sensors being switched on by the sources
    shown: Vector  # (2^n_sensors,), probability of every pattern that noisy sensors show
    cell_probability: Vector  # (n_cells,), of what was observed
    slopes: list[Matrix]  # empty, or the derivatives once they were asked for


SMALL_SETS, FEW, FEWER = 5, 10, 5  # candidates looked at closely: 10 of each size up to 5 sensors, 5 of each above


LOOKING = 0.3  # nanoseconds per cell of the lattice for one candidate


class Surface:
    """The log-likelihood of counted rows over all OR mixtures of up to 20 sensors."""

    pace: ClassVar[Pace] = Pace()
    last_pace: ClassVar[Pace] = Pace(tolerance=1e-9)  # of the refit whose numbers are reported

    def __init__(self, cells: Cells, noise: NoiseShape, forbidden: Sets | None = None) -> None:
        self.cells = cells
        self.noise = noise
        self.forbidden = np.empty(0, np.int64) if forbidden is None else forbidden  # sets that no source may contain
        self.work = 0.0  # cells visited so far, about a nanosecond each; few sensors never take too long

    def at(self, sources: Sets, rate: Vector, noise: Vector) -> Point:
        """The point with its likelihood: n + m passes over the lattice for n sources and m sensors."""
        hidden, probability = np.empty(2**self.cells.n_sensors), -np.expm1(-rate)
        self.work += (sources.size + self.cells.n_sensors) * hidden.size
        mix_sources(sources, probability, hidden)
        shown = hidden.copy()
        apply_matrices(shown, self.noise.matrices(noise))
        observed = self.cells.read(shown)
        with np.errstate(divide="ignore"):
            log_likelihood = float(self.cells.weights @ np.log(observed))
        return Point(sources, rate, probability, noise, log_likelihood, hidden, shown, observed, [])

    def _by_shown(self, point: Point) -> Vector:
        return self.cells.spread(self.cells.weights / point.cell_probability)

    def _by_hidden(self, point: Point, by_shown: Vector) -> Vector:
        by_hidden = by_shown.copy()
        apply_channel_transposed(by_hidden, *self.noise.rates(point.noise))
        return by_hidden

    def candidate_gradient(self, point: Point) -> Vector:
        """The slope by the rate of every set of sensors, present or not: (2^n_sensors,)."""
        gradient = np.empty_like(point.hidden)
        candidate_gradient(point.hidden, self._by_hidden(point, self._by_shown(point)), gradient)
        return gradient

    def steepest(self, point: Point) -> Sets:
        """Sets whose rate should grow, the steepest of every size: large sets are steep but soon gain nothing more."""
        slope = self.candidate_gradient(point)
        slope[point.sources] = -np.inf
        chosen = [np.empty(0, np.int64)]
        for size, sets in enumerate(self._allowed_by_size, start=1):
            how_many = FEW if size <= SMALL_SETS else FEWER
            if sets.size > how_many:
                sets = np.sort(sets[np.argpartition(-slope[sets], how_many - 1)[:how_many]])
            chosen.append(sets[slope[sets] > 0])
        return np.concatenate(chosen)

    def allows(self, source: int) -> bool:
        """Whether this set may be a source."""
        return source != 0 and bool((source & self.forbidden != self.forbidden).all())

    @cached_property
    def _allowed_by_size(self) -> list[Sets]:
        """The sets of 1, 2, ... sensors that may be sources."""
        sets = np.arange(1, 2**self.cells.n_sensors)
        for together in self.forbidden:
            sets = sets[sets & together != together]
        size = np.bitwise_count(sets)
        return [sets[size == k] for k in range(1, int(size.max(initial=0)) + 1)]

    def rising(self, point: Point, pool: Sets) -> Sets:
        """Those of the pool that would gain something: without a rising slope there is no gain."""
        return pool[self.candidate_gradient(point)[pool] > 0]

    def gradient(self, point: Point) -> Vector:
        """The slope by the rates of the point's own sources, then by the unknown noise: (n_parameters,)."""
        slope: Vector = self.derivatives(point) @ self.cells.weights
        return slope

    def derivatives(self, point: Point) -> Matrix:
        """Derivatives of each cell's log probability, by rates, then by unknown noise: (n_parameters, n_cells)."""
        if not point.slopes:
            n_sources, groups, cell = point.sources.size, self._groups(), point.cell_probability
            slopes = np.empty((n_sources + self.noise.n_unknown, cell.size))
            matrices, rates = self.noise.matrices(point.noise), self.noise.rates(point.noise)
            rates_of = self.noise.false_alarm_of, self.noise.miss_of
            source_derivatives(point.shown, point.sources, matrices, groups, cell, slopes[:n_sources])
            noise_derivatives(point.shown, rates, rates_of, groups, slopes[n_sources:])
            point.slopes.append(slopes / cell)
        return point.slopes[0]

    def _groups(self) -> CellGroups:
        return CellGroups(self.cells.unobserved, self.cells.starts, self.cells.cells)

    def additions(self, point: Point, candidates: Sets) -> tuple[Vector, Vector]:
        """By how much each candidate alone would raise the log-likelihood, and its best probability."""
        gain, probability = np.empty(candidates.size), np.empty(candidates.size)
        matrices = self.noise.matrices(point.noise)
        self.work += LOOKING * candidates.size * point.shown.size
        best_additions(
            point.shown,
            matrices,
            candidates,
            self._groups(),
            point.cell_probability,
            self.cells.weights,
            gain,
            probability,
        )
        return gain, probability


ALMOST_SURE = 1.0 - 1e-7  # the highest probability after an expectation-maximisation step: its rate is finite


def em_step(surface: Surface, point: Point, free: NDArray[np.bool_], alpha: float = 1.0, beta: float = 1.0) -> Point:
    """One step: never downhill, keeps zeros at zero. The Beta prior counts as alpha - 1 rows on, beta - 1 off.

    Unknown flip rates move too.
    """
    n_samples = surface.cells.n_samples
    slope = surface.gradient(point)
    activations = point.probability * (n_samples + slope[: point.rate.size]) + alpha - 1.0
    probability = np.clip(activations / (n_samples + alpha + beta - 2.0), 0.0, ALMOST_SURE)
    rate = np.where(free, -np.log1p(-probability), point.rate)
    return surface.at(point.sources, rate, _noise_step(surface, point, slope[point.rate.size :]))


def _noise_step(surface: Surface, point: Point, slope: Vector) -> Vector:
    """The expected share of wrong cells among those that each unknown rate governs.

    For misses and false alarms apart it is a shorter step in the same direction, as if all cells were on, or all off.
    """
    if not point.noise.size:
        return point.noise
    shape = surface.noise
    governed = np.maximum(shape.false_alarm_of, shape.miss_of)
    n_cells = np.maximum(surface.cells.times_observed() @ governed, 1e-300)  # none: the slope is 0
    n_wrong = point.noise * n_cells + point.noise * (1 - point.noise) * slope
    return np.clip(n_wrong / (n_cells + shape.pull), shape.lowest, shape.highest)


HIGHEST_RATE = 14.0  # a probability of 1 - 1e-6: beyond that nothing changes any more
AT_BOUND = 1e-12
ENOUGH = 1e-4  # a step must gain this share of what the slope at its start promises
SHORTER = 0.4  # by which a step that does not is cut
NOTHING_GAINED = 0.1  # of the tolerance: a step that gains less is the last
RIDGE, LEAST_RIDGE = 1e-10, 1e-12  # of the information, relative and absolute, where rates cannot be told apart


@dataclass(frozen=True, slots=True, eq=False)
class Refit:
    """The top of the hill for given sources, and its curvature there."""

    point: Point
    free: NDArray[np.bool_]  # (n_sources,), whose rate was estimated
    objective: float  # log-likelihood plus log prior
    information: NDArray[np.float64]  # (n_parameters, n_parameters), rates, then unknown noise


def refit(
    surface: Surface,
    start: Point,
    free: NDArray[np.bool_],
    prior: BetaPrior,
    *,
    n_known: int = 0,
    needed: float = -np.inf,
    exact: bool = False,
    pace: Pace | None = None,
) -> Refit:
    """Climb from ``start`` until a step promises too little; free sources whose rate ends at 0 leave.

    The first ``n_known`` sources stay even then. A climb that cannot reach the height ``needed`` is given up early.
    The information belongs to a recent step, with ``exact`` to the top itself. The surface knows its own pace.
    """
    pace = pace or surface.pace
    climb = _Climb(surface, free, prior, pace.tries)
    point, objective, information, here = start, climb.objective(start), np.empty((0, 0)), start
    for _ in range(pace.most_steps):
        (slope, information), here = climb.ground(point), point
        step = climb.bounded_step(point, slope, information)
        promised = float(slope @ step)  # twice what a quadratic hill would still give
        if promised < pace.tolerance or objective + promised < needed:
            break
        better = climb.uphill(point, slope, step)
        if better is None:
            better = climb.slowly_uphill(point, slope, information)
        point, gained = better, climb.objective(better) - objective
        objective += gained
        if gained < NOTHING_GAINED * pace.tolerance:
            break
    point, free = climb.without_dead(point, n_known)  # not before: a long step may send a source to 0 for a while
    climb = _Climb(surface, free, prior, pace.tries)
    if (exact and point is not here) or len(information) != point.rate.size + point.noise.size:
        information = climb.information(point)
    return Refit(point, free, climb.objective(point), information)


def height_of(surface: Surface, point: Point, free: Flags, prior: BetaPrior) -> float:
    """The log-likelihood of a point, with what the prior and the pull of the noise add to it."""
    height = point.log_likelihood
    if surface.noise.pull:
        height += surface.noise.pull * float(np.log1p(-point.noise).sum())
    return height + prior.log_density(point.rate[free]) if prior.n_rows else height


@dataclass(frozen=True, slots=True, eq=False)
class _Climb:
    """The hill of likelihood and prior, and the ways up it."""

    surface: Surface
    free: NDArray[np.bool_]
    prior: BetaPrior
    tries: int

    def objective(self, point: Point) -> float:
        return height_of(self.surface, point, self.free, self.prior)

    def ground(self, point: Point) -> tuple[Vector, NDArray[np.float64]]:
        """The slope by rates, then by unknown noise, and their information."""
        slope = self.surface.gradient(point)
        if self.prior.n_rows:
            slope[np.flatnonzero(self.free)] += self.prior.slope(point.rate[self.free])
        if self.surface.noise.pull:
            slope[point.rate.size :] -= self.surface.noise.pull / (1.0 - point.noise)
        return slope, self.information(point)

    def information(self, point: Point) -> NDArray[np.float64]:
        """The empirical Fisher information of rates, then unknown noise."""
        derivatives = self.surface.derivatives(point)
        information = (derivatives * self.surface.cells.weights) @ derivatives.T
        if self.prior.n_rows:
            places = np.flatnonzero(self.free)
            information[places, places] += self.prior.curvature(point.rate[self.free])
        if self.surface.noise.pull:
            unknown = np.arange(point.rate.size, len(information))
            information[unknown, unknown] += self.surface.noise.pull / (1.0 - point.noise) ** 2
        return information

    def bounded_step(self, point: Point, slope: Vector, information: NDArray[np.float64]) -> Vector:
        """The scoring step for parameters that can move; those that press against a bound stay."""
        room_below, room_above = self._room(point)
        moving = np.concatenate([self.free, np.ones(point.noise.size, dtype=bool)])
        step, wanted = np.zeros(slope.size), slope
        while True:
            moving &= np.where(wanted > 0, room_above, room_below) > AT_BOUND
            step[:] = 0.0
            if not moving.any():
                return step
            part = information if moving.all() else information[np.ix_(moving, moving)]
            ridge = RIDGE * np.trace(part) / len(part) + LEAST_RIDGE
            step[moving] = np.linalg.solve(part + ridge * np.eye(len(part)), slope[moving])
            if (np.where(step > 0, room_above, room_below)[moving] > AT_BOUND).all():
                return step
            wanted = step

    def _room(self, point: Point) -> tuple[Vector, Vector]:
        """How far every rate, then every unknown of the noise, may fall and may rise."""
        below = np.concatenate([point.rate, point.noise - self.surface.noise.lowest])
        return below, np.concatenate([HIGHEST_RATE - point.rate, self.surface.noise.highest - point.noise])

    def uphill(self, point: Point, slope: Vector, step: Vector) -> Point | None:
        """The first of ever shorter steps, cut off at the bounds, that gains a little of what its slope promises."""
        objective, n_sources = self.objective(point), point.rate.size
        for _ in range(self.tries):
            rate = np.where(self.free, np.clip(point.rate + step[:n_sources], 0.0, HIGHEST_RATE), point.rate)
            noise = np.clip(point.noise + step[n_sources:], self.surface.noise.lowest, self.surface.noise.highest)
            promised = slope @ np.concatenate([rate - point.rate, noise - point.noise])
            if promised > 0:
                tried = self.surface.at(point.sources, rate, noise)
                if self.objective(tried) >= objective + ENOUGH * promised:
                    return tried
            step = SHORTER * step
        return None

    def slowly_uphill(self, point: Point, slope: Vector, information: NDArray[np.float64]) -> Point:
        """Each parameter goes its own way, which never leads down at a bound as a scoring step may; then EM."""
        step = self.bounded_step(point, slope, np.diag(np.diag(information)))
        better = self.uphill(point, slope, step) or em_step(
            self.surface, point, self.free, self.prior.alpha, self.prior.beta
        )
        return better if self.objective(better) > self.objective(point) else point

    def without_dead(self, point: Point, n_known: int) -> tuple[Point, NDArray[np.bool_]]:
        """Free sources at rate 0 leave, the known ones excepted."""
        alive = ~self.free | (point.rate > 0)
        alive[:n_known] = True
        if alive.all():
            return point, self.free
        return self.surface.at(point.sources[alive], point.rate[alive], point.noise), self.free[alive]


HIGHEST = 0.45  # flip rate: at one half a sensor says nothing
LOWEST_FLIPS = 0.01  # flips in the whole table at the lowest flip rate: too few to change an estimate


def lowest_rate(data: Observations) -> float:
    """The lowest rate of noise: too low to change an estimate, but not 0, since every row must stay possible."""
    return LOWEST_FLIPS / (max(1.0, data.n_samples) * max(1, data.n_sensors))


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """The error rates of all sensors: a known part plus a linear map of a few unknown numbers."""

    false_alarm: Vector  # (n_sensors,), the known part
    miss: Vector  # (n_sensors,), the known part
    false_alarm_of: Matrix  # (n_sensors, n_unknown)
    miss_of: Matrix  # (n_sensors, n_unknown)
    highest: Vector  # (n_unknown,), of every unknown
    lowest: float = 0.0  # of every unknown: never exactly 0, so that every pattern stays possible
    pull: float = 0.0  # rows without an error, beside those of the table
    least_sensors: int = 1  # of a source: one of a single sensor looks like false alarms at a rate of their own

    @classmethod
    def known(cls, noise: Noise, n_sensors: int) -> NoiseShape:
        """Known noise, with nothing to estimate."""
        none = np.zeros((n_sensors, 0))
        return cls(*noise.rates(n_sensors), none, none, np.empty(0))

    @classmethod
    def shared_flips(cls, n_sensors: int, lowest: float) -> NoiseShape:
        """One unknown flip rate for all sensors."""
        zeros, ones = np.zeros(n_sensors), np.ones((n_sensors, 1))
        return cls(zeros, zeros, ones, ones, np.array([HIGHEST]), lowest)

    @property
    def n_unknown(self) -> int:
        """How many numbers are to be estimated."""
        return int(self.false_alarm_of.shape[1])

    def rates(self, unknown: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """False-alarm and miss rates, one value per sensor."""
        return self.false_alarm + self.false_alarm_of @ unknown, self.miss + self.miss_of @ unknown

    def matrices(self, unknown: NDArray[np.float64]) -> NDArray[np.float64]:
        """The channel of every sensor: (n_sensors, 2, 2)."""
        return channel_matrices(*self.rates(unknown))


@dataclass(frozen=True, slots=True)
class BetaPrior:
    """A Beta distribution for every free probability: as if alpha - 1 rows on and beta - 1 off came first."""

    alpha: float = 1.0
    beta: float = 1.0

    @property
    def n_rows(self) -> float:
        """How many rows it counts as."""
        return self.alpha + self.beta - 2.0

    def log_density(self, rate: Vector) -> float:
        """Of these probabilities together; with its constant, so that more sources can be compared with fewer."""
        if not self.n_rows or not rate.size:
            return 0.0
        on = xlogy(self.alpha - 1, -np.expm1(-rate))
        return float((on - (self.beta - 1) * rate - betaln(self.alpha, self.beta)).sum())

    def slope(self, rate: Vector) -> Vector:
        """The derivative by each rate."""
        slope = np.full(rate.size, 1.0 - self.beta)
        if self.alpha > 1:
            slope += (self.alpha - 1) / np.expm1(rate)
        return slope

    def curvature(self, rate: Vector) -> Vector:
        """Minus the second derivative by each rate."""
        if self.alpha == 1:
            return np.zeros(rate.size)
        curvature: Vector = (self.alpha - 1) * np.exp(rate) / np.expm1(rate) ** 2
        return curvature


NO_PRIOR = BetaPrior()
