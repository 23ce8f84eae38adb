"""Sources that look like parts of fewer ones, each of which reaches its sensors only at times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.model.or_mixture import OrMixture

SOURCES_A_SENSOR = 2  # more than this, and most of them parts of others, is what lossy edges leave behind
MOST = 0.75  # 0.79 to 0.97 in lossy tables, real and simulated; 0.35 to 0.55 in exact ones of 20 sources and 8 sensors


@dataclass(frozen=True, slots=True)
class Splinters:
    """Many sources, most of which drive some of the sensors of another one and no others."""

    n_sources: int
    n_parts: int

    @classmethod
    def of(cls, model: OrMixture) -> Splinters | None:
        """The count of parts, or None if they are few; time goes with the pairs of sources.

        >>> subsets = np.array([[s >> i & 1 for s in range(1, 16)] for i in range(4)])
        >>> Splinters.of(OrMixture(subsets, np.full(15, 0.1)))
        Splinters(n_sources=15, n_parts=14)
        """
        if model.n_sources <= SOURCES_A_SENSOR * model.mixing.any(axis=1).sum():
            return None
        n_parts = int(_is_part(model.mixing).sum())
        return cls(model.n_sources, n_parts) if n_parts >= MOST * model.n_sources else None

    def words(self) -> str:
        """What this points to, and what helps."""
        return (
            f"{self.n_parts} of {self.n_sources} sources are parts of others, as if a few sources reached their "
            "sensors only at times; give the sensors' miss rates if they are known"
        )


def _is_part(mixing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which columns have all their ones in another, wider column."""
    reach = mixing.astype(np.float32)  # counts up to 2^24 stay exact
    size = reach.sum(axis=0)
    inside: NDArray[np.bool_] = (reach.T @ reach == size[:, None]) & (size > size[:, None])
    return np.asarray(inside.any(axis=1))
