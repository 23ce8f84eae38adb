"""Sensor noise on the subset lattice: one 2 x 2 matrix a sensor, applied to a table of length 2^m in place."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled

Table = NDArray[np.float64]


@compiled
def apply_matrices(values: Table, matrices: NDArray[np.float64]) -> None:
    """For every sensor, send the pair (quiet, on) of every other state through that sensor's matrix."""
    for sensor in range(matrices.shape[0]):
        bit = 1 << sensor
        to_quiet_0, to_quiet_1 = matrices[sensor, 0, 0], matrices[sensor, 0, 1]
        to_on_0, to_on_1 = matrices[sensor, 1, 0], matrices[sensor, 1, 1]
        for start in range(0, values.size, 2 * bit):
            for s in range(start, start + bit):
                quiet, on = values[s], values[s + bit]
                values[s] = to_quiet_0 * quiet + to_quiet_1 * on
                values[s + bit] = to_on_0 * quiet + to_on_1 * on


def channel_matrices(false_alarm: NDArray[np.float64], miss: NDArray[np.float64]) -> NDArray[np.float64]:
    """Column: what was there; row: what is shown. ``[[1 - a, b], [a, 1 - b]]`` for every sensor."""
    return np.array([[1 - false_alarm, miss], [false_alarm, 1 - miss]]).transpose(2, 0, 1).copy()


def apply_channel(values: Table, false_alarm: NDArray[np.float64], miss: NDArray[np.float64]) -> None:
    """Turn the distribution of what is there into the distribution of what is shown."""
    apply_matrices(values, channel_matrices(false_alarm, miss))


def apply_channel_transposed(values: Table, false_alarm: NDArray[np.float64], miss: NDArray[np.float64]) -> None:
    """Carry a derivative by what is shown back to a derivative by what is there."""
    apply_matrices(values, channel_matrices(false_alarm, miss).transpose(0, 2, 1).copy())


def undo_channel(values: Table, false_alarm: NDArray[np.float64], miss: NDArray[np.float64]) -> None:
    """Invert ``apply_channel``; the rates of a sensor must not add up to 1."""
    apply_matrices(values, np.linalg.inv(channel_matrices(false_alarm, miss)).astype(np.float64))
