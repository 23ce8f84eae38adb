"""The course of one group's sources through consecutive slots, as far as it is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bica.invert.chains import STRETCH, Block, Chains
from bica.invert.groups import Group
from bica.invert.shown import shown_cost
from bica.kernels.decoding import TIE

EXACT_SOURCES = 12  # all their 4096 states in every slot
BLOCK_SOURCES = 4  # of larger groups at a time
SWEEPS = 20
COUNTED_SLOTS = 16 * STRETCH  # enough to tell how long sources stay on


class Course:
    """A group, what its sensors showed in every slot, and which of its sources were on, to be improved."""

    def __init__(
        self, group: Group, cells: NDArray[np.uint8], activity: NDArray[np.bool_], at_once: int | None = None
    ) -> None:
        self.group, self.cells = group, cells
        self.activity = activity.copy()
        at_once = EXACT_SOURCES if at_once is None else at_once
        self.blocks = _blocks(group, at_once)
        self.exact = group.sources.size <= at_once or not group.mixing.any()

    def improve(self, chains: Chains) -> None:
        """Make the course likelier, block by block, until no block can; in an exact group there is but one.

        ``chains`` are those of the group's sources. No step makes the course less likely.
        """
        for _ in range(1 if self.exact else SWEEPS):
            improved = [self._improve_block(block, chains.pick(block.sources)) for block in self.blocks]
            if not any(improved):
                return

    def _improve_block(self, block: Block, chains: Chains) -> bool:
        cells = block.cells(self.cells, self.activity)
        before, after = self.activity[:, block.sources], block.cheapest(cells, chains)
        if (after == before).all() or not block.cost(cells, after, chains) < block.cost(cells, before, chains) - TIE:
            return False
        self.activity[:, block.sources] = after
        return True

    def moves(self, chains: Chains) -> NDArray[np.float64]:
        """How often each source is expected to make each move, given the rows: (n_sources, 2, 2).

        In an exact group that is the expectation over all courses. In others it is that of a source and its
        neighbours while the rest runs its present course. At most some 16,000 slots are looked at.
        """
        counts = np.zeros(chains.move.shape)
        slots = _stretches(len(self.cells))
        for block in self.blocks:
            cells = block.cells(self.cells, self.activity)
            found = block.moves(cells, chains.pick(block.sources), slots)
            if self.exact:
                counts[block.sources] = found
            else:
                counts[block.sources[0]] = found[0]
        return counts

    def cost(self, chains: Chains) -> float:
        """``-log`` of the chance of the course and the rows together, up to what no course changes."""
        shown = shown_cost(self.group.penalty, self.group.mixing, self.activity, self.cells)
        return chains.cost(self.activity) + float(shown.sum())


def _blocks(group: Group, at_once: int) -> list[Block]:
    """All sources at once if they are few; otherwise each source with those that share most sensors with it."""
    each = np.arange(group.sources.size)
    if not group.mixing.any():
        return [Block(group, each[[j]]) for j in each]
    if group.sources.size <= at_once:
        return [Block(group, each)]
    shared = group.mixing.T.astype(np.int64) @ group.mixing
    nearest = np.argsort(-shared - len(shared) * group.sensors.size * np.eye(len(shared), dtype=int), kind="stable")
    return [Block(group, near[:BLOCK_SOURCES]) for near in nearest]


def _stretches(n_slots: int) -> list[slice]:
    """Stretches of slots, evenly spread where there are more than enough."""
    starts = range(0, n_slots, STRETCH)
    n_kept = min(len(starts), COUNTED_SLOTS // STRETCH)
    chosen = [starts[number * len(starts) // n_kept] for number in range(n_kept)]
    return [slice(first, min(n_slots, first + STRETCH)) for first in chosen]
