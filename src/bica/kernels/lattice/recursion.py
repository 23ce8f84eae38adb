"""The paper's recursion without recursion, on the subset lattice, and how often sets of sensors were quiet.

Let A(U) be the weight of the rows in which nothing outside the set U is on (``subset_sums`` of a histogram). In an OR
mixture A(U) is proportional to the product of the off-probabilities q_g = 1 - p_g of all sources g not inside U, so

    log A(U) - log A(0) = sum over the sources g inside U of -log q_g,

and a Moebius transform of log A finds every q_g. The paper walks the same lattice sensor by sensor, in order to clip
and prune on the way: a probability below the threshold becomes 0 (off-probability 1) before later sensors use it.

Invariant: before sensor k the table consists of blocks of 2^k cells, one for every way to condition the later sensors
on being quiet (bit 0) or to leave them free (bit 1). Cell 0 of a block is the weight of its rows in which the first k
sensors are all quiet; cell s > 0 is the off-probability of the source behind the set s of the first k sensors, as the
rows of that block show it. Two neighbouring blocks, "sensor k quiet" and "sensor k free", merge into one: a source s of
the free block is either s alone, which the quiet block shows too, or s with sensor k, so

    q(s with k) = q_free(s) / q_quiet(s),        q(k alone) = weight_quiet / weight_free   (cell 0 of both).
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled
from bica.kernels.lattice.subsets import Lattice


@compiled
def off_probabilities(silence: Lattice, min_probability: float) -> None:
    """Turn silences A(U), all positive, into off-probabilities in place.

    A source whose probability is below ``min_probability`` at any step is dropped there: it is off for certain.
    """
    surely_off = 1.0 - min_probability
    bit = 1
    while bit < silence.size:
        for start in range(0, silence.size, 2 * bit):
            quiet, free = silence[start : start + bit], silence[start + bit : start + 2 * bit]
            alone = quiet[0] / free[0]
            for rest in range(1, bit):
                off = free[rest] / quiet[rest]
                free[rest] = 1.0 if off > surely_off else off
            free[0] = 1.0 if alone > surely_off else alone
        bit <<= 1


@compiled
def off_probabilities_of_allowed(
    table: Lattice, silence: Lattice, allowed: NDArray[np.bool_], min_probability: float
) -> None:
    """The same where silences may be 0 and only ``allowed`` sets may be sources; ``table`` is a copy of ``silence``."""
    surely_off = 1.0 - min_probability
    bit = 1
    while bit < table.size:
        for start in range(0, table.size, 2 * bit):
            quiet, free = table[start : start + bit], table[start + bit : start + 2 * bit]
            if silence[start + bit - 1] == 0.0:  # sensor k is never quiet in this block: a lone source, always on
                for rest in range(1, bit):
                    quiet[rest] = free[rest]
                    free[rest] = 1.0
                free[0] = 0.0
                continue
            alone = quiet[0] / free[0] if free[0] > 0.0 else 1.0
            for rest in range(1, bit):
                off = free[rest] / quiet[rest] if quiet[rest] > 0.0 and allowed[rest + bit] else 1.0
                free[rest] = 1.0 if off > surely_off else off
            free[0] = 1.0 if alone > surely_off else alone
        bit <<= 1


@compiled
def clique_table(neighbours: NDArray[np.int64], allowed: NDArray[np.bool_]) -> None:
    """Mark the sets in which every two sensors are neighbours; ``neighbours[i]`` is a bit set."""
    allowed[0] = True
    for sensor in range(neighbours.size):
        bit = 1 << sensor
        for rest in range(bit):
            allowed[bit + rest] = allowed[rest] and rest & ~neighbours[sensor] == 0


@compiled
def quiet_weight(patterns: Words, weights: NDArray[np.float64], sensors: NDArray[np.uint64]) -> float:
    """The weight of the patterns in which none of ``sensors`` (one bit set over the words) is on."""
    total = 0.0
    for row in range(patterns.shape[0]):
        touched = np.uint64(0)
        for word in range(sensors.size):
            touched |= patterns[row, word] & sensors[word]
        if touched == 0:
            total += weights[row]
    return total
