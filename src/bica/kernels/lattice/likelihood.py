"""The exact likelihood of an OR mixture on the subset lattice, and its derivatives.

Tables have length 2^m: ``hidden`` is the distribution of what is there, ``shown`` that of what noisy sensors show. The
data are cells of the shown table, grouped by which sensors were unobserved; in a group those sensors are summed out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.lattice.channel import apply_matrices, mix_source
from bica.kernels.lattice.subsets import Lattice, subset_sums, superset_sums

Sets = NDArray[np.int64]

# Newton's method for the probability of one more source
START_PROBABILITY = 0.05
NEWTON_STEPS = 40  # at most
SHRINK = 0.1  # a step to 0 or below goes to this share of the present probability instead
ALMOST_CERTAIN = 0.98  # a step goes at most halfway there
SETTLED, SETTLED_FLOOR = 1e-4, 1e-9  # relative and absolute change of the probability that ends it


class CellGroups(NamedTuple):
    """Cells of the lattice that were observed, grouped by which sensors were not."""

    unobserved: Sets  # (n_groups,), bit sets of sensors
    starts: Sets  # (n_groups + 1,), where the cells of each group begin
    cells: Sets  # (n_cells,), patterns as bit sets, 0 where unobserved


@compiled
def mix_sources(sources: Sets, probability: NDArray[np.float64], hidden: Lattice) -> None:
    """Make ``hidden`` the pattern distribution of these sources."""
    hidden[:] = 0.0
    hidden[0] = 1.0
    for j in range(sources.size):
        mix_source(hidden, sources[j], probability[j])


@compiled
def read_cells(table: Lattice, unobserved: Sets, starts: Sets, cells: Sets, values: NDArray[np.float64]) -> None:
    """Make ``values`` the table's value of every observed cell, summed over the sensors that its group did not observe.

    A cell with k unobserved sensors takes 2^k additions, the distinct cells of a group at most 2^m together.
    """
    for group in range(unobserved.size):
        gap = unobserved[group]
        for k in range(starts[group], starts[group + 1]):
            values[k] = table[cells[k]]
            inside = gap
            while inside != 0:
                values[k] += table[cells[k] | inside]
                inside = (inside - 1) & gap


@compiled
def spread_cells(values: NDArray[np.float64], unobserved: Sets, starts: Sets, cells: Sets, table: Lattice) -> None:
    """The transpose of ``read_cells``: every cell's value is added to all patterns that it stands for."""
    table[:] = 0.0
    for group in range(unobserved.size):
        gap = unobserved[group]
        for k in range(starts[group], starts[group + 1]):
            table[cells[k]] += values[k]
            inside = gap
            while inside != 0:
                table[cells[k] | inside] += values[k]
                inside = (inside - 1) & gap


@compiled
def candidate_gradient(hidden: Lattice, by_hidden: Lattice, gradient: Lattice) -> None:
    """The derivative of the log-likelihood by the rate of *every* set of sensors, present or not.

    ``by_hidden`` is the derivative by the hidden distribution. Three transforms, whatever the number of sources.
    """
    silence = np.empty(hidden.size)
    for s in range(hidden.size):
        silence[s], gradient[s] = hidden[s], by_hidden[s]
    subset_sums(silence, 1.0)
    superset_sums(gradient, -1.0)
    for s in range(hidden.size):
        gradient[s] *= silence[s]
    superset_sums(gradient, 1.0)
    of_nothing = gradient[0]
    for s in range(hidden.size):
        gradient[s] -= of_nothing


@compiled
def source_gradient(hidden: Lattice, by_hidden: Lattice, sources: Sets) -> NDArray[np.float64]:
    """The same derivative for a few sources only, without subtracting large numbers."""
    gradient = np.empty(sources.size)
    for j in range(sources.size):
        gradient[j] = 0.0
        for s in range(hidden.size):
            gradient[j] += hidden[s] * (by_hidden[s | sources[j]] - by_hidden[s])
    return gradient


@compiled
def with_source_on(hidden: Lattice, source: int, table: Lattice) -> None:
    """The hidden distribution given that the source is on."""
    table[:] = 0.0
    for s in range(hidden.size):
        table[s | source] += hidden[s]


@compiled
def noise_derivative(
    shown: Lattice, sensor: int, false_alarm: float, miss: float, by_miss: bool, weight: float, table: Lattice
) -> None:
    """Add ``weight`` times the derivative of the shown distribution by one sensor's false-alarm or miss rate."""
    bit = 1 << sensor
    scale = weight / (1.0 - false_alarm - miss)
    from_quiet = -false_alarm if by_miss else miss - 1.0
    from_on = 1.0 - false_alarm if by_miss else miss
    for start in range(0, shown.size, 2 * bit):
        for s in range(start, start + bit):
            moved = scale * (from_quiet * shown[s] + from_on * shown[s + bit])
            table[s] += moved
            table[s + bit] -= moved


@compiled
def noise_gradient(
    shown: Lattice, by_shown: Lattice, false_alarm: NDArray[np.float64], miss: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The derivative of the log-likelihood by every sensor's false-alarm and miss rate: (n_sensors, 2)."""
    gradient = np.empty((false_alarm.size, 2))
    for sensor in range(false_alarm.size):
        bit = 1 << sensor
        quiet, on = 0.0, 0.0
        for start in range(0, shown.size, 2 * bit):
            for s in range(start, start + bit):
                difference = by_shown[s] - by_shown[s + bit]
                quiet += shown[s] * difference
                on += shown[s + bit] * difference
        scale = 1.0 / (1.0 - false_alarm[sensor] - miss[sensor])
        gradient[sensor, 0] = scale * ((miss[sensor] - 1.0) * quiet + miss[sensor] * on)
        gradient[sensor, 1] = scale * ((1.0 - false_alarm[sensor]) * on - false_alarm[sensor] * quiet)
    return gradient


@compiled
def source_derivatives(
    hidden: Lattice,
    sources: Sets,
    matrices: NDArray[np.float64],
    groups: CellGroups,
    derivatives: NDArray[np.float64],
) -> None:
    """Make the first rows of ``derivatives`` those of the probability of every cell by the rate of every source."""
    table = np.empty(hidden.size)
    for j in range(sources.size):
        with_source_on(hidden, sources[j], table)
        for s in range(hidden.size):
            table[s] -= hidden[s]
        apply_matrices(table, matrices)
        read_cells(table, groups.unobserved, groups.starts, groups.cells, derivatives[j])


@compiled
def probability_derivatives(
    hidden: Lattice,
    shown: Lattice,
    sources: Sets,
    noise_rates: tuple[NDArray[np.float64], NDArray[np.float64]],
    noise_rates_of: tuple[NDArray[np.float64], NDArray[np.float64]],
    matrices: NDArray[np.float64],
    groups: CellGroups,
    derivatives: NDArray[np.float64],
) -> None:
    """Derivatives of the probability of every cell, by the rate of every source, then by every unknown of the noise.

    ``noise_rates`` are the false-alarm and the miss rates, ``noise_rates_of`` their derivatives by the unknowns, each
    (n_sensors, n_unknown).
    """
    source_derivatives(hidden, sources, matrices, groups, derivatives)
    table = np.empty(hidden.size)
    for unknown in range(noise_rates_of[0].shape[1]):
        table[:] = 0.0
        for sensor in range(matrices.shape[0]):
            false_alarm, miss = noise_rates[0][sensor], noise_rates[1][sensor]
            for by_miss in range(2):
                weight = noise_rates_of[by_miss][sensor, unknown]
                if weight != 0.0:
                    noise_derivative(shown, sensor, false_alarm, miss, by_miss == 1, weight, table)
        read_cells(table, groups.unobserved, groups.starts, groups.cells, derivatives[sources.size + unknown])


@compiled
def best_additions(
    hidden: Lattice,
    matrices: NDArray[np.float64],
    candidates: Sets,
    groups: CellGroups,
    cell_probability: NDArray[np.float64],
    weights: NDArray[np.float64],
    gain: NDArray[np.float64],
    probability: NDArray[np.float64],
) -> None:
    """How much each candidate alone would raise the log-likelihood, and at which probability.

    With r = (cell probability if the candidate is on) / (present one) - 1, the gain at probability p is the weighted
    sum of log(1 + p r), which is concave in p: Newton's method finds its top, kept inside (0, 1).
    """
    table, ratio = np.empty(hidden.size), np.empty(cell_probability.size)
    for c in range(candidates.size):
        with_source_on(hidden, candidates[c], table)
        apply_matrices(table, matrices)
        read_cells(table, groups.unobserved, groups.starts, groups.cells, ratio)
        for k in range(ratio.size):
            ratio[k] = ratio[k] / cell_probability[k] - 1.0
        p = START_PROBABILITY
        for _ in range(NEWTON_STEPS):
            slope, curvature = 0.0, 0.0
            for k in range(ratio.size):
                step = ratio[k] / (1.0 + p * ratio[k])
                slope += weights[k] * step
                curvature += weights[k] * step * step
            new = p + slope / curvature if curvature > 0.0 else p
            new = SHRINK * p if new <= 0.0 else min(new, 0.5 * (p + ALMOST_CERTAIN))
            settled = abs(new - p) < SETTLED * p + SETTLED_FLOOR
            p = new
            if settled:
                break
        probability[c] = p
        gain[c] = 0.0
        for k in range(ratio.size):
            gain[c] += weights[k] * np.log1p(p * ratio[k])
