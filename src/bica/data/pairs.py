"""Which two sensors depend on each other: the paper's T1, with the exact p-value of its permutation test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import rows_a_chunk, unpacked
from bica.data.patterns import PatternCounts
from bica.kernels.pairs import fisher_tails

Square = NDArray[np.float64]  # (n_sensors, n_sensors)


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """How often each two sensors were on together, over the rows in which both were observed.

    >>> pairs = PairCounts.of(PatternCounts.of([[1, 1, 0], [1, 0, 1]], sample_weight=[2, 3]))
    >>> pairs.both
    array([[5., 2., 3.],
           [2., 2., 0.],
           [3., 0., 3.]])
    """

    both: Square  # rows with both on; the ones of each sensor on the diagonal
    on: Square  # on[i, k]: rows with i on and k observed
    seen: Square  # rows with both observed

    @classmethod
    def of(cls, data: PatternCounts) -> PairCounts:
        """Count them: time linear in the distinct rows, and quadratic in the sensors."""
        shape, step = (data.n_sensors, data.n_sensors), rows_a_chunk(data.n_sensors)
        both, on, seen = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for start in range(0, len(data.weights), step):
            part = slice(start, start + step)
            rows = unpacked(data.patterns[part], data.n_sensors).astype(float)
            weighted = rows * data.weights[part, None]
            both += rows.T @ weighted
            if data.observed is not None:
                known = unpacked(data.observed[part], data.n_sensors).astype(float)
                on += weighted.T @ known
                seen += known.T @ (known * data.weights[part, None])
        if data.observed is None:
            on, seen = np.repeat(np.diag(both)[:, None], data.n_sensors, axis=1), np.full(shape, data.n_samples)
        return cls(both, on, seen)

    def expected(self) -> Square:
        """How often both would be on if the sensors were unrelated."""
        return self.on * self.on.T / np.maximum(self.seen, 1.0)

    def together(self) -> Square:
        """The chance that two unrelated sensors are on together so often: symmetric, diagonal 1."""
        both, on, seen = self._whole()
        return fisher_tails(both, on, on.T.copy(), seen)

    def apart(self) -> Square:
        """The chance that two unrelated sensors are on together so seldom: symmetric, diagonal 1.

        It is the other tail of the same test: the first is on without the second so often.

        >>> rows = np.repeat([[0, 0], [1, 0], [0, 1]], 10, axis=0)
        >>> float(PairCounts.of(PatternCounts.of(rows)).apart()[0, 1].round(3))
        0.006
        """
        both, on, seen = self._whole()
        return fisher_tails(on - both, on, seen - on.T, seen)

    def _whole(self) -> tuple[Square, Square, Square]:
        """Weights need not be whole, but a permutation test needs counts."""
        return np.rint(self.both), np.rint(self.on), np.rint(self.seen)


def pair_p_values(data: PatternCounts) -> Square:
    """The chance that two unrelated sensors are on together so often: symmetric (n_sensors, n_sensors), diagonal 1.

    OR mixtures only ever correlate positively, so the test is one-sided: the hypergeometric tail, which is what the
    share of random permutations converges to.

    >>> rows = np.repeat([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]], 10, axis=0)
    >>> pair_p_values(PatternCounts.of(rows)).round(2)
    array([[1.  , 0.  , 0.62],
           [0.  , 1.  , 0.62],
           [0.62, 0.62, 1.  ]])
    """
    return PairCounts.of(data).together()


def dependent_pairs(p_values: Square, significance: float, *, corrected: bool = True) -> NDArray[np.bool_]:
    """Pairs whose p-value is below the level; ``corrected`` divides the level by the number of pairs (Bonferroni)."""
    n_pairs = max(1, len(p_values) * (len(p_values) - 1) // 2)
    return p_values <= (significance / n_pairs if corrected else significance)
