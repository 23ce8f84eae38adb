"""A table with the sources that explain it, row by row, and new sources from the cells that they leave unexplained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.rows.pool import (
    Column,
    Cost,
    Forbidden,
    Numbers,
    RowPool,
    RowTable,
    as_columns,
    as_lists,
    joined,
    ranges,
)
from bica.kernels.bits import Words, pack_sparse, packed, unpacked
from bica.kernels.rows.births import accept_columns, closure_areas, find_seeds, grow_columns
from bica.kernels.rows.decoding import Activity, decode_rows
from bica.kernels.rows.gains import Coverage, Lists, Sources, cover_rows, gain_of_rows, spliced, turned
from bica.model.noise import Noise
from bica.progress import go_on, in_threads, tracked

LEAST, MOST = 1e-5, 0.3  # bounds of error rates: if a cell could not err, a single 0 would rule a source out
HOPELESS_ZEROS, HOPELESS_NATS = 2.5, 3.0  # hopeless: a gain below 2.5 times the weight of a 0, minus 3 nats


@dataclass(frozen=True, slots=True, eq=False)
class CellWeights:
    """The weight of a covered cell, from the error rates of its sensor: known, or one unknown flip rate for all.

    >>> CellWeights.of(0.1, 2).one.round(2)
    array([2.2, 2.2])
    """

    false_alarm: NDArray[np.float64]  # (n_sensors,)
    miss: NDArray[np.float64]  # (n_sensors,)
    known: bool

    @classmethod
    def of(cls, noise: Noise | float, n_sensors: int) -> CellWeights:
        """The weights under known noise, or under a first guess of one flip rate."""
        known = isinstance(noise, Noise)
        false_alarm, miss = noise.rates(n_sensors) if isinstance(noise, Noise) else Noise.flips(noise).rates(n_sensors)
        return cls(np.maximum(false_alarm, LEAST), np.maximum(miss, LEAST), known)

    @property
    def one(self) -> NDArray[np.float64]:
        """By how many nats a covered sensor that shows 1 speaks for the active sources: (n_sensors,)."""
        return np.log1p(-self.miss) - np.log(self.false_alarm)

    @property
    def zero(self) -> NDArray[np.float64]:
        """The same for a covered sensor that shows 0, so negative: (n_sensors,)."""
        return np.log(self.miss) - np.log1p(-self.false_alarm)

    @property
    def flip_rate(self) -> float:
        """The mean of both rates over all sensors."""
        return float(np.mean(self.false_alarm) + np.mean(self.miss)) / 2

    @property
    def hopeless(self) -> float:
        """The gain below which a source does not become useful, whatever else is switched on."""
        return HOPELESS_ZEROS * float(np.mean(self.zero)) - HOPELESS_NATS

    def with_flip_rate(self, flip_rate: float) -> CellWeights:
        """The weights under this flip rate, unless the noise is known."""
        if self.known:
            return self
        return CellWeights.of(float(np.clip(flip_rate, LEAST, MOST)), self.miss.size)


ENOUGH_CELLS = 1000.0  # covered cells that determine the flip rate
HALF = 0.5  # added to a count, and 1 to its total: a share is then never 0 or 1


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """A table, a pool of sources, and which of them were on in each row."""

    table: RowTable
    pool: RowPool
    cell_weights: CellWeights
    activity: Activity
    n_jobs: int

    def n_on(self) -> Numbers:
        """In how many rows each source is on, by weight."""
        return self._by_source(np.ones(self.activity.loss.size))

    def losses(self) -> Numbers:
        """What the rows of each source would lose without it, with others in its place, by weight."""
        return self._by_source(self.activity.loss)

    def _by_source(self, values: Numbers) -> Numbers:
        active = self.activity.active
        weights = np.repeat(self.table.cells.weights, np.diff(active.start))
        return np.bincount(active.items, weights=weights * values, minlength=self.pool.size).astype(float)

    def rows_of(self) -> Lists:
        """The rows in which each source is on."""
        return turned(self.activity.active, self.pool.size)

    def gain(self, rows: NDArray[np.int64]) -> float:
        """What the active sources gain in these rows compared with no source, by weight."""
        return float(self.table.cells.weights[rows] @ self.activity.gain[rows])

    def objective(self, cost: Cost) -> float:
        """How much shorter a two-part code of the table is than with no source at all: the higher, the better."""
        silence = self.table.n_samples * np.log1p(-self.pool.probability).sum()
        return self.gain(self.table.rows) + float(silence - cost(self.pool.widths).sum())

    def score(self, cost: Cost) -> float:
        """The objective plus the code of the cells without sources, at the flip rate of all cells: compares noise."""
        ones, observed, covered = self.table.ones(), self.table.times_observed(), self.coverage()
        n_wrong = float((ones - covered.ones + covered.zeros).sum())
        cell_weights = self.cell_weights.with_flip_rate(n_wrong / max(1.0, float(observed.sum())))
        flip_rate = cell_weights.false_alarm
        silent = float(ones @ np.log(flip_rate) + (observed - ones) @ np.log1p(-flip_rate))
        return self._valued(self.pool, cell_weights).objective(cost) + silent

    def coverage(self) -> Coverage:
        """The covered ones and zeros of each sensor, and the ones left unexplained in each row."""

        def cover(rows: NDArray[np.int64]) -> Coverage:
            return cover_rows(rows, self.table.cells, self.pool.columns, self.activity.active, self.table.n_sensors)

        parts = list(in_threads(cover, ranges(self.table.rows), self.n_jobs))
        left = joined([part.unexplained for part in parts])
        return Coverage(left, sum(part.ones for part in parts), sum(part.zeros for part in parts))  # type: ignore[arg-type]

    def sources(self) -> Sources:
        """The sources in the form that the kernels take."""
        return self.pool.sources(self.cell_weights.one, self.cell_weights.zero)

    def decoded(self) -> Explained:
        """All rows decoded from scratch, then with the probabilities and the flip rate that the new activity suggests.

        Sources that are never on are left out, except known ones.
        """
        activity = decode(self.table, self.sources(), self.cell_weights, self.table.rows, n_jobs=self.n_jobs)
        return replace(self, activity=activity)._without_unused().updated()

    def updated(self) -> Explained:
        """The same activity, with the probabilities and the flip rate that it suggests."""
        shares = (self.n_on() + HALF) / (self.table.n_samples + 1)
        pool, cell_weights, covered = self.pool.with_probability(shares), self.cell_weights, self.coverage()
        n_cells = float(covered.ones.sum() + covered.zeros.sum())
        if n_cells >= ENOUGH_CELLS:
            cell_weights = cell_weights.with_flip_rate((float(covered.zeros.sum()) + HALF) / (n_cells + 1))
        return self._valued(pool, cell_weights)

    def _valued(self, pool: RowPool, cell_weights: CellWeights) -> Explained:
        """The same activity, with other probabilities and other noise."""
        sources, active = pool.sources(cell_weights.one, cell_weights.zero), self.activity.active

        def gain(rows: NDArray[np.int64]) -> Numbers:
            return gain_of_rows(rows, self.table.cells, sources, active)

        gains = np.concatenate(list(in_threads(gain, ranges(self.table.rows), self.n_jobs)))
        return replace(self, pool=pool, cell_weights=cell_weights, activity=self.activity._replace(gain=gains))

    def _without_unused(self) -> Explained:
        used = (np.bincount(self.activity.active.items, minlength=self.pool.size) > 0) | self.pool.fixed
        return self if used.all() else self.keeping(np.flatnonzero(used))

    def keeping(self, chosen: NDArray[np.int64]) -> Explained:
        """The same with only the chosen sources; the others must not be on in any row."""
        number = np.full(self.pool.size, -1, np.int32)
        number[chosen] = np.arange(chosen.size, dtype=np.int32)
        active = self.activity.active
        activity = self.activity._replace(active=Lists(active.start, number[active.items]))
        return replace(self, pool=self.pool.kept(chosen), activity=activity)

    def with_rows(self, rows: NDArray[np.int64], new: Activity) -> Explained:
        """The same with another activity in these rows."""
        old = self.activity
        active, loss = spliced(old.active, old.loss, rows, new.active, new.loss)
        gain = old.gain.copy()
        gain[rows] = new.gain
        return replace(self, activity=Activity(active, loss, gain))


def decode(
    table: RowTable,
    sources: Sources,
    cell_weights: CellWeights,
    rows: NDArray[np.int64],
    before: Lists | None = None,
    n_jobs: int = 1,
) -> Activity:
    """Which sources were on in these rows, found from scratch or from an earlier activity of all rows."""
    warm = before if before is not None else Lists(np.zeros(1, np.int64), np.empty(0, np.int32))

    def task(part: NDArray[np.int64]) -> Activity:
        return decode_rows(part, table.cells, sources, cell_weights.hopeless, warm, before is not None)

    parts = list(in_threads(task, ranges(rows), n_jobs))
    return Activity(
        joined([part.active for part in parts]),
        np.concatenate([part.loss for part in parts]),
        np.concatenate([part.gain for part in parts]),
    )


def unexplained(table: RowTable, cell_weights: CellWeights, pool: RowPool, n_jobs: int) -> Explained:
    """The table with no source on in any row yet."""
    nothing = Activity(
        Lists(np.zeros(table.n_rows + 1, np.int64), np.empty(0, np.int32)), np.empty(0), np.zeros(table.n_rows)
    )
    return Explained(table, pool, cell_weights, nothing, n_jobs)


# New candidate sources from cells that are 1 and unexplained, and from intersections of a few distinct rows.

FEW_ROWS = 400  # distinct rows up to which all their intersections are tried
MOST_CLOSURES = 20_000  # intersections kept, those of the largest area
PER_SENSOR = 0.01  # cells taken off the area for each sensor: of two sets that explain as much, the smaller wins


def has_few_rows(table: RowTable) -> bool:
    """Whether there are so few distinct rows that all their intersections can be tried."""
    return table.n_rows <= FEW_ROWS


def closures(table: RowTable, left: Words, *, lone: bool) -> list[tuple[float, Column]]:
    """Rows, unexplained parts of rows and intersections of two of either, with the area of each; none if rows are many.

    Single sensors are among them only if ``lone``. ``left`` holds the unexplained parts of the rows.
    """
    if not has_few_rows(table):
        return []
    alone = packed(np.eye(table.n_sensors, dtype=np.uint8)) if lone else table.words[:0]
    sets = np.unique(np.concatenate([_intersections(table.words), _intersections(left), alone]), axis=0)
    sets = sets[sets.any(axis=1)]
    areas = closure_areas(sets, table.words, left, table.cells.weights)
    best = np.argsort(-areas, kind="stable")[:MOST_CLOSURES]
    best = best[areas[best] > 0]
    columns = [tuple(np.flatnonzero(row).tolist()) for row in unpacked(sets[best], table.n_sensors)]
    pairs = zip(areas[best].tolist(), columns, strict=True)
    ranked = [(area - PER_SENSOR * len(column), column) for area, column in pairs]
    return [candidate for candidate in ranked if lone or len(candidate[1]) > 1]


def _intersections(words: Words) -> Words:
    rows = np.unique(words, axis=0)
    return np.unique(np.concatenate([rows[k] & rows[k:] for k in range(len(rows))]), axis=0)


PARTNERS = 6  # of each sensor that make seeds with it
SURPRISE = 5.0  # standard deviations above what independent sensors give: a pair this frequent is a seed
FEW_SAMPLES = 1000  # rows: with fewer, surprises are hard to come by, so every pair that is on together is a seed
MOST_SEEDS = 6000  # grown in one round; of more, a random choice
LONGEST = 250  # sensors of a grown column
SENSORS_PER_PART, SEEDS_PER_PART = 32, 64  # work for one thread at a time
RAREST_BIRTH, MOST_FREQUENT_BIRTH = 1e-4, 0.5  # probability of a new source
PER_SEED_ROW = 0.5  # area of a bare seed for each row with both on, half that of a grown pair
EXACT = 1e-3  # a higher flip rate explains single ones better than one source per sensor would
MOST_OF_IT = 0.8  # share of its sensors that must be on in the rows that a new source explains


def births(
    state: Explained, cost: Cost, least: float, rng: np.random.Generator, forbidden: Forbidden | None = None
) -> RowPool:
    """New sources that pay by explaining what is unexplained, grown from pairs that are on together too often.

    ``least`` is the weight of the rows that a source needs. With few distinct rows, their intersections are tried, too.
    """
    table, left = state.table, state.coverage().unexplained
    left_words = np.zeros_like(table.words)
    pack_sparse(left.start, left.items.astype(np.int64), left_words)
    candidates = [
        *_grown(state, left, left_words, least, rng),
        *closures(table, left_words, lone=state.cell_weights.flip_rate < EXACT),
    ]
    have = set(as_columns(state.pool.columns))
    columns: list[Column] = []
    for _, column in sorted(candidates, key=lambda candidate: (-candidate[0], candidate[1])):
        if column not in have and not (forbidden and forbidden(column)):
            have.add(column)
            columns.append(column)
    lists = as_lists(columns)
    go_on()
    needed = cost(np.diff(lists.start)) - 0.5 * np.log(table.n_samples)
    explained = accept_columns(
        lists, needed, table.ones_of, table.cells, table.words, left_words, state.cell_weights.one, least, MOST_OF_IT
    )
    born = np.flatnonzero(explained)
    probability = np.maximum(explained[born] / table.n_samples, RAREST_BIRTH)
    return RowPool.of([columns[k] for k in born.tolist()], np.minimum(probability, MOST_FREQUENT_BIRTH).tolist())


def _grown(
    state: Explained, left: Lists, left_words: Words, least: float, rng: np.random.Generator
) -> Iterable[tuple[float, Column]]:
    """Columns grown from seeds, and the bare seeds, each with the area that it would explain."""
    table, rows_of = state.table, turned(left, state.table.n_sensors)
    seeds, together = _seeds(state, left, rows_of, left_words, least, rng)
    frequency, miss, longest = table.ones(), float(np.mean(state.cell_weights.miss)), min(table.n_sensors, LONGEST)

    def grow(part: NDArray[np.int64]) -> tuple[Lists, Numbers]:
        return grow_columns(
            seeds[part], left_words, rows_of, table.cells, table.words, frequency, miss, least, max(2, longest)
        )

    pieces = ranges(np.arange(len(seeds)), SEEDS_PER_PART)
    parts = list(tracked(in_threads(grow, pieces, state.n_jobs), "growing new sources, parts", len(pieces)))
    columns = as_columns(joined([part[0] for part in parts]))
    areas = np.concatenate([part[1] for part in parts]).tolist()
    grown = [(area, tuple(sorted(column))) for area, column in zip(areas, columns, strict=True) if column]
    bare = [(PER_SEED_ROW * count, (i, k)) for count, (i, k) in zip(together.tolist(), seeds.tolist(), strict=True)]
    return grown + bare


def _seeds(
    state: Explained, left: Lists, rows_of: Lists, left_words: Words, least: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Numbers]:
    """Pairs of sensors that are on and unexplained together, and in how many rows."""
    table = state.table
    each = table.added_up(left)
    surprise = SURPRISE if table.n_samples >= FEW_SAMPLES else -np.inf

    def find(sensors: NDArray[np.int64]) -> tuple[NDArray[np.int64], Numbers]:
        return find_seeds(sensors, left, rows_of, each, table.cells, PARTNERS, surprise, least)

    parts = list(in_threads(find, ranges(np.arange(table.n_sensors), SENSORS_PER_PART), state.n_jobs))
    partners, together = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    sensor, place = np.nonzero(partners >= 0)
    pairs = np.sort(np.column_stack([sensor, partners[sensor, place]]), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    counts = together[sensor, place][first]
    if len(pairs) > MOST_SEEDS:
        chosen = np.sort(rng.choice(len(pairs), MOST_SEEDS, replace=False))
        pairs, counts = pairs[chosen], counts[chosen]
    return np.ascontiguousarray(pairs), counts
