"""The reports of monitors: rows in their order, as consecutive slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bica.data.chunks import Chunk, all_observed
from bica.data.counting import count_rows
from bica.data.patterns import PatternCounts
from bica.data.tables import open_table
from bica.errors import DataError
from bica.kernels.bits import Words


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """One row a slot, all in memory at a bit a cell."""

    words: Words  # (n_slots, n_words)
    observed: Words | None  # same shape, bit set where a cell was seen; None: all were
    sensors: tuple[str, ...]

    @staticmethod
    def of(table: Any) -> Slots:
        """Anything that ``BICA`` takes: an array, a frame, a file, "-" for standard input.

        >>> Slots.of([[0, 1], [1, 1]]).words.ravel()
        array([2, 3], dtype=uint64)
        """
        opened = open_table(table)
        chunks = list(opened.chunks())
        if not sum(len(chunk.words) for chunk in chunks):
            raise DataError("the table has no rows, so there is nothing to learn from")
        seen = all_observed(len(opened.sensors))
        observed = [np.broadcast_to(seen, c.words.shape) if c.observed is None else c.observed for c in chunks]
        complete = all(chunk.observed is None for chunk in chunks)
        words = np.vstack([chunk.words for chunk in chunks])
        return Slots(words, None if complete else np.vstack(observed), opened.sensors)

    def counts(self) -> PatternCounts:
        """The same rows without their order."""
        patterns, observed, weights = count_rows([Chunk(self.words, self.observed)], len(self.sensors))
        return PatternCounts(patterns, weights, self.sensors, None if self.observed is None else observed)
