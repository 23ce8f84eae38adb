"""One row behind edges that may fail: the most probable activity, and sums over all activities.

Let f be the probability that an edge fails and z_i the product of f over the active sources of sensor i. A cell has the
probability z w0 + (1 - z) w1, where w0 and w1 are its probabilities if the sensor was left alone and if it was switched
on. The cost of an activity is

    sum_j cost_j y_j + sum_i c_i(z_i),    c_i(z) = -log(z w0 + (1 - z) w1),  ``wrong`` where that is -log 0.

With s = -log z, which adds up over active sources, c_i is convex and falling where the cell speaks for a source
(w1 > w0), concave and rising where it speaks against one. So what a source gains at a cell, or loses at one, is most
while the other open sources are off and least while they are on, and these bounds are exact cell by cell: a source that
cannot gain is off, one that must gain is on (``_settle``).

Bound of a partial decision. Take any set T of open sources. From T one gets to every other set by dropping some of its
members and then adding others; a member's dropping saves at most drop_j = cost_j + its greatest losses - its least
gains, and an addition gains at most add_j = its gain while T is on - its least losses - cost_j. So every set costs at
least

    cost(T) - sum over T of max(0, drop_j) - sum over the others of max(0, add_j).

T is chosen greedily, and what it costs is the next candidate; the empty T bounds as well. The search goes depth first
on the source with the largest of these terms; where none is positive, T is the best below this node.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells, Words
from bica.kernels.compiled import compiled
from bica.kernels.decoding.table import TIE

OFF, ON, OPEN = 0, 1, 2
ROUNDING = 1e-11  # nats that sums of costs may be off by; far below a tie
Places = NDArray[np.int64]
Floats = NDArray[np.float64]


class LossyNetwork(NamedTuple):
    """Who reaches whom, how often an edge fails, and what each source costs.

    The sensors of source j are ``sensors[first_sensor[j]:first_sensor[j + 1]]``, and likewise the sources of a sensor.
    """

    first_sensor: Places  # (n_sources + 1,)
    sensors: Places
    lost: Floats  # in the order of ``sensors``: how often the edge fails
    first_source: Places  # (n_sensors + 1,)
    sources: Places
    lost_at: Floats  # the same in the order of ``sources``
    source_cost: Floats  # (n_sources,), log((1 - p) / p)
    wrong: float  # the cost of an impossible cell: more than all else together


class LossyRow(NamedTuple):
    """The cells of one row, and the decisions so far."""

    alone: Floats  # (n_sensors,), w0: the probability of the cell if no source switched the sensor on
    switched: Floats  # (n_sensors,), w1: if one did
    state: NDArray[np.int8]  # (n_sources,), OFF, ON or OPEN
    z_on: Floats  # (n_sensors,), the probability that all active sources fail here
    z_open: Floats  # (n_sensors,), that all open ones fail, were they on
    z_trial: Floats  # (n_sensors,), the same as ``z_on`` with a trial set of open sources
    trail: Places  # (n_sources,), the decided sources, in order
    length: Places  # (1,), how many sources are on the trail


class LossyTree(NamedTuple):
    """The branches between the root and the present node, and the best solution so far."""

    source: Places  # (n_sources,), the source branched on, by depth
    mark: Places  # (n_sources,), the length of the trail before the branch
    bound: Floats  # (n_sources,), a lower bound of both sides of the branch
    first: NDArray[np.int8]  # (n_sources,), the state on the first side
    is_second: NDArray[np.bool_]  # (n_sources,)
    trial: NDArray[np.bool_]  # (n_sources,), the trial set T
    best: NDArray[np.bool_]  # (n_sources,), the active sources of the best solution


@compiled
def cell_cost(alone: float, switched: float, z: float, wrong: float) -> float:
    """-log of the probability of a cell whose active sources all fail with probability ``z``."""
    probability = z * alone + (1.0 - z) * switched
    return -np.log(probability) if probability > 0.0 else wrong


@compiled
def _refresh(network: LossyNetwork, row: LossyRow, sensor: int) -> None:
    """Multiply anew, so that what is undone leaves no rounding behind."""
    on, still_open = 1.0, 1.0
    for k in range(network.first_source[sensor], network.first_source[sensor + 1]):
        state = row.state[network.sources[k]]
        if state == ON:
            on *= network.lost_at[k]
        elif state == OPEN:
            still_open *= network.lost_at[k]
    row.z_on[sensor], row.z_open[sensor] = on, still_open


@compiled
def _decide(network: LossyNetwork, row: LossyRow, source: int, state: int) -> None:
    row.state[source] = state
    row.trail[row.length[0]] = source
    row.length[0] += 1
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        _refresh(network, row, network.sensors[k])


@compiled
def _undo(network: LossyNetwork, row: LossyRow, length: int) -> None:
    """Open the last decided sources again, until ``length`` of them are left on the trail."""
    while row.length[0] > length:
        row.length[0] -= 1
        source = row.trail[row.length[0]]
        row.state[source] = OPEN
        for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
            _refresh(network, row, network.sensors[k])


@compiled
def _other_open(network: LossyNetwork, row: LossyRow, sensor: int, source: int) -> float:
    """The probability that all open sources but this one fail at the sensor."""
    rest = 1.0
    for k in range(network.first_source[sensor], network.first_source[sensor + 1]):
        other = network.sources[k]
        if other != source and row.state[other] == OPEN:
            rest *= network.lost_at[k]
    return rest


@compiled
def _saved(network: LossyNetwork, row: LossyRow, sensor: int, z: float, lost: float) -> float:
    """What an edge saves at a cell where the others fail with probability ``z``; negative where it harms."""
    alone, switched = row.alone[sensor], row.switched[sensor]
    before, after = cell_cost(alone, switched, z, network.wrong), cell_cost(alone, switched, z * lost, network.wrong)
    return before - after


@compiled
def _bounds(network: LossyNetwork, row: LossyRow, source: int, trial: bool) -> tuple[float, float]:
    """The least and the most that switching this source on can gain, whatever the other open ones do.

    With ``trial``, the most is that while the trial set is on.
    """
    least = most = -network.source_cost[source]
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor, lost = network.sensors[k], network.lost[k]
        if row.alone[sensor] == row.switched[sensor] or row.z_on[sensor] == 0.0:
            continue
        crowded = row.z_on[sensor] * _other_open(network, row, sensor, source)
        with_others = _saved(network, row, sensor, crowded, lost)
        if row.switched[sensor] > row.alone[sensor]:
            most += _saved(network, row, sensor, row.z_trial[sensor] if trial else row.z_on[sensor], lost)
            least += with_others
        else:
            most += with_others
            least += _saved(network, row, sensor, row.z_on[sensor], lost)
    return least, most


@compiled
def _settle(network: LossyNetwork, row: LossyRow, members: Places) -> None:
    """Switch on the open members that must gain and off those that cannot, until no more can be decided."""
    changed = True
    while changed:
        changed = False
        for source in members:
            if row.state[source] == OPEN:
                least, most = _bounds(network, row, source, False)
                if most <= ROUNDING:  # in a draw, fewer active sources win
                    _decide(network, row, source, OFF)
                    changed = True
                elif least > TIE:
                    _decide(network, row, source, ON)
                    changed = True


@compiled
def _connects(row: LossyRow, sensor: int) -> bool:
    """Whether what one open source does at this sensor depends on the others.

    At a cell that speaks against sources and leaves no doubt once one works (w1 = 0), losses simply add up.
    """
    alone, switched = row.alone[sensor], row.switched[sensor]
    if alone == switched or row.z_on[sensor] == 0.0:
        return False
    return not (switched == 0.0 and row.z_open[sensor] > 0.0)


@compiled
def _connected(network: LossyNetwork, row: LossyRow, start: int, members: Places, is_member: NDArray[np.bool_]) -> int:
    """Write ``start`` and all open sources connected with it into ``members``; return how many there are."""
    members[0] = start
    is_member[start] = True
    count, done = 1, 0
    while done < count:
        source = members[done]
        done += 1
        for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
            sensor = network.sensors[k]
            if _connects(row, sensor):
                for r in range(network.first_source[sensor], network.first_source[sensor + 1]):
                    other = network.sources[r]
                    if row.state[other] == OPEN and not is_member[other]:
                        is_member[other] = True
                        members[count] = other
                        count += 1
    return count


@compiled
def _part_cost(network: LossyNetwork, row: LossyRow, members: Places, cells: Places) -> float:
    """What the part costs while its open sources are off."""
    total = 0.0
    for source in members:
        if row.state[source] == ON:
            total += network.source_cost[source]
    for sensor in cells:
        total += cell_cost(row.alone[sensor], row.switched[sensor], row.z_on[sensor], network.wrong)
    return total


@compiled
def _trial_gain(network: LossyNetwork, row: LossyRow, source: int) -> float:
    """What switching this source on gains while the trial set is on."""
    gain: float = -network.source_cost[source]
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor = network.sensors[k]
        if row.alone[sensor] != row.switched[sensor]:
            gain += _saved(network, row, sensor, row.z_trial[sensor], network.lost[k])
    return gain


@compiled
def _grow_trial(network: LossyNetwork, row: LossyRow, tree: LossyTree, members: Places, cells: Places) -> float:
    """Make T the open sources that gain, the largest gain first; return what it gains over switching them all off."""
    for sensor in cells:
        row.z_trial[sensor] = row.z_on[sensor]
    for source in members:
        tree.trial[source] = False
    total = 0.0
    while True:
        best, best_gain = -1, TIE
        for source in members:
            if row.state[source] == OPEN and not tree.trial[source]:
                gain = _trial_gain(network, row, source)
                if gain > best_gain:
                    best, best_gain = source, gain
        if best < 0:
            return total
        tree.trial[best] = True
        total += best_gain
        for k in range(network.first_sensor[best], network.first_sensor[best + 1]):
            row.z_trial[network.sensors[k]] *= network.lost[k]


@compiled
def _keep_trial(row: LossyRow, tree: LossyTree, members: Places, cost: float, best_cost: float) -> float:
    """Keep the present decisions with T as the best solution if they are; return the cost of the best."""
    if cost > best_cost + TIE:
        return best_cost
    if cost >= best_cost - TIE:  # in a tie fewer active sources win, then the smaller number that they spell
        n_now, n_best, last_differs = 0, 0, -1
        now_has_it = False
        for source in members:
            now = row.state[source] == ON or tree.trial[source]
            n_now += now
            n_best += tree.best[source]
            if now != tree.best[source] and source > last_differs:
                last_differs, now_has_it = source, now
        if n_now > n_best or (n_now == n_best and (last_differs < 0 or now_has_it)):
            return best_cost
    for source in members:
        tree.best[source] = row.state[source] == ON or tree.trial[source]
    return cost


@compiled
def _visit(
    network: LossyNetwork, row: LossyRow, tree: LossyTree, members: Places, cells: Places, best_cost: float
) -> tuple[float, float, int]:
    """Look at the present node: the cost of the best solution so far, a bound, the source to branch on (-1: none)."""
    _settle(network, row, members)
    empty = _part_cost(network, row, members, cells)
    gained = _grow_trial(network, row, tree, members, cells)
    best_cost = _keep_trial(row, tree, members, empty - gained, best_cost)
    from_trial, from_empty, widest, branch = empty - gained, empty, 0.0, -1
    for source in members:
        if row.state[source] == OPEN:
            least, most = _bounds(network, row, source, False)
            from_empty -= max(0.0, most)
            term = -least if tree.trial[source] else _bounds(network, row, source, True)[1]
            if term > 0.0:
                from_trial -= term
                if term > widest:
                    widest, branch = term, source
    return best_cost, max(from_trial, from_empty), branch


@compiled
def _search_part(
    network: LossyNetwork, row: LossyRow, tree: LossyTree, members: Places, cells: Places, n_nodes: int
) -> float:
    """Decide all open members as in their best solution; return how much cheaper an unknown one could be."""
    root, depth, best_cost, gap = row.length[0], 0, np.inf, 0.0
    for source in members:
        tree.best[source] = False
    visited = 0
    while True:
        visited += 1
        best_cost, bound, branch = _visit(network, row, tree, members, cells, best_cost)
        if branch >= 0 and bound <= best_cost + TIE:
            tree.source[depth], tree.mark[depth], tree.bound[depth] = branch, row.length[0], bound
            tree.first[depth], tree.is_second[depth] = ON if tree.trial[branch] else OFF, False
            _decide(network, row, branch, tree.first[depth])
            depth += 1
        else:
            while depth > 0 and (tree.is_second[depth - 1] or tree.bound[depth - 1] > best_cost + TIE):
                depth -= 1
            if depth == 0:
                break
            _undo(network, row, tree.mark[depth - 1])
            tree.is_second[depth - 1] = True
            _decide(network, row, tree.source[depth - 1], ON + OFF - tree.first[depth - 1])
        if visited >= n_nodes:
            for level in range(depth):
                gap = max(gap, best_cost - tree.bound[level])
            break
    _undo(network, row, root)
    for source in members:
        _decide(network, row, source, ON if tree.best[source] else OFF)
    return gap


@compiled
def _part_cells(network: LossyNetwork, row: LossyRow, members: Places, cells: Places) -> int:
    """Write the sensors of the members that say something into ``cells``; return how many there are."""
    count = 0
    for source in members:
        for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
            sensor = network.sensors[k]
            if row.alone[sensor] != row.switched[sensor] and row.z_trial[sensor] >= 0.0:
                row.z_trial[sensor] = -1.0  # a mark: already there
                cells[count] = sensor
                count += 1
    for k in range(count):
        row.z_trial[cells[k]] = row.z_on[cells[k]]
    return count


@compiled
def _in_order(members: Places, is_member: NDArray[np.bool_]) -> None:
    """Write the members in rising order, and forget them in ``is_member``."""
    count = 0
    for source in range(is_member.size):
        if is_member[source]:
            members[count], is_member[source] = source, False
            count += 1


@compiled
def _start_row(network: LossyNetwork, weight: Floats, cells: NDArray[np.uint8], row: LossyRow) -> None:
    """Open all sources of a row with these cells."""
    row.length[0] = 0
    for source in range(row.state.size):
        row.state[source] = OPEN
    for sensor in range(cells.size):
        row.alone[sensor] = weight[sensor, cells[sensor], 0]
        row.switched[sensor] = weight[sensor, cells[sensor], 1]
        row.z_trial[sensor] = 1.0
        _refresh(network, row, sensor)


@compiled
def decode_lossy(network: LossyNetwork, weight: Floats, cells: Cells, n_nodes: int, active: Words, gap: Floats) -> None:
    """Set the bits of the cheapest activity behind each row of cells, and how much cheaper an unknown one could be.

    ``weight[sensor, cell, state]`` is the probability of a cell if the sensor was left alone, or switched on.
    """
    n_sensors, n_sources = weight.shape[0], network.source_cost.size
    row = LossyRow(
        np.empty(n_sensors),
        np.empty(n_sensors),
        np.empty(n_sources, np.int8),
        np.empty(n_sensors),
        np.empty(n_sensors),
        np.empty(n_sensors),
        np.empty(n_sources, np.int64),
        np.zeros(1, np.int64),
    )
    tree = LossyTree(
        np.empty(n_sources, np.int64),
        np.empty(n_sources, np.int64),
        np.empty(n_sources),
        np.empty(n_sources, np.int8),
        np.empty(n_sources, np.bool_),
        np.zeros(n_sources, np.bool_),
        np.zeros(n_sources, np.bool_),
    )
    every, members = np.arange(n_sources), np.empty(n_sources, np.int64)
    is_member, of_part = np.zeros(n_sources, np.bool_), np.empty(n_sensors, np.int64)
    for number in range(cells.shape[0]):
        _start_row(network, weight, cells[number], row)
        _settle(network, row, every)
        gap[number] = 0.0
        for source in range(n_sources):
            if row.state[source] == OPEN:
                count = _connected(network, row, source, members, is_member)
                _in_order(members, is_member)
                n_cells = _part_cells(network, row, members[:count], of_part)
                gap[number] += _search_part(network, row, tree, members[:count], of_part[:n_cells], n_nodes)
        for source in range(n_sources):
            if row.state[source] == ON:
                active[number, source // 64] |= np.uint64(1) << np.uint64(source % 64)
