"""Sums over the subset lattice: a table of length 2^m holds one value for every set of m sensors.

Each transform works in place, one sensor at a time. The inner loops run over neighbouring cells so that
they compile to vector instructions, and low sensors go first, a cache-sized tile at a time.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled

Table = NDArray[np.float64]
TILE = 1 << 13  # 64 KiB of float64, which fits the fast caches


@compiled
def _add_upwards(values: Table, low_bit: int, high_bit: int, sign: float) -> None:
    bit = low_bit
    while bit < high_bit:
        for start in range(0, values.size, 2 * bit):
            for s in range(start, start + bit):
                values[s + bit] += sign * values[s]
        bit <<= 1


@compiled
def _add_downwards(values: Table, low_bit: int, high_bit: int, sign: float) -> None:
    bit = low_bit
    while bit < high_bit:
        for start in range(0, values.size, 2 * bit):
            for s in range(start, start + bit):
                values[s] += sign * values[s + bit]
        bit <<= 1


@compiled
def subset_sums(values: Table, sign: float) -> None:
    """Make ``values[s]`` the sum over all subsets of bit set ``s`` (zeta); ``sign=-1`` undoes ``sign=1`` (Moebius)."""
    tile = min(TILE, values.size)
    for start in range(0, values.size, tile):
        _add_upwards(values[start : start + tile], 1, tile, sign)
    _add_upwards(values, tile, values.size, sign)


@compiled
def superset_sums(values: Table, sign: float) -> None:
    """Make ``values[s]`` the sum over all supersets of ``s``: the transpose of ``subset_sums``, likewise undone."""
    tile = min(TILE, values.size)
    for start in range(0, values.size, tile):
        _add_downwards(values[start : start + tile], 1, tile, sign)
    _add_downwards(values, tile, values.size, sign)
