"""Decoding by a table over all sets of a group's sensors: exact, ties included, a look-up a row."""

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import n_words, packed, unpacked
from bica.invert.groups import Group
from bica.kernels.bits import Words
from bica.kernels.decoding import add_source, decode_cells

TABLE_SENSORS = 20
TABLE_WORDS = 1 << 24  # 128 MiB of activities; reached by 1024 sources on 20 sensors


def fits_table(group: Group) -> bool:
    """Whether the table of this group stays within memory."""
    n_sensors, n_sources = group.sensors.size, group.sources.size
    return n_sensors <= TABLE_SENSORS and n_words(n_sources) <= TABLE_WORDS >> n_sensors


def decode_by_table(group: Group, cells: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """The cheapest activity behind each distinct row of cells: (n_rows, n_sources).

    The table of m sensors and n sources takes time n 2^m; then the rows together take at most m 2^m, or 2^m for
    each distinct row if that is less. Rows with missing cells count like others. Of activities that cost the same,
    the one with the fewest active sources is taken, then the one whose bits spell the smallest number. Where no
    activity is possible, any is returned.
    """
    n_sources = group.mixing.shape[1]
    cost, active = lattice_table(group)
    order = np.lexsort(cells.T) if cells.shape[1] else np.arange(len(cells))
    best = np.empty((len(cells), active.shape[1]), np.uint64)
    decode_cells(cost, active, group.penalty, np.ascontiguousarray(cells[order]), best)
    activity = np.empty((len(cells), n_sources), dtype=bool)
    activity[order] = unpacked(best, n_sources)
    return activity


def lattice_table(group: Group) -> tuple[NDArray[np.float64], Words]:
    """What it costs to switch on exactly a set of sensors, and who is then active: entry 2^m + set of both arrays."""
    n_sensors, n_sources = group.mixing.shape
    cost = np.full(2 << n_sensors, np.inf)
    active = np.zeros((2 << n_sensors, n_words(n_sources)), np.uint64)
    sets = slice(1 << n_sensors, None)
    cost[sets.start] = 0.0
    columns = packed(np.ascontiguousarray(group.mixing.T))[:, 0].tolist()
    for source, (sensors, price) in enumerate(zip(columns, group.price.tolist(), strict=True)):
        add_source(cost[sets], active[sets], sensors, source, price)
    return cost, active
