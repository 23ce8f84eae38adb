"""From events to cells: one row per slot, one column per sensor; and what became of the events."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import MISSING, rows_a_chunk
from bica.data.slots.grid import Outages, SlotGrid
from bica.data.slots.store import EventStore
from bica.errors import DataError
from bica.kernels.captures import NO_TIME, count_steps_back
from bica.progress import tracked

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
    rows = store.ask(f"SELECT DISTINCT {column} FROM events WHERE moment IS NOT NULL AND {column} IS NOT NULL")  # noqa: S608 - our own names
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
        "SELECT DISTINCT ((moment - $1) // $3) * $4 + place AS cell FROM events JOIN places USING (sensor) "  # noqa: S608 - our own words
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
    sql = f"SELECT {where} AS why, sensor, channel, count(*) FROM events GROUP BY ALL"  # noqa: S608 - our own words
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
    [(n_back,)] = store.ask(f"SELECT count(*) FROM ({quick}) WHERE back")  # noqa: S608 - our own words
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
