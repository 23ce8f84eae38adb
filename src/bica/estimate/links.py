"""Which sensors may share a source: pairs that are on together more often than chance explains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.pairs import PairCounts
from bica.kernels.pairs import likely_pairs

FALSE_LINKS, OF_MANY = 0.2, 0.05  # the share of false links, in small tables and in large ones
MANY = 32


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """A graph of sensors; the neighbours of each stand by falling strength."""

    neighbours: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, pairs: PairCounts, false_links: float | None = None) -> Links:
        """Exact tests of all pairs; among those linked, the expected share of false ones is ``false_links``.

        The level is that of Benjamini and Hochberg. A false link only makes a block larger, a missing one costs a
        source, so this is a better trade than a level at which no link at all is false. Unless given, the share is 0.2,
        and 0.05 in tables of many sensors, where links are plenty and larger blocks take long.

        >>> from bica.data.patterns import PatternCounts
        >>> rows = np.repeat([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]], 10, axis=0)
        >>> [near.tolist() for near in Links.of(PairCounts.of(PatternCounts.of(rows))).neighbours]
        [[1], [0], []]
        """
        n_sensors = len(pairs.both)
        if false_links is None:
            false_links = FALSE_LINKS if n_sensors <= MANY else OF_MANY
        first, second, excess, tail = likely_pairs(pairs.both, pairs.on, pairs.seen, false_links)
        n_pairs = max(1, n_sensors * (n_sensors - 1) // 2)
        in_order = np.sort(tail)
        below = np.flatnonzero(in_order <= false_links * np.arange(1, tail.size + 1) / n_pairs)
        kept = tail <= in_order[below[-1]] if below.size else np.zeros(tail.size, dtype=bool)
        return cls(_by_strength(n_sensors, first[kept], second[kept], excess[kept]))

    def joined(self, columns: Iterable[tuple[int, ...]]) -> Links:
        """The same graph in which all sensors of each column are linked as well, weakly.

        >>> Links((np.array([1]), np.array([0]), np.array([], np.int64))).joined([(0, 2)]).neighbours[0]
        array([1, 2])
        """
        near, more = self.sets(), defaultdict(set)
        for column in columns:
            for sensor in column:
                more[sensor].update(set(column) - near[sensor] - {sensor})
        if not any(more.values()):
            return self
        added = [np.array(sorted(more[sensor]), np.int64) for sensor in range(len(near))]
        return Links(tuple(np.append(old, new) for old, new in zip(self.neighbours, added, strict=True)))

    def sets(self) -> list[frozenset[int]]:
        """The neighbours of each sensor, for asking whether one is among them."""
        return [frozenset(near.tolist()) for near in self.neighbours]


def _by_strength(
    n_sensors: int, first: NDArray[np.int64], second: NDArray[np.int64], strength: NDArray[np.float64]
) -> tuple[NDArray[np.int64], ...]:
    home, other = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.lexsort((other, -np.concatenate([strength, strength]), home))
    ends = np.cumsum(np.bincount(home, minlength=n_sensors))
    return tuple(np.split(other[order], ends[:-1])) if n_sensors else ()
