"""Decoding by branch and bound, one row at a time: exact, ties included, for groups of any size."""

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import n_words
from bica.invert.groups import Group, Solution
from bica.kernels.puzzle import Network
from bica.kernels.search import search_rows
from bica.progress import tracked
from bica.threads import in_threads

NODES = 20_000  # of each connected part of a row, after which its gap is reported
ROWS_A_PIECE = 256


def solve_by_search(group: Group, cells: NDArray[np.uint8], n_nodes: int = NODES) -> Solution:
    """The cheapest activity behind each row of cells, found by deciding one source after the other.

    In a row, sources that can only gain or only lose are decided first, those that another can stand in for are
    left out, and what remains falls into parts. Each part is searched depth first, with a bound from the dual of
    its linear relaxation: microseconds in sparse networks, at worst exponential. A part that is not done after
    ``n_nodes`` nodes leaves a gap. Ties are broken as in the table.
    """
    network = _network(group)
    cells = np.ascontiguousarray(cells)
    active = np.zeros((len(cells), n_words(group.sources.size)), np.uint64)
    cost, gap = np.empty(len(cells)), np.empty(len(cells))

    def search(rows: slice) -> None:
        search_rows(network, group.penalty, cells[rows], n_nodes, active[rows], cost[rows], gap[rows])

    pieces = [slice(start, start + ROWS_A_PIECE) for start in range(0, len(cells), ROWS_A_PIECE)]
    for _ in tracked(in_threads(search, pieces), "searching pieces of rows", len(pieces)):
        pass
    return Solution(active, cost, gap)


def _network(group: Group) -> Network:
    source, sensor = np.nonzero(group.mixing.T)
    first_sensor = np.append(0, np.cumsum(group.mixing.sum(axis=0)))
    first_source = np.append(0, np.cumsum(group.mixing.sum(axis=1)))
    return Network(first_sensor, sensor, first_source, source[np.argsort(sensor, kind="stable")], group.price)
