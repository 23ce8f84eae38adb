"""DuckDB as the reader of files: queries over them, and text of one row per line, which a parser reads."""

# ruff: noqa: S608 - only our own names and quoted paths enter a query

from __future__ import annotations

import atexit
import codecs
import gzip
import os
import re
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

from bica.errors import DataError
from bica.output import end_passing, interruption, passing_path
from bica.progress import memory_left

if TYPE_CHECKING:
    import duckdb

Row = tuple[Any, ...]
LEAST_MEMORY = 1 << 26  # bytes without which the engine can hardly read a file
QUIET = "SET enable_progress_bar = false"  # which would go to standard output in an interactive session
COUNTS_MARK = "bica_counts"  # what a Parquet file of counts says about itself, and its column of counts
COUNT_COLUMN = "rows counted"
ROWS_PER_FETCH = 64  # no slower than thousands
CHARACTERS_PER_BATCH = 1 << 26
LINE_TOO_LONG = "one of its lines is far too long for a row"
TOO_LONG = ("Maximum line size", "does not support a full read")  # what the engine says of a line without end


@contextmanager
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the one engine of this process: starting an engine takes longer than reading a small file."""
    import duckdb

    engine, left = _shared.cursor(), memory_left()
    try:
        engine.execute(QUIET)
        if left < inf:
            engine.execute(f"SET memory_limit = '{max(LEAST_MEMORY, int(left / 2))}B'")  # beyond, it works on disk
        yield engine
    finally:
        if left < inf:
            with suppress(duckdb.Error):
                engine.execute("RESET memory_limit")  # which is that of all connections
        engine.close()


class _SharedEngine:
    """The engine of this process, started when it is first needed.

    What it puts aside on disk goes with it. It ends before the process is copied, since its threads would be missing in
    the copy; connections that are in use keep what they need of it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engine: duckdb.DuckDBPyConnection | None = None
        self._aside = Path()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        import duckdb  # takes a while to load; who reads arrays needs none of it

        with self._lock:
            if self._engine is None:
                self._aside = passing_path()
                settings: dict[str, Any] = {
                    "temp_directory": str(self._aside),
                    "autoinstall_known_extensions": False,
                }
                self._engine = duckdb.connect(":memory:", config=settings)
            return self._engine.cursor()

    def end(self) -> None:
        with self._lock:
            if self._engine is not None:
                self._engine = None  # closing it would also close connections in use
                end_passing(self._aside)


_shared = _SharedEngine()
atexit.register(_shared.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_shared.end)


def batches_of_query(path: Path, sql: str, n_rows: int) -> Iterator[list[Row]]:
    """The result of a query over a file, at most so many rows at a time, in the order of the file.

    Fewer where their text is long: a small compressed file may hold huge lines.
    """
    import duckdb

    rows: list[Row] = []
    n_characters = 0
    try:
        with ctrl_c_passing(), connection() as engine:
            engine.execute(sql)
            while fetched := engine.fetchmany(min(ROWS_PER_FETCH, n_rows - len(rows))):
                rows += fetched
                for row in fetched:
                    n_more = len(row[0]) if isinstance(row[0], str) else 0
                    if n_more > LONGEST_LINE:  # which the engine does not notice in the last line
                        raise DataError(f"{path} cannot be read: {LINE_TOO_LONG}")
                    n_characters += n_more
                if len(rows) >= n_rows or n_characters >= CHARACTERS_PER_BATCH:
                    yield rows
                    rows, n_characters = [], 0
        if rows:
            yield rows
    except duckdb.Error as error:
        if any(word in str(error).lower() for word in ("utf-8", "unicode")):
            raise DataError(other_encoding(path)) from None
        raise DataError(f"{path} cannot be read: {plain(error)}") from None


def other_encoding(path: Path) -> str:
    """What is wrong with a text that is not UTF-8, and what to do."""
    with path.open("rb") as file:
        wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    name, why = (
        ("UTF-16", "it is UTF-16") if wide else ("LATIN1", "some letters are of another encoding, as in Latin-1")
    )
    return f"{path} is no UTF-8 text: {why}; save it as UTF-8, as `iconv -f {name} -t UTF-8 FILE > NEW` does"


@contextmanager
def ctrl_c_passing() -> Iterator[None]:
    """The engine reports signals by an error of its own; let it be what it is everywhere else.

    So are its messages: it may cut the text that it quotes in the middle of a letter, which Python then cannot decode.
    """
    import duckdb

    try:
        yield
    except UnicodeDecodeError as error:
        raise duckdb.Error(error.object.decode("utf-8", "replace")) from None
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise interruption() from None
        raise


def plain(error: duckdb.Error) -> str:
    r"""The first telling line of the engine's message, without the kind of error.

    >>> import duckdb
    >>> plain(duckdb.Error("Invalid Input Error: CSV Error on Line: 1\nOriginal Line: ?\nThis is not utf-8."))
    'This is not utf-8.'
    """
    if any(words in str(error) for words in TOO_LONG):
        return LINE_TOO_LONG
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


Compression = Literal["none", "gzip", "zstd"]
SUFFIXES: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
ZSTD_FRAME = 0xFD2FB528
PIECE = 1 << 20  # bytes that are looked at at a time
ZSTD_SKIPPABLE = 0x184D2A50  # and the fifteen numbers after it


def check_whole(path: Path, compression: Compression) -> None:
    """Refuse a compressed file that is cut or damaged; gzip is unpacked once for that, zstd only walked over.

    Also refuse a last line without end, which the engine leaves out without a word where it reads in parallel, and a
    small file of huge lines.
    """
    try:
        if compression == "none":
            n_last = _last_line_of(path)
        elif compression == "gzip":
            n_last = _longest_line_of_gzip(path)  # the engine refuses all others of that length
        else:
            n_last = 0  # read by one thread, which notices
            with path.open("rb") as file:
                _walk_zstd(file)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{path} is cut or damaged: it cannot be unpacked as {compression}") from None
    if n_last > LONGEST_LINE:
        raise DataError(f"{path} cannot be read: {LINE_TOO_LONG}")
    if compression == "zstd" and path.stat().st_size < LINES_AT_HAND * LONGEST_LINE / BYTES_PER_PACKED_BYTE:
        lines = TextLines(path, compression).read(in_parallel=True)  # one thread would hold all of them
        sql = f"SELECT coalesce(max(strlen(line)), 0), count(*) FROM {lines}"
        [[(longest, n_lines)]] = list(batches_of_query(path, sql, 1))
        refuse_huge_lines(path, longest, n_lines)


def whole_lines(path: Path, compression: Compression) -> TextLines:
    """The lines of a file that is neither cut nor damaged."""
    check_whole(path, compression)
    return TextLines(path, compression)


def _last_line_of(path: Path) -> int:
    """How many bytes the last line has; LONGEST_LINE and more is all the same."""
    with path.open("rb") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0 and size - end <= LONGEST_LINE:
            begin = max(0, end - PIECE)
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n", 0, end - begin - int(end == size))
            if found >= 0:
                return size - begin - found
            end = begin
    return size - end


def _longest_line_of_gzip(path: Path) -> int:
    """How many bytes the longest line has; unpacking compares every checksum, and too many huge lines are refused."""
    if not path.stat().st_size:
        raise EOFError
    n_last = longest = n_lines = 0  # the last line as far as it was read
    with gzip.open(path) as file:
        while piece := file.read(PIECE):
            ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord("\n"))
            lengths = np.diff(ends, prepend=-1 - n_last)
            longest, n_lines = max(longest, int(lengths.max(initial=0))), n_lines + ends.size
            n_last = len(piece) - 1 - int(ends[-1]) if ends.size else n_last + len(piece)
            refuse_huge_lines(path, max(longest, n_last), n_lines)
    return max(longest, n_last)


LINES_AT_HAND = 2048  # in the engine, before it gives the first
BYTES_AT_HAND = 1 << 28
BYTES_PER_PACKED_BYTE = 200  # that may be at hand as well; tables seldom shrink as much


def refuse_huge_lines(path: Path, longest: int, n_lines: int) -> None:
    """Refuse a compressed file whose lines are so long that those at hand in the engine would fill the memory."""
    limit = BYTES_AT_HAND + BYTES_PER_PACKED_BYTE * path.stat().st_size
    if longest * min(n_lines, LINES_AT_HAND) > limit:
        raise DataError(f"{path} cannot be read: {LINE_TOO_LONG}")


def _walk_zstd(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    while not size or file.tell() < size:
        magic = _number(file, 4)
        if magic & ~15 == ZSTD_SKIPPABLE:
            _skip(file, _number(file, 4), size)
        elif magic == ZSTD_FRAME:
            _walk_frame(file, size)
        else:
            raise EOFError


def _walk_frame(file: BinaryIO, size: int) -> None:
    """Pass over one frame: its header, its blocks, its checksum (RFC 8878, section 3.1.1)."""
    descriptor = _number(file, 1)
    single_segment = bool(descriptor & 32)
    window = 0 if single_segment else 1
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    content = (int(single_segment), 2, 4, 8)[descriptor >> 6]
    _skip(file, window + dictionary + content, size)
    last = False
    while not last:
        block = _number(file, 3)
        last, kind = bool(block & 1), block >> 1 & 3
        _skip(file, 1 if kind == 1 else block >> 3, size)
    _skip(file, 4 if descriptor & 4 else 0, size)


def _number(file: BinaryIO, n_bytes: int) -> int:
    raw = file.read(n_bytes)
    if len(raw) < n_bytes:
        raise EOFError
    return int.from_bytes(raw, "little")


def _skip(file: BinaryIO, n_bytes: int, size: int) -> None:
    if file.seek(n_bytes, os.SEEK_CUR) > size:
        raise EOFError


AT_A_TIME = 1024  # lines that are looked at, where nobody says how many
HEADER_LINES = 1000  # a name may hold line ends, but not this many
HEADER_CHARACTERS = 1 << 24
NOT_EMPTY = "trim(line) <> ''"
NOWHERE = "\x1f\x1e\x1f\x1e"  # the engine wants a delimiter; no text holds this one, so that a line is one cell
LONGEST_LINE = 8_000_000  # bytes
BUFFER = 2 * LONGEST_LINE  # bytes that the engine reads at a time; by itself it would take sixteen lines


@dataclass(frozen=True, slots=True)
class TextLines:
    """The lines of a UTF-8 file, whatever ends them; a byte order mark before the first is dropped."""

    path: Path
    compression: Compression = "none"
    skip: int = 0  # lines at the start that are not wanted
    longest: int = LONGEST_LINE  # bytes of a line; the engine keeps thousands of lines at hand
    at_a_time: int = AT_A_TIME  # rows of one chunk

    @property
    def source(self) -> str:
        """What a query selects ``line`` from; it is null for an empty line."""
        return self.read(in_parallel=self.compression != "zstd")  # see `check_whole`

    def read(self, *, in_parallel: bool) -> str:
        """The same, by one thread or by several."""
        return (
            f"read_csv({path_literal(self.path)}, columns={{'line': 'VARCHAR'}}, header=false, skip={self.skip}, "
            f"delim='{NOWHERE}', quote='', escape='', compression='{self.compression}', max_line_size={self.longest}, "
            f"buffer_size={BUFFER}, parallel={str(in_parallel).lower()}, "
            "auto_detect=false, strict_mode=false, hive_partitioning=false)"
        )

    def query(self, sql: str, n_rows: int = AT_A_TIME) -> Iterator[list[Row]]:
        """The result of a query, so many rows at a time."""
        return batches_of_query(self.path, sql, n_rows)

    def all_lines(self) -> Iterator[str]:
        """Every line, also the empty ones."""
        for rows in self.query(f"SELECT coalesce(line, '') FROM {self.source}"):
            for (line,) in rows:
                yield line

    def first_lines(self) -> list[str]:
        """As many lines as a header may take, at least one if there is any."""
        first: list[str] = []
        n_characters = 0
        for line in self.all_lines():
            first.append(line)
            n_characters += len(line)
            if len(first) == HEADER_LINES or n_characters > HEADER_CHARACTERS:
                break
        return first
