"""One source on trial: what it is worth beside its neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.in_time.sources import ChainedSources
from bica.invert.chains import STRETCH, Block


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A source, the last of ``sources``, with its nearest neighbours; all others run a given course."""

    block: Block
    cells: NDArray[np.uint8]  # what the block's sensors showed, and where others were on
    sources: ChainedSources

    @property
    def source(self) -> ChainedSources:
        """The source on trial."""
        return self.sources.pick(np.array([self.sources.n_sources - 1]))

    def gain(self) -> float:
        """By how much the source raises the log of the chance of all slots, summed over the neighbours' courses."""
        return self.block.gain_of_last(self.cells, self.sources.chains)

    def course(self) -> NDArray[np.bool_]:
        """The likeliest course of all sources of the block together: (n_slots, n_sources)."""
        return self.block.cheapest(self.cells, self.sources.chains)

    def refined(self, n_steps: int) -> Trial:
        """The same with the source's own chances improved by expectation and maximisation."""
        parts = [slice(first, first + STRETCH) for first in range(0, len(self.cells), STRETCH)]
        sources = self.sources
        for _ in range(n_steps):
            moved = sources.moving(self.block.moves(self.cells, sources.chains, parts))
            last = np.arange(sources.n_sources) == sources.n_sources - 1
            sources = replace(
                sources,
                probability=np.where(last, moved.probability, sources.probability),
                stay=np.where(last, moved.stay, sources.stay),
            )
        return replace(self, sources=sources)
