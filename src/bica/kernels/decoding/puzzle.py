"""One row as a puzzle: decide the sources that no optimum leaves in doubt, and split the rest into parts.

The program of a row (the paper's inverse problem; "Decoding" in ARCHITECTURE.md) is

    minimise  sum_j cost_j y_j - sum_i worth_i x_i   over y in {0, 1}^n,   where  x_i = OR of the y_j that reach i.

The cost of source j is log((1 - p_j) / p_j). The worth of sensor i is what its being on saves, the penalty of its cell
if the sensor is quiet less that if it is on: positive where it shows 1, negative where it shows 0, zero where it was
not observed, infinite where it never errs that way.

A source is open until it is decided. Whatever the other open sources do, switching source j on gains

    at least  -cost_j + sum of the negative worths,    at most  -cost_j + sum of the positive worths

of its sensors that are not yet on; a sensor that no other open source reaches counts in both. A source that cannot gain
is off, one that must gain is on (``settle``). A source that another one can replace without loss is off
(``drop_dominated``, an exchange argument). Each such decision keeps the optimum, and in a tie the preferred one. Open
sources that share no sensor in doubt are then minimised apart (``connected``).

Invariant: ``n_on`` and ``n_open`` count the active and the open sources of every sensor, and ``trail`` lists all
decisions in order, so that ``undo`` can take the last ones back.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.decoding.table import TIE

OFF, ON, OPEN = 0, 1, 2
ROUNDING = 1e-11  # nats that sums of costs may be off by; far below a tie
Places = NDArray[np.int64]
Costs = NDArray[np.float64]


class Network(NamedTuple):
    """Who reaches whom, and what each source costs.

    The sensors of source j are ``sensors[first_sensor[j]:first_sensor[j + 1]]``, and likewise the sources of a sensor.
    """

    first_sensor: Places  # (n_sources + 1,)
    sensors: Places
    first_source: Places  # (n_sensors + 1,)
    sources: Places
    source_cost: Costs  # (n_sources,), of switching each source on; negative for a source that is mostly on


class Puzzle(NamedTuple):
    """The decisions of one row so far."""

    worth: Costs  # (n_sensors,), what each sensor saves by being on
    state: NDArray[np.int8]  # (n_sources,), OFF, ON or OPEN
    n_on: Places  # (n_sensors,), how many active sources reach it
    n_open: Places  # (n_sensors,), how many open sources reach it
    trail: Places  # (n_sources,), the decided sources, in order
    length: Places  # (1,), how many sources are on the trail


@compiled
def empty_puzzle(n_sensors: int, n_sources: int) -> Puzzle:
    """Room for a row."""
    return Puzzle(
        np.empty(n_sensors),
        np.empty(n_sources, np.int8),
        np.empty(n_sensors, np.int64),
        np.empty(n_sensors, np.int64),
        np.empty(n_sources, np.int64),
        np.empty(1, np.int64),
    )


@compiled
def decide(network: Network, puzzle: Puzzle, source: int, state: int) -> None:
    """Switch an open source on or off for good."""
    puzzle.state[source] = state
    puzzle.trail[puzzle.length[0]] = source
    puzzle.length[0] += 1
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        puzzle.n_open[network.sensors[k]] -= 1
        puzzle.n_on[network.sensors[k]] += state


@compiled
def undo(network: Network, puzzle: Puzzle, length: int) -> None:
    """Open the last decided sources again, until ``length`` of them are left on the trail."""
    while puzzle.length[0] > length:
        puzzle.length[0] -= 1
        source = puzzle.trail[puzzle.length[0]]
        for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
            puzzle.n_open[network.sensors[k]] += 1
            puzzle.n_on[network.sensors[k]] -= puzzle.state[source]
        puzzle.state[source] = OPEN


@compiled
def _gains(network: Network, puzzle: Puzzle, source: int) -> tuple[float, float]:
    """The least and the most that switching this source on can gain, whatever the other open ones do."""
    least = most = -network.source_cost[source]
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor = network.sensors[k]
        worth = puzzle.worth[sensor]
        if worth == -np.inf:
            return -np.inf, -np.inf
        if puzzle.n_on[sensor] == 0:
            is_last = puzzle.n_open[sensor] == 1  # no other open source can switch it on
            if worth < 0 or is_last:
                least += worth
            if worth > 0 or is_last:
                most += worth
    return least, most


@compiled
def settle(network: Network, puzzle: Puzzle, members: Places) -> None:
    """Switch on the open members that must gain and off those that cannot, until no more can be decided."""
    changed = True
    while changed:
        changed = False
        for source in members:
            if puzzle.state[source] == OPEN:
                least, most = _gains(network, puzzle, source)
                if most <= ROUNDING:  # in a draw, fewer active sources win
                    decide(network, puzzle, source, OFF)
                    changed = True
                elif least > TIE:
                    decide(network, puzzle, source, ON)
                    changed = True


@compiled
def _matters(puzzle: Puzzle, sensor: int) -> bool:
    """Whether an open source would change something at this sensor."""
    return bool(puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] != 0)


@compiled
def _reaches(network: Network, source: int, sensor: int) -> bool:
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        if network.sensors[k] == sensor:
            return True
    return False


@compiled
def _is_dominated(network: Network, puzzle: Puzzle, source: int, other: int, is_reached: NDArray[np.bool_]) -> bool:
    """Whether ``other`` may take the place of ``source`` in every solution without loss, ties included.

    The exchange saves the cost of ``source``; it loses the worth of sensors that only ``source`` reaches, and adds the
    cost of ``other`` and the harm at sensors that only ``other`` reaches. Where both are on already, switching
    ``source`` off must not lose either. ``is_reached`` marks the sensors of ``source``; the harm is summed up first,
    since it rules out nearly every pair.
    """
    saved, lost, added = network.source_cost[source], 0.0, network.source_cost[other]
    for k in range(network.first_sensor[other], network.first_sensor[other + 1]):
        sensor = network.sensors[k]
        if not is_reached[sensor] and puzzle.worth[sensor] < 0 and _matters(puzzle, sensor):
            added -= puzzle.worth[sensor]
            if added > saved:
                return False
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor = network.sensors[k]
        if puzzle.worth[sensor] > 0 and _matters(puzzle, sensor) and not _reaches(network, other, sensor):
            lost += puzzle.worth[sensor]
            if lost > saved:  # with both on, dropping the source would not pay
                return False
    return bool(lost + added < saved - 2 * TIE or (other < source and lost + added <= saved))


@compiled
def _mark(network: Network, source: int, is_reached: NDArray[np.bool_], mark: bool) -> None:
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        is_reached[network.sensors[k]] = mark


@compiled
def _is_replaceable(network: Network, puzzle: Puzzle, source: int, is_reached: NDArray[np.bool_]) -> bool:
    """Whether an open source that shares a sensor which shows 1 can take the place of this one."""
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor = network.sensors[k]
        if _matters(puzzle, sensor) and puzzle.worth[sensor] > 0:
            for r in range(network.first_source[sensor], network.first_source[sensor + 1]):
                other = network.sources[r]
                if (
                    other != source
                    and puzzle.state[other] == OPEN
                    and _is_dominated(network, puzzle, source, other, is_reached)
                ):
                    return True
    return False


@compiled
def drop_dominated(network: Network, puzzle: Puzzle, members: Places) -> bool:
    """Switch off open members that another open source can replace; return whether there were any."""
    before = puzzle.length[0]
    is_reached = np.zeros(puzzle.worth.size, np.bool_)
    for source in members:
        if puzzle.state[source] == OPEN:
            _mark(network, source, is_reached, True)
            if _is_replaceable(network, puzzle, source, is_reached):
                decide(network, puzzle, source, OFF)
            _mark(network, source, is_reached, False)
    return bool(puzzle.length[0] > before)


@compiled
def connected(network: Network, puzzle: Puzzle, start: int, members: Places, is_member: NDArray[np.bool_]) -> int:
    """Write ``start`` and all open sources connected with it into ``members``; return how many there are.

    Two sources are connected directly if they share a sensor that is not yet on and has a worth other than 0.
    """
    members[0] = start
    is_member[start] = True
    count, done = 1, 0
    while done < count:
        source = members[done]
        done += 1
        for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
            sensor = network.sensors[k]
            if _matters(puzzle, sensor):
                for r in range(network.first_source[sensor], network.first_source[sensor + 1]):
                    other = network.sources[r]
                    if puzzle.state[other] == OPEN and not is_member[other]:
                        is_member[other] = True
                        members[count] = other
                        count += 1
    return count
