"""One lossy source, or two, fitted to the rows that they touch, all else held as it is; and where a new one may be.

The rows that touch a set of sensors (the support) are copied with their cells there, so that the steps of an EM run
through one short array. With ``quiet`` the background of a cell (the probability that it would be 0 without the sources
in question), a source of probability p and failures f_i has in a row the likelihood ratio

    ratio = prod over the support of f_i  *  prod over the ones of (1 - quiet_i f_i) / ((1 - quiet_i) f_i),

its posterior is p ratio / (1 - p + p ratio), and the log-likelihood gains log(1 - p + p ratio) over no source at all.
All other rows are alike: the second product is empty. Two sources have four configurations per row, and where both are
on, f_i is the product of their failures. The M-step: with N the sum of the posteriors,

    p <- N / T,        reach_i <- reach_i sum over the ones of posterior / (1 - quiet_i f_i) / N,

since reach_i / (1 - quiet_i f_i) is the probability that the edge worked, given that the source and the sensor are on.
What an edge is worth is the sum over active rows of the log ratio with and without it:

    sum over the ones of posterior log[(1 - quiet_i f_i) / (1 - quiet_i)]  +  (N - the ones' posteriors) log f_i.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.rows.gains import Lists
from bica.kernels.rows.lossy import LARGE, TRIAL_FAIL, Ints, LossyCells, Numbers, Places

MOST_REACH = 0.98  # while searching: an edge that never failed yet may fail once
LEAST_REACH = 0.02  # an edge below is no edge
RAREST, MOST_FREQUENT = 1e-6, 0.9  # bounds of a probability
MOST_LOG = 500.0  # of a likelihood ratio
NEGLIGIBLE = 1e-3  # a posterior below does not count for the edges


class Local(NamedTuple):
    """The rows that touch a support, with their cells there."""

    rows: Places  # (n_local,)
    weights: Numbers  # (n_local,)
    start: Places  # (n_local + 1,)
    cell: Places  # (n_cells,), where the cell stands in the whole table
    sensor: Ints  # (n_cells,), its place in the support
    quiet: Numbers  # (n_cells,), the background


@compiled
def local_rows(
    support: Places, rows_of: Lists, place_of: Places, weights: Numbers, quiet: Numbers, count: Ints
) -> Local:
    """The rows with a cell that is not 0 in the support. ``count`` (n_rows,) holds zeros, before and afterwards.

    ``rows_of`` lists the rows of each sensor's cells, ``place_of`` where these stand in the table.
    """
    n_rows, n_cells = 0, 0
    for sensor in support:
        n_cells += rows_of.start[sensor + 1] - rows_of.start[sensor]
    found = np.empty(n_cells, np.int64)
    for sensor in support:
        for k in range(rows_of.start[sensor], rows_of.start[sensor + 1]):
            row = rows_of.items[k]
            if count[row] == 0:
                found[n_rows] = row
                n_rows += 1
            count[row] += np.int32(1)
    rows, local_weights, start = np.empty(n_rows, np.int64), np.empty(n_rows), np.zeros(n_rows + 1, np.int64)
    for k in range(n_rows):
        rows[k], local_weights[k], start[k + 1] = found[k], weights[found[k]], start[k] + count[found[k]]
        count[found[k]] = k
    free = start.copy()
    cell, place, background = np.empty(n_cells, np.int64), np.empty(n_cells, np.int32), np.empty(n_cells)
    for i in range(support.size):
        for k in range(rows_of.start[support[i]], rows_of.start[support[i] + 1]):
            local = count[rows_of.items[k]]
            at = free[local]
            cell[at], place[at], background[at] = place_of[k], i, quiet[place_of[k]]
            free[local] += 1
    for k in range(n_rows):
        count[rows[k]] = 0
    return Local(rows, local_weights, start, cell, place, background)


@compiled
def take_out(local: Local, is_on: NDArray[np.bool_], reach: Numbers) -> None:
    """Take a source of the given reach over the support out of the background, in the rows in which it is on."""
    for k in range(local.rows.size):
        if is_on[local.rows[k]]:
            for at in range(local.start[k], local.start[k + 1]):
                local.quiet[at] /= 1.0 - reach[local.sensor[at]]


@compiled
def put_in(local: Local, is_on: NDArray[np.bool_], reach: Numbers, quiet: Numbers) -> None:
    """Write the background times the failures of the sources that are on into ``quiet`` of the whole table.

    ``is_on`` is (n_new, n_local), ``reach`` (n_new, k).
    """
    for k in range(local.rows.size):
        for at in range(local.start[k], local.start[k + 1]):
            now = local.quiet[at]
            for s in range(reach.shape[0]):
                if is_on[s, k]:
                    now *= 1.0 - reach[s, local.sensor[at]]
            quiet[local.cell[at]] = now


@compiled
def _log_ratio(begin: int, end: int, silent: float, sensor: Ints, quiet: Numbers, fail: Numbers) -> float:
    """The log of a row's likelihood ratio; ``silent`` is that of a row without ones."""
    total, above, below = silent, 1.0, 1.0
    for at in range(begin, end):
        f = fail[sensor[at]]
        above *= 1.0 - quiet[at] * f
        below *= (1.0 - quiet[at]) * f
        if below < 1.0 / LARGE:
            total += np.log(above / below)
            above, below = 1.0, 1.0
    return float(min(total + np.log(above / below), MOST_LOG))


@compiled
def _add_shares(
    begin: int, end: int, weight: float, sensor: Ints, quiet: Numbers, fail: Numbers, other: Numbers, worked: Numbers,
    n_ones: Numbers, worth: Numbers,
) -> None:  # fmt: skip
    """Add a row in which the source is on with this weight to the counts of its edges; ``other`` fails beside it."""
    for at in range(begin, end):
        i = sensor[at]
        before = quiet[at] * other[i]
        after = 1.0 - before * fail[i]
        worked[i] += weight / after
        n_ones[i] += weight
        worth[i] += weight * np.log(after / (1.0 - before))


@compiled
def _improve(
    reach: Numbers, n_on: float, worked: Numbers, n_ones: Numbers, worth: Numbers, bar: float, last: bool
) -> None:
    """The M-step of the edges, in place, and what each is worth; edges that are worth less than ``bar`` are dropped."""
    for i in range(reach.size):
        if reach[i] > 0.0:
            worth[i] += max(n_on - n_ones[i], 0.0) * np.log(1.0 - reach[i])
            if not last:
                reach[i] = min(reach[i] * worked[i] / max(n_on, 1e-9), MOST_REACH)
                if reach[i] < LEAST_REACH or worth[i] < bar:
                    reach[i] = 0.0


@compiled
def fit_one(
    local: Local, total: float, probability: float, reach: Numbers, n_steps: int, posterior: Numbers, worth: Numbers
) -> tuple[float, float, float]:
    """The gain, the probability and the expected activations after so many EM steps.

    In place: ``reach`` of the support, the ``posterior`` of the local rows, what each edge is ``worth``.
    """
    (_, weights, start, _, sensor, quiet), k_sensors = local, reach.size
    fail, nothing, worked, n_ones = np.empty(k_sensors), np.ones(k_sensors), np.empty(k_sensors), np.empty(k_sensors)
    gain, n_on = 0.0, 0.0
    for step in range(n_steps + 1):
        silent, untouched, last = 0.0, total, step == n_steps
        for i in range(k_sensors):
            fail[i] = 1.0 - reach[i]
            silent += np.log(fail[i])
            worked[i], n_ones[i], worth[i] = 0.0, 0.0, 0.0
        gain, n_on = 0.0, 0.0
        for k in range(weights.size):
            odds = probability * np.exp(_log_ratio(start[k], start[k + 1], silent, sensor, quiet, fail))
            either = 1.0 - probability + odds
            posterior[k] = odds / either
            untouched -= weights[k]
            n_on += weights[k] * posterior[k]
            if last:
                gain += weights[k] * np.log(either)
            if posterior[k] > NEGLIGIBLE:
                _add_shares(
                    start[k], start[k + 1], weights[k] * posterior[k], sensor, quiet, fail, nothing, worked, n_ones,
                    worth,
                )  # fmt: skip
        odds = probability * np.exp(silent)
        gain += untouched * np.log(1.0 - probability + odds)
        n_on += untouched * odds / (1.0 - probability + odds)
        _improve(reach, n_on, worked, n_ones, worth, -np.inf, last)
        if not last:
            probability = min(max(n_on / total, RAREST), MOST_FREQUENT)
    return gain, probability, n_on


@compiled
def _begin_step(
    reach: Numbers, fail: Numbers, worked: Numbers, n_ones: Numbers, worth: Numbers, silent: Numbers, n_on: Numbers
) -> None:
    """Clear the counts of both sources, and set how they fail: each alone, and both together."""
    for i in range(reach.shape[1]):
        fail[2, i] = 1.0
    for s in range(2):
        silent[s], n_on[s] = 0.0, 0.0
        for i in range(reach.shape[1]):
            fail[s, i], worked[s, i], n_ones[s, i], worth[s, i] = 1.0 - reach[s, i], 0.0, 0.0, 0.0
            fail[2, i] *= fail[s, i]
            silent[s] += np.log(fail[s, i])


@compiled
def _configurations(a: float, b: float, both: float, p: float, q: float, share: Numbers) -> float:
    """The posterior ``share`` of only the first, only the second and both sources, and the log-likelihood gained."""
    top = max(0.0, a, b, both)
    share[0], share[1] = p * (1.0 - q) * np.exp(a - top), (1.0 - p) * q * np.exp(b - top)
    share[2] = p * q * np.exp(both - top)
    every = (1.0 - p) * (1.0 - q) * np.exp(-top) + share[0] + share[1] + share[2]
    for s in range(3):
        share[s] /= every
    return float(np.log(every) + top)


@compiled
def fit_two(
    local: Local, total: float, probability: Numbers, reach: Numbers, n_steps: int, bar: float, posterior: Numbers
) -> float:
    """The gain of two sources after so many EM steps; ``probability`` (2,), ``reach`` (2, k), ``posterior`` in place.

    From half-way on, edges that are worth less than ``bar`` are dropped.
    """
    (_, weights, start, _, sensor, quiet), n = local, reach.shape[1]
    fail, worked, n_ones, worth = np.empty((3, n)), np.empty((2, n)), np.empty((2, n)), np.empty((2, n))
    nothing, silent, n_on, share, gain = np.ones(n), np.empty(2), np.empty(2), np.empty(3), 0.0
    for step in range(n_steps + 1):
        untouched, last, gain = total, step == n_steps, 0.0
        _begin_step(reach, fail, worked, n_ones, worth, silent, n_on)
        for k in range(weights.size):
            begin, end, weight = start[k], start[k + 1], weights[k]
            a = _log_ratio(begin, end, silent[0], sensor, quiet, fail[0])
            b = _log_ratio(begin, end, silent[1], sensor, quiet, fail[1])
            both = _log_ratio(begin, end, silent[0] + silent[1], sensor, quiet, fail[2])
            gain += weight * _configurations(a, b, both, probability[0], probability[1], share)
            untouched -= weight
            for s in range(2):
                posterior[s, k] = share[s] + share[2]
                n_on[s] += weight * posterior[s, k]
                counts = worked[s], n_ones[s], worth[s]
                if share[s] > NEGLIGIBLE:
                    _add_shares(begin, end, weight * share[s], sensor, quiet, fail[s], nothing, *counts)
                if share[2] > NEGLIGIBLE:
                    _add_shares(begin, end, weight * share[2], sensor, quiet, fail[s], fail[1 - s], *counts)
        for s in range(2):
            odds = probability[s] * np.exp(silent[s])
            either = 1.0 - probability[s] + odds
            gain += untouched * np.log(either)
            n_on[s] += untouched * odds / either
            lowest = bar if step >= n_steps // 2 else -np.inf
            _improve(reach[s], n_on[s], worked[s], n_ones[s], worth[s], lowest, last)
            if not last:
                probability[s] = min(max(n_on[s] / total, RAREST), MOST_FREQUENT)
    return gain


# Where a new lossy source may be: pairs of sensors that come on together by themselves, and what comes on with them.
#
# What a one leaves to the leak of its sensor, given the active sources of its row, is
#
#     left_i = P(the sensor came on by itself | it is on) = leak_i / (1 - quiet_i)        (0 where it was not observed),
#
# 1 where no active source reaches it. Leaks are independent of each other, so sum over the rows of left_i left_k is
# about left_i-total times left_k-total over T; a pair far above that has a cause that the model lacks.

LITTLE = 0.02  # left to the leak: less cannot make a pair


@compiled
def left_together(sensors: Places, rows_of: Lists, place_of: Places, cells: LossyCells, left: Numbers) -> Numbers:
    """Sums of ``left_i left_k`` over all rows, for each of these sensors and every sensor: (n, n_sensors)."""
    (cell_starts, ones), both = cells.ones, np.zeros((sensors.size, rows_of.start.size - 1))
    for s in range(sensors.size):
        for k in range(rows_of.start[sensors[s]], rows_of.start[sensors[s] + 1]):
            mine = left[place_of[k]]
            if mine < LITTLE:
                continue
            row = rows_of.items[k]
            mine *= cells.weights[row]
            for at in range(cell_starts[row], cell_starts[row + 1]):
                both[s, ones[at]] += mine * left[at]
        both[s, sensors[s]] = 0.0
    return both


@compiled
def profile_of(
    first: int, second: int, rows_of: Lists, place_of: Places, cells: LossyCells, quiet: Numbers, leak: Numbers,
    usual: Numbers, profile: Numbers,
) -> float:  # fmt: skip
    """The weight of the rows in which both sensors are left to their leaks.

    ``profile`` becomes the weight of each sensor's ones among these rows. A cell that was not observed counts as
    ``usual``, the share of the sensor's ones in the whole table.
    """
    (cell_starts, ones), total = cells.ones, 0.0
    for i in range(profile.size):
        profile[i] = 0.0
    a, b = rows_of.start[first], rows_of.start[second]
    while a < rows_of.start[first + 1] and b < rows_of.start[second + 1]:
        row, other = rows_of.items[a], rows_of.items[b]
        if row == other:
            x, y = place_of[a], place_of[b]
            weight = cells.weights[row] * cells.heard[x] * cells.heard[y]
            weight *= leak[first] / (1.0 - quiet[x]) * leak[second] / (1.0 - quiet[y])
            total += weight
            for at in range(cell_starts[row], cell_starts[row + 1]):
                profile[ones[at]] += weight if cells.heard[at] > 0.0 else weight * usual[ones[at]]
        a += row <= other
        b += other <= row
    return total


@compiled
def count_absent(
    local: Local, posterior: Numbers, cells: LossyCells, quiet: Numbers, n_ones: Numbers, worth: Numbers
) -> None:
    """Add up, over the rows in which a source is on, the ones of every sensor and what a weak edge there would gain."""
    (cell_starts, ones) = cells.ones
    for k in range(local.rows.size):
        weight = local.weights[k] * posterior[k]
        if posterior[k] > NEGLIGIBLE:
            for at in range(cell_starts[local.rows[k]], cell_starts[local.rows[k] + 1]):
                n_ones[ones[at]] += weight
                worth[ones[at]] += weight * np.log((1.0 - TRIAL_FAIL * quiet[at]) / (1.0 - quiet[at]))
