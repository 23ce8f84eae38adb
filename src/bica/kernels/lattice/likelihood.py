"""The exact likelihood of an OR mixture on the subset lattice, and its derivatives.

Tables have length 2^m: ``hidden`` is the distribution of what is there, ``shown`` that of what noisy sensors show. The
data are cells of the shown table, grouped by which sensors were unobserved; in a group those sensors are summed out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.lattice.subsets import Lattice, mix_source, subset_sums, superset_sums

Sets = NDArray[np.int64]

# Newton's method for the probability of one more source
START_PROBABILITY = 0.05
NEWTON_STEPS = 40  # at most
SHRINK = 0.1  # a step to 0 or below goes to this share of the present probability instead
ALMOST_CERTAIN = 0.98  # a step goes at most halfway there
SETTLED, SETTLED_FLOOR = 1e-3, 1e-9  # relative and absolute change of the probability that ends it (a flat top)


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
def with_source_on(hidden: Lattice, source: int, table: Lattice) -> None:
    """The hidden distribution given that the source is on."""
    table[:] = 0.0
    for s in range(hidden.size):
        table[s | source] += hidden[s]


@compiled
def cells_with_source_on(
    shown: Lattice,
    source: int,
    matrices: NDArray[np.float64],
    groups: CellGroups,
    table: Lattice,
    values: NDArray[np.float64],
) -> None:
    """Make ``values`` the probability of every observed cell given that the source is on.

    A sensor that is switched on errs by itself, whatever else is there, and the others show what they would show
    anyway. So no transform is needed, only sums over the sensors of the source S:

        P(x | S on) = prod_{i in S} P(x_i | on)  sum over all states of the sensors in S of P(x).

    ``table`` is room for the sums of all cells, where that is quicker than one cell at a time.
    """
    n_sensors = matrices.shape[0]
    for group in range(groups.unobserved.size):
        gap, first, last = groups.unobserved[group], groups.starts[group], groups.starts[group + 1]
        summed, ways = source | gap, 1
        for sensor in range(n_sensors):
            ways <<= (summed >> sensor) & 1
        if AT_ONCE * (last - first) * ways > shown.size:
            _sum_out(shown, summed, n_sensors, table)
            for k in range(first, last):
                values[k] = table[groups.cells[k] & ~summed]
        else:
            for k in range(first, last):
                rest = groups.cells[k] & ~summed
                values[k], inside = shown[rest], summed
                while inside != 0:
                    values[k] += shown[rest | inside]
                    inside = (inside - 1) & summed
        for sensor in range(n_sensors):
            if (source & ~gap) >> sensor & 1:
                quiet, on = matrices[sensor, 0, 1], matrices[sensor, 1, 1]
                for k in range(first, last):
                    values[k] *= on if groups.cells[k] >> sensor & 1 else quiet


AT_ONCE = 4  # one sum takes as long as this many steps of a sum over the whole lattice


@compiled
def _sum_out(values: Lattice, sensors: int, n_sensors: int, table: Lattice) -> None:
    """Make ``table`` the sums over all states of these sensors, at the cells where they are off."""
    started = False
    for sensor in range(n_sensors - 1, -1, -1):
        if sensors >> sensor & 1:
            bit, source = 1 << sensor, table if started else values
            for start in range(0, values.size, 2 * bit):
                if start & sensors == 0:  # half as many cells with every sensor
                    off, on, both = source[start : start + bit], source[start + bit : start + 2 * bit], table[start:]
                    for s in range(bit):
                        both[s] = off[s] + on[s]
            started = True
    if not started:
        for s in range(values.size):
            table[s] = values[s]


@compiled
def source_derivatives(
    shown: Lattice,
    sources: Sets,
    matrices: NDArray[np.float64],
    groups: CellGroups,
    cell_probability: NDArray[np.float64],
    derivatives: NDArray[np.float64],
) -> None:
    """Make the first rows of ``derivatives`` those of the probability of every cell by the rate of every source."""
    table = np.empty(shown.size)
    for j in range(sources.size):
        cells_with_source_on(shown, sources[j], matrices, groups, table, derivatives[j])
        for k in range(cell_probability.size):
            derivatives[j, k] -= cell_probability[k]


@compiled
def noise_derivatives(
    shown: Lattice,
    noise_rates: tuple[NDArray[np.float64], NDArray[np.float64]],
    noise_rates_of: tuple[NDArray[np.float64], NDArray[np.float64]],
    groups: CellGroups,
    derivatives: NDArray[np.float64],
) -> None:
    """Make ``derivatives`` those of the probability of every cell by every unknown of the noise.

    ``noise_rates`` are the false-alarm and the miss rates, ``noise_rates_of`` their derivatives by the unknowns, each
    (n_sensors, n_unknown). What is there at a sensor follows from what it shows, since its two rates are known.
    """
    derivatives[:] = 0.0
    for group in range(groups.unobserved.size):
        gap = groups.unobserved[group]
        for sensor in range(noise_rates[0].size):
            bit, false_alarm, miss = 1 << sensor, noise_rates[0][sensor], noise_rates[1][sensor]
            if gap & bit:
                continue
            for k in range(groups.starts[group], groups.starts[group + 1]):
                rest = groups.cells[k] & ~bit
                quiet, on, inside = shown[rest], shown[rest | bit], gap
                while inside != 0:
                    quiet += shown[rest | inside]
                    on += shown[rest | inside | bit]
                    inside = (inside - 1) & gap
                sign = -1.0 if groups.cells[k] & bit else 1.0
                scale = sign / (1.0 - false_alarm - miss)
                by_false_alarm = scale * (miss * on - (1.0 - miss) * quiet)
                by_miss = scale * ((1.0 - false_alarm) * on - false_alarm * quiet)
                for unknown in range(derivatives.shape[0]):
                    derivatives[unknown, k] += by_false_alarm * noise_rates_of[0][sensor, unknown]
                    derivatives[unknown, k] += by_miss * noise_rates_of[1][sensor, unknown]


@compiled
def best_additions(
    shown: Lattice,
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
    table, ratio = np.empty(shown.size), np.empty(cell_probability.size)
    for c in range(candidates.size):
        cells_with_source_on(shown, candidates[c], matrices, groups, table, ratio)
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
