"""Dropping sources that do not pay for themselves, after decoding their rows without them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.estimate.rows.explained import Explained, decode
from bica.estimate.rows.pool import Cost, Numbers
from bica.kernels.rows.decoding import Activity
from bica.kernels.rows.gains import Sources
from bica.kernels.rows.lists import Lists, taken
from bica.threads import in_threads


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

    return list(in_threads(drop, doubtful.tolist(), state.n_jobs))


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
