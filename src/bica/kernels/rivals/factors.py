"""Loops of the smaller rivals: formal concepts, messages of Boolean factorisation, parities, clusters of rows.

A formal concept is a set of rows and all columns that these have in common, and the other way round. Max-sum messages
go between the cells of a table and the bits of its two factors. A parity says whether an odd number of sensors is on.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells, Words
from bica.kernels.compiled import compiled


@compiled
def count_bits(word: np.uint64) -> np.int64:
    """How many bits are set, added up in pairs, then fours, then bytes."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _has(words: Words, row: np.int64, column: np.int64) -> bool:
    return bool((words[row, column // 64] >> np.uint64(column % 64)) & np.uint64(1))


@compiled
def _value(rows: Words, left: Words, weights: NDArray[np.float64], inside: NDArray[np.int64], columns: Words) -> float:
    """The weight of the cells ``left`` under the concept of the rows ``inside``, whose columns go to ``columns[0]``."""
    columns[0] = rows[inside[0]]
    for row in inside:
        columns[0] &= rows[row]
    value = 0.0
    for row in inside:
        for word in range(rows.shape[1]):
            value += weights[row] * count_bits(left[row, word] & columns[0, word])
    return value


@compiled
def grow_concept(
    rows: Words, left: Words, weights: NDArray[np.float64], order: NDArray[np.int64], columns: Words
) -> NDArray[np.int64]:
    """Grow a concept by the best column, one by one, as long as it covers more of the cells ``left``; return its rows.

    Of equal columns the first in ``order`` is taken. ``columns[0]`` receives the columns of the concept.
    """
    inside = np.arange(rows.shape[0])
    columns[0] = 0
    best_value, closed = 0.0, columns.copy()
    grown = True
    while grown:
        grown = False
        before, current = inside, columns[0].copy()
        for column in order:
            if (current[column // 64] >> np.uint64(column % 64)) & np.uint64(1):
                continue
            having = np.array([row for row in before if _has(rows, row, column)], dtype=np.int64)
            if weights[having].sum() * order.size <= best_value:
                continue
            value = _value(rows, left, weights, having, closed)
            if value > best_value:
                best_value, inside, grown = value, having, True
                columns[0] = closed[0]
    return inside


@compiled
def covered_by_smaller(rows: Words, covered: Words) -> None:
    """Mark in each row the bits that are set in some other row that is a strict subset of it."""
    for row in range(rows.shape[0]):
        for other in range(rows.shape[0]):
            inside, equal = True, True
            for word in range(rows.shape[1]):
                if rows[other, word] & ~rows[row, word]:
                    inside = False
                    break
                equal = equal and rows[other, word] == rows[row, word]
            if inside and not equal:
                for word in range(rows.shape[1]):
                    covered[row, word] |= rows[other, word]


Messages = NDArray[np.float64]


@compiled
def answer_cells(
    from_activity: Messages,
    from_mixing: Messages,
    cell_log_odds: NDArray[np.float64],
    damping: float,
    to_activity: Messages,
    to_mixing: Messages,
) -> float:
    """Let every cell answer, with weight ``damping`` beside its old answer; return the largest change.

    ``cell_log_odds[t, j]`` are the log odds that the cell is truly on. A source explains the cell if its activity bit
    and its mixing bit are both on; the cell is on if any source explains it.
    """
    n_rows, n_sensors, n_sources = from_activity.shape
    explains = np.empty(n_sources)
    change = 0.0
    for t in range(n_rows):
        for j in range(n_sensors):
            first, second, others = -np.inf, -np.inf, 0.0
            for k in range(n_sources):
                a, b = from_activity[t, j, k], from_mixing[t, j, k]
                both = min(a + b, min(a, b))
                explains[k] = both
                others += max(0.0, both)
                if both > first:
                    first, second = both, first
                elif both > second:
                    second = both
            for k in range(n_sources):
                a, b, both = from_activity[t, j, k], from_mixing[t, j, k], explains[k]
                rival = second if both == first else first
                needed = min(max(0.0, -rival), cell_log_odds[t, j] + others - max(0.0, both))
                new_a = damping * (max(0.0, needed + b) - max(0.0, b)) + (1.0 - damping) * to_activity[t, j, k]
                new_b = damping * (max(0.0, needed + a) - max(0.0, a)) + (1.0 - damping) * to_mixing[t, j, k]
                change = max(change, abs(new_a - to_activity[t, j, k]), abs(new_b - to_mixing[t, j, k]))
                to_activity[t, j, k], to_mixing[t, j, k] = new_a, new_b
    return change


@compiled
def gather_answers(
    to_activity: Messages,
    to_mixing: Messages,
    weights: NDArray[np.float64],
    prior: tuple[float, float],
    activity: NDArray[np.float64],
    mixing: NDArray[np.float64],
    from_activity: Messages,
    from_mixing: Messages,
) -> None:
    """Add the answers to the log odds of every bit, and send each cell the sum of all answers but its own.

    A row of weight w stands for w equal rows, whose messages are the same. ``activity`` is (n_rows, n_sources),
    ``mixing`` (n_sensors, n_sources), ``prior`` the log odds of their bits.
    """
    n_rows, n_sensors, n_sources = to_activity.shape
    activity[:] = prior[0]
    mixing[:] = prior[1]
    for t in range(n_rows):
        for j in range(n_sensors):
            for k in range(n_sources):
                activity[t, k] += to_activity[t, j, k]
                mixing[j, k] += weights[t] * to_mixing[t, j, k]
    for t in range(n_rows):
        for j in range(n_sensors):
            for k in range(n_sources):
                from_activity[t, j, k] = activity[t, k] - to_activity[t, j, k]
                from_mixing[t, j, k] = mixing[j, k] - to_mixing[t, j, k]


@compiled
def walsh_hadamard(values: NDArray[np.float64]) -> None:
    """Replace ``values[w]`` by the sum over x of ``values[x]``, with a minus where w and x share an odd number of bits.

    With counts of rows x this gives how many more rows have an even than an odd number of the sensors w on.
    """
    half = 1
    while half < values.size:
        for begin in range(0, values.size, 2 * half):
            for place in range(begin, begin + half):
                even, odd = values[place], values[place + half]
                values[place] = even + odd
                values[place + half] = even - odd
        half *= 2


@compiled
def first_independent(order: NDArray[np.int64], basis: NDArray[np.int64], chosen: NDArray[np.int64]) -> None:
    """Fill ``chosen`` with the first bit sets in ``order`` that are no XOR of those chosen before.

    ``basis`` is work space of the same size, zeros at first; it holds the chosen sets reduced against each other, the
    highest bit of each lowered by none of the others.
    """
    found = 0
    for k in range(order.size):
        rest = order[k]
        for b in range(found):
            rest = min(rest, rest ^ basis[b])
        if rest != 0:
            chosen[found] = order[k]
            place = found
            while place > 0 and basis[place - 1] < rest:  # falling, so that one pass reduces completely
                basis[place] = basis[place - 1]
                place -= 1
            basis[place] = rest
            found += 1
            if found == chosen.size:
                return


# Multi-assignment clustering: every row belongs to a set of sources, the softer the higher the temperature.
#
# Sets of sources are numbered, smaller ones first. ``quiet_one[k, j]`` is the probability that source k leaves sensor j
# quiet, ``quiet[j, s]`` that all sources of set s do. The sensor then shows 1 with probability ``false_alarm + clear (1
# - quiet)`` and 0 with probability ``miss + clear quiet``, where ``clear = 1 - false_alarm - miss``.

Floats = NDArray[np.float64]
Sets = NDArray[np.int64]
TINY = 1e-300  # keeps logarithms and quotients finite where something is impossible
NEGLIGIBLE = -40.0  # exp of less than this changes no sum
ROOT_STEPS = 40  # of Newton's method or halving, at most
ROOT_TOLERANCE = 1e-7  # change of a probability that ends them
CLEARLY_BETTER = 1e-9  # nats: less is a tie, which the smaller set wins


@compiled
def quiet_probabilities(quiet_one: Floats, without: Sets, quiet: Floats) -> None:
    """Fill ``quiet``; ``without[k, s]`` is the number of the set s without source k, or -1 where k is not in it."""
    quiet[:, 0] = 1.0
    for s in range(1, quiet.shape[1]):
        k = 0
        while without[k, s] < 0:
            k += 1
        for j in range(quiet.shape[0]):
            quiet[j, s] = quiet[j, without[k, s]] * quiet_one[k, j]


@compiled
def assign(
    cells: Cells,
    weights: Floats,
    quiet: Floats,
    noise: tuple[float, float],
    temperature: float,
    ones: Floats,
    total: Floats,
) -> float:
    """Spread every row over the sets, with shares ``probability^(1 / temperature)``; return the free energy.

    ``total[s]`` becomes the weight of the rows in set s, ``ones[j, s]`` of those in which sensor j is on. Time: rows
    times sets times sensors; memory: that of one row.
    """
    n_sensors, n_sets = quiet.shape
    clear = 1.0 - noise[0] - noise[1]
    base, extra = np.zeros(n_sets), np.empty((n_sensors, n_sets))
    for j in range(n_sensors):
        for s in range(n_sets):
            log_off = np.log(max(noise[1] + clear * quiet[j, s], TINY))
            base[s] += log_off
            extra[j, s] = np.log(max(noise[0] + clear * (1.0 - quiet[j, s]), TINY)) - log_off
    ones[:] = 0.0
    total[:] = 0.0
    energy = 0.0
    share = np.empty(n_sets)
    for row in range(cells.shape[0]):
        share[:] = base
        for j in range(n_sensors):
            if cells[row, j]:
                share += extra[j]
        best, mass = share.max(), 0.0
        for s in range(n_sets):
            power = (share[s] - best) / temperature
            share[s] = np.exp(power) if power > NEGLIGIBLE else 0.0
            mass += share[s]
        energy -= weights[row] * (best + temperature * np.log(mass))
        share *= weights[row] / mass
        total += share
        for j in range(n_sensors):
            if cells[row, j]:
                ones[j] += share
    return energy


@compiled
def _slope(others: Floats, ones: Floats, zeros: Floats, noise: tuple[float, float], x: float) -> tuple[float, float]:
    """First and second derivative of the expected log-likelihood by one quiet probability ``x``."""
    clear = 1.0 - noise[0] - noise[1]
    first, second = 0.0, 0.0
    for s in range(others.size):
        moved = clear * others[s]
        on = ones[s] / max(noise[0] + clear - moved * x, TINY)
        off = zeros[s] / max(noise[1] + moved * x, TINY)
        first += moved * (off - on)
        second -= moved * moved * (off / max(noise[1] + moved * x, TINY) + on / max(noise[0] + clear - moved * x, TINY))
    return first, second


@compiled
def best_quiet_probability(
    others: Floats, ones: Floats, zeros: Floats, noise: tuple[float, float], start: float
) -> float:
    """Where the expected log-likelihood, which is concave in one quiet probability, is highest within [0, 1].

    Newton's method, with halving where a step leaves the bracket.
    """
    if _slope(others, ones, zeros, noise, 0.0)[0] <= 0.0:
        return 0.0
    if _slope(others, ones, zeros, noise, 1.0)[0] >= 0.0:
        return 1.0
    low, high, x = 0.0, 1.0, start
    for _ in range(ROOT_STEPS):
        first, second = _slope(others, ones, zeros, noise, x)
        if first > 0.0:
            low = x
        else:
            high = x
        new = x - first / second if second < 0.0 else low
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - x) < ROOT_TOLERANCE:
            return new
        x = new
    return x


@compiled
def improve_quiet(
    quiet_one: Floats, without: Sets, ones: Floats, total: Floats, noise: tuple[float, float], quiet: Floats
) -> None:
    """One sweep over the sources: each quiet probability at its best, given all others; ``quiet`` is updated."""
    n_sources, n_sensors = quiet_one.shape
    for k in range(n_sources):
        members = np.flatnonzero(without[k] >= 0)
        smaller = without[k][members]
        for j in range(n_sensors):
            others, on = quiet[j][smaller], ones[j][members]
            off = np.maximum(total[members] - on, 0.0)
            quiet_one[k, j] = best_quiet_probability(others, on, off, noise, quiet_one[k, j])
            for i in range(members.size):
                quiet[j, members[i]] = others[i] * quiet_one[k, j]


@compiled
def noise_weights(quiet: Floats, ones: Floats, total: Floats, noise: tuple[float, float]) -> tuple[float, float]:
    """The expected weight of cells that noise alone decided: those showing 1 and those showing 0."""
    clear = 1.0 - noise[0] - noise[1]
    alarms, misses = 0.0, 0.0
    for j in range(quiet.shape[0]):
        for s in range(quiet.shape[1]):
            on = max(noise[0] + clear * (1.0 - quiet[j, s]), TINY)
            off = max(noise[1] + clear * quiet[j, s], TINY)
            alarms += ones[j, s] * noise[0] / on
            misses += max(total[s] - ones[j, s], 0.0) * noise[1] / off
    return alarms, misses


@compiled
def best_sets(cells: Cells, quiet: Floats, noise: tuple[float, float], chosen: Sets) -> None:
    """Choose the set that explains each row best; of equally good ones the first, which has the fewest sources."""
    n_sensors, n_sets = quiet.shape
    clear = 1.0 - noise[0] - noise[1]
    value = np.empty(n_sets)
    for row in range(cells.shape[0]):
        value[:] = 0.0
        for j in range(n_sensors):
            for s in range(n_sets):
                on = noise[0] + clear * (1.0 - quiet[j, s])
                value[s] += np.log(max(on if cells[row, j] else 1.0 - on, TINY))
        best = 0
        for s in range(1, n_sets):
            if value[s] > value[best] + CLEARLY_BETTER:
                best = s
        chosen[row] = best
