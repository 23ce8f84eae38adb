"""Arrays and sparse matrices as tables, in memory or in files; and files that become such: baskets, workbooks."""

import csv
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bica.data.columns import (
    MISSING,
    SAMPLE,
    STRANGE,
    Chunk,
    Columns,
    Options,
    Table,
    cells_of,
    chunk_of_values,
    looks_of,
    numbered,
    rows_a_chunk,
    strange_value,
)
from bica.data.readers.engine import Compression, whole_lines
from bica.data.readers.matrix_files import FREE_BYTES, UNPACKED_LIMIT, check_shape, read_matrix
from bica.data.readers.text import DELIMITERS, CsvParser, layout_of
from bica.errors import DataError, LimitError, MissingExtraError, SettingError
from bica.kernels.bits import Words, all_observed, n_words, pack_sparse, packed
from bica.text import brief


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


# Files in other shapes: baskets (one line of items per row), long tables (one line per cell that is on), workbooks.

Cell = tuple[int, str]  # the row and the column of a cell that is on


def basket_table(path: Path, compression: Compression, options: Options) -> Table:
    """One row per line, on where an item stands in it; columns are the items, as they first appear.

    An empty line between others is a row in which nothing was on.
    """
    lines = list(whole_lines(path, compression).all_lines())
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise DataError(f"{path} is empty: it has no baskets")
    delimiter = max(DELIMITERS, key=lambda sign: sum(sign in line for line in lines[:SAMPLE]))
    return _of_cells(_items(lines, delimiter, path), len(lines), options)


def _items(lines: Sequence[str], delimiter: str, path: Path) -> Iterator[Cell]:
    try:
        for row, items in enumerate(csv.reader(lines, delimiter=delimiter, skipinitialspace=True)):
            yield from ((row, item.strip()) for item in items if item.strip())
    except csv.Error:
        raise DataError(
            f"{path} cannot be read as baskets: an item is longer than {csv.field_size_limit()} characters, or a quote "
            "has no end"
        ) from None


def long_table(path: Path, compression: Compression, options: Options, named: Sequence[str]) -> Table:
    """One row per value of the first named column, on in the columns that the second one names beside it."""
    if len(named) != 2:
        raise SettingError("`long` names two columns of the table: that of the rows and that of the sensors")
    lines = whole_lines(path, compression)
    layout = layout_of(lines.first_lines(), path)
    for name in named:
        if name not in layout.names:
            raise SettingError(f"`long` names a column {brief(name)}, which {path} does not have")
    parser, places = CsvParser(layout.names, layout.delimiter), [layout.names.index(name) for name in named]
    texts = [line for line in replace(lines, skip=layout.n_header_lines).all_lines() if line.strip()]
    owners, items = parser.texts(texts, places)
    number = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
    table = _of_cells(((number[owner], item) for owner, item in zip(owners, items, strict=True)), len(number), options)
    columns = replace(table.columns, carried=((named[0], -1),))
    return replace(table, columns=columns, labels=(tuple(number),))


def _of_cells(cells: Iterable[Cell], n_rows: int, options: Options) -> SparseTable:
    """The table of the cells that are on; those that come twice count once."""
    pairs = list(dict.fromkeys(cells))
    number = {name: i for i, name in enumerate(dict.fromkeys(name for _, name in pairs))}
    columns = options.columns(list(number))
    places = np.array([row for row, _ in pairs], np.int64), np.array([number[name] for _, name in pairs], np.int64)
    matrix: Any = sparse.csc_array((np.ones(len(pairs), bool), places), shape=(n_rows, len(number)))
    return sparse_table(matrix[:, columns.places], replace(columns, others=()), options.weights(n_rows))


def workbook_table(path: Path, options: Options) -> Table:
    """The first sheet of a workbook: a line of names, then one line per row; empty cells are missing."""
    options.refuse_named_weights(f"{path}")
    rows = [row for row in _sheet(path) if any(cell != "" for cell in row)]
    if not rows:
        raise DataError(f"{path} is empty: its first sheet has no columns and no rows")
    names, cells = [str(cell).strip() for cell in rows[0]], np.array(rows[1:], dtype=object).reshape(-1, len(rows[0]))
    cells = np.where(cells == "", None, cells)  # type: ignore[call-overload]
    texts = [[_written(cell) for cell in column[:SAMPLE]] for column in cells.T]
    columns = options.columns(names, None, looks_of(zip(names, texts, strict=True)))
    for _, place in columns.carried:
        cells[:, place] = [_written(cell) for cell in cells[:, place]]
    return ArrayTable(cells, columns, options.weights(len(cells)))


def _sheet(path: Path) -> list[list[Any]]:
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise MissingExtraError(f'{path} is a workbook, which needs `pip install "bica[excel]"`') from None
    try:
        with zipfile.ZipFile(path) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
        if n_bytes > FREE_BYTES + UNPACKED_LIMIT * path.stat().st_size:
            raise LimitError(f"{path} would take {n_bytes} bytes unpacked, far more than a workbook of its size")
        rows: list[list[Any]] = CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()
    except LimitError:
        raise
    except Exception as error:  # noqa: BLE001 - which error damage causes is up to zipfile and the reader
        raise DataError(f"{path} cannot be read as a workbook: {str(error) or 'it is cut or damaged'}") from None
    return rows


def _written(cell: Any) -> str:
    """A cell as a person would write it."""
    if cell is None:
        return ""
    if hasattr(cell, "isoformat"):
        return str(cell.isoformat())
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
