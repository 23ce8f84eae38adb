"""Sums over all activities behind one row whose edges may fail, exact or sampled.

A cell that speaks against its sources and leaves no doubt once one works (a 0 where nothing is missed) multiplies the
odds of each of them by the probability that its edge fails: it is a factor. Only the other cells are followed, by the
set of sensors that were switched on so far. A table over these sets takes one pass per edge and source, by sums of
positive numbers; sources that share no followed sensor have tables of their own.

The posterior of a source needs the table of all *other* sources: undoing a source would subtract. All of these come
from halving: the table of everything outside a range of sources goes on to either half with the other half added, so
that every source is added about log2(n) times.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells
from bica.kernels.compiled import compiled
from bica.kernels.decoding.lossy import Floats, LossyNetwork, Places, cell_cost

MOST_FOLLOWED = 22  # sensors of one table


class SingleRow(NamedTuple):
    """What the cells of one row say."""

    alone: Floats  # (n_sensors,), the probability of the cell if no source switched the sensor on
    switched: Floats  # (n_sensors,), if one did
    followed: NDArray[np.bool_]  # (n_sensors,), whether the sensor has to be followed
    odds: Floats  # (n_sources,), of each source being on, with the cells that are factors


@compiled
def _push(table: Floats, bits: Places, lost: Floats, shown: Floats) -> None:
    """What an active source makes of the table: every edge works or fails."""
    for s in range(table.size):
        shown[s] = table[s]
    for edge in range(bits.size):
        bit, fails = bits[edge], lost[edge]
        for start in range(0, table.size, 2 * bit):
            for s in range(start, start + bit):
                shown[s | bit] += (1.0 - fails) * shown[s]
                shown[s] *= fails


@compiled
def _add_sources(
    table: Floats, first: int, last: int, first_edge: Places, bits: Places, lost: Floats, odds: Floats, shown: Floats
) -> None:
    """Add the sources of a range to the table; an active one weighs ``odds[j]``, a silent one 1."""
    for j in range(first, last):
        _push(table, bits[first_edge[j] : first_edge[j + 1]], lost[first_edge[j] : first_edge[j + 1]], shown)
        for s in range(table.size):
            table[s] += odds[j] * shown[s]


@compiled
def _wait(ranges: Places, place: int, first: int, last: int, level: int, added: int, added_to: int) -> None:
    ranges[place, 0], ranges[place, 1], ranges[place, 2] = first, last, level
    ranges[place, 3], ranges[place, 4] = added, added_to


@compiled
def _shares(first_edge: Places, bits: Places, lost: Floats, odds: Floats, weight: Floats, share: Floats) -> float:
    """Set ``share[j]`` to the probability that source j is on; return the sum over all activities of their odds."""
    n_sources, depth = odds.size, 2
    while 1 << (depth - 1) < n_sources:
        depth += 1
    tables, shown = np.zeros((depth, weight.size)), np.empty(weight.size)
    tables[0, 0] = 1.0
    ranges = np.empty((2 * depth, 5), np.int64)  # first, last, level, and the range to be added on the way
    _wait(ranges, 0, 0, n_sources, 0, 0, 0)
    n_waiting, total = 1, 0.0
    while n_waiting:
        n_waiting -= 1
        first, last, level = ranges[n_waiting, 0], ranges[n_waiting, 1], ranges[n_waiting, 2]
        added, added_to = ranges[n_waiting, 3], ranges[n_waiting, 4]
        if level > 0:
            for s in range(weight.size):
                tables[level, s] = tables[level - 1, s]
            _add_sources(tables[level], added, added_to, first_edge, bits, lost, odds, shown)
        if last - first == 1:
            own = slice(first_edge[first], first_edge[first + 1])
            _push(tables[level], bits[own], lost[own], shown)
            on, off = 0.0, 0.0
            for s in range(weight.size):
                on += odds[first] * shown[s] * weight[s]
                off += tables[level, s] * weight[s]
            total = on + off
            share[first] = on / total if total > 0.0 else np.nan
        else:
            middle = (first + last) // 2
            _wait(ranges, n_waiting, first, middle, level + 1, middle, last)
            _wait(ranges, n_waiting + 1, middle, last, level + 1, first, middle)
            n_waiting += 2
    return total


@compiled
def _label_parts(network: LossyNetwork, followed: NDArray[np.bool_], part: Places) -> int:
    """Number the parts of the sources, connected by sensors that are followed; return how many there are."""
    for source in range(part.size):
        part[source] = -1
    waiting, n_parts = np.empty(part.size, np.int64), 0
    for start in range(part.size):
        if part[start] >= 0:
            continue
        part[start], waiting[0], n_waiting = n_parts, start, 1
        while n_waiting:
            n_waiting -= 1
            source = waiting[n_waiting]
            for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
                sensor = network.sensors[k]
                if followed[sensor]:
                    for r in range(network.first_source[sensor], network.first_source[sensor + 1]):
                        other = network.sources[r]
                        if part[other] < 0:
                            part[other], waiting[n_waiting] = n_parts, other
                            n_waiting += 1
        n_parts += 1
    return n_parts


@compiled
def _follow(network: LossyNetwork, members: Places, followed: NDArray[np.bool_], bit_of: Places) -> int:
    """Give every followed sensor of the members a bit, all others -1; return how many edges lead to them."""
    for sensor in range(bit_of.size):
        bit_of[sensor] = -1
    n_bits, n_edges = 0, 0
    for source in members:
        for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
            sensor = network.sensors[k]
            n_edges += followed[sensor]
            if followed[sensor] and bit_of[sensor] < 0:
                bit_of[sensor] = n_bits
                n_bits += 1
    return n_edges


@compiled
def _sum_part(
    network: LossyNetwork,
    members: Places,
    bit_of: Places,
    n_edges: int,
    row: SingleRow,
    largest_work: int,
    share: Floats,
) -> float:
    """The sum over the activities of one part, 0 where impossible and -1 where its table would be too large."""
    n_bits, place = bit_of.max() + 1, 0
    if n_bits > MOST_FOLLOWED or (1 + n_edges) * (5 + members.size // 8) << n_bits > largest_work:
        return -1.0
    first_edge, bits, lost = np.zeros(members.size + 1, np.int64), np.empty(n_edges, np.int64), np.empty(n_edges)
    for number in range(members.size):
        for k in range(network.first_sensor[members[number]], network.first_sensor[members[number] + 1]):
            if bit_of[network.sensors[k]] >= 0:
                bits[place], lost[place] = 1 << bit_of[network.sensors[k]], network.lost[k]
                place += 1
        first_edge[number + 1] = place
    weight = np.ones(1 << n_bits)
    for sensor in np.flatnonzero(bit_of >= 0):
        for s in range(weight.size):
            weight[s] *= row.switched[sensor] if s >> bit_of[sensor] & 1 else row.alone[sensor]
    return _shares(first_edge, bits, lost, row.odds[members], weight, share)


@compiled
def _read_cells(network: LossyNetwork, weight: Floats, cells: NDArray[np.uint8], row: SingleRow) -> float:
    """Look at the cells of a row; return the log of the probability of those that are not followed, all sources off."""
    total = 0.0
    for source in range(row.odds.size):
        row.odds[source] = np.exp(-network.source_cost[source])
    for sensor in range(cells.size):
        alone, switched = weight[sensor, cells[sensor], 0], weight[sensor, cells[sensor], 1]
        row.alone[sensor], row.switched[sensor] = alone, switched
        first, last = network.first_source[sensor], network.first_source[sensor + 1]
        row.followed[sensor] = first < last and alone != switched and switched > 0.0
        if not row.followed[sensor]:
            total += np.log(alone)
            for k in range(first, last if alone != switched else first):
                row.odds[network.sources[k]] *= network.lost_at[k]
    return total


@compiled
def sum_rows(
    network: LossyNetwork,
    weight: Floats,
    cells: Cells,
    largest_work: int,
    log_total: Floats,
    share: Floats,
    exact: NDArray[np.bool_],
) -> None:
    """For each row: the log of the sum of the odds of all activities, and the probability that each source is on.

    Where a table takes more than ``largest_work`` passes over its cells, ``exact`` of its sources is False, and they
    count for nothing in the total.
    """
    n_sensors, n_sources = weight.shape[0], network.source_cost.size
    row = SingleRow(np.empty(n_sensors), np.empty(n_sensors), np.empty(n_sensors, np.bool_), np.empty(n_sources))
    part, bit_of, of_part = np.empty(n_sources, np.int64), np.empty(n_sensors, np.int64), np.empty(n_sources)
    for number in range(cells.shape[0]):
        total = _read_cells(network, weight, cells[number], row)
        for number_of_part in range(_label_parts(network, row.followed, part)):
            members = np.flatnonzero(part == number_of_part)
            n_edges = _follow(network, members, row.followed, bit_of)
            found = _sum_part(network, members, bit_of, n_edges, row, largest_work, of_part)
            for place in range(members.size):
                exact[number, members[place]] = found >= 0.0
                share[number, members[place]] = of_part[place]
            total += np.log(found) if found >= 0.0 else 0.0
        log_total[number] = total


@compiled
def _others_fail(network: LossyNetwork, on: NDArray[np.bool_], sensor: int, source: int) -> float:
    z = 1.0
    for k in range(network.first_source[sensor], network.first_source[sensor + 1]):
        if on[network.sources[k]] and network.sources[k] != source:
            z *= network.lost_at[k]
    return z


@compiled
def sample_row(
    network: LossyNetwork,
    cells: Floats,
    members: Places,
    on: NDArray[np.bool_],
    chance: Floats,
    share: Floats,
    met: NDArray[np.bool_],
) -> None:
    """Gibbs sampling of these sources while the others stay as they are.

    Each sweep switches every member by its conditional probability, with the random numbers ``chance``. The last
    sweeps, as many as there is room for, write that probability to ``share``; ``met`` is the members' activity after
    each sweep, the start in its first row.
    """
    n_burnt = met.shape[0] - 1 - share.shape[0]
    for place in range(members.size):
        met[0, place] = on[members[place]]
    for sweep in range(met.shape[0] - 1):
        for place in range(members.size):
            source = members[place]
            gain = -network.source_cost[source]
            for k in range(network.first_sensor[source], network.first_sensor[source + 1]):
                sensor = network.sensors[k]
                alone, switched = cells[sensor, 0], cells[sensor, 1]
                if alone != switched:
                    z = _others_fail(network, on, sensor, source)
                    gain += cell_cost(alone, switched, z, network.wrong)
                    gain -= cell_cost(alone, switched, z * network.lost[k], network.wrong)
            probability = 1.0 / (1.0 + np.exp(-gain))
            on[source] = chance[sweep, place] < probability
            met[sweep + 1, place] = on[source]
            if sweep >= n_burnt:
                share[sweep - n_burnt, place] = probability
