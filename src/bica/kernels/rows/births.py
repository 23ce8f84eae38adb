"""Sensors that are on together though no source explains it: pairs as seeds, and growing a column from each."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.columns import count_bits
from bica.kernels.compiled import compiled
from bica.kernels.rows.gains import RowCells
from bica.kernels.rows.lists import Lists
from bica.kernels.rows.votes import bit_at

Numbers = NDArray[np.float64]


@compiled
def find_seeds(
    sensors: NDArray[np.int64], left: Lists, rows_of: Lists, each: Numbers, cells: RowCells, n_best: int,
    surprise: float, least: float,
) -> tuple[NDArray[np.int64], Numbers]:  # fmt: skip
    """For each of these sensors the partners with which it is most surprisingly often unexplained, and how often.

    Both are (n, n_best), partners -1 where there is none. ``left`` lists the unexplained ones of each row, ``rows_of``
    is the same turned round, ``each`` their weight for every sensor. The surprise of C common rows where E are expected
    is (C - E) / sqrt(E + 1/4); it must exceed ``surprise``, and C reach ``least``.
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
            z = (both[other] - expected) / np.sqrt(expected + 0.25)
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
    """Keep at the front of ``touched`` the sensors that are on more often in these rows than elsewhere."""
    n_kept = 0
    for k in range(n_touched):
        sensor = touched[k]
        usual = frequency[sensor] / total
        spread = np.sqrt(weight * usual * (1.0 - usual) + 1e-9)
        is_seed = sensor in (seed[0], seed[1])
        if not is_seed and (total < 1000.0 or count[sensor] - weight * usual > 2.0 * spread):
            touched[k], touched[n_kept] = touched[n_kept], sensor
            n_kept += 1
    return n_kept


@compiled
def _grow(
    seed: NDArray[np.int64], left_words: Words, rows_of: Lists, cells: RowCells, words: Words, frequency: Numbers,
    total: float, least: float, path: NDArray[np.int32], weights: Numbers, count: Numbers, touched: NDArray[np.int32],
    rows: NDArray[np.int32],
) -> int:  # fmt: skip
    """Add the sensor that is on most often in the remaining rows, and keep those rows; return how many were added.

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
        for k in range(n_open):  # of equally frequent sensors the first
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
    """Where to end the path: the largest area among the ends that a real drop follows."""
    best, area = 0, 0.0
    for k in range(2, size + 1):
        following = weights[k + 1] / max(weights[k], 1.0) if k < size else 0.0
        drop = (1.0 - miss) - 3.0 * np.sqrt(miss * (1.0 - miss) / max(weights[k], 1.0)) - 0.02
        if following < drop and weights[k] * (k - 1) > area:
            best, area = k, weights[k] * (k - 1)
    return best


@compiled
def grow_columns(
    seeds: NDArray[np.int64], left_words: Words, rows_of: Lists, cells: RowCells, words: Words, frequency: Numbers,
    miss: float, least: float, longest: int,
) -> tuple[Lists, Numbers]:  # fmt: skip
    """A column from every seed (a pair of sensors) by "what else is on in these rows?", and the area it explains.

    Rows start as those in which both sensors are unexplained; ``frequency`` is the weight of the ones of each sensor.
    Sharing the seed, two sources give a step where half of the rows stay, then steps where all do. Time: the ones of
    the rows of each seed, twice.
    """
    n_sensors, n_rows, total = rows_of.start.size - 1, cells.weights.size, cells.weights.sum()
    path, weights = np.empty(longest, np.int32), np.zeros(longest + 2)
    count, touched, rows = np.zeros(n_sensors), np.empty(n_sensors, np.int32), np.empty(n_rows, np.int32)
    start, areas = np.zeros(seeds.shape[0] + 1, np.int64), np.zeros(seeds.shape[0])
    items = np.empty(64 * seeds.shape[0] + longest, np.int32)
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
    candidates: Lists, price: Numbers, ones_of: Lists, cells: RowCells, words: Words, left_words: Words, one: Numbers,
    least: float, share: float,
) -> Numbers:  # fmt: skip
    """Take the candidates that pay, in order; return the weight of the rows that each explains, 0 if it does not pay.

    A candidate is tried in the rows in which all its sensors are on and at least two (or its only one) unexplained. It
    pays if the evidence of those ones, and the chance of N such rows in T, N log(N / T), exceed ``price``. Then its
    ones are taken out of ``left_words``, the unexplained ones, wherever ``share`` of its sensors are on: otherwise
    every miss would give birth to a fragment. ``ones_of`` lists the rows in which a sensor is on.
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
        if weight >= least and weight > 0.0 and value + weight * np.log(weight / total) > price[k]:
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
