"""Which sensors belong to a source, by a vote of the rows in which it is on; which sources might be parts of one.

In a row in which the source is on and no other active source reaches the sensor, a 1 speaks for the sensor by ``one`` =
log((1 - miss) / false_alarm) and a 0 against it by ``zero`` = log(miss / (1 - false_alarm)) < 0. The sensor belongs to
the source if the sum over those rows, its support, exceeds ``cost``.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled
from bica.kernels.rows.gains import Ints, Lists, Numbers, Places, RowCells

HEARD_SHARE = 0.1  # of the zeros that a sensor's free share suggests, before they are counted
PRIOR_COUNT = 0.25  # rows added to an expected count, so that one coincidence of rare things is no surprise
FIRST_ROOM = 64  # entries; arrays that are full are doubled
# a decision: the earlier one on the same sensor, the source, and whether the sensor joined it (1) or left it (-1)
EARLIER, OWNER, STEP = range(3)


@compiled
def bit_at(words: Words, row: int, column: int) -> bool:
    """Whether this bit of a table of bit sets is set."""
    return bool(words[row, column // 64] >> np.uint64(column % 64) & np.uint64(1))


@compiled
def _hopeful(
    rows: Ints, weights: Numbers, left: Lists, free: Numbers, one: Numbers, zero: Numbers, cost: float,
    count: Numbers, local: Ints, sensors: Ints, n_local: int,
) -> int:  # fmt: skip
    """Append the sensors that the unexplained ones of these rows may speak for; return how many are listed then.

    The zeros are not counted yet: they are taken to be a tenth of what the sensor's free share suggests.
    """
    n_listed, weight = n_local, 0.0
    for row in rows:
        weight += weights[row]
        for sensor in left.items[left.start[row] : left.start[row + 1]]:
            if local[sensor] < 0:
                if count[sensor] == 0.0:
                    sensors[n_listed] = sensor
                    n_listed += 1
                count[sensor] += weights[row]
    n_kept = n_local
    for k in range(n_local, n_listed):
        sensor = sensors[k]
        zeros = max(0.0, HEARD_SHARE * free[sensor] * weight - count[sensor])
        if count[sensor] * one[sensor] + zeros * zero[sensor] > cost:
            local[sensor] = n_kept
            sensors[n_kept] = sensor
            n_kept += 1
        count[sensor] = 0.0
    return n_kept


@compiled
def _add_rows(cover: Ints, mark: Ints, rows_of: Lists, source: int, step: int) -> None:
    """Add ``step`` to ``cover`` in the marked rows in which the source is on."""
    for row in rows_of.items[rows_of.start[source] : rows_of.start[source + 1]]:
        if mark[row] >= 0:
            cover[mark[row]] += step


@compiled
def _cover_by_others(
    source: int,
    sensor: int,
    cover: Ints,
    mark: Ints,
    reaching: Lists,
    rows_of: Lists,
    newest: Places,
    decisions: Places,
) -> None:
    """Count in ``cover`` the other active sources that reach the sensor, in each of the marked rows."""
    cover[:] = 0
    for other in reaching.items[reaching.start[sensor] : reaching.start[sensor + 1]]:
        if other != source:
            _add_rows(cover, mark, rows_of, other, 1)
    decision = newest[sensor]
    while decision >= 0:
        _add_rows(cover, mark, rows_of, decisions[decision, OWNER], decisions[decision, STEP])
        decision = decisions[decision, EARLIER]


@compiled
def _support(
    sensor: int, cover: Ints, rows: Ints, weights: Numbers, words: Words, observed: Words, one: float, zero: float
) -> float:
    """What the rows say for the sensor, where no other source covers it."""
    value = 0.0
    for r in range(rows.size):
        if cover[r] == 0:
            if bit_at(words, rows[r], sensor):
                value += weights[rows[r]] * one
            elif observed.shape[0] == 0 or bit_at(observed, rows[r], sensor):
                value += weights[rows[r]] * zero
    return value


@compiled
def _decided(decisions: Places, n_decided: int, newest: Places, sensor: int, source: int, step: int) -> Places:
    """The decisions with one more; they move to a larger array when theirs is full."""
    if n_decided == decisions.shape[0]:
        decisions = np.concatenate((decisions, np.empty_like(decisions)))
    decisions[n_decided] = newest[sensor], source, step
    newest[sensor] = n_decided
    return decisions


@compiled
def vote_columns(
    columns: Lists, reaching: Lists, rows_of: Lists, fixed: NDArray[np.bool_], cells: RowCells, words: Words,
    observed: Words, left: Lists, free: Numbers, one: Numbers, zero: Numbers, cost: float,
) -> Lists:  # fmt: skip
    """The columns after a vote on every source, one after the other; those marked in ``fixed`` stay.

    ``rows_of`` lists the rows of each source, ``left`` the unexplained ones of each row, ``free`` is the share of the
    rows in which nothing covers a sensor, ``observed`` is empty if all cells were observed. Earlier decisions count for
    later ones, so two sources that are on together do not both give up a sensor, or both claim it. Time: for every
    source and sensor in question, the rows of the other sources that reach it.
    """
    n_sources, n_sensors, weights = columns.start.size - 1, one.size, cells.weights
    mark, local, cover = np.full(weights.size, -1, np.int32), np.full(n_sensors, -1, np.int32), np.empty(0, np.int32)
    count, sensors = np.zeros(n_sensors), np.empty(n_sensors, np.int32)
    newest, decisions, n_decided = np.full(n_sensors, -1, np.int64), np.empty((FIRST_ROOM, 3), np.int64), 0
    start, items, size = np.zeros(n_sources + 1, np.int64), np.empty(2 * columns.items.size + n_sensors, np.int32), 0
    for source in range(n_sources):
        old = columns.items[columns.start[source] : columns.start[source + 1]]
        rows = rows_of.items[rows_of.start[source] : rows_of.start[source + 1]]
        while size + n_sensors > items.size:
            items = np.concatenate((items, np.empty_like(items)))
        if fixed[source] or rows.size == 0:
            items[size : size + old.size] = old
            size += old.size
            start[source + 1] = size
            continue
        sensors[: old.size] = old
        local[old] = 0
        n_local = _hopeful(rows, weights, left, free, one, zero, cost, count, local, sensors, old.size)
        mark[rows] = np.arange(rows.size)
        cover = np.empty(rows.size, np.int32)
        for k in range(n_local):
            sensor = sensors[k]
            _cover_by_others(source, sensor, cover, mark, reaching, rows_of, newest, decisions)
            belongs = _support(sensor, cover, rows, weights, words, observed, one[sensor], zero[sensor]) > cost
            if belongs:
                items[size] = sensor
                size += 1
            if belongs != (k < old.size):
                decisions = _decided(decisions, n_decided, newest, sensor, source, 1 if belongs else -1)
                n_decided += 1
            local[sensor] = -1
        start[source + 1] = size
        items[start[source] : size].sort()
        mark[rows] = -1
    return Lists(start, items[:size].copy())


@compiled
def count_together(
    sources: NDArray[np.int64], active: Lists, rows_of: Lists, weights: Numbers, n_on: Numbers, surprise: float,
    least: float, share: float,
) -> tuple[NDArray[np.int64], Numbers]:  # fmt: skip
    """Pairs (source, other) that are on together more often than independent sources, (n, 2), and how often.

    They need common rows of a weight of at least ``least`` and of ``share`` of the source's own, more than expected by
    over ``surprise`` standard deviations. ``n_on`` is the weight of the rows of each source.
    """
    n_sources, total = n_on.size, weights.sum()
    both, touched = np.zeros(n_sources), np.empty(n_sources, np.int32)
    pairs, counts, size = np.empty((FIRST_ROOM, 2), np.int64), np.empty(FIRST_ROOM), 0
    for source in sources:
        n_touched = 0
        for row in rows_of.items[rows_of.start[source] : rows_of.start[source + 1]]:
            for other in active.items[active.start[row] : active.start[row + 1]]:
                if both[other] == 0.0:
                    touched[n_touched] = other
                    n_touched += 1
                both[other] += weights[row]
        for k in range(n_touched):
            other = touched[k]
            expected = n_on[source] * n_on[other] / total
            enough = both[other] >= max(least, share * n_on[source])
            if other != source and enough and both[other] - expected > surprise * np.sqrt(expected + PRIOR_COUNT):
                if size == counts.size:
                    pairs, counts = np.append(pairs, pairs, axis=0), np.append(counts, counts)
                pairs[size, 0], pairs[size, 1], counts[size] = source, other, both[other]
                size += 1
            both[other] = 0.0
    return pairs[:size].copy(), counts[:size].copy()


@compiled
def count_overlaps(columns: Lists, reaching: Lists, share: float) -> tuple[NDArray[np.int64], Numbers]:
    """Pairs (source, later one) that have more than ``share`` of the smaller column in common, and that share."""
    n_sources = columns.start.size - 1
    common, touched = np.zeros(n_sources), np.empty(n_sources, np.int32)
    pairs, shares, size = np.empty((FIRST_ROOM, 2), np.int64), np.empty(FIRST_ROOM), 0
    for source in range(n_sources):
        width = columns.start[source + 1] - columns.start[source]
        n_touched = 0
        for sensor in columns.items[columns.start[source] : columns.start[source + 1]]:
            for other in reaching.items[reaching.start[sensor] : reaching.start[sensor + 1]]:
                if other > source:
                    if common[other] == 0.0:
                        touched[n_touched] = other
                        n_touched += 1
                    common[other] += 1.0
        for k in range(n_touched):
            other = touched[k]
            part = common[other] / min(width, columns.start[other + 1] - columns.start[other])
            if part > share:
                if size == shares.size:
                    pairs, shares = np.append(pairs, pairs, axis=0), np.append(shares, shares)
                pairs[size, 0], pairs[size, 1], shares[size] = source, other, part
                size += 1
            common[other] = 0.0
    return pairs[:size].copy(), shares[:size].copy()
