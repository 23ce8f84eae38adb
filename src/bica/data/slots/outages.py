"""When sensors were down: a list of intervals, in which a quiet cell would be a lie."""

# ruff: noqa: S608 - only our own names and SQL of the log's columns enter a query

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bica.data.files import check_file, kind_of
from bica.data.slots.event_files import EventLog, open_log, unit_inside
from bica.data.slots.grid import SlotGrid
from bica.data.slots.moments import Unit, microseconds_sql
from bica.data.slots.store import EventStore
from bica.errors import DataError

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
            raise DataError(f"{path}, row {row}: {text!r} is no time; write it as in 2024-05-01T12:00:00")
    first, last = ALWAYS[0] if start is None else start, ALWAYS[1] if end is None else end
    if first >= last:
        raise DataError(f"{path}, row {row}: the outage ends at {end_text}, which is not after its start {start_text}")
    return first, last
