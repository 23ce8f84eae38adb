"""Trying what rows are worth when some sources are forbidden and others allowed, without changing anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.estimate.rows.explained import Explained, decode
from bica.kernels.rows_decoding import Activity
from bica.kernels.rows_gains import Sources


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What became of some rows, and how much more they are worth than before."""

    rows: NDArray[np.int64]
    activity: Activity
    gained: float


def try_rows(state: Explained, sources: Sources, rows: NDArray[np.int64], *, warm: bool = False) -> Trial:
    """Decode these rows with other sources than those of ``state``, from its activity on if ``warm``."""
    before = state.activity.active if warm else None
    activity = decode(state.table, sources, state.evidence, rows, before)
    gained = float(state.table.cells.weights[rows] @ activity.gain) - state.gain(rows)
    return Trial(rows, activity, gained)


def without(sources: Sources, forbidden: NDArray[np.int64] | list[int]) -> Sources:
    """The same sources, some of which are never on."""
    log_odds = sources.log_odds.copy()
    log_odds[forbidden] = -np.inf
    return sources._replace(log_odds=log_odds)


def some_of(rows: NDArray[np.int64], n_most: int) -> NDArray[np.int64]:
    """About ``n_most`` of the rows, evenly spread, if there are more than twice as many."""
    return rows[:: rows.size // n_most] if rows.size > 2 * n_most else rows
