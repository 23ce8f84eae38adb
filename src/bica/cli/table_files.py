"""Tables of zeros and ones as CSV or Parquet."""

import csv
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import unpacked
from bica.data.tables import open_table
from bica.errors import DataError, SettingError


def read_rows(path: str, columns: Sequence[str]) -> NDArray[np.bool_]:
    """These columns of a table without missing cells, row by row in order."""
    table = open_table(path)
    place = {name: i for i, name in enumerate(table.sensors)}
    for name in columns:
        if name not in place:
            raise DataError(f"{path} has no column {name!r}")
    chunks = list(table.chunks())
    if any(chunk.observed is not None for chunk in chunks):
        raise DataError(f"{path} has missing cells; give a complete table")
    rows = [unpacked(chunk.words, len(table.sensors)) for chunk in chunks]
    return np.vstack([np.empty((0, len(place)), bool), *rows])[:, [place[name] for name in columns]]


def check_table_names(*paths: str | None) -> None:
    """Before the work: each name must tell how to write the table."""
    for path in paths:
        if path not in (None, "-") and Path(path).suffix.lower() not in (".csv", ".parquet"):
            raise SettingError(f"{path} should end in .csv or .parquet, which tells how to write the table")


def table_bytes(rows: NDArray[np.bool_], names: Sequence[str], path: str) -> bytes:
    """The content of the table file ``path``: Parquet if its name ends so, otherwise CSV."""
    return parquet_bytes(rows, names) if Path(path).suffix.lower() == ".parquet" else csv_bytes(rows, names)


def csv_bytes(rows: NDArray[np.bool_], names: Sequence[str]) -> bytes:
    r"""A header and a line a row.

    >>> csv_bytes(np.array([[True, False]]), ["a", "b,c"])
    b'a,"b,c"\n1,0\n'
    """
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(names)
    lines = np.full((len(rows), max(2 * len(names), 1)), ord(","), dtype=np.uint8)
    lines[:, 0 : 2 * len(names) : 2] = rows.view(np.uint8) + ord("0")
    lines[:, -1] = ord("\n")
    return header.getvalue().encode() + lines.tobytes()


def check_parquet_names(names: Sequence[str]) -> None:
    """Refuse names that Parquet would mix up."""
    if not names or len({name.casefold() for name in names}) < len(names):
        raise SettingError("Parquet needs columns whose names differ in more than case; write a .csv instead")


def parquet_bytes(rows: NDArray[np.bool_], names: Sequence[str]) -> bytes:
    """Boolean columns, written by DuckDB."""
    import duckdb

    check_parquet_names(names)
    columns = {name: np.ascontiguousarray(column) for name, column in zip(names, rows.T, strict=True)}
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        target = Path(folder) / "table.parquet"
        connection.register("columns", columns)
        connection.table("columns").write_parquet(str(target))
        return target.read_bytes()
