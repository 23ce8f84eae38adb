"""Decoding by a table over all sets of a group's sensors: exact, ties included, a look-up a row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import n_words, packed
from bica.invert.groups import Group, Solution
from bica.kernels.bits import Words
from bica.kernels.decoding import add_source, decode_cells, fold_keys
from bica.progress import tracked
from bica.threads import in_threads

TABLE_SENSORS = 24
TABLE_WORDS = 1 << 25  # 256 MiB of costs and activities: 64 sources on 24 sensors, 1984 on 20


def fits_table(group: Group) -> bool:
    """Whether the table of this group stays within memory."""
    n_sensors, n_sources = group.sensors.size, group.sources.size
    return n_sensors <= TABLE_SENSORS and 1 + n_words(n_sources) <= TABLE_WORDS >> n_sensors


@dataclass(frozen=True, slots=True)
class LatticeTable:
    """What it costs to switch on exactly a set of sensors, and who is then active, indexed by the set."""

    group: Group
    cost: NDArray[np.float64]  # (2^n_sensors,), infinite where no activity switches on exactly this set
    active: Words  # (2^n_sensors, n_words)

    @classmethod
    def of(cls, group: Group) -> LatticeTable:
        """The table of a group of m sensors and n sources: time n 2^m."""
        n_sensors, n_sources = group.mixing.shape
        cost = np.full(1 << n_sensors, np.inf)
        active = np.zeros((1 << n_sensors, n_words(n_sources)), np.uint64)
        cost[0] = 0.0
        columns = packed(np.ascontiguousarray(group.mixing.T))[:, 0].tolist()
        for source, (sensors, price) in enumerate(zip(columns, group.price.tolist(), strict=True)):
            add_source(cost, active, sensors, source, price)
        return cls(group, cost, active)

    def solve(self, cells: NDArray[np.uint8]) -> Solution:
        """The cheapest activity behind each distinct row of cells.

        The rows together take at most time m 2^m, or 2^m for each distinct row if that is less. Rows with missing
        cells count like others. Of activities that cost the same, the one with the fewest active sources is taken,
        then the one whose bits spell the smallest number.
        """
        keys = np.empty(len(cells), np.uint64)
        fold_keys(cells, keys)
        order = np.argsort(keys, kind="stable")
        sorted_cells = np.ascontiguousarray(cells[order])
        best, least = np.empty((len(cells), self.active.shape[1]), np.uint64), np.empty(len(cells))

        def decode(rows: slice) -> None:
            decode_cells(self.cost, self.active, self.group.penalty, sorted_cells[rows], best[rows], least[rows])

        halves = _halves(sorted_cells)
        for _ in tracked(in_threads(decode, halves), "decoding distinct rows", len(halves)):
            pass
        active, cost = np.empty_like(best), np.empty_like(least)
        active[order], cost[order] = best, least
        return Solution(active, cost, np.zeros(len(cells)))


def _halves(cells: NDArray[np.uint8]) -> list[slice]:
    """The sorted rows by their last cell: between these, no work is shared."""
    cuts = np.searchsorted(cells[:, -1], [0, 1, 2, 3]).tolist()
    return [slice(start, stop) for start, stop in pairwise(cuts) if stop > start]
