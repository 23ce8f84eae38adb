"""Sources that switch on and off over time, a few of them at once: all 2^n states in every slot.

Sources move independently, so a slot takes one pass per source over the pairs of states that differ in it: n 2^n work
instead of 4^n. Bit j of a state is source j; ``reach[i]`` holds the sources that switch sensor i on.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells
from bica.kernels.compiled import compiled

Floats = NDArray[np.float64]


@compiled
def _add_penalties(cells: NDArray[np.uint8], reach: NDArray[np.int64], penalty: Floats, cost: Floats) -> None:
    """Add to the cost of every state the penalties of what one slot showed."""
    for sensor in range(cells.size):
        quiet, on = penalty[sensor, cells[sensor], 0], penalty[sensor, cells[sensor], 1]
        for state in range(cost.size):
            cost[state] += on if state & reach[sensor] else quiet


@compiled
def cheapest_moves(
    cells: Cells,
    reach: NDArray[np.int64],
    penalty: Floats,
    move: Floats,
    cost: Floats,
    came_from: NDArray[np.uint16],
) -> None:
    """Carry the least cost of every state through the slots of ``cells``; record the state before it in ``came_from``.

    ``move[source, before, after]`` is the cost of a source's step, ``penalty[sensor, cell, state]`` that of a cell.
    """
    for slot in range(cells.shape[0]):
        origin = came_from[slot]
        for state in range(cost.size):
            origin[state] = state
        for source in range(move.shape[0]):
            bit = 1 << source
            for state in range(cost.size):
                if state & bit:
                    continue
                off, on = cost[state], cost[state | bit]
                off_origin, on_origin = origin[state], origin[state | bit]
                for after in range(2):
                    place = state | bit if after else state
                    stays_off, was_on = off + move[source, 0, after], on + move[source, 1, after]
                    cost[place] = min(stays_off, was_on)
                    origin[place] = off_origin if stays_off <= was_on else on_origin
        _add_penalties(cells[slot], reach, penalty, cost)


@compiled
def cheapest_moves_of_kinds(
    kind: NDArray[np.int64], cost_of_kind: Floats, move: Floats, cost: Floats, came_from: NDArray[np.uint16]
) -> None:
    """The same where ``cost_of_kind[kind[slot], state]`` is what a slot costs in a state.

    Not one step for both: a loop of its own takes two thirds of the time of one that calls another kernel.
    """
    for slot in range(kind.size):
        origin = came_from[slot]
        for state in range(cost.size):
            origin[state] = state
        for source in range(move.shape[0]):
            bit = 1 << source
            for state in range(cost.size):
                if state & bit:
                    continue
                off, on = cost[state], cost[state | bit]
                off_origin, on_origin = origin[state], origin[state | bit]
                for after in range(2):
                    place = state | bit if after else state
                    stays_off, was_on = off + move[source, 0, after], on + move[source, 1, after]
                    cost[place] = min(stays_off, was_on)
                    origin[place] = off_origin if stays_off <= was_on else on_origin
        for state in range(cost.size):
            cost[state] += cost_of_kind[kind[slot], state]


@compiled
def trace_back(came_from: NDArray[np.uint16], state: int, path: NDArray[np.int64]) -> int:
    """Write the states that lead to ``state`` in the last slot into ``path``; return the one before the first slot."""
    for slot in range(path.size - 1, -1, -1):
        path[slot] = state
        state = int(came_from[slot, state])
    return state


@compiled
def _spread(probability: Floats, move: Floats, bit: int, transposed: bool, after: Floats) -> None:
    """Apply one source's step, or its transpose, to the probabilities of all states."""
    up, down = (move[1, 0], move[0, 1]) if transposed else (move[0, 1], move[1, 0])
    stays_off, stays_on = move[0, 0], move[1, 1]
    for first in range(0, probability.size, 2 * bit):
        off, on = probability[first : first + bit], probability[first + bit : first + 2 * bit]
        off_after, on_after = after[first : first + bit], after[first + bit : first + 2 * bit]
        for s in range(bit):
            off_after[s] = stays_off * off[s] + down * on[s]
            on_after[s] = up * off[s] + stays_on * on[s]


@compiled
def _add_moves(before: Floats, after: Floats, bit: int, move: Floats, counts: Floats) -> None:
    """Add to ``counts`` the probability of each of a source's four moves, given what came before and what follows."""
    off_off, off_on, on_off, on_on = 0.0, 0.0, 0.0, 0.0
    for first in range(0, before.size, 2 * bit):
        off, on = before[first : first + bit], before[first + bit : first + 2 * bit]
        off_after, on_after = after[first : first + bit], after[first + bit : first + 2 * bit]
        for s in range(bit):
            off_off += off[s] * off_after[s]
            off_on += off[s] * on_after[s]
            on_off += on[s] * off_after[s]
            on_on += on[s] * on_after[s]
    off_off, off_on, on_off, on_on = off_off * move[0, 0], off_on * move[0, 1], on_off * move[1, 0], on_on * move[1, 1]
    total = off_off + off_on + on_off + on_on
    counts[0, 0] += off_off / total
    counts[0, 1] += off_on / total
    counts[1, 0] += on_off / total
    counts[1, 1] += on_on / total


@compiled
def _spread_all(way: Floats, move: Floats) -> None:
    """Move one source after the other: ``way[k]`` becomes the probabilities after the first k have moved."""
    for source in range(move.shape[0]):
        _spread(way[source], move[source], 1 << source, False, way[source + 1])


@compiled
def _weigh(values: Floats, weight: Floats) -> float:
    """Multiply the values by the weights, scale them to sum to 1, and return the sum before scaling."""
    total = 0.0
    for state in range(values.size):
        values[state] *= weight[state]
        total += values[state]
    scale = 1 / total
    for state in range(values.size):
        values[state] *= scale
    return total


@compiled
def _copy(given: Floats, values: Floats) -> None:
    """Make ``values`` equal to ``given``; assigning a whole array would take seconds to compile."""
    for state in range(values.size):
        values[state] = given[state]


@compiled
def log_probability(kind: NDArray[np.int64], shown: Floats, start: Floats, move: Floats) -> float:
    """The log of the probability of all slots.

    ``shown[kind[slot], state]`` is the probability of what a slot showed in a state; ``start[state]`` and ``move`` are
    probabilities, too.
    """
    probability = start.copy()
    total = 0.0
    for slot in range(kind.size):
        total += np.log(_weigh(probability, shown[kind[slot]]))
        for source in range(move.shape[0]):
            bit = 1 << source
            stays_off, up, down, stays_on = (
                move[source, 0, 0],
                move[source, 0, 1],
                move[source, 1, 0],
                move[source, 1, 1],
            )
            for first in range(0, probability.size, 2 * bit):
                for state in range(first, first + bit):
                    off, on = probability[state], probability[state + bit]
                    probability[state] = stays_off * off + down * on
                    probability[state + bit] = up * off + stays_on * on
    return total


@compiled
def expected_moves(kind: NDArray[np.int64], shown: Floats, start: Floats, move: Floats, counts: Floats) -> None:
    """Add to ``counts[source, before, after]`` how often each step is expected, given what all slots showed.

    The arguments are those of ``log_probability``. The passes go forwards and backwards through the slots, and within
    each slot through the sources.
    """
    n_slots, n_sources = kind.size, move.shape[0]
    forward = np.empty((n_slots, start.size))
    way, backward, earlier = np.empty((n_sources + 1, start.size)), np.empty(start.size), np.empty(start.size)
    backward[:] = 1.0
    _copy(start, way[n_sources])
    for slot in range(n_slots):
        _copy(way[n_sources], forward[slot])
        _weigh(forward[slot], shown[kind[slot]])
        _copy(forward[slot], way[0])
        _spread_all(way, move)
    for slot in range(n_slots - 1, 0, -1):
        _weigh(backward, shown[kind[slot]])
        _copy(forward[slot - 1], way[0])
        _spread_all(way, move)
        for source in range(n_sources - 1, -1, -1):
            _add_moves(way[source], backward, 1 << source, move[source], counts[source])
            _spread(backward, move[source], 1 << source, True, earlier)
            _copy(earlier, backward)
