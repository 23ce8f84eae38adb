"""Where the slots lie, equal lengths of time one after the other, and when sensors were down."""

# ruff: noqa: S608 - only our own names and SQL of the log's columns enter a query

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
from bica.text import brief, counted

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
        raise DataError(f"{path}, row {row}: the outage ends at {end_text}, which is not after its start {start_text}")
    return first, last
