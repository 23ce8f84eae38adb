"""The columns of counted rows as bit sets, and which two of them depend on each other.

That is the paper's T1, with the exact p-value of its permutation test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import rows_a_chunk
from bica.kernels.bits import Words, all_observed, unpacked
from bica.kernels.columns import add_common_bits, block_histogram, fisher_tails, transpose_bits
from bica.progress import ALL_CORES, in_threads, n_threads

Square = NDArray[np.float64]  # (n_sensors, n_sensors)
WORDS_A_THREAD = 1 << 16  # pairs of words below which starting threads costs more than they save


class CountedRows(Protocol):
    """Distinct rows in memory, with their weights."""

    @property
    def patterns(self) -> Words:
        """The rows as bit sets, (n_patterns, n_words)."""

    @property
    def observed(self) -> Words | None:
        """The same for the cells that were observed; None: all were."""

    @property
    def weights(self) -> NDArray[np.float64]:
        """How often each row occurred."""

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBits:
    """One bit set per sensor: bit r is set where the sensor is on in distinct row r.

    >>> from bica.data.patterns import PatternCounts
    >>> columns = ColumnBits.of(PatternCounts.of([[0, 1], [1, 1]]))
    >>> columns.on[:, 0], columns.histogram(np.array([1]))
    (array([2, 3], dtype=uint64), array([0., 2.]))
    """

    on: Words  # (n_sensors, n_row_words)
    observed: Words | None  # the same for the cells that were observed; None: all were
    weights: NDArray[np.float64]  # (n_patterns,)

    @classmethod
    def of(cls, data: CountedRows, rows: NDArray[np.int64] | None = None) -> ColumnBits:
        """Turn the table round, or some of its distinct rows: time goes with the number of ones."""
        chosen = slice(None) if rows is None else rows
        observed = None if data.observed is None else transposed(data.observed[chosen], len(data.sensors))
        return cls(transposed(data.patterns[chosen], len(data.sensors)), observed, data.weights[chosen])

    def histogram(self, sensors: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weight of every pattern of a few sensors, all cells taken as observed: (2^n,)."""
        histogram = np.zeros(1 << sensors.size)
        block_histogram(self.on, sensors, self.weights, histogram)
        return histogram

    def complete_histogram(self, sensors: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same for the rows in which all of these sensors were observed."""
        if self.observed is None:
            return self.histogram(sensors)
        words = np.bitwise_and.reduce(self.observed[sensors], axis=0)
        complete = np.unpackbits(words.view(np.uint8), bitorder="little", count=self.weights.size).astype(bool)
        histogram = np.zeros(1 << sensors.size)
        block_histogram(self.on, sensors, np.where(complete, self.weights, 0.0), histogram)
        return histogram


def transposed(words: Words, n_sensors: int) -> Words:
    """The columns of rows that are bit sets."""
    columns = np.zeros((64 * words.shape[1], max(1, -(-len(words) // 64))), np.uint64)
    transpose_bits(np.ascontiguousarray(words), columns)
    return columns[:n_sensors]


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """How often each two sensors were on together, over the rows in which both were observed.

    >>> from bica.data.patterns import PatternCounts
    >>> pairs = PatternCounts.of([[1, 1, 0], [1, 0, 1]], sample_weight=[2, 3]).pair_counts()
    >>> pairs.both
    array([[5., 2., 3.],
           [2., 2., 0.],
           [3., 0., 3.]])
    """

    both: Square  # rows with both on; the ones of each sensor on the diagonal
    on: Square  # on[i, k]: rows with i on and k observed
    observed: Square  # rows with both observed

    @classmethod
    def of(cls, data: CountedRows) -> PairCounts:
        """Count them: m^2 / 2 times the distinct rows, 64 at a time, on all cores, where weights are whole."""
        n_sensors = len(data.sensors)
        shape = (n_sensors, n_sensors)
        both, on, observed = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for scale, rows in weight_planes(data.weights):
            columns = ColumnBits.of(data, rows)
            count_common(columns.on, columns.on, scale, both)
            if columns.observed is not None:
                count_common(columns.on, columns.observed, scale, on)
                count_common(columns.observed, columns.observed, scale, observed)
        both, observed = mirrored(both), mirrored(observed)
        for cells, known, weights in _fractions(data):
            both += cells.T @ (cells * weights)
            on += (cells * weights).T @ known
            observed += known.T @ (known * weights)
        if data.observed is not None:
            return cls(both, like_one_count(on), like_one_count(observed))
        return cls.complete(both, float(data.weights.sum()))

    @classmethod
    def complete(cls, both: Square, n_samples: float) -> PairCounts:
        """The counts of a table without missing cells."""
        return cls(both, np.broadcast_to(np.diag(both)[:, None], both.shape), np.broadcast_to(n_samples, both.shape))

    def thinned(self, stretch: NDArray[np.float64]) -> PairCounts:
        """The counts of so many times fewer rows, by sensor; of two sensors the larger number counts."""
        of_pair = np.maximum.outer(stretch, stretch)
        return PairCounts(self.both / of_pair, self.on / of_pair, self.observed / of_pair)

    def expected(self) -> Square:
        """How often both would be on if the sensors were unrelated."""
        return self.on * self.on.T / np.maximum(self.observed, 1.0)

    def together(self) -> Square:
        """The probability that two unrelated sensors are on together so often: symmetric, diagonal 1."""
        both, on, observed = self._whole()
        return fisher_tails(both, on, on.T.copy(), observed)

    def apart(self) -> Square:
        """The probability that two unrelated sensors are on together so seldom: symmetric, diagonal 1.

        It is the other tail of the same test: the first is on without the second so often.

        >>> from bica.data.patterns import PatternCounts
        >>> rows = np.repeat([[0, 0], [1, 0], [0, 1]], 10, axis=0)
        >>> float(PatternCounts.of(rows).pair_counts().apart()[0, 1].round(3))
        0.006
        """
        both, on, observed = self._whole()
        return fisher_tails(on - both, on, observed - on.T, observed)

    def shared_rate(self, false_alarm: NDArray[np.float64], miss: NDArray[np.float64]) -> Square:
        """The total rate, -log(1 - probability), of the sources that reach both sensors of a pair, noise taken out.

        Unbiased estimates of the probabilities of "both quiet" and "one quiet" are weighted sums over what noisy
        sensors show. NaN where chance makes one of them negative. On the diagonal stands the rate of all sources that
        reach a sensor.

        >>> from bica.data.patterns import PatternCounts
        >>> rows = np.repeat([[0, 0], [1, 1]], [60, 40], axis=0)
        >>> PatternCounts.of(rows).pair_counts().shared_rate(np.zeros(2), np.zeros(2)).round(3)
        array([[0.511, 0.511],
               [0.511, 0.511]])
        """
        quiet = (1.0 - miss) / (1.0 - false_alarm - miss)  # what a sensor that shows 0 counts
        on = -miss / (1.0 - false_alarm - miss)  # and one that shows 1
        only = self.on - self.both
        neither = self.observed - self.on - only.T
        with np.errstate(invalid="ignore", divide="ignore"):
            both_quiet = neither * np.outer(quiet, quiet) + only * np.outer(on, quiet) + only.T * np.outer(quiet, on)
            both_quiet = (both_quiet + self.both * np.outer(on, on)) / self.observed
            one_quiet = ((self.observed - self.on) * quiet[:, None] + self.on * on[:, None]) / self.observed
            shared: Square = np.log(both_quiet) - np.log(one_quiet) - np.log(one_quiet.T)
            np.fill_diagonal(shared, -np.log(np.diag(one_quiet)))
        return shared

    def _whole(self) -> tuple[Square, Square, Square]:
        """Weights need not be whole, but a permutation test needs counts."""
        return np.rint(self.both), np.rint(self.on), np.rint(self.observed)


def like_one_count(square: Square) -> Square:
    """The same numbers, laid out in memory as if one count stood for many: kernels are compiled for that alone."""
    n = len(square)
    wider = np.empty((n, n + 1))
    wider[:, :n] = square
    return np.broadcast_to(wider[:, :n], square.shape)


def weight_planes(weights: NDArray[np.float64]) -> Iterator[tuple[float, NDArray[np.int64]]]:
    """Sums of whole weights as sums of counts: powers of two, with the rows whose weight has that bit set.

    >>> [(scale, rows.tolist()) for scale, rows in weight_planes(np.array([1.0, 3.0, 0.5]))]
    [(1.0, [0, 1]), (2.0, [1])]
    """
    counts = np.where(_whole(weights), weights, 0.0).astype(np.int64)
    for bit in range(int(counts.max(initial=0)).bit_length()):
        rows = np.flatnonzero(counts >> bit & 1)
        if rows.size:
            yield float(1 << bit), rows


def _whole(weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    whole: NDArray[np.bool_] = (weights == np.floor(weights)) & (weights < 2.0**53)
    return whole


def _fractions(data: CountedRows) -> Iterator[tuple[Square, Square, Square]]:
    """The rows with other weights as numbers, chunk by chunk: cells, which of them were observed, weights."""
    places = np.flatnonzero(~_whole(data.weights))
    if not places.size:
        return
    n_sensors = len(data.sensors)
    step = rows_a_chunk(n_sensors)
    every = np.broadcast_to(all_observed(n_sensors), data.patterns.shape) if data.observed is None else data.observed
    for start in range(0, places.size, step):
        part = places[start : start + step]
        cells = unpacked(data.patterns[part], n_sensors).astype(float)
        yield cells, unpacked(every[part], n_sensors).astype(float), data.weights[part, None]


def count_common(left: Words, right: Words, scale: float, counts: Square) -> None:
    """Add ``scale`` for every row that two columns share, on all cores; the lower half where both tables are one."""
    if len(left) * right.size < WORDS_A_THREAD:
        add_common_bits(left, right, left is right, scale, np.arange(len(left)), counts)
        return
    step = n_threads(ALL_CORES)
    lines = [np.arange(first, len(left), step) for first in range(step)]  # the lower half is longest at its end
    list(in_threads(lambda part: add_common_bits(left, right, left is right, scale, part, counts), lines, ALL_CORES))


def mirrored(lower: Square) -> Square:
    """The symmetric matrix of which this is the lower half."""
    return np.tril(lower) + np.tril(lower, -1).T


class Paired(Protocol):
    """A table whose pairs of sensors can be counted."""

    @property
    def n_sensors(self) -> int:
        """How many columns the table has."""

    def ones(self) -> NDArray[np.float64]:
        """How often each sensor was on."""

    def pair_counts(self) -> PairCounts:
        """How often each two sensors were on together."""


def pair_p_values(data: Paired) -> Square:
    """The probability that two unrelated sensors are together on so often: (n_sensors, n_sensors), diagonal 1.

    OR mixtures only ever correlate positively, so the test is one-sided: the hypergeometric tail, which is what the
    share of random permutations converges to.

    >>> from bica.data.patterns import PatternCounts
    >>> rows = np.repeat([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]], 10, axis=0)
    >>> pair_p_values(PatternCounts.of(rows)).round(2)
    array([[1.  , 0.  , 0.62],
           [0.  , 1.  , 0.62],
           [0.62, 0.62, 1.  ]])
    """
    return data.pair_counts().together()


def dependent_pairs(p_values: Square, significance: float, *, corrected: bool = True) -> NDArray[np.bool_]:
    """Pairs whose p-value is below the level; ``corrected`` divides the level by the number of pairs (Bonferroni)."""
    n_pairs = max(1, len(p_values) * (len(p_values) - 1) // 2)
    return p_values <= (significance / n_pairs if corrected else significance)


ORDERED_BY_PAIRS = 4096  # sensors up to which all pairs are counted to put the columns in an order


def own_order(data: Paired) -> NDArray[np.int64]:
    """An order of the columns that does not depend on the one they have in the table.

    By how often each is on, then by how often it is on together with each of the others, sorted. What is still equal is
    nearly always a copy.

    >>> from bica.data.patterns import PatternCounts
    >>> own_order(PatternCounts.of([[1, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 1]])).tolist()
    [2, 1, 0]
    """
    ones = data.ones()
    if data.n_sensors > ORDERED_BY_PAIRS:
        return np.argsort(ones, kind="stable")
    together = np.sort(data.pair_counts().both, axis=1)
    return np.lexsort((*together.T, ones))
