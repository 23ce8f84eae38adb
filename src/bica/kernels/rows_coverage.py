"""What the active sources leave unexplained."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.rows_gains import Cells, Sources
from bica.kernels.rows_lists import Lists


class Coverage(NamedTuple):
    """Cells under the active sources, and the ones outside, by weight."""

    unexplained: Lists  # of each row, the sensors that are on though no active source reaches them
    ones: NDArray[np.float64]  # (n_sensors,), covered cells that show 1
    zeros: NDArray[np.float64]  # (n_sensors,), covered cells that show 0


@compiled
def cover_rows(rows: NDArray[np.int64], cells: Cells, columns: Lists, active: Lists, n_sensors: int) -> Coverage:
    """Cover the given rows by their active sources; ``active`` has a list for every row."""
    shown, covered = np.zeros(n_sensors, np.uint8), np.full(n_sensors, -1, np.int64)
    ones, zeros, start = np.zeros(n_sensors), np.zeros(n_sensors), np.zeros(rows.size + 1, np.int64)
    n_most = 0
    for row in rows:
        n_most += cells.ones.start[row + 1] - cells.ones.start[row]
    left = np.empty(n_most, np.int32)
    size = 0
    for k in range(rows.size):
        row = rows[k]
        mine = cells.ones.items[cells.ones.start[row] : cells.ones.start[row + 1]]
        gaps = cells.gaps.items[cells.gaps.start[row] : cells.gaps.start[row + 1]]
        shown[mine] = 1
        shown[gaps] = 2
        for at in range(active.start[row], active.start[row + 1]):
            source = active.items[at]
            for sensor in columns.items[columns.start[source] : columns.start[source + 1]]:
                if covered[sensor] != k:
                    covered[sensor] = k
                    if shown[sensor] == 1:
                        ones[sensor] += cells.weights[row]
                    elif shown[sensor] == 0:
                        zeros[sensor] += cells.weights[row]
        for sensor in mine:
            if covered[sensor] != k:
                left[size] = sensor
                size += 1
        start[k + 1] = size
        shown[mine] = 0
        shown[gaps] = 0
    return Coverage(Lists(start, left[:size].copy()), ones, zeros)


@compiled
def gain_of_rows(rows: NDArray[np.int64], cells: Cells, sources: Sources, active: Lists) -> NDArray[np.float64]:
    """What the active sources gain in each of these rows against none."""
    says, columns = sources.says, sources.columns
    shown, covered = np.zeros(says.shape[1], np.uint8), np.full(says.shape[1], -1, np.int64)
    gain = np.zeros(rows.size)
    for k in range(rows.size):
        row = rows[k]
        mine = cells.ones.items[cells.ones.start[row] : cells.ones.start[row + 1]]
        gaps = cells.gaps.items[cells.gaps.start[row] : cells.gaps.start[row + 1]]
        shown[mine] = 1
        shown[gaps] = 2
        for at in range(active.start[row], active.start[row + 1]):
            source = active.items[at]
            gain[k] += sources.log_odds[source]
            for sensor in columns.items[columns.start[source] : columns.start[source + 1]]:
                if covered[sensor] != k:
                    covered[sensor] = k
                    gain[k] += says[shown[sensor], sensor]
        shown[mine] = 0
        shown[gaps] = 0
    return gain
