"""The subset lattice, a table of length 2^m with one value per set of m sensors: sums, the paper's recursion, noise.

Each transform works in place, one sensor at a time. Low sensors go first, a cache-sized tile at a time. The inner
loops run over slices from 0, which is what lets them compile to vector instructions.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled

Lattice = NDArray[np.float64]  # (2^m,), one value for every set of m sensors
TILE = 1 << 12  # cells: 32 KiB of float64, which fits the fastest cache
TOGETHER = 3  # sensors that are worked on at once, since alone their slices are too short for vector instructions
GROUP = 1 << TOGETHER  # cells of their lattice


@compiled
def _add_one_sensor(values: Lattice, bit: int, sign: float, upwards: bool) -> None:
    giver, taker = (0, bit) if upwards else (bit, 0)
    for start in range(0, values.size, 2 * bit):
        given, taken = values[start + giver : start + giver + bit], values[start + taker : start + taker + bit]
        for s in range(bit):
            taken[s] += sign * given[s]


@compiled
def _add_three_sensors(values: Lattice, sign: float, upwards: bool) -> None:
    """The first three sensors at once."""
    groups = values.reshape(-1, GROUP)
    for k in range(groups.shape[0]):
        for bit in (1, 2, 4):
            for s in range(GROUP):
                if (s & bit != 0) == upwards:
                    groups[k, s] += sign * groups[k, s ^ bit]


@compiled
def _add_all_sensors(values: Lattice, sign: float, upwards: bool) -> None:
    bit = 1
    if values.size >= GROUP:
        _add_three_sensors(values, sign, upwards)
        bit = GROUP
    while bit < values.size:
        _add_one_sensor(values, bit, sign, upwards)
        bit *= 2


@compiled
def _add_by_tiles(values: Lattice, sign: float, upwards: bool) -> None:
    tile = min(TILE, values.size)
    for start in range(0, values.size, tile):
        _add_all_sensors(values[start : start + tile], sign, upwards)
    bit = tile
    while bit < values.size:
        _add_one_sensor(values, bit, sign, upwards)
        bit *= 2


@compiled
def subset_sums(values: Lattice, sign: float) -> None:
    """Make ``values[s]`` the sum over all subsets of bit set ``s`` (zeta); ``sign=-1`` undoes ``sign=1`` (Moebius)."""
    _add_by_tiles(values, sign, True)


@compiled
def superset_sums(values: Lattice, sign: float) -> None:
    """Make ``values[s]`` the sum over all supersets of ``s``: the transpose of ``subset_sums``, likewise undone."""
    _add_by_tiles(values, sign, False)


# The paper's recursion without recursion, on the subset lattice, and how often sets of sensors were quiet.
#
# Let A(U) be the weight of the rows in which nothing outside the set U is on (``subset_sums`` of a histogram). In an OR
# mixture A(U) is proportional to the product of the off-probabilities q_g = 1 - p_g of all sources g not inside U, so
#
#     log A(U) - log A(0) = sum over the sources g inside U of -log q_g,
#
# and a Moebius transform of log A finds every q_g. The paper walks the same lattice sensor by sensor, in order to clip
# and prune on the way: a probability below the threshold becomes 0 (off-probability 1) before later sensors use it.
#
# Invariant: before sensor k the table consists of blocks of 2^k cells, one for every way to condition the later sensors
# on being quiet (bit 0) or to leave them free (bit 1). Cell 0 of a block is the weight of its rows in which the first k
# sensors are all quiet; cell s > 0 is the off-probability of the source behind the set s of the first k sensors, as the
# rows of that block show it. Two neighbouring blocks, "sensor k quiet" and "sensor k free", merge into one: a source s
# of the free block is either s alone, which the quiet block shows too, or s with sensor k, so
#
#     q(s with k) = q_free(s) / q_quiet(s),        q(k alone) = weight_quiet / weight_free   (cell 0 of both).


@compiled
def off_probabilities(silence: Lattice, min_probability: float) -> None:
    """Turn silences A(U), all positive, into off-probabilities in place.

    A source whose probability is below ``min_probability`` at any step is dropped there: it is off for certain.
    """
    surely_off = 1.0 - min_probability
    bit = 1
    while bit < silence.size:
        for start in range(0, silence.size, 2 * bit):
            quiet, free = silence[start : start + bit], silence[start + bit : start + 2 * bit]
            alone = quiet[0] / free[0]
            for rest in range(1, bit):
                off = free[rest] / quiet[rest]
                free[rest] = 1.0 if off > surely_off else off
            free[0] = 1.0 if alone > surely_off else alone
        bit <<= 1


@compiled
def off_probabilities_of_allowed(
    table: Lattice, silence: Lattice, allowed: NDArray[np.bool_], min_probability: float
) -> None:
    """The same where silences may be 0 and only ``allowed`` sets may be sources; ``table`` is a copy of ``silence``."""
    surely_off = 1.0 - min_probability
    bit = 1
    while bit < table.size:
        for start in range(0, table.size, 2 * bit):
            quiet, free = table[start : start + bit], table[start + bit : start + 2 * bit]
            if silence[start + bit - 1] == 0.0:  # sensor k is never quiet in this block: a lone source, always on
                for rest in range(1, bit):
                    quiet[rest] = free[rest]
                    free[rest] = 1.0
                free[0] = 0.0
                continue
            alone = quiet[0] / free[0] if free[0] > 0.0 else 1.0
            for rest in range(1, bit):
                off = free[rest] / quiet[rest] if quiet[rest] > 0.0 and allowed[rest + bit] else 1.0
                free[rest] = 1.0 if off > surely_off else off
            free[0] = 1.0 if alone > surely_off else alone
        bit <<= 1


@compiled
def clique_table(neighbours: NDArray[np.int64], allowed: NDArray[np.bool_]) -> None:
    """Mark the sets in which every two sensors are neighbours; ``neighbours[i]`` is a bit set."""
    allowed[0] = True
    for sensor in range(neighbours.size):
        bit = 1 << sensor
        for rest in range(bit):
            allowed[bit + rest] = allowed[rest] and rest & ~neighbours[sensor] == 0


@compiled
def quiet_weight(patterns: Words, weights: NDArray[np.float64], sensors: NDArray[np.uint64]) -> float:
    """The weight of the patterns in which none of ``sensors`` (one bit set over the words) is on."""
    total = 0.0
    for row in range(patterns.shape[0]):
        touched = np.uint64(0)
        for word in range(sensors.size):
            touched |= patterns[row, word] & sensors[word]
        if touched == 0:
            total += weights[row]
    return total


# Sources and sensor noise on the subset lattice, one source or one sensor at a time, in place.
#
# The loops have the shape of those above: low sensors first, tile by tile, over slices from 0.


@compiled
def mix_source(table: Lattice, sensors: int, probability: float) -> None:
    """Add a source to the distribution: it switches on the bit set ``sensors`` with this probability.

    Nothing is ever subtracted, so impossible patterns stay exactly 0 and rare ones keep their digits.
    """
    for pattern in range(table.size):
        if pattern & sensors != sensors:
            moved = probability * table[pattern]
            table[pattern] *= 1.0 - probability
            table[pattern | sensors] += moved


@compiled
def mix_lossy_source(
    table: Lattice, sensors: NDArray[np.int64], reach: NDArray[np.float64], probability: float
) -> None:
    """Add a source to the distribution: while on, it switches on each of ``sensors`` with the probability ``reach``.

    The share of the distribution under the active source passes one edge after the other, by sums of positive numbers.
    """
    shown = table.copy()
    for edge in range(sensors.size):
        bit, lost = 1 << sensors[edge], 1.0 - reach[edge]
        for start in range(0, table.size, 2 * bit):
            for pattern in range(start, start + bit):
                shown[pattern | bit] += reach[edge] * shown[pattern]
                shown[pattern] *= lost
    for pattern in range(table.size):
        table[pattern] = (1.0 - probability) * table[pattern] + probability * shown[pattern]


NoiseRates = NDArray[np.float64]  # (n_sensors,), how often each sensor raises a false alarm, or misses
Matrices = NDArray[np.float64]  # (n_sensors, 2, 2)


@compiled
def _apply_one_sensor(values: Lattice, bit: int, matrix: NDArray[np.float64]) -> None:
    quiet_to_quiet, on_to_quiet = matrix[0, 0], matrix[0, 1]
    quiet_to_on, on_to_on = matrix[1, 0], matrix[1, 1]
    for start in range(0, values.size, 2 * bit):
        quiet, on = values[start : start + bit], values[start + bit : start + 2 * bit]
        for s in range(bit):
            was_quiet, was_on = quiet[s], on[s]
            quiet[s] = quiet_to_quiet * was_quiet + on_to_quiet * was_on
            on[s] = quiet_to_on * was_quiet + on_to_on * was_on


@compiled
def _apply_three_sensors(values: Lattice, matrices: Matrices) -> None:
    """The first three sensors at once."""
    groups = values.reshape(-1, GROUP)
    for k in range(groups.shape[0]):
        for sensor in range(TOGETHER):
            bit = 1 << sensor
            for s in range(GROUP):
                if s & bit == 0:
                    was_quiet, was_on = groups[k, s], groups[k, s ^ bit]
                    groups[k, s] = matrices[sensor, 0, 0] * was_quiet + matrices[sensor, 0, 1] * was_on
                    groups[k, s ^ bit] = matrices[sensor, 1, 0] * was_quiet + matrices[sensor, 1, 1] * was_on


@compiled
def _apply_all_sensors(values: Lattice, matrices: Matrices) -> None:
    first = 0
    if values.size >= GROUP:
        _apply_three_sensors(values, matrices)
        first = TOGETHER
    for sensor in range(first, matrices.shape[0]):
        if 1 << sensor < values.size:
            _apply_one_sensor(values, 1 << sensor, matrices[sensor])


@compiled
def apply_matrices(values: Lattice, matrices: Matrices) -> None:
    """Apply the matrix of every sensor, one after the other, to the pairs of values that differ in this sensor only."""
    tile = min(TILE, values.size)
    for start in range(0, values.size, tile):
        _apply_all_sensors(values[start : start + tile], matrices)
    for sensor in range(matrices.shape[0]):
        if 1 << sensor >= tile:
            _apply_one_sensor(values, 1 << sensor, matrices[sensor])


def channel_matrices(false_alarm: NoiseRates, miss: NoiseRates) -> Matrices:
    """``[[1 - a, b], [a, 1 - b]]`` for every sensor: the column is its true state, the row what it shows."""
    return np.array([[1 - false_alarm, miss], [false_alarm, 1 - miss]]).transpose(2, 0, 1).copy()


def apply_channel(values: Lattice, false_alarm: NoiseRates, miss: NoiseRates) -> None:
    """Turn the distribution of what is there into the distribution of what is shown."""
    apply_matrices(values, channel_matrices(false_alarm, miss))


def apply_channel_transposed(values: Lattice, false_alarm: NoiseRates, miss: NoiseRates) -> None:
    """Turn a derivative by the distribution of what is shown into one by the distribution of what is there."""
    apply_matrices(values, channel_matrices(false_alarm, miss).transpose(0, 2, 1).copy())


def undo_channel(values: Lattice, false_alarm: NoiseRates, miss: NoiseRates) -> None:
    """Invert ``apply_channel``; the rates of a sensor must not add up to 1."""
    apply_matrices(values, np.linalg.inv(channel_matrices(false_alarm, miss)).astype(np.float64))
