"""Fisher's exact test of two binary columns."""

from math import exp, lgamma

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled

Counts = NDArray[np.float64]
NEGLIGIBLE = 1e-17  # of a sum: a smaller term does not change a double
WORTH_TESTING = 1.5  # standard deviations above the expected count below which no pair is tested exactly
FIRST_ROOM = 1024  # pairs; arrays that are full are doubled


@compiled
def _log_choose(n: float, k: float) -> float:
    """The log of the binomial coefficient."""
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)


@compiled
def _short_tail(both: float, first: float, second: float, total: float, most: float) -> float:
    """The sum of the hypergeometric terms from ``both`` to ``most``, each smaller than the one before."""
    log_term = _log_choose(first, both) + _log_choose(total - first, second - both) - _log_choose(total, second)
    term = tail = exp(log_term)
    k = both
    while k < most and term > NEGLIGIBLE * tail:
        term *= (first - k) * (second - k) / ((k + 1.0) * (total - first - second + k + 1.0))
        tail += term
        k += 1.0
    return tail


@compiled
def fisher_tail(both: float, first: float, second: float, total: float) -> float:
    """The probability that shuffled columns with ``first`` and ``second`` ones share ``both`` rows or more."""
    least, most = max(0.0, first + second - total), min(first, second)
    if both <= least:
        return 1.0
    if both * total <= first * second:  # the long tail, whose terms may start at 0: 1 less the short one
        return 1.0 - _short_tail(first - both + 1.0, first, total - second, total, first - least)
    return min(1.0, _short_tail(both, first, second, total, most))


@compiled
def fisher_tails(both: Counts, first: Counts, second: Counts, total: Counts) -> Counts:
    """``fisher_tail`` of every pair of columns, from (n, n) tables of counts; the diagonal is 1."""
    n = both.shape[0]
    tails = np.ones((n, n))
    for i in range(n):
        for k in range(i):
            tails[i, k] = tails[k, i] = fisher_tail(both[i, k], first[i, k], second[i, k], total[i, k])
    return tails


@compiled
def likely_pairs(
    both: Counts, on: Counts, observed: Counts, level: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], Counts, Counts]:
    """The pairs ``i > k`` of columns that unrelated columns would equal or exceed with probability ``level`` at most.

    ``both[i, k]`` counts rows in which both are on, ``observed[i, k]`` rows in which both were observed, ``on[i, k]``
    the ones of column i in those. Returns i, k, the excess over the expected count in standard deviations, and the
    exact probability. Pairs without a clear excess are not tested.
    """
    n = both.shape[0]
    n_found = 0
    first, second = np.empty(FIRST_ROOM, np.int64), np.empty(FIRST_ROOM, np.int64)
    excess, tail = np.empty(FIRST_ROOM), np.empty(FIRST_ROOM)
    for i in range(n):
        for k in range(i):
            total = observed[i, k]
            if total < 2.0:
                continue
            expected = on[i, k] * on[k, i] / total
            spread = expected * (1.0 - on[i, k] / total) * (1.0 - on[k, i] / total) * total / (total - 1.0)
            if both[i, k] - expected <= WORTH_TESTING * np.sqrt(spread):
                continue
            probability = fisher_tail(np.rint(both[i, k]), np.rint(on[i, k]), np.rint(on[k, i]), np.rint(total))
            if probability > level:
                continue
            if n_found == first.size:
                first, second = np.append(first, first), np.append(second, second)
                excess, tail = np.append(excess, excess), np.append(tail, tail)
            first[n_found], second[n_found], tail[n_found] = i, k, probability
            excess[n_found] = (both[i, k] - expected) / np.sqrt(spread) if spread > 0.0 else np.inf
            n_found += 1
    return first[:n_found], second[:n_found], excess[:n_found], tail[:n_found]
