"""Three exact solvers of one group under one contract, and the choice between them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack, vstack

from bica.data.columns import MISSING
from bica.errors import LimitError, SettingError
from bica.invert.groups import Group, Solution
from bica.invert.lossy import solve_lossy
from bica.kernels.bits import Words, n_words, packed
from bica.kernels.decoding.puzzle import Network
from bica.kernels.decoding.relaxation import solve_hard_rows
from bica.kernels.decoding.search import search_rows
from bica.kernels.decoding.table import TIE, add_source, decode_cells, fold_keys
from bica.progress import ALL_CORES, in_threads, tracked

TABLE_SENSORS = 24
TABLE_WORDS = 1 << 25  # 256 MiB of costs and activities: 64 sources on 24 sensors, 1984 on 20


def fits_table(group: Group) -> bool:
    """Whether the table of this group stays within memory."""
    n_sensors, n_sources = group.sensors.size, group.sources.size
    return n_sensors <= TABLE_SENSORS and 1 + n_words(n_sources) <= TABLE_WORDS >> n_sensors


@dataclass(frozen=True, slots=True)
class LatticeTable:
    """The least cost of switching on exactly a set of sensors, and the sources that do it, indexed by the set."""

    group: Group
    cost: NDArray[np.float64]  # (2^n_sensors,), infinite where no activity switches on exactly this set
    active: Words  # (2^n_sensors, n_words)

    @classmethod
    def of(cls, group: Group) -> LatticeTable:
        """The table of a group of m sensors and n sources: time n 2^m."""
        n_sensors, n_sources = group.mixing.shape
        cost = np.full(1 << n_sensors, np.inf)
        active = np.zeros((1 << n_sensors, n_words(n_sources)), np.uint64)
        cost[0] = 0.0
        columns = packed(np.ascontiguousarray(group.mixing.T))[:, 0].tolist()
        for source, (sensors, source_cost) in enumerate(zip(columns, group.source_cost.tolist(), strict=True)):
            add_source(cost, active, sensors, source, source_cost)
        return cls(group, cost, active)

    def solve(self, cells: NDArray[np.uint8]) -> Solution:
        """The cheapest activity behind each distinct row of cells.

        The rows together take at most time m 2^m, or 2^m for each distinct row if that is less. Rows with missing
        cells count like others. Of activities that cost the same, the one with the fewest active sources is taken,
        then the one whose bits spell the smallest number.
        """
        keys = np.empty(len(cells), np.uint64)
        fold_keys(cells, keys)
        order = np.argsort(keys, kind="stable")
        sorted_cells = np.ascontiguousarray(cells[order])
        best, least = np.empty((len(cells), self.active.shape[1]), np.uint64), np.empty(len(cells))

        def decode(rows: slice) -> None:
            decode_cells(self.cost, self.active, self.group.penalty, sorted_cells[rows], best[rows], least[rows])

        halves = _halves(sorted_cells)
        for _ in tracked(in_threads(decode, halves, ALL_CORES), "decoding distinct rows", len(halves)):
            pass
        active, cost = np.empty_like(best), np.empty_like(least)
        active[order], cost[order] = best, least
        return Solution(active, cost, np.zeros(len(cells)))


def _halves(cells: NDArray[np.uint8]) -> list[slice]:
    """The sorted rows by their last cell: between these, no work is shared."""
    cuts = np.searchsorted(cells[:, -1], [0, 1, 2, 3]).tolist()
    return [slice(start, stop) for start, stop in pairwise(cuts) if stop > start]


MOST_NODES = 20_000  # of the search in each connected part of a row; then it is cut short and reports its gap
ROWS_PER_PIECE = 256
HARD_ROWS_PER_PIECE = 16  # milliseconds each


def solve_by_search(group: Group, cells: NDArray[np.uint8], n_nodes: int = MOST_NODES) -> Solution:
    """The cheapest activity behind each row of cells, found by deciding one source after the other.

    In a row, sources that can only gain or only lose are decided first, those that another can replace are left out,
    and what remains falls into parts. Each part is searched depth first, with a bound from the dual of its linear
    relaxation: microseconds in sparse networks, at worst exponential. Rows that a short search leaves open are searched
    again with bounds that are nearly those of the relaxation itself. A part that is not finished after ``n_nodes``
    nodes leaves a gap. Ties are broken as in the table, except in rows that were searched again.
    """
    network = _network(group)

    def search(rows: NDArray[np.uint8], active: Words, cost: NDArray[np.float64], gap: NDArray[np.float64]) -> None:
        search_rows(network, group.penalty, rows, n_nodes, active, cost, gap)

    def search_again(
        rows: NDArray[np.uint8], active: Words, cost: NDArray[np.float64], gap: NDArray[np.float64]
    ) -> None:
        solve_hard_rows(network, group.penalty, rows, grain, n_nodes, active, cost, gap)

    found = _in_pieces(search, group, cells, ROWS_PER_PIECE, "searching pieces of rows")
    hard = np.flatnonzero(found.gap > TIE)
    if hard.size:
        grain = _grain(group)
        _improve(found, hard, _in_pieces(search_again, group, cells[hard], HARD_ROWS_PER_PIECE, "searching hard rows"))
    return found


RowSearch = Callable[[NDArray[np.uint8], Words, NDArray[np.float64], NDArray[np.float64]], None]


def _in_pieces(search: RowSearch, group: Group, cells: NDArray[np.uint8], n_rows: int, task: str) -> Solution:
    """What a kernel finds for all rows, some at a time, on all cores."""
    cells = np.ascontiguousarray(cells)
    active = np.zeros((len(cells), n_words(group.sources.size)), np.uint64)
    cost, gap = np.empty(len(cells)), np.empty(len(cells))
    pieces = [slice(start, start + n_rows) for start in range(0, len(cells), n_rows)]
    run = in_threads(lambda rows: search(cells[rows], active[rows], cost[rows], gap[rows]), pieces, ALL_CORES)
    for _ in tracked(run, task, len(pieces)):
        pass
    return Solution(active, cost, gap)


def _improve(found: Solution, rows: NDArray[np.int64], second: Solution) -> None:
    """Take the cheaper activity and the higher bound of two solutions of some rows."""
    bound = np.maximum(_bound(found.cost[rows], found.gap[rows]), _bound(second.cost, second.gap))
    better = rows[second.cost < found.cost[rows]]
    is_better = np.isin(rows, better, assume_unique=True)
    found.active[better], found.cost[better] = second.active[is_better], second.cost[is_better]
    is_open = bound < found.cost[rows]
    found.gap[rows] = np.where(is_open, found.cost[rows] - np.where(is_open, bound, 0.0), 0.0)


def _bound(cost: NDArray[np.float64], gap: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lower bound behind a gap; a row of infinite cost and gap has none."""
    return np.where(np.isinf(gap), -np.inf, cost - np.where(np.isinf(gap), 0.0, gap))


ROUGH = 1e-9  # relative: costs that differ less from a multiple of the grain are that multiple


def _grain(group: Group) -> float:
    """The number of which all costs and all finite differences of penalties are multiples; 0 if there is none.

    Samples with one prevalence in pools that never err, or err as often, have one.
    """
    penalty = group.penalty[:, :MISSING]
    with np.errstate(invalid="ignore"):
        worth = penalty[..., 1] - penalty[..., 0]
    values = np.abs(np.concatenate([group.source_cost, worth[np.isfinite(worth)]]))
    values = values[values > TIE]
    if not values.size:
        return 0.0
    multiples = values / values.min()
    is_grainy = (np.abs(multiples - np.round(multiples)) <= ROUGH * multiples).all()
    return float(values.min()) if is_grainy else 0.0


def _network(group: Group) -> Network:
    source, sensor = (np.ascontiguousarray(places) for places in np.nonzero(group.mixing.T))  # kernels take one layout
    first_sensor = np.append(0, np.cumsum(group.mixing.sum(axis=0)))
    first_source = np.append(0, np.cumsum(group.mixing.sum(axis=1)))
    return Network(first_sensor, sensor, first_source, source[np.argsort(sensor, kind="stable")], group.source_cost)


SCALE = 1024.0  # HiGHS stops within 1e-6 of the optimum whatever the relative gap; this makes it 1e-9


def solve_by_program(
    group: Group, cells: NDArray[np.uint8], seconds: float = np.inf, in_all: float = np.inf
) -> Solution:
    """A cheapest activity behind each row of cells; which one of equally cheap ones is left to HiGHS.

    Each row is one integer program for HiGHS: usually milliseconds, at worst exponential time. Where sensors never
    err it is the paper's program of the zero-error case, otherwise that of the noisy one. A row may take so many
    seconds, and all of them ``in_all``; what is not finished then leaves a gap, which is infinite if nothing was found.
    """
    activity, gap = np.zeros((len(cells), group.sources.size), dtype=bool), np.zeros(len(cells))
    begun = time.monotonic()
    for row, shown in enumerate(tracked(cells, "solving integer programs", len(cells))):
        left = min(seconds, in_all - (time.monotonic() - begun))
        penalty = group.penalty[np.arange(len(shown)), shown]
        activity[row], gap[row] = _cheapest(group, penalty, left) if left > 0 else (False, np.inf)
    found = group.solution(packed(activity), cells)
    return replace(found, cost=np.where(np.isinf(gap), np.inf, found.cost), gap=gap)


def _cheapest(group: Group, penalty: NDArray[np.float64], seconds: float) -> tuple[NDArray[np.bool_], float]:
    """A cheapest activity, given the penalty of each sensor's two states: (n_sensors, 2); and the gap."""
    quiet, on = np.isinf(penalty[:, 1]), np.isinf(penalty[:, 0])
    # the paper's zero-error case, sensor by sensor: a source that reaches one that must be quiet is off
    activity = np.logical_not(group.mixing[quiet].any(axis=0))
    links = group.mixing[:, activity]
    if not activity.any() or not links[on].any(axis=1).all():
        return np.zeros_like(activity), 0.0
    open_sensors = ~quiet & ~on & (penalty[:, 0] != penalty[:, 1])
    gain = penalty[open_sensors, 1] - penalty[open_sensors, 0]
    activity[activity], gap = _solve(group.source_cost[activity], gain, links[open_sensors], links[on], seconds)
    return activity, gap


TIME_OUT = 1  # the status of a program that HiGHS did not finish in time


def _solve(
    source_cost: NDArray[np.float64],
    penalty: NDArray[np.float64],
    links: NDArray[np.bool_],
    required: NDArray[np.bool_],
    seconds: float,
) -> tuple[NDArray[np.bool_], float]:
    """Minimise source_cost @ y + penalty @ x, where x is the OR of its linked y and every required row has an active y.

    The paper's alpha, the errors of the sensors, is x or 1 - x once a cell is known.
    """
    found = milp(
        SCALE * np.concatenate([source_cost, penalty]),
        integrality=np.repeat([1, 0], [source_cost.size, penalty.size]),
        bounds=Bounds(0, 1),
        constraints=_or_constraints(links, required),
        options={"mip_rel_gap": 0, "time_limit": seconds},
    )
    if found.x is None and found.status == TIME_OUT:
        return np.zeros(source_cost.size, dtype=bool), np.inf
    if found.x is None or found.status not in (0, TIME_OUT):
        raise LimitError(f"the integer program of {source_cost.size} sources was not solved: {found.message}")
    gap = 0.0 if found.status == 0 else max(0.0, found.fun - found.mip_dual_bound) / SCALE
    return found.x[: source_cost.size] > 0.5, gap  # HiGHS returns whole numbers up to rounding


def _or_constraints(links: NDArray[np.bool_], required: NDArray[np.bool_]) -> LinearConstraint:
    """Rows over (y, x): the paper's x <= sum g y and n x >= sum g y, and sum g y >= 1 where x must be 1.

    The second is split into x >= y for each link: the same for integers, and it makes a continuous x 1 where y is 1.
    """
    n_sensors = len(links)
    sensor, source = np.nonzero(links)
    each_sensor, each_link = _one_per_row(np.arange(n_sensors), n_sensors), _one_per_row(sensor, n_sensors)
    blocks = [
        [csr_array(links.astype(float)), -each_sensor],
        [-_one_per_row(source, links.shape[1]), each_link],
        [csr_array(required.astype(float)), csr_array((len(required), n_sensors))],
    ]
    least = np.repeat([0.0, 1.0], [n_sensors + sensor.size, len(required)])
    return LinearConstraint(vstack([hstack(block) for block in blocks], format="csr"), least, np.inf)


def _one_per_row(columns: NDArray[np.int64], n_columns: int) -> csr_array[np.float64]:
    rows = np.arange(columns.size)
    return csr_array((np.ones(columns.size), (rows, columns)), shape=(columns.size, n_columns))


Solver = Literal["auto", "table", "search", "program", "zero-error"]
SMALL_TABLE = 1 << 22  # cells, visited in some milliseconds: always cheap enough
PROGRAM_SECONDS, PROGRAMS_IN_ALL = 5.0, 60.0  # for a row that the search left open, and for all such rows of a batch
SEARCH_PASSES = 40  # over the edges of the network that a row takes on average; an edge takes as long as a table's cell


class GroupSolver:
    """Decodes the rows of one group; the table, once built, is kept for the next rows."""

    def __init__(self, group: Group, solver: Solver) -> None:
        if group.reach is not None and solver in ("table", "program"):
            raise SettingError(f"solver={solver!r} is for sure edges; where edges may fail, use solver='auto'")
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
        """The activity behind each row with the fewest impossible cells, and a cheapest one of those."""
        return self._solve(self.group if self.group.reach is not None else self.group.forgiving(), cells)

    def _solve(self, group: Group, cells: NDArray[np.uint8]) -> Solution:
        if not group.mixing.any():  # no cell depends on these sources: those likelier on than off are on
            return group.solution(packed(np.tile(group.source_cost < -TIE, (len(cells), 1))), cells)
        if group.reach is not None:
            return solve_lossy(group, cells)
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
        by_search = n_rows * SEARCH_PASSES * int(self.group.mixing.sum())
        return bool(passes << n_sensors <= max(SMALL_TABLE, by_search))

    def _by_table(self, group: Group, cells: NDArray[np.uint8]) -> Solution:
        if self._table is None:
            self._table = LatticeTable.of(self.group)
        return replace(self._table, group=group).solve(cells)

    def _completed(self, group: Group, found: Solution, cells: NDArray[np.uint8]) -> Solution:
        """The solution with the rows that the search left open settled by the table, or tried by the program."""
        rows = np.flatnonzero(found.gap > TIE)
        if rows.size and fits_table(group):
            by_table = self._by_table(group, cells[rows])
            found.active[rows], found.cost[rows], found.gap[rows] = by_table.active, by_table.cost, by_table.gap
        elif rows.size:
            _improve(found, rows, solve_by_program(group, cells[rows], PROGRAM_SECONDS, PROGRAMS_IN_ALL))
        return found
