"""Learning lossy sources of many sensors: rounds of births, sweeps, splits and merges, by Gibbs-EM over the rows.

Standard errors come from the information on each source; of a pair only what the rows determine is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.errors import LimitError
from bica.estimate.edges import LossyFit
from bica.estimate.rows.lossy_moves import births, merges, splits
from bica.estimate.rows.lossy_state import (
    LEAST_LEAK,
    MOST_LEAK,
    SOURCES_PER_PART,
    Held,
    LossyState,
    LossyTable,
    burnt_in,
    sweeps,
    swept,
)
from bica.estimate.rows.pool import Numbers, RowTable, ranges
from bica.estimate.settings import Settings, Varying
from bica.kernels.rows.gains import Lists
from bica.kernels.rows.lossy import source_information
from bica.model.noise import Noise
from bica.progress import in_threads, n_threads, report

PAIR = 2  # sensors: of such a source only how often they come on together can be told
SURE = 1.0 - 1e-6  # the reach of a pair; a failure of exactly 0 would bring logarithms of 0
AT_BOUND = 1e-3  # a reach this close to 1 has no slope
LEAST_CHANCE = 1e-9


def canonical(state: LossyState) -> LossyState:
    """The same distribution with pairs in the one form that their rows determine: sure edges, rarer, larger leaks.

    Two sensors a, b of one source of reach q depend on each other through a single number,
    kappa = log[(1 - p + p (1 - q_a)(1 - q_b)) / ((1 - p q_a)(1 - p q_b))]. A source with sure edges and probability
    p' = 1 - exp(-kappa) has the same, and leaks with (1 - leak'_a)(1 - p') = (1 - leak_a)(1 - p q_a) leave every sensor
    as frequent as it was.
    """
    probability, reach, leak = state.probability.copy(), state.reach.copy(), state.leak.copy()
    is_pair, held = (reach > 0).sum(axis=1) == PAIR, state.table.held
    is_pair[: held.size] &= held.is_open
    for source in np.flatnonzero(is_pair).tolist():
        sensors = np.flatnonzero(reach[source])
        p, q = probability[source], reach[source, sensors]
        kappa = np.log1p(-p + p * np.prod(1.0 - q)) - np.log1p(-p * q).sum()
        rare = max(-np.expm1(-kappa), LEAST_CHANCE)
        leak[sensors] = 1.0 - (1.0 - leak[sensors]) * (1.0 - p * q) / (1.0 - rare)
        probability[source], reach[source, sensors] = rare, SURE
    leak = np.clip(leak, LEAST_LEAK, MOST_LEAK)
    return replace(state, probability=probability, reach=reach, leak=leak).refreshed()


@dataclass(frozen=True, slots=True, eq=False)
class LossyErrors:
    """Standard errors; NaN where there is no edge, or where the rows do not determine the number."""

    probability: Numbers  # (n_sources,)
    reach: Numbers  # (n_sources, n_sensors)
    leak: Numbers  # (n_sensors,)

    @classmethod
    def unknown(cls, state: LossyState) -> LossyErrors:
        """No errors at all."""
        return cls(*(np.full(shape, np.nan) for shape in (state.size, state.reach.shape, state.leak.size)))


N_DRAWS, APART = 6, 2  # draws of the activity, and how many sweeps they are apart
MOST_LOST = 0.99  # share of the information that hidden activity can take


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Several draws of the activity."""

    rows_of: tuple[Lists, ...]
    quiet: Numbers  # (n_draws, n_cells)


def errors_of(state: LossyState, rng: np.random.Generator) -> LossyErrors:
    """The standard errors of all numbers, from the information on each source with its edges and their leaks.

    The other sources count as certain, so the errors of sources that can replace each other come out too small.
    """
    drawn = []
    for _ in range(N_DRAWS):
        for _ in range(APART):
            state, _ = swept(state, np.uint64(rng.integers(2**63)))
        drawn.append(state)
    draws = Draws(tuple(one.rows_of() for one in drawn), np.stack([one.quiet for one in drawn]))
    known_leak = _leak_information(state, draws)

    def variances(sources: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Numbers]]:
        return [_variances(state, int(source), draws, known_leak) for source in sources]

    errors, leak = LossyErrors.unknown(state), 1.0 / known_leak
    parts = in_threads(variances, ranges(np.arange(state.size), SOURCES_PER_PART), state.table.n_jobs)
    for source, (support, variance) in enumerate(found for part in parts for found in part):
        k = support.size
        errors.probability[source] = np.sqrt(variance[0])
        errors.reach[source, support] = np.sqrt(variance[1 : 1 + k])
        leak[support] = np.fmax(leak[support], variance[1 + k :])  # NaN where the leak is at its bound
    held = state.table.held
    errors.probability[: held.size][np.isfinite(held.probability)] = 0.0
    errors.reach[: held.size][held.reach > 0] = 0.0  # where given: NaN is not above 0
    return replace(errors, leak=np.sqrt(leak))


def _leak_information(state: LossyState, draws: Draws) -> Numbers:
    """The information on each leak if the sources were certain, from the zeros and ones of its sensor."""
    table = state.table
    zeros = table.observed - table.by_sensor(table.cells.heard)
    odds = table.cells.heard * draws.quiet / (1.0 - draws.quiet)
    products = (odds.sum(axis=0) ** 2 - (odds**2).sum(axis=0)) / (N_DRAWS * (N_DRAWS - 1))
    return np.maximum(zeros + table.by_sensor(products), 1.0) / (1.0 - state.leak) ** 2


def _variances(state: LossyState, source: int, draws: Draws, known_leak: Numbers) -> tuple[NDArray[np.int64], Numbers]:
    """The support of a source, and the variances of its probability, its reach and the leaks there: (1 + 2k,).

    NaN are the reach of a pair, which its rows do not determine, and a leak at its bound.
    """
    support = np.flatnonzero(state.reach[source])
    k, is_bound = support.size, state.reach[source, support] > 1.0 - AT_BOUND
    moves = np.concatenate([[True], ~is_bound, state.leak[support] > 2 * LEAST_LEAK])
    known, information = (
        matrix[np.ix_(moves, moves)] for matrix in _information(state, source, support, draws, known_leak)
    )
    variance = np.full(1 + 2 * k, np.nan)
    variance[moves] = np.diag(_inverse(known, information))
    if k > PAIR:
        variance[1 + np.flatnonzero(is_bound)] = 1.0 / max(state.n_on[source], 1.0) ** 2
    return support, variance


def _inverse(known: Numbers, information: Numbers) -> Numbers:
    """The inverse of the information; of that on known activity, at most a share of ``MOST_LOST`` counts as lost.

    The information is estimated from few draws, so that it may come out negative in a direction of which the rows say
    little. With known = L L', the eigenvalues of L^-1 information L'^-1 are the shares that are not lost.
    """
    root = np.linalg.inv(np.linalg.cholesky(known + np.diag(np.diag(known)) * TINY))
    left, directions = np.linalg.eigh(root @ information @ root.T)
    spread = root.T @ directions / np.sqrt(np.clip(left, 1.0 - MOST_LOST, 1.0))
    inverse: Numbers = spread @ spread.T
    return inverse


TINY = 1e-9  # keeps the information on known activity positive definite


def _information(
    state: LossyState, source: int, support: NDArray[np.int64], draws: Draws, known_leak: Numbers
) -> tuple[Numbers, Numbers]:
    """The information with known and with hidden activity, on one source with its edges and their leaks.

    It comes from the rows in which the source is on in any draw. In all others the score by p is -1/(1 - p), and the
    scores by a leak add up to minus what they add up to here; products of different leaks average out.
    """
    table, p, k = state.table, state.probability[source], support.size
    on = [lists.items[lists.start[source] : lists.start[source + 1]] for lists in draws.rows_of]
    rows = np.unique(np.concatenate(on)).astype(np.int64)
    is_on = np.stack([np.isin(rows, one) for one in on])
    place = np.full(table.n_sensors, -1, np.int32)
    place[support] = np.arange(k)
    squares, products, slope = np.zeros((1 + 2 * k, 1 + 2 * k)), np.zeros((1 + 2 * k, 1 + 2 * k)), np.zeros(1 + 2 * k)
    fail, leak = 1.0 - state.reach[source, support], state.leak[support]
    source_information(rows, is_on, draws.quiet, table.cells, place, p, fail, leak, squares, products, slope)
    known, information = squares / N_DRAWS, (products - squares) / (N_DRAWS * (N_DRAWS - 1))
    n_off, leaks = table.n_samples - table.cells.weights[rows].sum(), np.arange(1 + k, 1 + 2 * k)
    for matrix in (known, information):
        matrix[0, 0] += n_off / (1.0 - p) ** 2
        matrix[0, leaks] += slope[leaks] / N_DRAWS / (1.0 - p)
        matrix[leaks, 0] = matrix[0, leaks]
        matrix[leaks, leaks] = np.maximum(matrix[leaks, leaks], known_leak[support])
    return known, information


def learn_lossy_rows(table: Varying, settings: Settings, rng: np.random.Generator) -> LossyFit:
    """The lossy sources behind a table of many sensors, with the standard errors of their numbers.

    Sources, edges and leaks are all found from the rows. Ctrl-C keeps the best so far, without errors. Time grows with
    the ones of the rows and the sources that share their sensors, memory with the ones and with sensors times sources;
    the seed decides the result, whatever the number of threads and the order of the rows.

    >>> from bica.data.patterns import PatternCounts
    >>> rng = np.random.default_rng(3)
    >>> activity = rng.random((4000, 2)) < 0.1
    >>> reach = np.array([[0.9, 0.8, 0.7, 0.6, 0.0], [0.0, 0.0, 0.6, 0.8, 0.9]])
    >>> rows = 1 - np.prod(1 - activity[:, :, None] * (rng.random((4000, 2, 5)) < reach), axis=1)
    >>> found = learn_lossy_rows(Varying.of(PatternCounts.of(rows), (), ()), Settings(), rng)
    >>> found.mixing.T.astype(int).tolist(), found.reach[:, 0].round(1).tolist()
    ([[1, 1, 1, 1, 0], [0, 0, 1, 1, 1]], [0.9, 0.8, 0.7, 0.6, 0.0])
    """
    _check(settings)
    place = {name: i for i, name in enumerate(table.data.sensors)}
    forbidden = tuple(np.array(sorted({place[name] for name in names})) for names in table.forbidden)
    rows, held = RowTable.of(table.data.rows_to_learn_from(rng)), _held(table, place)
    rounds = LossyRounds(rows, forbidden, n_threads(settings.n_jobs), rng, held)
    try:
        state = canonical(rounds.run(settings.min_probability or 0.0))
        errors = errors_of(state, rng)
    except KeyboardInterrupt:
        if rounds.best is None:
            raise
        return _fit_of(canonical(rounds.best), None)
    return _fit_of(state, errors)


def _held(table: Varying, place: dict[str, int]) -> Held:
    """The known sources, with what was given of their numbers."""
    reach = np.zeros((len(table.known), len(place)))
    for row, source in zip(reach, table.known, strict=True):
        given = (np.nan,) * len(source.sensors) if source.reach is None else source.reach
        for name, share in zip(source.sensors, given, strict=True):
            if name in place:
                row[place[name]] = share
    given_p = [np.nan if source.probability is None else source.probability for source in table.known]
    return Held(np.array(given_p, dtype=float), reach)


def _check(settings: Settings) -> None:
    beyond = "with lossy edges and more sensors than are learned at once"
    if settings.prior is not None:
        raise LimitError(f"{beyond}, a Beta prior cannot be used; leave it out or watch fewer sensors")
    if isinstance(settings.noise, Noise):
        raise LimitError(f"{beyond}, the leaks are estimated and cannot be given; leave the noise out")


def _fit_of(state: LossyState, errors: LossyErrors | None) -> LossyFit:
    """The state as a value, the known sources first, then the most frequent ones."""
    n_known = state.table.held.size
    order = np.append(np.arange(n_known), n_known + np.argsort(-state.probability[n_known:], kind="stable"))
    reach = np.ascontiguousarray(state.reach[order].T)
    reach = np.where(reach > CERTAIN, 1.0, reach)
    known = errors or LossyErrors.unknown(state)
    return LossyFit(
        mixing=reach > 0,
        probability=state.probability[order],
        reach=reach,
        leak=state.leak,
        log_likelihood=None,
        score=state.score,
        probability_error=known.probability[order],
        reach_error=np.ascontiguousarray(known.reach[order].T),
        leak_error=known.leak,
        interrupted=errors is None,
    )


CERTAIN = 1.0 - 1e-5  # a reach above is 1
FIRST_ROWS = 12_000  # a table of more than twice as many is learned from so many first
MOST_ROUNDS = 20
WITHOUT_RISE = 3  # rounds in which the score does not rise, before the search ends
RISE = 1.0  # nats that count as a rise: activities are drawn, so the score trembles
AFTER_BIRTHS, AFTER_MOVES, TO_SETTLE = 5, 3, 8  # sweeps
LENIENT, USUAL, STRICT = 0.5, 0.8, 1.0  # shares of the bar that edges must be worth: new ones grow at first
BURNT_IN = 4  # sweeps on new rows before the numbers may move
LAST_SWEEPS, AVERAGED = 6, 10  # sweeps of the refit, and those that are averaged
LAST_REACH = 0.9995  # the highest of a lossy edge in the refit


class LossyRounds:
    """The rounds on one table; ``best`` is what to keep if they are interrupted."""

    def __init__(
        self,
        table: RowTable,
        forbidden: tuple[np.ndarray, ...],
        n_jobs: int,
        rng: np.random.Generator,
        held: Held | None = None,
    ) -> None:
        self.rows = table
        self.forbidden = forbidden
        self.n_jobs = n_jobs
        self.held = held
        self.rng = rng
        self.best: LossyState | None = None

    def run(self, min_probability: float) -> LossyState:
        """Rounds on some of the rows if there are many, rounds on all, then the refit."""
        table = LossyTable.of(self.rows, self.n_jobs, self.forbidden, self.held)
        state = self._with_known_awake(LossyState.empty(table))
        if self.rows.n_samples > 2 * FIRST_ROWS:
            some = LossyTable.of(self.rows.sample(FIRST_ROWS, self.rng), self.n_jobs, self.forbidden, self.held)
            found = self._settled(self._with_known_awake(LossyState.empty(some)))
            state = LossyState.asleep(table, found.probability, found.reach, found.leak)
            state = sweeps(burnt_in(state, BURNT_IN, self.rng), AFTER_MOVES, self.rng).pruned(USUAL)
        return self._refitted(self._settled(state), min_probability)

    def _with_known_awake(self, state: LossyState) -> LossyState:
        """The state in which known sources, if there are any, explain their rows before others are born."""
        if not state.size:
            return state
        return sweeps(burnt_in(state, BURNT_IN, self.rng), AFTER_BIRTHS, self.rng)

    def _settled(self, state: LossyState) -> LossyState:
        """The state after rounds that end when nothing changes, or when the score has not risen for a while."""
        highest, n_idle, calm = -np.inf, 0, False
        for _ in range(MOST_ROUNDS):
            after = self._round(state)
            if after is state and calm:
                return state
            calm = after is state
            state = self._noted(self._swept(state, TO_SETTLE, STRICT) if calm else after)
            n_idle = 0 if state.score > highest + RISE else n_idle + 1
            highest = max(highest, state.score)
            if n_idle >= WITHOUT_RISE:
                break
        return self.best or state

    def _round(self, state: LossyState) -> LossyState:
        """Births, splits and merges, with sweeps after each; the state itself if none happened."""
        more = births(state, first=state.size == state.table.held.size)
        if more is not state:
            state = self._swept(self._swept(more, AFTER_BIRTHS, LENIENT), AFTER_MOVES, USUAL)
        split = splits(state)
        if split is not state:
            state = self._swept(split, AFTER_BIRTHS, USUAL)
        merged = merges(state)
        return state if merged is state else self._swept(merged, AFTER_MOVES, USUAL)

    def _swept(self, state: LossyState, n_sweeps: int, share: float) -> LossyState:
        """The state after sweeps, without the edges that are worth less than this share of the bar."""
        state = sweeps(state, n_sweeps, self.rng).pruned(share)
        report("sources", state.size, None)
        return state

    def _noted(self, state: LossyState) -> LossyState:
        """The same state; the best on the present table is remembered."""
        if self.best is None or self.best.table is not state.table or state.score > self.best.score:
            self.best = state
        return state

    def _refitted(self, state: LossyState, min_probability: float) -> LossyState:
        """The last edges dropped, rare sources as well, and the numbers averaged over sweeps."""
        state = self.best = self._swept(state, LAST_SWEEPS, STRICT)
        is_known = np.arange(state.size) < state.table.held.size
        state = state.kept(np.flatnonzero(is_known | (state.probability >= min_probability)))
        state = sweeps(state, AFTER_BIRTHS, self.rng, opens=False, most_reach=LAST_REACH)
        return sweeps(state, AVERAGED, self.rng, remembered=1.0, opens=False, most_reach=LAST_REACH)
