"""The best rates and noise for given sources: Fisher scoring, kept inside the bounds and never downhill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.estimate.em import em_step
from bica.estimate.lattice import Point, Surface, Vector
from bica.estimate.noise_shape import HIGHEST

HIGHEST_RATE = 14.0  # a probability of 1 - 1e-6: beyond that nothing changes any more
AT_BOUND = 1e-12
FRESH = 3  # steps that share one information matrix, which costs as much as many slopes


@dataclass(frozen=True, slots=True)
class BetaPrior:
    """A Beta distribution for every free probability, in the counts it stands for; (1, 1) says nothing."""

    alpha: float = 1.0
    beta: float = 1.0

    def log_density(self, rate: Vector) -> float:
        """Up to a constant."""
        if (self.alpha, self.beta) == (1.0, 1.0) or not rate.size:
            return 0.0
        return float(((self.alpha - 1) * np.log(-np.expm1(-rate)) - (self.beta - 1) * rate).sum())

    def slope(self, rate: Vector) -> Vector:
        """The derivative by each rate."""
        slope: Vector = (self.alpha - 1) / np.expm1(rate) - (self.beta - 1)
        return slope

    def curvature(self, rate: Vector) -> Vector:
        """Minus the second derivative by each rate."""
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
    tolerance: float = 1e-3,
    needed: float = -np.inf,
    exact: bool = False,
    max_steps: int = 100,
) -> Refit:
    """Climb from ``start`` until a step promises less than ``tolerance``; free sources whose rate ends at 0 leave.

    A climb that cannot reach the height ``needed`` is given up early. The information belongs to a recent step, with
    ``exact`` to the top itself.
    """
    point, objective = start, _objective(start, free, prior)
    information = np.empty((0, 0))
    for number in range(max_steps):
        if number % FRESH == 0 or len(information) != point.rate.size + point.noise.size:
            information = _information(surface, point, free, prior)
        slope = _slope(surface, point, free, prior)
        step = _bounded_step(surface, point, free, slope, information)
        promised = float(slope @ step)  # twice what a quadratic hill would still give
        if promised < tolerance or objective + promised < needed:
            break
        better = _uphill(surface, point, free, prior, step, objective)
        if better is None:
            better = em_step(surface, point, free, prior.alpha, prior.beta)
            if _objective(better, free, prior) <= objective:
                break
        gained = _objective(better, free, prior) - objective
        point, free = _without_dead(surface, better, free)
        objective = _objective(point, free, prior)
        if gained < 0.1 * tolerance:
            break
    return Refit(point, free, objective, _information(surface, point, free, prior) if exact else information)


def _objective(point: Point, free: NDArray[np.bool_], prior: BetaPrior) -> float:
    return point.log_likelihood + prior.log_density(point.rate[free])


def _slope(surface: Surface, point: Point, free: NDArray[np.bool_], prior: BetaPrior) -> Vector:
    slope = surface.gradient(point)
    slope[np.flatnonzero(free)] += prior.slope(point.rate[free])
    return slope


def _information(surface: Surface, point: Point, free: NDArray[np.bool_], prior: BetaPrior) -> NDArray[np.float64]:
    """The empirical Fisher information of rates, then unknown noise."""
    derivatives = surface.derivatives(point)
    information = (derivatives * surface.cells.weights) @ derivatives.T
    places = np.flatnonzero(free)
    information[places, places] += prior.curvature(point.rate[free])
    return information


def _bounded_step(
    surface: Surface, point: Point, free: NDArray[np.bool_], slope: Vector, information: NDArray[np.float64]
) -> Vector:
    """The scoring step for parameters that can move; those that press against a bound stay."""
    value = np.concatenate([point.rate, point.noise])
    lowest = np.concatenate([np.zeros(point.rate.size), np.full(point.noise.size, surface.noise.lowest)])
    moving = np.concatenate([free, np.ones(point.noise.size, dtype=bool)])
    moving &= (value > lowest + AT_BOUND) | (slope > 0)
    step = np.zeros(value.size)
    while moving.any():
        part = information[np.ix_(moving, moving)]
        ridge = 1e-10 * np.trace(part) / len(part) + 1e-12
        step[:] = 0.0
        step[moving] = np.linalg.solve(part + ridge * np.eye(len(part)), slope[moving])
        outward = moving & (value <= lowest + AT_BOUND) & (step < 0)
        if not outward.any():
            break
        moving &= ~outward
    return step


def _uphill(
    surface: Surface, point: Point, free: NDArray[np.bool_], prior: BetaPrior, step: Vector, objective: float
) -> Point | None:
    """The first of ever shorter steps that goes up."""
    n_sources = point.rate.size
    for _ in range(14):
        rate = np.clip(point.rate + step[:n_sources], 0.0, HIGHEST_RATE)
        noise = np.clip(point.noise + step[n_sources:], surface.noise.lowest, HIGHEST)
        tried = surface.at(point.sources, np.where(free, rate, point.rate), noise)
        if _objective(tried, free, prior) >= objective:
            return tried
        step = 0.4 * step
    return None


def _without_dead(surface: Surface, point: Point, free: NDArray[np.bool_]) -> tuple[Point, NDArray[np.bool_]]:
    alive = ~free | (point.rate > 0)
    if alive.all():
        return point, free
    return surface.at(point.sources[alive], point.rate[alive], point.noise), free[alive]
