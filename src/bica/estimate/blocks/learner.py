"""Learning one block of sensors with the noise known, from a pool of candidate sources that all blocks share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bica.data.pairs import ColumnBits
from bica.data.patterns import PatternCounts
from bica.estimate.blocks.plan import Block, Links
from bica.estimate.lattice import Cells
from bica.estimate.whole import covariance_of
from bica.kernels.lattice.block_climb import BlockRows, climb, profiled_flip_rate
from bica.kernels.lattice.block_search import BlockChannel, SetRules, search_block
from bica.kernels.lattice.channel import channel_matrices
from bica.kernels.lattice.likelihood import CellGroups
from bica.model.noise import Noise

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
        place = {sensor: 1 << bit for bit, sensor in enumerate(sensors.tolist())}
        rates: dict[int, float] = defaultdict(float)
        for column in self.touching(place):
            rates[sum(place.get(sensor, 0) for sensor in column)] += self.sources[column].rate
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

    data: PatternCounts
    columns: ColumnBits
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
        error[moving] = np.sqrt(np.diag(covariance_of(information[np.ix_(moving, moving)])))
        flips = FlipSlope(*profiled_flip_rate(found, rate, fixed, rows, float(rates[0][0]), matrices))
        decided = _decided(block, found[fixed.size :], rate[fixed.size :], error[fixed.size :])
        decided |= self._known_estimates(block, rate, error, fixed)
        return LearnedBlock(block, decided, flips, _same(found, sources))

    def _cells(self, block: Block) -> Cells:
        if self.columns.observed is not None:
            return Cells.of(self.data.project(block.sensors.tolist()))
        histogram = self.columns.histogram(block.sensors)
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
        allowed, anchored = sets > 0, np.ones(sets.size, dtype=bool)
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
