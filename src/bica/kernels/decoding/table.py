"""The cheapest activity behind every set of sensors, and sums and minima over all activities of a row.

A table holds a cost and a set of active sources for each set of sensors. Costs within ``TIE`` of each other are equal:
then fewer active sources win, and among as many the smaller number that their bits spell.

Where the sets are too many for a table, one source after another is eliminated, by what later sources may still change.
A state is the number of a row (first word) and the set of open sensors that are on so far (the other words). A sensor
is open while a later source may reach it. States that agree are merged: their probabilities are added up, or their few
cheapest activities are kept. Everything is in logarithms, so that no probability is too small to count.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells, Words
from bica.kernels.columns import count_bits
from bica.kernels.compiled import compiled

TIE = 1e-9  # nats
BITS_PER_CELL = 2  # for 0, 1 and missing
Costs = NDArray[np.float64]


@compiled
def spread_bits(words: Words, columns: NDArray[np.int64], spread: Words) -> None:
    """Set bit ``columns[k]`` of a row of ``spread`` where bit ``k`` of the same row of ``words`` is set."""
    for row in range(words.shape[0]):
        for k in range(columns.size):
            bit = (words[row, k // 64] >> np.uint64(k % 64)) & np.uint64(1)
            spread[row, columns[k] // 64] |= bit << np.uint64(columns[k] % 64)


@compiled
def fold_keys(cells: Cells, keys: NDArray[np.uint64]) -> None:
    """Give each row of at most 32 cells a number; sorted by it, rows with the same last cells stand together."""
    for row in range(cells.shape[0]):
        key = np.uint64(0)
        for sensor in range(cells.shape[1]):
            key |= np.uint64(cells[row, sensor]) << np.uint64(BITS_PER_CELL * sensor)
        keys[row] = key


@compiled
def _n_bits(words: NDArray[np.uint64]) -> np.uint64:
    count = np.uint64(0)
    for word in words:
        count += count_bits(word)
    return count


@compiled
def ranks_before(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> bool:
    """Whether ``left`` is preferred in a tie: it has fewer active sources, or as many and spells the smaller number."""
    n_left, n_right = _n_bits(left), _n_bits(right)
    if n_left != n_right:
        return bool(n_left < n_right)
    for word in range(left.size - 1, -1, -1):
        if left[word] != right[word]:
            return bool(left[word] < right[word])
    return False


@compiled
def copy_words(given: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
    """Make ``words`` equal to ``given``; assigning a whole array would take seconds to compile."""
    for word in range(words.size):
        words[word] = given[word]


@compiled
def add_source(cost: Costs, active: Words, sensors: int, source: int, source_cost: float) -> None:
    """Let one more source switch on the bit set ``sensors`` at this cost, which may be negative.

    Sets are visited in falling order: a set that holds all of ``sensors`` is read before anything is written to it, and
    the others are never written to. So the source is counted once.
    """
    candidate = np.empty(active.shape[1], np.uint64)
    for before in range(cost.size - 1, -1, -1):
        after, value = before | sensors, cost[before] + source_cost
        if np.isinf(value) or value > cost[after] + TIE:
            continue
        copy_words(active[before], candidate)
        candidate[source // 64] |= np.uint64(1) << np.uint64(source % 64)
        if value < cost[after] - TIE or ranks_before(candidate, active[after]):
            cost[after] = value
            copy_words(candidate, active[after])


@compiled
def _fold(cost: Costs, active: Words, folded_cost: Costs, folded_active: Words, if_quiet: float, if_on: float) -> None:
    """Halve a table: at each place keep the cheaper state of the last sensor, quiet or on."""
    size = folded_cost.size
    for place in range(size):
        value_quiet, value_on = cost[place] + if_quiet, cost[place + size] + if_on
        is_on = value_on < value_quiet - TIE
        if not is_on and value_on <= value_quiet + TIE and value_on < np.inf:
            is_on = ranks_before(active[place + size], active[place])
        folded_cost[place] = value_on if is_on else value_quiet
        better = place + size if is_on else place
        for word in range(active.shape[1]):
            folded_active[place, word] = active[better, word]


@compiled
def decode_cells(
    cost: Costs, active: Words, penalty: NDArray[np.float64], cells: Cells, best: Words, least: Costs
) -> None:
    """Find the cheapest activity behind each row of cells and its cost, given ``penalty[sensor, cell, state]``.

    Each sensor, the last one first, halves the table, down to one entry. Rows must be sorted by their last cell, then
    by the one before it, and so on: neighbours share the halvings of the cells they have in common. Time 2^m for one
    row, m 2^m for all possible ones.
    """
    n_rows, n_sensors = cells.shape
    half_cost, half_active = np.empty(cost.size), np.empty(active.shape, np.uint64)  # [size:2 * size] for each size
    for row in range(n_rows):
        changed = n_sensors
        while row > 0 and changed > 0 and cells[row, changed - 1] == cells[row - 1, changed - 1]:
            changed -= 1
        for sensor in range(changed - 1, -1, -1):
            size = 1 << sensor
            quiet, on = penalty[sensor, cells[row, sensor], 0], penalty[sensor, cells[row, sensor], 1]
            here = slice(size, 2 * size)
            if sensor == n_sensors - 1:
                _fold(cost, active, half_cost[here], half_active[here], quiet, on)
            else:
                whole = slice(2 * size, 4 * size)
                _fold(half_cost[whole], half_active[whole], half_cost[here], half_active[here], quiet, on)
        copy_words(half_active[1], best[row])
        least[row] = half_cost[1]


@compiled
def fold_rows(
    table: NDArray[np.float64], weight: NDArray[np.float64], cells: Cells, total: NDArray[np.float64]
) -> None:
    """For every row of cells, sum the table over all sets of sensors, weighted by ``weight[sensor, cell, state]``.

    The table of 2^m sets stands in the upper half of ``table``. Each sensor, the last one first, halves it into the
    free space below. Rows are sorted as for ``decode_cells``: time 2^m for one row, about 2^m log(n_rows) for many.
    """
    n_rows, n_sensors = cells.shape
    for row in range(n_rows):
        changed = n_sensors
        while row > 0 and changed > 0 and cells[row, changed - 1] == cells[row - 1, changed - 1]:
            changed -= 1
        for sensor in range(changed - 1, -1, -1):
            size = 1 << sensor
            quiet, on = weight[sensor, cells[row, sensor], 0], weight[sensor, cells[row, sensor], 1]
            folded, low, high = table[size : 2 * size], table[2 * size : 3 * size], table[3 * size : 4 * size]
            for place in range(size):
                folded[place] = quiet * low[place] + on * high[place]
        total[row] = table[1]


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


KeptCosts = NDArray[np.float64]  # (n_states, n_kept), infinite where there are fewer activities
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
    costs: KeptCosts,
    active: Activities,
    source: int,
    gain: NDArray[np.float64],
    target: NDArray[np.int64],
    new_costs: KeptCosts,
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
