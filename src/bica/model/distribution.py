"""How probable each row is: exact, by transforms on the subset lattice of every group of connected sensors."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bica.data.chunks import packed, unpacked
from bica.errors import LimitError
from bica.kernels.bits import Words
from bica.kernels.channel import apply_channel
from bica.kernels.mixture import mix_source

TABLE_LIMIT = 24
Rates = tuple[NDArray[np.float64], NDArray[np.float64]]


def pattern_table(
    mixing: NDArray[np.bool_],
    probability: NDArray[np.float64],
    false_alarm: NDArray[np.float64],
    miss: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The chance of every pattern of the sensors, indexed by bit set: time (n + m) 2^m."""
    n_sensors = mixing.shape[0]
    if n_sensors > TABLE_LIMIT:
        raise LimitError(
            f"{n_sensors} connected sensors have 2^{n_sensors} patterns; exact probabilities end at {TABLE_LIMIT}"
        )
    table = np.zeros(2**n_sensors)
    table[0] = 1.0
    bits = 1 << np.arange(n_sensors)
    for column, chance in zip(mixing.T, probability, strict=True):
        mix_source(table, int(bits @ column), float(chance))
    if false_alarm.any() or miss.any():
        apply_channel(table, false_alarm, miss)
    return table


def connected_groups(mixing: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The sensors and the sources of each part of the network that shares no source with the rest.

    >>> [(a.tolist(), b.tolist()) for a, b in connected_groups(np.array([[1, 0], [0, 1], [1, 0]], dtype=bool))]
    [([0, 2], [0]), ([1], [1])]
    """
    links = csr_array(mixing.astype(np.int8))
    _, group = connected_components(links @ links.T, directed=False)
    for number in range(group.max(initial=-1) + 1):
        sensors = np.flatnonzero(group == number)
        yield sensors, np.flatnonzero(mixing[sensors].any(axis=0))


def log_probability(
    mixing: NDArray[np.bool_], probability: NDArray[np.float64], rates: Rates, patterns: Words, seen: Words
) -> NDArray[np.float64]:
    """The log of the chance of each pattern, missing cells summed out; independent groups of sensors add up."""
    on, known = unpacked(patterns, mixing.shape[0]), unpacked(seen, mixing.shape[0])
    total = np.zeros(len(patterns))
    for sensors, sources in connected_groups(mixing):
        table = pattern_table(
            mixing[np.ix_(sensors, sources)], probability[sources], rates[0][sensors], rates[1][sensors]
        )
        chance = _chance(table, np.ascontiguousarray(on[:, sensors]), np.ascontiguousarray(known[:, sensors]))
        with np.errstate(divide="ignore"):
            total += np.log(chance)
    return total


def _chance(table: NDArray[np.float64], on: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Look each row up in a table from which the cells it did not observe were summed out."""
    cell, mask = packed(on)[:, 0], packed(known)[:, 0]
    chance = np.empty(len(on))
    for observed in np.unique(mask):
        rows = np.flatnonzero(mask == observed)
        chance[rows] = _summed_out(table, int(observed))[cell[rows]]
    return chance


def _summed_out(table: NDArray[np.float64], observed: int) -> NDArray[np.float64]:
    n_sensors = table.size.bit_length() - 1
    for sensor in range(n_sensors):
        if not observed >> sensor & 1:
            quiet_and_on = table.reshape(-1, 2, 1 << sensor)
            table = np.repeat(quiet_and_on.sum(axis=1, keepdims=True), 2, axis=1).reshape(-1)
    return table
