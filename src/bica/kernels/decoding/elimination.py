"""Sums and minima over all activities, one source after another, by what later sources may still change.

A state is the number of a row (first word) and the set of open sensors that are on so far (the other words). A sensor
is open while a later source may reach it. States that agree are merged: their probabilities are added up, or their few
cheapest activities are kept. Everything is in logarithms, so that no probability is too small to count.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells, Words
from bica.kernels.compiled import compiled
from bica.kernels.decoding.table import TIE, copy_words, ranks_before

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
    log_probability: Logs,
    cells: Cells,
    branches: Words,
    gain: Logs,
) -> None:
    """Let the next source be off (``branches[2 s]``) and on (``branches[2 s + 1]``) in every state ``s``.

    The ``closing`` sensors, which no later source reaches, add ``log_probability[sensor, cell, state]`` to the gain of
    the branch and are cleared from its state.
    """
    for k in range(branches.shape[0]):
        state = branches[k]
        copy_words(states[k // 2], state)
        gain[k] = 0.0
        if k % 2 == 1:
            gain[k] = log_odds
            for word in range(column.size):
                state[1 + word] |= column[word]
        row = np.int64(state[0])
        for sensor in closing:
            gain[k] += log_probability[sensor, cells[row, sensor], _is_on(state, sensor)]
            state[1 + sensor // 64] &= ~(np.uint64(1) << np.uint64(sensor % 64))


@compiled
def look_ahead(states: Words, still_open: Places, prospect: Logs, cells: Cells, outlook: Logs) -> None:
    """Sum into ``outlook`` what the open sensors of each state promise: ``prospect[k, cell, state]`` of the k-th."""
    for k in range(states.shape[0]):
        row = np.int64(states[k, 0])
        outlook[k] = 0.0
        for place, sensor in enumerate(still_open):
            outlook[k] += prospect[place, cells[row, sensor], _is_on(states[k], sensor)]


@compiled
def add_probabilities(logs: Logs, target: Places, total: Logs) -> None:
    """Make ``total[t]`` the log of the sum of ``exp(logs)`` over those with target ``t``; negative targets get none."""
    peak = np.empty(total.size)
    peak[:] = -np.inf
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
    """Go one source backwards: the log of what follows each state, and how likely the source was on in each row."""
    for s in range(states.shape[0]):
        off = gain[2 * s] + later[target[2 * s]] if target[2 * s] >= 0 else -np.inf
        on = gain[2 * s + 1] + later[target[2 * s + 1]] if target[2 * s + 1] >= 0 else -np.inf
        peak = max(off, on)
        backward[s] = peak if peak == -np.inf else peak + np.log(np.exp(off - peak) + np.exp(on - peak))
        row = np.int64(states[s, 0])
        on_share[row] += np.exp(forward[s] + on - row_total[row])


Costs = NDArray[np.float64]  # (n_states, n_kept), infinite where there are fewer activities
Activities = NDArray[np.uint64]  # (n_states, n_kept, n_words)


@compiled
def comes_first(cost: float, active: NDArray[np.uint64], other_cost: float, other: NDArray[np.uint64]) -> bool:
    """Whether the first activity comes before the other: it is cheaper, or costs the same and is preferred in a tie."""
    if abs(cost - other_cost) > TIE or np.isinf(other_cost):
        return cost < other_cost
    return ranks_before(active, other)


@compiled
def _insert(cost: float, active: NDArray[np.uint64], costs: NDArray[np.float64], activities: Words) -> None:
    """Insert an activity into a list sorted by cost; the last one drops out."""
    place = costs.size
    while place > 0 and comes_first(cost, active, costs[place - 1], activities[place - 1]):
        place -= 1
    for k in range(costs.size - 1, place, -1):
        costs[k] = costs[k - 1]
        copy_words(activities[k - 1], activities[k])
    if place < costs.size:
        costs[place] = cost
        copy_words(active, activities[place])


@compiled
def merge_lists(
    costs: Costs,
    active: Activities,
    source: int,
    gain: NDArray[np.float64],
    target: NDArray[np.int64],
    new_costs: Costs,
    new_active: Activities,
) -> None:
    """Merge the lists of cheapest activities along both branches of each state; the second switches ``source`` on."""
    candidate = np.empty(active.shape[2], np.uint64)
    for branch in range(target.size):
        state, place = branch // 2, target[branch]
        if place < 0:
            continue
        for k in range(costs.shape[1]):
            if np.isinf(costs[state, k]):
                break
            copy_words(active[state, k], candidate)
            if branch % 2 == 1:
                candidate[source // 64] |= np.uint64(1) << np.uint64(source % 64)
            _insert(costs[state, k] - gain[branch], candidate, new_costs[place], new_active[place])
