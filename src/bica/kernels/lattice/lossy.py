"""Sources whose edges fail at times, on the subset lattice: likelihood, derivatives, and steps uphill.

A source is one or several *modes*, at most one of them active in a row: mode r is active with ``probability[r]`` and
then switches on each sensor i with ``reach[r, i]``, independently. Sensor i is also on by itself with ``leak[i]``. With
R_r(U) = prod over i outside U of (1 - reach[r, i]), the probability that no sensor outside U is on is

    A(U) = prod over i outside U of (1 - leak[i])  *  prod over sources g of D_g(U),
    D_g(U) = 1 + sum over modes r of g of probability[r] (R_r(U) - 1),

and the distribution P of the rows is its Moebius transform. So is M_r = P(row, mode r active), of A p_r R_r / D_g, and
every derivative is one of them, read at the row or at the row without a sensor:

    dP(x)/d reach[r, i] = +- M_r(x without i) / (1 - reach[r, i])      + where sensor i is on in x, - where it is not
    dP(x)/d leak[i]     = +- P(x without i) / (1 - leak[i])            0 where it was not observed
    dP(x)/d p_r         = M_r(x) / p_r - (P(x) - sum of M over the modes of g) / (1 - sum of p over the modes of g)

``owner[r]`` is the source of mode r, in rising order. An edge that does not exist has reach 0, and keeps it.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.lattice.likelihood import Sets, spread_cells
from bica.kernels.lattice.subsets import Lattice, subset_sums, superset_sums

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

LEAST_PROBABILITY = 1e-13  # of a row: differences of numbers near 1 say nothing below
NEARLY_NONE, NEARLY_SURE = 1e-5, 1.0 - 1e-5  # bounds of a reach, the lower one also of a leak
RAREST, MOST_FREQUENT = 1e-6, 1.0 - 1e-4  # bounds of the probability of a mode
LARGEST_LEAK = 0.999
FEWEST_ACTIVATIONS = 1e-9  # expected ones of a mode, so that nothing is divided by 0
STEPS_PER_LOOK = 10  # expectation-maximisation steps after which the gain is looked at
SMALLEST_RATE = 1e-8  # a probability of the plain spectrum below which a set leaves it


@compiled
def quiet_products(reach: Vector, table: Lattice) -> None:
    """Make ``table[s]`` the product of ``1 - reach`` over all sensors outside ``s``."""
    table[0] = 1.0
    bit = 1
    for sensor in range(reach.size):
        fails = 1.0 - reach[sensor]
        low, high = table[:bit], table[bit : 2 * bit]
        for s in range(bit):
            high[s] = low[s]
            low[s] *= fails
        bit *= 2


@compiled
def silence_table(probability: Vector, reach: Matrix, leak: Vector, owner: Sets) -> Lattice:
    """The table A of the probability that no sensor outside of each set is on."""
    silence, quiet, factor = np.empty(1 << leak.size), np.empty(1 << leak.size), np.empty(1 << leak.size)
    quiet_products(leak, silence)
    for r in range(probability.size):
        if r == 0 or owner[r] != owner[r - 1]:
            factor[:] = 1.0
        quiet_products(reach[r], quiet)
        for s in range(quiet.size):
            factor[s] += probability[r] * (quiet[s] - 1.0)
        if r + 1 == probability.size or owner[r + 1] != owner[r]:
            for s in range(quiet.size):
                silence[s] *= factor[s]
    return silence


@compiled
def mode_tables(probability: Vector, reach: Matrix, leak: Vector, owner: Sets) -> tuple[Lattice, Matrix]:
    """A, and for every mode the probability p R / D that it is active, given that nothing outside of each set is on."""
    silence, quiet = np.empty(1 << leak.size), np.empty((probability.size, 1 << leak.size))
    factor = np.empty(1 << leak.size)
    quiet_products(leak, silence)
    first = 0
    for r in range(probability.size):
        if owner[r] != owner[first] or r == first:
            first = r
            factor[:] = 1.0
        quiet_products(reach[r], quiet[r])
        for s in range(factor.size):
            factor[s] += probability[r] * (quiet[r, s] - 1.0)
        if r + 1 == probability.size or owner[r + 1] != owner[r]:
            for s in range(factor.size):
                silence[s] *= factor[s]
                factor[s] = 1.0 / factor[s]
            for mode in range(first, r + 1):
                for s in range(factor.size):
                    quiet[mode, s] *= probability[mode] * factor[s]
    return silence, quiet


@compiled
def read_cell(table: Lattice, cell: int, unobserved: int) -> float:
    """The table's value of one cell, summed over the sensors that were not observed."""
    value: float = table[cell]
    inside = unobserved
    while inside != 0:
        value += table[cell | inside]
        inside = (inside - 1) & unobserved
    return value


@compiled
def row_probabilities(silence: Lattice, cells: Sets, unobserved: Sets) -> Vector:
    """The probability of every cell; ``unobserved`` are the sensors that each cell leaves open."""
    table, found = silence.copy(), np.empty(cells.size)
    subset_sums(table, -1.0)
    for k in range(cells.size):
        found[k] = max(read_cell(table, cells[k], unobserved[k]), LEAST_PROBABILITY)
    return found


@compiled
def lossy_log_likelihood(
    probability: Vector, reach: Matrix, leak: Vector, owner: Sets, cells: Sets, unobserved: Sets, weights: Vector
) -> float:
    """The log-likelihood of weighted cells: one transform, whatever the number of modes."""
    found = row_probabilities(silence_table(probability, reach, leak, owner), cells, unobserved)
    total = 0.0
    for k in range(found.size):
        total += weights[k] * np.log(found[k])
    return total


@compiled
def lossy_scores(
    probability: Vector, reach: Matrix, leak: Vector, owner: Sets, cells: Sets, unobserved: Sets
) -> tuple[Vector, Matrix]:
    """The probability of every cell, and the derivatives of its logarithm.

    The derivatives have one row per cell: by the probability of every mode, by every reach that is not 0 (mode by
    mode, sensors in order), and by every leak. One transform per mode.
    """
    n_modes, n_sensors = reach.shape
    n_edges = np.sum(reach > 0.0)
    silence, active = mode_tables(probability, reach, leak, owner)
    table = silence.copy()
    subset_sums(table, -1.0)
    found, scores = np.empty(cells.size), np.empty((cells.size, n_modes + n_edges + n_sensors))
    for k in range(cells.size):
        found[k] = max(read_cell(table, cells[k], unobserved[k]), LEAST_PROBABILITY)
    _score_sensors(table, leak, cells, unobserved, found, scores[:, n_modes + n_edges :])
    edge = n_modes
    for r in range(n_modes):
        for s in range(table.size):
            table[s] = silence[s] * active[r, s]
        subset_sums(table, -1.0)
        for k in range(cells.size):
            scores[k, r] = max(read_cell(table, cells[k], unobserved[k]), 0.0) / found[k]
        n_here = np.sum(reach[r] > 0.0)
        _score_sensors(table, reach[r], cells, unobserved, found, scores[:, edge : edge + n_here])
        edge += n_here
    _score_modes(probability, owner, scores)
    return found, scores


@compiled
def _score_sensors(table: Lattice, reach: Vector, cells: Sets, unobserved: Sets, found: Vector, scores: Matrix) -> None:
    """Derivatives of log P by the reach of one mode, or by the leaks, from the table of P with the mode active."""
    column = 0
    for sensor in range(reach.size):
        if reach[sensor] == 0.0:
            continue
        bit, scale = 1 << sensor, 1.0 / (1.0 - reach[sensor])
        for k in range(cells.size):
            if unobserved[k] & bit:
                scores[k, column] = 0.0
                continue
            off = max(read_cell(table, cells[k] & ~bit, unobserved[k]), 0.0)
            scores[k, column] = (scale if cells[k] & bit else -scale) * off / found[k]
        column += 1


@compiled
def _score_modes(probability: Vector, owner: Sets, scores: Matrix) -> None:
    """Turn the posterior of every mode, in the first columns, into the derivative by its probability."""
    first = 0
    while first < probability.size:
        last = first
        while last < probability.size and owner[last] == owner[first]:
            last += 1
        rest = 1.0 - np.sum(probability[first:last])
        for k in range(scores.shape[0]):
            off = (1.0 - np.sum(scores[k, first:last])) / rest
            for r in range(first, last):
                scores[k, r] = scores[k, r] / probability[r] - off
        first = last


@compiled
def sums_without(values: Lattice, sums: Vector) -> float:
    """Make ``sums[i]`` the sum over all sets without sensor i, and return the sum over all; ``values`` are lost."""
    half = values.size
    for sensor in range(sums.size - 1, -1, -1):
        half //= 2
        low, high = values[:half], values[half : 2 * half]
        total = 0.0
        for s in range(half):
            total += low[s]
            low[s] += high[s]
        sums[sensor] = total
    everything: float = values[0]
    return everything


@compiled
def lossy_em(
    probability: Vector,
    reach: Matrix,
    leak: Vector,
    owner: Sets,
    fixed: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    groups: tuple[Sets, Sets, Sets],
    weights: Vector,
    unobserved: Sets,
    n_steps: int,
    tolerance: float,
) -> float:
    """Expectation and maximisation in place; the log-likelihood before the last step.

    ``fixed`` are the probabilities and the reaches that stay, ``groups`` the cells as ``spread_cells`` takes them. Ends
    early where ten steps gain less than ``tolerance``. By Fisher's identity the expected numbers of activations and
    firings follow from the slope, which goes backwards through the transform: two of them, whatever the modes.
    """
    n_rows, below, sums = weights.sum(), -np.inf, np.empty(leak.size)
    by_silence, log_likelihood = np.empty(1 << leak.size), 0.0
    for step in range(n_steps):
        silence, active = mode_tables(probability, reach, leak, owner)
        found = row_probabilities(silence, groups[2], unobserved)
        log_likelihood = np.sum(weights * np.log(found))
        if step % STEPS_PER_LOOK == STEPS_PER_LOOK - 1:
            if log_likelihood - below < tolerance:
                break
            below = log_likelihood
        spread_cells(weights / found, groups[0], groups[1], groups[2], by_silence)
        superset_sums(by_silence, -1.0)
        by_silence *= silence
        for r in range(probability.size):
            active[r] *= by_silence
            n_active = max(sums_without(active[r], sums), FEWEST_ACTIVATIONS)
            for i in range(leak.size):
                if reach[r, i] > 0.0 and not fixed[1][r, i]:
                    reach[r, i] = min(max(reach[r, i] * (1.0 - sums[i] / n_active), NEARLY_NONE), NEARLY_SURE)
            if not fixed[0][r]:
                probability[r] = min(max(n_active / n_rows, RAREST), MOST_FREQUENT)
        sums_without(by_silence, sums)
        for i in range(leak.size):
            leak[i] = min(max(leak[i] * (1.0 - sums[i] / n_rows), NEARLY_NONE), LARGEST_LEAK)
    return log_likelihood


@compiled
def spectrum_em(
    background: Lattice, groups: tuple[Sets, Sets, Sets], weights: Vector, unobserved: Sets, rate: Lattice, n_steps: int
) -> None:
    """Let the rates of sure sources behind *every* set grow on a fixed background (its silence table), in place.

    A lossy source shows as many sure ones: their rates are about its own, times the probability of what it reaches.
    """
    n_rows = weights.sum()
    by_rate = np.empty(rate.size)
    for _ in range(n_steps):
        silence = rate.copy()
        subset_sums(silence, 1.0)
        total = silence[-1]
        for s in range(silence.size):
            silence[s] = background[s] * np.exp(silence[s] - total)
        found = row_probabilities(silence, groups[2], unobserved)
        spread_cells(weights / found, groups[0], groups[1], groups[2], by_rate)
        superset_sums(by_rate, -1.0)
        by_rate *= silence
        superset_sums(by_rate, 1.0)
        everything = by_rate[0]
        for s in range(1, rate.size):
            if rate[s] > 0.0:
                probability = -np.expm1(-rate[s]) * (1.0 + (by_rate[s] - everything) / n_rows)
                probability = min(probability, MOST_FREQUENT)
                rate[s] = 0.0 if probability < SMALLEST_RATE else -np.log1p(-probability)
