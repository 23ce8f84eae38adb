"""Learn sources from consecutive slots, starting from what the rows tell without their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import MISSING
from bica.estimate.in_time.search import FIRST_STAY, TimeSearch
from bica.estimate.in_time.sources import MOST, ChainedSources
from bica.estimate.in_time.state import NEVER_ZERO, State
from bica.invert.posterior import checked_rows
from bica.kernels.bits import Words
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True, eq=False)
class LearnedInTime:
    """The sources that consecutive slots ask for."""

    model: OrMixture  # sources by falling probability, then by columns
    persistence: NDArray[np.float64]  # (n_sources,), the mean number of slots that each source stays on
    converged: bool


def learn_in_time(
    start: OrMixture,
    words: Words,
    observed: Words | None = None,
    *,
    noise: Noise | None = None,
    n_jobs: int | None = None,
) -> LearnedInTime:
    """Revise a model that was learned from rows without their order, when the rows are consecutive slots.

    Two things go wrong without the order. Two independent sources that happen to be on together stay so for a while,
    which looks like many coincidences, so a third source is seen behind them. And a rare source of a single sensor
    hides among flips, which come and go from slot to slot while the source stays. Here every source is a chain, and
    is there if it raises the likelihood of the whole course by more than its cost. ``noise`` None: one flip rate is
    found with the sources. A round takes some m² + n² passes over the rows for m sensors and n sources.

    >>> from bica.data.chunks import packed
    >>> from bica.simulate import markov_activity
    >>> truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.05, 0.05])
    >>> rows = truth.observe(markov_activity(truth.probability, 5, 4000, np.random.default_rng(1)))
    >>> found = learn_in_time(OrMixture(np.zeros((3, 0)), []), packed(rows))
    >>> found.model.mixing.astype(int).tolist(), found.persistence.round().tolist()
    ([[0, 1], [1, 1], [1, 0]], [6.0, 5.0])
    """
    rows = checked_rows(start, words, observed)
    cells = rows.cells(start.n_sensors)
    always = start.probability == 1
    cells[:, start.mixing[:, always].any(axis=1)] = MISSING  # under a source that is always on, others do not show
    sources = _chained(start, ~always & (start.probability > 0))
    first = Noise.flips(_share_of_flips(start)) if noise is None else noise
    search = TimeSearch(State(cells, sources, first, known_noise=noise is not None), n_jobs)
    converged = search.run()
    return _learned(start, search.state, converged)


def _chained(start: OrMixture, moving: NDArray[np.bool_]) -> ChainedSources:
    chance = np.minimum(start.probability[moving], MOST / 2)
    return ChainedSources(start.mixing[:, moving].copy(), chance, FIRST_STAY / (1 - chance))


def _share_of_flips(model: OrMixture) -> float:
    return max(float(np.mean(model.noise.rates(model.n_sensors))) if model.n_sensors else 0.0, NEVER_ZERO)


def _learned(start: OrMixture, state: State, converged: bool) -> LearnedInTime:
    always = np.flatnonzero(start.probability == 1)
    found = state.sources
    model = OrMixture(
        np.hstack([start.mixing[:, always], found.mixing]),
        np.concatenate([np.ones(always.size), found.probability]),
        state.noise,
        sensors=start.sensors,
    )
    stay = np.concatenate([np.full(always.size, np.inf), found.stay])
    order = model.order()
    return LearnedInTime(model.pick(order), stay[order], converged)
