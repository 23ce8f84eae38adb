"""From events to cells: where the slots lie, one row for each, one column per sensor; what became of the events."""

# ruff: noqa: S608 - only our own names and SQL of the log's columns enter a query

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import MISSING, rows_a_chunk
from bica.data.slots.event_files import EventLog, open_log, unit_inside
from bica.data.slots.store import (
    EventStore,
    Unit,
    in_words,
    microseconds_sql,
    moment_given,
    offset_at,
    offset_words,
    written,
)
from bica.data.tables import check_file, kind_of
from bica.errors import DataError, SettingError
from bica.kernels.captures import NO_TIME, count_steps_back
from bica.progress import tracked
from bica.text import brief, counted

# Where the slots lie, equal lengths of time one after the other, and when sensors were down.

MOST_SLOTS = 10**8  # three years of seconds; more is a stray time rather than a wish, unless both ends were given
FREE_SLOTS = 10**6  # and so are more than these with less than one event in SLOTS_PER_EVENT of them
SLOTS_PER_EVENT = 1000


@dataclass(frozen=True, slots=True)
class SlotGrid:
    """``n_slots`` slots of ``length`` from ``start`` on, in microseconds; a slot holds its first moment, not its end.

    >>> SlotGrid(start=0, length=1000, n_slots=5).touched(np.array([[500, 1000], [999, 3001]]))
    array([[0, 1],
           [0, 4]])
    """

    start: int
    length: int
    n_slots: int

    @property
    def end(self) -> int:
        """The first moment after the last slot."""
        return self.start + self.n_slots * self.length

    def touched(self, intervals: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first slot that each interval [from, to) touches, and the first slot after it: (n, 2)."""
        first = (intervals[:, 0] - self.start) // self.length
        after = -((self.start - intervals[:, 1]) // self.length)
        return np.clip(np.stack([first, after], axis=1), 0, self.n_slots)


def slot_grid(store: EventStore, length: int, start: str | None = None, end: str | None = None) -> SlotGrid:
    """The slots from ``start`` to ``end``; without these, from the first event's slot to the last one's.

    Unless ``start`` is given, slots begin where the local clock shows a whole number of slot lengths.
    """
    first, last, n_events = _span(store, need_first=start is None, need_last=end is None)
    begin = _floor(store, first, length) if start is None else moment_given(store.engine, start, "the start")
    stop = last + 1 if end is None else moment_given(store.engine, end, "the end")
    n_slots = -((begin - stop) // length)
    if n_slots <= 0:
        raise SettingError(
            f"there is no slot between the start {written(store.engine, begin)} and the end "
            f"{written(store.engine, stop)}; the end must be later"
        )
    likely = min(MOST_SLOTS, max(FREE_SLOTS, SLOTS_PER_EVENT * n_events))
    if n_slots > likely and (start is None or end is None):
        raise DataError(
            f"{counted(n_events, 'event')} reach from {written(store.engine, begin)} to {written(store.engine, stop)}, "
            f"which is {n_slots} slots of {in_words(length)}; if that is no stray time, say so with --start and --end"
        )
    return SlotGrid(begin, length, n_slots)


def slot_starts(store: EventStore, grid: SlotGrid, first: int, n_slots: int) -> list[str]:
    """When these slots begin, in ISO 8601 with the offset of the store's time zone; Z in UTC."""
    moments = grid.start + grid.length * np.arange(first, first + n_slots, dtype=np.int64)
    if store.zone == "UTC":
        return [f"{text}Z" for text in _iso(moments, grid)]
    sql = "SELECT extract('timezone' FROM make_timestamptz($1 + $2 * i))::BIGINT FROM range($3) AS t(i)"
    [seconds] = store.columns(sql, [int(moments[0]), grid.length, n_slots])
    local = _iso(moments + 10**6 * seconds, grid)
    return [text + offset_words(offset) for text, offset in zip(local, seconds.tolist(), strict=True)]


def _iso(moments: NDArray[np.int64], grid: SlotGrid) -> list[str]:
    """Moments in ISO 8601, with as many digits as the slots need."""
    units = (("s", 10**6), ("ms", 1000), ("us", 1))
    unit = next(unit for unit, length in units if not (grid.start % length or grid.length % length))
    texts: list[str] = moments.astype("datetime64[us]").astype(f"datetime64[{unit}]").astype(str).tolist()
    return texts


def _span(store: EventStore, *, need_first: bool, need_last: bool) -> tuple[int, int, int]:
    [(first, last, n_events)] = store.ask("SELECT min(moment), max(moment), count(moment) FROM events")
    if first is None and (need_first or need_last):
        raise DataError("there are no events, so it cannot be told when to begin; give --start and --end")
    return first or 0, last or 0, n_events


def _floor(store: EventStore, moment: int, length: int) -> int:
    local = moment + offset_at(store.engine, moment)
    return moment - local % length


ALWAYS = (-(2**62), 2**62)  # before and after all times


@dataclass(frozen=True, slots=True)
class Outages:
    """Who was down when: sensor, channel (None: all) and [from, to) in microseconds, one each."""

    sensors: tuple[str, ...] = ()
    channels: tuple[str | None, ...] = ()
    intervals: NDArray[np.int64] | None = None  # (n_outages, 2)

    def slots(self, grid: SlotGrid, sensors: Sequence[str], channel: str | None) -> NDArray[np.int64]:
        """Rows of sensor's place, first slot, slot after: every slot that an outage touches, if only in part."""
        place = {name: i for i, name in enumerate(sensors)}
        chosen = [
            i
            for i, (sensor, only) in enumerate(zip(self.sensors, self.channels, strict=True))
            if sensor in place and only in (None, channel)
        ]
        if self.intervals is None or not chosen:
            return np.empty((0, 3), np.int64)
        places = np.array([place[self.sensors[i]] for i in chosen], np.int64)
        return np.column_stack([places, grid.touched(self.intervals[chosen])])


def read_outages(store: EventStore, path: Path, unit: Unit | None = None) -> Outages:
    """The outages in a file with the columns sensor, start, end and perhaps channel; an empty time is open-ended."""
    check_file(path)
    log = open_log(store, path, *kind_of(path))
    sensor, _ = log.column("sensor", "the header")
    channel = log.columns["channel"][0] if "channel" in log.columns else "NULL"
    ends = [_end(store, log, name, unit) for name in ("start", "end")]
    rows = store.ask(
        f"SELECT trim({sensor}::VARCHAR), nullif(trim({channel}::VARCHAR), ''), "
        f"{', '.join(f'{moment}, {text}' for moment, text in ends)} FROM {log.source}"
    )
    intervals = [_interval(path, row, *cells) for row, (_, _, *cells) in enumerate(rows)]
    for row, (name, *_) in enumerate(rows):
        if not name:
            raise DataError(f"{path}, row {row}: it is not said which sensor was down")
    sensors, channels = tuple(row[0] for row in rows), tuple(row[1] for row in rows)
    return Outages(sensors, channels, np.array(intervals, np.int64).reshape(-1, 2))


def _end(store: EventStore, log: EventLog, name: str, unit: Unit | None) -> tuple[str, str]:
    column, kind = log.column(name, "the header")
    return microseconds_sql(
        column, kind, unit or unit_inside(store, log, column)
    ), f"nullif(trim({column}::VARCHAR), '')"


def _interval(
    path: Path, row: int, start: int | None, start_text: str | None, end: int | None, end_text: str | None
) -> tuple[int, int]:
    for moment, text in ((start, start_text), (end, end_text)):
        if moment is None and text is not None:
            raise DataError(f"{path}, row {row}: {brief(text)} is no time; write it as in 2024-05-01T12:00:00")
    first, last = ALWAYS[0] if start is None else start, ALWAYS[1] if end is None else end
    if first >= last:
        ends = brief(end_text or "never"), brief(start_text or "the beginning")
        raise DataError(f"{path}, row {row}: the outage ends at {ends[0]}, which is not after its start {ends[1]}")
    return first, last


DIGITS = "0123456789"
ONE_TABLE = None  # in place of a channel, where there are none


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """What the tables will be: their slots, their columns, and one table a channel."""

    grid: SlotGrid
    sensors: tuple[str, ...]
    channels: tuple[str | None, ...]
    outages: Outages


@dataclass(slots=True)
class TableCounts:
    """What is worth telling about one table, gathered while it is made."""

    sensors: tuple[str, ...]
    on: NDArray[np.int64]  # (n_sensors,), in how many slots each sensor was on
    missing: NDArray[np.int64]  # (n_sensors,), in how many it was not observed
    heard_while_down: int = 0  # slots in which a sensor reported although it was said to be down

    @classmethod
    def none_yet(cls, sensors: tuple[str, ...]) -> "TableCounts":
        """Before the first row."""
        return cls(sensors, np.zeros(len(sensors), np.int64), np.zeros(len(sensors), np.int64))

    def add(self, cells: NDArray[np.uint8], heard_while_down: int) -> None:
        """Count the next rows."""
        self.on += (cells == 1).sum(axis=0)
        self.missing += (cells == MISSING).sum(axis=0)
        self.heard_while_down += heard_while_down

    def silent(self) -> tuple[str, ...]:
        """Sensors that were never on."""
        return tuple(name for name, on in zip(self.sensors, self.on, strict=True) if not on)


def plan_tables(
    store: EventStore,
    grid: SlotGrid,
    *,
    sensors: Sequence[str] | None = None,
    channels: Sequence[str] | None = None,
    outages: Outages | None = None,
    one_table: bool = False,
) -> SlotPlan:
    """The columns and tables: those that were named, or all that occur, in the order of their names."""
    outages = outages or Outages()
    columns = tuple(sensors) if sensors is not None else _names(store, "sensor", outages.sensors)
    if not columns:
        raise DataError("there are no events, so the sensors are unknown; name them with --sensors")
    heard = () if one_table else _names(store, "channel", ())
    tables: tuple[str | None, ...] = (tuple(channels) if channels is not None else heard) or (ONE_TABLE,)
    store.ask("CREATE OR REPLACE TEMP TABLE places AS SELECT unnest($1) AS sensor, unnest($2) AS place", [
        list(columns), list(range(len(columns)))
    ])  # fmt: skip
    return SlotPlan(grid, columns, tables, outages)


def _names(store: EventStore, column: str, more: Sequence[str]) -> tuple[str, ...]:
    rows = store.ask(f"SELECT DISTINCT {column} FROM events WHERE moment IS NOT NULL AND {column} IS NOT NULL")
    return tuple(sorted({name for (name,) in rows} | set(more), key=natural))


def natural(name: str) -> list[tuple[int, int, str, str]]:
    """An order in which numbers inside names go by their size.

    >>> sorted(["x10", "11", "6", "x2"], key=natural)
    ['6', '11', 'x2', 'x10']
    """
    parts = re.split(r"([0-9]+)", name)
    return [(0, *_size(part), part) if part[0] in DIGITS else (1, 0, "", part) for part in parts if part]


def _size(digits: str) -> tuple[int, str]:
    """What numbers compare by, of any length: Python turns no more than 4300 digits into a number."""
    significant = digits.lstrip("0")
    return len(significant), significant


def slot_cells(
    store: EventStore, plan: SlotPlan, channel: str | None, counts: TableCounts
) -> Iterator[NDArray[np.uint8]]:
    """The table of one channel, a few megabytes at a time: cells are 0, 1 or ``MISSING``.

    The engine groups the events of each piece, so memory is bounded by the piece, however many events there are. A
    slot that an outage touches is missing, whatever was heard in the rest of it: otherwise the quiet ones alone would
    be missing, and the sensor look busier than it is.
    """
    down = plan.outages.slots(plan.grid, plan.sensors, channel)
    step = rows_a_chunk(len(plan.sensors))
    starts = range(0, plan.grid.n_slots, step)
    for first in tracked(starts, "filling slots", len(starts)):
        n_rows = min(step, plan.grid.n_slots - first)
        cells = np.zeros((n_rows, len(plan.sensors)), np.uint8)
        cells.reshape(-1)[_on_cells(store, plan, channel, first, n_rows)] = 1
        heard_while_down = _blank(cells, down, first)
        counts.add(cells, heard_while_down)
        yield cells


def _on_cells(store: EventStore, plan: SlotPlan, channel: str | None, first: int, n_rows: int) -> NDArray[np.int64]:
    """Which cells of some rows are on, as places in the piece."""
    begin = plan.grid.start + first * plan.grid.length
    wanted = "true" if channel is ONE_TABLE else "channel = $5"
    values = [begin, begin + n_rows * plan.grid.length, plan.grid.length, len(plan.sensors)]
    [cells] = store.columns(
        "SELECT DISTINCT ((moment - $1) // $3) * $4 + place AS cell FROM events JOIN places USING (sensor) "
        f"WHERE moment >= $1 AND moment < $2 AND {wanted}",
        values if channel is ONE_TABLE else [*values, channel],
    )
    return cells


def _blank(cells: NDArray[np.uint8], down: NDArray[np.int64], first: int) -> int:
    """Make the cells of outages missing, and count those in which something was heard all the same."""
    heard = 0
    for place, begin, after in down:
        part = cells[max(begin - first, 0) : max(after - first, 0), place]
        heard += int((part == 1).sum())
        part[:] = MISSING
    return heard


USED, UNREADABLE, BEFORE, AFTER = "used", "unreadable", "before the start", "after the end"
ROWS_A_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class ClockStep:
    """A sensor whose events were written with falling times: how often, and by how many microseconds at most."""

    sensor: str
    n_steps: int
    largest: int


def tally(store: EventStore, plan: SlotPlan) -> dict[str, int]:
    """How many events were used, and how many left out for each reason; every event counts once."""
    late = f"WHEN moment < $1 THEN '{BEFORE}' WHEN moment >= $2 THEN '{AFTER}'"
    where = f"CASE WHEN moment IS NULL THEN '{UNREADABLE}' {late} END"
    sql = f"SELECT {where} AS why, sensor, channel, count(*) FROM events GROUP BY ALL"
    counts = {USED: 0}
    for why, sensor, channel, n_events in store.ask(sql, [plan.grid.start, plan.grid.end]):
        reason = why or _no_place(plan, sensor, channel) or USED
        counts[reason] = counts.get(reason, 0) + n_events
    return counts


def _no_place(plan: SlotPlan, sensor: str, channel: str | None) -> str | None:
    if sensor not in plan.sensors:
        return "other sensors"
    if plan.channels == (ONE_TABLE,) or channel in plan.channels:
        return None
    return "no channel" if channel is None else "other channels"


def clocks_that_went_back(store: EventStore) -> list[ClockStep]:
    """Sensors whose times fall somewhere along a file; a log that is in order as a whole takes one quick look."""
    quick = "SELECT moment < lag(moment) OVER () AND file = lag(file) OVER () AS back FROM events"
    [(n_back,)] = store.ask(f"SELECT count(*) FROM ({quick}) WHERE back")
    if not n_back:
        return []
    sensors, n_steps, largest = _steps_back(store)
    found = zip(sensors, n_steps.sum(axis=0).tolist(), largest.max(axis=0).tolist(), strict=True)
    return [ClockStep(*step) for step in sorted(found) if step[1]]


def _steps_back(store: EventStore) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """The sensors, and of each file and sensor how many steps went back and the largest: (n_files, n_sensors)."""
    store.ask("DROP TYPE IF EXISTS sensor_name")
    store.ask("CREATE TYPE sensor_name AS ENUM (SELECT DISTINCT sensor FROM events WHERE moment IS NOT NULL)")
    sensors = [name for (name,) in store.ask("SELECT unnest(enum_range(NULL::sensor_name))")]
    [(n_rows, n_files)] = store.ask("SELECT count(*), max(file) + 1 FROM events")
    last, n_steps, largest = np.full((n_files, len(sensors)), NO_TIME), *np.zeros((2, n_files, len(sensors)), np.int64)
    pieces = range(0, n_rows, ROWS_A_PIECE)
    for first in tracked(pieces, "looking at clocks", len(pieces)):
        clocks, moments = store.columns(
            "SELECT file::BIGINT * $1 + enum_code(sensor::sensor_name), moment FROM events "
            "WHERE moment IS NOT NULL AND rowid >= $2 AND rowid < $3",
            [len(sensors), first, first + ROWS_A_PIECE],
        )
        count_steps_back(clocks, moments, last.reshape(-1), n_steps.reshape(-1), largest.reshape(-1))
    return sensors, n_steps, largest
