"""The best rates and noise for given sources: Fisher scoring, with expectation-maximisation where it fails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlogy

from bica.estimate.lattice.surface import HIGHEST, Point, Surface, Vector

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
    """The expected share of flipped cells among those that each unknown rate governs."""
    if not point.noise.size:
        return point.noise
    n_cells = np.maximum(surface.cells.times_observed() @ surface.noise.false_alarm_of, 1e-300)  # none: the slope is 0
    flip_rate = point.noise + point.noise * (1 - point.noise) * slope / n_cells
    return np.clip(flip_rate, surface.noise.lowest, HIGHEST)


HIGHEST_RATE = 14.0  # a probability of 1 - 1e-6: beyond that nothing changes any more
AT_BOUND = 1e-12
ENOUGH = 1e-4  # a step must gain this share of what the slope at its start promises
FRESH = 3  # steps that share one information matrix, which costs as much as many slopes
TRIES = 14  # ever shorter steps in one direction


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
    tolerance: float = 1e-3,
    needed: float = -np.inf,
    exact: bool = False,
    max_steps: int = 100,
    fresh: int = FRESH,
    tries: int = TRIES,
) -> Refit:
    """Climb from ``start`` until a step promises less than ``tolerance``; free sources whose rate ends at 0 leave.

    The first ``n_known`` sources stay even then. A climb that cannot reach the height ``needed`` is given up early.
    The information belongs to a recent step, with ``exact`` to the top itself. Where a likelihood is only nearly
    smooth, few ``tries`` are enough; where information costs no more than a slope, it may be ``fresh`` at every step.
    """
    climb = _Climb(surface, free, prior, tries)
    point, objective = start, climb.objective(start)
    information = np.empty((0, 0))
    for number in range(max_steps):
        if number % fresh == 0:
            information = climb.information(point)
        slope = climb.slope(point)
        step = climb.bounded_step(point, slope, information)
        promised = float(slope @ step)  # twice what a quadratic hill would still give
        if promised < tolerance or objective + promised < needed:
            break
        better = climb.uphill(point, slope, step)
        if better is None:
            information = climb.information(point)
            better = climb.slowly_uphill(point, slope, information)
        point, gained = better, climb.objective(better) - objective
        objective += gained
        if gained < 0.1 * tolerance:
            break
    point, free = climb.without_dead(point, n_known)  # not before: a long step may send a source to 0 for a while
    climb = _Climb(surface, free, prior, tries)
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
        return point.log_likelihood + self.prior.log_density(point.rate[self.free])

    def slope(self, point: Point) -> Vector:
        slope = self.surface.gradient(point)
        slope[np.flatnonzero(self.free)] += self.prior.slope(point.rate[self.free])
        return slope

    def information(self, point: Point) -> NDArray[np.float64]:
        """The empirical Fisher information of rates, then unknown noise."""
        derivatives = self.surface.derivatives(point)
        information = (derivatives * self.surface.cells.weights) @ derivatives.T
        places = np.flatnonzero(self.free)
        information[places, places] += self.prior.curvature(point.rate[self.free])
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
        return below, np.concatenate([HIGHEST_RATE - point.rate, HIGHEST - point.noise])

    def uphill(self, point: Point, slope: Vector, step: Vector) -> Point | None:
        """The first of ever shorter steps, cut off at the bounds, that gains a little of what its slope promises."""
        objective, n_sources = self.objective(point), point.rate.size
        for _ in range(self.tries):
            rate = np.where(self.free, np.clip(point.rate + step[:n_sources], 0.0, HIGHEST_RATE), point.rate)
            noise = np.clip(point.noise + step[n_sources:], self.surface.noise.lowest, HIGHEST)
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
