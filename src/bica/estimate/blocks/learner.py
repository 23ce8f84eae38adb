"""Blocks of sensors: which there are, and learning one with the noise known, from a pool of sources that all share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bica.data.observations import Observations
from bica.data.pairs import PairCounts
from bica.estimate.lattice import Cells
from bica.estimate.score import covariance_of
from bica.kernels.columns import likely_pairs
from bica.kernels.lattice.block_climb import BlockRows, climb, profiled_flip_rate
from bica.kernels.lattice.block_search import BlockChannel, SetRules, search_block
from bica.kernels.lattice.likelihood import CellGroups
from bica.kernels.lattice.subsets import channel_matrices
from bica.model.noise import Noise

# Small sets of sensors that can be learned exactly: each sensor with those it may share a source with.

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
    """Some sensors, the anchor first: every source that reaches all of the anchor lies inside the block.

    Without an anchor, the block is about all parts of sources that lie inside it.
    """

    sensors: NDArray[np.int64]
    n_anchor: int
    lone: bool = False  # the anchor is one sensor, and only a source of this sensor alone is looked for
    anchor: frozenset[int] = field(init=False)
    members: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        sensors = self.sensors.tolist()
        object.__setattr__(self, "anchor", frozenset(sensors[: self.n_anchor]))
        object.__setattr__(self, "members", frozenset(sensors))

    def decides(self, column: tuple[int, ...]) -> bool:
        """Whether this block decides if there is a source of these sensors."""
        return self.anchor.issubset(column) and self.members.issuperset(column) and not (self.lone and len(column) > 1)


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


Column = tuple[int, ...]  # the sensors of a source, ascending


@dataclass(frozen=True, slots=True)
class Estimate:
    """The rate of a source, -log(1 - probability), with its standard error."""

    rate: float
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Sources by their columns, with a list of those that reach each sensor."""

    sources: Mapping[Column, Estimate]
    reaching: Mapping[int, list[Column]] = field(init=False)

    def __post_init__(self) -> None:
        reaching: dict[int, list[Column]] = defaultdict(list)
        for column in self.sources:
            for sensor in column:
                reaching[sensor].append(column)
        object.__setattr__(self, "reaching", dict(reaching))

    def touching(self, sensors: Iterable[int]) -> list[Column]:
        """The sources that reach any of these sensors, each once."""
        return list(dict.fromkeys(column for sensor in sensors for column in self.reaching.get(sensor, ())))

    def restricted_to(self, sensors: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The sources cut down to a block: ascending bit sets over its sensors, and their rates; equal ones add up.

        >>> pool = Pool({(0, 1): Estimate(0.1, 0.0), (1, 2): Estimate(0.2, 0.0)})
        >>> [part.tolist() for part in pool.restricted_to(np.array([0, 2]))]
        [[1, 2], [0.1, 0.2]]
        """
        inside: dict[Column, int] = {}
        for bit, sensor in enumerate(sensors.tolist()):
            for column in self.reaching.get(sensor, ()):
                inside[column] = inside.get(column, 0) | 1 << bit
        rates: dict[int, float] = {}
        for column, mask in inside.items():
            rates[mask] = rates.get(mask, 0.0) + self.sources[column].rate
        masks = sorted(rates)
        return np.array(masks, np.int64), np.array([rates[mask] for mask in masks], float)


Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FlipSlope:
    """The slope of a block's log-likelihood by the shared flip rate, and its information on that rate."""

    slope: float = 0.0
    information: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LearnedBlock:
    """What was learned from one block about the sources that it decides."""

    block: Block
    sources: dict[Column, Estimate]
    flips: FlipSlope
    settled: bool  # it found the sources that it started from


@dataclass(frozen=True, slots=True, eq=False)
class BlockLearner:
    """What the blocks of a table have in common; learns one block at a time."""

    data: Observations
    links: Links
    near: Sequence[frozenset[int]]  # the same links as sets
    forbidden: tuple[frozenset[int], ...]  # sets of sensors that no unknown source contains
    known: Pool  # sources known to be there
    fixed: frozenset[Column]  # those of them whose rate is given
    cost: NDArray[np.float64]  # what a source of each size must gain

    def linked(self, pool: Pool) -> BlockLearner:
        """The same learner, with all sensors of every source in the pool linked."""
        links = self.links.joined(pool.sources)
        return self if links is self.links else replace(self, links=links, near=links.sets())

    def learn(self, block: Block, noise: Noise, start: Pool, *, search: bool = True) -> LearnedBlock:
        """The sources of the block, searched from its part of ``start``; without ``search`` only rates are fitted."""
        cells = self._cells(block)
        rows = BlockRows(CellGroups(cells.unobserved, cells.starts, cells.cells), cells.weights)
        rates = noise.of_sensors(block.sensors).rates(block.sensors.size)
        matrices = channel_matrices(*rates)
        sources, rate, fixed = self._start(block, start)
        if search:
            channel = BlockChannel(matrices, matrices.transpose(0, 2, 1).copy())
            size = np.bitwise_count(np.arange(1 << block.sensors.size)).astype(np.int64)
            rules = SetRules(self.allowed(block), size, self.cost[size])
            found, rate, _, information = search_block(sources, rate, fixed, rows, channel, rules)
        else:
            rate, _, information = climb(sources, rate, fixed, rows, matrices, -np.inf)
            found = sources
        moving = np.arange(found.size) >= fixed.size
        moving[: fixed.size] = ~fixed
        error = np.zeros(found.size)
        moved = information if moving.all() else information[np.ix_(moving, moving)]
        error[moving] = np.sqrt(np.diag(covariance_of(moved)))
        flips = FlipSlope(*profiled_flip_rate(found, rate, fixed, rows, float(rates[0][0]), matrices))
        decided = _decided(block, found[fixed.size :], rate[fixed.size :], error[fixed.size :])
        decided |= self._known_estimates(block, rate, error, fixed)
        return LearnedBlock(block, decided, flips, _same(found, sources))

    def _cells(self, block: Block) -> Cells:
        if self.data.has_gaps:
            return Cells.of(self.data.counts_of(block.sensors))
        histogram = self.data.histogram_of(block.sensors)
        cells = np.flatnonzero(histogram)
        ends = np.array([0, cells.size])
        weights = histogram[cells]
        return Cells(np.zeros(1, np.int64), ends, cells, weights, block.sensors.size, float(weights.sum()))

    def _start(self, block: Block, pool: Pool) -> tuple[NDArray[np.int64], NDArray[np.float64], Flags]:
        """The sources to start from, cut down to the block, known ones first; their rates; which of these are fixed."""
        hidden = {c: e for c, e in _hidden(block, pool).items() if c not in self.known.sources}
        if hidden:
            pool = Pool({c: pool.sources[c] for c in pool.touching(block.sensors.tolist()) if c not in hidden})
        sources, rate = pool.restricted_to(block.sensors)
        if not self.known.sources and not hidden:
            return sources, rate, np.zeros(0, dtype=bool)
        fixed = Pool(hidden | {c: e for c, e in self.known.sources.items() if c in self.fixed})
        free = Pool({c: e for c, e in self.known.sources.items() if c not in self.fixed})
        given, given_rate = fixed.restricted_to(block.sensors)
        named, named_rate = free.restricted_to(block.sensors)
        unknown = ~np.isin(sources, named)
        kept = np.repeat([True, False], [given.size, named.size])
        return (
            np.concatenate([given, named, sources[unknown]]),
            np.concatenate([given_rate, named_rate, rate[unknown]]),
            kept,
        )

    def _known_estimates(
        self, block: Block, rate: NDArray[np.float64], error: NDArray[np.float64], fixed: Flags
    ) -> dict[Column, Estimate]:
        """The estimates of the known sources that the block decides."""
        place = {sensor: 1 << bit for bit, sensor in enumerate(block.sensors.tolist())}
        free = [column for column in self.known.touching(place) if column not in self.fixed]
        masks = sorted({sum(place.get(sensor, 0) for sensor in column) for column in free})
        where = {mask: int(fixed.sum()) + k for k, mask in enumerate(masks)}
        found = {}
        for column in free:
            if block.decides(column):
                k = where[sum(place[sensor] for sensor in column)]
                found[column] = Estimate(float(rate[k]), float(error[k]))
        return found

    def allowed(self, block: Block) -> Flags:
        """Which sets of the block's sensors may be a source: every two linked, nothing forbidden, not known already.

        If a set contains the anchor, links with the anchor are enough: a weak link may go unnoticed.
        """
        place = {sensor: bit for bit, sensor in enumerate(block.sensors.tolist())}
        sets = np.arange(1 << block.sensors.size)
        allowed, anchored = sets > 0, sets > 0
        for sensor, bit in place.items():
            near = 1 << bit | sum(1 << place[other] for other in self.near[sensor] if other in place)
            fits = (sets >> bit & 1 == 0) | (sets & ~near == 0)
            allowed &= fits
            if bit < block.n_anchor:
                anchored &= fits & (sets >> bit & 1 == 1)
        allowed |= anchored
        for together in self.forbidden:
            if together <= place.keys():
                mask = sum(1 << place[sensor] for sensor in together)
                allowed &= sets & mask != mask
        for column in self.known.sources:
            if block.decides(column):
                allowed[sum(1 << place[sensor] for sensor in column)] = False
        return allowed


def _hidden(block: Block, pool: Pool) -> dict[Column, Estimate]:
    """Wider sources of which a block for a lone source contains only the anchor: there they look like a lone source.

    The anchor has more sources than the block has room for. Their rates are taken as they are.
    """
    if not block.lone:
        return {}
    anchor, others = int(block.sensors[0]), set(block.sensors[1:].tolist())
    wider = (column for column in pool.reaching.get(anchor, ()) if len(column) > 1 and not others & set(column))
    return {column: pool.sources[column] for column in wider}


def _decided(
    block: Block, found: NDArray[np.int64], rate: NDArray[np.float64], error: NDArray[np.float64]
) -> dict[Column, Estimate]:
    """The sources that reach all of the anchor, as columns of the table."""
    anchor = (1 << block.n_anchor) - 1
    decided = {}
    for place in np.flatnonzero(found & anchor == anchor):
        column = np.sort(block.sensors[(found[place] >> np.arange(block.sensors.size)) & 1 == 1])
        if block.decides(tuple(column.tolist())):
            decided[tuple(column.tolist())] = Estimate(float(rate[place]), float(error[place]))
    return decided


def _same(found: NDArray[np.int64], start: NDArray[np.int64]) -> bool:
    return np.array_equal(np.sort(found), np.sort(start))
