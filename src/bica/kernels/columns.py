"""Columns of a binary table as bit sets over its rows: cheap where whole columns are compared, dear for single rows."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled

Square = NDArray[np.float64]


@compiled
def count_bits(word: np.uint64) -> np.uint64:
    """How many bits are set; compilers know this idiom and use their own instruction."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def transpose_bits(words: Words, columns: Words) -> None:
    """Set bit ``row % 64`` of ``columns[i, row // 64]`` where bit ``i`` of the row is set; time grows with the ones."""
    for row in range(words.shape[0]):
        place, bit = row // 64, np.uint64(1) << np.uint64(row % 64)
        for word in range(words.shape[1]):
            left = words[row, word]
            while left != np.uint64(0):
                lowest = left & (~left + np.uint64(1))
                columns[64 * word + np.int64(count_bits(lowest - np.uint64(1))), place] |= bit
                left ^= lowest


@compiled
def add_bit_weights(words: Words, weights: NDArray[np.float64], totals: NDArray[np.float64]) -> None:
    """Add the weight of every row to the totals of the columns whose bits are set; time grows with the ones."""
    for row in range(words.shape[0]):
        for word in range(words.shape[1]):
            left = words[row, word]
            while left != np.uint64(0):
                lowest = left & (~left + np.uint64(1))
                totals[64 * word + np.int64(count_bits(lowest - np.uint64(1)))] += weights[row]
                left ^= lowest


@compiled
def add_common_bits(
    left: Words, right: Words, half: bool, scale: float, lines: NDArray[np.int64], counts: Square
) -> None:
    """Add ``scale`` times the number of rows that columns i and k share to ``counts[i, k]``, for every i of ``lines``.

    With ``half``, for two equal tables, only ``k <= i`` is counted.
    """
    for i in lines:
        for k in range(i + 1 if half else right.shape[0]):
            common = np.uint64(0)
            for word in range(left.shape[1]):
                common += count_bits(left[i, word] & right[k, word])
            counts[i, k] += scale * np.float64(common)


@compiled
def block_histogram(
    columns: Words, places: NDArray[np.int64], weights: NDArray[np.float64], histogram: NDArray[np.float64]
) -> None:
    """Add the weight of every row to the cell of the histogram that its bits in the columns ``places`` spell."""
    for word in range(columns.shape[1]):
        for bit in range(min(64, weights.size - 64 * word)):
            cell = np.int64(0)
            for k in range(places.size):
                cell |= np.int64((columns[places[k], word] >> np.uint64(bit)) & np.uint64(1)) << k
            histogram[cell] += weights[64 * word + bit]
