"""Which sources were on in each row: the most probable activity (MAP), of tables of any size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import Chunk, Table
from bica.data.readers.arrow import has_arrow
from bica.data.rows import Rows, places_of
from bica.data.writers import activity_file, bits_file
from bica.errors import SettingError
from bica.invert.groups import changing, groups_of
from bica.invert.solvers import GroupSolver, Solver
from bica.kernels.bits import Words, all_observed, packed, unpacked
from bica.kernels.decoding.table import TIE, spread_bits
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.progress import report


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The most probable activity behind each row, and how far from the optimum it could be.

    A row that no set of sources can produce is not feasible: its cost is infinite, and ``n_wrong`` is the least number
    of its cells that must be wrong. Its activity is all off, unless the nearest explanation was asked for.
    """

    active: Words  # (n_rows, n_words), bit j is source j
    cost: NDArray[np.float64]  # (n_rows,), -log of the joint probability of that activity and the row
    gap: NDArray[np.float64]  # (n_rows,), how much lower the cost of an unknown activity could be; 0: none is
    n_wrong: NDArray[np.int32]  # (n_rows,), cells that the model cannot produce together with the others
    n_sources: int
    labels: tuple[tuple[str, ...], ...] = ()  # ids and times of the rows, where the table has them

    @property
    def activity(self) -> NDArray[np.bool_]:
        """Which sources were on: (n_rows, n_sources)."""
        return unpacked(self.active, self.n_sources)

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows the model can produce at all; without noise that need not be every one."""
        return np.isfinite(self.cost)

    @property
    def proven(self) -> NDArray[np.bool_]:
        """For which rows no better activity exists."""
        return self.gap <= TIE


def decode(
    model: OrMixture, words: Words, observed: Words | None = None, *, solver: Solver = "auto", nearest: bool = False
) -> Decoded:
    """Find the most probable activity behind each row of bit sets; cells that were not observed may be anything.

    Equal rows are decoded once, and parts of the model that share no source are decoded separately. Each part is solved
    by the "table" over all sets of its sensors (up to 24), by the "search" (branch and bound) or, for each of its
    distinct rows, by the paper's integer "program"; "auto" takes the cheaper of the first two. Both break ties by the
    fewest active sources, then by the smallest number that their bits spell, except in rows too hard for a short
    search; there, as by the program, some activity of the same cost is found. Rows that "auto" leaves open are tried by
    the program, for five seconds each and a minute in all; ``proven`` says which rows are settled. "zero-error" is the
    paper's answer where the noise is unknown: sensors are assumed never to err, whatever the model says.

    A row that no set of sources can produce is reported as such; with ``nearest`` its activity is that with the
    fewest wrong cells, the most probable one of these.

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> found = decode(model, np.array([[0], [1], [2], [3]], dtype=np.uint64))
    >>> found.activity.astype(int)
    array([[0, 0],
           [1, 0],
           [0, 0],
           [0, 1]])
    >>> found.feasible, found.n_wrong
    (array([ True,  True, False,  True]), array([0, 0, 1, 0], dtype=int32))
    """
    return Decoder(model, solver).decode(words, observed, nearest=nearest)


class Decoder:
    """A model prepared for decoding one batch of rows after another; its tables are built once.

    >>> decoder = Decoder(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]))
    >>> [decoder.decode(np.array([[row]], dtype=np.uint64)).activity.astype(int).tolist() for row in (1, 3)]
    [[[1, 0]], [[0, 1]]]
    """

    def __init__(self, model: OrMixture, solver: Solver = "auto") -> None:
        if solver not in get_args(Solver):
            raise SettingError(f"solver is {solver!r}; it can be {', '.join(map(repr, get_args(Solver)))}")
        self.model = model.with_noise(Noise()) if solver == "zero-error" else model
        self._groups = [GroupSolver(group, solver) for group in groups_of(self.model)]

    def decode(self, words: Words, observed: Words | None = None, *, nearest: bool = False) -> Decoded:
        """The most probable activity behind each row, as by the function ``decode``."""
        rows = Rows.of_words(words, observed, self.model.n_sensors)
        first, number = rows.distinct()
        found = self._decode_distinct(rows.pick(first), nearest)
        return Decoded(
            found.active[number], found.cost[number], found.gap[number], found.n_wrong[number], self.model.n_sources
        )

    def _decode_distinct(self, rows: Rows, nearest: bool) -> Decoded:
        probability = self.model.probability
        n_rows = len(rows.words)
        active = packed(np.tile(probability == 1, (n_rows, 1)))
        cost = np.full(n_rows, -np.log1p(-probability[changing(self.model)]).sum())
        gap, n_wrong = np.zeros(n_rows), np.zeros(n_rows, np.int32)
        for solver in self._groups:
            part = rows.of_sensors(solver.group.sensors)
            first, pattern = part.distinct()
            found = _solve(solver, part.pick(first).cells(solver.group.sensors.size))
            spread_bits(found.active[pattern], solver.group.sources, active)
            cost += found.cost[pattern]
            gap += found.gap[pattern]
            n_wrong += found.n_wrong[pattern]
        if not nearest:
            active[np.isinf(cost)] = 0
        return Decoded(active, cost, gap, n_wrong, self.model.n_sources)


def _solve(solver: GroupSolver, cells: NDArray[np.uint8]) -> Decoded:
    """Decode the rows of one group; an impossible row gets its nearest explanation."""
    found = solver.solve(cells)
    n_wrong = np.zeros(len(cells), np.int32)
    rows = np.flatnonzero(np.isinf(found.cost))
    if rows.size:
        near = solver.nearest(cells[rows])
        n_wrong[rows] = solver.group.n_wrong(near.active, cells[rows])
        # a search that was cut short may have called a possible row impossible
        found.cost[rows] = np.where(n_wrong[rows] == 0, near.cost, np.inf)
        found.active[rows], found.gap[rows] = near.active, near.gap
    return Decoded(found.active, found.cost, found.gap, n_wrong, solver.group.sources.size)


def decode_table(
    model: OrMixture, table: Table, *, solver: Solver = "auto", nearest: bool = False
) -> Iterator[Decoded]:
    """Decode all rows of a table in order, one chunk at a time; its columns are matched with the sensors by name.

    >>> from bica.data.tables import open_table
    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["door", "yard"])
    >>> table = open_table([[1, 1], [0, 1]], sensors=["yard", "door"])
    >>> [found.activity.astype(int).tolist() for found in decode_table(model, table)]
    [[[0, 1], [1, 0]]]
    """
    places = places_of(model.sensors, table.sensors)
    return _decoded_chunks(Decoder(model, solver), table.chunks(), places, nearest)


def _decoded_chunks(
    decoder: Decoder, chunks: Iterator[Chunk], places: NDArray[np.int64], nearest: bool
) -> Iterator[Decoded]:
    everything = all_observed(places.size)
    n_rows = 0
    for chunk in chunks:
        observed = np.broadcast_to(everything, chunk.words.shape) if chunk.observed is None else chunk.observed
        rows = Rows(chunk.words, observed).of_sensors(places)
        yield replace(decoder.decode(rows.words, rows.observed, nearest=nearest), labels=chunk.labels)
        n_rows += len(rows.words)
        report("rows decoded", n_rows, None)


def decode_into(
    model: OrMixture, table: Table, target: Path, *, solver: Solver = "auto", nearest: bool = False
) -> Iterator[Decoded]:
    """Decode all rows of a table into a Parquet file, which appears whole once the last chunk is taken.

    Where PyArrow is there, Parquet is read and written as bits, an order of magnitude faster than cell by cell.
    """
    names, labels = model.source_names(), table.columns.labels
    places = places_of(model.sensors, table.sensors)
    decoder, parts = Decoder(model, solver), None
    if has_arrow() and not labels and hasattr(table, "partitions"):
        parts = table.partitions(-1)
    if parts is None:
        with activity_file(str(target), names, overwrite=True, labels=labels) as write_cells:
            for found in _decoded_chunks(decoder, table.chunks(), places, nearest):
                write_cells(found.activity, found.feasible | nearest, found.labels)
                yield found
        return
    with bits_file(target, names, overwrite=True) as write:
        for found in _decoded_chunks(decoder, (part.rows() for part in parts), places, nearest):
            write(found.active, found.feasible | nearest)
            yield found


SHOWN_ROWS = 5  # numbers in a sentence


def impossible(found: Decoded) -> str:
    """Which rows no set of sources produces, and what to do."""
    rows = np.flatnonzero(~found.feasible)
    more = ", ..." if len(rows) > SHOWN_ROWS else ""
    first, n_wrong = (", ".join(map(str, numbers[:SHOWN_ROWS])) + more for numbers in (rows, found.n_wrong[rows]))
    return (
        f"no set of sources produces {'row' if len(rows) == 1 else 'rows'} {first} when sensors never err (at least "
        f"{n_wrong} of the cells must be wrong); fit with noise='estimate' or a rate such as noise=0.01"
    )


def unproven(found: Decoded) -> str:
    """In how many rows a better activity may exist, and by how much."""
    return (
        f"the search was cut short in {(~found.proven).sum()} rows: a better activity may exist there, by at most "
        f"{found.gap.max():.3g} in its log probability"
    )
