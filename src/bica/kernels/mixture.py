"""The pattern distribution of an OR mixture, one source at a time."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled


@compiled
def mix_source(table: NDArray[np.float64], sensors: int, probability: float) -> None:
    """Let one more source switch on the bit set ``sensors`` with this probability.

    Nothing is ever subtracted, so impossible patterns stay exactly 0 and rare ones keep their digits.
    """
    for pattern in range(table.size):
        if pattern & sensors != sensors:
            moved = probability * table[pattern]
            table[pattern] *= 1.0 - probability
            table[pattern | sensors] += moved
