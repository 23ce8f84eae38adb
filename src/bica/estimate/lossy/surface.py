"""The exact likelihood of sources with lossy edges as a surface: its height, and the way up to the nearest top."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.lattice import Cells, Pace
from bica.kernels.lattice.lossy import (
    LARGEST_LEAK,
    MOST_FREQUENT,
    NEARLY_NONE,
    NEARLY_SURE,
    RAREST,
    lossy_em,
    lossy_log_likelihood,
    lossy_scores,
    silence_table,
    spectrum_em,
)

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

AT_BOUND = 1e-8  # numbers this close to a bound are on it
RIDGE, LEAST_RIDGE = 1e-7, 1e-8  # of the information, relative and absolute: flat directions stay where they are
TRIES, SHORTER = 8, 0.35  # of ever shorter steps
ENOUGH = 0.05  # of what the slope promises must be gained
NOTHING_GAINED = 0.1  # of the tolerance: a step that gains less is the last
EM_INSTEAD = 4  # steps of expectation and maximisation where scoring fails
PACE = Pace(1e-2, 12, TRIES)
LAST_PACE = Pace(1e-7, 60, TRIES)  # of the refit whose numbers are reported


@dataclass(frozen=True, slots=True, eq=False)
class LossyPoint:
    """Sources with lossy edges, the leaks, and the likelihood there; ``kernels/lattice/lossy.py`` has the model.

    Every source is one mode, unless ``owner`` says otherwise.
    """

    probability: Vector  # (n_modes,)
    reach: Matrix  # (n_modes, n_sensors), 0 where there is no edge
    leak: Vector  # (n_sensors,)
    fixed_probability: Mask  # (n_modes,), where the number was given
    fixed_reach: Mask  # (n_modes, n_sensors), the same
    log_likelihood: float = -np.inf
    information: Matrix | None = None  # of the numbers as ``numbers`` lists them
    moving: Mask | None = None  # which of them are neither given nor on a bound

    @property
    def n_modes(self) -> int:
        """How many modes there are."""
        return self.probability.size

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of sensors of every mode."""
        sizes: NDArray[np.int64] = (self.reach > 0).sum(axis=1)
        return sizes

    def numbers(self) -> Vector:
        """All numbers in one row: probabilities, reaches mode by mode, leaks."""
        return np.concatenate([self.probability, self.reach[self.reach > 0], self.leak])

    def with_numbers(self, numbers: Vector) -> LossyPoint:
        """The same sources with other numbers."""
        n_modes, n_sensors = self.reach.shape
        reach = np.zeros_like(self.reach)
        reach[self.reach > 0] = numbers[n_modes:-n_sensors]
        return replace(self, probability=numbers[:n_modes].copy(), reach=reach, leak=numbers[-n_sensors:].copy())

    def pick(self, kept: NDArray[np.int64] | Mask) -> LossyPoint:
        """Some of the modes only."""
        return LossyPoint(
            self.probability[kept], self.reach[kept], self.leak, self.fixed_probability[kept], self.fixed_reach[kept]
        )

    def plus(self, probability: float, reach: Vector) -> LossyPoint:
        """With one more source, nothing of which is given."""
        return LossyPoint(
            np.append(self.probability, probability),
            np.vstack([self.reach, reach]),
            self.leak,
            np.append(self.fixed_probability, False),
            np.vstack([self.fixed_reach, np.zeros(reach.size, dtype=bool)]),
        )

    def edge_places(self, modes: NDArray[np.int64], sensors: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the reaches of these edges are among the numbers."""
        places: NDArray[np.int64] = np.flatnonzero(self.reach > 0)
        return self.n_modes + np.searchsorted(places, modes * self.leak.size + sensors)

    def without_edges(
        self, modes: NDArray[np.int64], sensors: NDArray[np.int64], covariance: Matrix | None
    ) -> LossyPoint:
        """Without some edges; with the covariance, all other numbers go where the curvature puts their top then."""
        numbers = self.numbers()
        if covariance is not None:
            edges = self.edge_places(modes, sensors)
            part = covariance[np.ix_(edges, edges)]
            if (np.diag(part) > 0).all():
                numbers -= covariance[:, edges] @ np.linalg.solve(part, numbers[edges])
        moved = self.with_numbers(bounded(self, numbers))
        moved.reach[modes, sensors] = 0.0
        return replace(moved, information=None, moving=None)

    def loose(self) -> Mask:
        """Which numbers move or are at their upper bound."""
        assert self.moving is not None
        at_top: Mask = self.numbers() >= bounds(self)[1] - AT_BOUND
        return self.moving | (at_top & ~pinned(self))

    def covariance(self) -> Matrix:
        """The inverse of the information on all numbers that are loose; 0 for the others."""
        assert self.information is not None
        loose = self.loose()
        covariance = np.zeros_like(self.information)
        covariance[np.ix_(loose, loose)] = np.linalg.inv(_with_ridge(self.information[np.ix_(loose, loose)]))
        return covariance


def _with_ridge(information: Matrix) -> Matrix:
    diagonal = np.einsum("ii->i", information)
    diagonal += RIDGE * diagonal + LEAST_RIDGE
    return information


def bounds(point: LossyPoint) -> tuple[Vector, Vector]:
    """The lowest and the highest value of every number."""
    n_modes, n_edges, n_sensors = point.n_modes, int(point.sizes.sum()), point.leak.size
    lowest = np.repeat([RAREST, NEARLY_NONE, NEARLY_NONE], [n_modes, n_edges, n_sensors])
    return lowest, np.repeat([MOST_FREQUENT, NEARLY_SURE, LARGEST_LEAK], [n_modes, n_edges, n_sensors])


def bounded(point: LossyPoint, numbers: Vector) -> Vector:
    """The numbers within their bounds; those that were given stay."""
    within: Vector = np.clip(numbers, *bounds(point))
    return np.where(pinned(point), point.numbers(), within)


def pinned(point: LossyPoint) -> Mask:
    """Which numbers do not move: given ones, and the reach of pairs, of which the rows tell one number only."""
    pair = (point.sizes == 2)[:, None] & (point.reach >= NEARLY_SURE)
    still = (point.fixed_reach | pair)[point.reach > 0]
    return np.concatenate([point.fixed_probability, still, np.zeros(point.leak.size, dtype=bool)])


class LossySurface:
    """The log-likelihood of counted rows over all sources with lossy edges, of up to 16 sensors."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self._groups = (cells.unobserved, cells.starts, cells.cells)
        self._unobserved = np.repeat(cells.unobserved, np.diff(cells.starts))
        self._root_weights = np.sqrt(cells.weights)[:, None]

    def height(self, point: LossyPoint, owner: NDArray[np.int64] | None = None) -> float:
        """The log-likelihood."""
        owner = np.arange(point.n_modes) if owner is None else owner
        parts = (point.probability, point.reach, point.leak, owner)
        return float(lossy_log_likelihood(*parts, self.cells.cells, self._unobserved, self.cells.weights))

    def slopes(self, point: LossyPoint, owner: NDArray[np.int64] | None = None) -> tuple[float, Vector, Matrix]:
        """The log-likelihood, its slope and the empirical information."""
        owner = np.arange(point.n_modes) if owner is None else owner
        parts = (point.probability, point.reach, point.leak, owner)
        found, scores = lossy_scores(*parts, self.cells.cells, self._unobserved)
        slope: Vector = self.cells.weights @ scores
        scores *= self._root_weights
        return float(self.cells.weights @ np.log(found)), slope, scores.T @ scores

    def em(
        self, point: LossyPoint, n_steps: int, tolerance: float = -np.inf, owner: NDArray[np.int64] | None = None
    ) -> LossyPoint:
        """The point after steps of expectation and maximisation; edges that do not exist stay away."""
        parts = point.probability.copy(), point.reach.copy(), point.leak.copy()
        owner = np.arange(point.n_modes) if owner is None else owner
        fixed = point.fixed_probability, point.fixed_reach
        rows = self._groups, self.cells.weights, self._unobserved
        lossy_em(*parts, owner, fixed, *rows, n_steps, tolerance)
        moved = LossyPoint(*parts, *fixed)
        return replace(moved, log_likelihood=self.height(moved, owner))

    def spectrum(self, background: LossyPoint, first_rate: float, n_steps: int) -> Vector:
        """How fast sure sources behind every set would grow beside these: (2^n_sensors,) rates."""
        parts = background.probability, background.reach, background.leak
        silence = silence_table(*parts, np.arange(background.n_modes))
        rate = np.full(silence.size, first_rate)
        rate[0] = 0.0
        spectrum_em(silence, self._groups, self.cells.weights, self._unobserved, rate, n_steps)
        return rate

    def refit(self, start: LossyPoint, pace: Pace = PACE, needed: float = -np.inf) -> LossyPoint:
        """The best numbers for these edges, by Fisher scoring within bounds; given up where ``needed`` is too far."""
        point = with_sure_pairs(start)
        point = point.with_numbers(bounded(point, point.numbers()))
        still, (lowest, highest) = pinned(point), bounds(point)
        for _ in range(pace.most_steps):
            height, slope, information = self.slopes(point)
            numbers = point.numbers()
            low, high = numbers <= lowest + AT_BOUND, numbers >= highest - AT_BOUND
            step, moving = bounded_step(slope, information, still, low, high)
            point = replace(point, log_likelihood=height, information=information, moving=moving)
            promised = float(slope @ step)
            if promised < pace.tolerance or height + promised < needed:
                break
            better = self._uphill(point, slope, step) or self._by_em(point)
            if better is None:
                break
            gained, point = better.log_likelihood - height, replace(better, information=information, moving=moving)
            if gained < NOTHING_GAINED * pace.tolerance:
                break
        return point

    def _uphill(self, point: LossyPoint, slope: Vector, step: Vector) -> LossyPoint | None:
        numbers = point.numbers()
        for _ in range(TRIES):
            tried = bounded(point, numbers + step)
            promised = float(slope @ (tried - numbers))
            moved = point.with_numbers(tried)
            height = self.height(moved)
            if height >= point.log_likelihood + ENOUGH * max(promised, 0.0):
                return replace(moved, log_likelihood=height)
            step = SHORTER * step
        return None

    def _by_em(self, point: LossyPoint) -> LossyPoint | None:
        still = pinned(point)
        held = replace(point, fixed_reach=point.fixed_reach.copy())
        held.fixed_reach[point.reach > 0] |= still[point.n_modes : -point.leak.size]
        moved = self.em(held, EM_INSTEAD)
        better = replace(moved, fixed_reach=point.fixed_reach)
        return better if better.log_likelihood > point.log_likelihood else None


def bounded_step(slope: Vector, information: Matrix, still: Mask, low: Mask, high: Mask) -> tuple[Vector, Mask]:
    """The scoring step of the numbers that can move, and which these are; those that press against a bound stay."""
    moving = ~still & ~(low & (slope < 0)) & ~(high & (slope > 0))
    step = np.zeros(slope.size)
    while True:
        step[:] = 0.0
        step[moving] = np.linalg.solve(_with_ridge(information[np.ix_(moving, moving)]), slope[moving])
        pressing = moving & ((low & (step < 0)) | (high & (step > 0)))
        if not pressing.any():
            return step, moving
        moving &= ~pressing


def with_sure_pairs(point: LossyPoint) -> LossyPoint:
    """The same distribution with sure edges for every source of two sensors: the rows tell only how often both are on.

    A pair that fails with f and g is a sure pair of rate log[(1-p+pfg) / ((1-p+pf)(1-p+pg))] and larger leaks.
    """
    lossy = (point.sizes == 2) & ~point.fixed_probability & ~point.fixed_reach.any(axis=1)
    lossy &= (np.where(point.reach > 0, point.reach, 1.0) < NEARLY_SURE).any(axis=1)
    if not lossy.any():
        return point
    probability, reach, leak = point.probability.copy(), point.reach.copy(), point.leak.copy()
    for mode in np.flatnonzero(lossy):
        p, sensors = probability[mode], np.flatnonzero(reach[mode])
        fails = 1.0 - reach[mode, sensors]
        alone = 1.0 - p + p * fails
        rate = math.log((1.0 - p + p * fails.prod()) / alone.prod())
        leak[sensors] = np.clip(1.0 - (1.0 - leak[sensors]) * alone * math.exp(rate), NEARLY_NONE, LARGEST_LEAK)
        probability[mode] = min(max(-math.expm1(-rate), RAREST), MOST_FREQUENT)
        reach[mode, sensors] = NEARLY_SURE
    return replace(point, probability=probability, reach=reach, leak=leak, information=None, moving=None)
