"""Rows in order, one bit per cell: what is decoded, and what is learned from when time matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bica.data.columns import MISSING, Binarize, Chunk, Reading, Table, numbered
from bica.data.observations import LARGE
from bica.data.patterns import PatternCounts
from bica.data.tables import open_table
from bica.errors import DataError
from bica.kernels.bits import Words, all_observed, choose_bits, group_equal, group_small, n_words, unpacked
from bica.progress import tracked
from bica.text import percent

SMALL = 8  # words below so many times the number of rows are counted in a table, not looked for


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What the sensors showed, row by row, all in memory."""

    words: Words  # (n_rows, n_words), bit 0 where a cell was not observed
    observed: Words  # same shape, bit set where it was
    sensors: tuple[str, ...] = ()  # their names, where they matter
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # ids and times, (n_rows,) each, by column
    time: str | None = None  # the label that holds the times

    @staticmethod
    def of(
        x: Any, *, sensors: Sequence[str] | None = None, binarize: Binarize = None, **reading: Unpack[Reading]
    ) -> Rows:
        """Read all rows of an array, a data frame, a sparse matrix, a DuckDB relation or a file, in their order.

        >>> rows = Rows.of([[0, 1], [1, 1]], sensors=["door", "yard"])
        >>> rows.words.ravel(), rows.sensors
        (array([2, 3], dtype=uint64), ('door', 'yard'))
        """
        if isinstance(x, Rows):
            return x
        if isinstance(x, PatternCounts):
            raise DataError("PatternCounts do not know the order of their rows; give the table itself")
        return Rows.of_table(open_table(x, sensors=sensors, binarize=binarize, **reading))

    @staticmethod
    def of_one(row: Any, *, binarize: Binarize = None) -> Rows:
        """Read one row: its cells in order, its cells by name (a mapping, a pandas series), or a table of one row.

        >>> Rows.of_one({"door": 1, "yard": None}).cells(2)
        array([[1, 2]], dtype=uint8)
        """
        is_line = (isinstance(row, list | tuple) or hasattr(row, "__array__")) and np.ndim(row) == 1
        named = row.to_dict() if is_line and hasattr(row, "to_dict") else row
        if isinstance(named, Mapping):
            return Rows.of([list(named.values())], sensors=[str(name) for name in named], binarize=binarize)
        if is_line:
            return Rows.of(row[None] if isinstance(row, np.ndarray) else [row], binarize=binarize)
        return Rows.of(row, binarize=binarize)

    @staticmethod
    def of_table(table: Table) -> Rows:
        """Read all rows of an open table."""
        everything = all_observed(len(table.sensors))
        words, observed = [np.empty((0, everything.size), np.uint64)], [np.empty((0, everything.size), np.uint64)]
        labels: dict[str, list[str]] = {name: [] for name in table.columns.labels}
        for chunk in tracked(table.chunks(), "reading the table"):
            words.append(chunk.words)
            observed.append(np.broadcast_to(everything, words[-1].shape) if chunk.observed is None else chunk.observed)
            for name, texts in zip(table.columns.labels, chunk.labels, strict=True):
                labels[name] += texts
        beside = {name: tuple(texts) for name, texts in labels.items()}
        return Rows(np.vstack(words), np.vstack(observed), table.sensors, beside, table.columns.time)

    @staticmethod
    def of_words(words: Words, observed: Words | None, n_sensors: int) -> Rows:
        """Rows that are packed already; None: every cell was observed. Words of another shape are refused."""
        everything = np.broadcast_to(all_observed(n_sensors), (len(words), n_words(n_sensors)))
        observed = everything if observed is None else observed
        if words.shape != everything.shape or observed.shape != words.shape:
            raise DataError(
                f"a row of {n_sensors} sensors takes {n_words(n_sensors)} words, "
                f"but words has shape {words.shape} and observed {observed.shape}"
            )
        return Rows(words & observed, observed)

    @property
    def times(self) -> tuple[str, ...] | None:
        """When each row was, as the table writes it; None if it does not say."""
        return None if self.time is None else self.labels[self.time]

    @property
    def is_complete(self) -> bool:
        """Whether every cell of the named sensors was observed."""
        return bool((self.observed == all_observed(len(self.sensors))).all())

    def counts(self) -> PatternCounts:
        """The same rows without their order."""
        return PatternCounts.of_chunks([Chunk(self.words, None if self.is_complete else self.observed)], self.sensors)

    def distinct(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each distinct row stands first, and the number of its distinct row for every row.

        >>> words = np.array([[5], [7], [5]], dtype=np.uint64)
        >>> Rows(words, words).distinct()
        (array([0, 1]), array([0, 1, 0]))
        """
        if len(self.words) and (self.observed == self.observed[0]).all():
            keys = self.words
            top = int(keys.max())
            if keys.shape[1] == 1 and top < SMALL * len(keys):
                return _numbered(keys[:, 0], top)
        else:
            keys = np.hstack([self.words, self.observed])
        first, number = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        return first[: group_equal(keys, first, number)], number

    def pick(self, rows: NDArray[np.int64]) -> Rows:
        """These rows only."""
        labels = {name: tuple(texts[row] for row in rows) for name, texts in self.labels.items()}
        return Rows(self.words[rows], self.observed[rows], self.sensors, labels, self.time)

    def of_sensors(self, sensors: NDArray[np.int64]) -> Rows:
        """What these sensors showed."""
        taken = np.zeros((2, len(self.words), n_words(sensors.size)), np.uint64)
        choose_bits(self.words, sensors, taken[0])
        choose_bits(self.observed, sensors, taken[1])
        names = tuple(self.sensors[place] for place in sensors) if self.sensors else ()
        return Rows(taken[0], taken[1], names, self.labels, self.time)

    def matched(self, sensors: tuple[str, ...]) -> Rows:
        """The rows with their columns in the order of a model's sensors, matched by name where both have names.

        >>> Rows.of([[1, 0]], sensors=["yard", "door"]).matched(("door", "yard")).cells(2).tolist()
        [[0, 1]]
        """
        places = places_of(sensors, self.sensors)
        return self if (places == np.arange(len(self.sensors))).all() else self.of_sensors(places)

    def cells(self, n_sensors: int) -> NDArray[np.uint8]:
        """The rows unpacked: (n_rows, n_sensors) of 0, 1 and ``MISSING``."""
        on, observed = unpacked(self.words, n_sensors), unpacked(self.observed, n_sensors)
        return np.where(observed, on.view(np.uint8), np.uint8(MISSING))


def read_complete(path: str, columns: Sequence[str]) -> NDArray[np.bool_]:
    """These columns of a table file without missing cells: (n_rows, n_columns), row by row in order."""
    rows = Rows.of(path)
    place = {name: i for i, name in enumerate(rows.sensors)}
    for name in columns:
        if name not in place:
            raise DataError(f"{path} has no column {name!r}")
    if not rows.is_complete:
        raise DataError(f"{path} has missing cells; give a complete table")
    return unpacked(rows.words, len(place))[:, [place[name] for name in columns]]


def _numbered(words: NDArray[np.uint64], top: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the distinct words by size, which are at most ``top``."""
    place, number = np.full(top + 1, -1, np.int64), np.empty(len(words), np.int64)
    first = np.empty(min(top + 1, len(words)), np.int64)
    return first[: group_small(words, place, first, number)], number


def are_names(columns: tuple[str, ...]) -> bool:
    """Whether these tell columns apart: mere numbers, as arrays and frames without names have them, do not.

    >>> are_names(("door", "yard")), are_names(("x0", "x1")), are_names(("0", "1"))
    (True, False, False)
    """
    return columns not in (numbered(len(columns)), tuple(map(str, range(len(columns)))))


def places_of(sensors: tuple[str, ...], columns: tuple[str, ...]) -> NDArray[np.int64]:
    """The column of each sensor of a model: by name, or in order where one of the two has no names.

    >>> places_of(("door", "yard"), ("yard", "door")), places_of(("door", "yard"), ("x0", "x1"))
    (array([1, 0]), array([0, 1]))
    """
    place = {name: i for i, name in enumerate(columns)}
    nameless = not are_names(columns)
    if place.keys() != set(sensors) and (nameless or not are_names(sensors)) and len(columns) == len(sensors):
        return np.arange(len(sensors))
    if nameless and len(columns) != len(sensors):
        raise DataError(f"the model has {len(sensors)} sensors, but the table has {len(columns)} columns")
    for name in sensors:
        if name not in place:
            raise DataError(f"the table has no column {name!r}, which the model watches; give a table with all sensors")
    for name in columns:
        if name not in sensors:
            raise DataError(f"the table has a column {name!r} that the model does not know; leave it out")
    return np.array([place[name] for name in sensors], dtype=np.int64)


def refuse_other_columns(columns: tuple[str, ...], before: tuple[str, ...]) -> None:
    """Refuse a table whose columns are not those of an earlier one, in their order; numbers match any name."""
    if len(columns) != len(before):
        raise DataError(f"X has {len(columns)} features, but BICA is expecting {len(before)} as input")
    if not (are_names(columns) and are_names(before)):
        return
    for place, (name, known) in enumerate(zip(columns, before, strict=True)):
        if name != known:
            raise DataError(
                f"column {place} is {name!r}, but it was {known!r} in fit; give the same columns in the same order"
            )


ALIKE = 0.3  # correlation of a sensor with itself one row later that matters
CLEARLY = 8.0  # standard errors from 0, so that none of thousands of sensors of independent rows is that far
CELLS_COMPARED = 1 << 22  # of a table, from its first rows
ROWS_COMPARED, LEAST_ROWS = 20_000, 100  # the first rows of a table are enough, and fewer show nothing
RUNS_PER_ROW = 2.0  # a table that is sorted or grouped has hardly more runs of equal rows than distinct rows
APART, EVEN = 0.5, 0.1  # where most rows are distinct: share of equal rows that are apart, and of steps up, off a half
LEAST_STRETCH = 3.0  # rows that count as one: with fewer, rows may be entered two or three times, or one column sorted
LEAST_STRETCHES = 50.0  # independent rows that a table must be worth, or there are too few runs
SLOWEST = 0.999  # a sensor forgets its state at least this fast


@dataclass(frozen=True, slots=True)
class Persistence:
    """Consecutive rows that are alike: each tells less than an independent row would."""

    sensor: str  # the one that persists most
    correlation: float  # with itself one row later
    stretch: float  # rows that tell as much about a sensor as one independent row: the median of all sensors

    def words(self) -> str:
        """What was observed."""
        return (
            f"rows that follow each other are alike: {self.sensor} has a correlation of {self.correlation:.2f} with "
            f"itself one row later, and {self.stretch:.2g} rows count as one"
        )


def persistence_of(words: Words, observed: Words | None, sensors: Sequence[str]) -> Persistence | None:
    """Whether consecutive rows are alike, by the runs of every sensor; None if not, and for sorted or grouped tables.

    In any order of the same rows, a sensor that is on in the share p of T rows is on in two consecutive rows T p^2
    times, give or take sqrt(T) p (1 - p). With the correlations r1 and r2 one and two rows later, a state that is
    forgotten by the factor d = r2 / r1 per row makes the mean of T rows vary as that of T / (1 + 2 r1 / (1 - d))
    independent ones; noise lowers r1, but not d.

    >>> slots = np.repeat(np.random.default_rng(0).random((200, 1)) < 0.3, 6, axis=0).astype(np.uint64)
    >>> found = persistence_of(slots, None, ["door"])
    >>> found.sensor, round(found.correlation, 1)
    ('door', 0.8)
    """
    words = words[:ROWS_COMPARED]
    n_rows = len(words)
    if n_rows < LEAST_ROWS or (observed is not None and not (observed[:n_rows] == observed[0]).all()):
        return None
    cells = unpacked(words, len(sensors))
    share = cells.mean(axis=0)
    spread = np.maximum(share * (1.0 - share), 1.0 / n_rows**2)
    one, two = (((cells[lag:] & cells[:-lag]).mean(axis=0) - share**2) / spread for lag in (1, 2))
    most = int(np.argmax(one))
    if one[most] < max(ALIKE, CLEARLY / np.sqrt(n_rows)):
        return None
    forgets = np.clip(two / np.where(one > 0, one, 1.0), 0.0, SLOWEST)
    stretch = float(np.median(1.0 + 2.0 * np.maximum(one, 0.0) / (1.0 - forgets)))
    if not LEAST_STRETCH <= stretch <= n_rows / LEAST_STRETCHES or _is_arranged(words):
        return None
    return Persistence(sensors[most], float(one[most]), stretch)


def _is_arranged(words: Words) -> bool:
    """Whether rows stand where somebody put them: sorted, or equal ones together.

    Slots come back to where they were, in other runs. If many sensors err, few rows are equal at all; then most of
    these are apart, and from one row to the next the words go up about as often as down.

    >>> rows = np.random.default_rng(0).integers(0, 5, (200, 1)).astype(np.uint64)
    >>> _is_arranged(rows), _is_arranged(np.sort(rows, axis=0))
    (False, True)
    """
    distinct, place = np.unique(words, axis=0, return_inverse=True)
    steps = np.diff(place.ravel())
    steps = steps[steps != 0]
    n_runs = 1 + steps.size
    if n_runs > RUNS_PER_ROW * len(distinct):
        return False
    are_apart = n_runs - len(distinct) > APART * (len(words) - len(distinct))
    return not (are_apart and abs(np.mean(steps > 0) - 0.5) < EVEN)


PARTS = 20  # consecutive parts of a table that are compared
TREND_LEVEL = 0.001  # tables without a trend in which one is seen, at most
MUCH = 1.5  # times by which the odds of a sensor must change to matter
LEAST_EACH = 10  # ones and zeros of a sensor, without which nothing is seen


@dataclass(frozen=True, slots=True)
class Trend:
    """Rows that change along the table: sensors that come on more and more often, or less and less."""

    sensor: str  # the one whose trend is clearest
    first: float  # share of the first quarter of the rows in which it is on
    last: float  # and of the last quarter
    n_sensors: int  # how many have a clear trend

    def words(self) -> str:
        """What was observed."""
        others = self.n_sensors - 1
        more = f", and {others} more {'sensors change' if others > 1 else 'sensor changes'}, too" if others else ""
        return (
            f"the rows change along the table: {self.sensor} is on in {percent(self.first)} of the first quarter of "
            f"the rows and in {percent(self.last)} of the last{more}"
        )


def trend_of(words: Words, observed: Words | None, sensors: Sequence[str]) -> Trend | None:
    """Whether sensors come on more or less often along the rows; None if not, and for sorted tables.

    A line is laid through the shares of twenty consecutive parts. Its slope must be clear in two ways: against the
    scatter of the parts about the line, by Student's t, which also holds if consecutive rows are alike; and against
    what independent rows would scatter, which also holds for rare sensors.

    >>> rising = np.random.default_rng(0).random(2000) < np.linspace(0.1, 0.5, 2000)
    >>> found = trend_of(rising[:, None].astype(np.uint64), None, ["door"])
    >>> found.sensor, round(found.first, 1), round(found.last, 1)
    ('door', 0.1, 0.5)
    """
    n_rows, n_sensors = len(words), len(sensors)
    if n_rows < LEAST_ROWS:
        return None
    ones, n_observed = (_part_sums(bits, n_rows, n_sensors) for bits in (words, observed))
    share, total = ones / np.maximum(n_observed, 1.0), ones.sum(axis=0) / np.maximum(n_observed.sum(axis=0), 1.0)
    steps = np.arange(PARTS) - (PARTS - 1) / 2
    slope = steps @ share / (steps @ steps)
    off = share - share.mean(axis=0) - steps[:, None] * slope  # the line
    scatter = (off**2).sum(axis=0) / (PARTS - 2)
    lasting = np.clip((off[1:] * off[:-1]).sum(axis=0) / np.maximum((off**2).sum(axis=0), 1e-300), 0.0, 0.9)
    scatter *= (1.0 + lasting) / (1.0 - lasting)  # a mean over parts that are alike varies so many times as much
    by_chance = steps**2 @ (total * (1.0 - total) / np.maximum(n_observed, 1.0)) / (steps @ steps)  # independent rows
    error = np.sqrt(np.maximum(by_chance, scatter) / (steps @ steps))
    enough = (np.minimum(ones, n_observed - ones).sum(axis=0) >= LEAST_EACH) & (n_observed.min(axis=0) > 0)
    clearness = np.where(enough, np.abs(slope) / np.where(enough, error, 1.0), 0.0)
    quarter = PARTS // 4
    first, last = share[:quarter].mean(axis=0), share[-quarter:].mean(axis=0)
    least = 1.0 / n_rows
    odds = [np.log((part + least) / (1.0 - part + least)) for part in (first, last)]
    clear = (clearness >= _student(TREND_LEVEL / n_sensors)) & (np.abs(odds[1] - odds[0]) >= np.log(MUCH))
    if not clear.any() or _is_sorted(words, np.flatnonzero(enough)):
        return None
    most = int(np.argmax(np.where(clear, clearness, 0.0)))
    return Trend(sensors[most], float(first[most]), float(last[most]), int(clear.sum()))


def _student(level: float) -> float:
    """How far from 0 Student's t of the parts is by chance in this share of cases."""
    return -float(stdtrit(PARTS - 2, level / 2))


def _part_sums(bits: Words | None, n_rows: int, n_sensors: int) -> NDArray[np.float64]:
    """How many bits of every sensor are set in each of the parts: (PARTS, n_sensors); None: all are."""
    ends = np.linspace(0, n_rows, PARTS + 1).astype(np.int64)
    if bits is None:
        return np.repeat(np.diff(ends).astype(float)[:, None], n_sensors, axis=1)
    return np.array([unpacked(bits[a:b], n_sensors).sum(axis=0) for a, b in pairwise(ends)], float)


def _is_sorted(words: Words, places: NDArray[np.int64]) -> bool:
    """Whether the rows are sorted by one of these sensors, which changes once then, or by how many sensors are on.

    So are tables in which equal rows stand together, in whatever order.
    """
    changed = words[1:] ^ words[:-1]
    n_runs = 1 + int(changed.any(axis=1).sum())
    if n_runs < len(words) / 2 and n_runs <= RUNS_PER_ROW * len(np.unique(words, axis=0)):
        return True
    word, bit = np.divmod(places, 64)
    changes = [int(((changed[:, w] >> np.uint64(b)) & np.uint64(1)).sum()) for w, b in zip(word, bit, strict=True)]
    growth = np.diff(np.bitwise_count(words).sum(axis=1, dtype=np.int64))
    return min(changes, default=0) == 1 or bool((growth >= 0).all() or (growth <= 0).all())


@dataclass(frozen=True, slots=True)
class Order:
    """What the order of the rows shows: that each is like the one before, or that they change along the table."""

    persistence: Persistence | None = None
    trend: Trend | None = None


def order_in(table: Table) -> Order:
    """What the order of the first rows of an open table shows, up to four million cells; of weighted rows nothing."""
    parts: list[Chunk] = []
    left = max(1, CELLS_COMPARED // max(1, len(table.sensors)))
    for chunk in first_rows(table, left):
        if chunk.weights is not None:
            return Order()
        parts.append(chunk)
        left -= len(chunk.words)
        if left <= 0:
            break
    if not parts:
        return Order()
    words = np.vstack([chunk.words for chunk in parts])
    everything = all_observed(len(table.sensors))
    observed = None
    if any(chunk.observed is not None for chunk in parts):
        observed = np.vstack(
            [np.broadcast_to(everything, c.words.shape) if c.observed is None else c.observed for c in parts]
        )
    return Order(persistence_of(words, observed, table.sensors), trend_of(words, observed, table.sensors))


def first_rows(table: Table, n_rows: int) -> Iterator[Chunk]:
    """The rows of a table in their order; of a large one about the first ``n_rows``, read as bits where that can be."""
    partitions = getattr(table, "partitions", None)
    found = None if partitions is None else partitions(LARGE)
    if found is None:
        yield from table.chunks()
        return
    part = next(found, None)
    del found  # closes the file before the rows are unpacked
    if part is not None:
        yield part.first(n_rows).rows()
