"""Columns put to the vote of the rows in which their source is on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bica.estimate.rows.explained import Explained
from bica.estimate.rows.pool import Forbidden, Pool, as_columns, as_lists
from bica.kernels.rows_votes import vote_columns

SHARE = 0.7  # of log(n_sensors), the price of a sensor in a column


def voted(state: Explained, forbidden: Forbidden | None = None) -> Pool:
    """The sources with the sensors that their rows vote for: fragments grow and supersets shrink; equal ones merge."""
    table, pool = state.table, state.pool
    covered = state.coverage()
    free = 1 - (covered.ones + covered.zeros) / table.n_samples
    columns = vote_columns(
        pool.columns, state.sources().reaching, state.rows_of(), pool.fixed, table.cells, table.words, table.seen,
        covered.unexplained, free, state.evidence.one, state.evidence.zero, SHARE * np.log(table.n_sensors),
    )  # fmt: skip
    if forbidden:
        pairs = zip(as_columns(pool.columns), as_columns(columns), strict=True)
        columns = as_lists([old if forbidden(new) else new for old, new in pairs])
    return replace(pool, columns=columns).merged()


def same_columns(left: Pool, right: Pool) -> bool:
    """Whether both have the same columns, in any order."""
    return set(as_columns(left.columns)) == set(as_columns(right.columns))
