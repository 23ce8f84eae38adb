"""Branch and bound over the open sources of one row.

The program is that of ``puzzle.py``. Lower bound of a partial decision: let O be the open sources of a part, w_i the
worth of an uncovered sensor that shows 1 (set P), and l_i > 0 the loss at an uncovered sensor that shows 0 (set N),
where w_i = worth_i and l_i = -worth_i. With e_i = 1 - x_i on P, the linear relaxation of what is still to be decided is

    minimise  sum_O cost_j y_j + sum_N l_i x_i + sum_P w_i e_i - sum_P w_i
    where     e_i >= 1 - sum_{j reaches i} y_j  on P,   x_i >= y_j  on N for every j that reaches i,   0 <= y_j <= 1.

Its dual has a price u_i for each sensor of P, which all open sources that reach the sensor are charged, and a part v_ij
of the loss l_i that source j may use to pay with:

    maximise  sum_P (u_i - w_i) + sum_O min(slack_j, 0)   where   slack_j = cost_j + sum_N v_ij - sum_P u_i,
              0 <= u_i <= w_i,   v_ij >= 0,   sum_j v_ij <= l_i.

Sensors are taken in turn, those with the fewest open sources first. Each u_i is raised as far as the slack and the
pools l_i - sum_j v_ij of *all* its open sources pay for it (``_charge``). Invariant: (u, v) is feasible for the dual at
every moment, so its value never exceeds the optimum, whatever the order. A source whose slack and pools exceed the gap
between the best solution and the bound is off in every better solution (``_close_hopeless``, reduced-cost fixing).

A sensor that must be on (w_i infinite) has no cap on u_i and no term w_i; where no open source reaches it, the bound is
infinite. The search goes depth first, with the branch "on" before "off"; each node settles what it can first.
"""

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
    Places,
    Puzzle,
    connected,
    decide,
    drop_dominated,
    empty_puzzle,
    settle,
    undo,
)
from bica.kernels.decoding.table import TIE

EDGES_PER_PART = 200_000  # that a search may look at, a millisecond or two; hard parts need the bounds of relaxation.py
FEWEST_NODES = 30  # of the search in a part, however large it is
MOST_COMPARED = 128  # open sources up to which each is compared with all its neighbours
WORTH_OF_REQUIRED = 1e3  # nats, in place of infinity where branches are ranked: no noise rate gives a worth this large


class Dual(NamedTuple):
    """A feasible solution of the dual: what the open sources can still pay."""

    slack: Costs  # (n_sources,), slack_j: what is left of the cost of a source; negative where a debt is left
    pool: Costs  # (n_sensors,), l_i - sum_j v_ij: what is left of the loss at a sensor of N; undefined elsewhere
    paid: Costs  # (n_sources,), what each source paid for the sensor at hand


class Tree(NamedTuple):
    """The branches between the root and the present node, and the best solution so far."""

    source: Places  # (n_sources,), the source branched on, by depth
    mark: Places  # (n_sources,), the length of the trail before the branch
    bound: Costs  # (n_sources,), a lower bound of both sides of the branch
    is_off: NDArray[np.bool_]  # (n_sources,), whether the search is on the second side, where the source is off
    state: NDArray[np.int8]  # (n_sources,), ON and OFF in the best solution


@compiled
def empty_tree(n_sources: int) -> Tree:
    """Room for a search; no solution is known."""
    tree = Tree(
        np.empty(n_sources, np.int64),
        np.empty(n_sources, np.int64),
        np.empty(n_sources),
        np.empty(n_sources, np.bool_),
        np.empty(n_sources, np.int8),
    )
    tree.state[:] = OFF
    return tree


@compiled
def _funds(network: Network, puzzle: Puzzle, dual: Dual, source: int) -> float:
    """What a source can pay: its slack, and the pools of its sensors that show 0."""
    total: float = max(dual.slack[source], 0.0)
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor = network.sensors[k]
        if puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] < 0:
            total += dual.pool[sensor]
    return total


@compiled
def _pay(network: Network, puzzle: Puzzle, dual: Dual, source: int, amount: float) -> float:
    """Take ``amount`` from the slack of the source, then from the pools of its sensors; return what could be paid."""
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
    """Raise the price u_i of a sensor that shows 1 as far as all its open sources can pay; return the price."""
    amount: float = puzzle.worth[sensor]
    first, last = network.first_source[sensor], network.first_source[sensor + 1]
    for k in range(first, last):
        if puzzle.state[network.sources[k]] == OPEN:
            amount = min(amount, _funds(network, puzzle, dual, network.sources[k]))
    if amount <= 0 or amount == np.inf:
        return amount
    for k in range(first, last):  # sources that share a pool may find it empty
        source = network.sources[k]
        if puzzle.state[source] == OPEN:
            amount = dual.paid[source] = _pay(network, puzzle, dual, source, amount)
    for k in range(first, last):
        source = network.sources[k]
        if puzzle.state[source] == OPEN:
            dual.slack[source] += dual.paid[source] - amount
    return amount


@compiled
def _start_dual(network: Network, puzzle: Puzzle, dual: Dual, members: Places, cells: Places) -> None:
    """Start with u = 0; a negative cost is a debt, which is paid from the pools as far as they reach."""
    for sensor in cells:
        dual.pool[sensor] = -puzzle.worth[sensor]
    for source in members:
        dual.slack[source] = network.source_cost[source]
        if puzzle.state[source] == OPEN and network.source_cost[source] < 0:
            debt = -network.source_cost[source]
            dual.slack[source] = 0.0
            dual.slack[source] = _pay(network, puzzle, dual, source, debt) - debt


@compiled
def _bounds(network: Network, puzzle: Puzzle, dual: Dual, members: Places, cells: Places) -> tuple[float, float]:
    """The cost with all open members off, and a lower bound of the cost for any choice of them.

    Both are relative to all sensors of the part quiet. The bound is the value of the dual solution above.
    """
    _start_dual(network, puzzle, dual, members, cells)
    now = 0.0
    for source in members:
        if puzzle.state[source] == ON:
            now += network.source_cost[source]
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
def _ranks_before(state: NDArray[np.int8], best: NDArray[np.int8], members: Places) -> bool:
    """Whether ``state`` is preferred in a tie: fewer active sources, then the smaller number that their bits spell.

    ``members`` are in rising order; open sources count as off.
    """
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
def _n_active(state: NDArray[np.int8], members: Places) -> int:
    """How many members are on."""
    count = 0
    for source in members:
        count += state[source] == ON
    return count


@compiled
def _close_hopeless(network: Network, puzzle: Puzzle, dual: Dual, members: Places, room: float) -> None:
    """Switch off the open members that, switched on, would raise the bound by more than ``room``."""
    for source in members:
        if puzzle.state[source] == OPEN and _funds(network, puzzle, dual, source) > room:
            decide(network, puzzle, source, OFF)


@compiled
def _next_branch(network: Network, puzzle: Puzzle, members: Places) -> int:
    """The open member that would gain most if no other open one were switched on; -1 if none is open."""
    chosen, most = -1, -np.inf
    for source in members:
        if puzzle.state[source] == OPEN:
            gain = -network.source_cost[source]
            for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
                sensor = network.sensors[k]
                if puzzle.n_on[sensor] == 0:
                    gain += min(puzzle.worth[sensor], WORTH_OF_REQUIRED)
            if gain > most:
                chosen, most = source, gain
    return chosen


@compiled
def dive(network: Network, puzzle: Puzzle, members: Places, cells: Places, state: NDArray[np.int8]) -> float:
    """The cost of a good choice of the open members: the one that gains most is switched on until none is open.

    It is relative to all sensors of the part quiet, and finite unless no choice is. The choice goes into ``state``.
    """
    root = puzzle.length[0]
    source = _next_branch(network, puzzle, members)
    while source >= 0:
        decide(network, puzzle, source, ON)
        settle(network, puzzle, members)
        source = _next_branch(network, puzzle, members)
    cost = 0.0
    for source in members:
        state[source] = puzzle.state[source]
        if puzzle.state[source] == ON:
            cost += network.source_cost[source]
    for sensor in cells:
        if puzzle.worth[sensor] < np.inf:
            cost -= puzzle.worth[sensor] if puzzle.n_on[sensor] > 0 else 0.0
        elif puzzle.n_on[sensor] == 0:
            cost = np.inf
    undo(network, puzzle, root)
    return cost


@compiled
def unexplored(tree: Tree, depth: int) -> float:
    """A lower bound of all solutions in the branches that the search has not finished."""
    below: float = tree.bound[depth - 1]
    for k in range(depth):
        if not tree.is_off[k]:
            below = min(below, tree.bound[k])
    return below


@compiled
def _solve_part(
    network: Network, puzzle: Puzzle, dual: Dual, tree: Tree, members: Places, cells: Places, n_nodes: int
) -> tuple[float, float]:
    """Find the cheapest choice of the open members, into ``tree.state``; return its cost and a lower bound of it.

    The two differ only where the search was stopped after ``n_nodes`` nodes. ``cells`` are the sensors of the part.
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
        if not hopeless and below >= best - ROUNDING:  # at best a tie, which fewer active sources win
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
        while depth > 0 and tree.is_off[depth - 1]:  # both sides are finished
            depth -= 1
        if depth == 0:
            undo(network, puzzle, root)
            return best, best
        undo(network, puzzle, tree.mark[depth - 1])
        tree.is_off[depth - 1] = True
        decide(network, puzzle, tree.source[depth - 1], OFF)
    undo(network, puzzle, root)
    return best, min(best, unexplored(tree, depth))


@compiled
def start_row(puzzle: Puzzle, network: Network, penalty: NDArray[np.float64], cells: NDArray[np.uint8]) -> None:
    """Start the puzzle of a row: every source is open."""
    puzzle.state[:] = OPEN
    puzzle.n_on[:] = 0
    puzzle.length[0] = 0
    for sensor in range(cells.size):
        if_quiet, if_on = penalty[sensor, cells[sensor], 0], penalty[sensor, cells[sensor], 1]
        puzzle.worth[sensor] = if_quiet - if_on
        puzzle.n_open[sensor] = network.first_source[sensor + 1] - network.first_source[sensor]


@compiled
def cost_of_row(network: Network, puzzle: Puzzle, penalty: NDArray[np.float64], cells: NDArray[np.uint8]) -> float:
    """The cost of the decided row, penalties of all cells included."""
    cost = 0.0
    for source in range(puzzle.state.size):
        if puzzle.state[source] == ON:
            cost += network.source_cost[source]
    for sensor in range(cells.size):
        cost += penalty[sensor, cells[sensor], 1 if puzzle.n_on[sensor] > 0 else 0]
    return cost


@compiled
def _sort(items: Places, keys: Places) -> None:
    """Sort a few items by their keys, in place; NumPy's sorts take seconds to compile."""
    for k in range(1, items.size):
        item, key, place = items[k], keys[k], k
        while place > 0 and keys[place - 1] > key:
            items[place], keys[place] = items[place - 1], keys[place - 1]
            place -= 1
        items[place], keys[place] = item, key


@compiled
def _n_edges(network: Network, members: Places) -> int:
    count = 0
    for source in members:
        count += network.first_sensor[source + 1] - network.first_sensor[source]
    return count


@compiled
def cells_of(network: Network, puzzle: Puzzle, members: Places, is_listed: NDArray[np.bool_]) -> Places:
    """The sensors that the open members can still change, those with the fewest open sources first."""
    n_edges = _n_edges(network, members)
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
def is_impossible(puzzle: Puzzle) -> bool:
    """Whether some sensor must be on although no active or open source reaches it."""
    for sensor in range(puzzle.worth.size):
        if puzzle.worth[sensor] == np.inf and puzzle.n_on[sensor] == 0 and puzzle.n_open[sensor] == 0:
            return True
    return False


@compiled
def _solve_row(network: Network, puzzle: Puzzle, dual: Dual, tree: Tree, n_nodes: int) -> float:
    """Decide every source; return the gap: how much cheaper an unknown solution could still be."""
    all_sources = np.empty(puzzle.state.size, np.int64)
    for source in range(all_sources.size):
        all_sources[source] = source
    settle(network, puzzle, all_sources)
    is_member, is_listed = np.empty(puzzle.state.size, np.bool_), np.empty(puzzle.worth.size, np.bool_)
    is_member[:], is_listed[:] = False, False
    cells = cells_of(network, puzzle, all_sources, is_listed)
    best = dive(network, puzzle, all_sources, cells, tree.state)
    _, below = _bounds(network, puzzle, dual, all_sources, cells)
    _close_hopeless(network, puzzle, dual, all_sources, best + TIE - below)
    is_listed[:] = False
    settle(network, puzzle, all_sources)
    n_open = 0
    for source in range(all_sources.size):
        n_open += puzzle.state[source] == OPEN
    while n_open <= MOST_COMPARED and drop_dominated(network, puzzle, all_sources):
        settle(network, puzzle, all_sources)
    if is_impossible(puzzle):
        return 0.0
    gap = 0.0
    members = np.empty(puzzle.state.size, np.int64)
    for source in range(puzzle.state.size):
        if puzzle.state[source] == OPEN and not is_member[source]:
            part = members[: connected(network, puzzle, source, members, is_member)]
            keys = np.empty(part.size, np.int64)
            for k in range(part.size):
                keys[k] = part[k]
            _sort(part, keys)
            cells = cells_of(network, puzzle, part, is_listed)
            affordable = min(n_nodes, max(FEWEST_NODES, EDGES_PER_PART // _n_edges(network, part)))
            best, below = _solve_part(network, puzzle, dual, tree, part, cells, affordable)
            if best == np.inf:
                return 0.0 if below == np.inf else np.inf
            gap += best - below
            for k in range(part.size):
                decide(network, puzzle, part[k], int(tree.state[part[k]]))
    return gap


@compiled
def write_active(network: Network, puzzle: Puzzle, active: Words) -> None:
    """Set the bits of the active sources in the words of a row; open sources are switched off.

    A source is still open where the row is impossible, or was not solved.
    """
    for source in range(puzzle.state.size):
        if puzzle.state[source] == OPEN:
            decide(network, puzzle, source, OFF)
        if puzzle.state[source] == ON:
            active[source // 64] |= np.uint64(1) << np.uint64(source % 64)


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
    """Find the cheapest activity behind each row of cells, given ``penalty[sensor, cell, state]``.

    ``active`` starts as zeros and receives it. The cost is infinite where no activity was found, and proven to be the
    least where the gap is 0. A part of a row is searched through at most ``n_nodes`` nodes, a large one through fewer.
    """
    n_sources, n_sensors = network.source_cost.size, cells.shape[1]
    puzzle, tree = empty_puzzle(n_sensors, n_sources), empty_tree(n_sources)
    dual = Dual(np.empty(n_sources), np.empty(n_sensors), np.empty(n_sources))
    for row in range(cells.shape[0]):
        start_row(puzzle, network, penalty, cells[row])
        gap[row] = _solve_row(network, puzzle, dual, tree, n_nodes)
        write_active(network, puzzle, active[row])
        cost[row] = cost_of_row(network, puzzle, penalty, cells[row])
