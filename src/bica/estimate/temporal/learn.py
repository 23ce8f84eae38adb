"""Learning sources from consecutive slots, starting from a model learned from the rows without their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import MISSING
from bica.data.rows import Rows
from bica.estimate.temporal.search import FIRST_STAY, Bounds, TimeSearch
from bica.estimate.temporal.state import MOST, NEVER_ZERO, ChainedSources, TemporalState
from bica.kernels.bits import Words
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture, in_order

SLOTS_OF_STAYS = 4096  # the first ones, enough for a rough mean stay
ROUNDING = 1e-9  # a probability of 0.9 needs stays of 9 slots, although 1 - 0.9 is a little below 0.1


@dataclass(frozen=True, slots=True, eq=False)
class LearnedInTime:
    """The sources learned from consecutive slots."""

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
    bounds: Bounds | None = None,
    n_jobs: int | None = None,
) -> LearnedInTime:
    """Revise a model that was learned from rows without their order, when the rows are consecutive slots.

    Two things go wrong without the order. Two independent sources that happen to be on together stay so for a while;
    that looks like many coincidences, so a third source is inferred. And a rare source of a single sensor is lost among
    flips, which come and go from slot to slot while the source stays. Here every source is a chain, and is kept if it
    raises the likelihood of all slots by more than its cost. If ``noise`` is None, one flip rate is estimated with the
    sources. A round takes about m² + n² passes over the rows for m sensors and n sources.

    >>> from bica.kernels.bits import packed
    >>> from bica.simulate import markov_activity
    >>> truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.05, 0.05])
    >>> rows = truth.observe(markov_activity(truth.probability, 5, 4000, np.random.default_rng(1)))
    >>> found = learn_in_time(OrMixture(np.zeros((3, 0)), []), packed(rows))
    >>> found.model.mixing.astype(int).tolist(), found.persistence.round().tolist()
    ([[0, 1], [1, 1], [1, 0]], [6.0, 5.0])
    """
    search = TimeSearch(_state(start, words, observed, noise), bounds or Bounds(), n_jobs)
    search.run()
    return _learned(start, search)


def stays_in_time(model: OrMixture, words: Words, observed: Words | None = None) -> NDArray[np.float64]:
    """For how many slots on average each source of a given model stays on: (n_sources,).

    Where many sources are connected this is faster and rougher than ``learn_persistence``: it takes a few neighbours at
    a time, and at most the first 4096 slots.

    >>> from bica.kernels.bits import packed
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
    cells[:, always] = MISSING  # a source that is always on hides all others
    first = Noise.flips(_mean_flip_rate(start)) if noise is None else noise
    return TemporalState(cells, _chained(start, _moving(start)), first, known_noise=noise is not None)


def _moving(model: OrMixture) -> NDArray[np.bool_]:
    return (model.probability > 0) & (model.probability < 1)


def _chained(start: OrMixture, moving: NDArray[np.bool_]) -> ChainedSources:
    probability = np.minimum(start.probability[moving], MOST / 2)
    return ChainedSources(start.mixing[:, moving].copy(), probability, FIRST_STAY / (1 - probability))


def _mean_flip_rate(model: OrMixture) -> float:
    return max(float(np.mean(model.noise.rates(model.n_sensors))) if model.n_sensors else 0.0, NEVER_ZERO)


def _learned(start: OrMixture, search: TimeSearch) -> LearnedInTime:
    still = np.flatnonzero(~_moving(start))  # always on, or known but never on
    found = search.state.sources
    mixing = np.hstack([start.mixing[:, still], found.mixing])
    named = {column.tobytes(): name for column, name in zip(start.mixing.T, start.names, strict=True)}
    model = OrMixture(
        mixing,
        np.concatenate([start.probability[still], found.probability]),
        search.state.noise,
        sensors=start.sensors,
        names=[named.get(column.tobytes()) for column in mixing.T],
    )
    stay = np.concatenate([np.where(start.probability[still] == 1, np.inf, 1.0), found.stay])
    return LearnedInTime(*in_order(model, stay), search.converged, search.interrupted)
