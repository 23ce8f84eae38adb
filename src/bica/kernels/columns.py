"""Columns of a binary table as bit sets over its rows: cheap where whole columns are compared, dear for single rows.

And Fisher's exact test of two such columns.
"""

from math import exp, lgamma, log, log1p, pi

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled

Square = NDArray[np.float64]


@compiled
def count_bits(word: np.uint64) -> np.uint64:
    """How many bits are set; compilers know this idiom and use their own instruction."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def transpose_bits(words: Words, columns: Words) -> None:
    """Set bit ``row % 64`` of ``columns[i, row // 64]`` where bit ``i`` of the row is set; time grows with the ones."""
    for row in range(words.shape[0]):
        place, bit = row // 64, np.uint64(1) << np.uint64(row % 64)
        for word in range(words.shape[1]):
            left = words[row, word]
            while left != np.uint64(0):
                lowest = left & (~left + np.uint64(1))
                columns[64 * word + np.int64(count_bits(lowest - np.uint64(1))), place] |= bit
                left ^= lowest


@compiled
def add_bit_weights(words: Words, weights: NDArray[np.float64], totals: NDArray[np.float64]) -> None:
    """Add the weight of every row to the totals of the columns whose bits are set; time grows with the ones."""
    for row in range(words.shape[0]):
        for word in range(words.shape[1]):
            left = words[row, word]
            while left != np.uint64(0):
                lowest = left & (~left + np.uint64(1))
                totals[64 * word + np.int64(count_bits(lowest - np.uint64(1)))] += weights[row]
                left ^= lowest


@compiled
def add_common_bits(
    left: Words, right: Words, half: bool, scale: float, lines: NDArray[np.int64], counts: Square
) -> None:
    """Add ``scale`` times the number of rows that columns i and k share to ``counts[i, k]``, for every i of ``lines``.

    With ``half``, for two equal tables, only ``k <= i`` is counted.
    """
    for i in lines:
        for k in range(i + 1 if half else right.shape[0]):
            common = np.uint64(0)
            for word in range(left.shape[1]):
                common += count_bits(left[i, word] & right[k, word])
            counts[i, k] += scale * np.float64(common)


@compiled
def block_histogram(
    columns: Words, places: NDArray[np.int64], weights: NDArray[np.float64], histogram: NDArray[np.float64]
) -> None:
    """Add the weight of every row to the cell of the histogram that its bits in the columns ``places`` spell."""
    for word in range(columns.shape[1]):
        for bit in range(min(64, weights.size - 64 * word)):
            cell = np.int64(0)
            for k in range(places.size):
                cell |= np.int64((columns[places[k], word] >> np.uint64(bit)) & np.uint64(1)) << k
            histogram[cell] += weights[64 * word + bit]


@compiled
def count_blocks(
    columns: Words,
    n_rows: int,
    places: NDArray[np.int64],
    starts: NDArray[np.int64],
    cells: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Count the patterns of many blocks: of ``places[starts[b]:starts[b + 1]]``, from ``counts[cells[b]]`` on.

    Eight columns of eight rows are a matrix of 64 bits. Turned round, its bytes are the patterns of the eight rows.
    """
    for b in range(starts.size - 1):
        size, first = starts[b + 1] - starts[b], starts[b]
        for word in range((n_rows + 63) // 64):
            for byte in range(min(8, (n_rows - 64 * word + 7) // 8)):
                low, high, shift = np.uint64(0), np.uint64(0), np.uint64(8 * byte)
                for k in range(size):
                    part = (columns[places[first + k], word] >> shift) & np.uint64(0xFF)
                    if k < 8:
                        low |= part << np.uint64(8 * k)
                    else:
                        high |= part << np.uint64(8 * (k - 8))
                n_here = min(8, n_rows - 64 * word - 8 * byte)
                if low == np.uint64(0) and high == np.uint64(0):
                    counts[cells[b]] += n_here
                    continue
                low, high = _turned(low), _turned(high) if size > 8 else high
                for row in range(n_here):
                    pattern = (low >> np.uint64(8 * row)) & np.uint64(0xFF)
                    pattern |= ((high >> np.uint64(8 * row)) & np.uint64(0xFF)) << np.uint64(8)
                    counts[cells[b] + np.int64(pattern)] += 1


@compiled
def _turned(square: np.uint64) -> np.uint64:
    """Eight bytes of eight bits as a matrix, turned round (Warren, Hacker's Delight, 7-3): swap ever larger corners."""
    swap = (square ^ (square >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
    square = square ^ swap ^ (swap << np.uint64(7))
    swap = (square ^ (square >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
    square = square ^ swap ^ (swap << np.uint64(14))
    swap = (square ^ (square >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
    return square ^ swap ^ (swap << np.uint64(28))


Counts = NDArray[np.float64]
NEGLIGIBLE = 1e-17  # of a sum: a smaller term does not change a double
WORTH_TESTING = 1.5  # standard deviations above the expected count below which no pair is tested exactly
FIRST_ROOM = 1024  # pairs; arrays that are full are doubled


# The probability that k of the ``first`` ones fall on the ``second`` ones is a ratio of three binomial ones,
#
#     b(k; first, p) b(second - k; total - first, p) / b(second; total, p),    p = second / total,
#
# and log b(x; n, p) = s(n) - s(x) - s(n - x) - d(x, np) - d(n - x, nq) + log(n / (2 pi x (n - x))) / 2 with the error s
# of Stirling's formula and the deviance d(x, m) = x log(x / m) + m - x (Loader, Fast and accurate computation of
# binomial probabilities, 2000). Every part is small, so this stays exact beyond 10^12 rows, where differences of log
# factorials, themselves as large as the counts, have lost all digits.
#
# The terms of the tail are added one by one. After MOST_TERMS of them the sum is smooth (its standard deviation is
# above 10^4), and the Euler-Maclaurin formula gives the rest: an integral, by Gauss's rule on panels, and two
# corrections.
MOST_TERMS = 1 << 17
PANELS = 32
LOG_NEGLIGIBLE = -45.0  # of a term, relative to the first one of the integral
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)


@compiled
def _stirling_error(n: float) -> float:
    """The log of the factorial of ``n``, less Stirling's formula."""
    if n < 16.0:
        return lgamma(n + 1.0) - (n + 0.5) * log(n) + n - 0.5 * log(2.0 * pi)
    square = n * n
    return (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / n


@compiled
def _deviance(x: float, mean: float) -> float:
    """How unlikely a count ``x`` is for its mean: x log(x / mean) + mean - x."""
    if abs(x - mean) >= 0.1 * (x + mean):
        return x * log(x / mean) + mean - x
    ratio = (x - mean) / (x + mean)
    total, power = (x - mean) * ratio, 2.0 * x * ratio
    for k in range(3, 20, 2):  # the series of the logarithm, each term at most a hundredth of the one before
        power *= ratio * ratio
        total += power / k
    return total


@compiled
def _log_binomial(x: float, n: float, p: float, q: float) -> float:
    """The log of the probability of ``x`` ones among ``n``; ``q`` is 1 - ``p``."""
    if x <= 0.0:
        return n * log1p(-p)
    if x >= n:
        return n * log1p(-q)
    parts = _stirling_error(n) - _stirling_error(x) - _stirling_error(n - x)
    return parts - _deviance(x, n * p) - _deviance(n - x, n * q) + 0.5 * log(n / (2.0 * pi * x * (n - x)))


@compiled
def _log_term(k: float, first: float, second: float, total: float) -> float:
    """The log of the probability that shuffled columns are on together exactly ``k`` times."""
    p, q = second / total, (total - second) / total
    both = _log_binomial(k, first, p, q) + _log_binomial(second - k, total - first, p, q)
    return both - _log_binomial(second, total, p, q)


@compiled
def _short_tail(both: float, first: float, second: float, total: float, most: float) -> float:
    """The sum of the hypergeometric terms from ``both`` to ``most``, each smaller than the one before."""
    term = tail = exp(_log_term(both, first, second, total))
    k, n_terms, ratio = both, 0, 1.0
    while k < most and term > NEGLIGIBLE * tail:
        if n_terms == MOST_TERMS:
            return tail + term * _smooth_rest(k, log(ratio), first, second, total, most)
        ratio = (first - k) * (second - k) / ((k + 1.0) * (total - first - second + k + 1.0))
        term *= ratio
        tail += term
        k += 1.0
        n_terms += 1
    return tail


@compiled
def _smooth_rest(k: float, slope: float, first: float, second: float, total: float, most: float) -> float:
    """The sum of all terms behind term ``k``, whose logarithm falls by ``slope``, in units of that term."""
    start, width = _log_term(k, first, second, total), float(MOST_TERMS)
    while k + width < most and _log_term(k + width, first, second, total) - start > LOG_NEGLIGIBLE:
        width *= 1.5
    half = 0.5 * min(width, most - k) / PANELS
    integral = 0.0
    for panel in range(PANELS):
        centre = k + (2.0 * panel + 1.0) * half
        for i in range(NODES.size):
            integral += NODE_WEIGHTS[i] * exp(_log_term(centre + half * NODES[i], first, second, total) - start)
    return half * integral - 0.5 - slope / 12.0


@compiled
def fisher_tail(both: float, first: float, second: float, total: float) -> float:
    """The probability that shuffled columns with so many ones are on together at least ``both`` times."""
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
    tails = np.empty((n, n))
    for i in range(n):
        tails[i, i] = 1.0
        for k in range(i):
            tails[i, k] = tails[k, i] = fisher_tail(both[i, k], first[i, k], second[i, k], total[i, k])
    return tails


@compiled
def likely_pairs(
    both: Counts, on: Counts, observed: Counts, level: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], Counts, Counts]:
    """The pairs ``i > k`` of columns that are on together too often for unrelated ones, at this significance ``level``.

    ``both[i, k]`` counts rows in which both are on, ``observed[i, k]`` rows in which both were observed, ``on[i, k]``
    the ones of column i in those. Returns i, k, the excess over the expected count in standard deviations, and the
    exact probability. Pairs without a clear excess are not tested.
    """
    n, n_found, room = both.shape[0], 0, FIRST_ROOM
    places, found = np.empty((2, room), np.int64), np.empty((2, room))  # first and second; excess and probability
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
            if n_found == room:
                room *= 2
                more_places, more_found = np.empty((2, room), np.int64), np.empty((2, room))
                for kind in range(2):
                    for j in range(n_found):
                        more_places[kind, j], more_found[kind, j] = places[kind, j], found[kind, j]
                places, found = more_places, more_found
            places[0, n_found], places[1, n_found], found[1, n_found] = i, k, probability
            found[0, n_found] = (both[i, k] - expected) / np.sqrt(spread) if spread > 0.0 else np.inf
            n_found += 1
    return places[0, :n_found], places[1, :n_found], found[0, :n_found], found[1, :n_found]
