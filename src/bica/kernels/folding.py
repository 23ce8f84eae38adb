"""The chance of many rows out of one table over all sets of sensors."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells
from bica.kernels.compiled import compiled


@compiled
def fold_rows(
    table: NDArray[np.float64], weight: NDArray[np.float64], cells: Cells, total: NDArray[np.float64]
) -> None:
    """Sum the table over all sets, each weighed by ``weight[sensor, cell, state]``, for every row of cells.

    The table of 2^m sets stands in the upper half of ``table``. Each sensor, the last one first, halves it into the
    free space below. Rows sorted by their last cells first share the halvings of the cells they have in common:
    time 2^m for one row, about 2^m log(n_rows) for many.
    """
    n_rows, n_sensors = cells.shape
    for row in range(n_rows):
        changed = n_sensors
        while row > 0 and changed > 0 and cells[row, changed - 1] == cells[row - 1, changed - 1]:
            changed -= 1
        for sensor in range(changed - 1, -1, -1):
            size = 1 << sensor
            quiet, on = weight[sensor, cells[row, sensor], 0], weight[sensor, cells[row, sensor], 1]
            folded, low, high = table[size : 2 * size], table[2 * size : 3 * size], table[3 * size : 4 * size]
            for place in range(size):
                folded[place] = quiet * low[place] + on * high[place]
        total[row] = table[1]
