"""Rows of a binary table as bit sets in 64-bit words: packing, unpacking and counting equal ones."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled

Words = NDArray[np.uint64]
Cells = NDArray[np.uint8]

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
HASH_SHIFT = np.uint64(29)  # brings the high bits, which are mixed best, down to the low ones
LEAST_SLOTS, SLOTS_PER_ROW = 16, 2  # of a hash table: at most half full, so that a free slot is near


@compiled
def split_bits(stream: NDArray[np.uint64], n_columns: int, words: Words) -> None:
    """Cut one long bit set into rows of ``n_columns`` bits each; ``stream`` has a spare word at its end."""
    for row in range(words.shape[0]):
        for word in range(words.shape[1]):
            place = row * n_columns + 64 * word
            width = min(64, n_columns - 64 * word)
            shift = np.uint64(place % 64)
            bits = stream[place // 64] >> shift
            if place % 64 + width > 64:
                bits |= stream[place // 64 + 1] << (np.uint64(64) - shift)
            words[row, word] = bits & (~np.uint64(0) >> np.uint64(64 - width))


@compiled
def pack_columns(columns: Cells, words: Words) -> None:
    """Set bit ``i % 64`` of ``words[row, i // 64]`` where ``columns[i, row]`` is 1; ``columns`` holds 0 and 1 only."""
    for column in range(columns.shape[0]):
        word, shift = column // 64, np.uint64(column % 64)
        for row in range(columns.shape[1]):
            words[row, word] |= np.uint64(columns[column, row]) << shift


@compiled
def pack_sparse(starts: NDArray[np.int64], columns: NDArray[np.int64], words: Words) -> None:
    """Set the bits named by the column numbers of each row, stored as in a CSR matrix."""
    for row in range(words.shape[0]):
        for k in range(starts[row], starts[row + 1]):
            words[row, columns[k] // 64] |= np.uint64(1) << np.uint64(columns[k] % 64)


@compiled
def choose_bits(words: Words, columns: NDArray[np.int64], chosen: Words) -> None:
    """Set bit ``k`` of a row of ``chosen`` where bit ``columns[k]`` of the same row of ``words`` is set."""
    for row in range(words.shape[0]):
        for k in range(columns.size):
            bit = (words[row, columns[k] // 64] >> np.uint64(columns[k] % 64)) & np.uint64(1)
            chosen[row, k // 64] |= bit << np.uint64(k % 64)


@compiled
def add_to_histogram(words: NDArray[np.uint64], weights: NDArray[np.float64], histogram: NDArray[np.float64]) -> None:
    """Add each weight to the cell that its word names."""
    for row in range(words.size):
        histogram[words[row]] += weights[row]


@compiled
def count_into_histogram(words: NDArray[np.uint64], histogram: NDArray[np.float64]) -> None:
    """Add 1 to the cell that each word names."""
    for row in range(words.size):
        histogram[words[row]] += 1.0


@compiled
def _slot(keys: Words, row: int, n_slots: int) -> np.int64:
    """The slot of a hash table in which a row is looked for first; ``n_slots`` is a power of 2."""
    mixed = np.uint64(0)
    for word in range(keys.shape[1]):
        mixed = (mixed ^ keys[row, word]) * HASH_FACTOR
        mixed ^= mixed >> HASH_SHIFT
    return np.int64(mixed & np.uint64(n_slots - 1))


@compiled
def _same(keys: Words, row: int, other: int) -> bool:
    for word in range(keys.shape[1]):
        if keys[row, word] != keys[other, word]:
            return False
    return True


@compiled
def group_equal(keys: Words, first: NDArray[np.int64], group: NDArray[np.int64]) -> int:
    """Number the distinct rows of ``keys`` as they appear; return how many there are.

    ``group[row]`` becomes the number of its distinct row, ``first[number]`` the first row that is equal to it.
    """
    size = LEAST_SLOTS
    while size < SLOTS_PER_ROW * keys.shape[0]:
        size *= 2
    slots = np.empty(size, np.int64)
    slots[:] = -1
    n_groups = 0
    for row in range(keys.shape[0]):
        slot = _slot(keys, row, size)
        while slots[slot] >= 0 and not _same(keys, row, first[slots[slot]]):
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = n_groups
            first[n_groups] = row
            n_groups += 1
        group[row] = slots[slot]
    return n_groups


@compiled
def group_small(
    words: NDArray[np.uint64], place: NDArray[np.int64], first: NDArray[np.int64], group: NDArray[np.int64]
) -> int:
    """Like ``group_equal`` for words that index ``place``, all -1 before; distinct words are numbered as they rise."""
    for row in range(words.size):
        if place[words[row]] < 0:
            place[words[row]] = row
    n_groups = 0
    for word in range(place.size):
        if place[word] >= 0:
            first[n_groups] = place[word]
            place[word] = n_groups
            n_groups += 1
    for row in range(words.size):
        group[row] = place[words[row]]
    return n_groups


def n_words(n_sensors: int) -> int:
    """How many 64-bit words a row of so many sensors takes."""
    return max(1, -(-n_sensors // 64))


def all_observed(n_sensors: int) -> NDArray[np.uint64]:
    """The words of a row in which every cell was observed.

    >>> all_observed(66)
    array([18446744073709551615,                    3], dtype=uint64)
    """
    words: NDArray[np.uint64] = packed(np.ones((1, n_sensors), np.uint8))[0]
    return words


def packed(bits: NDArray[np.bool_] | NDArray[np.uint8]) -> Words:
    """The rows of a table of 0 and 1 as bit sets.

    >>> packed(np.array([[True, False, True]]))
    array([[5]], dtype=uint64)
    """
    words = np.zeros((bits.shape[0], n_words(bits.shape[1])), np.uint64)
    if bits.flags.c_contiguous:
        stream = np.zeros(bits.size // 64 + 2, np.uint64)
        letters = np.packbits(bits.reshape(-1), bitorder="little")  # far faster on one long row than on many short
        stream.view(np.uint8)[: letters.size] = letters
        split_bits(stream, bits.shape[1], words)
    else:
        pack_columns(np.ascontiguousarray(bits.T).view(np.uint8), words)
    return words


def unpacked(words: Words, n_sensors: int) -> NDArray[np.bool_]:
    """Undo ``packed``.

    >>> unpacked(np.array([[5]], dtype=np.uint64), 3)
    array([[ True, False,  True]])
    """
    letters = np.ascontiguousarray(words, "<u8").view(np.uint8)
    return np.unpackbits(letters, axis=1, count=n_sensors, bitorder="little").view(np.bool_)
