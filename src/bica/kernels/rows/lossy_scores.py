"""The information that the rows hold on the numbers of one lossy source, from a few draws of the activity.

The score of a row, the slope of its log-likelihood, is the expectation of the score with known activity (Fisher):

    by p: 1/p where the source is on, -1/(1 - p) where it is off;
    by reach_i, where it is on: -1/fail_i for a 0, quiet_i / (fail_i (1 - quiet_i)) for a 1;
    by leak_i: -1/(1 - leak_i) for a 0, quiet_i / ((1 - leak_i) (1 - quiet_i)) for a 1.

The information is the sum over the rows of the outer product of that expectation with itself. The products of the
scores under two different draws of the activity have just that expectation: with s_1 ... s_K of K independent draws,

    [(sum s_k)(sum s_k)' - sum s_k s_k'] / (K (K - 1)),        and with known activity it would be  sum s_k s_k' / K.

The difference is what is lost because activity is hidden (Louis' correction): it shows as draws that differ.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.rows.lossy import LossyCells, Numbers, Places

ZERO = -1  # in place of a cell: the sensor shows 0


@compiled
def _score(
    is_on: bool, at_of: Places, heard: Numbers, quiet: Numbers, probability: float, fail: Numbers, leak: Numbers,
    score: Numbers,
) -> None:  # fmt: skip
    """The score of one row with known activity: by p, by the reach of each sensor, by the leak of each sensor."""
    n = fail.size
    score[0] = 1.0 / probability if is_on else -1.0 / (1.0 - probability)
    for k in range(n):
        at = at_of[k]
        if at == ZERO:
            score[1 + k], score[1 + n + k] = -1.0 / fail[k] if is_on else 0.0, -1.0 / (1.0 - leak[k])
        else:
            odds = heard[at] * quiet[at] / (1.0 - quiet[at])
            score[1 + k], score[1 + n + k] = odds / fail[k] if is_on else 0.0, odds / (1.0 - leak[k])


@compiled
def _add_outer(weight: float, vector: Numbers, matrix: Numbers) -> None:
    """Add the outer product of a vector with itself."""
    for a in range(vector.size):
        for b in range(vector.size):
            matrix[a, b] += weight * vector[a] * vector[b]


@compiled
def source_information(
    rows: Places, is_on: NDArray[np.bool_], quiet: Numbers, cells: LossyCells, place: NDArray[np.int32],
    probability: float, fail: Numbers, leak: Numbers, squares: Numbers, products: Numbers, slope: Numbers,
) -> None:  # fmt: skip
    """Add up over the given rows: ``squares`` of s_k s_k', ``products`` of the sum of s_k, and its ``slope``.

    Scores s_k are by p, reach and leaks, so the matrices are (1 + 2k, 1 + 2k). ``is_on`` is (n_draws, n_rows) and
    ``quiet`` (n_draws, n_cells); ``place`` is where a sensor stands in the support of the source, or -1.
    """
    (starts, ones), n = cells.ones, fail.size
    at_of, one, every = np.empty(n, np.int64), np.empty(1 + 2 * n), np.empty(1 + 2 * n)
    for r in range(rows.size):
        row, weight = rows[r], cells.weights[rows[r]]
        for k in range(n):
            at_of[k] = ZERO
        for at in range(starts[row], starts[row + 1]):
            if place[ones[at]] >= 0:
                at_of[place[ones[at]]] = at
        for a in range(every.size):
            every[a] = 0.0
        for draw in range(quiet.shape[0]):
            _score(is_on[draw, r], at_of, cells.heard, quiet[draw], probability, fail, leak, one)
            _add_outer(weight, one, squares)
            for a in range(one.size):
                every[a] += one[a]
                slope[a] += weight * one[a]
        _add_outer(weight, every, products)
