"""One source after another, remembering only the sensors that later sources may still reach.

A state is a row's number (first word) and the set of open sensors that are on so far (the other words). Everything is
in logarithms, so that no chance is too small to count.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells, Words
from bica.kernels.compiled import compiled

Logs = NDArray[np.float64]
Places = NDArray[np.int64]


@compiled
def _is_on(state: NDArray[np.uint64], sensor: int) -> int:
    return int((state[1 + sensor // 64] >> np.uint64(sensor % 64)) & np.uint64(1))


@compiled
def branch(
    states: Words,
    column: NDArray[np.uint64],
    log_odds: float,
    closing: Places,
    log_chance: Logs,
    cells: Cells,
    branches: Words,
    gain: Logs,
) -> None:
    """Let the next source be off (``branches[2 s]``) and on (``branches[2 s + 1]``) in every state ``s``.

    Sensors that no later source reaches are weighed by ``log_chance[sensor, cell, state]`` and forgotten.
    """
    for k in range(branches.shape[0]):
        state = branches[k]
        state[:] = states[k // 2]
        gain[k] = 0.0
        if k % 2 == 1:
            gain[k] = log_odds
            for word in range(column.size):
                state[1 + word] |= column[word]
        row = np.int64(state[0])
        for sensor in closing:
            gain[k] += log_chance[sensor, cells[row, sensor], _is_on(state, sensor)]
            state[1 + sensor // 64] &= ~(np.uint64(1) << np.uint64(sensor % 64))


@compiled
def look_ahead(states: Words, still_open: Places, prospect: Logs, cells: Cells, outlook: Logs) -> None:
    """What the open sensors of each state will bring, by ``prospect[k, cell, state]`` of the k-th open sensor."""
    for k in range(states.shape[0]):
        row = np.int64(states[k, 0])
        outlook[k] = 0.0
        for place, sensor in enumerate(still_open):
            outlook[k] += prospect[place, cells[row, sensor], _is_on(states[k], sensor)]


@compiled
def add_chances(logs: Logs, target: Places, total: Logs) -> None:
    """Add ``exp(logs)`` up in the log domain where they have the same target; a target below 0 takes none."""
    peak = np.full(total.size, -np.inf)
    for k in range(logs.size):
        if target[k] >= 0:
            peak[target[k]] = max(peak[target[k]], logs[k])
    total[:] = 0.0
    for k in range(logs.size):
        if target[k] >= 0 and logs[k] > -np.inf:
            total[target[k]] += np.exp(logs[k] - peak[target[k]])
    for t in range(total.size):
        total[t] = peak[t] + np.log(total[t]) if total[t] > 0.0 else -np.inf


@compiled
def look_back(
    states: Words,
    forward: Logs,
    gain: Logs,
    target: Places,
    later: Logs,
    row_total: Logs,
    backward: Logs,
    on_share: NDArray[np.float64],
) -> None:
    """One source backwards: what follows each state, and with which chance the source was on in each row."""
    for s in range(states.shape[0]):
        branches = np.full(2, -np.inf)
        for on in range(2):
            if target[2 * s + on] >= 0:
                branches[on] = gain[2 * s + on] + later[target[2 * s + on]]
        peak = max(branches[0], branches[1])
        backward[s] = peak if peak == -np.inf else peak + np.log(np.sum(np.exp(branches - peak)))
        row = np.int64(states[s, 0])
        on_share[row] += np.exp(forward[s] + branches[1] - row_total[row])
