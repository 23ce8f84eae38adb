"""Candidate sources: which sensors each reaches, how often it is on, and what may not be touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bica.kernels.rows_gains import Sources
from bica.kernels.rows_lists import Lists, taken, turned

Numbers = NDArray[np.float64]
Column = tuple[int, ...]
Forbidden = Callable[[Column], bool]  # whether a set of sensors, ascending, may not be a source
Price = Callable[[NDArray[np.int64]], Numbers]  # what sources of so many sensors must pay
RAREST, MOST_FREQUENT = 1e-7, 1 - 1e-3


def two_part_code(n_sensors: int, n_samples: float) -> Price:
    """What it takes to write a source down: how many sensors, which ones, and its probability.

    >>> two_part_code(10, 1000)(np.array([1, 2])).round(2)
    array([8.06, 9.56])
    """

    def price(sizes: NDArray[np.int64]) -> Numbers:
        which = gammaln(n_sensors + 1) - gammaln(sizes + 1) - gammaln(n_sensors - sizes + 1)
        priced: Numbers = which + np.log(n_sensors) + 0.5 * np.log(n_samples)
        return priced

    return price


def joined(parts: Sequence[Lists]) -> Lists:
    """The lists of all parts, one part behind the other."""
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
    """The lists as tuples."""
    items, ends = lists.items.tolist(), lists.start.tolist()
    return [tuple(items[begin:end]) for begin, end in zip(ends[:-1], ends[1:], strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Sources with distinct columns.

    >>> pool = Pool.of([(0, 1), (1, 2, 3)], [0.1, 0.2])
    >>> pool.size, pool.widths
    (2, array([2, 3]))
    """

    columns: Lists
    probability: Numbers
    fixed: NDArray[np.bool_]  # known sources: never dropped, never changed
    held: NDArray[np.bool_]  # whose probability is known too

    @classmethod
    def of(cls, columns: Iterable[Sequence[int]] = (), probability: Iterable[float] = (), *, fixed: bool = False) -> Pool:
        """Sources from their sensors and probabilities."""
        lists, chances = as_lists(columns), np.array(list(probability), float)
        return cls(lists, chances, np.full(chances.size, fixed), np.zeros(chances.size, bool))

    @property
    def size(self) -> int:
        """How many sources there are."""
        return self.probability.size

    @property
    def widths(self) -> NDArray[np.int64]:
        """How many sensors each source reaches."""
        return np.diff(self.columns.start)

    def plus(self, other: Pool) -> Pool:
        """These sources and those."""
        return Pool(
            joined([self.columns, other.columns]),
            np.concatenate([self.probability, other.probability]),
            np.concatenate([self.fixed, other.fixed]),
            np.concatenate([self.held, other.held]),
        )

    def kept(self, chosen: NDArray[np.int64]) -> Pool:
        """Only the chosen sources, in this order."""
        columns = taken(self.columns, chosen)
        return Pool(columns, self.probability[chosen], self.fixed[chosen], self.held[chosen])

    def with_probability(self, probability: Numbers) -> Pool:
        """The same sources with these probabilities, except where they are known."""
        chances = np.clip(probability, RAREST, MOST_FREQUENT)
        return replace(self, probability=np.where(self.held, self.probability, chances))

    def merged(self) -> Pool:
        """Without empty columns, and with equal ones as one source, on whenever one of them was; known ones stay."""
        place: dict[Column, int] = {}
        chances = self.probability.copy()
        kept: list[int] = []
        columns = as_columns(self.columns)
        for source in np.argsort(~self.fixed, kind="stable").tolist():
            first = place.setdefault(columns[source], source)
            if columns[source] and first == source:
                kept.append(source)
            elif first != source and not self.held[first]:
                chances[first] = 1 - (1 - chances[first]) * (1 - chances[source])
        return replace(self, probability=chances).kept(np.array(sorted(kept), np.int64))

    def sources(self, one: Numbers, zero: Numbers) -> Sources:
        """The sources as the kernels want them, given what covered sensors say by showing 1 and 0."""
        owner = np.repeat(np.arange(self.size), self.widths)
        log_odds = np.log(self.probability) - np.log1p(-self.probability)
        silent = log_odds + np.bincount(owner, weights=zero[self.columns.items], minlength=self.size)
        frequent = np.flatnonzero(self.probability > 0.5).astype(np.int32)
        says = np.stack([zero, one, np.zeros(zero.size)])
        return Sources(self.columns, turned(self.columns, zero.size), log_odds, silent, frequent, says)
