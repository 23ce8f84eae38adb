"""Event logs and captures into the store of events: CSV, JSON lines and Parquet with one event per line, pcap."""

# ruff: noqa: S608 - only our own names, quoted paths and quoted text enter a query

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bica.data.captures import HEADER, PCAPNG_MAGIC, PcapHeader, Sniffer, add_capture, is_capture, open_bytes
from bica.data.readers.engine import (
    Compression,
    TextLines,
    ctrl_c_passing,
    path_literal,
    plain,
    text_literal,
    whole_lines,
)
from bica.data.readers.text import layout_of
from bica.data.slots.store import DATE_FIRST, EventStore, Unit, date_format, microseconds_sql, unit_of_size
from bica.data.tables import Kind, check_file, keep_standard_input, kind_inside, kind_of, speaking_of_standard_input
from bica.errors import DataError
from bica.output import temporary_folder
from bica.progress import tracked
from bica.text import brief, folded

FIRST_ROWS = 1000  # a look at these tells the keys of JSON lines, and the unit of times that are numbers
CHANNEL = "channel"
COLUMNS_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EventColumns:
    """Where an event log holds what."""

    time: str = "time"
    sensor: str = "sensor"
    channel: str | None = None  # None: the column "channel", if there is one
    unit: Unit | None = None  # of times that are numbers; None: told from their size
    written: str | None = None  # how times are written, as strptime names it; None: told from their look


@dataclass(frozen=True, slots=True)
class EventLog:
    """An event log that was looked at: what to select from, and SQL and type of each of its columns."""

    path: Path
    source: str
    columns: dict[str, tuple[str, str]]
    lines: TextLines | None = None  # of a text file
    n_header_lines: int = 0

    def place_of(self, row: int) -> str:
        """Where an event is, counted from 0: by the number of its line, where there are lines."""
        if self.lines is None:
            return f"row {row}"
        n_before = -self.n_header_lines
        for number, line in enumerate(self.lines.all_lines(), start=1):
            n_before += bool(line.strip()) or number <= self.n_header_lines
            if n_before == row + 1:
                return f"line {number}"
        return f"event {row + 1}"  # a quoted cell holds a line break

    def column(self, name: str, option: str) -> tuple[str, str]:
        """SQL and type of a column that must be there."""
        if name not in self.columns:
            there = folded([brief(column) for column in self.columns], COLUMNS_SHOWN) or "none"
            remedy = f"name the right one with {option} (there are: {there})"
            if any(name[:1].isdigit() for name in self.columns):  # a time, so no name
                remedy = f"its first line holds an event already: put the names of the columns above it ({there})"
            raise DataError(f"{self.path} has no column {brief(name)}; {remedy}")
        return self.columns[name]


def add_event_log(
    store: EventStore,
    file: int,
    path: Path,
    format_: tuple[Kind, Compression],
    columns: EventColumns,
    *,
    skip_bad: bool = False,
) -> None:
    """Put the events of one file into the store; one that cannot be used has no moment there, or is refused."""
    log = open_log(store, path, *format_)
    time, kind = log.column(columns.time, "--time")
    sensor, _ = log.column(columns.sensor, "--sensor")
    channel = _channel(log, columns)
    known = columns.written or (format_inside(store, log, time) if kind == "VARCHAR" else None)
    moment = microseconds_sql(time, kind, columns.unit or unit_inside(store, log, time), store.zone, known)
    whole = f"trim({sensor}::VARCHAR) <> ''" + ("" if channel is None else f" AND trim({channel}::VARCHAR) <> ''")
    [(before,)] = store.ask("SELECT count(*) FROM events")
    try:
        store.add_query(
            file,
            f"SELECT CASE WHEN {whole} THEN {moment} END AS moment, trim({sensor}::VARCHAR) AS sensor, "
            f"{'NULL' if channel is None else f'trim({channel}::VARCHAR)'} AS channel FROM {log.source}",
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if not skip_bad:
        _refuse_bad(
            store, log, before, {columns.time: time, columns.sensor: sensor, columns.channel or CHANNEL: channel}
        )


def _channel(log: EventLog, columns: EventColumns) -> str | None:
    if columns.channel is not None:
        return log.column(columns.channel, "--channel")[0]
    return log.columns[CHANNEL][0] if CHANNEL in log.columns else None


def open_log(store: EventStore, path: Path, kind: Kind, compression: Compression) -> EventLog:
    """Look at the start of a file just enough to know its columns."""
    if kind == "parquet":
        return _parquet_log(store, path)
    if kind not in ("csv", "jsonl"):
        raise DataError(f"{path} is no event log; these are CSV, JSON lines, Parquet, pcap or pcapng")
    lines = whole_lines(path, compression)
    return _csv_log(lines) if kind == "csv" else _json_log(lines)


def _parquet_log(store: EventStore, path: Path) -> EventLog:
    source = f"read_parquet({path_literal(path)}, hive_partitioning=false)"
    try:
        with ctrl_c_passing():
            described = store.engine.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    except duckdb.Error as error:
        raise DataError(f"{path} is not a whole Parquet file: {plain(error)}") from None
    quoted = {name: '"' + name.replace('"', '""') + '"' for name, *_ in described}
    return EventLog(path, source, {name: (quoted[name], kind) for name, kind, *_ in described})


def _csv_log(lines: TextLines) -> EventLog:
    layout = layout_of(lines.first_lines(), lines.path)
    places = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(layout.names)))
    source = (
        f"read_csv({path_literal(lines.path)}, columns={{{places}}}, header=false, skip={layout.n_header_lines}, "
        f"delim={text_literal(layout.delimiter)}, quote='\"', escape='\"', compression='{lines.compression}', "
        f"auto_detect=false, null_padding=true, strict_mode=false, hive_partitioning=false)"
    )
    columns = {name.strip(): (f"c{i}", "VARCHAR") for i, name in enumerate(layout.names)}
    return EventLog(lines.path, source, columns, lines, layout.n_header_lines)


def _json_log(lines: TextLines) -> EventLog:
    full = f"(SELECT line FROM {lines.source} WHERE trim(line) <> '')"
    first = f"SELECT json_keys(line) FROM (FROM {full} WHERE json_valid(line) LIMIT {FIRST_ROWS})"
    keys = dict.fromkeys(key for rows in lines.query(first) for (some,) in rows for key in some or [])
    return EventLog(lines.path, full, {key: (_json_text(key), "VARCHAR") for key in keys}, lines)


def _json_text(key: str) -> str:
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    return f"CASE WHEN json_valid(line) THEN json_extract_string(line, {text_literal(pointer)}) END"


def unit_inside(store: EventStore, log: EventLog, time: str) -> Unit:
    """The unit of the times in a column, told from the largest of the first ones."""
    number = f"abs(TRY_CAST({time}::VARCHAR AS DOUBLE))"
    [(largest,)] = store.ask(
        f"SELECT max(x) FROM (SELECT {number} AS x FROM {log.source} LIMIT {FIRST_ROWS}) WHERE isfinite(x)"
    )
    return unit_of_size(largest or 0.0)


def format_inside(store: EventStore, log: EventLog, time: str) -> str | None:
    """How the times in a column are written, if they do not begin with the year; None if they do."""
    numbers = ", ".join(f"max(TRY_CAST(regexp_extract(t, {text_literal(DATE_FIRST)}, {i}) AS INT))" for i in (1, 3))
    first = f"first(t) FILTER (regexp_matches(t, {text_literal(DATE_FIRST)}))"
    [(example, day, month)] = store.ask(f"SELECT {first}, {numbers} FROM (SELECT {time} AS t FROM {log.source})")
    return None if example is None else date_format(example.strip(), (day, month))


def _refuse_bad(store: EventStore, log: EventLog, before: int, cells: dict[str, str | None]) -> None:
    """One sentence on the first event that cannot be used, if there is one."""
    [(row, n_bad)] = store.ask(
        "SELECT min(rowid) - $1, count(*) FROM events WHERE rowid >= $1 AND moment IS NULL", [before]
    )
    if not n_bad:
        return
    shown = {name: f"({cell})::VARCHAR" for name, cell in cells.items() if cell is not None}
    [found] = store.ask(f"SELECT {', '.join(shown.values())} FROM {log.source} LIMIT 1 OFFSET {row}")
    raise DataError(f"{log.path}, {log.place_of(row)}: {next(_troubles(list(shown), found))}; {_what_to_do(n_bad)}")


def _troubles(names: list[str], cells: tuple[str | None, ...]) -> Iterator[str]:
    for name, cell in zip(names, cells, strict=True):
        if not (cell or "").strip():
            yield f"column {brief(name)} is empty"
    yield f"column {brief(names[0])} holds {brief(cells[0])}, which is no time"


def _what_to_do(n_bad: int) -> str:
    return f"mend it, or leave such events out with --skip-bad ({n_bad} in this file)"


def add_files(
    store: EventStore,
    paths: Sequence[str],
    columns: EventColumns | None = None,
    *,
    sniffer: Sniffer = "file",
    skip_bad: bool = False,
) -> dict[str, dict[str, int]]:
    """Put the events of all files into the store; returns what was read and skipped of each capture, by its path.

    A path that ends in .pcap, .pcapng or .cap (also with .gz behind) is a capture; a single dash is standard input.
    """
    captures = {}
    for file, path in enumerate(tracked(paths, "reading events", len(paths))):
        with _on_disk(path) as here:
            if is_capture(here) or (path == "-" and _starts_like_a_capture(here)):
                check_file(here)
                captures[path] = add_capture(store, file, here, sniffer)
            elif path == "-":
                add_event_log(store, file, here, kind_inside(here), columns or EventColumns(), skip_bad=skip_bad)
            else:
                check_file(here)
                add_event_log(store, file, here, kind_of(here), columns or EventColumns(), skip_bad=skip_bad)
    return captures


@contextmanager
def _on_disk(path: str) -> Iterator[Path]:
    """The file itself; standard input becomes one for a while."""
    if path != "-":
        yield Path(path)
        return
    with temporary_folder() as folder:
        here = folder / "stdin"
        keep_standard_input(here)
        with speaking_of_standard_input(here):
            yield here


def _starts_like_a_capture(path: Path) -> bool:
    if not os.path.getsize(path):
        return False
    with open_bytes(path) as file:
        start = file.read(HEADER)
    return start.startswith(PCAPNG_MAGIC) or PcapHeader.of(start) is not None
