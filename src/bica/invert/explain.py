"""The likeliest explanations of one row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import unpacked
from bica.errors import InfeasibleError, SettingError
from bica.invert.best_activities import Ranked, best_by_elimination, best_by_partition, best_of_sums
from bica.invert.groups import Group, groups_of
from bica.invert.posterior import checked_rows, log_chance, posterior
from bica.invert.rows import Rows
from bica.kernels.bits import Words
from bica.kernels.decoding import TIE
from bica.model.or_mixture import OrMixture

MOST = 10_000  # explanations; more would be a table of all activities
STATES = 1 << 21  # of elimination, times the explanations kept in each


@dataclass(frozen=True, slots=True)
class Explanations:
    """The likeliest activities behind one row, in falling order; there may be fewer than were asked for."""

    activity: NDArray[np.bool_]  # (n_found, n_sources)
    probability: NDArray[np.float64]  # (n_found,), of each given the row; an upper bound where ``exact`` is False
    rank: NDArray[np.int64]  # (n_found,), from 1; explanations that are equally likely share a rank
    missed: NDArray[np.bool_]  # (n_found, n_sensors), which sensors would have failed to show what was there
    false_alarm: NDArray[np.bool_]  # (n_found, n_sensors), which would have shown what was not there
    source_probability: NDArray[np.float64]  # (n_sources,), of each source to be on, over all explanations
    exact: bool  # whether the probabilities are; the order of the explanations always is
    more_ties: bool  # whether further explanations are as likely as the last one


def explain(model: OrMixture, words: Words, observed: Words | None = None, *, k: int = 5) -> Explanations:
    """Find the ``k`` most probable activities behind one row of bit sets, proven to be the best.

    Ties go to the fewest active sources, then to the smallest number that their bits spell. Parts of the model that
    share no source are solved alone: by elimination of one source after another where that is cheap, otherwise by
    splitting what is left after each explanation and decoding every part, some ``k`` times the number of sources.

    >>> model = OrMixture([[1, 1, 0], [0, 1, 1]], [0.2, 0.1, 0.2])
    >>> found = explain(model, np.array([[3]], dtype=np.uint64), k=3)
    >>> found.activity.astype(int)
    array([[0, 1, 0],
           [1, 0, 1],
           [1, 1, 0]])
    >>> found.probability.round(3), found.rank
    (array([0.471, 0.265, 0.118]), array([1, 2, 3]))
    """
    if not 1 <= k <= MOST:
        raise SettingError(f"k is {k}; ask for 1 to {MOST} explanations")
    row = checked_rows(model, words, observed)
    if len(row.words) != 1:
        raise SettingError(f"one row is explained at a time, but {len(row.words)} were given")
    chance = log_chance(model, row.words, row.seen)
    if np.isinf(chance.value[0]):
        raise InfeasibleError(
            "no set of sources produces this row when sensors never err; use a model with noise, or leave out cells"
        )
    best = reduce(lambda left, right: best_of_sums(left, right, k + 1), _lists(model, row, k + 1))
    return _told(model, row, best, float(chance.value[0]), bool(chance.exact[0]), k)


def _lists(model: OrMixture, row: Rows, k: int) -> list[Ranked]:
    """The best activities of each part of the model, costs included, over all sources."""
    settled = Ranked(np.zeros(1), (model.probability == 1)[None])
    return [settled, *(_best_of_group(model, group, row, k) for group in groups_of(model))]


def _best_of_group(model: OrMixture, group: Group, row: Rows, k: int) -> Ranked:
    cells = row.of_sensors(group.sensors).cells(group.sensors.size)
    if not group.mixing.any():
        return _unrelated(model, group, cells, k)
    found = best_by_elimination(group, cells, k, STATES // k)
    return best_by_partition(model, group, row, k) if found is None else found.over(group.sources, model.n_sources)


def _unrelated(model: OrMixture, group: Group, cells: NDArray[np.uint8], k: int) -> Ranked:
    """No cell tells anything of these sources: each is on or off by itself."""
    penalty = group.penalty[np.arange(cells.shape[1]), cells[0], 0].sum()
    silent = Ranked(np.array([penalty]), np.zeros((1, model.n_sources), dtype=bool))
    either = [
        Ranked(np.array([0.0, price]), np.array([[False], [True]])).over(np.array([source]), model.n_sources)
        for source, price in zip(group.sources, group.price, strict=True)
    ]
    return reduce(lambda left, right: best_of_sums(left, right, k), either, silent)


def _told(model: OrMixture, row: Rows, best: Ranked, log_total: float, exact: bool, k: int) -> Explanations:
    changing = model.probability < 1
    log_joint = -best.cost + np.log1p(-model.probability[changing]).sum()
    kept = best.activity[:k]
    on, seen = unpacked(row.words, model.n_sensors), unpacked(row.seen, model.n_sensors)
    there = model.observe(kept)
    steps = np.diff(best.cost[:k], prepend=-np.inf) > TIE
    return Explanations(
        activity=kept,
        probability=np.minimum(np.exp(log_joint[:k] - log_total), 1.0),
        rank=np.maximum.accumulate(np.where(steps, np.arange(len(kept)) + 1, 1)),
        missed=there & ~on & seen,
        false_alarm=~there & on & seen,
        source_probability=posterior(model, row.words, row.seen).probability[0],
        exact=exact,
        more_ties=len(best.cost) > k and bool(best.cost[k] <= best.cost[k - 1] + TIE),
    )
