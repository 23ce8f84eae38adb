"""Sums over the subset lattice: a table of length 2^m holds one value for every set of m sensors.

Each transform works in place, one sensor at a time. Low sensors go first, a cache-sized tile at a time. The inner
loops run over slices from 0, which is what lets them compile to vector instructions.
"""

import numpy as np
from numpy.typing import NDArray

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
