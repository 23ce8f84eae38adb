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

from bica.kernels.compiled import compiled
from bica.kernels.lattice.channel import apply_matrices
from bica.kernels.lattice.likelihood import (
    CellGroups,
    mix_sources,
    probability_derivatives,
    read_cells,
    source_derivatives,
)
from bica.kernels.lattice.linear import (
    Flags,
    Matrix,
    Sets,
    Vector,
    add_ridge,
    factored,
    places_of,
    solve_factored,
    square_part,
)
from bica.kernels.lattice.subsets import Lattice

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
    source_probability, shown = np.empty(sources.size), np.empty(hidden.size)
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
    for j in range(derivatives.shape[0]):
        slope[j] = 0.0
        for k in range(probability.size):
            derivatives[j, k] /= probability[k]
            slope[j] += derivatives[j, k] * weights[k]


@compiled
def climb(
    sources: Sets, start: Vector, fixed: Flags, rows: BlockRows, matrices: Matrix, needed: float
) -> tuple[Vector, float, Matrix]:
    """The best rates, the log-likelihood there, and the information there or one step before.

    Gives up as soon as the log-likelihood ``needed`` seems out of reach.
    """
    hidden, probability = np.empty(1 << matrices.shape[0]), np.empty(rows.weights.size)
    derivatives, slope, n_sources = np.empty((sources.size, probability.size)), np.empty(sources.size), sources.size
    information, source_rate = np.empty((n_sources, n_sources)), np.empty(n_sources)
    for j in range(n_sources):
        source_rate[j] = start[j]
    height = cell_probabilities(sources, source_rate, rows, matrices, hidden, probability)
    for _ in range(MOST_STEPS):
        source_derivatives(hidden, sources, matrices, rows.groups, derivatives)
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
            new = cell_probabilities(sources, tried, rows, matrices, hidden, probability)
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
    hidden, probability = np.empty(1 << n_sensors), np.empty(rows.weights.size)
    cell_probabilities(sources, source_rate, rows, matrices, hidden, probability)
    shown = np.empty(hidden.size)
    for s in range(hidden.size):
        shown[s] = hidden[s]
    apply_matrices(shown, matrices)
    flip_rates, one_for_all = np.empty(n_sensors), np.empty((n_sensors, 1))
    for i in range(n_sensors):
        flip_rates[i], one_for_all[i, 0] = flip_rate, 1.0
    derivatives, slope = np.empty((sources.size + 1, probability.size)), np.empty(sources.size + 1)
    probability_derivatives(
        hidden, shown, sources, (flip_rates, flip_rates), (one_for_all, one_for_all), matrices, rows.groups, derivatives
    )
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
