"""One row as a puzzle: sources are switched on or off until no sensor can gain from another choice.

A sensor's worth is what its being on saves: positive where it shows 1, negative where it shows 0, infinite where it
never errs that way. A source is open until it is decided. Decisions are kept on a trail, so that they can be undone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.decoding.table import TIE

OFF, ON, OPEN = 0, 1, 2
ROUNDING = 1e-11  # what sums of costs may be off by; far below a tie
Numbers = NDArray[np.int64]
Costs = NDArray[np.float64]


class Network(NamedTuple):
    """Who reaches whom, both ways: the sensors of source j are ``sensors[first_sensor[j]:first_sensor[j + 1]]``."""

    first_sensor: Numbers  # (n_sources + 1,)
    sensors: Numbers
    first_source: Numbers  # (n_sensors + 1,)
    sources: Numbers
    price: Costs  # (n_sources,)


class Puzzle(NamedTuple):
    """Where the decisions of one row stand."""

    worth: Costs  # (n_sensors,)
    state: NDArray[np.int8]  # (n_sources,), OFF, ON or OPEN
    n_on: Numbers  # (n_sensors,), how many active sources reach it
    n_open: Numbers  # (n_sensors,), how many open ones do
    trail: Numbers  # (n_sources,), what was decided, in order
    length: Numbers  # (1,), of the trail


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
    """Open again what was decided since the trail was so long."""
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
    least = most = -network.price[source]
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor = network.sensors[k]
        worth = puzzle.worth[sensor]
        if worth == -np.inf:
            return -np.inf, -np.inf
        if puzzle.n_on[sensor] == 0:
            nobody_else = puzzle.n_open[sensor] == 1
            if worth < 0 or nobody_else:
                least += worth
            if worth > 0 or nobody_else:
                most += worth
    return least, most


@compiled
def settle(network: Network, puzzle: Puzzle, members: Numbers) -> None:
    """Decide the open members that can only gain or only lose, until none is left."""
    changed = True
    while changed:
        changed = False
        for source in members:
            if puzzle.state[source] == OPEN:
                least, most = _gains(network, puzzle, source)
                if most <= ROUNDING:  # also a draw: then fewer active sources win
                    decide(network, puzzle, source, OFF)
                    changed = True
                elif least > TIE:
                    decide(network, puzzle, source, ON)
                    changed = True


@compiled
def _matters(puzzle: Puzzle, sensor: int) -> bool:
    return bool(puzzle.n_on[sensor] == 0 and puzzle.worth[sensor] != 0)


@compiled
def _reaches(network: Network, source: int, sensor: int) -> bool:
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        if network.sensors[k] == sensor:
            return True
    return False


@compiled
def _is_dominated(network: Network, puzzle: Puzzle, source: int, other: int) -> bool:
    """Whether ``other`` may take the place of ``source`` in every solution without loss, ties included."""
    lost, added = 0.0, network.price[other]
    for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
        sensor = network.sensors[k]
        if _matters(puzzle, sensor) and puzzle.worth[sensor] > 0 and not _reaches(network, other, sensor):
            lost += puzzle.worth[sensor]
    for k in range(network.first_sensor[other], network.first_sensor[other + 1]):
        sensor = network.sensors[k]
        if _matters(puzzle, sensor) and puzzle.worth[sensor] < 0 and not _reaches(network, source, sensor):
            added -= puzzle.worth[sensor]
    saved = network.price[source]
    if lost > saved:  # with both on, dropping the source would not pay
        return False
    return bool(lost + added < saved - 2 * TIE or (other < source and lost + added <= saved))


@compiled
def drop_dominated(network: Network, puzzle: Puzzle, members: Numbers) -> bool:
    """Switch off open members that another open source can stand in for; tell whether there were any."""
    before = puzzle.length[0]
    for source in members:
        for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
            if puzzle.state[source] != OPEN:
                break
            sensor = network.sensors[k]
            if _matters(puzzle, sensor) and puzzle.worth[sensor] > 0:
                for r in range(network.first_source[sensor], network.first_source[sensor + 1]):
                    other = network.sources[r]
                    if (
                        other != source
                        and puzzle.state[other] == OPEN
                        and _is_dominated(network, puzzle, source, other)
                    ):
                        decide(network, puzzle, source, OFF)
                        break
    return bool(puzzle.length[0] > before)


@compiled
def connected(network: Network, puzzle: Puzzle, start: int, members: Numbers, is_member: NDArray[np.bool_]) -> int:
    """Write the open sources that hang together with ``start`` into ``members``; return how many there are."""
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
