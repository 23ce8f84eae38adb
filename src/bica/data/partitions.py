"""A table as partitions, and what is summed over them: a statistic is a value of one partition, and values add up.

Every statistic is a function of a partition alone, so any engine can call it anywhere. Sums of whole weights are exact
in any order; neither the cut into partitions nor the number of workers changes a byte of them.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import Chunk
from bica.data.pairs import Square, transposed, weight_planes
from bica.errors import OutputError
from bica.kernels.bits import Words, all_observed, group_equal
from bica.kernels.columns import add_common_bits, block_histogram, count_blocks
from bica.output import begin_passing, end_passing
from bica.progress import ALL_CORES, in_threads, memory_left

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Some rows of a table, column by column: bit r of a column is row r."""

    on: Words  # (n_sensors, n_row_words)
    n_rows: int
    observed: Words | None = None  # the same for the cells that were observed; None: all were
    weights: Numbers | None = None  # (n_rows,); None: every row counts once
    number: int = 0  # among the partitions of the table

    @classmethod
    def of_chunk(cls, chunk: Chunk, n_sensors: int) -> Partition:
        """Rows turned round: time goes with the number of ones."""
        observed = None if chunk.observed is None else transposed(chunk.observed, n_sensors)
        return cls(transposed(chunk.words, n_sensors), len(chunk.words), observed, chunk.weights)

    @classmethod
    def of_cells(cls, cells: NDArray[np.uint8], weights: Numbers | None = None) -> Partition:
        """Columns of cells, (n_sensors, n_rows), each 0, 1 or 2 for missing.

        >>> Partition.of_cells(np.array([[0, 1, 1], [2, 0, 1]], np.uint8)).on[:, 0]
        array([6, 4], dtype=uint64)
        """
        complete = cells.max(initial=0) < 2
        on = _packed(cells if complete else cells == 1)
        return cls(on, cells.shape[1], None if complete else _packed(cells < 2), weights)

    def rows(self, chosen: NDArray[np.int64] | None = None) -> Chunk:
        """The rows, or some of them, as they stand in a table."""
        n_sensors = len(self.on)
        words = transposed(self.on, 64 * self.on.shape[1])[: self.n_rows]
        observed = None if self.observed is None else transposed(self.observed, 64 * self.on.shape[1])[: self.n_rows]
        if not n_sensors:
            words = np.zeros((self.n_rows, 1), np.uint64)
        pick = slice(None) if chosen is None else chosen
        weights = None if self.weights is None else self.weights[pick]
        return Chunk(words[pick], None if observed is None else observed[pick], weights)

    def first(self, n_rows: int) -> Partition:
        """Its first rows, at least so many if there are: whole words."""
        n_words = max(1, -(-n_rows // 64))
        if n_words >= self.on.shape[1]:
            return self
        observed = None if self.observed is None else self.observed[:, :n_words].copy()
        weights = None if self.weights is None else self.weights[: 64 * n_words]
        return Partition(self.on[:, :n_words].copy(), 64 * n_words, observed, weights, self.number)

    def row_weights(self) -> Numbers:
        """How much each row counts."""
        return np.ones(self.n_rows) if self.weights is None else self.weights


def _packed(bits: NDArray[Any]) -> Words:
    """Columns of bits, (n_sensors, n_rows), as bit sets."""
    n_sensors, n_rows = bits.shape
    on = np.zeros((n_sensors, max(1, -(-n_rows // 64))), np.uint64)
    packed = np.packbits(bits.view(np.uint8), axis=1, bitorder="little")
    on.view(np.uint8)[:, : packed.shape[1]] = packed
    return on


BYTES_A_PARTITION = 1 << 22  # of bits: large enough to hide what a pass costs beside its rows


def joined(parts: Iterable[Partition]) -> Iterator[Partition]:
    """The same rows in fewer partitions; only a partition of whole words can be followed by another.

    >>> parts = [Partition.of_cells(np.ones((2, n), np.uint8)) for n in (64, 64, 3, 64)]
    >>> [part.n_rows for part in joined(parts)]
    [131, 64]
    """
    waiting: list[Partition] = []
    for part in parts:
        waiting.append(part)
        if part.n_rows % 64 or sum(one.on.nbytes for one in waiting) >= BYTES_A_PARTITION:
            yield one_of(waiting)
            waiting = []
    if waiting:
        yield one_of(waiting)


def one_of(parts: Sequence[Partition]) -> Partition:
    """All rows as one partition; each but the last must have whole words."""
    if len(parts) == 1:
        return parts[0]
    whole = [part for part in parts if part.n_rows] or parts[:1]
    n_rows = sum(part.n_rows for part in whole)
    observed = weights = None
    if any(part.observed is not None for part in whole):
        observed = np.hstack([_known(part) for part in whole])
    if any(part.weights is not None for part in whole):
        weights = np.concatenate([part.row_weights() for part in whole])
    return Partition(np.hstack([part.on for part in whole]), n_rows, observed, weights)


def _known(part: Partition) -> Words:
    return _packed(np.ones((len(part.on), part.n_rows), np.uint8)) if part.observed is None else part.observed


class Partitions(Protocol):
    """The rows of a table, cut into partitions that lie anywhere."""

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""

    def summed(self, statistic: Callable[..., Statistic], *given: Any) -> Statistic:
        """The sum over all partitions of ``statistic(partition, *given)``; at least one partition is there."""


Statistic = TypeVar("Statistic")


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """How often sensors were on, and on together."""

    n_rows: Places  # of each partition, by its number
    n_samples: float
    both: Square  # the lower half: rows with both on
    on: Square | None  # on[i, k]: rows with i on and k observed; None: all cells were observed
    observed: Square | None  # the lower half: rows with both observed

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(
            _one_after_the_other(self.n_rows, other.n_rows),
            self.n_samples + other.n_samples,
            self.both + other.both,
            *self._gaps_with(other),
        )

    def _gaps_with(self, other: PairSums) -> tuple[Square | None, Square | None]:
        """Where only one of both has missing cells, all of the other's were observed."""
        if self.on is None and other.on is None:
            return None, None
        (on, observed), (more, also) = self.with_gaps(), other.with_gaps()
        return on + more, observed + also

    def with_gaps(self) -> tuple[Square, Square]:
        """Rows with i on and k observed, and the lower half of those with both observed."""
        if self.on is not None and self.observed is not None:
            return self.on, self.observed
        return np.repeat(np.diag(self.both)[:, None], len(self.both), axis=1), np.full_like(self.both, self.n_samples)


def _one_after_the_other(left: Places, right: Places) -> Places:
    """Numbers by the number of a partition; each partition is in one of the two."""
    total = np.zeros(max(left.size, right.size), np.int64)
    total[: left.size] += left
    total[: right.size] += right
    return total


def pairs_in(part: Partition) -> PairSums:
    """The pairs of one partition: m^2 / 2 times its rows, 64 at a time."""
    n_sensors = len(part.on)
    lines, gaps = np.arange(n_sensors), part.observed is not None
    both = np.zeros((n_sensors, n_sensors))
    on, observed = (np.zeros_like(both), np.zeros_like(both)) if gaps else (None, None)
    for scale, columns, known in _planes(part):
        add_common_bits(columns, columns, True, scale, lines, both)
        if known is not None and on is not None and observed is not None:
            add_common_bits(columns, known, False, scale, lines, on)
            add_common_bits(known, known, True, scale, lines, observed)
    for cells, there, weights in _fractions(part):
        both += np.tril((cells * weights) @ cells.T)
        if on is not None and observed is not None:
            on += (cells * weights) @ there.T
            observed += np.tril((there * weights) @ there.T)
    n_rows = np.zeros(part.number + 1, np.int64)
    n_rows[-1] = part.n_rows
    n_samples = float(part.n_rows) if part.weights is None else float(part.weights.sum())
    return PairSums(n_rows, n_samples, both, on, observed)


def _planes(part: Partition) -> Iterator[tuple[float, Words, Words | None]]:
    """Sums of whole weights as sums of counts: powers of two, with the rows whose weight has that bit set."""
    if part.weights is None:
        yield 1.0, part.on, part.observed
        return
    for scale, rows in weight_planes(part.weights):
        chosen = np.zeros((1, part.n_rows), np.uint8)
        chosen[0, rows] = 1
        mask = _packed(chosen)
        yield scale, part.on & mask, None if part.observed is None else part.observed & mask


def _fractions(part: Partition) -> Iterator[tuple[Square, Square, Numbers]]:
    """The rows with other weights as numbers: cells, which of them were observed, weights."""
    if part.weights is None:
        return
    rows = np.flatnonzero(part.weights != np.floor(part.weights))
    if rows.size:
        cells = _bits(part.on, part.n_rows)[:, rows].astype(float)
        known = np.ones_like(cells) if part.observed is None else _bits(part.observed, part.n_rows)[:, rows]
        yield cells, known.astype(float), part.weights[rows]


def _bits(columns: Words, n_rows: int) -> NDArray[np.uint8]:
    """Columns of 0 and 1, (n_columns, n_rows)."""
    return np.unpackbits(np.ascontiguousarray(columns).view(np.uint8), axis=1, bitorder="little", count=n_rows)


def blocks_in(part: Partition, blocks: Sequence[Places]) -> Numbers:
    """The patterns of many blocks in rows without missing cells, one histogram after the other."""
    sizes = np.array([block.size for block in blocks], np.int64)
    cells = np.concatenate([[0], np.cumsum(1 << sizes)])
    if part.weights is None:
        starts, counts = np.concatenate([[0], np.cumsum(sizes)]), np.zeros(cells[-1], np.int64)
        count_blocks(part.on, part.n_rows, np.concatenate(blocks), starts, cells[:-1], counts)
        return counts.astype(float)
    histograms = np.zeros(cells[-1])
    for block, begin, end in zip(blocks, cells[:-1], cells[1:], strict=True):
        block_histogram(part.on, block, part.weights, histograms[begin:end])
    return histograms


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Distinct keys, each a row of words, with the sum of their weights."""

    keys: Words  # (n_keys, n_words), in any order
    weights: Numbers

    def __add__(self, other: Tally) -> Tally:
        return Tally.of(np.vstack([self.keys, other.keys]), np.concatenate([self.weights, other.weights]))

    @classmethod
    def of(cls, keys: Words, weights: Numbers) -> Tally:
        """Equal keys made one."""
        first, group = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        n_groups = group_equal(np.ascontiguousarray(keys), first, group)
        return cls(keys[first[:n_groups]], np.bincount(group, weights, n_groups).astype(float))


BITS_OF_A_BLOCK = 20  # of a pattern, and as many of the cells that were observed; the number of the block is above


def patterns_in(part: Partition, blocks: Sequence[Places]) -> Tally:
    """The distinct rows of many blocks of few columns: block number, observed cells and pattern as one word."""
    weights, found = part.row_weights(), []
    for number, block in enumerate(blocks):
        pattern = _words_of(part.on[block], part.n_rows)
        known = np.full(part.n_rows, (1 << block.size) - 1, np.uint64)
        if part.observed is not None:
            known = _words_of(part.observed[block], part.n_rows)
        key = np.uint64(number) << np.uint64(2 * BITS_OF_A_BLOCK) | known << np.uint64(BITS_OF_A_BLOCK) | pattern
        found.append(Tally.of(key[:, None], weights))
    return Tally(np.vstack([one.keys for one in found]), np.concatenate([one.weights for one in found]))


def _words_of(columns: Words, n_rows: int) -> NDArray[np.uint64]:
    """The bits of a few columns in each row as one word."""
    words = np.zeros(n_rows, np.uint64)
    for place, column in enumerate(columns):
        words |= _bits(column[None], n_rows)[0].astype(np.uint64) << np.uint64(place)
    return words


def distinct_in(part: Partition, places: Places) -> Tally:
    """The distinct rows of these columns, however many: the words of a row, then those of its observed cells."""
    chosen = Partition(part.on[places], part.n_rows, None if part.observed is None else part.observed[places])
    rows = chosen.rows()
    everything = np.broadcast_to(all_observed(places.size), (part.n_rows, all_observed(places.size).size))
    words = rows.words[:, : everything.shape[1]]
    known = everything if rows.observed is None else rows.observed[:, : everything.shape[1]]
    return Tally.of(np.hstack([words, known]), part.row_weights())


class QuietCount(NamedTuple):
    """Rows in which none of some sensors is on."""

    quiet: float
    complete: float  # all of these sensors were observed
    quiet_and_complete: float


def quiet_in(part: Partition, places: Places) -> Numbers:
    """The numbers of ``QuietCount`` in one partition."""
    weights = part.row_weights()
    quiet = _bits(np.bitwise_or.reduce(part.on[places], axis=0)[None], part.n_rows)[0] == 0
    complete = np.ones(part.n_rows, dtype=bool)
    if part.observed is not None:
        complete = _bits(np.bitwise_and.reduce(part.observed[places], axis=0)[None], part.n_rows)[0] == 1
    return np.array([weights[quiet].sum(), weights[complete].sum(), weights[quiet & complete].sum()])


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows drawn from partitions, with the number of each in the whole table."""

    rows: Words
    observed: Words
    weights: Numbers  # how often each was drawn
    numbers: NDArray[np.uint64]

    def __add__(self, other: Sample) -> Sample:
        pairs = zip(self._parts(), other._parts(), strict=True)
        return Sample(*(np.concatenate(both) for both in pairs))

    def _parts(self) -> tuple[NDArray[Any], ...]:
        return self.rows, self.observed, self.weights, self.numbers


def sample_in(part: Partition, first_rows: Places, share: float, seed: int) -> Sample:
    """About this share of the rows, drawn by their numbers in the table: how it is cut makes no difference.

    A row of weight 5 stands for five; a weight that is not whole is rounded, up or down at random.
    """
    numbers = np.arange(part.n_rows, dtype=np.uint64) + np.uint64(first_rows[part.number])
    drawn = (_uniform(numbers, seed) < share).astype(float)
    if part.weights is not None:
        whole = np.floor(part.weights + _uniform(numbers, seed + 1))
        drawn = binomial_quantile(_uniform(numbers, seed), whole.astype(np.int64), share)
    chosen = np.flatnonzero(drawn > 0)
    rows = part.rows(chosen)
    everything = all_observed(len(part.on))
    words = rows.words[:, : everything.size]
    known = np.broadcast_to(everything, words.shape) if rows.observed is None else rows.observed[:, : everything.size]
    return Sample(words, known, drawn[chosen], numbers[chosen])


def binomial_quantile(level: Numbers, n_trials: Places, probability: float) -> Numbers:
    """The least number of successes whose distribution function reaches ``level``: that of all trials at most.

    >>> binomial_quantile(np.array([0.2, 0.3, 0.8, 0.5]), np.array([2, 2, 2, 0]), 0.5)
    array([0., 1., 2., 0.])
    """
    from scipy.special import bdtr, bdtrik  # only here: a worker would spend a quarter of its start on it

    if not 0 < probability < 1:
        return np.asarray(n_trials * probability, float)
    near = np.nan_to_num(np.clip(np.ceil(bdtrik(level, n_trials, probability)), 0, n_trials))
    below = np.maximum(near - 1, 0.0)
    return np.asarray(np.where(bdtr(below, n_trials, probability) >= level, below, near), float)


def _uniform(numbers: NDArray[np.uint64], seed: int) -> Numbers:
    """A number between 0 and 1 for every row number, as splitmix64 mixes it (Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        mixed = numbers * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(11)).astype(float) + 0.5) / 2.0**53


KEPT_BYTES = 1 << 26  # of partitions in memory; what is beyond lies on disk
KEPT_SHARE = 0.25  # of the memory that is left, where it is limited


class Shelf:
    """The partitions of one machine: the first in memory, the others in a file that goes away with this object."""

    def __init__(self, sensors: tuple[str, ...], kept_bytes: float = KEPT_BYTES) -> None:
        self.sensors = sensors
        self.room = min(kept_bytes, KEPT_SHARE * memory_left())
        self.places: list[Partition | tuple[int, Partition]] = []  # in memory, or where in the file and its shape
        self.path: Path | None = None

    @classmethod
    def of(cls, parts: Iterable[Partition], sensors: tuple[str, ...], kept_bytes: float = KEPT_BYTES) -> Shelf:
        """Put these partitions on a shelf."""
        shelf = cls(sensors, kept_bytes)
        for part in parts:
            shelf.add(part)
        return shelf

    def add(self, part: Partition) -> None:
        """Take in one more partition."""
        numbered = Partition(part.on, part.n_rows, part.observed, part.weights, len(self.places))
        self.room -= sum(array.nbytes for array in _arrays(numbered))
        self.places.append(numbered if self.room >= 0 else self._put_aside(numbered))

    def _put_aside(self, part: Partition) -> tuple[int, Partition]:
        if self.path is None:
            self.path = Path(tempfile.gettempdir()) / f"bica-{os.urandom(8).hex()}"
            begin_passing(self.path)
            weakref.finalize(self, end_passing, self.path)
        try:
            with open(self.path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                place = file.tell()
                for array in _arrays(part):
                    file.write(array.data)
        except OSError as error:
            raise OutputError(f"the table cannot be kept in {self.path.parent}: {error.strerror or error}") from None
        nothing = np.empty((*part.on.shape, 0), np.uint64)  # remembers the shape
        observed = None if part.observed is None else nothing
        weights = None if part.weights is None else np.empty(0)
        return place, Partition(nothing, part.n_rows, observed, weights, part.number)

    def part(self, number: int) -> Partition:
        """A partition, read again if it is on disk."""
        kept = self.places[number]
        if isinstance(kept, Partition):
            return kept
        place, shape = kept
        assert self.path is not None
        with self.path.open("rb") as file:
            file.seek(place)
            bits = [None if cells is None else _read(file, shape.on.shape[:2]) for cells in (shape.on, shape.observed)]
            weights = None if shape.weights is None else np.fromfile(file, np.float64, shape.n_rows)
        assert bits[0] is not None
        return Partition(bits[0], shape.n_rows, bits[1], weights, number)

    def summed(self, statistic: Callable[..., Statistic], *given: Any) -> Statistic:
        """The sum over all partitions, in their order, on all cores."""
        total: Any = None
        numbers = range(len(self.places))
        for value in in_threads(lambda number: statistic(self.part(number), *given), numbers, ALL_CORES, ahead=1):
            total = value if total is None else total + value
        return total  # type: ignore[no-any-return]


def _arrays(part: Partition) -> list[NDArray[Any]]:
    return [array for array in (part.on, part.observed, part.weights) if array is not None]


def _read(file: Any, shape: tuple[int, ...]) -> Words:
    return np.fromfile(file, np.uint64, shape[0] * shape[1]).reshape(shape)
