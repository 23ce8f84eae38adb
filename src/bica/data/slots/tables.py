"""From events to cells: one row a slot, one column a sensor, 1 where the sensor reported something."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import MISSING, rows_a_chunk
from bica.data.slots.grid import SlotGrid
from bica.data.slots.outages import Outages
from bica.data.slots.store import EventStore
from bica.errors import DataError
from bica.progress import tracked

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


def natural(name: str) -> list[tuple[int, int, str]]:
    """An order in which numbers inside names go by their size.

    >>> sorted(["x10", "11", "6", "x2"], key=natural)
    ['6', '11', 'x2', 'x10']
    """
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), part) if part.isdigit() else (1, 0, part) for part in parts if part]


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
