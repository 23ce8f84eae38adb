"""Mending columns: fragments of one source that are on together, or overlap, become one.

Without this the search settles on the common part of several sources as a source of its own, or on two halves of one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.rows.explained import Explained
from bica.estimate.rows.pool import (
    MOST_FREQUENT,
    RAREST,
    Column,
    Forbidden,
    Numbers,
    Price,
    RowPool,
    as_columns,
    ranges,
)
from bica.estimate.rows.pruning import some_of, try_rows
from bica.kernels.rows.lists import Lists
from bica.kernels.rows.votes import count_overlaps, count_together
from bica.threads import in_threads

SURPRISE, LEAST_TOGETHER, LEAST_SHARE = 4.0, 3.0, 0.3
OVERLAP = 0.5
MOST_MOVES, SOURCES_A_PART = 300, 32
SAMPLE, HOPELESS = 100, -50.0  # rows that settle clear cases
BETTER = 1e-6


@dataclass(frozen=True, slots=True)
class Move:
    """Give ``source`` the sensors of ``other`` too; if ``glue``, ``other`` goes."""

    promise: float
    source: int
    other: int
    glue: bool


def repaired(state: Explained, price: Price, forbidden: Forbidden | None = None) -> Explained | None:
    """With the moves that raise the objective, each source taking part in at most one; None if there is no such move.

    The activity of the result is that of before: decode it.
    """
    moves = _moves(state)
    columns = as_columns(state.pool.columns)
    unions: list[Column] = [tuple(sorted({*columns[move.source], *columns[move.other]})) for move in moves]
    open_moves = [
        k
        for k, (move, union) in enumerate(zip(moves, unions, strict=True))
        if (move.glue or union != columns[move.source]) and not (forbidden and forbidden(union))
    ][:MOST_MOVES]
    moves, unions = [moves[k] for k in open_moves], [unions[k] for k in open_moves]
    gains = _gains(state, price, moves, unions)
    taken: set[int] = set()
    done: list[int] = []
    for k in np.argsort(-gains, kind="stable").tolist():
        if gains[k] > BETTER and not taken & {moves[k].source, moves[k].other}:
            taken |= {moves[k].source, moves[k].other}
            done.append(k)
    if not done:
        return None
    chances = [_chance(state, moves[k], _rows(state.rows_of(), moves[k])) for k in done]
    pool = _moved(state, [moves[k] for k in done], [unions[k] for k in done], *chances)
    return replace(state, pool=pool.merged())


def _moves(state: Explained) -> list[Move]:
    """Moves to try, the most promising first; a known source is never changed or glued."""
    n_on, rows_of, active = state.n_on(), state.rows_of(), state.activity.active
    weights = state.table.cells.weights

    def count(sources: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return count_together(sources, active, rows_of, weights, n_on, SURPRISE, LEAST_TOGETHER, LEAST_SHARE)

    moves: list[Move] = []
    fixed = state.pool.fixed
    for pairs, counts in in_threads(count, ranges(np.arange(state.pool.size), SOURCES_A_PART), state.n_jobs):
        for (source, other), both in zip(pairs.tolist(), counts.tolist(), strict=True):
            if not fixed[source]:
                moves.append(Move(both / n_on[source], source, other, False))
                share = both / max(n_on[source], n_on[other])
                if share > LEAST_SHARE and not fixed[other] and (source < other or both / n_on[other] <= LEAST_SHARE):
                    moves.append(Move(share, source, other, True))
    pairs, shares = count_overlaps(state.pool.columns, state.sources().reaching, OVERLAP)
    for (source, other), share in zip(pairs.tolist(), shares.tolist(), strict=True):
        if not fixed[source] and not fixed[other]:
            moves.append(Move(share, source, other, True))
    return sorted(moves, key=lambda move: (-move.promise, move.source, move.other, move.glue))


def _gains(state: Explained, price: Price, moves: list[Move], unions: list[Column]) -> NDArray[np.float64]:
    """How much each move alone raises the objective."""
    rows_of, costs = state.rows_of(), _costs(state, state.pool, price)

    def gain(k: int) -> float:
        move, rows = moves[k], _rows(rows_of, moves[k])
        pool = _moved(state, [move], [unions[k]], _chance(state, move, rows))
        saved = costs.sum() - _costs(state, pool, price).sum()
        sources = pool.sources(state.evidence.one, state.evidence.zero)
        few = some_of(rows, SAMPLE)
        if few.size < rows.size:
            estimate = try_rows(state, sources, few).gained * rows.size / few.size
            if estimate + saved < HOPELESS:
                return float(estimate + saved)
        return float(try_rows(state, sources, rows).gained + saved)

    return np.array(list(in_threads(gain, range(len(moves)), state.n_jobs)), float)


def _costs(state: Explained, pool: RowPool, price: Price) -> Numbers:
    costs: Numbers = price(pool.widths) - state.table.n_samples * np.log1p(-pool.probability)
    return costs


def _chance(state: Explained, move: Move, rows: NDArray[np.int64]) -> float:
    """How often the changed source would be on."""
    if not move.glue:
        return float(state.pool.probability[move.source])
    return float((state.table.cells.weights[rows].sum() + 0.5) / (state.table.n_samples + 1))


def _rows(rows_of: Lists, move: Move) -> NDArray[np.int64]:
    own = [move.source, move.other] if move.glue else [move.source]
    rows = np.concatenate([rows_of.items[rows_of.start[k] : rows_of.start[k + 1]] for k in own])
    return np.unique(rows).astype(np.int64)


def _moved(state: Explained, moves: list[Move], unions: list[Column], *chances: float) -> RowPool:
    """The sources after these moves."""
    gone = [source for move in moves for source in ((move.source, move.other) if move.glue else (move.source,))]
    new = RowPool.of(unions, np.clip(chances, RAREST, MOST_FREQUENT).tolist())
    return state.pool.kept(np.setdiff1d(np.arange(state.pool.size), gone)).plus(new)
