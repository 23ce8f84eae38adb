"""The few cheapest activities of every state, kept in order."""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Words
from bica.kernels.compiled import compiled
from bica.kernels.decoding import TIE, ranks_before

Costs = NDArray[np.float64]  # (n_states, n_kept), infinite where there is no more
Activities = NDArray[np.uint64]  # (n_states, n_kept, n_words)


@compiled
def comes_first(cost: float, active: NDArray[np.uint64], other_cost: float, other: NDArray[np.uint64]) -> bool:
    """The cheaper one; if they cost the same, the one preferred in a tie."""
    if abs(cost - other_cost) > TIE or np.isinf(other_cost):
        return cost < other_cost
    return ranks_before(active, other)


@compiled
def _insert(cost: float, active: NDArray[np.uint64], costs: NDArray[np.float64], activities: Words) -> None:
    place = costs.size
    while place > 0 and comes_first(cost, active, costs[place - 1], activities[place - 1]):
        place -= 1
    for k in range(costs.size - 1, place, -1):
        costs[k] = costs[k - 1]
        activities[k] = activities[k - 1]
    if place < costs.size:
        costs[place] = cost
        activities[place] = active


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
    """Send every list along both branches of its state, the second of which switches ``source`` on."""
    candidate = np.empty(active.shape[2], np.uint64)
    for branch in range(target.size):
        state, place = branch // 2, target[branch]
        if place < 0:
            continue
        for k in range(costs.shape[1]):
            if np.isinf(costs[state, k]):
                break
            candidate[:] = active[state, k]
            if branch % 2 == 1:
                candidate[source // 64] |= np.uint64(1) << np.uint64(source % 64)
            _insert(costs[state, k] - gain[branch], candidate, new_costs[place], new_active[place])
