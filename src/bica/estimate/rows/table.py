"""A binary table as the row-based learner wants it: the ones of every distinct row as a list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import all_observed
from bica.data.patterns import PatternCounts
from bica.kernels.bits import Words
from bica.kernels.rows_gains import Cells
from bica.kernels.rows_lists import Lists, list_bits, taken, turned


@dataclass(frozen=True, slots=True, eq=False)
class RowTable:
    """Distinct rows with their weights. Memory goes with the ones and, 64 to a word, the cells.

    >>> table = RowTable.of(PatternCounts.of([[0, 1, 1], [1, 0, 0], [0, 1, 1]]))
    >>> table.cells.ones.items, table.cells.weights
    (array([0, 1, 2], dtype=int32), array([1., 2.]))
    """

    n_sensors: int
    cells: Cells
    words: Words  # (n_rows, n_words), the same ones as bits
    seen: Words  # like words, the cells that were observed; no rows if all were
    ones_of: Lists  # the rows in which each sensor is on

    @classmethod
    def of(cls, data: PatternCounts) -> RowTable:
        """The table behind these counts; cells that were not observed say nothing for or against a source."""
        if data.observed is None:
            seen, gap_words = np.zeros((0, data.patterns.shape[1]), np.uint64), np.zeros_like(data.patterns)
        else:
            seen, gap_words = data.observed, ~data.observed & all_observed(data.n_sensors)
        ones, gaps = list_bits(data.patterns, data.n_sensors), list_bits(gap_words, data.n_sensors)
        cells = Cells(ones, gaps, data.weights)
        return cls(data.n_sensors, cells, data.patterns, seen, turned(ones, data.n_sensors))

    @property
    def n_rows(self) -> int:
        """How many distinct rows there are."""
        return self.cells.weights.size

    @property
    def n_samples(self) -> float:
        """How many rows there are, or the sum of their weights."""
        return float(self.cells.weights.sum())

    @property
    def rows(self) -> NDArray[np.int64]:
        """The numbers of all distinct rows."""
        return np.arange(self.n_rows)

    def ones(self) -> NDArray[np.float64]:
        """How often each sensor is on: (n_sensors,)."""
        return self.added_up(self.cells.ones)

    def times_seen(self) -> NDArray[np.float64]:
        """In how many rows each sensor was observed: (n_sensors,)."""
        return self.n_samples - self.added_up(self.cells.gaps)

    def added_up(self, lists: Lists) -> NDArray[np.float64]:
        """The weight of the rows whose list of sensors holds each sensor: (n_sensors,)."""
        weights = np.repeat(self.cells.weights, np.diff(lists.start))
        return np.bincount(lists.items, weights=weights, minlength=self.n_sensors).astype(float)

    def sample(self, n_samples: int, rng: np.random.Generator) -> RowTable:
        """So many rows drawn from these, without replacement if the weights are counts."""
        weights = self.cells.weights
        if (weights == np.rint(weights)).all():
            drawn = rng.multivariate_hypergeometric(weights.astype(np.int64), n_samples, method="marginals")
        else:
            drawn = rng.multinomial(n_samples, weights / weights.sum())
        kept = np.flatnonzero(drawn)
        ones, gaps = taken(self.cells.ones, kept), taken(self.cells.gaps, kept)
        cells = Cells(ones, gaps, drawn[kept].astype(float))
        seen = self.seen[kept] if self.seen.size else self.seen
        return RowTable(self.n_sensors, cells, self.words[kept], seen, turned(ones, self.n_sensors))
