"""Sources that stay on for a while, as the search in time changes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.invert.chains import Chains

LEAST_START, LEAST_STOP, MOST = 1e-6, 1e-4, 0.999  # chances to start and to stop, so that no course is impossible


@dataclass(frozen=True, slots=True, eq=False)
class ChainedSources:
    """Which sensors each source reaches, how often it is on, and for how many slots at a time."""

    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    probability: NDArray[np.float64]  # (n_sources,)
    stay: NDArray[np.float64]  # (n_sources,), mean number of slots

    @property
    def n_sources(self) -> int:
        """How many there are."""
        return self.probability.size

    @property
    def chains(self) -> Chains:
        """The chances of their moves."""
        return Chains.of(self.probability, self.stay)

    def pick(self, places: NDArray[np.int64]) -> ChainedSources:
        """Only these."""
        return ChainedSources(self.mixing[:, places], self.probability[places], self.stay[places])

    def plus(self, other: ChainedSources) -> ChainedSources:
        """These, then the others."""
        return ChainedSources(
            np.hstack([self.mixing, other.mixing]),
            np.concatenate([self.probability, other.probability]),
            np.concatenate([self.stay, other.stay]),
        )

    def moving(self, moves: NDArray[np.float64]) -> ChainedSources:
        """The same sources with the chances under which these moves are likeliest: (n_sources, 2, 2)."""
        start = np.clip(_share(moves[:, 0, 1], moves[:, 0, 0]), LEAST_START, MOST)
        stop = np.clip(_share(moves[:, 1, 0], moves[:, 1, 1]), LEAST_STOP, MOST)
        return ChainedSources(self.mixing, start / (start + stop), 1 / stop)

    def nearest(self, column: NDArray[np.bool_], most: int) -> NDArray[np.int64]:
        """Up to ``most`` sources that share sensors with ``column``.

        First the two that are most like it, then those that reach nothing else and so could step in for a part of it,
        then the rest, always the most similar first.
        """
        shared = column.astype(np.int64) @ self.mixing
        either = (column[:, None] | self.mixing).sum(axis=0)
        order = np.argsort(-shared / np.maximum(either, 1), kind="stable")
        order = order[shared[order] > 0]
        inside = either[order] == column.sum()
        inside[:2] = True
        return order[np.argsort(~inside, kind="stable")][:most]


def source_of(column: NDArray[np.bool_], probability: float, stay: float) -> ChainedSources:
    """One source of these sensors."""
    return ChainedSources(column[:, None], np.array([probability]), np.array([stay]))


def _share(moved: NDArray[np.float64], stayed: NDArray[np.float64]) -> NDArray[np.float64]:
    return moved / np.maximum(moved + stayed, 1e-300)
