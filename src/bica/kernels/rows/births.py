"""New columns for cells that are 1 and unexplained: pairs of sensors as seeds, grown, cut, and accepted if they pay.

The program: of all columns S find some that raise the penalised likelihood of the rows, given the present sources. With
R the cells that show 1 and that no active source reaches ("unexplained ones"), a column that N of T rows use gains

    gain(S) = sum over those rows, over the sensors of S unexplained there, of one_i   +   N log(N / T),

where one_i = log((1 - miss_i) / false_alarm_i) is the log ratio of a 1 with and without a source there, and the last
term is the leading part of the log-probability that a source is on in N of T rows. S pays if its gain exceeds its cost.

There are 2^m columns, so candidates are grown instead of listed:

1. seed   A pair (i, k) whose unexplained ones coincide in C rows where E = R_i R_k / T are expected, with a surprise
          (C - E) / sqrt(E + 1/4), in standard deviations of a count, above a limit.
2. grow   A = rows in which both seeds are unexplained. Add the sensor that is on most often within A, counted in all
          ones (another source may explain it there), and keep in A the rows in which it is on. Invariant:
          ``weights[k]`` is the weight of the rows of A in which the first k sensors are all on; it never rises with k.
3. cut    Each further sensor of one source keeps a share of about 1 - miss of the rows, the first foreign one less. Of
          the prefixes that a real drop follows, take the one of the largest area weights[k] (k - 1).
4. accept Candidates in order; the ones that an accepted column explains leave R before the next is tried.

"Rows instead of the lattice" in ARCHITECTURE.md says what happens to the columns afterwards.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.columns import count_bits
from bica.kernels.compiled import compiled
from bica.kernels.rows.gains import Lists, RowCells
from bica.kernels.rows.votes import PRIOR_COUNT, bit_at

Numbers = NDArray[np.float64]

FEW_ROWS = 1000.0  # weight of a table below which every sensor may join a column: too few rows to rule one out
ENRICHED = 2.0  # standard deviations by which a sensor must be on more often in the rows of a seed than elsewhere
TINY_VARIANCE = 1e-9  # keeps the spread of a sensor that never changes above 0
DROP_ERRORS, DROP_MARGIN = 3.0, 0.02  # a share this far below 1 - miss (standard errors, and absolute) is a real drop
ROOM_PER_COLUMN = 64  # sensors; more room is made when it is full


@compiled
def find_seeds(
    sensors: NDArray[np.int64], left: Lists, rows_of: Lists, each: Numbers, cells: RowCells, n_best: int,
    surprise: float, least: float,
) -> tuple[NDArray[np.int64], Numbers]:  # fmt: skip
    """For each of these sensors its most surprising partners, and the weight of the rows in which both are unexplained.

    Both are (n, n_best), partners -1 where there are fewer. ``left`` lists the unexplained ones of each row,
    ``rows_of`` the rows of each sensor's unexplained ones, ``each`` the weight of those rows. A pair needs a surprise
    above ``surprise`` and common rows of a weight of at least ``least``.
    """
    n_sensors, total, both = each.size, cells.weights.sum(), np.zeros(each.size)
    partners, together = np.full((sensors.size, n_best), -1, np.int64), np.zeros((sensors.size, n_best))
    best = np.empty(n_best)
    for k in range(sensors.size):
        sensor = sensors[k]
        both[:] = 0.0
        best[:] = surprise
        for row in rows_of.items[rows_of.start[sensor] : rows_of.start[sensor + 1]]:
            for other in left.items[left.start[row] : left.start[row + 1]]:
                both[other] += cells.weights[row]
        both[sensor] = 0.0
        for other in range(n_sensors):
            if both[other] <= 0.0 or both[other] < least:
                continue
            expected = each[sensor] * each[other] / total
            z = (both[other] - expected) / np.sqrt(expected + PRIOR_COUNT)
            place = n_best
            while place > 0 and z > best[place - 1]:
                place -= 1
            if place < n_best:
                best[place + 1 :] = best[place:-1].copy()
                partners[k, place + 1 :] = partners[k, place:-1].copy()
                together[k, place + 1 :] = together[k, place:-1].copy()
                best[place], partners[k, place], together[k, place] = z, other, both[other]
    return partners, together


@compiled
def _count_ones(
    row: int, step: float, cells: RowCells, count: Numbers, touched: NDArray[np.int32], n_touched: int
) -> int:
    """Add ``step`` to the count of every sensor that is on in the row; list those counted for the first time."""
    for sensor in cells.ones.items[cells.ones.start[row] : cells.ones.start[row + 1]]:
        if count[sensor] == 0.0 and step > 0.0:
            touched[n_touched] = sensor
            n_touched += 1
        count[sensor] += step
    return n_touched


@compiled
def _enriched(
    seed: NDArray[np.int64], weight: float, total: float, frequency: Numbers, count: Numbers,
    touched: NDArray[np.int32], n_touched: int,
) -> int:  # fmt: skip
    """Move the sensors on more often in these rows than elsewhere to the front of ``touched``; return how many."""
    n_kept = 0
    for k in range(n_touched):
        sensor = touched[k]
        usual = frequency[sensor] / total
        spread = np.sqrt(weight * usual * (1.0 - usual) + TINY_VARIANCE)
        is_seed = sensor in (seed[0], seed[1])
        if not is_seed and (total < FEW_ROWS or count[sensor] - weight * usual > ENRICHED * spread):
            touched[k], touched[n_kept] = touched[n_kept], sensor
            n_kept += 1
    return n_kept


@compiled
def _grow(
    seed: NDArray[np.int64], left_words: Words, rows_of: Lists, cells: RowCells, words: Words, frequency: Numbers,
    total: float, least: float, path: NDArray[np.int32], weights: Numbers, count: Numbers, touched: NDArray[np.int32],
    rows: NDArray[np.int32],
) -> int:  # fmt: skip
    """Grow a path of sensors from a seed; return its length, the seed included.

    ``path`` receives the sensors, ``weights[k]`` the weight of the rows in which the first k are all on.
    """
    n_rows, n_touched, weight = 0, 0, 0.0
    for row in rows_of.items[rows_of.start[seed[0]] : rows_of.start[seed[0] + 1]]:
        if bit_at(left_words, row, seed[1]):
            rows[n_rows] = row
            n_rows += 1
            weight += cells.weights[row]
            n_touched = _count_ones(row, cells.weights[row], cells, count, touched, n_touched)
    n_open = _enriched(seed, weight, total, frequency, count, touched, n_touched)
    path[0], path[1] = seed[0], seed[1]
    size = 2
    weights[2] = weight
    while size < path.size and weights[size] >= least:
        best, most = -1, least
        for k in range(n_open):  # of equally frequent sensors the first by number
            here = count[touched[k]]
            if here > most or (here == most and (best < 0 or touched[k] < touched[best])):
                best, most = k, here
        if best < 0:
            break
        sensor = touched[best]
        touched[best], touched[n_open - 1] = touched[n_open - 1], sensor
        n_open -= 1
        n_kept = 0
        for k in range(n_rows):
            if bit_at(words, rows[k], sensor):
                rows[n_kept] = rows[k]
                n_kept += 1
            else:
                _count_ones(rows[k], -cells.weights[rows[k]], cells, count, touched, n_touched)
        path[size] = sensor
        size += 1
        n_rows, weights[size] = n_kept, count[sensor]
    for k in range(n_touched):
        count[touched[k]] = 0.0
    return size


@compiled
def _cut(size: int, weights: Numbers, miss: float) -> int:
    """Where to end the path: at the largest area among the ends that a real drop follows; 0 if none does."""
    best, area = 0, 0.0
    for k in range(2, size + 1):
        following = weights[k + 1] / max(weights[k], 1.0) if k < size else 0.0
        drop = (1.0 - miss) - DROP_ERRORS * np.sqrt(miss * (1.0 - miss) / max(weights[k], 1.0)) - DROP_MARGIN
        if following < drop and weights[k] * (k - 1) > area:
            best, area = k, weights[k] * (k - 1)
    return best


@compiled
def grow_columns(
    seeds: NDArray[np.int64], left_words: Words, rows_of: Lists, cells: RowCells, words: Words, frequency: Numbers,
    miss: float, least: float, longest: int,
) -> tuple[Lists, Numbers]:  # fmt: skip
    """A column grown from every seed (a pair of sensors), and its area.

    ``left_words`` and ``rows_of`` are the unexplained ones by row and by sensor, ``frequency`` is the weight of all
    ones of each sensor. Where two sources share the seed, about half of the rows stay at the first step and nearly all
    at the next ones. Time: the ones of the rows of each seed, twice.
    """
    n_sensors, n_rows, total = rows_of.start.size - 1, cells.weights.size, cells.weights.sum()
    path, weights = np.empty(longest, np.int32), np.zeros(longest + 2)
    count, touched, rows = np.zeros(n_sensors), np.empty(n_sensors, np.int32), np.empty(n_rows, np.int32)
    start, areas = np.zeros(seeds.shape[0] + 1, np.int64), np.zeros(seeds.shape[0])
    items = np.empty(ROOM_PER_COLUMN * seeds.shape[0] + longest, np.int32)
    for k in range(seeds.shape[0]):
        size = _grow(
            seeds[k], left_words, rows_of, cells, words, frequency, total, least, path, weights, count, touched, rows
        )
        size = _cut(size, weights, miss)
        areas[k] = weights[size] * (size - 1) if size else 0.0
        start[k + 1] = start[k] + size
        while start[k + 1] > items.size:
            items = np.append(items, np.empty_like(items))
        items[start[k] : start[k + 1]] = path[:size]
    return Lists(start, items[: start[-1]].copy()), areas


@compiled
def _explain(
    column: NDArray[np.int32], least: float, ones_of: Lists, hits: NDArray[np.int32], rows: NDArray[np.int32],
    left_words: Words,
) -> None:  # fmt: skip
    """Take the column out of the unexplained ones of all rows in which at least ``least`` of its sensors are on."""
    n_rows = 0
    for sensor in column:
        for row in ones_of.items[ones_of.start[sensor] : ones_of.start[sensor + 1]]:
            if hits[row] == 0:
                rows[n_rows] = row
                n_rows += 1
            hits[row] += 1
    for row in rows[:n_rows]:
        if hits[row] >= least:
            for sensor in column:
                left_words[row, sensor // 64] &= ~(np.uint64(1) << np.uint64(sensor % 64))
        hits[row] = 0


@compiled
def accept_columns(
    candidates: Lists, cost: Numbers, ones_of: Lists, cells: RowCells, words: Words, left_words: Words, one: Numbers,
    least: float, share: float,
) -> Numbers:  # fmt: skip
    """The weight of the rows that each candidate explains, 0 if it does not pay; candidates are taken in order.

    A candidate is tried in the rows in which all its sensors are on and at least two (or its only one) unexplained. It
    pays if what those ones say for it (``one`` of each sensor) plus N log(N / T), for N such rows of T, exceeds its
    ``cost``, and N reaches ``least``. Then its ones are taken out of ``left_words``, the unexplained ones, wherever
    ``share`` of its sensors are on: otherwise every miss would give birth to a fragment. ``ones_of`` lists the rows in
    which a sensor is on.
    """
    n_rows, total = cells.weights.size, cells.weights.sum()
    explained, rows, hits = np.zeros(candidates.start.size - 1), np.empty(n_rows, np.int32), np.zeros(n_rows, np.int32)
    for k in range(explained.size):
        column = candidates.items[candidates.start[k] : candidates.start[k + 1]]
        rarest = column[0]
        for sensor in column:
            if ones_of.start[sensor + 1] - ones_of.start[sensor] < ones_of.start[rarest + 1] - ones_of.start[rarest]:
                rarest = sensor
        weight, value = 0.0, 0.0
        for row in ones_of.items[ones_of.start[rarest] : ones_of.start[rarest + 1]]:
            n_new, new = 0, 0.0
            for sensor in column:
                if not bit_at(words, row, sensor):
                    n_new = -1
                    break
                if bit_at(left_words, row, sensor):
                    n_new += 1
                    new += one[sensor]
            if n_new >= min(2, column.size):
                weight += cells.weights[row]
                value += cells.weights[row] * new
        if weight >= least and weight > 0.0 and value + weight * np.log(weight / total) > cost[k]:
            explained[k] = weight
            _explain(column, share * column.size, ones_of, hits, rows, left_words)
    return explained


@compiled
def closure_areas(sets: Words, words: Words, left_words: Words, weights: Numbers) -> Numbers:
    """For each set, the weight of the unexplained ones inside it, over the rows in which all of it is on."""
    areas = np.zeros(sets.shape[0])
    for k in range(sets.shape[0]):
        for row in range(words.shape[0]):
            inside = True
            for word in range(sets.shape[1]):
                if sets[k, word] & ~words[row, word]:
                    inside = False
                    break
            if inside:
                for word in range(sets.shape[1]):
                    areas[k] += weights[row] * count_bits(sets[k, word] & left_words[row, word])
    return areas
