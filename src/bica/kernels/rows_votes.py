"""Which sensors belong to a source: a vote of the rows in which it is on and nothing else covers the sensor."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled
from bica.kernels.rows_gains import Cells
from bica.kernels.rows_lists import Lists

FEW = 0.1


@compiled
def bit_at(words: Words, row: int, column: int) -> bool:
    """Whether this bit of a table of bit sets is set."""
    return bool(words[row, column // 64] >> np.uint64(column % 64) & np.uint64(1))


@compiled
def _hopeful(
    rows: NDArray[np.int32], cells: Cells, left: Lists, free: NDArray[np.float64], one: NDArray[np.float64],
    zero: NDArray[np.float64], price: float, count: NDArray[np.float64], local: NDArray[np.int32], sensors: NDArray[np.int32], n_local: int,
) -> int:  # fmt: skip
    """Append the sensors that unexplained ones in these rows speak for, hearing few of the zeros.

    How many zeros there are is not counted yet; it is taken to be a tenth of what the sensor's free share suggests.
    """
    n_seen, weight = n_local, 0.0
    for row in rows:
        weight += cells.weights[row]
        for sensor in left.items[left.start[row] : left.start[row + 1]]:
            if local[sensor] < 0:
                if count[sensor] == 0.0:
                    sensors[n_seen] = sensor
                    n_seen += 1
                count[sensor] += cells.weights[row]
    n_kept = n_local
    for k in range(n_local, n_seen):
        sensor = sensors[k]
        zeros = max(0.0, FEW * free[sensor] * weight - count[sensor])
        if count[sensor] * one[sensor] + zeros * zero[sensor] > price:
            local[sensor] = n_kept
            sensors[n_kept] = sensor
            n_kept += 1
        count[sensor] = 0.0
    return n_kept


@compiled
def vote_columns(
    columns: Lists, reaching: Lists, rows_of: Lists, fixed: NDArray[np.bool_], cells: Cells, words: Words, seen: Words,
    left: Lists, free: NDArray[np.float64], one: NDArray[np.float64], zero: NDArray[np.float64], price: float,
) -> Lists:  # fmt: skip
    """The columns after every source, one after the other, was voted on; those ``fixed`` stay.

    ``rows_of`` lists the rows of each source, ``left`` the unexplained ones of each row, ``free`` is the share of the
    rows in which nothing covers a sensor, ``seen`` is empty if all cells were observed. A sensor belongs to a source if the evidence of the rows in which the source is on, and no other
    active source reaches the sensor, is above ``price``. Earlier decisions count for later ones, so two sources that
    are on together do not both give up a sensor, or both claim it. Time: for every source and sensor in question, the
    rows of the other sources that reach it.
    """
    n_sources, n_sensors, n_rows = columns.start.size - 1, one.size, cells.weights.size
    mark, local = np.full(n_rows, -1, np.int32), np.full(n_sensors, -1, np.int32)
    count, sensors = np.zeros(n_sensors), np.empty(n_sensors, np.int32)
    head = np.full(n_sensors, -1, np.int64)  # decisions so far on each sensor, newest first, as a linked list
    after, who, what = np.empty(16, np.int64), np.empty(16, np.int32), np.empty(16, np.int32)
    n_decided, size = 0, 0
    start, items = np.zeros(n_sources + 1, np.int64), np.empty(2 * columns.items.size + n_sensors, np.int32)
    for source in range(n_sources):
        old = columns.items[columns.start[source] : columns.start[source + 1]]
        rows = rows_of.items[rows_of.start[source] : rows_of.start[source + 1]]
        while size + n_sensors > items.size:
            items = np.append(items, np.empty_like(items))
        if fixed[source] or rows.size == 0:
            items[size : size + old.size] = old
            size += old.size
            start[source + 1] = size
            continue
        for k in range(old.size):
            local[old[k]], sensors[k] = k, old[k]
        n_local = _hopeful(rows, cells, left, free, one, zero, price, count, local, sensors, old.size)
        for k in range(rows.size):
            mark[rows[k]] = k
        cover = np.zeros((n_local, rows.size), np.int16)
        for k in range(n_local):
            sensor = sensors[k]
            for other in reaching.items[reaching.start[sensor] : reaching.start[sensor + 1]]:
                if other != source:
                    _add_rows(cover[k], mark, rows_of, other, 1)
            decision = head[sensor]
            while decision >= 0:
                _add_rows(cover[k], mark, rows_of, who[decision], what[decision])
                decision = after[decision]
        for k in range(n_local):
            sensor = sensors[k]
            value = 0.0
            for r in range(rows.size):
                if cover[k, r] == 0:
                    if bit_at(words, rows[r], sensor):
                        value += cells.weights[rows[r]] * one[sensor]
                    elif seen.shape[0] == 0 or bit_at(seen, rows[r], sensor):
                        value += cells.weights[rows[r]] * zero[sensor]
            belongs = value > price
            if belongs:
                items[size] = sensor
                size += 1
            if belongs != (k < old.size):
                if n_decided == who.size:
                    after, who = np.append(after, np.empty_like(after)), np.append(who, np.empty_like(who))
                    what = np.append(what, np.empty_like(what))
                after[n_decided], who[n_decided], what[n_decided] = head[sensor], source, 1 if belongs else -1
                head[sensor] = n_decided
                n_decided += 1
            local[sensor] = -1
        start[source + 1] = size
        items[start[source] : size].sort()
        for row in rows:
            mark[row] = -1
    return Lists(start, items[:size].copy())


@compiled
def _add_rows(cover: NDArray[np.int16], mark: NDArray[np.int32], rows_of: Lists, source: int, step: int) -> None:
    for row in rows_of.items[rows_of.start[source] : rows_of.start[source + 1]]:
        if mark[row] >= 0:
            cover[mark[row]] += step
