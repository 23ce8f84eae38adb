"""Small sets of sensors that can be learned exactly: each sensor with its neighbours, cut up where they are many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.estimate.links import Links

WHOLE = 10  # a sensor and its neighbours up to here are one block
LARGEST = 12  # sensors of any block
CROWD = 24  # with more common neighbours than that even triples have too many
COMPANY = 7  # a block around a pair is filled up to here with other neighbours


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some sensors, the anchor first: every source that reaches all of the anchor lies inside the block."""

    sensors: NDArray[np.int64]
    n_anchor: int
    lone: bool = False  # the anchor is one sensor, and only a source of its own is looked for

    def decides(self, column: tuple[int, ...]) -> bool:
        """Whether what is learned here says if there is a source of these sensors."""
        anchor, sensors = self.sensors[: self.n_anchor].tolist(), self.sensors.tolist()
        return set(anchor) <= set(column) <= set(sensors) and not (self.lone and len(column) > 1)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The blocks of a table, and what they leave open."""

    blocks: tuple[Block, ...]
    crowded: tuple[int, ...]  # sensors without a block of all their neighbours: whether they have lone sources is open
    open_sets: tuple[tuple[int, ...], ...]  # sets with too many common neighbours: wide sources may reach them

    @classmethod
    def of(cls, links: Links) -> Plan:
        """A block for every sensor; where two linked sensors both have too many neighbours, one for the pair.

        A source that reaches two sensors reaches common neighbours of both only, so a pair needs a smaller block, and
        a triple a smaller one still.
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
    """The pairs of the sensor with its neighbours, or triples where a pair has too many common ones, with those.

    None stands for more common neighbours than anybody wants to see: whole cliques of hundreds of sensors occur.
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
    """The strongest other neighbours of the anchor: they explain part of what its sensors show."""
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
