"""A table explained by lossy sources: the numbers, one sampled activity of every row, and sweeps that improve both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.rows.pool import Numbers, RowTable, joined, ranges
from bica.kernels.rows.gains import Lists, turned
from bica.kernels.rows.lossy import (
    TRIAL_FAIL,
    Edges,
    LossyCells,
    LossySweep,
    count_edges,
    refresh_quiet,
    sweep_lossy,
)
from bica.kernels.rows.lossy_local import MOST_FREQUENT, MOST_REACH, RAREST
from bica.progress import go_on, in_threads

ROWS_PER_PART, SOURCES_PER_PART = 2048, 16  # work for one thread at a time
LEAST_LEAK, MOST_LEAK = 1e-4, 0.9
LEAST_EDGE = 0.01  # an edge below is no edge
FORGET = 0.5  # share of the counts that the next sweep remembers
FEW_ON, FEW_ONES = 3.0, 2.5  # activations of a source, and common ones, that a new edge needs


FIRST_PROBABILITY, FIRST_REACH = 0.05, 0.7  # of a known source, where they are open
CAPPED = 1.0 - 1e-6  # the highest reach that is given: logarithms of its failure are finite


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Known sources, which come first and keep their edges, with the numbers that were given; NaN where open."""

    probability: Numbers  # (n_known,)
    reach: Numbers  # (n_known, n_sensors), 0 where there is no edge

    @property
    def size(self) -> int:
        """How many known sources there are."""
        return self.probability.size

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Of which sources no number was given: (n_known,)."""
        nothing: NDArray[np.bool_] = np.isnan(self.probability) & ~(self.reach > 0).any(axis=1)
        return nothing

    def first(self) -> tuple[Numbers, Numbers]:
        """Probability and reach to begin with."""
        probability = np.where(np.isnan(self.probability), FIRST_PROBABILITY, self.probability)
        return probability, np.where(np.isnan(self.reach), FIRST_REACH, np.minimum(self.reach, CAPPED))

    def hold(self, probability: Numbers, reach: Numbers) -> None:
        """Put back what was given, and no edge of a known source is lost or added."""
        n = self.size
        probability[:n] = np.where(np.isnan(self.probability), probability[:n], self.probability)
        least = np.maximum(reach[:n], LEAST_EDGE)
        reach[:n] = np.where(np.isnan(self.reach), least, np.minimum(self.reach, CAPPED))


@dataclass(frozen=True, slots=True, eq=False)
class LossyTable:
    """Distinct rows as lists of what is not 0, and where the cells of each sensor are."""

    n_sensors: int
    n_samples: float  # with the rows that have no cell to list
    cells: LossyCells
    rows_of: Lists  # the rows of each sensor's cells
    place_of: NDArray[np.int64]  # where these cells stand
    usual: Numbers  # (n_sensors,), the share of ones among the cells observed
    observed: Numbers  # (n_sensors,), the weight of the rows in which each sensor was observed
    n_jobs: int
    forbidden: tuple[NDArray[np.int64], ...]  # sets of sensors that no source reaches together, but known ones
    held: Held  # the known sources

    @classmethod
    def of(
        cls,
        table: RowTable,
        n_jobs: int = 1,
        forbidden: tuple[NDArray[np.int64], ...] = (),
        held: Held | None = None,
    ) -> LossyTable:
        """The table with ones and gaps in one list."""
        held = held or Held(np.zeros(0), np.zeros((0, table.n_sensors)))
        n_ones, n_gaps = np.diff(table.cells.ones.start), np.diff(table.cells.gaps.start)
        row = np.concatenate([np.repeat(table.rows, n_ones), np.repeat(table.rows, n_gaps)])
        sensor = np.concatenate([table.cells.ones.items, table.cells.gaps.items])
        heard = np.repeat([1.0, 0.0], [n_ones.sum(), n_gaps.sum()])
        order = np.lexsort((sensor, row))
        kept = np.flatnonzero(n_ones + n_gaps)
        start = np.concatenate([[0], np.cumsum((n_ones + n_gaps)[kept])])
        lists = Lists(start, np.ascontiguousarray(sensor[order]))
        cells = LossyCells(lists, heard[order], table.cells.weights[kept])
        observed = table.times_observed()
        usual = table.ones() / np.maximum(observed, 1.0)
        place_of = np.argsort(lists.items, kind="stable")
        rows_of = turned(lists, table.n_sensors)
        return cls(table.n_sensors, table.n_samples, cells, rows_of, place_of, usual, observed, n_jobs, forbidden, held)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The numbers of all rows."""
        return np.arange(self.cells.weights.size)

    @property
    def bar(self) -> float:
        """What an edge must be worth: half a log of the rows for its number, half a log of the sensors for where."""
        return 0.5 * float(np.log(self.n_samples) + np.log(self.n_sensors))

    def by_sensor(self, values: Numbers) -> Numbers:
        """Values of the cells, summed by sensor and weight: (n_sensors,)."""
        weights = np.repeat(self.cells.weights, np.diff(self.cells.ones.start))
        return np.bincount(self.cells.ones.items, weights=weights * values, minlength=self.n_sensors).astype(float)


def listed(rows: NDArray[np.int64], sources: NDArray[np.int64], n_rows: int) -> Lists:
    """The sources of each row, from pairs of a row and a source."""
    order = np.lexsort((sources, rows))
    counts = np.bincount(rows, minlength=n_rows)
    return Lists(np.concatenate([[0], np.cumsum(counts)]), sources[order].astype(np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A source with its numbers and the rows in which it is on."""

    probability: float
    reach: Numbers  # (n_sensors,)
    rows: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LossyState:
    """The numbers of the model and an activity; ``n_on`` and ``worth`` are known after a sweep."""

    table: LossyTable
    probability: Numbers  # (n_sources,)
    reach: Numbers  # (n_sources, n_sensors), 0 where there is no edge
    leak: Numbers  # (n_sensors,)
    active: Lists  # the sources of each row
    quiet: Numbers  # (n_cells,), the probability that a cell would be 0 given the active sources
    n_on: Numbers  # (n_sources,), activations
    worth: Numbers  # (n_sources, n_sensors), what each edge is worth
    log_likelihood: float = -np.inf  # a lower estimate, from the last sweep

    @classmethod
    def empty(cls, table: LossyTable) -> LossyState:
        """No source yet but the known ones, which are asleep: all ones come from leaks."""
        return cls.asleep(table, *table.held.first(), np.clip(table.usual, LEAST_LEAK, MOST_LEAK))

    @classmethod
    def asleep(cls, table: LossyTable, probability: Numbers, reach: Numbers, leak: Numbers) -> LossyState:
        """These sources, none of them on in any row."""
        active = Lists(np.zeros(table.rows.size + 1, np.int64), np.empty(0, np.int32))
        quiet = np.zeros(table.cells.heard.size)
        return cls(table, probability, reach, leak, active, quiet, np.zeros(probability.size), reach * 0.0).refreshed()

    @property
    def size(self) -> int:
        """How many sources there are."""
        return self.probability.size

    def refreshed(self) -> LossyState:
        """The same with ``quiet`` as the present numbers make it."""
        quiet = np.empty_like(self.quiet)
        refresh_quiet(self.table.cells, self.active, self.reach, self.leak, quiet)
        return replace(self, quiet=quiet)

    def edges(self) -> Edges:
        """The edges by sensor, with what a cell can say for each at most."""
        sensor, source = np.nonzero(self.reach.T)
        fail = 1.0 - self.reach[source, sensor]
        unheard = -np.log(fail)
        leak = self.leak[sensor]
        most = np.stack([unheard, unheard + np.log((1.0 - (1.0 - leak) * fail) / leak)])
        start = np.concatenate([[0], np.cumsum(np.bincount(sensor, minlength=self.table.n_sensors))])
        return Edges(start, source.astype(np.int32), fail, most)

    def silent(self) -> Numbers:
        """The log odds of each source in a row without ones."""
        log_odds: Numbers = np.log(self.probability) - np.log1p(-self.probability) + np.log1p(-self.reach).sum(axis=1)
        return log_odds

    def rows_of(self) -> Lists:
        """The rows in which each source is on."""
        return turned(self.active, self.size)

    def kept(self, chosen: NDArray[np.int64]) -> LossyState:
        """Only the chosen sources."""
        number = np.full(self.size, -1)
        number[chosen] = np.arange(chosen.size)
        rows = np.repeat(self.table.rows, np.diff(self.active.start))
        sources = number[self.active.items]
        active = listed(rows[sources >= 0], sources[sources >= 0], self.table.rows.size)
        return replace(
            self,
            probability=self.probability[chosen],
            reach=self.reach[chosen],
            active=active,
            n_on=self.n_on[chosen],
            worth=self.worth[chosen],
        ).refreshed()

    def revised(self, changed: dict[int, Placed], new: list[Placed], gone: list[int]) -> LossyState:
        """With some sources changed, others added, and others gone."""
        placed = {**changed, **{self.size + k: one for k, one in enumerate(new)}}
        size, n_rows = self.size + len(new), self.table.rows.size
        probability, n_on, reach, worth = np.zeros(size), np.zeros(size), *np.zeros((2, size, self.table.n_sensors))
        probability[: self.size], n_on[: self.size] = self.probability, self.n_on
        reach[: self.size], worth[: self.size] = self.reach, self.worth
        for number, one in placed.items():
            probability[number], reach[number] = one.probability, one.reach
        old = np.repeat(self.table.rows, np.diff(self.active.start))
        stays = ~np.isin(self.active.items, np.array(sorted(changed), int))
        rows = [old[stays], *(one.rows for one in placed.values())]
        sources = [self.active.items[stays], *(np.full(one.rows.size, number) for number, one in placed.items())]
        active = listed(np.concatenate(rows), np.concatenate(sources), n_rows)
        state = replace(self, probability=probability, reach=reach, active=active, n_on=n_on, worth=worth)
        return state.kept(np.setdiff1d(np.arange(size), np.array(gone, int)))

    @property
    def score(self) -> float:
        """The lower estimate of the log-likelihood minus the bar of every number."""
        return self.log_likelihood - self.table.bar * (np.count_nonzero(self.reach) + self.size)

    def pruned(self, share: float) -> LossyState:
        """Without the edges that are worth less than this share of the bar, and sources that have no two edges left."""
        n_known = self.table.held.size
        reach = np.where(self.worth < share * self.table.bar, 0.0, self.reach)
        reach[:n_known] = self.reach[:n_known]
        for together in self.table.forbidden:
            broken = np.flatnonzero((reach[:, together] > 0).all(axis=1))
            broken = broken[broken >= n_known]
            reach[broken, together[self.worth[np.ix_(broken, together)].argmin(axis=1)]] = 0.0
        kept = ((reach > 0).sum(axis=1) >= 2) & (self.n_on >= FEW_ON)
        kept[:n_known] = True
        return replace(self, reach=reach).kept(np.flatnonzero(kept))


@dataclass(frozen=True, slots=True, eq=False)
class EdgeCounts:
    """Sums over the activity of a sweep, or a decaying sum over several."""

    expected: Numbers  # (n_sources,), activations, averaged over the draws
    n_on: Numbers  # (n_sources,), activations as drawn
    worked: Numbers  # (n_sources, n_sensors), how often each edge worked
    worth: Numbers  # (n_sources, n_sensors), what each edge is worth
    by_itself: Numbers  # (n_sensors,), how often each sensor came on by itself
    log_likelihood: float  # a lower estimate, summed over the sweeps
    weight: float  # of the sweeps

    def plus(self, other: EdgeCounts, remembered: float) -> EdgeCounts:
        """The other counts, and these at a share."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)
        return EdgeCounts(*(remembered * old + new for old, new in pairs))


def swept(state: LossyState, seed: np.uint64) -> tuple[LossyState, LossySweep]:
    """The state after one sweep with its numbers held, and the sums of the sweep."""
    table, edges, silent, quiet = state.table, state.edges(), state.silent(), state.quiet.copy()

    def sweep(rows: NDArray[np.int64]) -> LossySweep:
        return sweep_lossy(rows, table.cells, edges, silent, state.leak, state.active, quiet, seed)

    parts = list(in_threads(sweep, ranges(table.rows, ROWS_PER_PART), table.n_jobs))
    total = LossySweep(
        joined([part.active for part in parts]),
        np.sum([part.expected for part in parts], axis=0),
        np.sum([part.looked_at for part in parts], axis=0),
        sum(part.log_joint for part in parts),
        sum(part.entropy for part in parts),
    )
    return replace(state, active=total.active, quiet=quiet), total


def counted(state: LossyState, sweep: LossySweep) -> tuple[EdgeCounts, NDArray[np.bool_]]:
    """The counts of the M-step, and which absent edges are worth opening.

    A source is drawn only in rows with a cell that could speak for it. In all others its probability of being on is
    the same, that of a row without ones.
    """
    table, rows_of = state.table, state.rows_of()
    silent_rows = np.maximum(table.n_samples - sweep.looked_at, 0.0) / (1.0 + np.exp(-state.silent()))
    drawn = np.bincount(
        state.active.items,
        weights=np.repeat(table.cells.weights, np.diff(state.active.start)),
        minlength=state.size,
    )
    n_on = drawn + silent_rows
    share, n_ones, worth = (np.zeros_like(state.reach) for _ in range(3))
    trial = np.log((1.0 - TRIAL_FAIL * state.quiet) / (1.0 - state.quiet))

    def count(sources: NDArray[np.int64]) -> None:
        count_edges(sources, rows_of, table.cells, state.quiet, trial, state.reach, share, n_ones, worth)

    list(in_threads(count, ranges(np.arange(state.size), SOURCES_PER_PART), table.n_jobs))
    absent = state.reach == 0
    worth += (n_on[:, None] - n_ones) * np.where(absent, np.log(TRIAL_FAIL), np.log1p(-state.reach))
    opened = absent & (worth > OPENS * table.bar) & (n_ones > FEW_ONES) & (n_on > FEW_ON)[:, None]
    opened[: table.held.size] = False
    by_itself = table.by_sensor(table.cells.heard * state.leak[table.cells.ones.items] / (1.0 - state.quiet))
    expected = sweep.expected + silent_rows
    counts = EdgeCounts(
        expected, n_on, share * state.reach, np.where(absent, 0.0, worth), by_itself, _log_likelihood(state, sweep), 1.0
    )
    return counts, opened


def _log_likelihood(state: LossyState, sweep: LossySweep) -> float:
    """A lower estimate of the log-likelihood: E log P(rows, activity) plus the entropy of each source given all others.

    The log-likelihood is E log P(rows, activity | model) plus the entropy of the activity given the rows, which is at
    least the sum of the entropies of its parts, each given all others; they are equal where sources do not compete.
    """
    table, probability, silent = state.table, state.probability, state.silent()
    ones = table.by_sensor(table.cells.heard)
    zeros = float((table.observed - ones) @ np.log1p(-state.leak))
    passed = np.exp(silent) * (1.0 - probability)  # p prod f: on, and no sensor came on
    unseen = (table.n_samples - sweep.looked_at) @ np.log(1.0 - probability + passed)
    return float(zeros + sweep.looked_at @ np.log1p(-probability) + unseen + sweep.log_joint + sweep.entropy)


OPENS = 0.6  # share of the bar that an absent edge must be worth, at a reach of 1/4, to be opened


def sweeps(
    state: LossyState,
    n_sweeps: int,
    rng: np.random.Generator,
    *,
    remembered: float = FORGET,
    opens: bool = True,
    most_reach: float = MOST_REACH,
) -> LossyState:
    """The state after so many sweeps, each with an M-step from counts that are remembered at a share."""
    if not state.size:
        return state
    counts = None
    for _ in range(n_sweeps):
        go_on()
        state, sweep = swept(state, np.uint64(rng.integers(2**63)))
        new, opened = counted(state, sweep)
        counts = new if counts is None else counts.plus(new, remembered)
        state = maximised(state, counts, most_reach)
        if opens:
            reach = np.where(opened, 1.0 - TRIAL_FAIL, state.reach)
            state = replace(state, reach=reach)
    return state.refreshed()


def maximised(state: LossyState, counts: EdgeCounts, most_reach: float) -> LossyState:
    """The state with the numbers that these counts suggest."""
    table = state.table
    reach = np.minimum(counts.worked / np.maximum(counts.n_on, 1e-9)[:, None], most_reach)
    reach = np.where((counts.n_on < 0.5)[:, None], state.reach, reach)
    reach[reach < LEAST_EDGE] = 0.0
    probability = np.clip((counts.expected / counts.weight + 0.1) / (table.n_samples + 0.2), RAREST, MOST_FREQUENT)
    table.held.hold(probability, reach)
    leak = counts.by_itself / counts.weight / np.maximum(table.observed, 1.0)
    return replace(
        state,
        probability=probability,
        reach=reach,
        leak=np.clip(leak, LEAST_LEAK, MOST_LEAK),
        n_on=counts.n_on / counts.weight,
        worth=counts.worth / counts.weight,
        log_likelihood=counts.log_likelihood / counts.weight,
    )


def burnt_in(state: LossyState, n_sweeps: int, rng: np.random.Generator) -> LossyState:
    """The state after sweeps that leave the numbers alone: a cold activity would spoil them."""
    for _ in range(n_sweeps):
        go_on()
        state, _ = swept(state, np.uint64(rng.integers(2**63)))
    return state
