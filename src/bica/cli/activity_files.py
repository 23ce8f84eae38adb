"""Activities as they are decoded, written piece by piece: CSV or Parquet, rows without an answer left empty."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import duckdb
import numpy as np
from numpy.typing import NDArray

from bica.cli.table_files import check_parquet_names, csv_bytes
from bica.data.engine import ctrl_c_passing, path_literal, plain
from bica.errors import OutputError
from bica.output import whole_file

Write = Callable[[NDArray[np.bool_], NDArray[np.bool_]], None]  # activity, and which of its rows have an answer


@contextmanager
def activity_file(path: str, names: Sequence[str], *, overwrite: bool) -> Iterator[Write]:
    """A way to write some more rows; the file appears whole at the end, or not at all."""
    if path == "-":
        sys.stdout.flush()
        with _csv_rows(sys.stdout.buffer, names) as write:
            yield write
        return
    as_parquet = Path(path).suffix.lower() == ".parquet"
    if as_parquet:
        check_parquet_names(names)
    with whole_file(path, overwrite=overwrite) as draft:
        if as_parquet:
            with _parquet_rows(draft, names) as write:
                yield write
        else:
            with open(draft, "wb") as file, _csv_rows(file, names) as write:
                yield write


@contextmanager
def _csv_rows(file: IO[bytes], names: Sequence[str]) -> Iterator[Write]:
    file.write(csv_bytes(np.empty((0, len(names)), bool), names))

    def write(activity: NDArray[np.bool_], answered: NDArray[np.bool_]) -> None:
        file.write(csv_lines(activity, answered))

    yield write


def csv_lines(activity: NDArray[np.bool_], answered: NDArray[np.bool_]) -> bytes:
    r"""A line a row, without a header.

    >>> csv_lines(np.array([[True, False], [False, False]]), np.array([True, False]))
    b'1,0\n,\n'
    """
    n_sources = activity.shape[1]
    if n_sources == 1:  # an empty line would be no row
        words = np.where(answered, activity[:, 0].astype(np.int8), 2)
        return b"".join((b"0\n", b"1\n", b'""\n')[word] for word in words.tolist())
    lines = np.full((len(activity), max(2 * n_sources, 1)), ord(","), dtype=np.uint8)
    lines[:, 0 : 2 * n_sources : 2] = np.where(answered[:, None], activity.view(np.uint8) + ord("0"), 0)
    lines[:, -1] = ord("\n")
    content: bytes = lines[lines != 0].tobytes()
    return content


@contextmanager
def _parquet_rows(target: Path, names: Sequence[str]) -> Iterator[Write]:
    """Rows gather in a database on disk, which then writes the file: memory stays small."""
    places = range(len(names))
    with (
        tempfile.TemporaryDirectory(prefix="bica-") as folder,
        duckdb.connect(str(Path(folder) / "rows.db")) as engine,
        _plain_trouble(),
        ctrl_c_passing(),
    ):
        engine.execute(f"CREATE TABLE gathered ({', '.join(f'c{i} BOOLEAN' for i in places)})")

        def write(activity: NDArray[np.bool_], answered: NDArray[np.bool_]) -> None:
            columns = {f"c{i}": np.ascontiguousarray(activity[:, i]) for i in places}
            engine.register("piece", columns | {"answered": answered})
            chosen = ", ".join(f"CASE WHEN answered THEN c{i} END" for i in places)
            engine.execute(f"INSERT INTO gathered SELECT {chosen} FROM piece")  # noqa: S608 - our own names

        yield write
        named = ", ".join(f"c{i} AS {_identifier(name)}" for i, name in enumerate(names))
        engine.execute(f"COPY (SELECT {named} FROM gathered) TO {path_literal(target)} (FORMAT parquet)")  # noqa: S608


@contextmanager
def _plain_trouble() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise OutputError(f"the activity cannot be written as Parquet: {plain(error)}") from None


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
