"""Which sensors share a source: the paper's T1, with the exact p-value of its permutation test."""

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import rows_a_chunk, unpacked
from bica.data.patterns import PatternCounts
from bica.kernels.pairs import fisher_tails


def pair_counts(data: PatternCounts) -> NDArray[np.float64]:
    """How often each two sensors were on together: (n_sensors, n_sensors), the ones of each on the diagonal."""
    both = np.zeros((data.n_sensors, data.n_sensors))
    step = rows_a_chunk(data.n_sensors)
    for start in range(0, len(data.weights), step):
        rows = unpacked(data.patterns[start : start + step], data.n_sensors).astype(float)
        both += rows.T @ (rows * data.weights[start : start + step, None])
    return both


def pair_p_values(data: PatternCounts) -> NDArray[np.float64]:
    """The chance that two unrelated sensors are on together so often: symmetric (n_sensors, n_sensors), diagonal 1.

    OR mixtures only ever correlate positively, so the test is one-sided: the hypergeometric tail, which is what the
    share of random permutations converges to.

    >>> rows = np.repeat([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]], 10, axis=0)
    >>> pair_p_values(PatternCounts.of(rows)).round(2)
    array([[1.  , 0.  , 0.62],
           [0.  , 1.  , 0.62],
           [0.62, 0.62, 1.  ]])
    """
    both = np.rint(pair_counts(data))  # weights need not be whole, a permutation test needs counts
    return fisher_tails(both, np.diag(both).copy(), float(np.rint(data.n_samples)))


def dependent_pairs(p_values: NDArray[np.float64], significance: float, *, corrected: bool = True) -> NDArray[np.bool_]:
    """Pairs whose p-value is below the level; ``corrected`` divides the level by the number of pairs (Bonferroni)."""
    n_pairs = max(1, len(p_values) * (len(p_values) - 1) // 2)
    return p_values <= (significance / n_pairs if corrected else significance)
