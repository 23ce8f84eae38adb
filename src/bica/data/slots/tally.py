"""What became of the events: used, left out and why, and whether clocks ran backwards."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.slots.store import EventStore
from bica.data.slots.tables import ONE_TABLE, SlotPlan
from bica.kernels.clocks import NEVER, count_steps_back
from bica.progress import tracked

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
    last, n_steps, largest = np.full((n_files, len(sensors)), NEVER), *np.zeros((2, n_files, len(sensors)), np.int64)
    pieces = range(0, n_rows, ROWS_A_PIECE)
    for first in tracked(pieces, "looking at clocks", len(pieces)):
        clocks, moments = store.columns(
            "SELECT file::BIGINT * $1 + enum_code(sensor::sensor_name), moment FROM events "
            "WHERE moment IS NOT NULL AND rowid >= $2 AND rowid < $3",
            [len(sensors), first, first + ROWS_A_PIECE],
        )
        count_steps_back(clocks, moments, last.reshape(-1), n_steps.reshape(-1), largest.reshape(-1))
    return sensors, n_steps, largest
