"""Learning lossy sources of many sensors: rounds of births, sweeps, splits and merges, by Gibbs-EM over the rows."""

from __future__ import annotations

import numpy as np

from bica.errors import LimitError
from bica.estimate.edges import LossyFit
from bica.estimate.rows.lossy_errors import LossyErrors, canonical, errors_of
from bica.estimate.rows.lossy_moves import births, merges, splits
from bica.estimate.rows.lossy_state import LossyState, LossyTable, burnt_in, sweeps
from bica.estimate.rows.pool import RowTable
from bica.estimate.settings import Settings, Varying
from bica.model.noise import Noise
from bica.progress import n_threads, report


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
    rounds = LossyRounds(RowTable.of(table.data), forbidden, n_threads(settings.n_jobs), rng)
    try:
        state = canonical(rounds.run(settings.min_probability or 0.0))
        errors = errors_of(state, rng)
    except KeyboardInterrupt:
        if rounds.best is None:
            raise
        return _fit_of(canonical(rounds.best), None)
    return _fit_of(state, errors)


def _check(settings: Settings) -> None:
    beyond = "with lossy edges and more sensors than are learned at once"
    if settings.prior is not None:
        raise LimitError(f"{beyond}, a Beta prior cannot be used; leave it out or watch fewer sensors")
    if settings.known:
        raise LimitError(f"{beyond}, known sources cannot be held; leave them out, or learn with sure edges")
    if isinstance(settings.noise, Noise):
        raise LimitError(f"{beyond}, the leaks are estimated and cannot be given; leave the noise out")


def _fit_of(state: LossyState, errors: LossyErrors | None) -> LossyFit:
    """The state as a value, the most frequent source first."""
    order = np.argsort(-state.probability, kind="stable")
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
        self, table: RowTable, forbidden: tuple[np.ndarray, ...], n_jobs: int, rng: np.random.Generator
    ) -> None:
        self.rows = table
        self.forbidden = forbidden
        self.n_jobs = n_jobs
        self.rng = rng
        self.best: LossyState | None = None

    def run(self, min_probability: float) -> LossyState:
        """Rounds on some of the rows if there are many, rounds on all, then the refit."""
        table = LossyTable.of(self.rows, self.n_jobs, self.forbidden)
        state = LossyState.empty(table)
        if self.rows.n_samples > 2 * FIRST_ROWS:
            some = LossyTable.of(self.rows.sample(FIRST_ROWS, self.rng), self.n_jobs, self.forbidden)
            found = self._settled(LossyState.empty(some))
            state = LossyState.asleep(table, found.probability, found.reach, found.leak)
            state = sweeps(burnt_in(state, BURNT_IN, self.rng), AFTER_MOVES, self.rng).pruned(USUAL)
        return self._refitted(self._settled(state), min_probability)

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
        more = births(state, first=not state.size)
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
        state = state.kept(np.flatnonzero(state.probability >= min_probability))
        state = sweeps(state, AFTER_BIRTHS, self.rng, opens=False, most_reach=LAST_REACH)
        return sweeps(state, AVERAGED, self.rng, remembered=1.0, opens=False, most_reach=LAST_REACH)
