"""Who is there: users learned from the reports of monitors in consecutive slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bica.data.chunks import Chunk, all_observed
from bica.data.patterns import PatternCounts, count_rows
from bica.data.tables import open_table
from bica.errors import DataError
from bica.estimate.likelihood import Likelihood
from bica.estimate.temporal import learn_in_time
from bica.kernels.bits import Words
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """One row per slot, all in memory at one bit per cell."""

    words: Words  # (n_slots, n_words)
    observed: Words | None  # same shape, bit set where a cell was observed; None if all were
    sensors: tuple[str, ...]

    @staticmethod
    def of(table: Any) -> Slots:
        """Anything that ``BICA`` takes: an array, a frame, a file, "-" for standard input.

        >>> Slots.of([[0, 1], [1, 1]]).words.ravel()
        array([2, 3], dtype=uint64)
        """
        opened = open_table(table)
        chunks = list(opened.chunks())
        if not sum(len(chunk.words) for chunk in chunks):
            raise DataError("the table has no rows, so there is nothing to learn from")
        everything = all_observed(len(opened.sensors))
        observed = [np.broadcast_to(everything, c.words.shape) if c.observed is None else c.observed for c in chunks]
        complete = all(chunk.observed is None for chunk in chunks)
        words = np.vstack([chunk.words for chunk in chunks])
        return Slots(words, None if complete else np.vstack(observed), opened.sensors)

    def counts(self) -> PatternCounts:
        """The same rows without their order."""
        patterns, observed, weights = count_rows([Chunk(self.words, self.observed)], len(self.sensors))
        return PatternCounts(patterns, weights, self.sensors, None if self.observed is None else observed)


METHOD = "likelihood in time"  # as written into model files and results


def learn_users(slots: Slots, *, noise: Noise | None = None, n_jobs: int | None = None) -> Fit:
    """Learn users from consecutive slots: first without their order, then with it.

    ``diagnostics["persistence"]`` holds the mean number of slots for which each user stays active. Ctrl-C keeps the
    best so far, marked as interrupted.

    >>> rows = [[0, 0]] * 50 + [[1, 1]] * 5 + [[0, 0]] * 40 + [[1, 0]] * 10 + [[0, 0]] * 60 + [[1, 1]] * 5
    >>> learn_users(Slots.of(rows)).model.mixing.astype(int).tolist()
    [[1, 1], [1, 0]]
    """
    counts = slots.counts()
    first = _first(counts, noise)
    if "interrupted" in first.diagnostics:
        return first
    found = learn_in_time(first.model, slots.words, slots.observed, noise=noise, n_jobs=n_jobs)
    stays = [float(stay) if np.isfinite(stay) else None for stay in found.persistence]
    return Fit(
        found.model,
        method=METHOD,
        n_samples=counts.n_samples,
        converged=found.converged,
        diagnostics={"persistence": stays} | ({"interrupted": True} if found.interrupted else {}),
    )


def _first(counts: PatternCounts, noise: Noise | None) -> Fit:
    """What is learned from the rows without their order; no user where nothing was ever heard."""
    if not counts.patterns.any():
        return Fit(OrMixture(np.zeros((counts.n_sensors, 0), bool), [], sensors=counts.sensors))
    method = Likelihood() if noise is None else Likelihood(noise=noise)
    return method.fit(counts, np.random.default_rng(0))
