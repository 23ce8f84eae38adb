"""DuckDB as the reader of files and tables larger than memory."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from bica.errors import DataError
from bica.output import interruption, temporary_folder

Row = tuple[Any, ...]
QUIET = "SET enable_progress_bar = false"  # which would go to standard output in an interactive session
ROWS_PER_FETCH = 64  # no slower than thousands
CHARACTERS_PER_BATCH = 1 << 26
TOO_LONG = ("Maximum line size", "does not support a full read")  # what the engine says of a line without end


@contextmanager
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of our own; what it has to put aside on disk is gone afterwards."""
    with temporary_folder() as folder:
        settings: dict[str, Any] = {"temp_directory": str(folder), "autoinstall_known_extensions": False}
        engine = duckdb.connect(":memory:", config=settings)
        try:
            engine.execute(QUIET)
            yield engine
        finally:
            engine.close()


def batches_of_query(path: Path, sql: str, n_rows: int) -> Iterator[list[Row]]:
    """The result of a query over a file, at most so many rows at a time, in the order of the file."""
    try:
        with connection() as engine:
            with ctrl_c_passing():
                engine.execute(sql)
            while rows := _more(engine, n_rows):
                yield rows
    except duckdb.Error as error:
        raise DataError(f"{path} cannot be read: {plain(error)}") from None


def _more(engine: duckdb.DuckDBPyConnection, n_rows: int) -> list[Row]:
    """The next rows, fewer where their text is long: a small compressed file may hold huge lines."""
    rows: list[Row] = []
    n_characters = 0
    while len(rows) < n_rows and n_characters < CHARACTERS_PER_BATCH:
        with ctrl_c_passing():
            fetched = engine.fetchmany(min(ROWS_PER_FETCH, n_rows - len(rows)))
        if not fetched:
            break
        rows += fetched
        n_characters += sum(len(row[0]) for row in fetched if isinstance(row[0], str))
    return rows


@contextmanager
def ctrl_c_passing() -> Iterator[None]:
    """The engine reports signals by an error of its own; let it be what it is everywhere else."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise interruption() from None
        raise


def plain(error: duckdb.Error) -> str:
    r"""The first telling line of the engine's message, without the kind of error.

    >>> plain(duckdb.Error("Invalid Input Error: CSV Error on Line: 1\nOriginal Line: ?\nThis is not utf-8."))
    'This is not utf-8.'
    """
    if any(words in str(error) for words in TOO_LONG):
        return "one of its lines is far too long for a row"
    lines = [line for line in str(error).split("\n") if line.strip()]
    telling = [line for line in lines if "CSV Error on Line" not in line and not line.startswith("Original Line")]
    return re.sub(r"^[A-Z][\w ]{1,30} Error: ", "", (telling or lines or ["it says no more"])[0].strip())


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
