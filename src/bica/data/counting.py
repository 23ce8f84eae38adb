"""From chunks of rows to distinct rows with their weights: the same bytes for any order and chunking of the rows."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import Chunk, all_observed
from bica.kernels.bits import Words, add_to_histogram, count_into_histogram, group_equal

HISTOGRAM_SENSORS = 22  # up to here a cell for every possible row may be cheaper than a hash table
UNMERGED_WORDS = 1 << 22


class Groups:
    """Adds up the weights of equal keys as they arrive; a key is a row of words."""

    def __init__(self, n_words: int) -> None:
        self.merged = np.empty((0, n_words), np.uint64), np.empty(0)
        self.unmerged: list[tuple[Words, NDArray[np.float64]]] = []

    def add(self, keys: Words, weights: NDArray[np.float64] | None) -> None:
        """Take in more keys."""
        self.unmerged.append(grouped(keys, np.ones(len(keys)) if weights is None else weights))
        n_unmerged = sum(len(keys) for keys, _ in self.unmerged)
        # waiting for as many rows as are merged already keeps the work linear where every row is new
        if n_unmerged > max(UNMERGED_WORDS // keys.shape[1], len(self.merged[0])):
            self.result()

    def result(self) -> tuple[Words, NDArray[np.float64]]:
        """The distinct keys so far, with the sum of the weights of each."""
        if self.unmerged:
            keys, weights = zip(self.merged, *self.unmerged, strict=True)
            self.merged, self.unmerged = grouped(np.vstack(keys), np.concatenate(weights)), []
        return self.merged


class DistinctRows:
    """Adds up equal rows.

    Whole weights add up exactly in any order (up to 2^53), but fractions do not: of rows with such weights, those of
    equal weight are counted, and what they come to is added in the order of the weights once all rows are in.
    """

    def __init__(self, n_sensors: int) -> None:
        self.everything = all_observed(n_sensors)
        self.n_sensors = n_sensors
        self.histogram: NDArray[np.float64] | None = None
        n_words = self.everything.size
        self.complete = Groups(n_words)  # keys: the words of a row
        self.gappy = Groups(2 * n_words)  # and then the words of its observed cells
        self.fractions = Groups(2 * n_words + 1)  # and then the bits of its weight

    def add(self, chunk: Chunk) -> None:
        """Count the rows of one more chunk."""
        broken = None if chunk.weights is None else chunk.weights != np.floor(chunk.weights)
        if broken is None or not broken.any():
            self._add_whole(chunk)
        else:
            self._add_whole(_chosen(chunk, ~broken))
            self._add_fractions(_chosen(chunk, broken))

    def result(self) -> tuple[Words, Words, NDArray[np.float64]]:
        """Distinct rows of positive weight, their observed cells and their weights, sorted."""
        complete, counts = self.complete.result()
        parts = [(self._keys(complete), counts), self.gappy.result(), self._fraction_sums()]
        if self.histogram is not None:
            rows = np.flatnonzero(self.histogram)
            parts.insert(0, (self._keys(rows.astype(np.uint64)[:, None]), self.histogram[rows]))
        keys, weights = zip(*parts, strict=True)
        return self._sorted(*grouped(np.vstack(keys), np.concatenate(weights)))

    def _sorted(self, keys: Words, weights: NDArray[np.float64]) -> tuple[Words, Words, NDArray[np.float64]]:
        keys, weights = keys[weights > 0], weights[weights > 0]
        order = np.lexsort(keys.T)
        n_words = self.everything.size
        return keys[order, :n_words], keys[order, n_words:], weights[order]

    def _add_whole(self, chunk: Chunk) -> None:
        if chunk.observed is not None:
            self.gappy.add(self._keys(chunk.words, chunk.observed), chunk.weights)
            return
        histogram = self._histogram_for(len(chunk.words))
        if histogram is None:
            self.complete.add(chunk.words, chunk.weights)
        elif chunk.weights is None:
            count_into_histogram(chunk.words[:, 0], histogram)
        else:
            add_to_histogram(chunk.words[:, 0], chunk.weights, histogram)

    def _add_fractions(self, chunk: Chunk) -> None:
        assert chunk.weights is not None
        keys = self._keys(chunk.words, chunk.observed)
        self.fractions.add(np.hstack([keys, chunk.weights.view(np.uint64)[:, None]]), None)

    def _histogram_for(self, n_rows: int) -> NDArray[np.float64] | None:
        if self.histogram is None and self.n_sensors <= HISTOGRAM_SENSORS and 2**self.n_sensors <= 16 * n_rows:
            self.histogram = np.zeros(2**self.n_sensors)
        return self.histogram

    def _fraction_sums(self) -> tuple[Words, NDArray[np.float64]]:
        keys, counts = self.fractions.result()
        order = np.lexsort(keys.T)  # by the weights, whose bits stand last
        weights = np.ascontiguousarray(keys[order, -1]).view(np.float64)
        return grouped(np.ascontiguousarray(keys[order, :-1]), weights * counts[order])

    def _keys(self, words: Words, observed: Words | None = None) -> Words:
        seen = np.broadcast_to(self.everything, words.shape) if observed is None else observed
        return np.hstack([words, seen])


def _chosen(chunk: Chunk, rows: NDArray[np.bool_]) -> Chunk:
    assert chunk.weights is not None
    return Chunk(chunk.words[rows], None if chunk.observed is None else chunk.observed[rows], chunk.weights[rows])


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
