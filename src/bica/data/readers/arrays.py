"""Arrays and sparse matrices as tables, in memory or in files."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bica.data.chunks import MISSING, STRANGE, Chunk, Table, cells_of, chunk_of_values, rows_a_chunk, strange_value
from bica.data.columns import Columns, Options, numbered
from bica.data.readers.matrix_files import check_shape, read_matrix
from bica.errors import DataError
from bica.kernels.bits import Words, all_observed, n_words, pack_sparse, packed


@dataclass(frozen=True, slots=True)
class ArrayTable:
    """A two-dimensional array; NaN, None and masked cells are missing.

    A few megabytes at a time are turned into cells, so that a mapped file may be larger than memory.
    """

    array: NDArray[Any]
    columns: Columns
    weights: NDArray[np.float64] | None = None

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order."""
        step = rows_a_chunk(len(self.sensors))
        for start in range(0, len(self.array), step):
            part = self.array[start : start + step]
            weights = None if self.weights is None else self.weights[start : start + step]
            labels = tuple(tuple(map(str, part[:, place])) for _, place in self.columns.carried)
            kept = part[:, self.columns.places] if self.columns.others else part
            chunk = chunk_of_values(kept, self.sensors, self.columns.thresholds, start, weights)
            yield replace(chunk, labels=labels)

    def distinct(self) -> Iterator[Chunk]:
        """The rows are in memory already: no need to group them first."""
        return self.chunks()


def two_dimensional(x: Any) -> NDArray[Any]:
    """Anything like an array with rows and columns, as that array."""
    array = _array_of_lists(x) if not hasattr(x, "__array__") else x if np.ma.isMaskedArray(x) else np.asarray(x)
    if array.ndim != 2:
        raise DataError(
            f"a table has rows and columns, but this array has {array.ndim} dimensions; "
            "pass one row for each sample and one column for each sensor"
        )
    if array.dtype.kind in "cV":
        raise DataError(f"an array of type {array.dtype} cannot be read as 0 and 1; pass booleans or numbers")
    return array


def _array_of_lists(x: Any) -> NDArray[Any]:
    if not isinstance(x, list | tuple):
        raise DataError(
            f"something of type {type(x).__name__} cannot be read as a table; pass an array, a data frame or a path"
        )
    try:
        array = np.asarray(x)
    except ValueError:
        raise DataError(_uneven(x)) from None
    # NumPy turns numbers among text into text, which would hide the cell at fault
    return np.asarray(x, dtype=object) if array.dtype.kind in "US" else array


def _uneven(rows: Any) -> str:
    lengths = [len(row) if hasattr(row, "__len__") else None for row in rows]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), 0)
    if None in (lengths[0], lengths[odd]) or not odd:
        return "the list cannot be read as a table; pass a list of rows, each a list of cells"
    return f"row {odd} has {lengths[odd]} cells, but row 0 has {lengths[0]}; every row needs the same number"


@dataclass(frozen=True, slots=True)
class SparseTable:
    """Stored cells by rows (CSR), each at most once; a stored NaN is missing, what is not stored is 0."""

    starts: NDArray[Any]  # (n_rows + 1,)
    places: NDArray[Any]  # (n_stored,), the column of each stored cell
    values: NDArray[Any]  # (n_stored,)
    columns: Columns
    weights: NDArray[np.float64] | None = None
    labels: tuple[tuple[str, ...], ...] = ()  # the cells of each carried column

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
            yield replace(self._chunk(start, stop), labels=tuple(texts[start:stop] for texts in self.labels))

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
    """Refuse what has no rows and columns of numbers, or claims far more of them than it stores."""
    check_shape(matrix.shape, 8 * matrix.nnz, "the sparse array")
    if matrix.ndim != 2:
        raise DataError(f"a table has rows and columns, but this sparse array has {matrix.ndim} dimensions")
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"a sparse array of type {matrix.dtype} cannot be read as 0 and 1; pass booleans or numbers")
    if hasattr(matrix, "check_format"):  # a column number out of range would have the kernel write out of bounds
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise DataError(f"the sparse array contradicts itself: {error}") from None


def matrix_table(path: Path, kind: str, options: Options) -> Table:
    """The table in such a file; a ``.npy`` is mapped, not loaded, the others are as large as their stored cells."""
    options.refuse_named_weights(f"{path}")
    matrix = read_matrix(path, kind)
    return table_of_matrix(matrix, names_beside(path, matrix.shape), options)


def table_of_matrix(matrix: Any, names: list[str] | None, options: Options) -> Table:
    """An array or a sparse matrix as a table."""
    if sparse.issparse(matrix):
        check_sparse(matrix)
    else:
        matrix = two_dimensional(matrix)
    columns = options.columns(numbered(matrix.shape[1]) if names is None else names)
    weights = options.weights(matrix.shape[0])
    if not sparse.issparse(matrix):
        return ArrayTable(matrix, columns, weights)
    if columns.carried:
        raise DataError("a sparse matrix holds no ids and no times; leave out `id` and `time`")
    by_columns: Any = matrix
    kept = by_columns.tocsc()[:, columns.places] if columns.others else matrix
    return sparse_table(kept, replace(columns, others=()), weights)


def names_beside(path: Path, shape: tuple[int, ...]) -> list[str] | None:
    """The names in ``<stem>_columns.csv`` beside the file: under the heading ``column``, one per line."""
    beside = path.with_name(f"{path.stem}_columns.csv")
    if not beside.is_file():
        return None
    rows = _lines_of_names(beside)
    if not rows or rows[0] != ["column"] or any(len(row) != 1 for row in rows):
        raise DataError(f"{beside} must hold the heading `column` and then one name per line")
    if len(shape) == 2 and len(rows) - 1 != shape[1]:
        raise DataError(f"{beside} names {len(rows) - 1} columns, but {path} has {shape[1]}")
    return [name for (name,) in rows[1:]]


def names_in(path: Path) -> list[str]:
    """The names in a file, one per line, perhaps under the heading ``column``."""
    rows = _lines_of_names(path)
    if not rows or any(len(row) != 1 for row in rows):
        raise DataError(f"{path} must hold one name per line; put a name with a comma in it in double quotes")
    return [name.strip() for (name,) in (rows[1:] if rows[0] == ["column"] else rows)]


def _lines_of_names(path: Path) -> list[list[str]]:
    """The lines of a small file; none if it cannot be read."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        return []
