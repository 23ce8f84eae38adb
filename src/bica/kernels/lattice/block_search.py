"""The sources of a few sensors in one compiled piece, noise known: a wide table is learned from thousands of blocks.

The program: over all sets S of allowed sources, beside the known ones, and their rates, maximise

    score(S) = max_w L(S, w) - sum_{g in S} cost_g,

where L is the exact log-likelihood of the block (``block_climb.py``) and cost_g is what a source of these sensors must
gain. It is searched by the moves of ``estimate/search.py``, in this order, until none helps:

    add       the set g whose rate wants to grow from 0; dL/dw_g of *all* 2^m sets comes from one gradient, the steepest
              few of every size are forecast by their best probability with all else fixed, the best forecasts refitted;
    drop      the source with the least forecast loss, w_j^2 / (2 [I^-1]_jj) by Wald's approximation, refitted;
    exchange  a source for a relative (one sensor more or less, union, intersection, difference with another source) or,
              where it is in doubt, for what its absence makes steep; the sources take turns.

Invariant: a move is taken only if the refitted score rises by more than ``BETTER``. The score is bounded, so the search
ends. Known sources come first in every list; they pay no cost and never leave.
"""

from typing import NamedTuple

import numpy as np

from bica.kernels.compiled import compiled
from bica.kernels.lattice.block_climb import (
    BlockRows,
    BlockTables,
    Flags,
    Matrix,
    Sets,
    Vector,
    add_ridge,
    cell_probabilities,
    climb,
    empty_tables,
    factored,
    places_of,
    solve_factored,
    square_part,
)
from bica.kernels.lattice.likelihood import best_additions, candidate_gradient, spread_cells
from bica.kernels.lattice.subsets import apply_matrices

TRIED = 3  # candidates that are refitted before a move is given up
HOPELESS = 10.0  # nats: a forecast this far below the present score is not tried
IN_DOUBT = 30.0  # nats: a source whose loss costs more log-likelihood than this is there
FEW_OF_EACH_SIZE = 8  # candidates that are looked at closely
BETTER = 1e-6  # nats: a smaller rise of the score is rounding
WALD_RIDGE, WALD_RIDGE_FLOOR = 1e-9, 1e-12  # on the diagonal of the information, relative to its trace and absolute
ALREADY_THERE = -1.0  # a slope that keeps a present source from being added again


class BlockChannel(NamedTuple):
    """The noise of every sensor: (n_sensors, 2, 2) each."""

    forwards: Matrix
    transposed: Matrix


class SetRules(NamedTuple):
    """What holds for every set of sensors as a source: (2^n_sensors,) each."""

    allowed: Flags
    size: Sets  # how many sensors it has
    cost: Vector  # what it must gain


class FittedBlock(NamedTuple):
    """Sources at their best rates."""

    sources: Sets  # (n_sources,), bit sets
    source_rate: Vector  # (n_sources,)
    log_likelihood: float
    information: Matrix  # (n_sources, n_sources), of the rates


class Move(NamedTuple):
    """The outcome of a move."""

    is_better: bool
    fit: FittedBlock  # the sources after the move; unspecified if it is not better


@compiled
def _fitted(
    sources: Sets, start: Vector, fixed: Flags, rows: BlockRows, matrices: Matrix, needed: float
) -> FittedBlock:
    """The sources at their best rates; those whose rate ends at 0 leave, except the known ones."""
    source_rate, height, information = climb(sources, start, fixed, rows, matrices, needed)
    alive = np.empty(sources.size, np.bool_)
    for j in range(sources.size):
        alive[j] = j < fixed.size or source_rate[j] > 0.0
    places = places_of(alive)
    kept, kept_rate = _taken(sources, source_rate, places)
    return FittedBlock(kept, kept_rate, height, square_part(information, places))


@compiled
def _taken(sources: Sets, source_rate: Vector, places: Sets) -> tuple[Sets, Vector]:
    """The sources at these places, and their rates."""
    taken, taken_rate = np.empty(places.size, np.int64), np.empty(places.size)
    for k in range(places.size):
        taken[k], taken_rate[k] = sources[places[k]], source_rate[places[k]]
    return taken, taken_rate


@compiled
def _total_cost(sources: Sets, n_known: int, cost: Vector) -> float:
    """What all sources but the known ones must gain together."""
    total = 0.0
    for j in range(n_known, sources.size):
        total += cost[sources[j]]
    return total


@compiled
def promising_sets(
    sources: Sets,
    n_known: int,
    rows: BlockRows,
    channel: BlockChannel,
    tables: BlockTables,
    allowed: Flags,
    size: Sets,
) -> Sets:
    """Sets of sensors whose rate wants to grow from 0, the steepest few of every size."""
    hidden, probability = tables.hidden, tables.probability
    by_hidden, slope, by_cell = np.empty(hidden.size), np.empty(hidden.size), np.empty(probability.size)
    for k in range(probability.size):
        by_cell[k] = rows.weights[k] / probability[k]
    spread_cells(by_cell, rows.groups.unobserved, rows.groups.starts, rows.groups.cells, by_hidden)
    apply_matrices(by_hidden, channel.transposed)
    candidate_gradient(hidden, by_hidden, slope)
    for j in range(n_known, sources.size):
        slope[sources[j]] = ALREADY_THERE
    n_sensors = channel.forwards.shape[0]
    steepest, filled = np.empty((n_sensors + 1) * FEW_OF_EACH_SIZE, np.int64), np.empty(n_sensors + 1, np.int64)
    filled[:] = 0
    for s in range(1, hidden.size):
        if allowed[s] and slope[s] > 0.0:
            first = size[s] * FEW_OF_EACH_SIZE
            _insert(steepest[first : first + FEW_OF_EACH_SIZE], filled, size[s], s, slope)
    n = 0
    for k in range(1, n_sensors + 1):
        for place in range(filled[k]):
            steepest[n] = steepest[k * FEW_OF_EACH_SIZE + place]
            n += 1
    return steepest[:n]


@compiled
def _insert(row: Sets, filled: Sets, k: int, s: int, slope: Vector) -> None:
    """Insert the set ``s`` into ``row``, the steepest few of size ``k`` in falling order, if it is one of them."""
    if filled[k] == row.size and slope[s] <= slope[row[row.size - 1]]:
        return
    place = min(filled[k], row.size - 1)
    while place > 0 and slope[row[place - 1]] < slope[s]:
        row[place] = row[place - 1]
        place -= 1
    row[place] = s
    filled[k] = min(filled[k] + 1, row.size)


@compiled
def _relatives(source: int, others: Sets, n_known: int, n_sensors: int, allowed: Flags) -> Sets:
    """Allowed sets near the source that are not among the others yet.

    They have one sensor more or less, or are its union, intersection or difference with one of the others.
    """
    taken = np.empty(1 << n_sensors, np.bool_)
    taken[:] = False
    taken[0] = taken[source] = True
    for j in range(n_known, others.size):
        taken[others[j]] = True
    found = np.empty(n_sensors + 3 * others.size, np.int64)
    n = 0
    for k in range(found.size):
        if k < n_sensors:
            s = source ^ (1 << k)
        else:
            other = others[(k - n_sensors) // 3]
            kind = (k - n_sensors) % 3  # union, intersection, difference
            s = source | other if kind == 0 else (source & other if kind == 1 else source & ~other)
        if allowed[s] and not taken[s]:
            taken[s] = True
            found[n] = s
            n += 1
    return found[:n]


@compiled
def _united(left: Sets, right: Sets, n_sensors: int) -> Sets:
    """All that are in any of the two lists, ascending."""
    listed = np.empty(1 << n_sensors, np.bool_)
    listed[:] = False
    for k in range(left.size):
        listed[left[k]] = True
    for k in range(right.size):
        listed[right[k]] = True
    return places_of(listed)


@compiled
def _with(sources: Sets, source_rate: Vector, source: int, rate: float) -> tuple[Sets, Vector]:
    """The sources and one more."""
    grown, grown_rate = np.empty(sources.size + 1, np.int64), np.empty(sources.size + 1)
    for j in range(sources.size):
        grown[j], grown_rate[j] = sources[j], source_rate[j]
    grown[sources.size], grown_rate[sources.size] = source, rate
    return grown, grown_rate


@compiled
def _without(sources: Sets, source_rate: Vector, place: int) -> tuple[Sets, Vector]:
    """The sources but for the one at this place."""
    places = np.empty(sources.size - 1, np.int64)
    for k in range(places.size):
        places[k] = k if k < place else k + 1
    return _taken(sources, source_rate, places)


@compiled
def _best_grown(
    sources: Sets,
    source_rate: Vector,
    candidates: Sets,
    best_score: float,
    fixed: Flags,
    rows: BlockRows,
    matrices: Matrix,
    height: float,
    tables: BlockTables,
    cost: Vector,
) -> Move:
    """Add the candidates one at a time, the best forecast first; the first that beats ``best_score`` when refitted."""
    gain, probability = np.empty(candidates.size), np.empty(candidates.size)
    best_additions(tables.shown, matrices, candidates, rows.groups, tables.probability, rows.weights, gain, probability)
    here = height - _total_cost(sources, fixed.size, cost)
    for _ in range(min(TRIED, candidates.size)):
        place, forecast = -1, best_score - HOPELESS
        for c in range(candidates.size):
            if gain[c] > 0.0 and here + gain[c] - cost[candidates[c]] > forecast:
                place, forecast = c, here + gain[c] - cost[candidates[c]]
        if place < 0:
            break
        gain[place] = -np.inf
        grown, start = _with(sources, source_rate, candidates[place], -np.log1p(-probability[place]))
        needed = best_score + _total_cost(grown, fixed.size, cost)
        fit = _fitted(grown, start, fixed, rows, matrices, needed)
        if fit.log_likelihood - _total_cost(fit.sources, fixed.size, cost) > best_score + BETTER:
            return Move(True, fit)
    return Move(False, FittedBlock(sources, source_rate, height, np.empty((0, 0))))


@compiled
def _grown(now: FittedBlock, fixed: Flags, rows: BlockRows, channel: BlockChannel, rules: SetRules) -> Move:
    """Add the most promising source that pays for itself."""
    sources, source_rate, _, _ = now
    tables = empty_tables(channel.forwards.shape[0], rows.weights.size)
    height = cell_probabilities(sources, source_rate, rows, channel.forwards, tables)
    candidates = promising_sets(sources, fixed.size, rows, channel, tables, rules.allowed, rules.size)
    score = height - _total_cost(sources, fixed.size, rules.cost)
    matrices = channel.forwards
    return _best_grown(sources, source_rate, candidates, score, fixed, rows, matrices, height, tables, rules.cost)


@compiled
def losses(source_rate: Vector, information: Matrix) -> Vector:
    """How much log-likelihood would be lost without each source, by Wald's approximation."""
    n = source_rate.size
    factors, unit, column, loss = np.empty((n, n)), np.empty(n), np.empty(n), np.empty(n)
    for j in range(n):
        for k in range(n):
            factors[j, k] = information[j, k]
    add_ridge(factors, WALD_RIDGE, WALD_RIDGE_FLOOR)
    order = factored(factors)
    unit[:] = 0.0
    for j in range(n):
        unit[j] = 1.0
        solve_factored(factors, order, unit, column)
        unit[j] = 0.0
        loss[j] = 0.5 * source_rate[j] ** 2 / column[j]
    return loss


@compiled
def _dropped(now: FittedBlock, fixed: Flags, rows: BlockRows, matrices: Matrix, cost: Vector) -> Move:
    """Drop the source whose loss is forecast to be least, refitting before the scores are compared."""
    sources, source_rate, height, information = now
    score = height - _total_cost(sources, fixed.size, cost)
    loss = losses(source_rate, information)
    for j in range(sources.size):
        loss[j] = loss[j] - cost[sources[j]] if j >= fixed.size else np.inf
    for _ in range(min(TRIED, sources.size)):
        place = 0
        for j in range(1, sources.size):
            if loss[j] < loss[place]:
                place = j
        if loss[place] > HOPELESS:
            break
        loss[place] = np.inf
        rest, kept = _without(sources, source_rate, place)
        needed = score + _total_cost(rest, fixed.size, cost)
        fit = _fitted(rest, kept, fixed, rows, matrices, needed)
        if fit.log_likelihood - _total_cost(fit.sources, fixed.size, cost) > score + BETTER:
            return Move(True, fit)
    return Move(False, now)


@compiled
def _exchanged(
    now: FittedBlock,
    turn: int,
    fixed: Flags,
    rows: BlockRows,
    channel: BlockChannel,
    rules: SetRules,
) -> tuple[Move, int]:
    """Replace a source by a relative or, if it is in doubt, by what its absence makes steep; and whose turn is next."""
    sources, source_rate, height, information = now
    n_sensors, n_unknown = channel.forwards.shape[0], sources.size - fixed.size
    tables, matrices = empty_tables(n_sensors, rows.weights.size), channel.forwards
    score, loss = height - _total_cost(sources, fixed.size, rules.cost), losses(source_rate, information)
    for k in range(n_unknown):
        place = fixed.size + (turn + k) % n_unknown
        rest, kept = _without(sources, source_rate, place)
        without = cell_probabilities(rest, kept, rows, matrices, tables)
        if not np.isfinite(without):
            continue
        candidates = _relatives(sources[place], rest, fixed.size, n_sensors, rules.allowed)
        if loss[place] < IN_DOUBT:
            more = promising_sets(sources, fixed.size, rows, channel, tables, rules.allowed, rules.size)
            candidates = _united(candidates, more, n_sensors)
        moved = _best_grown(rest, kept, candidates, score, fixed, rows, matrices, without, tables, rules.cost)
        if moved.is_better:
            return moved, place - fixed.size
    return Move(False, now), turn


@compiled
def search_block(
    sources: Sets,
    source_rate: Vector,
    fixed: Flags,
    rows: BlockRows,
    channel: BlockChannel,
    rules: SetRules,
) -> tuple[Sets, Vector, float, Matrix]:
    """Add, drop and exchange sources, starting from the given ones, until the penalised likelihood rises no more.

    The first ``fixed.size`` sources are known; those marked in ``fixed`` keep their rate. Returns the sources, their
    rates, the score and the information of the rates.
    """
    now, turn = _fitted(sources, source_rate, fixed, rows, channel.forwards, -np.inf), 0
    while True:
        moved = _grown(now, fixed, rows, channel, rules)
        if not moved.is_better:
            moved = _dropped(now, fixed, rows, channel.forwards, rules.cost)
        if not moved.is_better:
            moved, turn = _exchanged(now, turn, fixed, rows, channel, rules)
        if not moved.is_better:
            score = now.log_likelihood - _total_cost(now.sources, fixed.size, rules.cost)
            return now.sources, now.source_rate, score, now.information
        now = moved.fit
