"""A table with the sources that explain it, row by row, and the weight of a covered cell that shows 1 or 0."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.rows.pool import Cost, Numbers, RowPool, RowTable, joined, ranges
from bica.kernels.rows.decoding import Activity, decode_rows
from bica.kernels.rows.gains import Coverage, Sources, cover_rows, gain_of_rows
from bica.kernels.rows.lists import Lists, spliced, turned
from bica.model.noise import Noise
from bica.progress import in_threads

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
