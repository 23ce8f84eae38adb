"""Which sources were on in each row: the most probable activity (MAP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import all_observed, n_words
from bica.errors import DataError, SettingError
from bica.invert.groups import Group, changing, groups_of
from bica.invert.program import decode_by_program
from bica.invert.rows import Rows
from bica.invert.table import TABLE_SENSORS, decode_by_table, fits_table
from bica.kernels.bits import Words
from bica.kernels.decoding import TIE
from bica.model.or_mixture import OrMixture

Solver = Literal["auto", "table", "program"]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The most probable activity behind each row."""

    activity: NDArray[np.bool_]  # (n_rows, n_sources); all off where the row is impossible
    cost: NDArray[np.float64]  # (n_rows,), -log of the chance of that activity and the row together; else infinite

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows the model can produce at all; without noise that need not be every one."""
        return np.isfinite(self.cost)


def decode(model: OrMixture, words: Words, observed: Words | None = None, *, solver: Solver = "auto") -> Decoded:
    """Find the most probable activity behind each row of bit sets; cells that were not observed may be anything.

    Equal rows are decoded once, and parts of the model that share no source are decoded alone. A part of at
    most 20 sensors is solved by a table over all their sets, a larger one by an integer program for each of its
    distinct rows; ``solver`` insists on one of the two. The table breaks ties by the fewest active
    sources, then by the smallest number that their bits spell; the program finds some activity of the same cost.

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> found = decode(model, np.array([[0], [1], [2], [3]], dtype=np.uint64))
    >>> found.activity.astype(int)
    array([[0, 0],
           [1, 0],
           [0, 0],
           [0, 1]])
    >>> found.feasible
    array([ True,  True, False,  True])
    """
    _check(model, words, words if observed is None else observed, solver)
    seen = np.broadcast_to(all_observed(model.n_sensors), words.shape) if observed is None else observed
    rows = Rows(words & seen, seen)
    first, pattern = rows.distinct()
    activity, cost = _decode_distinct(model, rows.pick(first), solver)
    return Decoded(activity[pattern], cost[pattern])


def _check(model: OrMixture, words: Words, observed: Words, solver: Solver) -> None:
    if solver not in get_args(Solver):
        raise SettingError(f"solver is {solver!r}; it can be {', '.join(map(repr, get_args(Solver)))}")
    if words.ndim != 2 or words.shape[1] != n_words(model.n_sensors) or observed.shape != words.shape:
        raise DataError(
            f"a row of {model.n_sensors} sensors takes {n_words(model.n_sensors)} words, "
            f"but words has shape {words.shape} and observed {observed.shape}"
        )


def _decode_distinct(model: OrMixture, rows: Rows, solver: Solver) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    activity = np.tile(model.probability == 1, (len(rows.words), 1))
    cost = np.full(len(rows.words), -np.log1p(-model.probability[changing(model)]).sum())
    for group in groups_of(model):
        part = rows.of_sensors(group.sensors)
        first, pattern = part.distinct()
        cells = part.pick(first).cells(group.sensors.size)
        found = _decode_group(group, cells, solver)
        activity[:, group.sources] = found[pattern]
        cost += group.cost(found, cells)[pattern]
    activity[np.isinf(cost)] = False
    return activity, cost


def _decode_group(group: Group, cells: NDArray[np.uint8], solver: Solver) -> NDArray[np.bool_]:
    if not group.mixing.any():  # no cell tells anything: what is likelier than not is on
        return np.tile(group.price < -TIE, (len(cells), 1))
    if solver == "table" and not fits_table(group):
        raise SettingError(
            f"a table cannot hold {group.sensors.size} connected sensors with {group.sources.size} sources "
            f"(it ends at {TABLE_SENSORS} sensors); use solver='auto' or 'program'"
        )
    by_program = solver == "program" or not fits_table(group)
    return decode_by_program(group, cells) if by_program else decode_by_table(group, cells)
