"""The columns of a counted table as bit sets over its distinct rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.kernels.bits import Words
from bica.kernels.columns import block_histogram, transpose_bits


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBits:
    """One bit set a sensor: bit r is set where the sensor is on in distinct row r.

    >>> columns = ColumnBits.of(PatternCounts.of([[0, 1], [1, 1]]))
    >>> columns.on[:, 0], columns.histogram(np.array([1]))
    (array([2, 3], dtype=uint64), array([0., 2.]))
    """

    on: Words  # (n_sensors, n_row_words)
    seen: Words | None  # the same for the cells that were observed; None: all were
    weights: NDArray[np.float64]  # (n_patterns,)

    @classmethod
    def of(cls, data: PatternCounts, rows: NDArray[np.int64] | None = None) -> ColumnBits:
        """Turn the table round, or some of its distinct rows: time goes with the number of ones."""
        chosen = slice(None) if rows is None else rows
        seen = None if data.observed is None else transposed(data.observed[chosen], data.n_sensors)
        return cls(transposed(data.patterns[chosen], data.n_sensors), seen, data.weights[chosen])

    def histogram(self, sensors: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weight of every pattern of a few sensors, all cells taken as observed: (2^n,)."""
        histogram = np.zeros(1 << sensors.size)
        block_histogram(self.on, sensors, self.weights, histogram)
        return histogram


def transposed(words: Words, n_sensors: int) -> Words:
    """The columns of rows that are bit sets."""
    columns = np.zeros((64 * words.shape[1], max(1, -(-len(words) // 64))), np.uint64)
    transpose_bits(np.ascontiguousarray(words), columns)
    return columns[:n_sensors]
