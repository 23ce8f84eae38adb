"""The best rates of given sources of a few sensors, noise known, and what they say about the noise.

A block is ``(unobserved, starts, cells, weights)``, rows as cells of the lattice grouped by what was not observed. The
first sources of every list may be known: they stay, and those marked as fixed keep their rate.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.lattice.channel import apply_matrices
from bica.kernels.lattice.likelihood import log_chance_derivatives, mix_sources, read_cells, source_derivatives

Vector = NDArray[np.float64]
Table = NDArray[np.float64]
Matrix = NDArray[np.float64]
Sets = NDArray[np.int64]
Flags = NDArray[np.bool_]
Block = tuple[Sets, Sets, Sets, Vector]

HIGHEST_RATE = 14.0
TOLERANCE = 1e-3


@compiled
def chances(sources: Sets, rate: Vector, block: Block, matrices: Matrix, hidden: Table, chance: Vector) -> float:
    """Fill in what is there and the chance of what was observed; return the log-likelihood."""
    mix_sources(sources, -np.expm1(-rate), hidden)
    shown = hidden.copy()
    apply_matrices(shown, matrices)
    read_cells(shown, block[0], block[1], block[2], chance)
    total = 0.0
    for k in range(chance.size):
        total += block[3][k] * np.log(chance[k])
    return total


@compiled
def weighted_products(derivatives: Matrix, weights: Vector) -> Matrix:
    """The information matrix: weighted inner products of the rows."""
    n, size = derivatives.shape
    products = np.empty((n, n))
    scaled = np.empty(size)
    for a in range(n):
        for k in range(size):
            scaled[k] = weights[k] * derivatives[a, k]
        for b in range(a + 1):
            one, two, three, four = 0.0, 0.0, 0.0, 0.0
            other = derivatives[b]
            k = 0
            while k + 4 <= size:
                one += scaled[k] * other[k]
                two += scaled[k + 1] * other[k + 1]
                three += scaled[k + 2] * other[k + 2]
                four += scaled[k + 3] * other[k + 3]
                k += 4
            while k < size:
                one += scaled[k] * other[k]
                k += 1
            products[a, b] = products[b, a] = one + two + three + four
    return products


@compiled
def _scoring_step(rate: Vector, fixed: Flags, slope: Vector, information: Matrix) -> Vector:
    """The scoring step of the rates that can move; those that press against 0 stay."""
    moving = np.ones(rate.size, np.bool_)
    moving[: fixed.size] = ~fixed
    for j in range(rate.size):
        if (rate[j] <= 0.0 and slope[j] <= 0.0) or (rate[j] >= HIGHEST_RATE and slope[j] >= 0.0):
            moving[j] = False
    step = np.zeros(rate.size)
    while moving.any():
        places = np.flatnonzero(moving)
        part = np.empty((places.size, places.size))
        for a in range(places.size):
            for b in range(places.size):
                part[a, b] = information[places[a], places[b]]
        ridge = 1e-10 * np.trace(part) / places.size + 1e-12
        for a in range(places.size):
            part[a, a] += ridge
        step[:] = 0.0
        step[places] = np.linalg.solve(part, slope[places])
        pressed = moving & (rate <= 0.0) & (step < 0.0)
        if not pressed.any():
            return step
        moving &= ~pressed
    return step


@compiled
def climb(
    sources: Sets, start: Vector, fixed: Flags, block: Block, matrices: Matrix, needed: float
) -> tuple[Vector, float, Matrix]:
    """The best rates: scoring steps, shortened until they gain. Given up where ``needed`` is out of reach.

    Returns the rates, the log-likelihood and the information there or shortly before.
    """
    hidden, chance = np.empty(1 << matrices.shape[0]), np.empty(block[2].size)
    rate, height = start.copy(), chances(sources, start, block, matrices, hidden, chance)
    information = np.zeros((rate.size, rate.size))
    for _ in range(60):
        derivatives = np.empty((sources.size, chance.size))
        source_derivatives(hidden, sources, matrices, (block[0], block[1], block[2]), derivatives)
        derivatives /= chance
        information = weighted_products(derivatives, block[3])
        slope = np.zeros(rate.size)
        for j in range(rate.size):
            slope[j] = np.sum(derivatives[j] * block[3])
        step = _scoring_step(rate, fixed, slope, information)
        promised = np.sum(slope * step)
        if promised < TOLERANCE or height + promised < needed:
            break
        gained = 0.0
        for _ in range(12):
            tried = np.minimum(np.maximum(rate + step, 0.0), HIGHEST_RATE)
            new = chances(sources, tried, block, matrices, hidden, chance)
            if new >= height + 1e-4 * np.sum(slope * (tried - rate)) and new > height:
                gained = new - height
                rate, height = tried, new
                break
            step *= 0.4
        if gained < 0.1 * TOLERANCE:
            break
    return rate, height, information


@compiled
def profiled_flip_rate(
    sources: Sets, rate: Vector, fixed: Flags, block: Block, flip_rate: float, matrices: Matrix
) -> tuple[float, float]:
    """Slope and information of one flip rate that all sensors share; rates that are not fixed follow along."""
    n_sensors = matrices.shape[0]
    hidden, chance = np.empty(1 << n_sensors), np.empty(block[2].size)
    chances(sources, rate, block, matrices, hidden, chance)
    shown = hidden.copy()
    apply_matrices(shown, matrices)
    rates, one_for_all = np.full(n_sensors, flip_rate), np.ones((n_sensors, 1))
    derivatives = np.empty((sources.size + 1, chance.size))
    groups = (block[0], block[1], block[2])
    log_chance_derivatives(
        hidden, shown, sources, (rates, rates), (one_for_all, one_for_all), matrices, groups, derivatives
    )
    for j in range(sources.size + 1):
        derivatives[j] /= chance
    slope = np.sum(derivatives[sources.size] * block[3])
    information = weighted_products(derivatives, block[3])
    for j in range(fixed.size):
        if fixed[j]:
            information[j] = 0.0
            information[:, j] = 0.0
    own = information[sources.size, sources.size]
    if not sources.size:
        return slope, own
    part = information[: sources.size, : sources.size].copy()
    ridge = 1e-10 * np.trace(part) / sources.size + 1e-12
    for j in range(sources.size):
        part[j, j] += ridge
    shared = information[: sources.size, sources.size].copy()
    return slope, max(0.0, own - np.sum(shared * np.linalg.solve(part, shared)))
