"""Tables of 0, 1 and missing cells as CSV or Parquet, whole or piece by piece."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import MISSING
from bica.data.pairs import transposed
from bica.data.readers.engine import COUNT_COLUMN, COUNTS_MARK, ctrl_c_passing, path_literal, plain
from bica.errors import OutputError, SettingError
from bica.kernels.bits import Words
from bica.output import temporary_folder, whole_file


def check_table_names(*paths: str | None) -> None:
    """Before the work: each name must tell how to write the table."""
    for path in paths:
        if path not in (None, "-") and Path(path).suffix.lower() not in (".csv", ".parquet"):
            raise SettingError(f"{path} should end in .csv or .parquet, which tells how to write the table")


def table_bytes(rows: NDArray[np.bool_], names: Sequence[str], path: str) -> bytes:
    """The content of the table file ``path``: Parquet if its name ends so, otherwise CSV."""
    if Path(path).suffix.lower() != ".parquet":
        return csv_bytes(rows, names)
    with plain_trouble(path):
        return parquet_bytes(rows, names)


def csv_bytes(rows: NDArray[np.bool_], names: Sequence[str]) -> bytes:
    r"""A header and one line per row.

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
    with temporary_folder() as folder, duckdb.connect() as connection:
        target = folder / "table.parquet"
        connection.register("columns", columns)
        connection.table("columns").write_parquet(str(target))
        return target.read_bytes()


Labels = Sequence[Sequence[str]]  # the texts of each column that stands before the cells
WriteCells = Callable[[NDArray[np.uint8], Labels], None]  # some more rows; cells are 0, 1 or MISSING


@contextmanager
def cell_file(
    path: str, names: Sequence[str], *, overwrite: bool, labels: Sequence[str] = (), are_moments: bool = False
) -> Iterator[WriteCells]:
    """A way to write some more rows; the file appears whole at the end, or not at all.

    ``labels`` are the names of columns of text before the cells; Parquet holds ``are_moments`` as moments.
    """
    if path == "-":
        sys.stdout.flush()
        with _csv_rows(sys.stdout.buffer, [*labels, *names]) as write:
            yield write
        return
    as_parquet = Path(path).suffix.lower() == ".parquet"
    if as_parquet:
        check_parquet_names([*labels, *names])
    with whole_file(path, overwrite=overwrite) as draft:
        if as_parquet:
            with _parquet_rows(path, draft, names, labels, "TIMESTAMPTZ" if are_moments else "VARCHAR") as write:
                yield write
        else:
            with open(draft, "wb") as file, _csv_rows(file, [*labels, *names]) as write:
                yield write


@contextmanager
def _csv_rows(file: IO[bytes], names: Sequence[str]) -> Iterator[WriteCells]:
    file.write(csv_bytes(np.empty((0, len(names)), bool), names))

    def write(cells: NDArray[np.uint8], labels: Labels) -> None:
        file.write(labelled_lines(cells, labels) if labels else cell_lines(cells))
        file.flush()  # whoever reads along may wait for it

    yield write


def labelled_lines(cells: NDArray[np.uint8], labels: Labels) -> bytes:
    r"""One line per row, its labels first.

    >>> labelled_lines(np.array([[1, 0], [2, 0]], np.uint8), [["1,5 h", "2 h"]])
    b'"1,5 h",1,0\n2 h,,0\n'
    """
    if not cells.shape[1]:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(zip(*labels, strict=True))
        return text.getvalue().encode()
    before = io.StringIO()
    csv.writer(before, lineterminator=",\n").writerows(zip(*labels, strict=True))
    if before.getvalue().count("\n") != len(cells):  # a label holds line ends
        rows = ([*row, *map(cell_text, cells_)] for row, cells_ in zip(zip(*labels, strict=True), cells, strict=True))
        whole = io.StringIO()
        csv.writer(whole, lineterminator="\n").writerows(rows)
        return whole.getvalue().encode()
    pairs = zip(before.getvalue().encode().split(b"\n"), cell_lines(cells).split(b"\n"), strict=True)
    return b"\n".join(label + line for label, line in pairs)


def cell_text(cell: int) -> str:
    """A cell as CSV writes it."""
    return "" if cell == MISSING else str(int(cell))


def cell_lines(cells: NDArray[np.uint8]) -> bytes:
    r"""One line per row, without a header.

    >>> cell_lines(np.array([[1, 0], [2, 0]], np.uint8))
    b'1,0\n,0\n'
    """
    n_columns = cells.shape[1]
    if n_columns == 1:  # an empty line would be no row
        return b"".join((b"0\n", b"1\n", b'""\n')[cell] for cell in cells[:, 0].tolist())
    lines = np.full((len(cells), max(2 * n_columns, 1)), ord(","), dtype=np.uint8)
    lines[:, 0 : 2 * n_columns : 2] = np.where(cells == MISSING, 0, cells + np.uint8(ord("0")))
    lines[:, -1] = ord("\n")
    content: bytes = lines[lines != 0].tobytes()
    return content


@contextmanager
def _parquet_rows(
    path: str, target: Path, names: Sequence[str], labels: Sequence[str], kind: str
) -> Iterator[WriteCells]:
    """Rows gather in a database on disk, which then writes the file: memory stays small."""
    import duckdb

    places, texts = range(len(names)), range(len(labels))
    with (
        temporary_folder() as folder,
        plain_trouble(path),
        duckdb.connect(str(folder / "rows.db")) as engine,
        ctrl_c_passing(),
    ):
        columns = [*(f"t{i} VARCHAR" for i in texts), *(f"c{i} BOOLEAN" for i in places)]
        engine.execute(f"CREATE TABLE gathered ({', '.join(columns)})")

        def write(cells: NDArray[np.uint8], labels: Labels) -> None:
            piece = {f"t{i}": np.array(labels[i], dtype=object) for i in texts}
            engine.register("piece", {**piece, **{f"c{i}": np.ascontiguousarray(cells[:, i]) for i in places}})
            chosen = [*piece, *(f"CASE WHEN c{i} < {MISSING} THEN c{i} = 1 END" for i in places)]
            engine.execute(f"INSERT INTO gathered SELECT {', '.join(chosen)} FROM piece")  # noqa: S608 - our own names

        yield write
        before = [f"nullif(t{i}, '')::{kind} AS {_identifier(name)}" for i, name in enumerate(labels)]
        named = ", ".join([*before, *(f"c{i} AS {_identifier(name)}" for i, name in enumerate(names))])
        engine.execute(f"COPY (SELECT {named} FROM gathered) TO {path_literal(target)} (FORMAT parquet)")  # noqa: S608


@contextmanager
def plain_trouble(path: str) -> Iterator[None]:
    """What the engine says when the disk is full, as one of our own errors."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise OutputError(f"{path} cannot be written as Parquet: {plain(error)}") from None


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def write_counts(
    path: str | Path,
    names: Sequence[str],
    pieces: Iterable[tuple[NDArray[np.uint8], NDArray[np.float64]]],
    *,
    overwrite: bool,
) -> None:
    """Distinct rows with how often each occurred, as a Parquet file that readers know as such."""
    import duckdb

    if Path(path).suffix.lower() != ".parquet":
        raise SettingError(f"{path} should end in .parquet, which is how counts are kept")
    check_parquet_names([*names, COUNT_COLUMN])
    places = range(len(names))
    with (
        whole_file(str(path), overwrite=overwrite) as draft,
        temporary_folder() as folder,
        plain_trouble(str(path)),
        duckdb.connect(str(folder / "rows.db")) as engine,
        ctrl_c_passing(),
    ):
        engine.execute(f"CREATE TABLE gathered ({', '.join(f'c{i} BOOLEAN' for i in places)}, n DOUBLE)")
        for cells, weights in pieces:
            engine.register("piece", {**{f"c{i}": np.ascontiguousarray(cells[:, i]) for i in places}, "n": weights})
            chosen = ", ".join(f"CASE WHEN c{i} < {MISSING} THEN c{i} = 1 END" for i in places)
            engine.execute(f"INSERT INTO gathered SELECT {chosen}, n FROM piece")  # noqa: S608 - our own names
        named = ", ".join([*(f"c{i} AS {_identifier(name)}" for i, name in enumerate(names)), f'n AS "{COUNT_COLUMN}"'])
        mark = f"KV_METADATA {{{COUNTS_MARK}: '1'}}"
        engine.execute(f"COPY (SELECT {named} FROM gathered) TO {path_literal(draft)} (FORMAT parquet, {mark})")  # noqa: S608


WriteBits = Callable[[Words, NDArray[np.bool_]], None]  # activity as bit sets, and which rows have an answer


@contextmanager
def bits_file(path: Path, names: Sequence[str], *, overwrite: bool) -> Iterator[WriteBits]:
    """A way to write some more rows of a Parquet file by PyArrow, in which no cell becomes a byte."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_parquet_names(names)
    schema = pa.schema([(name, pa.bool_()) for name in names])
    try:
        with whole_file(path, overwrite=overwrite) as draft, pq.ParquetWriter(draft, schema) as writer:

            def write(active: Words, answered: NDArray[np.bool_]) -> None:
                known = None if answered.all() else pa.py_buffer(np.packbits(answered, bitorder="little"))
                columns = transposed(active, len(names))
                arrays = [
                    pa.BooleanArray.from_buffers(pa.bool_(), len(active), [known, pa.py_buffer(c)]) for c in columns
                ]
                writer.write_batch(pa.record_batch(arrays, schema))

            yield write
    except pa.ArrowException as error:
        raise OutputError(f"{path} cannot be written as Parquet: {str(error).splitlines()[0]}") from None


WriteActivity = Callable[[NDArray[np.bool_], NDArray[np.bool_], Labels], None]  # and which rows have an answer


@contextmanager
def activity_file(
    path: str, names: Sequence[str], *, overwrite: bool, labels: Sequence[str] = ()
) -> Iterator[WriteActivity]:
    """A way to write some more rows; the file appears whole at the end, or not at all."""
    with cell_file(path, names, overwrite=overwrite, labels=labels) as write_cells:

        def write(activity: NDArray[np.bool_], answered: NDArray[np.bool_], texts: Labels) -> None:
            write_cells(np.where(answered[:, None], activity.view(np.uint8), np.uint8(MISSING)), texts)

        yield write
