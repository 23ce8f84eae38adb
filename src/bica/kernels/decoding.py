"""The cheapest activity behind every set of sensors, and behind what the sensors show of it.

A table holds a cost and a set of active sources for each set of sensors. Costs within ``TIE`` of each other
are equal: then fewer active sources win, and after that the smaller number that their bits spell.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells, Words
from bica.kernels.compiled import compiled

TIE = 1e-9
Costs = NDArray[np.float64]


@compiled
def take_bits(words: Words, columns: NDArray[np.int64], taken: Words) -> None:
    """Make bit ``k`` of each row of ``taken``, which is all zero, that row's bit ``columns[k]`` of ``words``."""
    for row in range(words.shape[0]):
        for k in range(columns.size):
            bit = (words[row, columns[k] // 64] >> np.uint64(columns[k] % 64)) & np.uint64(1)
            taken[row, k // 64] |= bit << np.uint64(k % 64)


@compiled
def _n_bits(words: NDArray[np.uint64]) -> int:
    count = 0
    for word in words:
        while word:
            word &= word - np.uint64(1)
            count += 1
    return count


@compiled
def _ranks_before(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> bool:
    n_left, n_right = _n_bits(left), _n_bits(right)
    if n_left != n_right:
        return n_left < n_right
    for word in range(left.size - 1, -1, -1):
        if left[word] != right[word]:
            return bool(left[word] < right[word])
    return False


@compiled
def add_source(cost: Costs, active: Words, sensors: int, source: int, price: float) -> None:
    """Let one more source switch on the bit set ``sensors`` for this price, which may be negative.

    Sets come in falling order: a set that holds all of ``sensors`` is read before anything is written to it,
    and the others are never written to. So the source is counted once.
    """
    candidate = np.empty(active.shape[1], np.uint64)
    for before in range(cost.size - 1, -1, -1):
        after, value = before | sensors, cost[before] + price
        if np.isinf(value) or value > cost[after] + TIE:
            continue
        candidate[:] = active[before]
        candidate[source // 64] |= np.uint64(1) << np.uint64(source % 64)
        if value < cost[after] - TIE or _ranks_before(candidate, active[after]):
            cost[after] = value
            active[after] = candidate


@compiled
def _fold(cost: Costs, active: Words, size: int, if_quiet: float, if_on: float) -> None:
    """Fill ``[size:2 * size]`` with the better half of ``[2 * size:4 * size]`` at each place."""
    for place in range(size, 2 * size):
        quiet, on = place + size, place + 2 * size
        value_quiet, value_on = cost[quiet] + if_quiet, cost[on] + if_on
        is_on = value_on < value_quiet - TIE
        if not is_on and value_on <= value_quiet + TIE:
            is_on = _ranks_before(active[on], active[quiet])
        cost[place] = value_on if is_on else value_quiet
        active[place] = active[on if is_on else quiet]


@compiled
def decode_cells(cost: Costs, active: Words, penalty: NDArray[np.float64], cells: Cells, best: Words) -> None:
    """Find the cheapest activity behind each row of cells, given ``penalty[sensor, cell, state]``.

    The table of 2^m sets stands in the upper half of ``cost`` and ``active``. Each sensor, the last one first,
    halves it into the free space below, down to one entry. Rows sorted by their last cells first share the
    halvings of the cells they have in common: time 2^m for one row, m 2^m for all possible ones.
    """
    n_rows, n_sensors = cells.shape
    for row in range(n_rows):
        changed = n_sensors
        while row > 0 and changed > 0 and cells[row, changed - 1] == cells[row - 1, changed - 1]:
            changed -= 1
        for sensor in range(changed - 1, -1, -1):
            price = penalty[sensor, cells[row, sensor]]
            _fold(cost, active, 1 << sensor, price[0], price[1])
        best[row] = active[1]
