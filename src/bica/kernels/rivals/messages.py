"""Max-sum messages of Boolean factorisation, between cells of a table and the bits of its two factors.

All messages are log odds. Arrays are (n_rows, n_sensors, n_sources): ``from_activity`` and ``from_mixing`` go to a
cell, ``to_activity`` and ``to_mixing`` come back from it.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled

Messages = NDArray[np.float64]


@compiled
def answer_cells(
    from_activity: Messages,
    from_mixing: Messages,
    cell_log_odds: NDArray[np.float64],
    damping: float,
    to_activity: Messages,
    to_mixing: Messages,
) -> float:
    """Let every cell answer, with weight ``damping`` beside its old answer; return the largest change.

    ``cell_log_odds[t, j]`` are the log odds that the cell is truly on. A source explains the cell if its activity bit
    and its mixing bit are both on; the cell is on if any source explains it.
    """
    n_rows, n_sensors, n_sources = from_activity.shape
    explains = np.empty(n_sources)
    change = 0.0
    for t in range(n_rows):
        for j in range(n_sensors):
            first, second, others = -np.inf, -np.inf, 0.0
            for k in range(n_sources):
                a, b = from_activity[t, j, k], from_mixing[t, j, k]
                both = min(a + b, min(a, b))
                explains[k] = both
                others += max(0.0, both)
                if both > first:
                    first, second = both, first
                elif both > second:
                    second = both
            for k in range(n_sources):
                a, b, both = from_activity[t, j, k], from_mixing[t, j, k], explains[k]
                rival = second if both == first else first
                needed = min(max(0.0, -rival), cell_log_odds[t, j] + others - max(0.0, both))
                new_a = damping * (max(0.0, needed + b) - max(0.0, b)) + (1.0 - damping) * to_activity[t, j, k]
                new_b = damping * (max(0.0, needed + a) - max(0.0, a)) + (1.0 - damping) * to_mixing[t, j, k]
                change = max(change, abs(new_a - to_activity[t, j, k]), abs(new_b - to_mixing[t, j, k]))
                to_activity[t, j, k], to_mixing[t, j, k] = new_a, new_b
    return change


@compiled
def gather_answers(
    to_activity: Messages,
    to_mixing: Messages,
    weights: NDArray[np.float64],
    prior: tuple[float, float],
    activity: NDArray[np.float64],
    mixing: NDArray[np.float64],
    from_activity: Messages,
    from_mixing: Messages,
) -> None:
    """Add the answers to the log odds of every bit, and send each cell the sum of all answers but its own.

    A row of weight w stands for w equal rows, whose messages are the same. ``activity`` is (n_rows, n_sources),
    ``mixing`` (n_sensors, n_sources), ``prior`` the log odds of their bits.
    """
    n_rows, n_sensors, n_sources = to_activity.shape
    activity[:] = prior[0]
    mixing[:] = prior[1]
    for t in range(n_rows):
        for j in range(n_sensors):
            for k in range(n_sources):
                activity[t, k] += to_activity[t, j, k]
                mixing[j, k] += weights[t] * to_mixing[t, j, k]
    for t in range(n_rows):
        for j in range(n_sensors):
            for k in range(n_sources):
                from_activity[t, j, k] = activity[t, k] - to_activity[t, j, k]
                from_mixing[t, j, k] = mixing[j, k] - to_mixing[t, j, k]
