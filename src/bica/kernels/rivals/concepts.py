"""Formal concepts of a table: a set of rows and all columns that these have in common, and the other way round."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled


@compiled
def count_bits(word: np.uint64) -> np.int64:
    """How many bits are set, added up in pairs, then fours, then bytes."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _has(words: Words, row: np.int64, column: np.int64) -> bool:
    return bool((words[row, column // 64] >> np.uint64(column % 64)) & np.uint64(1))


@compiled
def _value(rows: Words, left: Words, weights: NDArray[np.float64], inside: NDArray[np.int64], columns: Words) -> float:
    """The weight of the cells ``left`` under the concept of the rows ``inside``, whose columns go to ``columns[0]``."""
    columns[0] = rows[inside[0]]
    for row in inside:
        columns[0] &= rows[row]
    value = 0.0
    for row in inside:
        for word in range(rows.shape[1]):
            value += weights[row] * count_bits(left[row, word] & columns[0, word])
    return value


@compiled
def grow_concept(
    rows: Words, left: Words, weights: NDArray[np.float64], order: NDArray[np.int64], columns: Words
) -> NDArray[np.int64]:
    """Grow a concept by the best column, one by one, as long as it covers more of the cells ``left``; return its rows.

    Of equal columns the first in ``order`` is taken. ``columns[0]`` receives the columns of the concept.
    """
    inside = np.arange(rows.shape[0])
    columns[0] = 0
    best_value, closed = 0.0, columns.copy()
    grown = True
    while grown:
        grown = False
        before, current = inside, columns[0].copy()
        for column in order:
            if (current[column // 64] >> np.uint64(column % 64)) & np.uint64(1):
                continue
            having = np.array([row for row in before if _has(rows, row, column)], dtype=np.int64)
            if weights[having].sum() * order.size <= best_value:
                continue
            value = _value(rows, left, weights, having, closed)
            if value > best_value:
                best_value, inside, grown = value, having, True
                columns[0] = closed[0]
    return inside


@compiled
def covered_by_smaller(rows: Words, covered: Words) -> None:
    """Mark in each row the bits that are set in some other row that is a strict subset of it."""
    for row in range(rows.shape[0]):
        for other in range(rows.shape[0]):
            inside, equal = True, True
            for word in range(rows.shape[1]):
                if rows[other, word] & ~rows[row, word]:
                    inside = False
                    break
                equal = equal and rows[other, word] == rows[row, word]
            if inside and not equal:
                for word in range(rows.shape[1]):
                    covered[row, word] |= rows[other, word]
