"""Branch and bound for hard rows: the dual of ``search.py`` is climbed, not only filled once.

The multipliers of the linear relaxation (prices u_i of sensors that show 1, and shares v_ij of the losses at sensors
that show 0; see ``search.py``) are feasible wherever 0 <= u_i <= w_i, v_ij >= 0 and sum_j v_ij <= l_i. With the reduced
cost of an open source

    r_j = cost_j + sum_N v_ij - sum_P u_i,   the bound is   sum_P (u_i - w_i) + sum_O min(r_j, 0),

a concave function of the multipliers. With y_j = 1 where r_j < 0, it rises along 1 - sum_j y_j in u_i and along y_j in
v_ij (a subgradient), by steps of Polyak's length: the distance to the best known cost over the squared norm (B. T.
Polyak, Minimization of unsmooth functionals, 1969). A source whose switching, on or off, would raise the bound beyond
the best known cost is decided (reduced-cost fixing).

Invariant: the multipliers are feasible at every node, whichever sources are open, so a node begins where the last one
ended and needs a few steps only.

Where all costs are multiples of one number, the ``grain``, a solution is better by a grain or not at all, so a bound
less than a grain below the best known cost is as good as one that reaches it. Of equally cheap solutions the first one
found is kept: proving which one ranks first would mean to list them all.
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
from bica.kernels.decoding.search import (
    Tree,
    cells_of,
    cost_of_row,
    dive,
    empty_tree,
    is_impossible,
    start_row,
    unexplored,
    write_active,
)
from bica.kernels.decoding.table import TIE

STEPS_AT_ROOT, STEPS_AT_NODE = 200, 5  # of the climb
PATIENCE, SHORTER, SHORTEST = 3, 0.5, 0.01  # steps without a higher bound until they shrink, by how much, down to what
RISE = 1e-4  # nats by which a bound must rise to count as higher
LEAST_STEP = 1e-3  # nats of a step where the bound has all but reached its goal
FREE = 1e-6  # nats; a sensor whose price is lower needs no source


class Climb(NamedTuple):
    """Feasible multipliers, and what follows from them."""

    price: Costs  # (n_sensors,), u_i of sensors that show 1
    share: Costs  # (n_edges,), v_ij of sensors that show 0, by edge as in ``network.sensors``
    reduced: Costs  # (n_sources,), r_j of open sources
    slope: Costs  # (n_sensors,), 1 - sum_j y_j where the sensor is uncovered; scratch for sums of shares


@compiled
def _start_climb(network: Network, puzzle: Puzzle, climb: Climb, members: Places, cells: Places) -> None:
    """Every loss is shared equally; a price is what the sensor's cheapest source asks, its cost split equally."""
    for source in members:
        n_shown = 0
        for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
            sensor = network.sensors[k]
            climb.share[k] = 0.0
            if puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] > 0:
                n_shown += 1
            elif puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] < 0 and puzzle.n_open[sensor] > 0:
                climb.share[k] = -puzzle.worth[sensor] / puzzle.n_open[sensor]
        climb.reduced[source] = max(network.source_cost[source], 0.0) / max(n_shown, 1)
    for sensor in cells:
        climb.price[sensor] = 0.0
        if puzzle.worth[sensor] > 0 and puzzle.n_open[sensor] > 0:
            least = puzzle.worth[sensor]
            for k in range(network.first_source[sensor], network.first_source[sensor + 1]):
                if puzzle.state[network.sources[k]] == OPEN:
                    least = min(least, climb.reduced[network.sources[k]])
            climb.price[sensor] = least


@compiled
def _reduced_cost(network: Network, puzzle: Puzzle, climb: Climb, source: int) -> float:
    reduced: float = network.source_cost[source]
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor = network.sensors[k]
        if puzzle.n_on[sensor] == 0:
            reduced += climb.share[k] if puzzle.worth[sensor] < 0 else -climb.price[sensor]
    return reduced


@compiled
def _cost_of_active(network: Network, puzzle: Puzzle, members: Places) -> float:
    cost = 0.0
    for source in members:
        if puzzle.state[source] == ON:
            cost += network.source_cost[source]
    return cost


@compiled
def _bounds(network: Network, puzzle: Puzzle, climb: Climb, members: Places, cells: Places) -> tuple[float, float]:
    """The cost with all open members off, and the bound of these multipliers; writes reduced costs and slopes.

    Both are relative to all sensors of the part quiet. A sensor that no open source reaches stays as it is.
    """
    now = below = _cost_of_active(network, puzzle, members)
    for sensor in cells:
        worth = puzzle.worth[sensor]
        climb.slope[sensor] = 1.0 if puzzle.n_on[sensor] == 0 and worth > 0 else 0.0
        if puzzle.n_on[sensor] > 0:
            saved = worth if worth < np.inf else 0.0
            now -= saved
            below -= saved
        elif worth == np.inf:
            now = np.inf
            below += climb.price[sensor] if puzzle.n_open[sensor] > 0 else np.inf
        elif worth > 0 and puzzle.n_open[sensor] > 0:
            below += climb.price[sensor] - worth
    for source in members:
        if puzzle.state[source] == OPEN:
            climb.reduced[source] = _reduced_cost(network, puzzle, climb, source)
            if climb.reduced[source] < 0:
                below += climb.reduced[source]
                for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
                    climb.slope[network.sensors[k]] -= 1.0
    return now, below


@compiled
def _squared_norm(puzzle: Puzzle, climb: Climb, cells: Places) -> float:
    """Of the subgradient, without the directions in which a price is at its end."""
    total = 0.0
    for sensor in cells:
        slope = climb.slope[sensor]
        if puzzle.n_on[sensor] == 0 and puzzle.n_open[sensor] > 0:
            if puzzle.worth[sensor] < 0:
                total += max(-slope, 0.0)  # as many shares rise by one
            elif climb.price[sensor] > 0 if slope < 0 else climb.price[sensor] < puzzle.worth[sensor]:
                total += slope * slope
    return total


@compiled
def _raise_shares(network: Network, puzzle: Puzzle, climb: Climb, members: Places, length: float) -> None:
    """Raise the shares of sources with y_j = 1, and add up the shares of each loss into ``climb.slope``."""
    for source in members:
        if puzzle.state[source] == OPEN:
            more = length if climb.reduced[source] < 0 else 0.0
            for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
                sensor = network.sensors[k]
                if puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] < 0:
                    climb.share[k] += more
                    climb.slope[sensor] += climb.share[k]


@compiled
def _scale_shares(network: Network, puzzle: Puzzle, climb: Climb, members: Places) -> None:
    """Make the shares of each loss add up to it, given their sums."""
    for source in members:
        if puzzle.state[source] == OPEN:
            for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
                sensor = network.sensors[k]
                if puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] < 0 and climb.slope[sensor] > 0:
                    climb.share[k] *= -puzzle.worth[sensor] / climb.slope[sensor]


@compiled
def _step(network: Network, puzzle: Puzzle, climb: Climb, members: Places, cells: Places, rise: float) -> bool:
    """Go along the subgradient as far as would raise a linear function by ``rise``; return whether there was a way."""
    norm = _squared_norm(puzzle, climb, cells)
    if norm == 0:
        return False
    length = rise / norm
    for sensor in cells:
        if puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] > 0:
            price = climb.price[sensor] + length * climb.slope[sensor]
            climb.price[sensor] = min(max(price, 0.0), puzzle.worth[sensor])
        climb.slope[sensor] = 0.0
    _raise_shares(network, puzzle, climb, members, length)
    _scale_shares(network, puzzle, climb, members)
    return True


@compiled
def _fix(network: Network, puzzle: Puzzle, climb: Climb, members: Places, room: float) -> bool:
    """Decide the open members whose other state would raise the bound by more than ``room``; return whether any."""
    before = puzzle.length[0]
    for source in members:
        if puzzle.state[source] == OPEN:
            if climb.reduced[source] > room:
                decide(network, puzzle, source, OFF)
            elif -climb.reduced[source] > room:
                decide(network, puzzle, source, ON)
    return bool(puzzle.length[0] > before)


@compiled
def _tighten(
    network: Network, puzzle: Puzzle, climb: Climb, members: Places, cells: Places, goal: float, n_steps: int
) -> tuple[float, float]:
    """Climb until the bound reaches ``goal`` or is spent; return the cost with all open members off, and the bound.

    Sources that no solution cheaper than the goal leaves in doubt are decided on the way.
    """
    now, below = _bounds(network, puzzle, climb, members, cells)
    highest, length, n_idle = below, 1.0, 0
    for _ in range(n_steps):
        if highest >= goal or length < SHORTEST:
            break
        if not _step(network, puzzle, climb, members, cells, length * (goal - below) + LEAST_STEP):
            break
        now, below = _bounds(network, puzzle, climb, members, cells)
        if below < goal and _fix(network, puzzle, climb, members, goal - below):
            settle(network, puzzle, members)
            now, below = _bounds(network, puzzle, climb, members, cells)
        n_idle = 0 if below > highest + RISE else n_idle + 1
        highest = max(highest, below)
        if n_idle == PATIENCE:
            length, n_idle = SHORTER * length, 0
    return now, highest


@compiled
def _next_branch(network: Network, puzzle: Puzzle, climb: Climb, members: Places, cells: Places) -> int:
    """Of the priced sensor with the fewest open sources, the source of the least reduced cost; -1 if none is open."""
    chosen, fewest = -1, members.size + 1
    for sensor in cells:
        if (
            puzzle.n_on[sensor] == 0
            and puzzle.worth[sensor] > 0
            and climb.price[sensor] > FREE
            and 0 < puzzle.n_open[sensor] < fewest
        ):
            chosen, fewest = sensor, puzzle.n_open[sensor]
    sources = (
        members if chosen < 0 else network.sources[network.first_source[chosen] : network.first_source[chosen + 1]]
    )
    branch, least = -1, np.inf
    for source in sources:
        if puzzle.state[source] == OPEN and climb.reduced[source] < least:
            branch, least = source, climb.reduced[source]
    return branch


@compiled
def _not_off(puzzle: Puzzle, members: Places) -> Places:
    kept, count = np.empty(members.size, np.int64), 0
    for source in members:
        if puzzle.state[source] != OFF:
            kept[count] = source
            count += 1
    return kept[:count]


@compiled
def _solve_part(
    network: Network,
    puzzle: Puzzle,
    climb: Climb,
    tree: Tree,
    members: Places,
    cells: Places,
    grain: float,
    n_nodes: int,
) -> tuple[float, float]:
    """Find a cheapest choice of the open members, into ``tree.state``; return its cost and a lower bound of it."""
    root, depth, kept = puzzle.length[0], 0, members
    best = dive(network, puzzle, members, cells, tree.state)
    _start_climb(network, puzzle, climb, members, cells)
    for node in range(n_nodes):
        settle(network, puzzle, kept)
        goal = best - max(grain - TIE, TIE)  # no solution lies in between
        n_steps = STEPS_AT_ROOT if node == 0 else STEPS_AT_NODE
        now, below = _tighten(network, puzzle, climb, kept, cells, goal, n_steps)
        if node == 0 and below < goal:
            while drop_dominated(network, puzzle, kept):
                settle(network, puzzle, kept)
            kept = _not_off(puzzle, members)
            now, _ = _bounds(network, puzzle, climb, kept, cells)
        if now < best - TIE:
            best = now
            goal = best - max(grain - TIE, TIE)
            for source in members:
                tree.state[source] = ON if puzzle.state[source] == ON else OFF
        branch = -1 if below >= goal else _next_branch(network, puzzle, climb, kept, cells)
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
def _solve_row(network: Network, puzzle: Puzzle, climb: Climb, tree: Tree, grain: float, n_nodes: int) -> float:
    """Decide every source; return the gap: how much cheaper an unknown solution could still be."""
    sources = np.arange(puzzle.state.size)
    settle(network, puzzle, sources)
    if is_impossible(puzzle):
        return 0.0
    gap = 0.0
    members = np.empty(puzzle.state.size, np.int64)
    is_member, is_listed = np.zeros(puzzle.state.size, np.bool_), np.zeros(puzzle.worth.size, np.bool_)
    for source in range(sources.size):
        if puzzle.state[source] == OPEN and not is_member[source]:
            part = members[: connected(network, puzzle, source, members, is_member)]
            cells = cells_of(network, puzzle, part, is_listed)
            best, below = _solve_part(network, puzzle, climb, tree, part, cells, grain, n_nodes)
            gap += best - below
            for member in part:
                decide(network, puzzle, member, int(tree.state[member]))
    return gap


@compiled
def solve_hard_rows(
    network: Network,
    penalty: NDArray[np.float64],
    cells: Cells,
    grain: float,
    n_nodes: int,
    active: Words,
    cost: Costs,
    gap: Costs,
) -> None:
    """Find a cheapest activity behind each row of cells, as ``search_rows`` does; ties are left as they fall.

    All costs of sources and all differences of finite penalties are multiples of the ``grain``; 0 where there is none.
    """
    n_sources, n_sensors = network.source_cost.size, cells.shape[1]
    puzzle, tree = empty_puzzle(n_sensors, n_sources), empty_tree(n_sources)
    climb = Climb(np.empty(n_sensors), np.empty(network.sensors.size), np.empty(n_sources), np.empty(n_sensors))
    for row in range(cells.shape[0]):
        start_row(puzzle, network, penalty, cells[row])
        gap[row] = _solve_row(network, puzzle, climb, tree, grain, n_nodes)
        write_active(network, puzzle, active[row])
        cost[row] = cost_of_row(network, puzzle, penalty, cells[row])
