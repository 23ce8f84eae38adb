"""What a learner of many sensors knows of its table: one protocol, and the table whose rows lie anywhere.

``PatternCounts`` has the distinct rows in memory. ``TableSums`` asks its partitions, one pass per question, and keeps
the answers, which are the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import GROUPED_SENSORS, Chunk, Table, checked_names
from bica.data.engines import DaskPartitions, partitions_on
from bica.data.pairs import PairCounts, like_one_count, mirrored
from bica.data.partitions import (
    BITS_OF_A_BLOCK,
    Partition,
    Partitions,
    Places,
    QuietCount,
    Shelf,
    Statistic,
    blocks_in,
    distinct_in,
    pairs_in,
    patterns_in,
    quiet_in,
    sample_in,
)
from bica.data.patterns import PatternCounts, check_total_weight
from bica.data.readers.frames import LazyTable
from bica.data.tables import FilesTable
from bica.errors import DataError
from bica.kernels.bits import n_words
from bica.progress import memory_left, tracked


class Observations(Protocol):
    """A table of binary rows with weights, by what can be counted in it."""

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    def n_sensors(self) -> int:
        """How many columns the table has."""

    @property
    def n_samples(self) -> float:
        """The number of rows, or the sum of their weights."""

    @property
    def n_distinct(self) -> int | None:
        """How many distinct rows there are, where that is known."""

    @property
    def has_gaps(self) -> bool:
        """Whether some cells were not observed."""

    def ones(self) -> NDArray[np.float64]:
        """How often each sensor was on: (n_sensors,)."""

    def times_observed(self) -> NDArray[np.float64]:
        """In how many rows each sensor was observed: (n_sensors,)."""

    def varying(self) -> NDArray[np.int64]:
        """The sensors that were sometimes on and sometimes off, by their places."""

    def project(self, sensors: Sequence[int]) -> Observations:
        """The table with these columns only, in this order."""

    def pair_counts(self) -> PairCounts:
        """How often each two sensors were on together."""

    def fetch(self, blocks: Sequence[Places]) -> None:
        """Count the patterns of these blocks in one pass, for the two questions that follow."""

    def histogram_of(self, sensors: Places) -> NDArray[np.float64]:
        """The weight of every pattern of a few sensors, in rows in which all of them were observed: (2^n,)."""

    def counts_of(self, sensors: Places) -> PatternCounts:
        """The distinct rows of a few sensors."""

    def quiet_rows(self) -> QuietCount:
        """How many rows have no sensor on, how many no missing cell, and how many neither."""

    def equal_columns(self) -> tuple[tuple[str, ...], ...]:
        """Groups of sensors whose columns are equal."""

    def counts(self) -> PatternCounts:
        """All distinct rows, in memory."""

    def rows_to_learn_from(self, rng: np.random.Generator) -> PatternCounts:
        """The distinct rows of the table or, where these are too many for memory, of a sample."""


CELLS_IN_MEMORY = 1 << 27  # of rows that wide sources are learned from; a larger table is sampled
BYTES_A_SAMPLED_CELL = 16  # what learning wide sources takes at most for each
FEWEST_CELLS = 1 << 20  # of a sample, however little memory is left
LEAST_SAMPLE, ONES_IN_A_SAMPLE = 100_000, 1000  # rows of a sample, and rows of it in which a sensor is on
LARGE = 1 << 25  # cells: a table of more of them, and of more than 64 columns, is learned from its partitions
CELLS_A_PASS = 1 << 22  # of histograms, per thread and beside the sum
DENSE_SENSORS = 12  # up to which a block has one number for each of its patterns


def observations_of(table: Table, *, large: int | None = None) -> PatternCounts | TableSums:
    """The distinct rows in memory or, of a wide table of more than ``large`` cells (None: 2^25), its partitions.

    >>> from bica.data.tables import open_table
    >>> rows = np.random.default_rng(0).random((100, 65)) < 0.1
    >>> type(observations_of(open_table(rows))).__name__, type(observations_of(open_table(rows), large=99)).__name__
    ('PatternCounts', 'TableSums')
    """
    large, n_sensors = LARGE if large is None else large, len(table.sensors)
    if n_sensors <= GROUPED_SENSORS:
        return PatternCounts.of(table)
    if isinstance(table, LazyTable) and (spread := partitions_on(table)) is not None:
        return _checked(TableSums.of(spread))
    if isinstance(table, FilesTable) and table.on_workers:
        return _checked(TableSums.of(DaskPartitions.of_files(table.paths, table.columns)))
    shelf, chunks, n_rows = Shelf(table.sensors), [], 0
    for piece in tracked(_pieces(table, large), "reading the table"):
        if isinstance(piece, Partition):
            shelf.add(piece)
            continue
        chunks.append(piece)
        n_rows += len(piece.words)
        if n_rows * n_sensors > large:
            for chunk in chunks:
                shelf.add(Partition.of_chunk(chunk, n_sensors))
            chunks, n_rows = [], large  # whatever follows goes there, too
    if chunks or not shelf.places:
        return _checked(PatternCounts.of_chunks(chunks, table.sensors))
    return _checked(TableSums.of(shelf))


def _pieces(table: Table, large: int) -> Iterator[Chunk | Partition]:
    """The rows column by column where the reader has them so and knows that there are many; else row by row."""
    partitions = getattr(table, "partitions", None)
    found = None if partitions is None else partitions(large)
    return table.distinct() if found is None else found


def _checked(data: PatternCounts | TableSums) -> PatternCounts | TableSums:
    if not data.n_samples > 0:
        raise DataError("the table has no rows, or their weights are all zero, so there is nothing to learn from")
    return data


@dataclass(slots=True)
class _Answers:
    """What the partitions have answered so far, by the places of the columns."""

    pairs: PairCounts
    n_samples: float
    n_rows: Places  # of each partition
    blocks: dict[tuple[int, ...], tuple[NDArray[Any], NDArray[Any] | None, NDArray[np.float64]]] = field(
        default_factory=dict
    )  # patterns, observed cells (None: all) and weights
    quiet: dict[bytes, QuietCount] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class TableSums:
    """A table by the sums over its partitions, or some columns of it.

    >>> shelf = Shelf.of([Partition.of_cells(np.array([[0, 1, 1], [0, 0, 1]], np.uint8))], ("a", "b"))
    >>> data = TableSums.of(shelf)
    >>> data.ones(), data.counts_of(np.array([0])).weights, data.quiet_rows().quiet
    (array([2., 1.]), array([1., 2.]), 1.0)
    """

    partitions: Partitions
    sensors: tuple[str, ...]
    places: Places  # of these sensors in the partitions
    answers: _Answers

    @classmethod
    def of(cls, partitions: Partitions) -> TableSums:
        """Count rows, ones and pairs, in one pass."""
        sums = partitions.summed(pairs_in)
        check_total_weight(sums.n_samples)
        both = mirrored(sums.both)
        pairs = PairCounts.complete(both, sums.n_samples)
        if sums.on is not None and sums.observed is not None:
            pairs = PairCounts(both, sums.on, mirrored(sums.observed))
        answers = _Answers(pairs, sums.n_samples, sums.n_rows)
        return cls(partitions, partitions.sensors, np.arange(len(partitions.sensors)), answers)

    @property
    def n_sensors(self) -> int:
        """How many columns the table has."""
        return len(self.sensors)

    @property
    def n_samples(self) -> float:
        """The number of rows, or the sum of their weights."""
        return self.answers.n_samples

    @property
    def n_distinct(self) -> int | None:
        """Nobody counts the distinct rows of a table that is not in memory."""
        return None

    @property
    def has_gaps(self) -> bool:
        """Whether some cells of these columns were not observed."""
        return bool((self.times_observed() < self.n_samples).any())

    def ones(self) -> NDArray[np.float64]:
        """How often each sensor was on: (n_sensors,)."""
        return np.diag(self.answers.pairs.both)[self.places]

    def times_observed(self) -> NDArray[np.float64]:
        """In how many rows each sensor was observed: (n_sensors,)."""
        return np.diag(self.answers.pairs.observed)[self.places]

    def varying(self) -> NDArray[np.int64]:
        """The sensors that were sometimes on and sometimes off, by their places."""
        ones = self.ones()
        return np.flatnonzero((ones > 0) & (ones < self.times_observed()))

    def project(self, sensors: Sequence[int]) -> TableSums:
        """The table with these columns only, in this order; all views of a table share its answers."""
        chosen = np.asarray(sensors, np.int64)
        names = checked_names([self.sensors[place] for place in chosen.tolist()])
        return TableSums(self.partitions, names, self.places[chosen], self.answers)

    def pair_counts(self) -> PairCounts:
        """How often each two sensors were on together."""
        pairs, chosen = self.answers.pairs, np.ix_(self.places, self.places)
        if not self.has_gaps:
            return PairCounts.complete(pairs.both[chosen], self.n_samples)
        return PairCounts(pairs.both[chosen], like_one_count(pairs.on[chosen]), like_one_count(pairs.observed[chosen]))

    def fetch(self, blocks: Sequence[Places]) -> None:
        """Count the patterns of these blocks, unless that was done before: in one pass, or in a few."""
        every = (tuple(self.places[block].tolist()) for block in blocks)
        wanted = {key for key in every if key not in self.answers.blocks}  # a difference of sets reads all answers
        dense = not self.has_gaps
        large = sorted(key for key in wanted if dense and len(key) <= DENSE_SENSORS)
        for group in _groups(large):
            self._count_dense(group)
        for group in _groups(sorted(key for key in wanted if DENSE_SENSORS < len(key) <= BITS_OF_A_BLOCK or not dense)):
            self._count_sparse(group)

    def _count_dense(self, keys: list[tuple[int, ...]]) -> None:
        flat, begin = self.partitions.summed(blocks_in, [np.array(key, np.int64) for key in keys]), 0
        for key in keys:
            histogram = flat[begin : begin + (1 << len(key))]
            cells = np.flatnonzero(histogram)
            self.answers.blocks[key] = cells.astype(np.uint64), None, histogram[cells]
            begin += 1 << len(key)

    def _count_sparse(self, keys: list[tuple[int, ...]]) -> None:
        tally = self.partitions.summed(patterns_in, [np.array(key, np.int64) for key in keys])
        low, words = np.uint64((1 << BITS_OF_A_BLOCK) - 1), tally.keys[:, 0]
        order = np.argsort(words)
        words, weights = words[order], tally.weights[order]
        pattern, known = words & low, words >> np.uint64(BITS_OF_A_BLOCK) & low
        ends = np.searchsorted(words >> np.uint64(2 * BITS_OF_A_BLOCK), np.arange(len(keys) + 1))
        for number, key in enumerate(keys):
            part = slice(ends[number], ends[number + 1])
            self.answers.blocks[key] = pattern[part], known[part], weights[part]

    def histogram_of(self, sensors: Places) -> NDArray[np.float64]:
        """The weight of every pattern of a few sensors, in rows in which all of them were observed: (2^n,)."""
        pattern, known, weights = self._block(sensors)
        complete = np.ones(weights.size, dtype=bool) if known is None else known == np.uint64((1 << sensors.size) - 1)
        histogram = np.zeros(1 << sensors.size)
        histogram[pattern[complete].astype(np.int64)] = weights[complete]
        return histogram

    def counts_of(self, sensors: Places) -> PatternCounts:
        """The distinct rows of a few sensors."""
        names = tuple(self.sensors[place] for place in sensors.tolist())
        if sensors.size > BITS_OF_A_BLOCK:
            return self.project(sensors.tolist()).counts()
        pattern, known, weights = self._block(sensors)
        observed = None if known is None else known[:, None]
        return PatternCounts.of_chunks([Chunk(pattern[:, None], observed, weights)], names)

    def _block(self, sensors: Places) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[np.float64]]:
        self.fetch([sensors])
        return self.answers.blocks[tuple(self.places[sensors].tolist())]

    def quiet_rows(self) -> QuietCount:
        """How many rows have no sensor on, how many no missing cell, and how many neither."""
        key = np.sort(self.places).tobytes()
        if key not in self.answers.quiet:
            found = self.partitions.summed(quiet_in, np.sort(self.places))
            self.answers.quiet[key] = QuietCount(*found.tolist())
        return self.answers.quiet[key]

    def equal_columns(self) -> tuple[tuple[str, ...], ...]:
        """Groups of sensors whose columns are equal: on as often as they are on together, and so observed."""
        pairs = self.pair_counts()
        ones, n_observed = np.diag(pairs.both), np.diag(pairs.observed)
        equal = (pairs.both == ones) & (pairs.both == ones[:, None])
        equal &= (pairs.observed == n_observed) & (pairs.observed == n_observed[:, None])
        groups: dict[int, list[str]] = {}
        for place, name in enumerate(self.sensors):
            groups.setdefault(int(np.argmax(equal[place])), []).append(name)
        return tuple(tuple(names) for names in groups.values() if len(names) > 1)

    def sample(self, n_samples: float, rng: np.random.Generator) -> PatternCounts:
        """About so many rows, drawn without replacement by their numbers in the table."""
        first_rows = np.concatenate([[0], np.cumsum(self.answers.n_rows)]).astype(np.int64)
        share, seed = min(1.0, n_samples / self.n_samples), int(rng.integers(2**31))
        drawn = self.partitions.summed(sample_in, first_rows, share, seed)
        whole = PatternCounts.of_chunks([Chunk(drawn.rows, drawn.observed, drawn.weights)], self.partitions.sensors)
        return whole.project(self.places.tolist())

    def rows_to_learn_from(self, rng: np.random.Generator) -> PatternCounts:
        """The distinct rows of the table, or of a sample in which every sensor is on often enough, up to 2^27 cells.

        Sources that are too rare for the sample are found in a pass over all rows.
        """
        rarest = float(np.min(self.ones()[self.varying()], initial=self.n_samples)) / self.n_samples
        wanted = max(LEAST_SAMPLE, int(ONES_IN_A_SAMPLE / rarest))
        n_cells = min(CELLS_IN_MEMORY, max(FEWEST_CELLS, memory_left() / BYTES_A_SAMPLED_CELL))
        n_rows = min(int(n_cells) // self.n_sensors, wanted)
        return self.counts() if self.answers.n_rows.sum() <= n_rows else self.sample(n_rows, rng)

    def everywhere(self, statistic: Callable[..., Statistic], *given: Any) -> Statistic:
        """The sum over all partitions of ``statistic(partition, places, *given)``; its columns are at ``places``."""
        return self.partitions.summed(statistic, self.places, *given)

    def counts(self) -> PatternCounts:
        """All distinct rows, in memory."""
        tally = self.partitions.summed(distinct_in, self.places)
        n = n_words(self.n_sensors)
        return PatternCounts.of_chunks([Chunk(tally.keys[:, :n], tally.keys[:, n:], tally.weights)], self.sensors)


def _groups(keys: list[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Blocks whose histograms fit into memory together."""
    group: list[tuple[int, ...]] = []
    n_cells = 0
    for key in keys:
        if group and n_cells + (1 << len(key)) > CELLS_A_PASS:
            yield group
            group, n_cells = [], 0
        group.append(key)
        n_cells += 1 << len(key)
    if group:
        yield group
