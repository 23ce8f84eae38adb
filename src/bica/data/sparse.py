"""Sparse matrices as tables; they are never turned into dense ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bica.data.cells import STRANGE, cells_of, strange_value
from bica.data.chunks import MISSING, Chunk, all_observed, n_words, packed, rows_a_chunk
from bica.data.columns import Columns
from bica.errors import DataError
from bica.kernels.bits import Words, pack_sparse


@dataclass(frozen=True, slots=True)
class SparseTable:
    """Stored cells by rows (CSR), each at most once; a stored NaN is missing, what is not stored is 0."""

    starts: NDArray[Any]  # (n_rows + 1,)
    places: NDArray[Any]  # (n_stored,), the column of each stored cell
    values: NDArray[Any]  # (n_stored,)
    columns: Columns
    weights: NDArray[np.float64] | None = None

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order; memory grows with the stored cells, and by a bit for each other cell of a chunk."""
        step = rows_a_chunk(len(self.sensors))
        n_rows = len(self.starts) - 1
        for start in range(0, n_rows, step):
            stop = min(start + step, n_rows)
            yield self._chunk(start, stop)

    def distinct(self) -> Iterator[Chunk]:
        """The rows are in memory already: no need to group them first."""
        return self.chunks()

    def _chunk(self, start: int, stop: int) -> Chunk:
        cells = self._stored_cells(start, stop)
        unseen = self._bits(cells == MISSING, start, stop)
        everything = all_observed(len(self.sensors))
        weights = None if self.weights is None else self.weights[start:stop]
        words = self._bits(cells != self._silent()[self._places(start, stop)], start, stop)
        words ^= packed(self._silent()[None])  # a bit says that the cell differs from one that is not stored
        if not unseen.any():
            return Chunk(words, None, weights)
        return Chunk(words & ~unseen, everything & ~unseen, weights)

    def _silent(self) -> NDArray[np.uint8]:
        """What a cell that is not stored becomes: 1 only below a negative threshold."""
        return cells_of(np.zeros(len(self.sensors)), self.columns.thresholds)

    def _places(self, start: int, stop: int) -> NDArray[np.int64]:
        return self.places[self.starts[start] : self.starts[stop]].astype(np.int64)

    def _stored_cells(self, start: int, stop: int) -> NDArray[np.uint8]:
        first = self.starts[start]
        places = self._places(start, stop)
        values = self.values[first : self.starts[stop]]
        cells = cells_of(values, None if self.columns.thresholds is None else self.columns.thresholds[places])
        if (cells == STRANGE).any():
            at = int(np.flatnonzero(cells == STRANGE)[0])
            row = int(np.searchsorted(self.starts, first + at, side="right")) - 1
            raise strange_value(row, self.sensors[places[at]], values[at])
        return cells

    def _bits(self, chosen: NDArray[np.bool_], start: int, stop: int) -> Words:
        """A bit for each of the chosen stored cells."""
        before = np.concatenate([[0], np.cumsum(chosen)])
        starts = before[self.starts[start : stop + 1] - self.starts[start]]
        words = np.zeros((stop - start, n_words(len(self.sensors))), np.uint64)
        pack_sparse(starts.astype(np.int64), self._places(start, stop)[chosen], words)
        return words


def sparse_table(matrix: Any, columns: Columns, weights: NDArray[np.float64] | None = None) -> SparseTable:
    """The matrix with each cell stored at most once; the one passed in stays as it is."""
    rows = sparse.csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return SparseTable(rows.indptr, rows.indices, rows.data, columns, weights)


def check_sparse(matrix: Any) -> None:
    """Refuse what has no rows and columns of numbers."""
    if matrix.ndim != 2:
        raise DataError(f"a table has rows and columns, but this sparse array has {matrix.ndim} dimensions")
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"a sparse array of type {matrix.dtype} cannot be read as 0 and 1; pass booleans or numbers")
    if hasattr(matrix, "check_format"):  # a column number out of range would have the kernel write out of bounds
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise DataError(f"the sparse array contradicts itself: {error}") from None
