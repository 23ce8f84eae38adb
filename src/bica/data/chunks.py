"""What every reader yields: some rows of a binary table, packed into bit sets."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words, pack_columns, split_bits, unpack_bits

MISSING = 2  # the cell was not observed; the other two cell values are 0 and 1
CELLS_A_CHUNK = 1 << 22
GROUPED_SENSORS = 64  # wider rows seldom repeat, so that grouping them in an engine first only costs time


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a table; bit i of a row's words is sensor i, and an unobserved cell has bit 0."""

    words: Words  # (n_rows, n_words)
    observed: Words | None = None  # same shape, bit set where the cell was seen; None: all were
    weights: NDArray[np.float64] | None = None  # (n_rows,); None: every row counts once


class Table(Protocol):
    """A source of rows that may be larger than memory."""

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order."""

    def distinct(self) -> Iterator[Chunk]:
        """The same rows for counting only: in any order, equal ones perhaps already grouped."""


def n_words(n_sensors: int) -> int:
    """How many 64-bit words a row of so many sensors takes."""
    return max(1, -(-n_sensors // 64))


def all_observed(n_sensors: int) -> NDArray[np.uint64]:
    """The words of a row in which every cell was seen.

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
    cells = np.empty((words.shape[0], n_sensors), np.uint8)
    unpack_bits(words, cells)
    return cells.view(np.bool_)


def chunk_of_cells(cells: NDArray[np.uint8], weights: NDArray[np.float64] | None = None) -> Chunk:
    """Pack rows whose cells are 0, 1 or ``MISSING``."""
    if cells.max(initial=0) < MISSING:
        return Chunk(packed(cells), None, weights)
    return Chunk(packed(cells == 1), packed(cells != MISSING), weights)


def rows_a_chunk(n_sensors: int) -> int:
    """How many rows keep a chunk of cells at a few megabytes."""
    return max(1, CELLS_A_CHUNK // max(1, n_sensors))
