"""Expectation-maximisation from the gradient alone: the expected number of activations is p (T + slope)."""

import numpy as np
from numpy.typing import NDArray

from bica.estimate.lattice import Point, Surface, Vector
from bica.estimate.noise_shape import HIGHEST

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
    n_cells = np.maximum(surface.cells.times_seen() @ surface.noise.false_alarm_of, 1e-300)  # none: the slope is 0
    flip_rate = point.noise + point.noise * (1 - point.noise) * slope / n_cells
    return np.clip(flip_rate, surface.noise.lowest, HIGHEST)


def accelerated_em(
    surface: Surface, point: Point, free: NDArray[np.bool_], *, max_steps: int = 200, tolerance: float = 1e-4
) -> Point:
    """EM with squared extrapolation (SQUAREM): two steps tell the direction, a leap is taken if it goes up."""
    for _ in range(max_steps):
        first = em_step(surface, point, free)
        second = em_step(surface, first, free)
        leap = _extrapolated(surface, point, first, second, free)
        better = leap if leap is not None and leap.log_likelihood >= second.log_likelihood else second
        gained = better.log_likelihood - point.log_likelihood
        point = better
        if gained < tolerance:
            break
    return point


def _extrapolated(surface: Surface, start: Point, first: Point, second: Point, free: NDArray[np.bool_]) -> Point | None:
    begin, middle, end = (np.concatenate([point.probability, point.noise]) for point in (start, first, second))
    change, bend = middle - begin, end - 2 * middle + begin
    if not bend.any():
        return None
    length = -np.linalg.norm(change) / np.linalg.norm(bend)
    leap = begin - 2 * length * change + length**2 * bend
    probability, noise = leap[: free.size], leap[free.size :]
    if (leap < 0).any() or (probability > ALMOST_SURE).any() or (noise > HIGHEST).any():
        return None
    rate = np.where(free, -np.log1p(-probability), start.rate)
    return em_step(surface, surface.at(start.sources, rate, np.maximum(noise, surface.noise.lowest)), free)
