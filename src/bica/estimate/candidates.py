"""Sets of sensors that may be sources: what rows show, what rows have in common, and relatives of present sources."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Sets = NDArray[np.int64]  # bit sets of up to 64 sensors
Vector = NDArray[np.float64]

MOST_ROWS = 1000  # distinct rows that are candidates themselves
FREQUENT_ROWS = 250  # rows whose intersections are looked at
MOST_SHARED = 1000  # intersections that are candidates


def from_rows(patterns: Sets, weights: Vector, n_sensors: int) -> Sets:
    """The most frequent rows, what two of them share, and single sensors.

    >>> from_rows(np.array([0, 3, 6]), np.array([5.0, 2.0, 1.0]), 3).tolist()
    [1, 2, 3, 4, 6]
    """
    frequent = patterns[np.argsort(-weights, kind="stable")]
    frequent = frequent[frequent != 0]
    return np.unique(np.concatenate([frequent[:MOST_ROWS], _shared(frequent[:FREQUENT_ROWS]), single(n_sensors)]))


def _shared(rows: Sets) -> Sets:
    """The intersections of pairs of rows that come up most often."""
    both = (rows[:, None] & rows)[np.triu_indices(rows.size, 1)]
    shared, times = np.unique(both[both != 0], return_counts=True)
    return shared[np.argsort(-times, kind="stable")[:MOST_SHARED]]


def single(n_sensors: int) -> Sets:
    """Every sensor alone."""
    return np.int64(1) << np.arange(n_sensors)


def relatives_of(source: np.int64, others: Sets, n_sensors: int) -> Sets:
    """One sensor more or less; union, intersection and difference with the other sources.

    >>> relatives_of(np.int64(3), np.array([6]), 3).tolist()
    [2, 1, 7, 7, 2, 1]
    """
    return np.concatenate([source ^ single(n_sensors), source | others, source & others, source & ~others])


def relatives(sources: Sets, n_sensors: int) -> Sets:
    """The relatives of all sources."""
    related = [relatives_of(source, sources, n_sensors) for source in sources]
    return np.unique(np.concatenate([np.empty(0, np.int64), *related]))
