"""Learning sources of any width from rows: births, decoding, votes, repairs and pruning, until nothing changes.

Probabilities and flip rate then come, with the columns fixed, from Gibbs sweeps over the activity instead of one best
guess: that leaves out what is probably noise, so its flip rate is too low where many narrow sources are on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.errors import SettingError
from bica.estimate.rows.explained import HALF, CellWeights, Explained, births, decode, has_few_rows, unexplained
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
    two_part_code,
)
from bica.estimate.rows.repair import pruned, repaired
from bica.kernels.rows.decoding import Activity, Sweep, sweep_rows
from bica.kernels.rows.gains import Lists, Sources
from bica.kernels.rows.votes import vote_columns
from bica.model.noise import Noise
from bica.progress import in_threads, report, tracked

FURTHER = 8.0  # nats: how much less a candidate source may gain than in decoding
ROWS_PER_PART = 2048  # work for one thread at a time
LEAST_SPREAD = 1e-12  # of a probability near 0 or 1, so that nothing is divided by 0
MOST_LOST = 0.99  # share of the information that hidden activity can take


@dataclass(frozen=True, slots=True, eq=False)
class SoftRefit:
    """The state with its refitted probabilities and flip rate, and the errors of the probabilities."""

    state: Explained
    n_on: Numbers  # (n_sources,), the expected number of rows in which each source was on
    probability_error: Numbers  # (n_sources,)


def soft_refit(state: Explained, n_burnt: int, n_used: int, rng: np.random.Generator) -> SoftRefit:
    """The average of ``n_used`` sweeps after ``n_burnt`` others; time grows with the candidates of the rows."""
    n_on, flip_rates = np.zeros(state.pool.size), []
    early: Lists | None = None
    for step in tracked(range(n_burnt + n_used), "sweeps", n_burnt + n_used):
        sources = state.sources()
        swept = sweep(state, sources, np.uint64(rng.integers(2**63)))
        expected, flip_rate = with_silent_lone(state, sources, swept)
        shares = (expected + HALF) / (state.table.n_samples + 1)
        activity = Activity(swept.active, np.zeros(swept.active.items.size), state.activity.gain)
        pool = state.pool.with_probability(shares)
        state = replace(state, pool=pool, cell_weights=state.cell_weights.with_flip_rate(flip_rate), activity=activity)
        if step == n_burnt:
            early = swept.active
        if step >= n_burnt:
            n_on += expected / n_used
            flip_rates.append(flip_rate)
    assert early is not None
    differing = differing_rows(early, state.activity.active, state.table.cells.weights, state.pool.size)
    pool = state.pool.with_probability((n_on + HALF) / (state.table.n_samples + 1))
    state = replace(state, pool=pool, cell_weights=state.cell_weights.with_flip_rate(float(np.mean(flip_rates))))
    return SoftRefit(state, n_on, hidden_errors(pool.probability, differing / 2, state.table.n_samples))


def sweep(state: Explained, sources: Sources, seed: np.uint64) -> Sweep:
    """Every row's activity drawn again, source by source, given the others."""
    cells, before, hopeless = state.table.cells, state.activity.active, state.cell_weights.hopeless - FURTHER

    def task(rows: NDArray[np.int64]) -> Sweep:
        return sweep_rows(rows, cells, sources, hopeless, before, seed)

    parts = list(in_threads(task, ranges(state.table.rows, ROWS_PER_PART), state.n_jobs))
    sums = (np.sum([part[k] for part in parts], axis=0) for k in (1, 2, 3))
    return Sweep(joined([part.active for part in parts]), *sums)


def with_silent_lone(state: Explained, sources: Sources, swept: Sweep) -> tuple[Numbers, float]:
    """Expected activations and flip rate, including lone sources that were on while their sensor showed 0.

    A sweep considers only sources with a sensor that shows 1. For wider sources the rest is negligible; for a lone
    source it is known in closed form.
    """
    table, expected = state.table, swept.expected.copy()
    lone = np.flatnonzero(state.pool.widths == 1)
    sensor = state.pool.columns.items[state.pool.columns.start[lone]]
    observed, ones = table.times_observed(), table.ones()
    free = (observed - ones - swept.covered_zeros)[sensor]
    missed = np.maximum(free, 0.0) / (1.0 + np.exp(-sources.silent[lone]))
    expected[lone] += missed
    wrong = ones.sum() - swept.covered_ones.sum() + swept.covered_zeros.sum() + missed.sum()
    return expected, float(wrong / max(observed.sum(), 1.0))


def differing_rows(left: Lists, right: Lists, weights: Numbers, n_sources: int) -> Numbers:
    """The weight of the rows in which exactly one of the two activities has the source on."""

    def keys(lists: Lists) -> NDArray[np.int64]:
        return np.repeat(np.arange(weights.size), np.diff(lists.start)) * n_sources + lists.items

    either = np.setxor1d(keys(left), keys(right), assume_unique=True)
    return np.bincount(either % n_sources, weights=weights[either // n_sources], minlength=n_sources).astype(float)


def hidden_errors(probability: Numbers, hidden: Numbers, n_samples: float) -> Numbers:
    """Standard errors, from the information of known activity minus what is lost as it is hidden (Louis' formula).

    ``hidden`` is the variance of each number of activations given the rows: half the squared difference of two draws.
    The other sources count as certain, so the errors of sources that can replace each other come out too small.
    """
    spread = probability * (1 - probability)
    known = n_samples / np.maximum(spread, LEAST_SPREAD)
    lost = np.minimum(hidden / np.maximum(spread, LEAST_SPREAD) ** 2, MOST_LOST * known)
    errors: Numbers = 1 / np.sqrt(known - lost)
    return errors


LEAST_VARIANCE = 0.1  # of a number of false alarms, in rows squared: a single 1 must not look like a clear excess
RAREST_LONE, MOST_FREQUENT_LONE = 1e-6, 0.999  # probability of a lone source


def lone_sources(state: Explained, least: float, forbidden: Forbidden | None = None) -> RowPool:
    """A source for every sensor that, where no source covers it, is on clearly more often than false alarms explain."""
    table, cell_weights, covered = state.table, state.cell_weights, state.coverage()
    free = np.maximum(table.times_observed() - covered.ones - covered.zeros, 0.0)
    ones, expected = table.ones() - covered.ones, free * cell_weights.false_alarm
    z = (ones - expected) / np.sqrt(np.maximum(expected * (1 - cell_weights.false_alarm), LEAST_VARIANCE))
    clear = 0.5 * z**2 > 2 * np.log(table.n_sensors) + 0.5 * np.log(table.n_samples)
    have = set(as_columns(state.pool.columns))
    new = [
        i
        for i in np.flatnonzero((z > 0) & clear & (ones - expected >= least)).tolist()
        if (i,) not in have and not (forbidden and forbidden((i,)))
    ]
    share = ones[new] / np.maximum(free[new], 1.0)
    probability = (share - cell_weights.false_alarm[new]) / (1 - cell_weights.false_alarm[new] - cell_weights.miss[new])
    return RowPool.of([(i,) for i in new], np.clip(probability, RAREST_LONE, MOST_FREQUENT_LONE).tolist())


SHARE = 0.7  # of log(n_sensors): what a sensor must gain to be in a column


def voted(state: Explained, forbidden: Forbidden | None = None) -> RowPool:
    """The sources with the sensors that their rows vote for: fragments grow, supersets shrink, equal ones merge."""
    table, pool = state.table, state.pool
    covered = state.coverage()
    free = 1 - (covered.ones + covered.zeros) / table.n_samples
    columns = vote_columns(
        pool.columns, state.sources().reaching, state.rows_of(), pool.fixed, table.cells, table.words, table.observed,
        covered.unexplained, free, state.cell_weights.one, state.cell_weights.zero, SHARE * np.log(table.n_sensors),
    )  # fmt: skip
    if forbidden:
        pairs = zip(as_columns(pool.columns), as_columns(columns), strict=True)
        columns = as_lists([old if forbidden(new) else new for old, new in pairs])
    return replace(pool, columns=columns).merged()


def same_columns(left: RowPool, right: RowPool) -> bool:
    """Whether both have the same columns, in any order."""
    return set(as_columns(left.columns)) == set(as_columns(right.columns))


VOTES = 3  # in a round, at most, with decoding in between
USUAL_ROWS, FEWEST_ROWS = 3.0, 1.0  # that a source needs, usually and in tables of few distinct rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSettings:
    """How long to search, and what a source must be."""

    most_rounds: int = 12
    first_rows: int = 12_000  # a table of more than twice as many is learned from so many first
    n_burnt: int = 5  # sweeps before those that are averaged
    n_used: int = 10  # sweeps that are averaged
    least_rows: float | None = None  # rows that a source needs; None: 3, or 1 if there are few distinct rows
    cost: Cost | None = None  # None: the two-part code
    forbidden: Forbidden | None = None
    n_jobs: int = 1  # threads


@dataclass(frozen=True, slots=True, eq=False)
class RowFit:
    """What the rounds found."""

    columns: tuple[Column, ...]  # the sensors of each source, ascending
    probability: Numbers
    probability_error: Numbers  # NaN if interrupted before the refit
    n_on: Numbers  # the expected number of rows in which each source was on
    flip_rate: float  # averaged over the sensors if the noise was known
    objective: float
    converged: bool
    interrupted: bool


def row_rounds(
    table: RowTable,
    start: RowPool,
    noise: Noise | float,
    rng: np.random.Generator,
    settings: RowSettings | None = None,
) -> RowFit:
    """The sources behind ``table``, learned from ``start`` on, which may be empty.

    ``noise`` is known, or a number: the first guess of one unknown flip rate. Fixed sources of ``start`` stay as they
    are. Ctrl-C keeps the best so far. Time grows with the ones of the rows and the sources that share their sensors,
    memory with the ones and the activations; threads change only the time.

    >>> from bica.data.patterns import PatternCounts
    >>> rng = np.random.default_rng(0)
    >>> activity = rng.random((2000, 2)) < 0.1
    >>> rows = activity @ np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]], bool)
    >>> fit = row_rounds(RowTable.of(PatternCounts.of(rows)), RowPool.of(), 0.02, rng)
    >>> fit.columns, fit.probability.round(1)
    (((0, 1, 2), (2, 3, 4)), array([0.1, 0.1]))
    """
    if start.columns.items.size and start.columns.items.max() >= table.n_sensors:
        raise SettingError(f"a source to start from reaches sensor {start.columns.items.max()} of {table.n_sensors}")
    rounds = Rounds(table, settings or RowSettings(), rng)
    try:
        return rounds.run(start, CellWeights.of(noise, table.n_sensors))
    except KeyboardInterrupt:
        best = rounds.best or (rounds.first.best if rounds.first else None)
        if best is None:
            raise
        return rounds.fit_of(best, interrupted=True)


class Rounds:
    """The rounds on one table; ``best`` is what to keep if they are interrupted."""

    def __init__(self, table: RowTable, settings: RowSettings, rng: np.random.Generator) -> None:
        self.table = table
        self.settings = settings
        self.rng = rng
        self.cost = settings.cost or two_part_code(table.n_sensors, table.n_samples)
        usual = FEWEST_ROWS if has_few_rows(table) else USUAL_ROWS
        self.least = usual if settings.least_rows is None else settings.least_rows
        self.first: Rounds | None = None  # on some of the rows, if there are many
        self.best: Explained | SoftRefit | None = None
        self.highest = -np.inf
        self.converged = False

    def run(self, start: RowPool, cell_weights: CellWeights) -> RowFit:
        """The fit: rounds on some of the rows, rounds on all, then the refit."""
        n_first = self.settings.first_rows
        if self.table.n_samples > 2 * n_first:
            settings = replace(self.settings, cost=self.cost)
            self.first = Rounds(self.table.sample(n_first, self.rng), settings, self.rng)
            found = self.first.settle(start, cell_weights)
            start, cell_weights = found.pool, found.cell_weights
        state = self.settle(start, cell_weights)
        if not cell_weights.known and has_few_rows(self.table):  # too few cells to find the flip rate in passing
            exact = self.settle(start, cell_weights.with_flip_rate(0.0))
            state = max(state, exact, key=lambda found: found.score(self.cost))
        self.best = self._refitted(state)
        return self.fit_of(self.best, interrupted=False)

    def settle(self, start: RowPool, cell_weights: CellWeights) -> Explained:
        """The state after rounds that end when the columns stay the same."""
        state = self._noted(unexplained(self.table, cell_weights, start.merged(), self.settings.n_jobs).decoded())
        self.converged = False
        for _ in range(self.settings.most_rounds):
            before = state.pool
            state = self._round(state)
            if same_columns(before, state.pool):
                self.converged = True
                break
        return state

    def _noted(self, state: Explained) -> Explained:
        """The same state; progress is reported, and the best state remembered."""
        objective = state.objective(self.cost)
        if objective > self.highest or self.best is None:
            self.best, self.highest = state, objective
        report("sources", state.pool.size, None)
        return state

    def _round(self, state: Explained) -> Explained:
        born = births(state, self.cost, self.least, self.rng, self.settings.forbidden)
        if born.size:
            state = self._noted(replace(state, pool=state.pool.plus(born)).decoded())
        state = self._voted(state, VOTES)
        mended = repaired(state, self.cost, self.settings.forbidden)
        if mended is not None:
            state = self._voted(self._noted(mended.decoded()), 1)
        fewer = pruned(state, self.cost, self.least)
        if fewer.pool.size < state.pool.size or mended is not None:
            fewer = self._voted(self._noted(fewer.decoded()), 1)
        return fewer

    def _voted(self, state: Explained, times: int) -> Explained:
        for _ in range(times):
            pool = voted(state, self.settings.forbidden)
            if same_columns(pool, state.pool):
                break
            state = self._noted(replace(state, pool=pool).decoded())
        return state

    def _refitted(self, state: Explained) -> SoftRefit:
        """A soft refit, whose flip rate shows which lone sources there are, and a second one with them."""
        settings = self.settings
        refit = soft_refit(state, (settings.n_burnt + 1) // 2, 2, self.rng)
        self.best = refit
        lone = lone_sources(refit.state, self.least, settings.forbidden)
        state = replace(refit.state, pool=refit.state.pool.plus(lone))
        return soft_refit(state, settings.n_burnt, settings.n_used, self.rng)

    def fit_of(self, found: Explained | SoftRefit, *, interrupted: bool) -> RowFit:
        """The result as a value; all rows are decoded once more for its objective."""
        state = found.state if isinstance(found, SoftRefit) else found
        probability = state.pool.probability
        n_on = found.n_on if isinstance(found, SoftRefit) else probability * self.table.n_samples
        error = found.probability_error if isinstance(found, SoftRefit) else np.full(state.pool.size, np.nan)
        activity = decode(self.table, state.sources(), state.cell_weights, self.table.rows, n_jobs=self.settings.n_jobs)
        objective = replace(state, table=self.table, activity=activity).objective(self.cost)
        columns = tuple(as_columns(state.pool.columns))
        converged = self.converged and not interrupted
        flip_rate = state.cell_weights.flip_rate
        return RowFit(columns, probability, error, n_on, flip_rate, objective, converged, interrupted)
