"""Three exact solvers of one group under one contract, and the choice between them."""

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import packed
from bica.errors import SettingError
from bica.invert.groups import Group, Solution
from bica.invert.program import solve_by_program
from bica.invert.search import solve_by_search
from bica.invert.table import TABLE_SENSORS, LatticeTable, fits_table
from bica.kernels.decoding import TIE

Solver = Literal["auto", "table", "search", "program", "zero-error"]
SMALL_TABLE = 1 << 22  # cells visited in some milliseconds: not worth a second thought
SEARCH_STEPS = 40  # passes over the edges of the network that a row takes on average, each edge like a cell of a table


class GroupSolver:
    """Decodes the rows of one group; the table, once built, is kept for the next rows."""

    def __init__(self, group: Group, solver: Solver) -> None:
        if solver == "table" and not fits_table(group):
            raise SettingError(
                f"a table cannot hold {group.sensors.size} connected sensors with {group.sources.size} sources "
                f"(it ends at {TABLE_SENSORS} sensors); use solver='auto' or 'search'"
            )
        self.group, self.solver = group, solver
        self._table: LatticeTable | None = None

    def solve(self, cells: NDArray[np.uint8]) -> Solution:
        """A cheapest activity behind each row of cells."""
        return self._solve(self.group, cells)

    def nearest(self, cells: NDArray[np.uint8]) -> Solution:
        """The activity behind each row that leaves the fewest impossible cells, a cheapest one of those."""
        return self._solve(self.group.forgiving(), cells)

    def _solve(self, group: Group, cells: NDArray[np.uint8]) -> Solution:
        if not group.mixing.any():  # no cell tells anything: what is likelier than not is on
            return group.solution(packed(np.tile(group.price < -TIE, (len(cells), 1))), cells)
        if self.solver == "program":
            return solve_by_program(group, cells)
        if self.solver == "table" or (self.solver != "search" and self._table_is_cheaper(len(cells))):
            return self._by_table(group, cells)
        found = solve_by_search(group, cells)
        return found if self.solver == "search" else self._completed(group, found, cells)

    def _table_is_cheaper(self, n_rows: int) -> bool:
        if not fits_table(self.group):
            return False
        n_sensors, n_sources = self.group.mixing.shape
        passes = min(n_rows, n_sensors) + (n_sources if self._table is None else 0)
        by_search = n_rows * SEARCH_STEPS * int(self.group.mixing.sum())
        return bool(passes << n_sensors <= max(SMALL_TABLE, by_search))

    def _by_table(self, group: Group, cells: NDArray[np.uint8]) -> Solution:
        if self._table is None:
            self._table = LatticeTable.of(self.group)
        return replace(self._table, group=group).solve(cells)

    def _completed(self, group: Group, found: Solution, cells: NDArray[np.uint8]) -> Solution:
        """What the search left open is settled by the table, where there can be one."""
        rows = np.flatnonzero(found.gap > TIE)
        if rows.size and fits_table(group):
            by_table = self._by_table(group, cells[rows])
            found.active[rows], found.cost[rows], found.gap[rows] = by_table.active, by_table.cost, by_table.gap
        return found
