"""One row: which sources could explain it, what switching each of them on would gain, and what stays unexplained.

A covered sensor that shows 1 speaks for the active sources by log((1 - miss) / false_alarm), one that shows 0 against
them by log(miss / (1 - false_alarm)), which is negative, and one that was not observed says nothing. The gain of a
source is its log odds plus what its sensors say that nothing covers yet. Gains and counts of coverage are kept current
while sources are switched on and off, through the list of sources that reach each sensor: nothing else is touched, and
every switch can be undone.

Helpers take plain arrays, many of them: taking arrays out of tuples counts references, which costs more than the work
of a row. Those of the sources are ``starts, sensors`` (the columns), ``reach_starts, reach`` (the sources of each
sensor) and ``says`` (what a covered sensor says, by cell and sensor). The scratch space, clean between rows, is
``cell[CELL or COVER, sensor]``, ``slot[PLACE, source]`` (-1 when clean), ``slot[..., candidate]``, the ``gain`` of
each candidate, and ``count``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled

# Lists of numbers of different lengths in one array: the ones of a row, the sensors of a source, its rows.
#
# Such lists are two arrays: list ``k`` is ``items[start[k]:start[k + 1]]``. Turned round, they say for every number
# which lists hold it.


class Lists(NamedTuple):
    """Lists of numbers, one after the other."""

    start: NDArray[np.int64]  # (n_lists + 1,)
    items: NDArray[np.int32]


@compiled
def list_bits(words: Words, n_columns: int) -> Lists:
    """The columns whose bit is set, for every row of ``words``."""
    start = np.zeros(words.shape[0] + 1, np.int64)
    for row in range(words.shape[0]):
        n_set = 0
        for word in words[row]:
            while word:
                word &= word - np.uint64(1)
                n_set += 1
        start[row + 1] = start[row] + n_set
    items = np.empty(start[-1], np.int32)
    for row in range(words.shape[0]):
        place = start[row]
        for column in range(n_columns):
            if words[row, column // 64] >> np.uint64(column % 64) & np.uint64(1):
                items[place] = column
                place += 1
    return Lists(start, items)


@compiled
def turned(lists: Lists, n_items: int) -> Lists:
    """For each of ``n_items`` numbers the lists that hold it, ascending."""
    start = np.zeros(n_items + 1, np.int64)
    for item in lists.items:
        start[item + 1] += 1
    for item in range(n_items):
        start[item + 1] += start[item]
    free = start[:-1].copy()
    holders = np.empty(lists.items.size, np.int32)
    for k in range(lists.start.size - 1):
        for place in range(lists.start[k], lists.start[k + 1]):
            holders[free[lists.items[place]]] = k
            free[lists.items[place]] += 1
    return Lists(start, holders)


@compiled
def taken(lists: Lists, chosen: NDArray[np.int64]) -> Lists:
    """Only the chosen lists, in this order."""
    start = np.zeros(chosen.size + 1, np.int64)
    for place in range(chosen.size):
        start[place + 1] = start[place] + lists.start[chosen[place] + 1] - lists.start[chosen[place]]
    items = np.empty(start[-1], np.int32)
    for place in range(chosen.size):
        k = chosen[place]
        items[start[place] : start[place + 1]] = lists.items[lists.start[k] : lists.start[k + 1]]
    return Lists(start, items)


@compiled
def spliced(
    lists: Lists, values: NDArray[np.float64], chosen: NDArray[np.int64], new: Lists, new_values: NDArray[np.float64]
) -> tuple[Lists, NDArray[np.float64]]:
    """The lists with the ``chosen`` ones replaced by ``new``, and the values that go with their items."""
    n_lists = lists.start.size - 1
    source = np.full(n_lists, -1, np.int64)
    for k in range(chosen.size):
        source[chosen[k]] = k
    start = np.zeros(n_lists + 1, np.int64)
    for k in range(n_lists):
        if source[k] < 0:
            start[k + 1] = start[k] + lists.start[k + 1] - lists.start[k]
        else:
            start[k + 1] = start[k] + new.start[source[k] + 1] - new.start[source[k]]
    items, both = np.empty(start[-1], np.int32), np.empty(start[-1])
    for k in range(n_lists):
        if source[k] < 0:
            begin, end = lists.start[k], lists.start[k + 1]
            items[start[k] : start[k + 1]], both[start[k] : start[k + 1]] = lists.items[begin:end], values[begin:end]
        else:
            begin, end = new.start[source[k]], new.start[source[k] + 1]
            items[start[k] : start[k + 1]], both[start[k] : start[k + 1]] = new.items[begin:end], new_values[begin:end]
    return Lists(start, items), both


Ints = NDArray[np.int32]
Places = NDArray[np.int64]
Numbers = NDArray[np.float64]
USEFUL = 1e-9  # nats: a smaller gain is rounding
CELL, COVER = range(2)  # what a sensor shows, and by how many active sources it is covered
ZERO, ONE, GAP = range(3)  # what a sensor can show: 0, 1, or nothing since it was not observed
# Where a source stands among the candidates; and for each candidate its source, whether it is on, whether it is among
# the hot ones (whose gain became positive) and the list of these, since when its gain changed and the list of these.
PLACE, SOURCE, ON, IS_HOT, HOT, STAMPED, MOVED = range(7)
N_CANDIDATES, N_HOT, N_MOVED, STAMP = range(4)


class RowCells(NamedTuple):
    """The rows: what each shows. Without gaps ``gaps`` holds empty lists."""

    ones: Lists  # the sensors that are on
    gaps: Lists  # the sensors that were not observed
    weights: Numbers


class Sources(NamedTuple):
    """The sources, and what the sensors say for and against them."""

    columns: Lists  # the sensors of each source
    reaching: Lists  # the sources of each sensor
    log_odds: Numbers  # of being on; -inf: never
    silent: Numbers  # the gain in a row without ones: log odds plus what all sensors say by showing 0
    frequent: Ints  # sources that are on more often than not
    says: Numbers  # (3, n_sensors), what a covered sensor says by showing 0, by showing 1, and when not observed


@compiled
def work_space(n_sources: int, n_sensors: int) -> tuple[Ints, Ints, Numbers, Places]:
    """Clean scratch space for ``n_sources`` and ``n_sensors``: cell, slot, gain, count."""
    slot = np.zeros((7, n_sources), np.int32)
    slot[PLACE] = -1
    return np.zeros((2, n_sensors), np.int32), slot, np.zeros(n_sources), np.zeros(4, np.int64)


@compiled
def _nominate(source: int, log_odds: Numbers, silent: Numbers, slot: Ints, gain: Numbers, count: Places) -> None:
    """Make the source a candidate, unless it is one already or can never be on."""
    if slot[PLACE, source] < 0 and log_odds[source] > -np.inf:
        b = count[N_CANDIDATES]
        slot[PLACE, source], slot[SOURCE, b], slot[ON, b], gain[b] = b, source, 0, silent[source]
        count[N_CANDIDATES] = b + 1


@compiled
def gather(
    ones: Ints, gaps: Ints, kept: Ints, hopeless: float, reach_starts: Places, reach: Ints, says: Numbers,
    log_odds: Numbers, silent: Numbers, frequent: Ints, cell: Ints, slot: Ints, gain: Numbers, count: Places,
) -> None:  # fmt: skip
    """Make candidates of the sources with a sensor that shows 1 and a gain above ``hopeless``, and of those ``kept``.

    Sources that are on more often than not need no sensor that shows 1. The order of the candidates must not depend on
    those kept: a sweep that visits active sources first would not sample from the right distribution.
    """
    count[:] = 0
    for k in range(ones.size):
        cell[CELL, ones[k]] = ONE
        for q in range(reach_starts[ones[k]], reach_starts[ones[k] + 1]):
            _nominate(reach[q], log_odds, silent, slot, gain, count)
            if slot[PLACE, reach[q]] >= 0:
                gain[slot[PLACE, reach[q]]] += says[ONE, ones[k]] - says[ZERO, ones[k]]
    for k in range(frequent.size):
        _nominate(frequent[k], log_odds, silent, slot, gain, count)
    for k in range(kept.size):
        _nominate(kept[k], log_odds, silent, slot, gain, count)
        if slot[PLACE, kept[k]] >= 0:
            slot[ON, slot[PLACE, kept[k]]] = 1
    for k in range(gaps.size):
        cell[CELL, gaps[k]] = GAP
        for q in range(reach_starts[gaps[k]], reach_starts[gaps[k] + 1]):
            if slot[PLACE, reach[q]] >= 0:
                gain[slot[PLACE, reach[q]]] -= says[ZERO, gaps[k]]
    _keep_hopeful(hopeless, slot, gain, count)


@compiled
def _keep_hopeful(hopeless: float, slot: Ints, gain: Numbers, count: Places) -> None:
    """Drop the candidates that gain too little, and list those that gain something as hot; all start switched off."""
    n_left, n_hot = 0, 0
    for b in range(count[N_CANDIDATES]):
        source = slot[SOURCE, b]
        if slot[ON, b] == 0 and gain[b] <= hopeless:
            slot[PLACE, source] = -1
            continue
        slot[PLACE, source], slot[SOURCE, n_left], gain[n_left] = n_left, source, gain[b]
        slot[ON, n_left], slot[IS_HOT, n_left], slot[STAMPED, n_left] = 0, 0, -1
        if gain[b] > USEFUL:
            slot[IS_HOT, n_left], slot[HOT, n_hot] = 1, n_left
            n_hot += 1
        n_left += 1
    count[N_CANDIDATES], count[N_HOT] = n_left, n_hot


@compiled
def switch(
    b: int, starts: Places, sensors: Ints, reach_starts: Places, reach: Ints, says: Numbers,
    cell: Ints, slot: Ints, gain: Numbers, count: Places,
) -> None:  # fmt: skip
    """Switch candidate ``b`` on if it is off, and off if it is on."""
    step = 1 - 2 * slot[ON, b]
    slot[ON, b] = 1 - slot[ON, b]
    source = slot[SOURCE, b]
    for at in range(starts[source], starts[source + 1]):
        sensor = sensors[at]
        before = cell[COVER, sensor]
        cell[COVER, sensor] = before + step
        if before + min(step, 0) != 0:
            continue
        change = step * says[cell[CELL, sensor], sensor]
        for q in range(reach_starts[sensor], reach_starts[sensor + 1]):
            other = slot[PLACE, reach[q]]
            if other < 0:
                continue
            gain[other] -= change
            if slot[STAMPED, other] != count[STAMP]:
                slot[STAMPED, other], slot[MOVED, count[N_MOVED]] = count[STAMP], other
                count[N_MOVED] += 1
            if gain[other] > USEFUL and slot[ON, other] == 0 and slot[IS_HOT, other] == 0:
                slot[IS_HOT, other], slot[HOT, count[N_HOT]] = 1, other
                count[N_HOT] += 1


@compiled
def worth(b: int, starts: Places, sensors: Ints, says: Numbers, cell: Ints, slot: Ints, gain: Numbers) -> float:
    """What the row would lose if the active candidate ``b`` were switched off and nothing else changed."""
    value: float = gain[b]
    source = slot[SOURCE, b]
    for at in range(starts[source], starts[source + 1]):
        if cell[COVER, sensors[at]] == 1:
            value += says[cell[CELL, sensors[at]], sensors[at]]
    return value


@compiled
def leave(ones: Ints, gaps: Ints, starts: Places, sensors: Ints, cell: Ints, slot: Ints, count: Places) -> None:
    """Clean the scratch space for the next row."""
    for b in range(count[N_CANDIDATES]):
        source = slot[SOURCE, b]
        slot[PLACE, source] = -1
        if slot[ON, b]:
            for at in range(starts[source], starts[source + 1]):
                cell[COVER, sensors[at]] = 0
    for k in range(ones.size):
        cell[CELL, ones[k]] = ZERO
    for k in range(gaps.size):
        cell[CELL, gaps[k]] = ZERO


class Coverage(NamedTuple):
    """How many cells the active sources cover, and which ones (cells that show 1) they leave unexplained."""

    unexplained: Lists  # of each row, the sensors that are on though no active source reaches them
    ones: NDArray[np.float64]  # (n_sensors,), weight of the covered cells that show 1
    zeros: NDArray[np.float64]  # (n_sensors,), weight of the covered cells that show 0


@compiled
def cover_rows(rows: NDArray[np.int64], cells: RowCells, columns: Lists, active: Lists, n_sensors: int) -> Coverage:
    """What the active sources of the given rows cover; ``active`` has a list for every row of the table."""
    shown, covered = np.zeros(n_sensors, np.uint8), np.full(n_sensors, -1, np.int64)
    ones, zeros, start = np.zeros(n_sensors), np.zeros(n_sensors), np.zeros(rows.size + 1, np.int64)
    n_most = 0
    for row in rows:
        n_most += cells.ones.start[row + 1] - cells.ones.start[row]
    left = np.empty(n_most, np.int32)
    size = 0
    for k in range(rows.size):
        row = rows[k]
        mine = cells.ones.items[cells.ones.start[row] : cells.ones.start[row + 1]]
        gaps = cells.gaps.items[cells.gaps.start[row] : cells.gaps.start[row + 1]]
        shown[mine] = ONE
        shown[gaps] = GAP
        for at in range(active.start[row], active.start[row + 1]):
            source = active.items[at]
            for sensor in columns.items[columns.start[source] : columns.start[source + 1]]:
                if covered[sensor] != k:
                    covered[sensor] = k
                    if shown[sensor] == ONE:
                        ones[sensor] += cells.weights[row]
                    elif shown[sensor] == ZERO:
                        zeros[sensor] += cells.weights[row]
        for sensor in mine:
            if covered[sensor] != k:
                left[size] = sensor
                size += 1
        start[k + 1] = size
        shown[mine] = ZERO
        shown[gaps] = ZERO
    return Coverage(Lists(start, left[:size].copy()), ones, zeros)


@compiled
def gain_of_rows(rows: NDArray[np.int64], cells: RowCells, sources: Sources, active: Lists) -> NDArray[np.float64]:
    """What the active sources gain in each of these rows, compared with no active source."""
    says, columns = sources.says, sources.columns
    shown, covered = np.zeros(says.shape[1], np.uint8), np.full(says.shape[1], -1, np.int64)
    gain = np.zeros(rows.size)
    for k in range(rows.size):
        row = rows[k]
        mine = cells.ones.items[cells.ones.start[row] : cells.ones.start[row + 1]]
        gaps = cells.gaps.items[cells.gaps.start[row] : cells.gaps.start[row + 1]]
        shown[mine] = ONE
        shown[gaps] = GAP
        for at in range(active.start[row], active.start[row + 1]):
            source = active.items[at]
            gain[k] += sources.log_odds[source]
            for sensor in columns.items[columns.start[source] : columns.start[source + 1]]:
                if covered[sensor] != k:
                    covered[sensor] = k
                    gain[k] += says[shown[sensor], sensor]
        shown[mine] = ZERO
        shown[gaps] = ZERO
    return gain
