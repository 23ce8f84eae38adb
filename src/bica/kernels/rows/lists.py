"""Lists of numbers of different lengths in one array: the ones of a row, the sensors of a source, its rows.

Such lists are two arrays: list ``k`` is ``items[start[k]:start[k + 1]]``. Turned round, they say for every number which
lists hold it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled


class Lists(NamedTuple):
    """Lists of numbers, one after the other."""

    start: NDArray[np.int64]  # (n_lists + 1,)
    items: NDArray[np.int32]


@compiled
def list_bits(words: Words, n_columns: int) -> Lists:
    """The columns whose bit is set, for every row of ``words``."""
    start = np.zeros(words.shape[0] + 1, np.int64)
    for row in range(words.shape[0]):
        n_set = 0
        for word in words[row]:
            while word:
                word &= word - np.uint64(1)
                n_set += 1
        start[row + 1] = start[row] + n_set
    items = np.empty(start[-1], np.int32)
    for row in range(words.shape[0]):
        place = start[row]
        for column in range(n_columns):
            if words[row, column // 64] >> np.uint64(column % 64) & np.uint64(1):
                items[place] = column
                place += 1
    return Lists(start, items)


@compiled
def turned(lists: Lists, n_items: int) -> Lists:
    """For each of ``n_items`` numbers the lists that hold it, ascending."""
    start = np.zeros(n_items + 1, np.int64)
    for item in lists.items:
        start[item + 1] += 1
    for item in range(n_items):
        start[item + 1] += start[item]
    free = start[:-1].copy()
    holders = np.empty(lists.items.size, np.int32)
    for k in range(lists.start.size - 1):
        for place in range(lists.start[k], lists.start[k + 1]):
            holders[free[lists.items[place]]] = k
            free[lists.items[place]] += 1
    return Lists(start, holders)


@compiled
def taken(lists: Lists, chosen: NDArray[np.int64]) -> Lists:
    """Only the chosen lists, in this order."""
    start = np.zeros(chosen.size + 1, np.int64)
    for place in range(chosen.size):
        start[place + 1] = start[place] + lists.start[chosen[place] + 1] - lists.start[chosen[place]]
    items = np.empty(start[-1], np.int32)
    for place in range(chosen.size):
        k = chosen[place]
        items[start[place] : start[place + 1]] = lists.items[lists.start[k] : lists.start[k + 1]]
    return Lists(start, items)


@compiled
def spliced(
    lists: Lists, values: NDArray[np.float64], chosen: NDArray[np.int64], new: Lists, new_values: NDArray[np.float64]
) -> tuple[Lists, NDArray[np.float64]]:
    """The lists with the ``chosen`` ones replaced by ``new``, and the values that go with their items."""
    n_lists = lists.start.size - 1
    source = np.full(n_lists, -1, np.int64)
    for k in range(chosen.size):
        source[chosen[k]] = k
    start = np.zeros(n_lists + 1, np.int64)
    for k in range(n_lists):
        if source[k] < 0:
            start[k + 1] = start[k] + lists.start[k + 1] - lists.start[k]
        else:
            start[k + 1] = start[k] + new.start[source[k] + 1] - new.start[source[k]]
    items, both = np.empty(start[-1], np.int32), np.empty(start[-1])
    for k in range(n_lists):
        if source[k] < 0:
            begin, end = lists.start[k], lists.start[k + 1]
            items[start[k] : start[k + 1]], both[start[k] : start[k + 1]] = lists.items[begin:end], values[begin:end]
        else:
            begin, end = new.start[source[k]], new.start[source[k] + 1]
            items[start[k] : start[k + 1]], both[start[k] : start[k + 1]] = new.items[begin:end], new_values[begin:end]
    return Lists(start, items), both
