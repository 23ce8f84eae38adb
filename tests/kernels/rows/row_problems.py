"""Small tables and sources for the row kernels, as sets for the slow twins and as arrays for the kernels."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from bica.estimate.rows.pool import as_lists
from bica.kernels.bits import packed
from bica.kernels.rows.gains import RowCells, Sources, turned


@dataclass(frozen=True)
class RowProblem:
    n_sensors: int
    ones: list
    gaps: list
    weights: list
    columns: list
    active: list
    log_odds: list
    one: list
    zero: list

    def cells(self):
        return RowCells(as_lists(self.ones_lists()), as_lists([tuple(g) for g in self.gaps]), np.array(self.weights))

    def ones_lists(self):
        return [tuple(o) for o in self.ones]

    def sources(self):
        columns = as_lists([tuple(c) for c in self.columns])
        log_odds, zero, one = np.array(self.log_odds), np.array(self.zero), np.array(self.one)
        silent = log_odds + np.array([sum(self.zero[i] for i in c) for c in self.columns])
        frequent = np.flatnonzero(log_odds > 0).astype(np.int32)
        return Sources(columns, turned(columns, self.n_sensors), log_odds, silent, frequent,
                       np.stack([zero, one, 0 * one]))  # fmt: skip

    def activity(self):
        return as_lists([tuple(a) for a in self.active])

    def words(self, sets):
        cells = np.array([[i in s for i in range(self.n_sensors)] for s in sets], np.uint8)
        return packed(cells.reshape(len(sets), self.n_sensors))

    def rows(self):
        return np.arange(len(self.ones))

    def of_row(self, t):
        return self.ones[t], self.gaps[t], self.columns, self.log_odds, self.one, self.zero


@st.composite
def row_problems(draw, max_sensors=5, max_sources=4, max_rows=4, gaps=True):
    m = draw(st.integers(1, max_sensors))
    n_rows = draw(st.integers(1, max_rows))
    sets = st.sets(st.integers(0, m - 1))
    ones = draw(st.lists(sets, min_size=n_rows, max_size=n_rows))
    missing = draw(st.lists(sets if gaps else st.just(set()), min_size=n_rows, max_size=n_rows))
    missing = [g - o for g, o in zip(missing, ones, strict=True)]
    columns = draw(st.lists(st.sets(st.integers(0, m - 1), min_size=1), min_size=1, max_size=max_sources))
    n = len(columns)
    active = draw(st.lists(st.sets(st.integers(0, n - 1)), min_size=n_rows, max_size=n_rows))
    weights = draw(st.lists(st.integers(1, 3).map(float), min_size=n_rows, max_size=n_rows))
    log_odds = draw(st.lists(st.floats(-5, 1), min_size=n, max_size=n))
    rates = st.floats(0.01, 0.4)
    false_alarm, miss = (draw(st.lists(rates, min_size=m, max_size=m)) for _ in range(2))
    one = [float(np.log((1 - b) / a)) for a, b in zip(false_alarm, miss, strict=True)]
    zero = [float(np.log(b / (1 - a))) for a, b in zip(false_alarm, miss, strict=True)]
    return RowProblem(m, ones, missing, weights, columns, active, log_odds, one, zero)


def as_sets(lists):
    ends = lists.start.tolist()
    return [set(lists.items[begin:end].tolist()) for begin, end in pairwise(ends)]
