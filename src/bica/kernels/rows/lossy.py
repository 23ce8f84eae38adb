"""Rows explained by sources whose edges may fail: one Gibbs sweep over the activity, counts and information from it.

The model: source j is on with probability p_j and then switches sensor i on with probability reach_ji, each edge by
itself; sensor i also comes on by itself with probability leak_i. Given the active sources Y of a row,

    quiet_i = P(sensor i is 0 | Y) = (1 - leak_i) prod over j in Y of fail_ji,      fail_ji = 1 - reach_ji,

so the zeros of a row add up source by source, and only its ones are ever touched: with the log odds of a source in a
row without ones, silent_j = logit p_j + sum over all sensors of log fail_ji, switching j on gains

    silent_j + sum over the ones of log [(1 - quiet_i fail_ji) / ((1 - quiet_i) fail_ji)],      quiet_i without j.

A one speaks for j the less, the more others explain it (quiet_i falls as sources are switched on). So the gain while
nothing else is on is an upper bound, and a source whose bound is hopeless is left out without a further look.

A cell that was not observed contributes neither a zero nor a one, so it must take log fail_ji back out of silent_j:
that is what a one does whose quiet_i is 0. Unobserved cells are therefore listed among the ones, with ``heard`` 0
instead of 1, and quiet_i = heard (1 - leak_i) prod fail_ji. Nothing else needs to know of them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.rows.decoding import ROOM_PER_ROW, mixed, uniform
from bica.kernels.rows.gains import Lists

Ints = NDArray[np.int32]
Places = NDArray[np.int64]
Numbers = NDArray[np.float64]
LEAST_LOG_ODDS = -8.0  # a source whose upper bound is below is not drawn: one in 3000 rows
LARGE, SMALL = 1e200, 1e100  # products are turned into logarithms before they leave the range of numbers
MOST_LOG_ODDS = 500.0
CERTAIN = 1e5  # odds beyond which a draw has no entropy to speak of
TRIAL_FAIL = 0.75  # of an edge that is not there yet, to see what it would be worth
PLACE, SOURCE, ON = range(3)


class LossyCells(NamedTuple):
    """The cells of each row that do not show 0, and which of them were observed."""

    ones: Lists  # the sensors of each row that are on or were not observed
    heard: Numbers  # (n_cells,), 1 where the sensor is on, 0 where it was not observed
    weights: Numbers  # (n_rows,)


class Edges(NamedTuple):
    """The edges of each sensor, one after the other."""

    start: Places  # (n_sensors + 1,)
    source: Ints  # (n_edges,)
    fail: Numbers  # (n_edges,), 1 - reach
    most: Numbers  # (2, n_edges), the most that a cell there can say for the source: not observed, and on


class LossySweep(NamedTuple):
    """The new activity, and sums over the rows, by weight."""

    active: Lists
    expected: Numbers  # (n_sources,), probabilities of being on
    looked_at: Numbers  # (n_sources,), the weight of the rows in which the source was a candidate
    log_joint: float  # log P(row, activity), without the parts that hold for every row alike
    entropy: float  # of the draws, each given all others


@compiled
def _gather(
    begin: int, end: int, ones: Ints, heard: Numbers, starts: Places, owner: Ints, most: Numbers, silent: Numbers,
    slot: Ints, gain: Numbers,
) -> int:  # fmt: skip
    """Make candidates of the sources whose upper bound is not hopeless, in an order that chance has no part in."""
    n = 0
    for at in range(begin, end):
        says = most[1] if heard[at] > 0.0 else most[0]
        for edge in range(starts[ones[at]], starts[ones[at] + 1]):
            source = owner[edge]
            if slot[PLACE, source] < 0:
                slot[PLACE, source], slot[SOURCE, n], gain[n] = n, source, silent[source]
                n += 1
            gain[slot[PLACE, source]] += says[edge]
    n_kept = 0
    for b in range(n):
        source = slot[SOURCE, b]
        slot[PLACE, source] = -1
        if gain[b] > LEAST_LOG_ODDS:
            slot[PLACE, source], slot[SOURCE, n_kept], slot[ON, n_kept] = n_kept, source, 0
            n_kept += 1
    return n_kept


@compiled
def _list_edges(
    begin: int, end: int, ones: Ints, starts: Places, owner: Ints, fail: Numbers, n: int, slot: Ints, first: Places,
    cell: Places, passes: Numbers,
) -> None:  # fmt: skip
    """For each candidate the cells of the row that it reaches, and how its edge there fails."""
    for b in range(n + 2):
        first[b] = 0
    for at in range(begin, end):
        for edge in range(starts[ones[at]], starts[ones[at] + 1]):
            if slot[PLACE, owner[edge]] >= 0:
                first[slot[PLACE, owner[edge]] + 2] += 1
    for b in range(n):
        first[b + 2] += first[b + 1]
    for at in range(begin, end):
        for edge in range(starts[ones[at]], starts[ones[at] + 1]):
            b = slot[PLACE, owner[edge]]
            if b >= 0:
                cell[first[b + 1]], passes[first[b + 1]] = at, fail[edge]
                first[b + 1] += 1


@compiled
def _odds(
    begin: int, end: int, is_on: bool, silent: float, odds: float, cell: Places, passes: Numbers, quiet: Numbers
) -> float:
    """The odds of a candidate, given all other sources that are on, from its odds in a row without ones.

    They are a ratio of products, without logarithms unless these would leave the range of numbers.
    """
    total, above, below = 0.0, 1.0, 1.0
    for k in range(begin, end):
        now = quiet[cell[k]]
        without = now / passes[k] if is_on else now
        above *= 1.0 - without * passes[k]
        below *= (1.0 - without) * passes[k]
        if below < 1.0 / LARGE:
            total += np.log(above / below)
            above, below = 1.0, 1.0
    if total == 0.0 and odds > 1.0 / SMALL:
        return odds * above / below
    return float(np.exp(min(silent + total + np.log(above / below), MOST_LOG_ODDS)))


@compiled
def _flip(begin: int, end: int, is_on: bool, cell: Places, passes: Numbers, quiet: Numbers) -> None:
    """Switch a candidate on or off."""
    for k in range(begin, end):
        if is_on:
            quiet[cell[k]] = quiet[cell[k]] / passes[k]
        else:
            quiet[cell[k]] *= passes[k]


@compiled
def _log_product(begin: int, end: int, shift: float, values: Numbers) -> float:
    """The logarithm of the product of ``abs(shift - value)`` over a range of values."""
    total, product = 0.0, 1.0
    for k in range(begin, end):
        product *= abs(shift - values[k])
        if product < 1.0 / LARGE:
            total += np.log(product)
            product = 1.0
    return float(total + np.log(product))


@compiled
def _open_row(begin: int, end: int, ones: Ints, heard: Numbers, leak: Numbers, starts: Places, quiet: Numbers) -> int:
    """Set ``quiet`` of the row to that of the leaks alone; how many edges end at its cells."""
    n_edges = 0
    for at in range(begin, end):
        quiet[at] = heard[at] * (1.0 - leak[ones[at]])
        n_edges += starts[ones[at] + 1] - starts[ones[at]]
    return n_edges


@compiled
def _wake(row: int, before: Lists, slot: Ints, first: Places, cell: Places, passes: Numbers, quiet: Numbers) -> None:
    """Switch the candidates on that were on before."""
    for at in range(before.start[row], before.start[row + 1]):
        b = slot[PLACE, before.items[at]]
        if b >= 0:
            slot[ON, b] = 1
            _flip(first[b], first[b + 1], False, cell, passes, quiet)


@compiled
def _draw(
    n: int, stream: np.uint64, weight: float, silent: Numbers, odds_of: Numbers, slot: Ints, first: Places,
    cell: Places, passes: Numbers, quiet: Numbers, expected: Numbers, looked_at: Numbers,
) -> float:  # fmt: skip
    """Draw every candidate anew, given the others; the entropy of these draws."""
    entropy = 0.0
    for b in range(n):
        source, is_on = slot[SOURCE, b], slot[ON, b] == 1
        odds = _odds(first[b], first[b + 1], is_on, silent[source], odds_of[source], cell, passes, quiet)
        probability = odds / (1.0 + odds)
        expected[source] += weight * probability
        looked_at[source] += weight
        if 1.0 / CERTAIN < odds < CERTAIN:
            entropy += np.log1p(odds) - probability * np.log(odds)
        if (uniform(stream, b) < probability) != is_on:
            _flip(first[b], first[b + 1], is_on, cell, passes, quiet)
            slot[ON, b] = 1 - slot[ON, b]
    return entropy


@compiled
def sweep_lossy(
    rows: Places, cells: LossyCells, edges: Edges, silent: Numbers, leak: Numbers, before: Lists, quiet: Numbers,
    seed: np.uint64,
) -> LossySweep:  # fmt: skip
    """One Gibbs sweep over the given rows, from the activity ``before`` of all rows on; ``quiet`` is kept up to date.

    Each row has a random stream of its own. ``silent`` is the log odds of each source in a row without ones.
    """
    (cell_starts, ones), heard, (starts, owner, fail, most) = cells.ones, cells.heard, edges
    slot, gain, odds_of = np.zeros((3, silent.size), np.int32), np.zeros(silent.size), np.exp(silent)
    slot[PLACE] -= np.int32(1)
    first, cell, passes = np.zeros(silent.size + 2, np.int64), np.empty(64, np.int64), np.empty(64)
    expected, looked_at, log_joint, entropy = np.zeros(silent.size), np.zeros(silent.size), 0.0, 0.0
    start, active, size = np.zeros(rows.size + 1, np.int64), np.empty(ROOM_PER_ROW * (rows.size + 1), np.int32), 0
    for k in range(rows.size):
        row, weight = rows[k], cells.weights[rows[k]]
        begin, end = cell_starts[row], cell_starts[row + 1]
        n = _gather(begin, end, ones, heard, starts, owner, most, silent, slot, gain)
        n_edges = _open_row(begin, end, ones, heard, leak, starts, quiet)
        if n_edges > cell.size:
            cell, passes = np.empty(2 * n_edges, np.int64), np.empty(2 * n_edges)
        _list_edges(begin, end, ones, starts, owner, fail, n, slot, first, cell, passes)
        _wake(row, before, slot, first, cell, passes, quiet)
        stream = mixed(seed + np.uint64(row))
        entropy += weight * _draw(
            n, stream, weight, silent, odds_of, slot, first, cell, passes, quiet, expected, looked_at
        )
        if size + n > active.size:
            active = np.append(active, np.empty(active.size + n, np.int32))
        for b in range(n):
            source = slot[SOURCE, b]
            if slot[ON, b]:
                active[size] = source
                size += 1
                log_joint += weight * (silent[source] - _log_product(first[b], first[b + 1], 0.0, passes))
            slot[PLACE, source] = -1
        log_joint += weight * _log_product(begin, end, 1.0, quiet)
        start[k + 1] = size
    return LossySweep(Lists(start, active[:size].copy()), expected, looked_at, log_joint, entropy)


@compiled
def count_edges(
    sources: Places, rows_of: Lists, cells: LossyCells, quiet: Numbers, trial: Numbers, reach: Numbers,
    share: Numbers, n_ones: Numbers, worth: Numbers,
) -> None:  # fmt: skip
    """Sums for each edge of the given sources over the rows in which the source is on, all (n_sources, n_sensors).

    Over cells that do not show 0: ``share`` of 1 / (1 - quiet), which times the reach is the expected number of times
    that the edge worked; ``n_ones`` of the weights; ``worth`` of the log ratio of the cell with and without the edge,
    or, where there is none, with and without one of reach 1/4 (``trial`` of the cell).
    """
    (cell_starts, ones) = cells.ones
    for source in sources:
        for place in range(rows_of.start[source], rows_of.start[source + 1]):
            row = rows_of.items[place]
            weight = cells.weights[row]
            for at in range(cell_starts[row], cell_starts[row + 1]):
                sensor, now = ones[at], quiet[at]
                share[source, sensor] += weight / (1.0 - now)
                n_ones[source, sensor] += weight
                if reach[source, sensor] > 0.0:
                    without = now / (1.0 - reach[source, sensor])
                    worth[source, sensor] += weight * np.log((1.0 - now) / (1.0 - without))
                else:
                    worth[source, sensor] += weight * trial[at]


@compiled
def refresh_quiet(cells: LossyCells, active: Lists, reach: Numbers, leak: Numbers, quiet: Numbers) -> None:
    """Bring ``quiet`` up to date with other numbers or another activity."""
    (cell_starts, ones) = cells.ones
    for row in range(cell_starts.size - 1):
        for at in range(cell_starts[row], cell_starts[row + 1]):
            quiet[at] = cells.heard[at] * (1.0 - leak[ones[at]])
        for place in range(active.start[row], active.start[row + 1]):
            source = active.items[place]
            for at in range(cell_starts[row], cell_starts[row + 1]):
                quiet[at] *= 1.0 - reach[source, ones[at]]


# The information that the rows hold on the numbers of one lossy source, from a few draws of the activity.
#
# The score of a row, the slope of its log-likelihood, is the expectation of the score with known activity (Fisher):
#
#     by p: 1/p where the source is on, -1/(1 - p) where it is off;
#     by reach_i, where it is on: -1/fail_i for a 0, quiet_i / (fail_i (1 - quiet_i)) for a 1;
#     by leak_i: -1/(1 - leak_i) for a 0, quiet_i / ((1 - leak_i) (1 - quiet_i)) for a 1.
#
# The information is the sum over the rows of the outer product of that expectation with itself. The products of the
# scores under two different draws of the activity have just that expectation: with s_1 ... s_K of K independent draws,
#
#     [(sum s_k)(sum s_k)' - sum s_k s_k'] / (K (K - 1)),        and with known activity it would be  sum s_k s_k' / K.
#
# The difference is what is lost because activity is hidden (Louis' correction): it shows as draws that differ.

ZERO = -1  # in place of a cell: the sensor shows 0


@compiled
def _score(
    is_on: bool, at_of: Places, heard: Numbers, quiet: Numbers, probability: float, fail: Numbers, leak: Numbers,
    score: Numbers,
) -> None:  # fmt: skip
    """The score of one row with known activity: by p, by the reach of each sensor, by the leak of each sensor."""
    n = fail.size
    score[0] = 1.0 / probability if is_on else -1.0 / (1.0 - probability)
    for k in range(n):
        at = at_of[k]
        if at == ZERO:
            score[1 + k], score[1 + n + k] = -1.0 / fail[k] if is_on else 0.0, -1.0 / (1.0 - leak[k])
        else:
            odds = heard[at] * quiet[at] / (1.0 - quiet[at])
            score[1 + k], score[1 + n + k] = odds / fail[k] if is_on else 0.0, odds / (1.0 - leak[k])


@compiled
def _add_outer(weight: float, vector: Numbers, matrix: Numbers) -> None:
    """Add the outer product of a vector with itself."""
    for a in range(vector.size):
        for b in range(vector.size):
            matrix[a, b] += weight * vector[a] * vector[b]


@compiled
def source_information(
    rows: Places, is_on: NDArray[np.bool_], quiet: Numbers, cells: LossyCells, place: NDArray[np.int32],
    probability: float, fail: Numbers, leak: Numbers, squares: Numbers, products: Numbers, slope: Numbers,
) -> None:  # fmt: skip
    """Add up over the given rows: ``squares`` of s_k s_k', ``products`` of the sum of s_k, and its ``slope``.

    Scores s_k are by p, reach and leaks, so the matrices are (1 + 2k, 1 + 2k). ``is_on`` is (n_draws, n_rows) and
    ``quiet`` (n_draws, n_cells); ``place`` is where a sensor stands in the support of the source, or -1.
    """
    (starts, ones), n = cells.ones, fail.size
    at_of, one, every = np.empty(n, np.int64), np.empty(1 + 2 * n), np.empty(1 + 2 * n)
    for r in range(rows.size):
        row, weight = rows[r], cells.weights[rows[r]]
        for k in range(n):
            at_of[k] = ZERO
        for at in range(starts[row], starts[row + 1]):
            if place[ones[at]] >= 0:
                at_of[place[ones[at]]] = at
        for a in range(every.size):
            every[a] = 0.0
        for draw in range(quiet.shape[0]):
            _score(is_on[draw, r], at_of, cells.heard, quiet[draw], probability, fail, leak, one)
            _add_outer(weight, one, squares)
            for a in range(one.size):
                every[a] += one[a]
                slope[a] += weight * one[a]
        _add_outer(weight, every, products)
