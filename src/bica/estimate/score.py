"""What a set of sources is worth: the best rates for the rows, their evidence, and what the sources must gain.

``refit`` climbs to the best rates and noise by Fisher scoring, with expectation-maximisation where that fails. The
score is the log-likelihood there minus the cost of the sources. Half a log of the rows for every rate is the cost in
large tables; it is too high for sources that overlap much or are hidden by much noise, since the rows say little about
their rates, so less must be paid for knowing them: that is the correction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, xlogy

from bica.estimate.lattice import Pace, Point, Surface, Vector

NARROW = 3  # sensors of a narrow source, which gets a discount
NARROW_SHARE = 0.3  # of the log of the number of sets that a narrow source pays, found on simulated networks
LARGEST_DISCOUNT = 4.0  # nats
LEAST_ROWS = 2.0  # so that the log of the rows is positive


def cost_by_size(n_sensors: int, n_samples: float, largest: int) -> NDArray[np.float64]:
    """The cost of a source of 0, 1, ... ``largest`` sensors.

    A source pays half a log of the rows for its rate. By chance alone, some set of its size gains the log of the number
    of such sets. A wide source pays that in full: the usual mistake is a spurious source that explains a few crowded
    rows, and a true one gains far more. There are fewer sets of more than half of the sensors, but rows in which nearly
    all are on come about too easily, so these sets cost no less. A source of up to three sensors pays the share that
    did best on simulated networks of ten sensors, where a missed source counts as much as a spurious one. Among
    thousands of sensors no share is enough, so the discount is limited.
    """
    size = np.arange(largest + 1)
    chosen = np.minimum(size, n_sensors // 2)
    choices = gammaln(n_sensors + 1) - gammaln(chosen + 1) - gammaln(n_sensors - chosen + 1)
    share = np.minimum(1.0, NARROW_SHARE * (1 + np.maximum(0, size - NARROW)))
    discount = np.minimum((1 - share) * choices, LARGEST_DISCOUNT)
    cost: NDArray[np.float64] = 0.5 * math.log(max(n_samples, LEAST_ROWS)) + choices - discount
    return cost


TYPICAL_RATE = 0.3  # the median of a half-Cauchy prior on source rates, whose long tail forbids none
SOURCE_ODDS = 0.4  # of one more source, before any row is observed


def evidence_correction(
    information: NDArray[np.float64], rate: NDArray[np.float64], n_samples: float, *, given_prior: bool = False
) -> float:
    """By how much the log evidence exceeds the log-likelihood minus half a log of the rows for every rate.

    ``information`` is that of the rates; the prior adds its own, so no rate is less certain than before. If the user
    gave a prior, which is counted elsewhere, the log density of the usual prior is left out.

    >>> evidence_correction(np.diag([1000.0]), np.array([0.1]), 1000) > 0  # as precise as a thousand rows allow
    True
    """
    n_rates = len(rate)
    log_determinant = float(np.linalg.slogdet(information + np.eye(n_rates) / TYPICAL_RATE**2)[1])
    log_volume = 0.5 * (n_rates * math.log(2 * math.pi * max(n_samples, LEAST_ROWS)) - log_determinant)
    return log_volume + (0.0 if given_prior else log_prior(rate))


def log_prior(rate: NDArray[np.float64]) -> float:
    """The prior log density of these rates and of their number.

    >>> log_prior(np.array([0.1])) > log_prior(np.array([1.0]))
    True
    """
    highest = math.log(2 * SOURCE_ODDS / (math.pi * TYPICAL_RATE))
    return float((highest - np.log1p((rate / TYPICAL_RATE) ** 2)).sum())


ALMOST_SURE = 1.0 - 1e-7


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


@dataclass(frozen=True, slots=True)
class BetaPrior:
    """A Beta distribution for every free probability: as if alpha - 1 rows on and beta - 1 off had been seen before."""

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
    point, objective, information = start, climb.objective(start), np.empty((0, 0))
    for number in range(pace.most_steps):
        slope, information = climb.ground(point, information if number % pace.fresh else None)
        step = climb.bounded_step(point, slope, information)
        promised = float(slope @ step)  # twice what a quadratic hill would still give
        if promised < pace.tolerance or objective + promised < needed:
            break
        better = climb.uphill(point, slope, step)
        if better is None:
            information = climb.information(point)
            better = climb.slowly_uphill(point, slope, information)
        point, gained = better, climb.objective(better) - objective
        objective += gained
        if gained < 0.1 * pace.tolerance:
            break
    point, free = climb.without_dead(point, n_known)  # not before: a long step may send a source to 0 for a while
    climb = _Climb(surface, free, prior, pace.tries)
    if exact or len(information) != point.rate.size + point.noise.size:
        information = climb.information(point)
    return Refit(point, free, climb.objective(point), information)


@dataclass(frozen=True, slots=True, eq=False)
class _Climb:
    """The hill of likelihood and prior, and the ways up it."""

    surface: Surface
    free: NDArray[np.bool_]
    prior: BetaPrior
    tries: int

    def objective(self, point: Point) -> float:
        pull = self.surface.noise.pull * float(np.log1p(-point.noise).sum())
        return point.log_likelihood + pull + self.prior.log_density(point.rate[self.free])

    def ground(
        self, point: Point, information: NDArray[np.float64] | None = None
    ) -> tuple[Vector, NDArray[np.float64]]:
        """The slope by rates, then by unknown noise, and their information, unless that of a recent step will do."""
        derivatives = self.surface.derivatives(point) if information is None else None
        slope = self.surface.gradient(point)
        slope[np.flatnonzero(self.free)] += self.prior.slope(point.rate[self.free])
        slope[point.rate.size :] -= self.surface.noise.pull / (1.0 - point.noise)
        return slope, self.information(point, derivatives) if information is None else information

    def information(self, point: Point, derivatives: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The empirical Fisher information of rates, then unknown noise."""
        derivatives = self.surface.derivatives(point) if derivatives is None else derivatives
        information = (derivatives * self.surface.cells.weights) @ derivatives.T
        places = np.flatnonzero(self.free)
        information[places, places] += self.prior.curvature(point.rate[self.free])
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
            part = information[np.ix_(moving, moving)]
            ridge = 1e-10 * np.trace(part) / len(part) + 1e-12
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
            step = 0.4 * step
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


SURPRISE = 1.0  # nats by which one move may change the correction


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A set of sources with its best rates, and its score."""

    fit: Refit
    score: float  # log-likelihood plus log prior minus the cost of the sources, corrected
    correction: float

    @property
    def visit(self) -> tuple[float, float]:
        """What a search remembers of it: the score, and the mean of the unknown noise rates."""
        noise = self.fit.point.noise
        return self.score, float(np.mean(noise)) if noise.size else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """What sets of sources are compared by: a likelihood, a prior, and what a source of 0, 1, ... sensors must gain."""

    surface: Any
    cost: Vector
    prior: BetaPrior = NO_PRIOR

    def cost_of(self, sources: NDArray[np.int64]) -> Vector:
        """What each source, a bit set, must gain."""
        costs: Vector = self.cost[np.bitwise_count(sources.view(np.uint64))]
        return costs

    def plain_score(self, point: Any, free: NDArray[np.bool_], n_known: int) -> float:
        """The score before the correction, at these rates."""
        pull = self.surface.noise.pull * float(np.log1p(-point.noise).sum())
        height = point.log_likelihood + pull + self.prior.log_density(point.rate[free])
        return float(height - self.cost_of(point.sources[n_known:]).sum())

    def best(
        self, start: Any, free: NDArray[np.bool_], n_known: int, *, exact: bool = False, above: Found | None = None
    ) -> Found:
        """The sources of ``start`` with their best rates; given up early where these cannot score ``above`` another."""
        needed = -np.inf
        if above is not None:
            cost = float(self.cost_of(start.sources[n_known:]).sum())
            needed = above.score + cost - above.correction - SURPRISE
        fit = refit(self.surface, start, free, self.prior, n_known=n_known, needed=needed, exact=exact)
        rates = np.flatnonzero(fit.free)
        correction = evidence_correction(
            fit.information[np.ix_(rates, rates)],
            fit.point.rate[rates],
            self.surface.cells.n_samples + self.prior.n_rows,
            given_prior=bool(self.prior.n_rows),
        )
        return Found(fit, self.plain_score(fit.point, fit.free, n_known) + correction, correction)
