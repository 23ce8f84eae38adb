"""Where the slots lie: equal lengths of time, one after the other."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.slots.lengths import in_words
from bica.data.slots.moments import moment_given, offset_at, written
from bica.data.slots.store import EventStore
from bica.errors import DataError, SettingError

MOST_SLOTS = 10**8  # three years of seconds; more is a stray time rather than a wish, unless both ends were given


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
    first, last = _span(store, need_first=start is None, need_last=end is None)
    begin = _floor(store, first, length) if start is None else moment_given(store.engine, start, "the start")
    stop = last + 1 if end is None else moment_given(store.engine, end, "the end")
    n_slots = -((begin - stop) // length)
    if n_slots <= 0:
        raise SettingError(
            f"there is no slot between the start {written(store.engine, begin)} and the end "
            f"{written(store.engine, stop)}; the end must be later"
        )
    if n_slots > MOST_SLOTS and (start is None or end is None):
        raise DataError(
            f"the events reach from {written(store.engine, begin)} to {written(store.engine, stop)}, which is "
            f"{n_slots} slots of {in_words(length)}; if that is no stray time, say so with --start and --end"
        )
    return SlotGrid(begin, length, n_slots)


def _span(store: EventStore, *, need_first: bool, need_last: bool) -> tuple[int, int]:
    [(first, last)] = store.ask("SELECT min(moment), max(moment) FROM events")
    if first is None and (need_first or need_last):
        raise DataError("there are no events, so it cannot be told when to begin; give --start and --end")
    return first or 0, last or 0


def _floor(store: EventStore, moment: int, length: int) -> int:
    local = moment + offset_at(store.engine, moment)
    return moment - local % length
