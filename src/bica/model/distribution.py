"""How probable each row is: exact, by transforms on the subset lattice of every group of connected sensors."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bica.errors import LimitError
from bica.kernels.bits import Words, packed, unpacked
from bica.kernels.lattice.channel import apply_channel, mix_lossy_source, mix_source

TABLE_LIMIT = 24  # connected sensors: a table takes 128 MB
TOGETHER = 10  # sensors up to which small groups share one table
GAP_LIMIT = 1 << 33  # cells of all tables in which missing cells are summed out: about a minute of work
Rates = tuple[NDArray[np.float64], NDArray[np.float64]]


def pattern_table(
    mixing: NDArray[np.bool_],
    probability: NDArray[np.float64],
    false_alarm: NDArray[np.float64],
    miss: NDArray[np.float64],
    *,
    lossy_reach: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The probability of every pattern, indexed by bit set: time (n + m) 2^m for n sources and m sensors.

    Edges are sure without ``lossy_reach``; a source with lossy edges takes time 2^m for each edge.
    """
    n_sensors = mixing.shape[0]
    if n_sensors > TABLE_LIMIT:
        raise LimitError(
            f"a table of all patterns of {n_sensors} sensors needs 2^{n_sensors} cells, but exact probabilities are "
            f"limited to {TABLE_LIMIT} connected sensors; choose fewer with `of_sensors`"
        )
    table = np.zeros(2**n_sensors)
    table[0] = 1.0
    bits = 1 << np.arange(n_sensors)
    for j, (column, of_source) in enumerate(zip(mixing.T, probability, strict=True)):
        if lossy_reach is None or np.array_equal(lossy_reach[:, j], column):
            mix_source(table, int(bits @ column), float(of_source))
        else:
            mix_lossy_source(table, np.flatnonzero(column), lossy_reach[column, j], float(of_source))
    if false_alarm.any() or miss.any():
        apply_channel(table, false_alarm, miss)
    return table


def connected_groups(mixing: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The sensors and the sources of each group of sensors that shares no source with the others.

    >>> [(a.tolist(), b.tolist()) for a, b in connected_groups(np.array([[1, 0], [0, 1], [1, 0]], dtype=bool))]
    [([0, 2], [0]), ([1], [1])]
    """
    n_sensors, n_sources = mixing.shape
    sensor, source = np.nonzero(mixing)
    edges = coo_array((np.ones(sensor.size), (sensor, n_sensors + source)), shape=(n_sensors + n_sources,) * 2)
    _, group = connected_components(edges, directed=False)
    for number in np.unique(group[:n_sensors]):
        sensors = np.flatnonzero(group[:n_sensors] == number)
        yield sensors, np.flatnonzero(mixing[sensors].any(axis=0))


def tabled_groups(mixing: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Connected groups, small ones joined: one table of a few sensors takes less time than to find out how to split it.

    >>> [a.tolist() for a, _ in tabled_groups(np.array([[1, 0], [0, 1], [1, 0]], dtype=bool))]
    [[0, 1, 2]]
    """
    n_sensors, n_sources = mixing.shape
    if n_sensors <= TOGETHER:
        yield np.arange(n_sensors), np.arange(n_sources)
        return
    small: list[NDArray[np.int64]] = []
    for sensors, sources in connected_groups(mixing):
        if sensors.size > TOGETHER:
            yield sensors, sources
        elif sum(map(len, small)) + sensors.size <= TOGETHER:
            small.append(sensors)
        else:
            yield _joined(mixing, small)
            small = [sensors]
    if small:
        yield _joined(mixing, small)


def _joined(mixing: NDArray[np.bool_], groups: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sensors = np.concatenate(groups)
    return sensors, np.flatnonzero(mixing[sensors].any(axis=0))


def log_probability(
    mixing: NDArray[np.bool_],
    probability: NDArray[np.float64],
    rates: Rates,
    patterns: Words,
    observed: Words,
    *,
    lossy_reach: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The log probability of each pattern, missing cells summed out; independent groups of sensors add up."""
    on, known = unpacked(patterns, mixing.shape[0]), unpacked(observed, mixing.shape[0])
    total = np.zeros(len(patterns))
    for sensors, sources in tabled_groups(mixing):
        part = np.ix_(sensors, sources)
        table = pattern_table(
            mixing[part],
            probability[sources],
            rates[0][sensors],
            rates[1][sensors],
            lossy_reach=None if lossy_reach is None else lossy_reach[part],
        )
        of_group = _row_probability(table, on[:, sensors], known[:, sensors])
        with np.errstate(divide="ignore"):
            total += np.log(of_group)
    return total


def _row_probability(
    table: NDArray[np.float64], on: NDArray[np.bool_], known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The probability of each row, from a table in which its missing cells are summed out."""
    if known.all():
        return table[packed(np.ascontiguousarray(on))[:, 0]]
    sets, set_of_row = np.unique(packed(np.ascontiguousarray(known))[:, 0], return_inverse=True)
    if sets.size * table.size > GAP_LIMIT:
        raise LimitError(
            f"missing cells leave {sets.size} different sets of {on.shape[1]} connected sensors, too many to sum out "
            "exactly; drop the sensors with the most gaps"
        )
    probability = np.empty(len(on))
    for number in range(sets.size):
        rows = np.flatnonzero(set_of_row == number)
        observed = np.flatnonzero(known[rows[0]])
        cells = packed(np.ascontiguousarray(on[np.ix_(rows, observed)]))[:, 0]
        probability[rows] = _of_observed(table, observed)[cells]
    return probability


def _of_observed(table: NDArray[np.float64], observed: NDArray[np.int64]) -> NDArray[np.float64]:
    """The table of the observed sensors alone; summing out each of the others, last first, halves it."""
    n_sensors = table.size.bit_length() - 1
    for sensor in sorted(set(range(n_sensors)) - set(observed.tolist()), reverse=True):
        pairs = table.reshape(-1, 2, 1 << sensor)
        table = (pairs[:, 0] + pairs[:, 1]).reshape(-1)
    return table
