"""Small sets of sensors that can be learned exactly: each sensor with those it may share a source with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.pairs import PairCounts
from bica.kernels.columns import likely_pairs

FALSE_LINKS, OF_MANY = 0.2, 0.05  # the expected share of false links, in small tables and in large ones
MANY = 32  # sensors: a table with more is large


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """A graph of sensors; the neighbours of each are in order of falling strength."""

    neighbours: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, pairs: PairCounts, false_links: float | None = None) -> Links:
        """The pairs that pass an exact test; among them the expected share of false links is ``false_links``.

        The level is that of Benjamini and Hochberg. A false link only makes a block larger, but a missing one loses a
        source, so a few false links are better than none at all. Unless given, the share is 0.2, and 0.05 in tables of
        many sensors, where links are plentiful and larger blocks take long.

        >>> from bica.data.patterns import PatternCounts
        >>> rows = np.repeat([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]], 10, axis=0)
        >>> [near.tolist() for near in Links.of(PairCounts.of(PatternCounts.of(rows))).neighbours]
        [[1], [0], []]
        """
        n_sensors = len(pairs.both)
        if false_links is None:
            false_links = FALSE_LINKS if n_sensors <= MANY else OF_MANY
        first, second, excess, tail = likely_pairs(pairs.both, pairs.on, pairs.observed, false_links)
        n_pairs = max(1, n_sensors * (n_sensors - 1) // 2)
        in_order = np.sort(tail)
        below = np.flatnonzero(in_order <= false_links * np.arange(1, tail.size + 1) / n_pairs)
        kept = tail <= in_order[below[-1]] if below.size else np.zeros(tail.size, dtype=bool)
        return cls(_by_strength(n_sensors, first[kept], second[kept], excess[kept]))

    def joined(self, columns: Iterable[tuple[int, ...]]) -> Links:
        """The same graph with weak links between all sensors of each column added.

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
        """The neighbours of each sensor as a set, for quick lookup."""
        return [frozenset(near.tolist()) for near in self.neighbours]


def _by_strength(
    n_sensors: int, first: NDArray[np.int64], second: NDArray[np.int64], strength: NDArray[np.float64]
) -> tuple[NDArray[np.int64], ...]:
    home, other = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.lexsort((other, -np.concatenate([strength, strength]), home))
    ends = np.cumsum(np.bincount(home, minlength=n_sensors))
    return tuple(np.split(other[order], ends[:-1])) if n_sensors else ()


WHOLE = 10  # sensors: a sensor and its neighbours are one block if they are no more
LARGEST = 12  # sensors in any block
CROWD = 24  # sensors: where a pair and its common neighbours are more, even triples have too many
COMPANY = 7  # sensors up to which a block around a pair is filled with other neighbours


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some sensors, the anchor first: every source that reaches all of the anchor lies inside the block."""

    sensors: NDArray[np.int64]
    n_anchor: int
    lone: bool = False  # the anchor is one sensor, and only a source of this sensor alone is looked for

    def decides(self, column: tuple[int, ...]) -> bool:
        """Whether this block decides if there is a source of these sensors."""
        anchor, sensors = self.sensors[: self.n_anchor].tolist(), self.sensors.tolist()
        return set(anchor) <= set(column) <= set(sensors) and not (self.lone and len(column) > 1)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The blocks of a table, and what they leave open."""

    blocks: tuple[Block, ...]
    crowded: tuple[int, ...]  # sensors without a block of all their neighbours: they may have lone sources
    open_sets: tuple[tuple[int, ...], ...]  # sets with too many common neighbours: wide sources may reach them

    @classmethod
    def of(cls, links: Links) -> Plan:
        """A block for every sensor or, where two linked sensors both have too many neighbours, for the pair.

        Whatever else a source of two sensors reaches is a neighbour of both. So a pair needs a smaller block, and a
        triple a smaller one still.
        """
        near = [sum(1 << other for other in neighbours.tolist()) for neighbours in links.neighbours]  # bit sets
        blocks: dict[frozenset[int], Block] = {}
        crowded, open_sets = [], []
        for sensor, neighbours in enumerate(links.neighbours):
            if neighbours.size < WHOLE:
                blocks[frozenset([sensor])] = Block(np.append(sensor, neighbours).astype(np.int64), 1)
                continue
            crowded.append(sensor)
            for anchor, common in _anchors(sensor, links, near):
                if common is None or len(anchor) + len(common) > LARGEST:
                    open_sets.append(tuple(sorted(anchor)))
                elif frozenset(anchor) not in blocks:
                    more = _company(anchor, common, links)
                    blocks[frozenset(anchor)] = Block(np.array([*anchor, *common, *more], np.int64), len(anchor))
        return cls(tuple(blocks.values()), tuple(crowded), tuple(sorted(set(open_sets))))


def _anchors(sensor: int, links: Links, near: list[int]) -> Iterator[tuple[list[int], list[int] | None]]:
    """Anchors with their common neighbours: pairs of the sensor and a neighbour; triples where a pair has too many.

    None stands for too many common neighbours to list: cliques of hundreds of sensors occur.
    """
    for other in links.neighbours[sensor].tolist():
        if links.neighbours[other].size < WHOLE:  # its own block decides
            continue
        if (near[sensor] & near[other]).bit_count() + 2 > CROWD:
            yield [sensor, other], None
            continue
        common = [third for third in links.neighbours[sensor].tolist() if near[other] >> third & 1]
        yield [sensor, other], common
        if len(common) + 2 > LARGEST:
            for third in (third for third in common if links.neighbours[third].size >= WHOLE):
                yield [sensor, other, third], [fourth for fourth in common if near[third] >> fourth & 1]


def _company(anchor: list[int], common: list[int], links: Links) -> list[int]:
    """The strongest other neighbours of the anchor, which explain part of what its sensors show."""
    room, taken = COMPANY - len(anchor) - len(common), set(anchor) | set(common)
    company: list[int] = []
    for place in range(max(0, room)):
        for sensor in anchor:
            if len(company) < room and place < links.neighbours[sensor].size:
                other = int(links.neighbours[sensor][place])
                if other not in taken:
                    taken.add(other)
                    company.append(other)
    return company
