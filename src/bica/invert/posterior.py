"""How likely each source was on in each row, and how likely each row is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bica.data.rows import Rows
from bica.errors import BicaWarning
from bica.invert.elimination import Elimination, Sums
from bica.invert.groups import Group, groups_of
from bica.invert.lossy import lossy_sums
from bica.kernels.bits import Words, packed
from bica.kernels.decoding.table import fold_rows
from bica.kernels.lattice.likelihood import with_source_on
from bica.kernels.lattice.subsets import mix_lossy_source
from bica.model.noise import TABLE_LIMIT, pattern_table
from bica.model.or_mixture import OrMixture
from bica.progress import ALL_CORES, in_threads, n_threads, report, tracked
from bica.text import counted

LATTICE_SENSORS = 20
EXACT_STATES = 1 << 21  # of elimination, for one row: about a second; twenty sources never need more
WIDTH = 1024  # states kept of each step where there are too many
BATCH_STATES = 1 << 21  # of all rows that are eliminated together: some 100 MiB
SMALLEST = 1e-250  # below this, numbers of a table have lost digits, or vanished
ROW_BY_ROW = 10  # a table of 2^m sets pays from 2^(m - 10) rows on, where edges may fail
TABLES_AT_ONCE = 4  # threads, for memory's sake; beyond the sensors of a lattice one


@dataclass(frozen=True, slots=True)
class GroupSums:
    """The probability of each row of a group, and of its sources."""

    log_probability: NDArray[np.float64]  # (n_rows,), of the row; a lower bound where not exact
    probability: NDArray[np.float64]  # (n_rows, n_sources), that each source is on
    error: NDArray[np.float64]  # (n_rows, n_sources), estimated; 0 where exact
    exact: NDArray[np.bool_]  # (n_rows,)


def group_sums(group: Group, cells: NDArray[np.uint8], *, shares: bool) -> GroupSums:
    """Sum over the activities behind each row of cells; without ``shares``, probabilities may be left out (NaN).

    Up to 20 sensors are summed by a table over all their sets, more by elimination of one source after another, exact
    as long as it needs at most 2^21 states for a row. Otherwise the table serves up to 24 sensors, and beyond,
    elimination keeps the 1024 likeliest states of each step. A posterior is then off by at most the share of the row's
    probability that was left out. That share is estimated by what a width of 512 leaves out of the sum at 1024, which
    is no less as long as doubling the width leaves out at most half as much. Groups whose edges may fail have tables,
    too, and beyond 20 sensors those of the row's ones or, where these are too many, samples.
    """
    if not group.mixing.any():
        return _unrelated(group, cells)
    if group.reach is not None:
        return _of_lossy(group, cells, shares=shares)
    if group.sensors.size <= LATTICE_SENSORS:
        return _by_lattice(group, cells, shares=shares)
    elimination = Elimination(group)
    n_states = elimination.n_states(EXACT_STATES)
    if n_states is None and group.sensors.size <= TABLE_LIMIT:
        return _by_lattice(group, cells, shares=shares)
    return _by_elimination(group, elimination, cells, n_states)


def _of_lossy(group: Group, cells: NDArray[np.uint8], *, shares: bool) -> GroupSums:
    """The sums of a group whose edges may fail: one table of all sets where it pays or must be, else row by row."""
    fits = group.sensors.size <= LATTICE_SENSORS
    if fits and len(cells) << ROW_BY_ROW >= 1 << group.sensors.size:
        return _by_lattice(group, cells, shares=shares)
    found = _row_by_row(group, cells)
    rest = np.flatnonzero(~found.exact)
    if fits and rest.size:
        _replace(found, rest, _by_lattice(group, cells[rest], shares=shares))
    return found


def _row_by_row(group: Group, cells: NDArray[np.uint8]) -> GroupSums:
    sums = lossy_sums(group, cells)
    exact = np.asarray(sums.exact.all(axis=1))
    return GroupSums(sums.log_probability, sums.probability, sums.error, exact)


def _replace(found: GroupSums, rows: NDArray[np.int64], again: GroupSums) -> None:
    """Put better sums in the place of these rows'."""
    for part in ("log_probability", "probability", "error", "exact"):
        getattr(found, part)[rows] = getattr(again, part)


def _unrelated(group: Group, cells: NDArray[np.uint8]) -> GroupSums:
    """The sums of a group whose sources reach none of its sensors."""
    log_probability = -group.penalty[np.arange(cells.shape[1]), cells, 0].sum(axis=1)
    shape = (len(cells), group.sources.size)
    return GroupSums(
        log_probability, np.broadcast_to(_source_probability(group), shape), np.zeros(shape), np.ones(len(cells), bool)
    )


def _by_lattice(group: Group, cells: NDArray[np.uint8], *, shares: bool) -> GroupSums:
    order = np.lexsort(cells.T)
    lattice = _Lattice(group, np.ascontiguousarray(cells[order]))
    of_row = np.empty(len(cells))
    of_row[order] = lattice.probability()
    probability = np.full((len(cells), group.sources.size), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        if shares:
            probability[order] = lattice.probability_with_each() * _source_probability(group) / of_row[order, None]
        log_probability = np.log(of_row) - lattice.offset[cells, np.arange(cells.shape[1])].sum(axis=1)
    found = GroupSums(
        log_probability, np.minimum(probability, 1.0), np.zeros_like(probability), np.ones(len(cells), bool)
    )
    return _with_tiny_rows(group, cells, found, np.flatnonzero(of_row < SMALLEST))


def _with_tiny_rows(group: Group, cells: NDArray[np.uint8], found: GroupSums, tiny: NDArray[np.int64]) -> GroupSums:
    """The sums with the ``tiny`` rows, whose probability a table cannot tell from 0, done again in logarithms."""
    if tiny.size and group.reach is not None:
        _replace(found, tiny, _row_by_row(group, cells[tiny]))
    elif tiny.size:
        elimination = Elimination(group)
        again = _by_elimination(group, elimination, cells[tiny], elimination.n_states(EXACT_STATES))
        _replace(found, tiny, again)
    return found


class _Lattice:
    """A table over all sets of sensors, from which the probability of every row is folded."""

    def __init__(self, group: Group, cells: NDArray[np.uint8]) -> None:
        silent = np.zeros(group.sensors.size)
        self.group, self.cells = group, cells
        self.offset = group.penalty.min(axis=2).T  # (3, n_sensors): the likelier state of a sensor weighs 1
        self.weight = np.exp(self.offset.T[:, :, None] - group.penalty)
        self.hidden = pattern_table(group.mixing, _source_probability(group), silent, silent, lossy_reach=group.reach)

    def probability(self) -> NDArray[np.float64]:
        """The probability of each row, apart from the offset of its cells."""
        return self._folded(None)

    def probability_with_each(self) -> NDArray[np.float64]:
        """The same given that a source is on, for each source: (n_rows, n_sources)."""
        if self.group.reach is not None:
            return self._with_each_lossy()
        sources = packed(np.ascontiguousarray(self.group.mixing.T))[:, 0].tolist()
        n_jobs = min(TABLES_AT_ONCE, n_threads(ALL_CORES)) if self.group.sensors.size <= LATTICE_SENSORS else 1
        columns = list(tracked(in_threads(self._folded, sources, n_jobs), "weighing sources", len(sources)))
        return np.stack(columns, axis=1)

    def _with_each_lossy(self) -> NDArray[np.float64]:
        """A lossy source cannot be taken back out of the table, so halves of the others are added again and again."""
        columns = np.empty((len(self.cells), self.group.sources.size))
        nothing = np.zeros(self.hidden.size)
        nothing[0] = 1.0

        def halve(others: NDArray[np.float64], sources: NDArray[np.int64]) -> None:
            if sources.size == 1:
                report("weighing sources", int(sources[0]), columns.shape[1])
                table = self._with_sources(others, sources, 1.0)
                columns[:, sources[0]] = self._fold(np.concatenate([np.empty_like(table), table]))
                return
            left, right = np.array_split(sources, 2)
            halve(self._with_sources(others, right), left)
            halve(self._with_sources(others, left), right)

        halve(nothing, np.arange(columns.shape[1]))
        return columns

    def _with_sources(
        self, table: NDArray[np.float64], sources: NDArray[np.int64], probability: float | None = None
    ) -> NDArray[np.float64]:
        """The table with these sources added, on as often as they are or with this ``probability``."""
        assert self.group.reach is not None
        added, own = table.copy(), _source_probability(self.group)
        for j in sources:
            sensors = np.flatnonzero(self.group.mixing[:, j])
            of_source = float(own[j]) if probability is None else probability
            mix_lossy_source(added, sensors, self.group.reach[sensors, j], of_source)
        return added

    def _folded(self, source: int | None) -> NDArray[np.float64]:
        table = np.empty(2 * self.hidden.size)
        if source is None:
            table[self.hidden.size :] = self.hidden
        else:
            with_source_on(self.hidden, source, table[self.hidden.size :])
        return self._fold(table)

    def _fold(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of each row, from the distribution of what is there in the upper half of the table."""
        total = np.empty(len(self.cells))
        fold_rows(table, self.weight, self.cells, total)
        return total


def _by_elimination(
    group: Group, elimination: Elimination, cells: NDArray[np.uint8], n_states: int | None
) -> GroupSums:
    width = None if n_states is not None else WIDTH
    n_together = max(1, BATCH_STATES // (n_states or WIDTH * group.sources.size))
    parts = []
    for start in range(0, len(cells), n_together):
        report("summing over activities, rows", start, len(cells))
        parts.append(_of_batch(elimination, cells[start : start + n_together], width))
    report("summing over activities, rows", len(cells), len(cells))
    silence = np.logaddexp(0.0, -group.source_cost).sum()
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


def _source_probability(group: Group) -> NDArray[np.float64]:
    return expit(-group.source_cost)


@dataclass(frozen=True, slots=True)
class Posterior:
    """The probability that each source was on in each row, given what the sensors showed."""

    probability: NDArray[np.float64]  # (n_rows, n_sources); NaN where the model cannot produce the row
    error: NDArray[np.float64]  # (n_rows, n_sources), estimate of how far off it may be; 0 where exact
    exact: NDArray[np.bool_]  # (n_rows, n_sources)


@dataclass(frozen=True, slots=True)
class LogProbability:
    """The log of the probability of each row."""

    value: NDArray[np.float64]  # (n_rows,), minus infinity where the model cannot produce the row
    exact: NDArray[np.bool_]  # (n_rows,), False where the value is a lower bound


def posterior(model: OrMixture, words: Words, observed: Words | None = None) -> Posterior:
    """The probability that each source was on, given the row; cells that were not observed may be anything.

    Exact for every part of the model of up to 20 connected sensors, and for wider ones as long as few of their sets
    have to be told apart (2^21, which twenty sources never need). Beyond, only the likeliest activities are summed;
    ``exact`` says where, and ``error`` how far off that may be. Equal rows are computed once. A row that the model
    cannot produce has no posterior: it is NaN, and a warning counts such rows.

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> posterior(model, np.array([[1], [3]], dtype=np.uint64)).probability
    array([[1. , 0. ],
           [0.2, 1. ]])
    """
    rows = Rows.of_words(words, observed, model.n_sensors)
    first, number = rows.distinct()
    found, possible = _of_distinct(model, rows.pick(first))
    n_impossible = int((~possible[number]).sum())
    if n_impossible:
        warnings.warn(
            f"the model cannot produce {counted(n_impossible, 'row')} of {len(number)}, so that the posterior there "
            "is NaN; fit with noise to make every row possible",
            BicaWarning,
            stacklevel=2,
        )
    return Posterior(found.probability[number], found.error[number], found.exact[number])


def log_probability(model: OrMixture, words: Words, observed: Words | None = None) -> LogProbability:
    """The log of the probability of each row, exact or a lower bound under the same conditions as ``posterior``.

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> np.exp(log_probability(model, np.arange(4, dtype=np.uint64)[:, None]).value).round(6)
    array([0.4, 0.1, 0. , 0.5])
    """
    rows = Rows.of_words(words, observed, model.n_sensors)
    first, number = rows.distinct()
    value, exact = np.zeros(len(first)), np.ones(len(first), dtype=bool)
    for _, sums, pattern in _groups(model, rows.pick(first), shares=False):
        value += sums.log_probability[pattern]
        exact &= sums.exact[pattern]
    return LogProbability(value[number], exact[number] | np.isinf(value[number]))


def _of_distinct(model: OrMixture, rows: Rows) -> tuple[Posterior, NDArray[np.bool_]]:
    """The posterior of each row, and whether the model can produce it."""
    probability = np.repeat(model.probability[None], len(rows.words), axis=0)  # sources that never change keep theirs
    error, exact = np.zeros_like(probability), np.ones(probability.shape, dtype=bool)
    possible = np.ones(len(rows.words), dtype=bool)
    for group, sums, pattern in _groups(model, rows, shares=True):
        probability[:, group.sources] = sums.probability[pattern]
        error[:, group.sources] = sums.error[pattern]
        exact[:, group.sources] = sums.exact[pattern][:, None]
        possible &= np.isfinite(sums.log_probability[pattern])
    probability[~possible], error[~possible], exact[~possible] = np.nan, 0.0, True
    return Posterior(probability, error, exact), possible


def _groups(model: OrMixture, rows: Rows, *, shares: bool) -> Iterator[tuple[Group, GroupSums, NDArray[np.int64]]]:
    """Each group of connected sensors with its sums over distinct rows, and the number of every row among those."""
    for group in groups_of(model):
        part = rows.of_sensors(group.sensors)
        first, pattern = part.distinct()
        yield group, group_sums(group, part.pick(first).cells(group.sensors.size), shares=shares), pattern


def approximate(found: Posterior) -> str:
    """How many posteriors are approximate, and by how much they may be off."""
    return (
        f"{(~found.exact).sum()} of {found.exact.size} posteriors are approximate, off by about "
        f"{np.nanmax(found.error):.2g} at most: too many columns are connected to sum over all activities"
    )


def lower_bounds(rows: LogProbability) -> str:
    """For how many rows the log-likelihood is only bounded from below."""
    return (
        f"the log-likelihood of {(~rows.exact).sum()} of {len(rows.exact)} rows is a lower bound: too many columns "
        "are connected to sum over all activities"
    )
