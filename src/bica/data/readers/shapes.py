"""Tables in other shapes: baskets (a line of items per row), long tables (a line per cell that is on), workbooks."""

import csv
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bica.data.chunks import Table
from bica.data.columns import SAMPLE, Options, looks_of
from bica.data.readers.arrays import ArrayTable, SparseTable, sparse_table
from bica.data.readers.engine import Compression, TextLines
from bica.data.readers.matrix_files import FREE_BYTES, UNPACKED_LIMIT
from bica.data.readers.text import DELIMITERS, CsvParser, layout_of
from bica.errors import DataError, LimitError, MissingExtraError, SettingError
from bica.text import brief

Cell = tuple[int, str]  # the row and the column of a cell that is on


def basket_table(path: Path, compression: Compression, options: Options) -> Table:
    """One row per line, on where an item stands in it; columns are the items, as they first appear."""
    lines = [line for line in TextLines(path, compression).all_lines() if line.strip()]
    if not lines:
        raise DataError(f"{path} is empty: it has no baskets")
    delimiter = max(DELIMITERS, key=lambda sign: sum(sign in line for line in lines[:SAMPLE]))
    return _of_cells(_items(lines, delimiter), len(lines), options)


def _items(lines: Sequence[str], delimiter: str) -> Iterator[Cell]:
    for row, items in enumerate(csv.reader(lines, delimiter=delimiter, skipinitialspace=True)):
        yield from ((row, item.strip()) for item in items if item.strip())


def long_table(path: Path, compression: Compression, options: Options, named: Sequence[str]) -> Table:
    """One row per value of the first named column, on in the columns that the second one names beside it."""
    if len(named) != 2:
        raise SettingError("`long` names two columns of the table: that of the rows and that of the sensors")
    lines = TextLines(path, compression)
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
