"""Sets of sensors that may be sources: what rows show, what they have in common, and relatives of present sources."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Sets = NDArray[np.int64]
Vector = NDArray[np.float64]

MOST_ROWS = 2000  # distinct rows that are candidates themselves
FREQUENT_ROWS = 250  # rows whose intersections are looked at
MOST_SHARED = 2000  # intersections that are candidates


def from_rows(patterns: Sets, weights: Vector, n_sensors: int) -> Sets:
    """Frequent rows, what two of the most frequent ones share, and single sensors."""
    frequent = patterns[np.argsort(-weights, kind="stable")]
    frequent = frequent[frequent != 0]
    return np.unique(np.concatenate([frequent[:MOST_ROWS], _shared(frequent[:FREQUENT_ROWS]), _single(n_sensors)]))


def _shared(rows: Sets) -> Sets:
    """The intersections of pairs of rows, the most frequent ones."""
    both = (rows[:, None] & rows)[np.triu_indices(rows.size, 1)]
    shared, times = np.unique(both[both != 0], return_counts=True)
    return shared[np.argsort(-times, kind="stable")[:MOST_SHARED]]


def _single(n_sensors: int) -> Sets:
    return np.int64(1) << np.arange(n_sensors)


def relatives_of(source: int, others: Sets, n_sensors: int) -> Sets:
    """One sensor more or less; union, intersection and difference with the other sources."""
    return np.concatenate([source ^ _single(n_sensors), source | others, source & others, source & ~others])


def relatives(sources: Sets, n_sensors: int) -> Sets:
    """The relatives of all sources."""
    return np.concatenate([np.empty(0, np.int64)] + [relatives_of(source, sources, n_sensors) for source in sources])
