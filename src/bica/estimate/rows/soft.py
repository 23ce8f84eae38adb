"""Probabilities and flip rate with the columns fixed, from Gibbs sweeps over the activity instead of one best guess.

The best guess leaves out what is probably noise, so its flip rate is too low where many narrow sources are on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.rows.explained import HALF, Explained
from bica.estimate.rows.pool import Numbers, joined, ranges
from bica.kernels.rows.decoding import Activity
from bica.kernels.rows.gains import Sources
from bica.kernels.rows.lists import Lists
from bica.kernels.rows.sampling import Sweep, sweep_rows
from bica.progress import in_threads, tracked

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
        swept = _sweep(state, sources, np.uint64(rng.integers(2**63)))
        expected, flip_rate = _with_silent_lone(state, sources, swept)
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
    differing = _differing(early, state.activity.active, state.table.cells.weights, state.pool.size)
    pool = state.pool.with_probability((n_on + HALF) / (state.table.n_samples + 1))
    state = replace(state, pool=pool, cell_weights=state.cell_weights.with_flip_rate(float(np.mean(flip_rates))))
    return SoftRefit(state, n_on, _errors(pool.probability, differing / 2, state.table.n_samples))


def _sweep(state: Explained, sources: Sources, seed: np.uint64) -> Sweep:
    cells, before, hopeless = state.table.cells, state.activity.active, state.cell_weights.hopeless - FURTHER

    def task(rows: NDArray[np.int64]) -> Sweep:
        return sweep_rows(rows, cells, sources, hopeless, before, seed)

    parts = list(in_threads(task, ranges(state.table.rows, ROWS_PER_PART), state.n_jobs))
    sums = (np.sum([part[k] for part in parts], axis=0) for k in (1, 2, 3))
    return Sweep(joined([part.active for part in parts]), *sums)


def _with_silent_lone(state: Explained, sources: Sources, swept: Sweep) -> tuple[Numbers, float]:
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


def _differing(left: Lists, right: Lists, weights: Numbers, n_sources: int) -> Numbers:
    """The weight of the rows in which exactly one of the two activities has the source on."""

    def keys(lists: Lists) -> NDArray[np.int64]:
        return np.repeat(np.arange(weights.size), np.diff(lists.start)) * n_sources + lists.items

    either = np.setxor1d(keys(left), keys(right), assume_unique=True)
    return np.bincount(either % n_sources, weights=weights[either // n_sources], minlength=n_sources).astype(float)


def _errors(probability: Numbers, hidden: Numbers, n_samples: float) -> Numbers:
    """Standard errors, from the information of known activity minus what is lost as it is hidden (Louis' formula).

    ``hidden`` is the variance of each number of activations given the rows: half the squared difference of two draws.
    The other sources count as certain, so the errors of sources that can replace each other come out too small.
    """
    spread = probability * (1 - probability)
    known = n_samples / np.maximum(spread, LEAST_SPREAD)
    lost = np.minimum(hidden / np.maximum(spread, LEAST_SPREAD) ** 2, MOST_LOST * known)
    errors: Numbers = 1 / np.sqrt(known - lost)
    return errors
