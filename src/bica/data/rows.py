"""Rows in order, one bit per cell: what is decoded, and what is learned from when time matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import MISSING, Chunk, Table
from bica.data.columns import Binarize, Reading, numbered
from bica.data.patterns import PatternCounts
from bica.data.tables import open_table
from bica.errors import DataError
from bica.kernels.bits import Words, all_observed, choose_bits, group_equal, group_small, n_words, unpacked
from bica.progress import tracked

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
