"""The data as a value: distinct rows with how often each occurred, the same for any order and chunking of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import MISSING, WEIGHT_LIMIT, Binarize, Chunk, Reading, checked_names, rows_a_chunk
from bica.data.pairs import ColumnBits, PairCounts
from bica.data.partitions import QuietCount
from bica.data.tables import open_table
from bica.data.writers import write_counts
from bica.errors import DataError, LimitError
from bica.kernels.bits import (
    Words,
    add_to_histogram,
    all_observed,
    choose_bits,
    count_into_histogram,
    group_equal,
    n_words,
    unpacked,
)
from bica.kernels.columns import add_bit_weights
from bica.progress import tracked

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
            self._add_whole(_chosen_rows(chunk, ~broken))
            self._add_fractions(_chosen_rows(chunk, broken))

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
        known = np.broadcast_to(self.everything, words.shape) if observed is None else observed
        return np.hstack([words, known])


def _chosen_rows(chunk: Chunk, rows: NDArray[np.bool_]) -> Chunk:
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


def check_total_weight(total: float) -> None:
    """Refuse weights that add up to more than can be counted one by one."""
    if not total < WEIGHT_LIMIT:
        raise DataError(
            f"the weights add up to {total:.6g}, beyond what can be counted (2^53); divide all by one number"
        )


HISTOGRAM_LIMIT = 24


@dataclass(frozen=True, slots=True, eq=False)
class PatternCounts:
    """Distinct rows of a binary table, as bit sets, with how often each occurred.

    >>> data = PatternCounts.of([[0, 1], [1, 1], [0, 1]])
    >>> data.rows(), data.weights
    (array([[False,  True],
           [ True,  True]]), array([2., 1.]))
    """

    patterns: Words  # (n_patterns, n_words); bit i of the words is sensor i, 0 where it was not observed
    weights: NDArray[np.float64]  # (n_patterns,), how often each occurred
    sensors: tuple[str, ...]
    observed: Words | None = None  # like patterns, the cells that were observed; None: all were
    _varying: NDArray[np.int64] | None = field(default=None, init=False, repr=False)  # found when first asked for
    _columns: ColumnBits | None = field(default=None, init=False, repr=False)  # the same

    @classmethod
    def of(
        cls,
        x: Any,
        *,
        sensors: Sequence[str] | None = None,
        sample_weight: Any = None,
        binarize: Binarize = None,
        **reading: Unpack[Reading],
    ) -> PatternCounts:
        """Count the rows of an array, a data frame, a sparse matrix, a DuckDB relation or a file.

        A cell is 0, 1 or missing (NaN, null, masked, empty). ``sensors`` names the columns; ``binarize`` makes 1 of
        numbers above a threshold, in all columns or, as a mapping, in some; ``sample_weight`` is one weight per row, or
        the name of the column of a frame, a relation or a file that holds them. ``drop``, ``columns``, ``id`` and
        ``time`` say which columns are no sensors, as in ``open_table``. Files larger than memory are fine: memory goes
        with the number of distinct rows. Time is linear in the number of cells.

        >>> PatternCounts.of([[0.2, 7], [0.9, 3]], binarize=0.5, sensors=["a", "b"]).rows()
        array([[False,  True],
               [ True,  True]])
        """
        if isinstance(x, PatternCounts):
            if not (sensors is None and sample_weight is None and binarize is None and not reading):
                raise DataError("these rows are counted already: names, weights and thresholds come before that")
            return x
        table = open_table(x, sensors=sensors, sample_weight=sample_weight, binarize=binarize, **reading)
        return cls.of_distinct(table.distinct(), table.sensors)

    @classmethod
    def of_distinct(cls, chunks: Iterable[Chunk], sensors: tuple[str, ...]) -> PatternCounts:
        """Count the rows that a table gives for counting (``Table.distinct``); there must be at least one."""
        counts = cls.of_chunks(tracked(chunks, "reading the table"), sensors)
        if not counts.weights.size:
            raise DataError("the table has no rows, or their weights are all zero, so there is nothing to learn from")
        return counts

    @classmethod
    def of_chunks(cls, chunks: Iterable[Chunk], sensors: tuple[str, ...]) -> PatternCounts:
        """Count the rows of these chunks of one table."""
        patterns, observed, weights = count_rows(chunks, len(sensors))
        check_total_weight(float(weights.sum()))
        complete = bool((observed == all_observed(len(sensors))).all())
        return cls(patterns, weights, sensors, None if complete else observed)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the counts as a Parquet file, which every reader here knows; counts of batches merge with ``+``.

        >>> from tempfile import TemporaryDirectory
        >>> data = PatternCounts.of([[0, 1], [1, 1], [0, 1]])
        >>> with TemporaryDirectory() as folder:
        ...     data.save(f"{folder}/counts.parquet")
        ...     PatternCounts.of(f"{folder}/counts.parquet") == data
        True
        """
        write_counts(path, self.sensors, self._pieces(), overwrite=overwrite)

    def _pieces(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.float64]]]:
        """The cells of some distinct rows at a time, and their weights."""
        step = rows_a_chunk(self.n_sensors)
        for first in range(0, self.weights.size, step):
            part = slice(first, first + step)
            cells = unpacked(self.patterns[part], self.n_sensors).view(np.uint8)
            if self.observed is not None:
                cells = np.where(unpacked(self.observed[part], self.n_sensors), cells, np.uint8(MISSING))
            yield cells, self.weights[part]

    @property
    def n_sensors(self) -> int:
        """How many columns the table has."""
        return len(self.sensors)

    @property
    def n_samples(self) -> float:
        """The number of rows, or the sum of their weights."""
        return float(self.weights.sum())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PatternCounts):
            return NotImplemented
        return (
            self.sensors == other.sensors
            and np.array_equal(self.patterns, other.patterns)
            and np.array_equal(self.weights, other.weights)
            and np.array_equal(self.observed_cells(), other.observed_cells())
        )

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: PatternCounts) -> PatternCounts:
        """The counts of both tables together; they must have the same columns."""
        if not isinstance(other, PatternCounts):
            return NotImplemented
        if self.sensors != other.sensors:
            raise DataError(
                f"tables with different columns cannot be added: {_first_difference(self.sensors, other.sensors)}"
            )
        return PatternCounts.of_chunks([self._chunk(), other._chunk()], self.sensors)

    def _chunk(self) -> Chunk:
        return Chunk(self.patterns, self.observed, self.weights)

    def observed_cells(self) -> Words:
        """Which cells of each pattern were observed, as bit sets."""
        if self.observed is not None:
            return self.observed
        return np.broadcast_to(all_observed(self.n_sensors), self.patterns.shape)

    def rows(self) -> NDArray[np.bool_]:
        """The distinct rows, unpacked: (n_patterns, n_sensors); False where a cell was not observed."""
        return unpacked(self.patterns, self.n_sensors)

    def ones(self) -> NDArray[np.float64]:
        """How often each sensor was on: (n_sensors,)."""
        return self._totals(self.patterns)

    def times_observed(self) -> NDArray[np.float64]:
        """In how many rows each sensor was observed: (n_sensors,)."""
        if self.observed is None:
            return np.full(self.n_sensors, self.n_samples)
        return self._totals(self.observed)

    def varying(self) -> NDArray[np.int64]:
        """The sensors that were sometimes on and sometimes off, by their places."""
        if self._varying is None:
            ones = self.ones()
            object.__setattr__(self, "_varying", np.flatnonzero((ones > 0) & (ones < self.times_observed())))
        assert self._varying is not None
        return self._varying

    def _totals(self, words: Words) -> NDArray[np.float64]:
        totals = np.zeros(64 * words.shape[1])
        add_bit_weights(words, self.weights, totals)
        return totals[: self.n_sensors]

    def project(self, sensors: Sequence[str] | Sequence[int]) -> PatternCounts:
        """The table with these columns only, by name or by number, in this order; rows that become equal are added.

        >>> PatternCounts.of([[0, 1, 1], [1, 1, 0]], sensors=["a", "b", "c"]).project(["b"]).weights
        array([2.])
        """
        columns = np.array([self._place(sensor) for sensor in sensors], np.int64)
        if np.array_equal(columns, np.arange(self.n_sensors)):
            return self
        names = checked_names([self.sensors[column] for column in columns]) if columns.size else ()
        observed = None if self.observed is None else _chosen_columns(self.observed, columns)
        return PatternCounts.of_chunks([Chunk(_chosen_columns(self.patterns, columns), observed, self.weights)], names)

    def _place(self, sensor: str | int) -> int:
        if isinstance(sensor, str):
            if sensor not in self.sensors:
                raise DataError(f"there is no sensor {sensor!r} among the {self.n_sensors} of this table")
            return self.sensors.index(sensor)
        if not 0 <= sensor < self.n_sensors:
            raise DataError(f"there is no sensor number {sensor}; this table has {self.n_sensors}, counted from 0")
        return int(sensor)

    def complete(self, method: str) -> PatternCounts:
        """These counts if no cell is missing; otherwise one sentence on what ``method`` needs."""
        if self.observed is None:
            return self
        gaps = self.weights[(self.observed != all_observed(self.n_sensors)).any(axis=1)].sum()
        raise DataError(
            f"{gaps:g} of {self.n_samples:g} rows have missing cells, which {method} cannot use; "
            "drop those rows or the sensors with gaps"
        )

    @property
    def has_gaps(self) -> bool:
        """Whether some cells were not observed."""
        return self.observed is not None

    @property
    def n_distinct(self) -> int:
        """How many distinct rows there are."""
        return len(self.weights)

    def counts(self) -> PatternCounts:
        """The distinct rows in memory, as they are."""
        return self

    def rows_to_learn_from(self, _rng: np.random.Generator) -> PatternCounts:
        """All rows, since they are in memory already."""
        return self

    def pair_counts(self) -> PairCounts:
        """How often each two sensors were on together; m^2 / 2 times the distinct rows, 64 at a time."""
        return PairCounts.of(self)

    def fetch(self, _blocks: Sequence[NDArray[np.int64]]) -> None:
        """Make ready for histograms of blocks: the columns as bit sets."""
        if self._columns is None:
            object.__setattr__(self, "_columns", ColumnBits.of(self))

    def histogram_of(self, sensors: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weight of every pattern of a few sensors in the rows in which all of them were observed: (2^n,).

        >>> PatternCounts.of([[1, 1, 0], [1, 0, np.nan], [1, 1, 1]]).histogram_of(np.array([0, 2]))
        array([0., 1., 0., 1.])
        """
        self.fetch([sensors])
        assert self._columns is not None
        return self._columns.complete_histogram(sensors)

    def counts_of(self, sensors: NDArray[np.int64]) -> PatternCounts:
        """The distinct rows of a few sensors, by their places."""
        return self.project(sensors.tolist())

    def quiet_rows(self) -> QuietCount:
        """How many rows have no sensor on, how many no missing cell, and how many neither."""
        quiet, complete = ~self.patterns.any(axis=1), np.ones(self.n_distinct, dtype=bool)
        if self.observed is not None:
            complete = (self.observed == all_observed(self.n_sensors)).all(axis=1)
        chosen = (quiet, complete, quiet & complete)
        return QuietCount(*(float(self.weights[rows].sum()) for rows in chosen))

    def equal_columns(self) -> tuple[tuple[str, ...], ...]:
        """Groups of sensors that were observed in the same rows and showed the same in them."""
        columns = ColumnBits.of(self) if self._columns is None else self._columns
        equal: dict[tuple[bytes, ...], list[str]] = {}
        for place, name in enumerate(self.sensors):
            parts = (columns.on,) if columns.observed is None else (columns.on, columns.observed)
            equal.setdefault(tuple(part[place].tobytes() for part in parts), []).append(name)
        return tuple(tuple(names) for names in equal.values() if len(names) > 1)

    def histogram(self) -> NDArray[np.float64]:
        """The weight of every possible pattern, indexed by bit set: length 2^n_sensors.

        >>> PatternCounts.of([[0, 1], [1, 1], [0, 1]]).histogram()
        array([0., 0., 2., 1.])
        """
        if self.n_sensors > HISTOGRAM_LIMIT:
            raise LimitError(
                f"a full histogram of {self.n_sensors} sensors needs 2^{self.n_sensors} cells; "
                f"the limit is {HISTOGRAM_LIMIT} sensors"
            )
        table = np.zeros(2**self.n_sensors)
        add_to_histogram(self.complete("a full histogram").patterns[:, 0], self.weights, table)
        return table


def _chosen_columns(words: Words, columns: NDArray[np.int64]) -> Words:
    chosen = np.zeros((len(words), n_words(columns.size)), np.uint64)
    choose_bits(words, columns, chosen)
    return chosen


def _first_difference(left: tuple[str, ...], right: tuple[str, ...]) -> str:
    if len(left) != len(right):
        return f"one has {len(left)} columns, the other {len(right)}"
    i = next(i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
    return f"column {i} is {left[i]!r} in one and {right[i]!r} in the other"
