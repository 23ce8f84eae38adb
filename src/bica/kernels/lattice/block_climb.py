"""The best rates of given sources of a few sensors, noise known, and what they say about the noise.

The program: for sources g_1 ... g_n with rates w_j = -log(1 - p_j), maximise the exact log-likelihood

    L(w) = sum_o weight_o log Q_o(w)   over  0 <= w_j <= HIGHEST_SOURCE_RATE,

where Q_o is the probability of the observed cell o on the lattice of the block (``likelihood.py``). Fisher scoring:
with d_o the gradient of log Q_o, a step solves I step = slope for slope = sum_o weight_o d_o and the information I =
sum_o weight_o d_o d_o', over the rates that are neither fixed nor pressed against a bound, and is shortened until L
rises enough (Armijo's rule). Invariant: L never falls, and fixed rates stay.

What the sources say about the noise is the slope and the information of one flip rate f that all sensors share, with
the rates following along: I_ff - I_fw I_ww^-1 I_wf, a Schur complement ("Blocks" in ARCHITECTURE.md).

The first sources of every list may be known ones: they stay, and those marked as fixed keep their rate.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.lattice.channel import apply_matrices
from bica.kernels.lattice.likelihood import (
    CellGroups,
    mix_sources,
    probability_derivatives,
    read_cells,
    source_derivatives,
)
from bica.kernels.lattice.subsets import Lattice

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Sets = NDArray[np.int64]
Flags = NDArray[np.bool_]

HIGHEST_SOURCE_RATE = 14.0  # a probability of 1 - 8e-7
TOLERANCE = 1e-3  # nats: a step that promises less ends the climb
STALLED = 0.1  # of the tolerance: a step that gains less ends it, too
MOST_STEPS = 60
MOST_SHORTENINGS = 12  # of one step
SHORTENED = 0.4  # what is left of a step that gains too little
ARMIJO = 1e-4  # the share of its promise that a step must gain
RIDGE, RIDGE_FLOOR = 1e-10, 1e-12  # on the diagonal of the information, relative to its mean and absolute


class BlockRows(NamedTuple):
    """The rows of a block, as cells of its lattice with their weights."""

    groups: CellGroups
    weights: Vector  # (n_cells,)


@compiled
def cell_probabilities(
    sources: Sets, source_rate: Vector, rows: BlockRows, matrices: Matrix, hidden: Lattice, probability: Vector
) -> float:
    """The log-likelihood; fills in the distribution of what is there and the probability of every observed cell."""
    mix_sources(sources, -np.expm1(-source_rate), hidden)
    shown = hidden.copy()
    apply_matrices(shown, matrices)
    read_cells(shown, rows.groups.unobserved, rows.groups.starts, rows.groups.cells, probability)
    total = 0.0
    for k in range(probability.size):
        total += rows.weights[k] * np.log(probability[k])
    return total


@compiled
def weighted_products(derivatives: Matrix, weights: Vector) -> Matrix:
    """The information matrix: weighted inner products of the rows of ``derivatives``."""
    n, size = derivatives.shape
    products = np.empty((n, n))
    scaled = np.empty(size)
    for a in range(n):
        for k in range(size):
            scaled[k] = weights[k] * derivatives[a, k]
        for b in range(a + 1):
            one, two, three, four = 0.0, 0.0, 0.0, 0.0  # four sums, which need not wait for each other
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
def _scoring_step(source_rate: Vector, fixed: Flags, slope: Vector, information: Matrix) -> Vector:
    """The scoring step of the rates that may move; fixed ones and those pressed against a bound stay."""
    moving = np.ones(source_rate.size, np.bool_)
    moving[: fixed.size] = ~fixed
    for j in range(source_rate.size):
        if (source_rate[j] <= 0.0 and slope[j] <= 0.0) or (source_rate[j] >= HIGHEST_SOURCE_RATE and slope[j] >= 0.0):
            moving[j] = False
    step = np.zeros(source_rate.size)
    while moving.any():
        places = np.flatnonzero(moving)
        part = np.empty((places.size, places.size))
        for a in range(places.size):
            for b in range(places.size):
                part[a, b] = information[places[a], places[b]]
        ridge = RIDGE * np.trace(part) / places.size + RIDGE_FLOOR
        for a in range(places.size):
            part[a, a] += ridge
        step[:] = 0.0
        step[places] = np.linalg.solve(part, slope[places])
        pressed = moving & (source_rate <= 0.0) & (step < 0.0)
        if not pressed.any():
            return step
        moving &= ~pressed
    return step


@compiled
def climb(
    sources: Sets, start: Vector, fixed: Flags, rows: BlockRows, matrices: Matrix, needed: float
) -> tuple[Vector, float, Matrix]:
    """The best rates, the log-likelihood there, and the information there or one step before.

    Gives up as soon as the log-likelihood ``needed`` seems out of reach.
    """
    hidden, probability = np.empty(1 << matrices.shape[0]), np.empty(rows.weights.size)
    source_rate, height = start.copy(), cell_probabilities(sources, start, rows, matrices, hidden, probability)
    information = np.zeros((source_rate.size, source_rate.size))
    for _ in range(MOST_STEPS):
        derivatives = np.empty((sources.size, probability.size))
        source_derivatives(hidden, sources, matrices, rows.groups, derivatives)
        derivatives /= probability
        information = weighted_products(derivatives, rows.weights)
        slope = np.zeros(source_rate.size)
        for j in range(source_rate.size):
            slope[j] = np.sum(derivatives[j] * rows.weights)
        step = _scoring_step(source_rate, fixed, slope, information)
        promised = np.sum(slope * step)
        if promised < TOLERANCE or height + promised < needed:
            break
        gained = 0.0
        for _ in range(MOST_SHORTENINGS):
            tried = np.minimum(np.maximum(source_rate + step, 0.0), HIGHEST_SOURCE_RATE)
            new = cell_probabilities(sources, tried, rows, matrices, hidden, probability)
            if new >= height + ARMIJO * np.sum(slope * (tried - source_rate)) and new > height:
                gained = new - height
                source_rate, height = tried, new
                break
            step *= SHORTENED
        if gained < STALLED * TOLERANCE:
            break
    return source_rate, height, information


@compiled
def profiled_flip_rate(
    sources: Sets, source_rate: Vector, fixed: Flags, rows: BlockRows, flip_rate: float, matrices: Matrix
) -> tuple[float, float]:
    """Slope and information of one flip rate that all sensors share; source rates that are not fixed follow along."""
    n_sensors = matrices.shape[0]
    hidden, probability = np.empty(1 << n_sensors), np.empty(rows.weights.size)
    cell_probabilities(sources, source_rate, rows, matrices, hidden, probability)
    shown = hidden.copy()
    apply_matrices(shown, matrices)
    flip_rates, one_for_all = np.full(n_sensors, flip_rate), np.ones((n_sensors, 1))
    derivatives = np.empty((sources.size + 1, probability.size))
    probability_derivatives(
        hidden, shown, sources, (flip_rates, flip_rates), (one_for_all, one_for_all), matrices, rows.groups, derivatives
    )
    for j in range(sources.size + 1):
        derivatives[j] /= probability
    slope = np.sum(derivatives[sources.size] * rows.weights)
    information = weighted_products(derivatives, rows.weights)
    for j in range(fixed.size):
        if fixed[j]:
            information[j] = 0.0
            information[:, j] = 0.0
    own = information[sources.size, sources.size]
    if not sources.size:
        return slope, own
    part = information[: sources.size, : sources.size].copy()
    ridge = RIDGE * np.trace(part) / sources.size + RIDGE_FLOOR
    for j in range(sources.size):
        part[j, j] += ridge
    shared = information[: sources.size, sources.size].copy()
    return slope, max(0.0, own - np.sum(shared * np.linalg.solve(part, shared)))
