"""Sources and sensor noise on the subset lattice, one source or one sensor at a time, in place.

The loops have the shape of those in ``subsets.py``: low sensors first, tile by tile, over slices from 0.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.lattice.subsets import GROUP, TILE, TOGETHER, Lattice


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
