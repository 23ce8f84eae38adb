"""The paper's recursion without recursion, on the subset lattice, and how often sets of sensors were quiet.

A table of silences (``subset_sums`` of a histogram) is worked through sensor by sensor. At sensor k it consists of
blocks of 2^k cells, one for every way to condition on or merge the later sensors: cell 0 of a block is the weight of
its all-quiet rows, cell s the chance that the source behind the set s is off. Two neighbouring blocks, "sensor k is
quiet" and "sensor k is anything", then give the sources that contain k: off-chance anything / off-chance quiet.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled

Table = NDArray[np.float64]


@compiled
def off_chances(silence: Table, min_probability: float) -> None:
    """Turn silences, all positive, into off-chances; a probability below the threshold becomes 0 at every step."""
    surely_off = 1.0 - min_probability
    bit = 1
    while bit < silence.size:
        for start in range(0, silence.size, 2 * bit):
            quiet, anything = silence[start : start + bit], silence[start + bit : start + 2 * bit]
            alone = quiet[0] / anything[0]
            for rest in range(1, bit):
                off = anything[rest] / quiet[rest]
                anything[rest] = 1.0 if off > surely_off else off
            anything[0] = 1.0 if alone > surely_off else alone
        bit <<= 1


@compiled
def off_chances_with_gaps(table: Table, silence: Table, allowed: NDArray[np.bool_], min_probability: float) -> None:
    """The same where silences may be 0 and some sets are ruled out; ``table`` starts as a copy of ``silence``."""
    surely_off = 1.0 - min_probability
    bit = 1
    while bit < table.size:
        for start in range(0, table.size, 2 * bit):
            quiet, anything = table[start : start + bit], table[start + bit : start + 2 * bit]
            if silence[start + bit - 1] == 0.0:  # the sensor is never quiet here: a source of its own, always on
                for rest in range(1, bit):
                    quiet[rest] = anything[rest]
                    anything[rest] = 1.0
                anything[0] = 0.0
                continue
            alone = quiet[0] / anything[0] if anything[0] > 0.0 else 1.0
            for rest in range(1, bit):
                off = anything[rest] / quiet[rest] if quiet[rest] > 0.0 and allowed[rest + bit] else 1.0
                anything[rest] = 1.0 if off > surely_off else off
            anything[0] = 1.0 if alone > surely_off else alone
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
