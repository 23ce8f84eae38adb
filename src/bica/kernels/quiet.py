"""How often a set of sensors was quiet."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled


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
