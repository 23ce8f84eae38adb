"""Columns worth a try beside those that are there."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.bool_]


def candidates(mixing: NDArray[np.bool_]) -> list[Column]:
    """Single sensors and pairs; every column with one sensor more or less; what two overlapping columns make together.

    The order depends on the columns alone. There are some (m² + n²) / 2 + m n of them for m sensors and n sources.

    >>> mixing = np.array([[1, 1, 0], [0, 1, 1]], dtype=bool).T  # the sources {0, 1} and {1, 2}
    >>> [np.flatnonzero(column).tolist() for column in candidates(mixing)]
    [[0], [1], [2], [0, 2], [0, 1, 2]]
    """
    one = np.eye(len(mixing), dtype=bool)
    columns = [*one, *(one[i] | one[k] for i, k in combinations(range(len(mixing)), 2))]
    for column in mixing.T:
        columns += [column ^ sensor for sensor in one]
    for left, right in combinations(mixing.T, 2):
        columns += [left | right, left & right, left & ~right, right & ~left]
    present = {column.tobytes() for column in mixing.T}
    distinct = {column.tobytes(): column for column in columns if column.any()}
    return [column for name, column in distinct.items() if name not in present]
