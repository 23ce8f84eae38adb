"""Sums over all activities of one group: the chance of a row, and of each source to be on in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bica.data.chunks import packed
from bica.invert.elimination import Elimination, Sums
from bica.invert.groups import Group
from bica.kernels.folding import fold_rows
from bica.kernels.likelihood import with_source_on
from bica.model.distribution import TABLE_LIMIT, pattern_table
from bica.progress import report, tracked
from bica.threads import in_threads, n_cores

LATTICE_SENSORS = 20
EXACT_STATES = 1 << 21  # of elimination, for one row: about a second; twenty sources never need more
WIDTH = 1024  # states kept of each step where there are too many
BATCH_STATES = 1 << 21  # of all rows that are eliminated together: some 100 MiB
SMALLEST = 1e-250  # below this, numbers of a table have lost digits, or vanished


@dataclass(frozen=True, slots=True)
class GroupSums:
    """What is known of a group in each row."""

    log_chance: NDArray[np.float64]  # (n_rows,); where not exact, a lower bound
    probability: NDArray[np.float64]  # (n_rows, n_sources)
    error: NDArray[np.float64]  # (n_rows, n_sources), estimated; 0 where exact
    exact: NDArray[np.bool_]  # (n_rows,)


def group_sums(group: Group, cells: NDArray[np.uint8], *, shares: bool) -> GroupSums:
    """Sum over the activities behind each row of cells; without ``shares``, probabilities may be left out (NaN).

    Up to 20 sensors by a table over all their sets, beyond by elimination of one source after another, exact as long
    as it needs at most 2^21 states for a row. Otherwise up to 24 sensors by the table, and beyond by elimination that
    keeps the 1024 likeliest states of each step. A probability is then off by at most the share of the row's chance
    that was left out. That share is estimated by what a width of 512 leaves out of that of 1024, which is no less as
    long as twice the width leaves out at most half.
    """
    if not group.mixing.any():
        return _unrelated(group, cells)
    if group.sensors.size <= LATTICE_SENSORS:
        return _by_lattice(group, cells, shares=shares)
    elimination = Elimination(group)
    n_states = elimination.n_states(EXACT_STATES)
    if n_states is None and group.sensors.size <= TABLE_LIMIT:
        return _by_lattice(group, cells, shares=shares)
    return _by_elimination(group, elimination, cells, n_states)


def _unrelated(group: Group, cells: NDArray[np.uint8]) -> GroupSums:
    """No source of the group moves any of its sensors."""
    chance = -group.penalty[np.arange(cells.shape[1]), cells, 0].sum(axis=1)
    shape = (len(cells), group.sources.size)
    return GroupSums(chance, np.broadcast_to(_probability(group), shape), np.zeros(shape), np.ones(len(cells), bool))


def _by_lattice(group: Group, cells: NDArray[np.uint8], *, shares: bool) -> GroupSums:
    order = np.lexsort(cells.T)
    lattice = _Lattice(group, np.ascontiguousarray(cells[order]))
    chance = np.empty(len(cells))
    chance[order] = lattice.chance()
    probability = np.full((len(cells), group.sources.size), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        if shares:
            probability[order] = lattice.chance_with_each() * _probability(group) / chance[order, None]
        log_chance = np.log(chance) - lattice.offset[cells, np.arange(cells.shape[1])].sum(axis=1)
    found = GroupSums(log_chance, np.minimum(probability, 1.0), np.zeros_like(probability), np.ones(len(cells), bool))
    return _with_tiny_rows(group, cells, found, np.flatnonzero(chance < SMALLEST))


def _with_tiny_rows(group: Group, cells: NDArray[np.uint8], found: GroupSums, tiny: NDArray[np.int64]) -> GroupSums:
    """Rows whose chance is zero, or too small for a table to tell from zero, are looked at in logarithms."""
    if tiny.size:
        elimination = Elimination(group)
        again = _by_elimination(group, elimination, cells[tiny], elimination.n_states(EXACT_STATES))
        for part in ("log_chance", "probability", "error", "exact"):
            getattr(found, part)[tiny] = getattr(again, part)
    return found


class _Lattice:
    """A table over all sets of sensors, from which the chance of every row is folded."""

    def __init__(self, group: Group, cells: NDArray[np.uint8]) -> None:
        silent = np.zeros(group.sensors.size)
        self.group, self.cells = group, cells
        self.offset = group.penalty.min(axis=2).T  # (3, n_sensors): the likelier state of a sensor weighs 1
        self.weight = np.exp(self.offset.T[:, :, None] - group.penalty)
        self.hidden = pattern_table(group.mixing, _probability(group), silent, silent)

    def chance(self) -> NDArray[np.float64]:
        """The chance of each row, apart from the offset of its cells."""
        return self._folded(None)

    def chance_with_each(self) -> NDArray[np.float64]:
        """The same given that a source is on, for each of them: (n_rows, n_sources)."""
        sources = packed(np.ascontiguousarray(self.group.mixing.T))[:, 0].tolist()
        n_threads = min(4, n_cores()) if self.group.sensors.size <= LATTICE_SENSORS else 1  # for memory's sake
        columns = list(tracked(in_threads(self._folded, sources, n_threads), "weighing sources", len(sources)))
        return np.stack(columns, axis=1)

    def _folded(self, source: int | None) -> NDArray[np.float64]:
        table, total = np.empty(2 * self.hidden.size), np.empty(len(self.cells))
        if source is None:
            table[self.hidden.size :] = self.hidden
        else:
            with_source_on(self.hidden, source, table[self.hidden.size :])
        fold_rows(table, self.weight, self.cells, total)
        return total


def _by_elimination(
    group: Group, elimination: Elimination, cells: NDArray[np.uint8], n_states: int | None
) -> GroupSums:
    width = None if n_states is not None else WIDTH
    a_batch = max(1, BATCH_STATES // (n_states or WIDTH * group.sources.size))
    parts = []
    for start in range(0, len(cells), a_batch):
        report("summing over activities, rows", start, len(cells))
        parts.append(_of_batch(elimination, cells[start : start + a_batch], width))
    report("summing over activities, rows", len(cells), len(cells))
    silence = np.logaddexp(0.0, -group.price).sum()
    return GroupSums(
        np.concatenate([sums.log_total for sums, _ in parts]) - silence if parts else np.empty(0),
        np.concatenate([np.empty((0, group.sources.size))] + [sums.probability for sums, _ in parts]),
        np.concatenate([np.empty((0, group.sources.size))] + [error for _, error in parts]),
        np.concatenate([np.empty(0, dtype=bool)] + [sums.whole for sums, _ in parts]),
    )


def _of_batch(
    elimination: Elimination, cells: NDArray[np.uint8], width: int | None
) -> tuple[Sums, NDArray[np.float64]]:
    sums = elimination.sums(cells, width)
    error = np.zeros_like(sums.probability)
    cut = np.flatnonzero(~sums.whole)
    if width is not None and cut.size:
        narrow = elimination.sums(np.ascontiguousarray(cells[cut]), width // 2)
        error[cut] = -np.expm1(np.minimum(0.0, narrow.log_total - sums.log_total[cut]))[:, None]
    return sums, error


def _probability(group: Group) -> NDArray[np.float64]:
    return expit(-group.price)
