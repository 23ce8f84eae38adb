"""DuckDB as the reader of files and tables larger than memory."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from bica.errors import DataError

Row = tuple[Any, ...]


@contextmanager
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of our own; what it has to put aside on disk is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bica-") as folder:
        settings: dict[str, Any] = {"temp_directory": folder, "autoinstall_known_extensions": False}
        engine = duckdb.connect(":memory:", config=settings)
        try:
            yield engine
        finally:
            engine.close()


def batches_of_query(path: Path, sql: str, n_rows: int) -> Iterator[list[Row]]:
    """The result of a query over a file, so many rows at a time, in the order of the file."""
    try:
        with connection() as engine:
            engine.execute(sql)
            while rows := engine.fetchmany(n_rows):
                yield rows
    except duckdb.Error as error:
        raise DataError(f"{path} cannot be read: {plain(error)}") from None


def plain(error: duckdb.Error) -> str:
    """The first line of the engine's message, without the kind of error.

    >>> plain(duckdb.Error("IO Error: no such thing, LINE 1"))
    'no such thing, LINE 1'
    """
    line = str(error).strip().split("\n")[0]
    kind, _, rest = line.partition("Error: ")
    return rest if rest and len(kind) < 30 else line


def text_literal(text: str) -> str:
    """A piece of text as SQL writes it.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def path_literal(path: Path) -> str:
    """A path as SQL writes it; characters that would make it a pattern stand for themselves.

    >>> path_literal(Path("week[1]*.csv"))
    "'week[[]1][*].csv'"
    """
    return text_literal("".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path)))
