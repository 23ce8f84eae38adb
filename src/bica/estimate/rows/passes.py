"""Wide sources in all rows of a table that is larger than memory: what a sample found, made precise and checked.

In one pass, every partition decodes its rows with the sources and the noise known so far, sweeps over the activity a
few times and returns expected activations and covered cells, which add up: one step of expectation-maximisation on all
rows. An error of the sample shrinks by the share of the information that hidden activity takes, in every pass.

Sources too rare for the sample show in rows with more unexplained ones than noise leaves; those that were on in a few
rows of it may have wrong columns. The first pass collects the rows of both, and these sources are learned from them;
whether they pay is decided by the next pass, on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtrc

from bica.data.observations import TableSums
from bica.data.partitions import Partition
from bica.data.patterns import PatternCounts
from bica.estimate.rows.explained import HALF, CellWeights, decode, unexplained
from bica.estimate.rows.pool import Numbers, RowPool, RowTable, as_columns, two_part_code
from bica.estimate.rows.rounds import (
    RowFit,
    RowSettings,
    differing_rows,
    hidden_errors,
    row_rounds,
    sweep,
    with_silent_lone,
)
from bica.kernels.bits import Words
from bica.kernels.rows.decoding import Activity
from bica.model.noise import Noise
from bica.progress import report

PASSES = 2
N_BURNT, N_USED = 2, 4  # sweeps of a pass before those that are averaged, and these
ODD_SHARE = 1e-4  # of the rows: how often noise alone may leave as many ones unexplained as an odd row has
ODD_ROWS = 20_000  # that are kept, chosen at random where there are more
WIDE = 5  # sensors of a source that odd rows may show; narrower ones are seen in pairs of columns, in all rows
SCARCE = 50.0  # rows: sources that were on in fewer rows of the sample are learned again
USUAL, USUAL_PER_ODD = 2000, 20  # rows of the sample beside odd rows, at least, and per odd row
LEAST_ROWS = 3.0  # in which a source must be on


@dataclass(frozen=True, slots=True, eq=False)
class OddRows:
    """Rows with too many unexplained ones or with scarce sources, or some of them."""

    words: Words
    observed: Words | None
    weights: Numbers
    lots: Numbers  # a random number per row; rows with the lowest are kept

    def __add__(self, other: OddRows) -> OddRows:
        known = None
        if self.observed is not None or other.observed is not None:
            known = np.vstack([part.words | ~part.words if part.observed is None else part.observed
                               for part in (self, other)])  # fmt: skip
        both = OddRows(
            np.vstack([self.words, other.words]),
            known,
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.lots, other.lots]),
        )
        return both.pick(np.sort(np.argsort(both.lots, kind="stable")[:ODD_ROWS]))

    def pick(self, rows: NDArray[np.int64]) -> OddRows:
        """These rows only."""
        known = None if self.observed is None else self.observed[rows]
        return OddRows(self.words[rows], known, self.weights[rows], self.lots[rows])


@dataclass(frozen=True, slots=True, eq=False)
class PassSums:
    """What one pass adds up."""

    n_samples: float
    expected: Numbers  # (n_sources,), rows in which each source was on
    differing: Numbers  # (n_sources,), rows in which two draws of the activity differ
    losses: Numbers  # (n_sources,), nats that the rows would lose without the source
    n_wrong: float  # cells
    n_cells: float
    odd: OddRows

    def __add__(self, other: PassSums) -> PassSums:
        return PassSums(*(getattr(self, name) + getattr(other, name) for name in PassSums.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """What a pass starts from."""

    pool: RowPool
    cell_weights: CellWeights
    scarce: NDArray[np.bool_]  # (n_sources,): rows in which one of these is on are odd
    odd_from: int  # so many unexplained ones make a row odd
    seed: int


def swept_in(part: Partition, places: NDArray[np.int64], start: Pass) -> PassSums:
    """One partition's share of a pass."""
    pool, cell_weights = start.pool, start.cell_weights
    known = None if part.observed is None else part.observed[places]
    columns = Partition(part.on[places], part.n_rows, known, part.weights)
    counts = PatternCounts.of_chunks([columns.rows()], tuple(map(str, places.tolist())))
    table = RowTable.of(counts)
    nothing = unexplained(table, cell_weights, pool, 1)
    sources = nothing.sources()
    state = replace(nothing, activity=decode(table, sources, cell_weights, table.rows))
    left, losses, active = np.diff(state.coverage().unexplained.start), state.losses(), state.activity.active
    streams = np.random.default_rng([start.seed, part.number])
    is_odd = left >= start.odd_from
    is_odd[np.repeat(table.rows, np.diff(active.start))[start.scarce[active.items]]] = True
    odd = _odd_rows(counts, np.flatnonzero(is_odd), streams)
    expected, wrong, first = np.zeros(pool.size), 0.0, active
    for step in range(N_BURNT + N_USED):
        swept = sweep(state, sources, np.uint64(streams.integers(2**63)))
        nothing_lost = np.zeros(swept.active.items.size)
        state = replace(state, activity=Activity(swept.active, nothing_lost, state.activity.gain))
        if step == N_BURNT:
            first = swept.active
        if step >= N_BURNT:
            on, flip_rate = with_silent_lone(state, sources, swept)
            expected += on / N_USED
            wrong += flip_rate * float(table.times_observed().sum()) / N_USED
    differing = differing_rows(first, state.activity.active, table.cells.weights, pool.size)
    return PassSums(table.n_samples, expected, differing, losses, wrong, float(table.times_observed().sum()), odd)


def _odd_rows(counts: PatternCounts, rows: NDArray[np.int64], streams: np.random.Generator) -> OddRows:
    everything = OddRows(counts.patterns, counts.observed, counts.weights, streams.random(counts.weights.size))
    odd = everything.pick(rows)
    return odd.pick(np.sort(np.argsort(odd.lots, kind="stable")[:ODD_ROWS]))


def over_all_rows(
    data: TableSums,
    sample: PatternCounts,
    found: RowFit,
    start: RowPool,
    known: Noise | None,
    rng: np.random.Generator,
    settings: RowSettings,
) -> RowFit:
    """What the sample found with the numbers of all rows, and with sources that it was too small for.

    Sources of ``start`` that are fixed or held stay so. The noise is ``known``, or one flip rate is estimated.
    """
    weights = CellWeights.of(found.flip_rate if known is None else known, data.n_sensors)
    pool, cost = _pool(found, start), two_part_code(data.n_sensors, data.n_samples)
    scarce = (found.n_on < SCARCE) & (pool.widths >= WIDE) & ~pool.fixed
    sums = None
    for number in range(PASSES):
        report("passes over all rows", number, PASSES)
        odd_from = _many_ones(data.n_sensors * float(weights.false_alarm.mean()))
        sums = data.everywhere(swept_in, Pass(pool, weights, scarce, odd_from, int(rng.integers(2**31))))
        pool = pool.with_probability((sums.expected + HALF) / (sums.n_samples + 1))
        weights = weights.with_flip_rate(sums.n_wrong / max(1.0, sums.n_cells))
        if number == 0:
            rows = _beside_usual(sums.odd, sample, rng)
            rare = _rare(rows, pool, scarce, weights, rng, replace(settings, cost=cost, least_rows=LEAST_ROWS))
            pool = pool.kept(np.flatnonzero(~scarce)).plus(rare)
            scarce = np.arange(pool.size) >= pool.size - rare.size
    assert sums is not None
    pays = (sums.losses > cost(pool.widths)) & (sums.expected >= LEAST_ROWS)
    kept = np.flatnonzero(pays | ~scarce)
    errors = hidden_errors(pool.probability, sums.differing / 2, sums.n_samples)
    return replace(
        found,
        columns=tuple(as_columns(pool.kept(kept).columns)),
        probability=pool.probability[kept],
        probability_error=np.where(pool.held[kept], 0.0, errors[kept]),
        n_on=sums.expected[kept],
        flip_rate=weights.flip_rate,
    )


def _pool(found: RowFit, start: RowPool) -> RowPool:
    given: dict[Any, tuple[bool, bool]] = dict(
        zip(as_columns(start.columns), zip(start.fixed.tolist(), start.held.tolist(), strict=True), strict=True)
    )
    marks = np.array([given.get(column, (False, False)) for column in found.columns], dtype=bool).reshape(-1, 2)
    pool = RowPool.of(found.columns, found.probability.tolist())
    return replace(pool, fixed=marks[:, 0].copy(), held=marks[:, 1].copy())


def _many_ones(mean: float) -> int:
    """The least number of ones that noise leaves unexplained in so few rows only (a Poisson number with this mean)."""
    numbers = np.arange(WIDE, 4 * WIDE + int(4 * mean))
    return int(numbers[np.argmax(pdtrc(numbers - 1, mean) <= ODD_SHARE)])


def _beside_usual(odd: OddRows, sample: PatternCounts, rng: np.random.Generator) -> PatternCounts:
    """Odd rows among usual ones: alone, they would show sources that are nearly always on."""
    n_usual = min(sample.weights.size, max(USUAL, USUAL_PER_ODD * odd.weights.size))
    usual = np.sort(rng.choice(sample.weights.size, n_usual, replace=False))
    known = None if sample.observed is None else sample.observed[usual]
    beside = PatternCounts(sample.patterns[usual], sample.weights[usual], sample.sensors, known)
    return beside + PatternCounts(odd.words, odd.weights, sample.sensors, odd.observed)


def _rare(
    rows: PatternCounts,
    pool: RowPool,
    scarce: NDArray[np.bool_],
    weights: CellWeights,
    rng: np.random.Generator,
    settings: RowSettings,
) -> RowPool:
    """The wide sources that odd rows show beside those that are not scarce; a pass says how often they are on."""
    stays = replace(pool, fixed=~scarce, held=~scarce)
    noise = Noise(weights.false_alarm, weights.miss)
    found = row_rounds(RowTable.of(rows), stays, noise, rng, settings)
    have = set(as_columns(pool.kept(np.flatnonzero(~scarce)).columns))
    new = [(c, n) for c, n in zip(found.columns, found.n_on, strict=True) if c not in have and len(c) >= WIDE]
    return RowPool.of([column for column, _ in new], [float(n) / rows.n_samples for _, n in new])
