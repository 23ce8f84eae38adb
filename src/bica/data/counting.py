"""From chunks of rows to distinct rows with their weights, in an order that depends on the rows alone."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import Chunk, all_observed
from bica.kernels.bits import Words, add_to_histogram, count_into_histogram, group_equal

HISTOGRAM_SENSORS = 22  # up to here a cell for every possible row may be cheaper than a hash table
UNMERGED_ROWS = 1 << 21


class DistinctRows:
    """Adds up equal rows as they arrive; a row's key is its words followed by those of its observed cells."""

    def __init__(self, n_sensors: int) -> None:
        self.everything = all_observed(n_sensors)
        self.n_sensors = n_sensors
        self.histogram: NDArray[np.float64] | None = None
        self.merged = np.empty((0, 2 * self.everything.size), np.uint64), np.empty(0)
        self.unmerged: list[tuple[Words, NDArray[np.float64]]] = []

    def add(self, chunk: Chunk) -> None:
        """Count the rows of one more chunk."""
        if chunk.observed is None and self._fits_histogram(len(chunk.words)):
            self._add_to_histogram(chunk)
            return
        seen = np.broadcast_to(self.everything, chunk.words.shape) if chunk.observed is None else chunk.observed
        weights = np.ones(len(chunk.words)) if chunk.weights is None else chunk.weights
        self.unmerged.append(grouped(np.hstack([chunk.words, seen]), weights))
        # waiting for as many rows as are merged already keeps the work linear where every row is new
        if sum(len(weights) for _, weights in self.unmerged) > max(UNMERGED_ROWS, len(self.merged[1])):
            self._merge()

    def _fits_histogram(self, n_rows: int) -> bool:
        if self.histogram is None and self.n_sensors <= HISTOGRAM_SENSORS and 2**self.n_sensors <= 16 * n_rows:
            self.histogram = np.zeros(2**self.n_sensors)
        return self.histogram is not None

    def _add_to_histogram(self, chunk: Chunk) -> None:
        assert self.histogram is not None
        if chunk.weights is None:
            count_into_histogram(chunk.words[:, 0], self.histogram)
        else:
            add_to_histogram(chunk.words[:, 0], chunk.weights, self.histogram)

    def _merge(self) -> None:
        keys, weights = zip(self.merged, *self.unmerged, strict=True)
        self.merged = grouped(np.vstack(keys), np.concatenate(weights))
        self.unmerged = []

    def result(self) -> tuple[Words, Words, NDArray[np.float64]]:
        """Distinct rows of positive weight, their observed cells and their weights, sorted."""
        if self.histogram is not None:
            rows = np.flatnonzero(self.histogram)
            words = rows.astype(np.uint64)[:, None]
            seen = np.broadcast_to(self.everything, words.shape)
            self.unmerged.append((np.hstack([words, seen]), self.histogram[rows]))
        self._merge()
        keys, weights = self.merged
        keys, weights = keys[weights > 0], weights[weights > 0]
        order = np.lexsort(keys.T)
        n_words = self.everything.size
        return keys[order, :n_words], keys[order, n_words:], weights[order]


def grouped(keys: Words, weights: NDArray[np.float64]) -> tuple[Words, NDArray[np.float64]]:
    """The distinct rows of ``keys`` and the sum of the weights of each."""
    first = np.empty(len(keys), np.int64)
    group = np.empty(len(keys), np.int64)
    n_groups = group_equal(np.ascontiguousarray(keys), first, group)
    return keys[first[:n_groups]], np.bincount(group, weights, n_groups).astype(np.float64)


def count_rows(chunks: Iterable[Chunk], n_sensors: int) -> tuple[Words, Words, NDArray[np.float64]]:
    """Distinct rows, observed cells and weights of all chunks together."""
    rows = DistinctRows(n_sensors)
    for chunk in chunks:
        rows.add(chunk)
    return rows.result()
