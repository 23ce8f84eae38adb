"""Who is there: users learned from the reports of monitors in consecutive slots."""

from __future__ import annotations

import numpy as np

from bica.applications.spectrum.slots import Slots
from bica.data.patterns import PatternCounts
from bica.estimate.in_time import learn_in_time
from bica.estimate.likelihood import Likelihood
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

METHOD = "likelihood in time"


def learn_users(slots: Slots, *, noise: Noise | None = None, n_jobs: int | None = None) -> Fit:
    """Learn users from consecutive slots: first without their order, then with it.

    ``diagnostics["persistence"]`` tells for how many slots on average each user stays active. Ctrl-C keeps the best so
    far, marked as interrupted.

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
    """What the rows tell without their order; nothing where nothing was ever heard."""
    if not counts.patterns.any():
        return Fit(OrMixture(np.zeros((counts.n_sensors, 0), bool), [], sensors=counts.sensors))
    method = Likelihood() if noise is None else Likelihood(noise=noise)
    return method.fit(counts, np.random.default_rng(0))
