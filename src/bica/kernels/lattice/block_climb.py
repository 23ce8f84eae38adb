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
from bica.kernels.lattice.likelihood import (
    CellGroups,
    mix_sources,
    noise_derivatives,
    read_cells,
    source_derivatives,
)
from bica.kernels.lattice.subsets import Lattice, apply_matrices

# Small linear systems: NumPy's own solvers, and its ways to pick parts of arrays, take seconds to compile.

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Sets = NDArray[np.int64]
Flags = NDArray[np.bool_]


@compiled
def factored(matrix: Matrix) -> Sets:
    """Replace a square matrix by its triangular factors L and U, rows exchanged; return the order of the rows.

    Gauss's elimination; in every column the largest entry left is the pivot.
    """
    n = matrix.shape[0]
    order = np.empty(n, np.int64)
    for k in range(n):
        order[k] = k
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        order[k], order[pivot] = order[pivot], order[k]
        for j in range(n):
            matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
        for i in range(k + 1, n):
            matrix[i, k] /= matrix[k, k]
            for j in range(k + 1, n):
                matrix[i, j] -= matrix[i, k] * matrix[k, j]
    return order


@compiled
def solve_factored(matrix: Matrix, order: Sets, right: Vector, solution: Vector) -> None:
    """Solve the linear system whose matrix was ``factored``."""
    n = order.size
    for i in range(n):
        solution[i] = right[order[i]]
        for j in range(i):
            solution[i] -= matrix[i, j] * solution[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            solution[i] -= matrix[i, j] * solution[j]
        solution[i] /= matrix[i, i]


@compiled
def add_ridge(matrix: Matrix, relative: float, absolute: float) -> None:
    """Add to the diagonal this share of the trace, and a little more."""
    ridge = absolute
    for j in range(matrix.shape[0]):
        ridge += relative * matrix[j, j]
    for j in range(matrix.shape[0]):
        matrix[j, j] += ridge


@compiled
def square_part(matrix: Matrix, places: Sets) -> Matrix:
    """The rows and columns at these places."""
    part = np.empty((places.size, places.size))
    for a in range(places.size):
        for b in range(places.size):
            part[a, b] = matrix[places[a], places[b]]
    return part


@compiled
def places_of(flags: Flags) -> Sets:
    """Where the flags are set."""
    places, n = np.empty(flags.size, np.int64), 0
    for k in range(flags.size):
        if flags[k]:
            places[n] = k
            n += 1
    return places[:n]


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


class BlockTables(NamedTuple):
    """The distributions that sources and noise make."""

    hidden: Lattice  # (2^n_sensors,), of what is there
    shown: Lattice  # (2^n_sensors,), of what noisy sensors show
    probability: Vector  # (n_cells,), of every observed cell


@compiled
def empty_tables(n_sensors: int, n_cells: int) -> BlockTables:
    """Room for the tables."""
    return BlockTables(np.empty(1 << n_sensors), np.empty(1 << n_sensors), np.empty(n_cells))


@compiled
def cell_probabilities(
    sources: Sets, source_rate: Vector, rows: BlockRows, matrices: Matrix, tables: BlockTables
) -> float:
    """The log-likelihood; fills in the tables."""
    hidden, shown, probability = tables
    source_probability = np.empty(sources.size)
    for j in range(sources.size):
        source_probability[j] = -np.expm1(-source_rate[j])
    mix_sources(sources, source_probability, hidden)
    for s in range(hidden.size):
        shown[s] = hidden[s]
    apply_matrices(shown, matrices)
    read_cells(shown, rows.groups.unobserved, rows.groups.starts, rows.groups.cells, probability)
    total = 0.0
    for k in range(probability.size):
        total += rows.weights[k] * np.log(probability[k])
    return total


@compiled
def weighted_sum(values: Vector, weights: Vector) -> float:
    """The inner product of two vectors."""
    one, two, three, four, k = 0.0, 0.0, 0.0, 0.0, 0  # four sums, which need not wait for each other
    while k + 4 <= values.size:
        one += values[k] * weights[k]
        two += values[k + 1] * weights[k + 1]
        three += values[k + 2] * weights[k + 2]
        four += values[k + 3] * weights[k + 3]
        k += 4
    while k < values.size:
        one += values[k] * weights[k]
        k += 1
    return one + two + three + four


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
            products[a, b] = products[b, a] = weighted_sum(scaled, derivatives[b])
    return products


@compiled
def _scoring_step(source_rate: Vector, fixed: Flags, slope: Vector, information: Matrix) -> Vector:
    """The scoring step of the rates that may move; fixed ones and those pressed against a bound stay."""
    moving, step = np.empty(source_rate.size, np.bool_), np.empty(source_rate.size)
    for j in range(source_rate.size):
        held_low, held_high = source_rate[j] <= 0.0 and slope[j] <= 0.0, source_rate[j] >= HIGHEST_SOURCE_RATE
        moving[j] = not (held_low or (held_high and slope[j] >= 0.0) or (j < fixed.size and fixed[j]))
    pressed = True
    while pressed:
        pressed = False
        places = places_of(moving)
        part, of_places, steps = square_part(information, places), np.empty(places.size), np.empty(places.size)
        add_ridge(part, RIDGE / max(places.size, 1), RIDGE_FLOOR)
        for a in range(places.size):
            of_places[a] = slope[places[a]]
        solve_factored(part, factored(part), of_places, steps)
        step[:] = 0.0
        for a in range(places.size):
            step[places[a]] = steps[a]
            if source_rate[places[a]] <= 0.0 and steps[a] < 0.0:
                moving[places[a]] = False
                pressed = True
    return step


@compiled
def log_derivatives(derivatives: Matrix, probability: Vector, weights: Vector, slope: Vector) -> None:
    """Divide derivatives by the probabilities of the cells; ``slope`` receives the weighted sum of every row."""
    inverse = np.empty(probability.size)
    for k in range(probability.size):
        inverse[k] = 1.0 / probability[k]
    for j in range(derivatives.shape[0]):
        row = derivatives[j]
        for k in range(inverse.size):
            row[k] *= inverse[k]
        slope[j] = weighted_sum(row, weights)


@compiled
def climb(
    sources: Sets, start: Vector, fixed: Flags, rows: BlockRows, matrices: Matrix, needed: float
) -> tuple[Vector, float, Matrix]:
    """The best rates, the log-likelihood there, and the information there or one step before.

    Gives up as soon as the log-likelihood ``needed`` seems out of reach.
    """
    tables = empty_tables(matrices.shape[0], rows.weights.size)
    probability = tables.probability
    derivatives, slope, n_sources = np.empty((sources.size, probability.size)), np.empty(sources.size), sources.size
    information, source_rate = np.empty((n_sources, n_sources)), np.empty(n_sources)
    for j in range(n_sources):
        source_rate[j] = start[j]
    height = cell_probabilities(sources, source_rate, rows, matrices, tables)
    for _ in range(MOST_STEPS):
        source_derivatives(tables.shown, sources, matrices, rows.groups, probability, derivatives)
        log_derivatives(derivatives, probability, rows.weights, slope)
        information = weighted_products(derivatives, rows.weights)
        step = _scoring_step(source_rate, fixed, slope, information)
        promised = 0.0
        for j in range(n_sources):
            promised += slope[j] * step[j]
        if promised < TOLERANCE or height + promised < needed:
            break
        gained = 0.0
        for _ in range(MOST_SHORTENINGS):
            tried, promised = np.empty(n_sources), 0.0
            for j in range(n_sources):
                tried[j] = min(max(source_rate[j] + step[j], 0.0), HIGHEST_SOURCE_RATE)
                promised += slope[j] * (tried[j] - source_rate[j])
                step[j] *= SHORTENED
            new = cell_probabilities(sources, tried, rows, matrices, tables)
            if new >= height + ARMIJO * promised and new > height:
                gained = new - height
                source_rate, height = tried, new
                break
        if gained < STALLED * TOLERANCE:
            break
    return source_rate, height, information


@compiled
def profiled_flip_rate(
    sources: Sets, source_rate: Vector, fixed: Flags, rows: BlockRows, flip_rate: float, matrices: Matrix
) -> tuple[float, float]:
    """Slope and information of one flip rate that all sensors share; source rates that are not fixed follow along."""
    n_sensors = matrices.shape[0]
    tables = empty_tables(n_sensors, rows.weights.size)
    cell_probabilities(sources, source_rate, rows, matrices, tables)
    shown, probability = tables.shown, tables.probability
    flip_rates, one_for_all = np.empty(n_sensors), np.empty((n_sensors, 1))
    for i in range(n_sensors):
        flip_rates[i], one_for_all[i, 0] = flip_rate, 1.0
    derivatives, slope = np.empty((sources.size + 1, probability.size)), np.empty(sources.size + 1)
    source_derivatives(shown, sources, matrices, rows.groups, probability, derivatives[: sources.size])
    rates, rates_of = (flip_rates, flip_rates), (one_for_all, one_for_all)
    noise_derivatives(shown, rates, rates_of, rows.groups, derivatives[sources.size :])
    log_derivatives(derivatives, probability, rows.weights, slope)
    information = weighted_products(derivatives, rows.weights)
    return slope[sources.size], _left_over(information, fixed)


@compiled
def _left_over(information: Matrix, fixed: Flags) -> float:
    """The information of the last parameter if the others, but for the fixed ones, follow along."""
    last = information.shape[0] - 1
    free = np.empty(last, np.bool_)
    for j in range(last):
        free[j] = j >= fixed.size or not fixed[j]
    places = places_of(free)
    part, shared, followed = square_part(information, places), np.empty(places.size), np.empty(places.size)
    add_ridge(part, RIDGE / max(last, 1), RIDGE_FLOOR)
    for a in range(places.size):
        shared[a] = information[places[a], last]
    solve_factored(part, factored(part), shared, followed)
    own: float = information[last, last]
    for a in range(places.size):
        own -= shared[a] * followed[a]
    return max(0.0, own)
