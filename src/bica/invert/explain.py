"""The likeliest explanations of one row."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import n_words, packed, unpacked
from bica.data.rows import Rows
from bica.errors import InfeasibleError, SettingError
from bica.invert.decode import decode
from bica.invert.elimination import Elimination
from bica.invert.groups import Group, groups_of, shown_cost
from bica.invert.posterior import log_chance, posterior
from bica.kernels.bits import Words
from bica.kernels.decoding.elimination import merge_lists
from bica.kernels.decoding.table import TIE
from bica.model.or_mixture import OrMixture
from bica.progress import report


@dataclass(frozen=True, slots=True)
class Ranked:
    """Activities with rising cost; among equal costs the fewest active sources first, then the smallest number."""

    cost: NDArray[np.float64]  # (n_kept,)
    activity: NDArray[np.bool_]  # (n_kept, n_sources)

    def over(self, sources: NDArray[np.int64], n_sources: int) -> Ranked:
        """The same where the sources are some of many, the others off."""
        activity = np.zeros((len(self.cost), n_sources), dtype=bool)
        activity[:, sources] = self.activity
        return Ranked(self.cost, activity)


def ranked(cost: NDArray[np.float64], activity: NDArray[np.bool_], k: int) -> Ranked:
    """The first ``k`` in order; costs within ``TIE`` of the first of their kind are equal."""
    order = np.argsort(cost, kind="stable")
    tie = np.empty(len(cost), np.int64)
    least = -np.inf
    for place, which in enumerate(order):
        if cost[which] > least + TIE:
            least, number = cost[which], place
        tie[which] = number
    n_on = activity.sum(axis=1)
    first = np.lexsort([*activity.T, n_on, tie])[:k]  # the last key counts first, and so does the last source
    return Ranked(cost[first], activity[first])


def best_of_sums(left: Ranked, right: Ranked, k: int) -> Ranked:
    """The best activities of two parts together, out of the best of each."""
    cost = (left.cost[:, None] + right.cost).ravel()
    activity = (left.activity[:, None] | right.activity).reshape(cost.size, -1)
    return ranked(cost, activity, k)


def best_by_elimination(group: Group, cells: NDArray[np.uint8], k: int, at_most: int) -> Ranked | None:
    """Sum up as in the chance of a row, but keep the ``k`` cheapest activities of every state in place of their sum.

    None if that takes more than ``at_most`` states in all.
    """
    elimination = Elimination(group)
    states, n_sources, n_states = elimination.start(1), group.sources.size, 0
    cost, active = np.full((1, k), np.inf), np.zeros((1, k, n_words(n_sources)), np.uint64)
    cost[0, 0] = 0.0
    for step in elimination.steps:
        layer, states, _ = elimination.advance(step, states, cells)
        n_states += len(states)
        if n_states > at_most:
            return None
        new_cost = np.full((len(states), k), np.inf)
        new_active = np.zeros((len(states), k, active.shape[2]), np.uint64)
        merge_lists(cost, active, step.source, layer.gain, layer.target, new_cost, new_active)
        cost, active = new_cost, new_active
    possible = np.isfinite(cost[0])
    return Ranked(cost[0, possible], unpacked(active[0, possible], n_sources))


def best_by_partition(model: OrMixture, group: Group, row: Rows, k: int) -> Ranked:
    """Decode, then split the other activities by the first source in which they differ, and decode each part.

    A part is a model in which some sources are always on or always off. The cheapest activity of all parts is the
    next one; its own part is split again.
    """
    parts = _Parts(model, group, row)
    waiting = parts.split(None, frozenset())
    found: list[NDArray[np.bool_]] = []
    heapq.heapify(waiting)
    while waiting and len(found) < k:
        report("finding explanations", len(found), k)
        _, _, _, activity, fixed = heapq.heappop(waiting)
        found.append(activity)
        for part in parts.split(activity, fixed):
            heapq.heappush(waiting, part)
    activity = np.array(found).reshape(len(found), model.n_sources)
    return ranked(parts.cost(activity), activity, k)


Part = tuple[float, int, int, NDArray[np.bool_], frozenset[int]]  # cost, order among equal ones, answer, fixed sources


class _Parts:
    """Sets of activities that agree in some sources, each with its cheapest member."""

    def __init__(self, model: OrMixture, group: Group, row: Rows) -> None:
        self.model, self.group, self.row = model, group, row
        self.cells = row.of_sensors(group.sensors).cells(group.sensors.size)
        here = np.zeros(model.n_sensors, dtype=bool)
        here[group.sensors] = True
        self.seen = row.seen & packed(here[None])
        self.alone = np.zeros(model.n_sources)
        self.alone[model.probability == 1] = 1.0
        self.alone[group.sources] = model.probability[group.sources]

    def cost(self, activity: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What each activity costs in this group."""
        own, cells = activity[:, self.group.sources], self.cells.repeat(len(activity), axis=0)
        price: NDArray[np.float64] = own @ self.group.price
        return price + shown_cost(self.group.penalty, self.group.mixing, own, cells)

    def split(self, activity: NDArray[np.bool_] | None, fixed: frozenset[int]) -> list[Part]:
        """The parts that are left after ``activity``; all together if there is none yet."""
        if activity is None:
            return self._part(self.alone, fixed)
        chances, parts = self.alone.copy(), []
        chances[list(fixed)] = activity[list(fixed)]
        for source in self.group.sources.tolist():
            if source not in fixed:
                chances[source] = not activity[source]
                fixed = fixed | {source}
                parts += self._part(chances, fixed)
                chances[source] = activity[source]
        return parts

    def _part(self, chances: NDArray[np.float64], fixed: frozenset[int]) -> list[Part]:
        model = OrMixture(self.model.mixing, chances, self.model.noise)
        found = decode(model, self.row.words & self.seen, self.seen)
        if not found.proven[0]:  # the search was cut short; the integer program never is
            found = decode(model, self.row.words & self.seen, self.seen, solver="program")
        if not found.feasible[0]:
            return []
        activity = found.activity[0]
        activity[self.model.probability == 1] = False
        cost = round(float(self.cost(activity[None])[0]) / TIE) * TIE  # so that costs in a tie are equal
        spelled = int.from_bytes(np.packbits(activity, bitorder="little").tobytes(), "little")
        return [(cost, int(activity.sum()), spelled, activity, fixed)]


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
    row = Rows.of_words(words, observed, model.n_sensors)
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
