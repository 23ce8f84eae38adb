"""Births, splits and merges of lossy sources, each judged by fits of one or two sources on the rows they touch.

What decides is the gain in log-likelihood with everything else held, against the bar of every number that a source has:
one for its probability and one for each edge. Splits and merges are judged alike, or they would undo each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bica.estimate.rows.lossy_state import FEW_ON, FEW_ONES, LossyState, LossyTable, Placed
from bica.estimate.rows.pool import Numbers, ranges
from bica.kernels.rows.gains import Lists
from bica.kernels.rows.lossy import TRIAL_FAIL
from bica.kernels.rows.lossy_local import (
    MOST_FREQUENT,
    RAREST,
    Local,
    count_absent,
    fit_one,
    fit_two,
    left_together,
    local_rows,
    profile_of,
    put_in,
    take_out,
)
from bica.progress import go_on, in_threads, tracked

Places = NDArray[np.int64]
PRIOR_COUNT = 0.25  # keeps the spread of a small count above 0
SENSORS_PER_PART = 32  # work for one thread at a time


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """One source fitted to the rows that it touches."""

    gain: float
    probability: float
    n_on: float
    support: Places  # sensors
    reach: Numbers  # of the support
    worth: Numbers  # of its edges
    local: Local
    posterior: Numbers  # of the local rows

    def without_weak(self, bar: float) -> Guess:
        """The same without the edges that are worth less than ``bar``; the fit is not renewed."""
        kept = (self.reach > 0) & (self.worth >= bar)
        return replace(self, support=self.support[kept], reach=self.reach[kept], worth=self.worth[kept])


class Bench:
    """Scratch space for many fits on one state, whose ``quiet`` births bring up to date as they go."""

    def __init__(self, state: LossyState) -> None:
        self.state = state
        self.table = state.table
        self.quiet = state.quiet.copy()
        self._count = np.zeros(state.table.rows.size, np.int32)

    def local(self, support: Places) -> Local:
        """The rows that touch the support, on the present background."""
        table = self.table
        return local_rows(support, table.rows_of, table.place_of, table.cells.weights, self.quiet, self._count)

    def background(self, support: Places, sources: list[int], rows_of: Lists) -> Local:
        """The rows that touch the support, without these sources."""
        local, is_on = self.local(support), np.zeros(self.table.rows.size, bool)
        for source in sources:
            rows = rows_of.items[rows_of.start[source] : rows_of.start[source + 1]]
            is_on[rows] = True
            take_out(local, is_on, self.state.reach[source, support])
            is_on[rows] = False
        return local

    def one(self, local: Local, support: Places, probability: float, reach: Numbers, n_steps: int) -> Guess:
        """One source after so many EM steps."""
        reach, posterior, worth = reach.copy(), np.empty(local.rows.size), np.empty(support.size)
        gain, probability, n_on = fit_one(local, self.table.n_samples, probability, reach, n_steps, posterior, worth)
        return Guess(gain, probability, n_on, support, reach, worth, local, posterior)

    def place(
        self, local: Local, support: Places, probability: Numbers, reach: Numbers, posterior: Numbers
    ) -> list[Placed]:
        """Sources put in place on a background, each on where it is probably on, of two at least the likelier one."""
        is_on = posterior > 0.5
        any_on = 1.0 - np.prod(1.0 - posterior, axis=0) > 0.5
        likeliest = posterior == posterior.max(axis=0)
        is_on |= likeliest & (any_on & ~is_on.any(axis=0))
        put_in(local, is_on, reach, self.quiet)
        every = np.zeros((len(reach), self.table.n_sensors))
        every[:, support] = reach
        return [Placed(float(p), q, local.rows[on]) for p, q, on in zip(probability, every, is_on, strict=True)]


SURPRISE, FIRST_SURPRISE = (
    5.0,
    6.0,
)  # standard deviations above what independent leaks give: a pair this frequent is a seed
PARTNERS = 6  # of each sensor that make seeds with it
MOST_SEEDS = 4000
ENRICHED, EXCESS = 2.5, 0.1  # standard deviations, and share of the rows, by which a sensor of a new source stands out
SEED_REACH = 0.6  # of both sensors of a seed, at first
WEAK = 0.6  # share of the bar that an edge of a new source must be worth
FIRST_STEPS, LATER_STEPS = (2, 1), (6, 3)  # before and after weak edges go: long fits on leaks alone become unions


def births(state: LossyState, *, first: bool) -> LossyState:
    """With the new sources that pay, found one after another from pairs of sensors that the leaks cannot explain."""
    bench, bar, table = Bench(state), state.table.bar, state.table
    surprise, steps = (FIRST_SURPRISE, FIRST_STEPS) if first else (SURPRISE, LATER_STEPS)
    found: list[Placed] = []
    for i, k, expected in _seeds(state, surprise):
        go_on()
        start = _seed_guess(bench, i, k, expected, surprise)
        guess = None if start is None else _grown(bench, start, steps)
        if guess is None:
            continue
        n_edges = np.count_nonzero(guess.reach)
        if guess.gain > 0.5 * np.log(table.n_samples) + np.log(table.n_sensors) + 0.5 * n_edges * bar:
            found += bench.place(
                guess.local, guess.support, np.array([guess.probability]), guess.reach[None], guess.posterior[None]
            )
    return state.revised({}, found, []) if found else state


def _seeds(state: LossyState, surprise: float) -> Iterator[tuple[int, int, float]]:
    """Pairs of sensors that are left to their leaks together too often, the most surprising first."""
    table, cells = state.table, state.table.cells
    left = cells.heard * state.leak[cells.ones.items] / (1.0 - state.quiet)

    def together(sensors: Places) -> Numbers:
        return left_together(sensors, table.rows_of, table.place_of, cells, left)

    parts = in_threads(together, ranges(np.arange(table.n_sensors), SENSORS_PER_PART), table.n_jobs)
    both = np.concatenate(list(parts))
    each = table.by_sensor(left)
    expected = np.outer(each, each) / table.n_samples
    z = np.where(both < FEW_ONES, 0.0, (both - expected) / np.sqrt(expected + PRIOR_COUNT))
    partners = np.argsort(-z, axis=1, kind="stable")[:, :PARTNERS]
    sensor = np.repeat(np.arange(table.n_sensors), partners.shape[1])
    pairs = np.unique(np.sort(np.column_stack([sensor, partners.ravel()]), axis=1), axis=0)
    values = z[pairs[:, 0], pairs[:, 1]]
    order = np.argsort(-values, kind="stable")[:MOST_SEEDS]
    for i, k in pairs[order[values[order] > surprise]].tolist():
        yield i, k, float(expected[i, k])


def _seed_guess(bench: Bench, i: int, k: int, expected: float, surprise: float) -> tuple[Places, Numbers, float] | None:
    """The support, reach and probability that a seed suggests; None if its rows are explained by now."""
    table, leak, profile = bench.table, bench.state.leak, np.empty(bench.table.n_sensors)
    total = profile_of(i, k, table.rows_of, table.place_of, table.cells, bench.quiet, leak, table.usual, profile)
    if total < FEW_ONES or (total - expected) / np.sqrt(expected + PRIOR_COUNT) < surprise - 1.0:
        return None
    usual = table.usual
    excess = (profile / total - usual) / (1.0 - usual)
    z = (profile - total * usual) / np.sqrt(total * usual * (1.0 - usual) + PRIOR_COUNT)
    reach = np.where((z > ENRICHED) & (excess > EXCESS), np.clip(excess, 0.1, 0.9), 0.0)
    reach[[i, k]] = SEED_REACH
    support = np.flatnonzero(reach)
    return support, reach[support], min(max(total / table.n_samples / 0.4, 1e-5), 0.5)


def _grown(bench: Bench, start: tuple[Places, Numbers, float], steps: tuple[int, int]) -> Guess | None:
    """The source of a seed after EM steps, with edges that pay in place of those that do not."""
    support, reach, probability = start
    bar = WEAK * bench.table.bar
    guess = bench.one(bench.local(support), support, probability, reach, steps[0])
    support, reach = _opened(bench, guess.without_weak(bar), guess)
    if support.size < 2:
        return None
    guess = bench.one(bench.local(support), support, guess.probability, reach, steps[1])
    guess = replace(guess, reach=np.where(guess.worth < bar, 0.0, guess.reach))
    return None if np.count_nonzero(guess.reach) < 2 else guess


def _opened(bench: Bench, kept: Guess, guess: Guess) -> tuple[Places, Numbers]:
    """The edges of ``kept``, and those outside the support of ``guess`` that would pay at a reach of 1/4."""
    n_ones, worth = np.zeros(bench.table.n_sensors), np.zeros(bench.table.n_sensors)
    count_absent(guess.local, guess.posterior, bench.table.cells, bench.quiet, n_ones, worth)
    worth += np.maximum(guess.n_on - n_ones, 0.0) * np.log(TRIAL_FAIL)
    new = (worth > WEAK * bench.table.bar) & (n_ones > FEW_ONES)
    new[guess.support] = False
    reach = np.where(new, 1.0 - TRIAL_FAIL, 0.0)
    reach[kept.support] = kept.reach
    support = np.flatnonzero(reach)
    return support, reach[support]


DEPENDENT = 4.0  # standard deviations: a pair of sensors this dependent, given that its source is on, may split it
SPLIT_STEPS, CHECK_STEPS = 12, 3  # EM steps of two sources, and of the one that they would replace
FEWEST_TO_SPLIT = 4  # sensors


def splits(state: LossyState) -> LossyState:
    """With sources split in two where their edges depend on each other: given that a source is on, they should not."""
    bench, rows_of = Bench(state), state.rows_of()
    changed, new = {}, []
    for source in tracked(range(state.table.held.size, state.size), "splitting sources", state.size):
        pair = _split(bench, source, rows_of)
        if pair:
            changed[source] = pair[0]
            new.append(pair[1])
    return state.revised(changed, new, []) if new else state


def _split(bench: Bench, source: int, rows_of: Lists) -> list[Placed]:
    """Two sources in place of one, put in place; none if they are not worth their numbers."""
    state, bar, total = bench.state, bench.table.bar, bench.table.n_samples
    support = np.flatnonzero(state.reach[source])
    rows = rows_of.items[rows_of.start[source] : rows_of.start[source + 1]]
    if support.size < FEWEST_TO_SPLIT or rows.size < 2 * FEWEST_TO_SPLIT:
        return []
    start = _dependent_halves(bench.table, support, rows)
    if start is None:
        return []
    share, halves = start
    local = bench.background(support, [source], rows_of)
    one = bench.one(local, support, state.probability[source], state.reach[source, support], CHECK_STEPS)
    probability = state.probability[source] * np.array([share, 1.0 - share])
    posterior = np.empty((2, local.rows.size))
    gain = fit_two(local, total, probability, halves, SPLIT_STEPS, WEAK * bar, posterior)
    n_edges = (halves > 0).sum(axis=1)
    if n_edges.min() < 2 or gain - bar * (n_edges.sum() + 2) <= one.gain - bar * (support.size + 1):
        return []
    return bench.place(local, support, probability, halves, posterior)


def _dependent_halves(table: LossyTable, support: Places, rows: NDArray[np.int32]) -> tuple[float, Numbers] | None:
    """Profiles of the rows with both sensors of the most dependent pair, and with neither; the share of the former."""
    place = np.full(table.n_sensors, -1)
    place[support] = np.arange(support.size)
    start = table.cells.ones.start
    lengths = start[rows + 1] - start[rows]
    cells = np.repeat(start[rows] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths) + np.arange(lengths.sum())
    local, column = np.repeat(np.arange(rows.size), lengths), place[table.cells.ones.items[cells]]
    inside = (column >= 0) & (table.cells.heard[cells] > 0)
    ones = np.zeros((rows.size, support.size))
    ones[local[inside], column[inside]] = 1.0
    weights = table.cells.weights[rows]
    together, each, total = (ones * weights[:, None]).T @ ones, weights @ ones, weights.sum()
    expected = np.outer(each, each) / total
    spread = expected * np.outer(1.0 - each / total, 1.0 - each / total)
    z = (together - expected) / np.sqrt(spread + PRIOR_COUNT)
    np.fill_diagonal(z, 0.0)
    a, b = np.unravel_index(np.argmax(z), z.shape)
    both, none = weights * ones[:, a] * ones[:, b], weights * (1.0 - ones[:, a]) * (1.0 - ones[:, b])
    if z[a, b] < DEPENDENT or min(both.sum(), none.sum()) < FEW_ON:
        return None
    halves = np.stack([both @ ones / both.sum(), none @ ones / none.sum()])
    return float(both.sum() / (both.sum() + none.sum())), np.clip(halves, 0.03, 0.95)


ALIKE = 0.5  # cosine of the reach of two sources that may be one
CORRELATED = 5.0  # standard deviations: two sources on together this often may be one, or share their sensors wrongly
MERGE_STEPS = 6  # EM steps of one source and, to be fair, of two


@dataclass(frozen=True, slots=True)
class SourcePair:
    """Two sources that may be one, and the weight of the rows in which both are on."""

    a: int
    b: int
    n_together: float
    correlated: bool


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """One source or two after a fit, and what they gain beyond the bar of their numbers."""

    score: float
    probability: Numbers  # (n,)
    reach: Numbers  # (n, k)
    posterior: Numbers  # (n, n_local)


def merges(state: LossyState) -> LossyState:
    """With pairs of sources replaced by one, or by two that share their sensors otherwise, where that pays."""
    bench, rows_of = Bench(state), state.rows_of()
    changed: dict[int, Placed] = {}
    gone: list[int] = []
    pairs = _suspicious_pairs(state)
    for pair in tracked(pairs, "merging sources, pairs", len(pairs)):
        if not {pair.a, pair.b} & {*changed, *gone}:
            placed = _regrouped(bench, pair, rows_of)
            if placed:
                changed[pair.a] = placed[0]
                gone += [pair.b] if len(placed) == 1 else []
                changed |= {pair.b: placed[1]} if len(placed) == 2 else {}
    return state.revised(changed, [], gone) if changed else state


def _suspicious_pairs(state: LossyState) -> list[SourcePair]:
    """Pairs of sources that reach alike, or that are on together too often, the most suspicious first."""
    length = np.maximum(np.sqrt((state.reach**2).sum(axis=1)), 1e-9)
    cosine = state.reach @ state.reach.T / np.outer(length, length)
    rows, shape = np.repeat(state.table.rows, np.diff(state.active.start)), (state.table.rows.size, state.size)
    on = csr_array((np.ones(rows.size), (rows, state.active.items)), shape=shape)
    weighted = csr_array((state.table.cells.weights[rows], (rows, state.active.items)), shape=shape)
    together = (weighted.T @ on).toarray()
    each: Numbers = np.asarray(weighted.sum(axis=0))
    expected = np.outer(each, each) / state.table.n_samples
    z = (together - expected) / np.sqrt(expected + PRIOR_COUNT)
    suspicion = np.tril(np.where((cosine > ALIKE) | (z > CORRELATED), np.maximum(cosine, z / 10.0), 0.0), -1)
    suspicion[:, : state.table.held.size] = 0.0  # with the lower triangle, no pair has a known source
    first, second = np.nonzero(suspicion)
    order = np.argsort(-suspicion[first, second], kind="stable")
    pairs = zip(first[order].tolist(), second[order].tolist(), strict=True)
    return [SourcePair(a, b, float(together[a, b]), bool(z[a, b] > CORRELATED)) for a, b in pairs]


def _regrouped(bench: Bench, pair: SourcePair, rows_of: Lists) -> list[Placed]:
    """What replaces two sources, put in place: one, or two of other sensors; nothing if they had better stay."""
    state, bar = bench.state, bench.table.bar
    both = [pair.a, pair.b]
    support = np.flatnonzero(state.reach[both].sum(axis=0))
    local = bench.background(support, both, rows_of)
    probability, reach = state.probability[both], state.reach[both][:, support]
    now = max(_two(bench, local, probability, reach, n_steps, -np.inf).score for n_steps in (0, MERGE_STEPS))
    others = [_one(bench, local, support, probability, reach)]
    if pair.correlated:
        apart = np.maximum(probability - pair.n_together / bench.table.n_samples, RAREST)
        union = reach.max(axis=0)
        for k in range(2):
            start = np.array([apart[k], max(pair.n_together / bench.table.n_samples, RAREST)])
            two = _two(bench, local, start, np.stack([reach[k], union]), 2 * MERGE_STEPS, WEAK * bar)
            others += [two] if (two.reach > 0).sum(axis=1).min() >= 2 else []
    best = max(others, key=lambda fitted: fitted.score)
    if best.score <= now:
        return []
    return bench.place(local, support, best.probability, best.reach, best.posterior)


def _two(bench: Bench, local: Local, probability: Numbers, reach: Numbers, n_steps: int, bar: float) -> Fitted:
    """Two sources fitted from these numbers on, which stay as they are."""
    probability, reach, posterior = probability.copy(), reach.copy(), np.empty((2, local.rows.size))
    gain = fit_two(local, bench.table.n_samples, probability, reach, n_steps, bar, posterior)
    return Fitted(gain - bench.table.bar * (np.count_nonzero(reach) + 2), probability, reach, posterior)


def _one(bench: Bench, local: Local, support: Places, probability: Numbers, reach: Numbers) -> Fitted:
    """The better of two starts of one source in place of two, without the edges that do not pay."""
    starts, bar = (probability @ reach / probability.sum(), reach.max(axis=0)), bench.table.bar
    p = min(float(probability.sum()), MOST_FREQUENT)
    guesses = [bench.one(local, support, p, np.clip(start, 0.05, 0.95), MERGE_STEPS) for start in starts]
    best = max(guesses, key=lambda guess: guess.gain)
    kept = np.where(best.worth >= bar, best.reach, 0.0)
    score = best.gain - bar * (np.count_nonzero(kept) + 1)
    return Fitted(score, np.array([best.probability]), kept[None], best.posterior[None])
