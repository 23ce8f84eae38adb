"""Clocks that run backwards, told from times in the order in which they were written."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled

NEVER = np.iinfo(np.int64).min


@compiled
def count_steps_back(
    clocks: NDArray[np.int64],
    times: NDArray[np.int64],
    last: NDArray[np.int64],
    n_steps: NDArray[np.int64],
    largest: NDArray[np.int64],
) -> None:
    """Go on counting, for every clock, how often a time was below its ``last`` one, and by how much at most."""
    for i in range(times.size):
        clock, time = clocks[i], times[i]
        if time < last[clock]:
            n_steps[clock] += 1
            largest[clock] = max(largest[clock], last[clock] - time)
        last[clock] = time
