"""Branch and bound over the open sources of one row."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells, Words
from bica.kernels.compiled import compiled
from bica.kernels.decoding.puzzle import (
    OFF,
    ON,
    OPEN,
    ROUNDING,
    Costs,
    Network,
    Numbers,
    Puzzle,
    connected,
    decide,
    drop_dominated,
    settle,
    undo,
)
from bica.kernels.decoding.table import TIE


class Dual(NamedTuple):
    """Prices under which every open source just breaks even: what the bound is made of."""

    slack: Costs  # (n_sources,), what is left of the price of a source
    pool: Costs  # (n_sensors,), what is left of the loss at a sensor that shows 0; anything at others
    paid: Costs  # (n_sources,)


class Tree(NamedTuple):
    """The branches between the root and where the search is, and the best solution so far."""

    source: Numbers  # (n_sources,), what was branched on
    mark: Numbers  # (n_sources,), length of the trail before
    bound: Costs  # (n_sources,), what neither side of the branch can go below
    is_off: NDArray[np.bool_]  # (n_sources,), whether the search is on the second side, where the source is off
    state: NDArray[np.int8]  # (n_sources,), ON and OFF in the best solution


@compiled
def _funds(network: Network, puzzle: Puzzle, dual: Dual, source: int) -> float:
    total: float = max(dual.slack[source], 0.0)
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor = network.sensors[k]
        if puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] < 0:
            total += dual.pool[sensor]
    return total


@compiled
def _pay(network: Network, puzzle: Puzzle, dual: Dual, source: int, amount: float) -> float:
    """Take so much from the slack of the source, then from the pools of its sensors; return what could be paid."""
    left: float = amount - min(amount, max(dual.slack[source], 0.0))
    dual.slack[source] -= amount - left
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor = network.sensors[k]
        if left > 0 and puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] < 0:
            taken = min(left, dual.pool[sensor])
            dual.pool[sensor] -= taken
            left -= taken
    return amount - left


@compiled
def _charge(network: Network, puzzle: Puzzle, dual: Dual, sensor: int) -> float:
    """Charge the open sources of a sensor for what it saves, each the same, as much as all of them can pay."""
    amount: float = puzzle.worth[sensor]
    first, last = network.first_source[sensor], network.first_source[sensor + 1]
    for k in range(first, last):
        if puzzle.state[network.sources[k]] == OPEN:
            amount = min(amount, _funds(network, puzzle, dual, network.sources[k]))
    if amount <= 0 or amount == np.inf:
        return amount
    for k in range(first, last):  # those who share a pool may find it empty
        source = network.sources[k]
        if puzzle.state[source] == OPEN:
            amount = dual.paid[source] = _pay(network, puzzle, dual, source, amount)
    for k in range(first, last):
        source = network.sources[k]
        if puzzle.state[source] == OPEN:
            dual.slack[source] += dual.paid[source] - amount
    return amount


@compiled
def _open_prices(network: Network, puzzle: Puzzle, dual: Dual, members: Numbers, cells: Numbers) -> None:
    for sensor in cells:
        dual.pool[sensor] = -puzzle.worth[sensor]
    for source in members:
        dual.slack[source] = network.price[source]
        if puzzle.state[source] == OPEN and network.price[source] < 0:
            debt = -network.price[source]
            dual.slack[source] = 0.0
            dual.slack[source] = _pay(network, puzzle, dual, source, debt) - debt


@compiled
def _bounds(network: Network, puzzle: Puzzle, dual: Dual, members: Numbers, cells: Numbers) -> tuple[float, float]:
    """The cost with all open members off, and what no choice of them can go below.

    The second is a feasible solution of the dual of the linear relaxation, found greedily: the open sources of a
    sensor that shows 1 pay for it together, out of their prices and of what sensors that show 0 would lose.
    """
    _open_prices(network, puzzle, dual, members, cells)
    now = 0.0
    for source in members:
        if puzzle.state[source] == ON:
            now += network.price[source]
    below = now
    for sensor in cells:
        worth = puzzle.worth[sensor]
        if puzzle.n_on[sensor] > 0:
            if worth < np.inf:
                now -= worth
                below -= worth
        elif worth > 0:
            charged = _charge(network, puzzle, dual, sensor)
            if worth == np.inf:
                now = np.inf
                below += charged
            else:
                below -= worth - charged
    for source in members:
        if puzzle.state[source] == OPEN:
            below += min(dual.slack[source], 0.0)
    return now, below


@compiled
def _ranks_before(state: NDArray[np.int8], best: NDArray[np.int8], members: Numbers) -> bool:
    """Fewest active sources first, then the smallest number that they spell; ``members`` rise; open means off."""
    n_more = 0
    for source in members:
        n_more += (state[source] == ON) - (best[source] == ON)
    if n_more != 0:
        return bool(n_more < 0)
    for k in range(members.size - 1, -1, -1):
        is_on, was_on = state[members[k]] == ON, best[members[k]] == ON
        if is_on != was_on:
            return bool(was_on)
    return False


@compiled
def _n_active(state: NDArray[np.int8], members: Numbers) -> int:
    count = 0
    for source in members:
        count += state[source] == ON
    return count


@compiled
def _close_hopeless(network: Network, puzzle: Puzzle, dual: Dual, members: Numbers, room: float) -> None:
    """Switch off open members that would raise the bound by more than ``room``."""
    for source in members:
        if puzzle.state[source] == OPEN and _funds(network, puzzle, dual, source) > room:
            decide(network, puzzle, source, OFF)


@compiled
def _next_branch(network: Network, puzzle: Puzzle, members: Numbers) -> int:
    """The open member that gains most as things stand; -1 if none is open."""
    chosen, most = -1, -np.inf
    for source in members:
        if puzzle.state[source] == OPEN:
            gain = -network.price[source]
            for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
                sensor = network.sensors[k]
                if puzzle.n_on[sensor] == 0:
                    gain += min(puzzle.worth[sensor], 1e3)  # a sensor that must be on counts most
            if gain > most:
                chosen, most = source, gain
    return chosen


@compiled
def _unexplored(tree: Tree, depth: int) -> float:
    """What no solution can go below in the branches that the search has not entered."""
    below: float = tree.bound[depth - 1]
    for k in range(depth):
        if not tree.is_off[k]:
            below = min(below, tree.bound[k])
    return below


@compiled
def _solve_part(
    network: Network, puzzle: Puzzle, dual: Dual, tree: Tree, members: Numbers, cells: Numbers, n_nodes: int
) -> tuple[float, float]:
    """Depth first through the open members; leaves the best in ``tree.state``; returns its cost and a lower bound.

    The two differ only where the search was stopped after ``n_nodes`` nodes.
    """
    best, depth, root = np.inf, 0, puzzle.length[0]
    for _ in range(n_nodes):
        settle(network, puzzle, members)
        now, below = _bounds(network, puzzle, dual, members, cells)
        if now < best - TIE or (
            now <= best + TIE and now < np.inf and _ranks_before(puzzle.state, tree.state, members)
        ):
            best = min(now, best) if best < np.inf else now
            for source in members:
                tree.state[source] = ON if puzzle.state[source] == ON else OFF
        hopeless = below > best + TIE or below == np.inf
        if not hopeless and below >= best - ROUNDING:  # a tie at best, which more active sources do not win
            hopeless = _n_active(puzzle.state, members) >= _n_active(tree.state, members)
        if not hopeless:
            _close_hopeless(network, puzzle, dual, members, best + TIE - below)
        branch = -1 if hopeless else _next_branch(network, puzzle, members)
        if branch >= 0:
            tree.source[depth], tree.mark[depth] = branch, puzzle.length[0]
            tree.bound[depth], tree.is_off[depth] = below, False
            decide(network, puzzle, branch, ON)
            depth += 1
            continue
        while depth > 0 and tree.is_off[depth - 1]:  # both sides are done
            depth -= 1
        if depth == 0:
            undo(network, puzzle, root)
            return best, best
        undo(network, puzzle, tree.mark[depth - 1])
        tree.is_off[depth - 1] = True
        decide(network, puzzle, tree.source[depth - 1], OFF)
    undo(network, puzzle, root)
    return best, min(best, _unexplored(tree, depth))


@compiled
def _show(puzzle: Puzzle, network: Network, penalty: NDArray[np.float64], cells: NDArray[np.uint8]) -> None:
    """Start the puzzle of a row: everything is open."""
    puzzle.state[:] = OPEN
    puzzle.n_on[:] = 0
    puzzle.length[0] = 0
    for sensor in range(cells.size):
        if_quiet, if_on = penalty[sensor, cells[sensor], 0], penalty[sensor, cells[sensor], 1]
        puzzle.worth[sensor] = if_quiet - if_on
        puzzle.n_open[sensor] = network.first_source[sensor + 1] - network.first_source[sensor]


@compiled
def _row_cost(network: Network, puzzle: Puzzle, penalty: NDArray[np.float64], cells: NDArray[np.uint8]) -> float:
    cost = 0.0
    for source in range(puzzle.state.size):
        if puzzle.state[source] == ON:
            cost += network.price[source]
    for sensor in range(cells.size):
        cost += penalty[sensor, cells[sensor], 1 if puzzle.n_on[sensor] > 0 else 0]
    return cost


@compiled
def _sort(items: Numbers, keys: Numbers) -> None:
    """Sort a few items by their keys, in place; NumPy's sorts take seconds to compile."""
    for k in range(1, items.size):
        item, key, place = items[k], keys[k], k
        while place > 0 and keys[place - 1] > key:
            items[place], keys[place] = items[place - 1], keys[place - 1]
            place -= 1
        items[place], keys[place] = item, key


@compiled
def _cells_of(network: Network, puzzle: Puzzle, members: Numbers, is_listed: NDArray[np.bool_]) -> Numbers:
    """The sensors that the open members decide on; those with the fewest open sources first."""
    n_edges = 0
    for source in members:
        n_edges += network.first_sensor[source + 1] - network.first_sensor[source]
    found, keys = np.empty(n_edges, np.int64), np.empty(n_edges, np.int64)
    count = 0
    for source in members:
        for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
            sensor = network.sensors[k]
            if not is_listed[sensor] and puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] != 0:
                is_listed[sensor] = True
                found[count] = sensor
                keys[count] = puzzle.n_open[sensor] * is_listed.size + sensor
                count += 1
    _sort(found[:count], keys[:count])
    return found[:count]


@compiled
def _is_impossible(puzzle: Puzzle) -> bool:
    """Whether a sensor must be on that no source can reach any more."""
    for sensor in range(puzzle.worth.size):
        if puzzle.worth[sensor] == np.inf and puzzle.n_on[sensor] == 0 and puzzle.n_open[sensor] == 0:
            return True
    return False


@compiled
def _solve_row(network: Network, puzzle: Puzzle, dual: Dual, tree: Tree, n_nodes: int) -> float:
    """Decide every source; return how much cheaper an unknown solution could still be."""
    everyone = np.arange(puzzle.state.size)
    settle(network, puzzle, everyone)
    while drop_dominated(network, puzzle, everyone):
        settle(network, puzzle, everyone)
    if _is_impossible(puzzle):
        return 0.0
    gap = 0.0
    members = np.empty(puzzle.state.size, np.int64)
    is_member, is_listed = np.zeros(puzzle.state.size, np.bool_), np.zeros(puzzle.worth.size, np.bool_)
    for source in range(puzzle.state.size):
        if puzzle.state[source] == OPEN and not is_member[source]:
            part = members[: connected(network, puzzle, source, members, is_member)]
            _sort(part, part.copy())
            cells = _cells_of(network, puzzle, part, is_listed)
            best, below = _solve_part(network, puzzle, dual, tree, part, cells, n_nodes)
            if best == np.inf:
                return 0.0 if below == np.inf else np.inf
            gap += best - below
            for k in range(part.size):
                decide(network, puzzle, part[k], int(tree.state[part[k]]))
    return gap


@compiled
def search_rows(
    network: Network,
    penalty: NDArray[np.float64],
    cells: Cells,
    n_nodes: int,
    active: Words,
    cost: Costs,
    gap: Costs,
) -> None:
    """The cheapest activity behind each row of cells, given ``penalty[sensor, cell, state]``.

    ``active`` starts as zeros. A cost is infinite where no activity was found; it is the least cost if the gap is 0.
    """
    n_sources, n_sensors = network.price.size, cells.shape[1]
    puzzle = Puzzle(
        np.empty(n_sensors),
        np.empty(n_sources, np.int8),
        np.empty(n_sensors, np.int64),
        np.empty(n_sensors, np.int64),
        np.empty(n_sources, np.int64),
        np.zeros(1, np.int64),
    )
    dual = Dual(np.empty(n_sources), np.empty(n_sensors), np.empty(n_sources))
    tree = Tree(
        np.empty(n_sources, np.int64),
        np.empty(n_sources, np.int64),
        np.empty(n_sources),
        np.empty(n_sources, np.bool_),
        np.zeros(n_sources, np.int8),
    )
    for row in range(cells.shape[0]):
        _show(puzzle, network, penalty, cells[row])
        gap[row] = _solve_row(network, puzzle, dual, tree, n_nodes)
        for source in range(n_sources):
            if puzzle.state[source] == OPEN:  # given up: the row is impossible, or was not solved
                decide(network, puzzle, source, OFF)
            if puzzle.state[source] == ON:
                active[row, source // 64] |= np.uint64(1) << np.uint64(source % 64)
        cost[row] = _row_cost(network, puzzle, penalty, cells[row])
