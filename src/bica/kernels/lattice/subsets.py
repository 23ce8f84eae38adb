"""Sums over the subset lattice: a table of length 2^m holds one value for every set of m sensors.

Each transform works in place, one sensor at a time. Low sensors go first, a cache-sized tile at a time. The inner
loops run over slices from 0, which is what lets them compile to vector instructions.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled

Table = NDArray[np.float64]
TILE = 1 << 12  # 32 KiB of float64, which fits the fastest cache


@compiled
def _add_one_sensor(values: Table, bit: int, sign: float, upwards: bool) -> None:
    giver, taker = (0, bit) if upwards else (bit, 0)
    for start in range(0, values.size, 2 * bit):
        given, taken = values[start + giver : start + giver + bit], values[start + taker : start + taker + bit]
        for s in range(bit):
            taken[s] += sign * given[s]


@compiled
def _add_three_sensors(values: Table, sign: float, upwards: bool) -> None:
    """The first three sensors at once: alone, their slices are too short for vector instructions."""
    groups = values.reshape(-1, 8)
    for k in range(groups.shape[0]):
        for bit in (1, 2, 4):
            for s in range(8):
                if (s & bit != 0) == upwards:
                    groups[k, s] += sign * groups[k, s ^ bit]


@compiled
def _add_all_sensors(values: Table, sign: float, upwards: bool) -> None:
    bit = 1
    if values.size >= 8:
        _add_three_sensors(values, sign, upwards)
        bit = 8
    while bit < values.size:
        _add_one_sensor(values, bit, sign, upwards)
        bit *= 2


@compiled
def _add_by_tiles(values: Table, sign: float, upwards: bool) -> None:
    tile = min(TILE, values.size)
    for start in range(0, values.size, tile):
        _add_all_sensors(values[start : start + tile], sign, upwards)
    bit = tile
    while bit < values.size:
        _add_one_sensor(values, bit, sign, upwards)
        bit *= 2


@compiled
def subset_sums(values: Table, sign: float) -> None:
    """Make ``values[s]`` the sum over all subsets of bit set ``s`` (zeta); ``sign=-1`` undoes ``sign=1`` (Moebius)."""
    _add_by_tiles(values, sign, True)


@compiled
def superset_sums(values: Table, sign: float) -> None:
    """Make ``values[s]`` the sum over all supersets of ``s``: the transpose of ``subset_sums``, likewise undone."""
    _add_by_tiles(values, sign, False)
