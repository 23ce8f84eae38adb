"""Which sources might be parts of one: those that are on together too often, and those that overlap."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.rows_lists import Lists

Numbers = NDArray[np.float64]


@compiled
def count_together(
    sources: NDArray[np.int64], active: Lists, rows_of: Lists, weights: Numbers, n_on: Numbers, surprise: float,
    least: float, share: float,
) -> tuple[NDArray[np.int64], Numbers]:  # fmt: skip
    """Pairs (source, other) that are on together in at least ``least`` rows, ``share`` of the source's, too often.

    ``n_on`` is the weight of the rows of each source. Pairs (n, 2) and the weight of their common rows.
    """
    n_sources, total = n_on.size, weights.sum()
    both, touched = np.zeros(n_sources), np.empty(n_sources, np.int32)
    pairs, counts, size = np.empty((64, 2), np.int64), np.empty(64), 0
    for source in sources:
        n_touched = 0
        for row in rows_of.items[rows_of.start[source] : rows_of.start[source + 1]]:
            for other in active.items[active.start[row] : active.start[row + 1]]:
                if both[other] == 0.0:
                    touched[n_touched] = other
                    n_touched += 1
                both[other] += weights[row]
        for k in range(n_touched):
            other = touched[k]
            expected = n_on[source] * n_on[other] / total
            enough = both[other] >= max(least, share * n_on[source])
            if other != source and enough and both[other] - expected > surprise * np.sqrt(expected + 0.25):
                if size == counts.size:
                    pairs, counts = np.append(pairs, pairs, axis=0), np.append(counts, counts)
                pairs[size, 0], pairs[size, 1], counts[size] = source, other, both[other]
                size += 1
            both[other] = 0.0
    return pairs[:size].copy(), counts[:size].copy()


@compiled
def count_overlaps(columns: Lists, reaching: Lists, share: float) -> tuple[NDArray[np.int64], Numbers]:
    """Pairs (source, later one) that have more than ``share`` of the smaller column in common, and that share."""
    n_sources = columns.start.size - 1
    common, touched = np.zeros(n_sources), np.empty(n_sources, np.int32)
    pairs, shares, size = np.empty((64, 2), np.int64), np.empty(64), 0
    for source in range(n_sources):
        width = columns.start[source + 1] - columns.start[source]
        n_touched = 0
        for sensor in columns.items[columns.start[source] : columns.start[source + 1]]:
            for other in reaching.items[reaching.start[sensor] : reaching.start[sensor + 1]]:
                if other > source:
                    if common[other] == 0.0:
                        touched[n_touched] = other
                        n_touched += 1
                    common[other] += 1.0
        for k in range(n_touched):
            other = touched[k]
            part = common[other] / min(width, columns.start[other + 1] - columns.start[other])
            if part > share:
                if size == shares.size:
                    pairs, shares = np.append(pairs, pairs, axis=0), np.append(shares, shares)
                pairs[size, 0], pairs[size, 1], shares[size] = source, other, part
                size += 1
            common[other] = 0.0
    return pairs[:size].copy(), shares[:size].copy()
