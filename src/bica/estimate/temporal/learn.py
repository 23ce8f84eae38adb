"""Learn sources from consecutive slots, starting from what the rows tell without their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import MISSING
from bica.data.rows import Rows
from bica.estimate.temporal.search import FIRST_STAY, TimeSearch
from bica.estimate.temporal.state import MOST, NEVER_ZERO, ChainedSources, TemporalState
from bica.kernels.bits import Words
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture, in_order

SLOTS_OF_STAYS = 4096
ROUNDING = 1e-9  # 0.9 and 9 slots belong together, though 1 - 0.9 is a little below 0.1


@dataclass(frozen=True, slots=True, eq=False)
class LearnedInTime:
    """The sources that consecutive slots ask for."""

    model: OrMixture  # sources by falling probability, then by columns
    persistence: NDArray[np.float64]  # (n_sources,), the mean number of slots that each source stays on
    converged: bool
    interrupted: bool = False  # by Ctrl-C: these are the sources so far


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
    search = TimeSearch(_state(start, words, observed, noise), n_jobs)
    search.run()
    return _learned(start, search)


def stays_in_time(model: OrMixture, words: Words, observed: Words | None = None) -> NDArray[np.float64]:
    """For how many slots on average each source of a given model stays on: (n_sources,).

    Quicker and rougher than ``learn_persistence`` where many sources are connected: a few neighbours at a time, and at
    most the first 4096 slots.

    >>> from bica.data.chunks import packed
    >>> rows = np.tile([[0]] * 18 + [[1]] * 3, (50, 1)).astype(bool)
    >>> stays_in_time(OrMixture([[1]], [1 / 7], Noise.flips(0.01)), packed(rows)).round(1)
    array([3.])
    """
    part = slice(0, SLOTS_OF_STAYS)
    state = _state(model, words[part], None if observed is None else observed[part], model.noise)
    state.settle()
    stay = np.full(model.n_sources, FIRST_STAY)
    stay[_moving(model)] = state.sources.stay
    with np.errstate(divide="ignore"):
        least = np.where(_moving(model), model.probability / (1 - model.probability), 1.0)
    return np.asarray(np.maximum(stay, np.maximum(1.0, (1 + ROUNDING) * least)))


def _state(start: OrMixture, words: Words, observed: Words | None, noise: Noise | None) -> TemporalState:
    cells = Rows.of_words(words, observed, start.n_sensors).cells(start.n_sensors)
    always = start.mixing[:, start.probability == 1].any(axis=1)
    cells[:, always] = MISSING  # under a source that is always on, others do not show
    first = Noise.flips(_share_of_flips(start)) if noise is None else noise
    return TemporalState(cells, _chained(start, _moving(start)), first, known_noise=noise is not None)


def _moving(model: OrMixture) -> NDArray[np.bool_]:
    return (model.probability > 0) & (model.probability < 1)


def _chained(start: OrMixture, moving: NDArray[np.bool_]) -> ChainedSources:
    chance = np.minimum(start.probability[moving], MOST / 2)
    return ChainedSources(start.mixing[:, moving].copy(), chance, FIRST_STAY / (1 - chance))


def _share_of_flips(model: OrMixture) -> float:
    return max(float(np.mean(model.noise.rates(model.n_sensors))) if model.n_sensors else 0.0, NEVER_ZERO)


def _learned(start: OrMixture, search: TimeSearch) -> LearnedInTime:
    always = np.flatnonzero(start.probability == 1)
    found = search.state.sources
    model = OrMixture(
        np.hstack([start.mixing[:, always], found.mixing]),
        np.concatenate([np.ones(always.size), found.probability]),
        search.state.noise,
        sensors=start.sensors,
    )
    stay = np.concatenate([np.full(always.size, np.inf), found.stay])
    return LearnedInTime(*in_order(model, stay), search.converged, search.interrupted)
