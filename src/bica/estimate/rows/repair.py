"""Sources that do not pay for themselves are dropped; fragments of one source, on together or overlapping, become one.

Without repairs the search may settle on the common part of several sources as a source of its own, or on two halves of
one source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.rows.explained import HALF, Explained, decode
from bica.estimate.rows.pool import MOST_FREQUENT, RAREST, Column, Cost, Forbidden, Numbers, RowPool, as_columns, ranges
from bica.kernels.rows.decoding import Activity
from bica.kernels.rows.gains import Lists, Sources, taken
from bica.kernels.rows.votes import count_overlaps, count_together
from bica.progress import in_threads, tracked


@dataclass(frozen=True, slots=True, eq=False)
class RowTrial:
    """Some rows decoded with other sources, and how much they gained by it."""

    rows: NDArray[np.int64]
    activity: Activity
    gained: float


def try_rows(state: Explained, sources: Sources, rows: NDArray[np.int64], *, warm: bool = False) -> RowTrial:
    """These rows decoded with other sources than those of ``state``, starting from its activity if ``warm``."""
    before = state.activity.active if warm else None
    activity = decode(state.table, sources, state.cell_weights, rows, before)
    gained = float(state.table.cells.weights[rows] @ activity.gain) - state.gain(rows)
    return RowTrial(rows, activity, gained)


def without(sources: Sources, gone: NDArray[np.int64] | list[int]) -> Sources:
    """The same sources, of which those that are gone are never on."""
    log_odds = sources.log_odds.copy()
    log_odds[gone] = -np.inf
    return sources._replace(log_odds=log_odds)


def some_of(rows: NDArray[np.int64], n_most: int) -> NDArray[np.int64]:
    """About ``n_most`` of the rows, evenly spread, if there are more than twice as many."""
    return rows[:: rows.size // n_most] if rows.size > 2 * n_most else rows


# Decoding overrates what a source is worth: it is in doubt if its loss is below DOUBT times its cost plus MARGIN nats.
DOUBT, MARGIN = 1.5, 25.0
BATCHES = 20  # of sources dropped together, at most


def pruned(state: Explained, cost: Cost, least: float) -> Explained:
    """The state without sources that are on too seldom, or whose rows other sources explain at less than their cost.

    Decoding also gives what every source is worth if others step in; only sources in doubt are tried again. Sources
    that step in for each other are never dropped together: after each batch, the rest is checked again.
    """
    state = _dropped(state, np.flatnonzero((state.n_on() < least) & ~state.pool.fixed))
    checked = np.zeros(state.pool.size, bool)
    for _ in range(BATCHES):
        saved = _savings(state, cost)
        doubtful = np.flatnonzero((state.losses() < DOUBT * saved + MARGIN) & ~state.pool.fixed & ~checked)
        trials = _trials(state, doubtful)
        useless = [k for k, trial in enumerate(trials) if -trial.gained < saved[doubtful[k]]]
        checked[doubtful] = True
        checked[doubtful[useless]] = False
        gone = _independent(state, doubtful, trials, useless)
        if not gone.size:
            break
        state, checked = _dropped(state, gone), np.delete(checked, gone)
    return state


def _savings(state: Explained, cost: Cost) -> Numbers:
    """What dropping each source saves: its code, and that of being off in the other rows."""
    savings: Numbers = cost(state.pool.widths) - state.table.n_samples * np.log1p(-state.pool.probability)
    return savings


def _trials(state: Explained, doubtful: NDArray[np.int64]) -> list[RowTrial]:
    sources, rows_of = state.sources(), state.rows_of()

    def drop(source: int) -> RowTrial:
        return try_rows(state, without(sources, [source]), _of(rows_of, source), warm=True)

    return list(tracked(in_threads(drop, doubtful.tolist(), state.n_jobs), "sources in doubt", doubtful.size))


def _of(lists: Lists, k: int) -> NDArray[np.int64]:
    return lists.items[lists.start[k] : lists.start[k + 1]].astype(np.int64)


def _independent(
    state: Explained, doubtful: NDArray[np.int64], trials: list[RowTrial], useless: list[int]
) -> NDArray[np.int64]:
    """The useless sources that can be dropped together: the smallest first, and none that stepped in for another."""
    size = state.n_on() * state.pool.widths
    gone: set[int] = set()
    needed: set[int] = set()
    for k in sorted(useless, key=lambda k: (size[doubtful[k]], doubtful[k])):
        source, stepping_in = int(doubtful[k]), _stepping_in(state, trials[k])
        if source not in needed and not gone & stepping_in:
            gone.add(source)
            needed |= stepping_in
    return np.array(sorted(gone), np.int64)


def _stepping_in(state: Explained, trial: RowTrial) -> set[int]:
    """The sources that are on more often than before."""
    before = np.bincount(taken(state.activity.active, trial.rows).items, minlength=state.pool.size)
    after = np.bincount(trial.activity.active.items, minlength=state.pool.size)
    return set(np.flatnonzero(after > before).tolist())


def _dropped(state: Explained, gone: NDArray[np.int64]) -> Explained:
    """The state without these sources, their rows decoded again."""
    if not gone.size:
        return state
    rows_of = state.rows_of()
    rows = np.unique(np.concatenate([_of(rows_of, source) for source in gone.tolist()]))
    before = state.activity.active
    activity = decode(state.table, without(state.sources(), gone), state.cell_weights, rows, before, state.n_jobs)
    return state.with_rows(rows, activity).keeping(np.setdiff1d(np.arange(state.pool.size), gone))


SURPRISE = 4.0  # standard deviations above what independent sources give: two sources this often on together
LEAST_TOGETHER = 3.0  # rows in which two sources must be on together
LEAST_SHARE = 0.3  # of the rows of one source in which the other must be on, too
OVERLAP = 0.5  # share of sensors that two sources must have in common
MOST_REPAIRS = 300  # tried, the most promising ones
SOURCES_PER_PART = 32  # work for one thread at a time
SAMPLE, HOPELESS = 100, -50.0  # rows tried first; a repair that seems to gain less than this many nats is given up
BETTER = 1e-6  # nats: a smaller gain is rounding


@dataclass(frozen=True, slots=True)
class Repair:
    """Give ``source`` the sensors of ``other``, too; if ``glue``, drop ``other``."""

    promise: float  # share of rows or sensors in common: the most promising repairs are tried
    source: int
    other: int
    glue: bool


def repaired(state: Explained, cost: Cost, forbidden: Forbidden | None = None) -> Explained | None:
    """The state after all repairs that raise the objective, each source in at most one; None if there are none.

    The result still has the old activity: decode it.
    """
    repairs = _repairs(state)
    columns = as_columns(state.pool.columns)
    unions: list[Column] = [tuple(sorted({*columns[repair.source], *columns[repair.other]})) for repair in repairs]
    open_repairs = [
        k
        for k, (repair, union) in enumerate(zip(repairs, unions, strict=True))
        if (repair.glue or union != columns[repair.source]) and not (forbidden and forbidden(union))
    ][:MOST_REPAIRS]
    repairs, unions = [repairs[k] for k in open_repairs], [unions[k] for k in open_repairs]
    gains = _gains(state, cost, repairs, unions)
    taken: set[int] = set()
    done: list[int] = []
    for k in np.argsort(-gains, kind="stable").tolist():
        if gains[k] > BETTER and not taken & {repairs[k].source, repairs[k].other}:
            taken |= {repairs[k].source, repairs[k].other}
            done.append(k)
    if not done:
        return None
    probability = [_probability(state, repairs[k], _rows(state.rows_of(), repairs[k])) for k in done]
    pool = _after(state, [repairs[k] for k in done], [unions[k] for k in done], probability)
    return replace(state, pool=pool.merged())


def _repairs(state: Explained) -> list[Repair]:
    """Repairs to try, the most promising first; a known source is never changed or glued."""
    n_on, rows_of, active = state.n_on(), state.rows_of(), state.activity.active
    weights = state.table.cells.weights

    def count(sources: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return count_together(sources, active, rows_of, weights, n_on, SURPRISE, LEAST_TOGETHER, LEAST_SHARE)

    repairs: list[Repair] = []
    fixed = state.pool.fixed
    for pairs, counts in in_threads(count, ranges(np.arange(state.pool.size), SOURCES_PER_PART), state.n_jobs):
        for (source, other), both in zip(pairs.tolist(), counts.tolist(), strict=True):
            if not fixed[source]:
                repairs.append(Repair(both / n_on[source], source, other, False))
                share = both / max(n_on[source], n_on[other])
                if share > LEAST_SHARE and not fixed[other] and (source < other or both / n_on[other] <= LEAST_SHARE):
                    repairs.append(Repair(share, source, other, True))
    pairs, shares = count_overlaps(state.pool.columns, state.sources().reaching, OVERLAP)
    for (source, other), share in zip(pairs.tolist(), shares.tolist(), strict=True):
        if not fixed[source] and not fixed[other]:
            repairs.append(Repair(share, source, other, True))
    return sorted(repairs, key=lambda repair: (-repair.promise, repair.source, repair.other, repair.glue))


def _gains(state: Explained, cost: Cost, repairs: list[Repair], unions: list[Column]) -> NDArray[np.float64]:
    """How much each repair alone raises the objective."""
    rows_of, costs = state.rows_of(), _costs(state, state.pool, cost)

    def gain(k: int) -> float:
        repair, rows = repairs[k], _rows(rows_of, repairs[k])
        pool = _after(state, [repair], [unions[k]], [_probability(state, repair, rows)])
        saved = costs.sum() - _costs(state, pool, cost).sum()
        sources = pool.sources(state.cell_weights.one, state.cell_weights.zero)
        few = some_of(rows, SAMPLE)
        if few.size < rows.size:
            estimate = try_rows(state, sources, few).gained * rows.size / few.size
            if estimate + saved < HOPELESS:
                return float(estimate + saved)
        return float(try_rows(state, sources, rows).gained + saved)

    gains = tracked(in_threads(gain, range(len(repairs)), state.n_jobs), "joining sources, pairs", len(repairs))
    return np.array(list(gains), float)


def _costs(state: Explained, pool: RowPool, cost: Cost) -> Numbers:
    """The code of each source, and of its being off in rows."""
    costs: Numbers = cost(pool.widths) - state.table.n_samples * np.log1p(-pool.probability)
    return costs


def _probability(state: Explained, repair: Repair, rows: NDArray[np.int64]) -> float:
    """The probability of the changed source."""
    if not repair.glue:
        return float(state.pool.probability[repair.source])
    return float((state.table.cells.weights[rows].sum() + HALF) / (state.table.n_samples + 1))


def _changed(repair: Repair) -> list[int]:
    return [repair.source, repair.other] if repair.glue else [repair.source]


def _rows(rows_of: Lists, repair: Repair) -> NDArray[np.int64]:
    rows = np.concatenate([rows_of.items[rows_of.start[k] : rows_of.start[k + 1]] for k in _changed(repair)])
    return np.unique(rows).astype(np.int64)


def _after(state: Explained, repairs: list[Repair], unions: list[Column], probability: list[float]) -> RowPool:
    """The sources after these repairs."""
    gone = [source for repair in repairs for source in _changed(repair)]
    new = RowPool.of(unions, np.clip(probability, RAREST, MOST_FREQUENT).tolist())
    return state.pool.kept(np.setdiff1d(np.arange(state.pool.size), gone)).plus(new)
