"""The table and the candidate sources as lists, which learning from rows works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bica.data.patterns import PatternCounts
from bica.kernels.bits import Words, all_observed
from bica.kernels.rows.gains import Lists, RowCells, Sources, list_bits, taken, turned

ROWS_PER_PART = 1024  # work for one thread at a time


def ranges(rows: NDArray[np.int64], size: int = ROWS_PER_PART) -> list[NDArray[np.int64]]:
    """The rows in parts of at most ``size``; one empty part if there are none.

    >>> [part.tolist() for part in ranges(np.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    return [rows[begin : begin + size] for begin in range(0, max(1, rows.size), size)]


@dataclass(frozen=True, slots=True, eq=False)
class RowTable:
    """Distinct rows with their weights. Memory grows with the ones and, 64 to a word, the cells.

    >>> table = RowTable.of(PatternCounts.of([[0, 1, 1], [1, 0, 0], [0, 1, 1]]))
    >>> table.cells.ones.items, table.cells.weights
    (array([0, 1, 2], dtype=int32), array([1., 2.]))
    """

    n_sensors: int
    cells: RowCells
    words: Words  # (n_rows, n_words), the same ones as bits
    observed: Words  # like words, the cells that were observed; no rows if all were
    ones_of: Lists  # the rows in which each sensor is on

    @classmethod
    def of(cls, data: PatternCounts) -> RowTable:
        """The table behind these counts; cells that were not observed say nothing for or against a source."""
        if data.observed is None:
            observed, gap_words = np.zeros((0, data.patterns.shape[1]), np.uint64), np.zeros_like(data.patterns)
        else:
            observed, gap_words = data.observed, ~data.observed & all_observed(data.n_sensors)
        ones, gaps = list_bits(data.patterns, data.n_sensors), list_bits(gap_words, data.n_sensors)
        cells = RowCells(ones, gaps, data.weights)
        return cls(data.n_sensors, cells, data.patterns, observed, turned(ones, data.n_sensors))

    @property
    def n_rows(self) -> int:
        """How many distinct rows there are."""
        return self.cells.weights.size

    @property
    def n_samples(self) -> float:
        """The number of rows, or the sum of their weights."""
        return float(self.cells.weights.sum())

    @property
    def rows(self) -> NDArray[np.int64]:
        """The numbers of all distinct rows."""
        return np.arange(self.n_rows)

    def ones(self) -> NDArray[np.float64]:
        """How often each sensor is on: (n_sensors,)."""
        return self.added_up(self.cells.ones)

    def times_observed(self) -> NDArray[np.float64]:
        """In how many rows each sensor was observed: (n_sensors,)."""
        return self.n_samples - self.added_up(self.cells.gaps)

    def added_up(self, lists: Lists) -> NDArray[np.float64]:
        """The weight of the rows whose list of sensors holds each sensor: (n_sensors,)."""
        weights = np.repeat(self.cells.weights, np.diff(lists.start))
        return np.bincount(lists.items, weights=weights, minlength=self.n_sensors).astype(float)

    def sample(self, n_samples: int, rng: np.random.Generator) -> RowTable:
        """A table of ``n_samples`` rows drawn from these, without replacement if the weights are counts."""
        weights = self.cells.weights
        if (weights == np.rint(weights)).all():
            drawn = rng.multivariate_hypergeometric(weights.astype(np.int64), n_samples, method="marginals")
        else:
            drawn = rng.multinomial(n_samples, weights / weights.sum())
        kept = np.flatnonzero(drawn)
        ones, gaps = taken(self.cells.ones, kept), taken(self.cells.gaps, kept)
        cells = RowCells(ones, gaps, drawn[kept].astype(float))
        observed = self.observed[kept] if self.observed.size else self.observed
        return RowTable(self.n_sensors, cells, self.words[kept], observed, turned(ones, self.n_sensors))


Numbers = NDArray[np.float64]
Column = tuple[int, ...]
Forbidden = Callable[[Column], bool]  # whether a set of sensors, ascending, may not be a source
Cost = Callable[[NDArray[np.int64]], Numbers]  # what sources of so many sensors must gain
MORE_OFTEN_THAN_NOT = 0.5  # a source that is on in more rows is a candidate in every row
RAREST, MOST_FREQUENT = 1e-7, 1 - 1e-3  # bounds of a probability, so that its log odds are finite


def two_part_code(n_sensors: int, n_samples: float) -> Cost:
    """The cost of writing a source down: how many sensors, which ones, and its probability.

    >>> two_part_code(10, 1000)(np.array([1, 2])).round(2)
    array([8.06, 9.56])
    """

    def cost(sizes: NDArray[np.int64]) -> Numbers:
        which = gammaln(n_sensors + 1) - gammaln(sizes + 1) - gammaln(n_sensors - sizes + 1)
        costs: Numbers = which + np.log(n_sensors) + 0.5 * np.log(n_samples)
        return costs

    return cost


def joined(parts: Sequence[Lists]) -> Lists:
    """The lists of all parts, one part after another."""
    lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.start) for part in parts)])
    items = np.concatenate([np.empty(0, np.int32), *(part.items for part in parts)])
    return Lists(np.cumsum(lengths), items)


def as_lists(columns: Iterable[Sequence[int]]) -> Lists:
    """Columns as lists of ascending sensors.

    >>> as_lists([(2, 0), (1,)]).items
    array([0, 2, 1], dtype=int32)
    """
    return joined([Lists(np.array([0, len(c)]), np.sort(np.array(c, np.int32))) for c in columns])


def as_columns(lists: Lists) -> list[Column]:
    """The lists as tuples of sensors."""
    items, ends = lists.items.tolist(), lists.start.tolist()
    return [tuple(items[begin:end]) for begin, end in pairwise(ends)]


@dataclass(frozen=True, slots=True, eq=False)
class RowPool:
    """Sources with distinct columns.

    >>> pool = RowPool.of([(0, 1), (1, 2, 3)], [0.1, 0.2])
    >>> pool.size, pool.widths
    (2, array([2, 3]))
    """

    columns: Lists
    probability: Numbers
    fixed: NDArray[np.bool_]  # whether the source is known: never dropped, never changed
    held: NDArray[np.bool_]  # whether its probability is known, too

    @classmethod
    def of(
        cls, columns: Iterable[Sequence[int]] = (), probability: Iterable[float] = (), *, fixed: bool = False
    ) -> RowPool:
        """Sources from their sensors and probabilities."""
        lists, values = as_lists(columns), np.array(list(probability), float)
        return cls(lists, values, np.full(values.size, fixed), np.zeros(values.size, bool))

    @property
    def size(self) -> int:
        """How many sources there are."""
        return self.probability.size

    @property
    def widths(self) -> NDArray[np.int64]:
        """How many sensors each source reaches."""
        return np.diff(self.columns.start)

    def plus(self, other: RowPool) -> RowPool:
        """These sources, then the others."""
        return RowPool(
            joined([self.columns, other.columns]),
            np.concatenate([self.probability, other.probability]),
            np.concatenate([self.fixed, other.fixed]),
            np.concatenate([self.held, other.held]),
        )

    def kept(self, chosen: NDArray[np.int64]) -> RowPool:
        """Only the chosen sources, in this order."""
        columns = taken(self.columns, chosen)
        return RowPool(columns, self.probability[chosen], self.fixed[chosen], self.held[chosen])

    def with_probability(self, probability: Numbers) -> RowPool:
        """The same sources with these probabilities, except where they are known."""
        bounded = np.clip(probability, RAREST, MOST_FREQUENT)
        return replace(self, probability=np.where(self.held, self.probability, bounded))

    def merged(self) -> RowPool:
        """The pool without empty columns; equal columns become one source, on if any of them is; known ones stay."""
        place: dict[Column, int] = {}
        probability = self.probability.copy()
        kept: list[int] = []
        columns = as_columns(self.columns)
        for source in np.argsort(~self.fixed, kind="stable").tolist():
            first = place.setdefault(columns[source], source)
            if columns[source] and first == source:
                kept.append(source)
            elif first != source and not self.held[first]:
                probability[first] = 1 - (1 - probability[first]) * (1 - probability[source])
        return replace(self, probability=probability).kept(np.array(sorted(kept), np.int64))

    def sources(self, one: Numbers, zero: Numbers) -> Sources:
        """The sources in the form that the kernels take, given the weights of covered cells that show 1 and 0."""
        owner = np.repeat(np.arange(self.size), self.widths)
        log_odds = np.log(self.probability) - np.log1p(-self.probability)
        silence = np.bincount(owner, weights=zero[self.columns.items], minlength=self.size).astype(float)
        frequent = np.flatnonzero(self.probability > MORE_OFTEN_THAN_NOT).astype(np.int32)
        says = np.stack([zero, one, np.zeros(zero.size)])
        return Sources(self.columns, turned(self.columns, zero.size), log_odds, log_odds + silence, frequent, says)
