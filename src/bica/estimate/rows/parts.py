"""Rows in parts: they do not depend on the number of threads that share them, so neither do results."""

import numpy as np
from numpy.typing import NDArray

ROWS_A_PART = 1024


def ranges(rows: NDArray[np.int64], size: int = ROWS_A_PART) -> list[NDArray[np.int64]]:
    """The rows in parts of at most ``size``; one empty part if there are none.

    >>> [part.tolist() for part in ranges(np.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    return [rows[begin : begin + size] for begin in range(0, max(1, rows.size), size)]
