"""The few cheapest activities of one part of a model behind one row, in order."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import n_words, packed, unpacked
from bica.invert.decode import decode
from bica.invert.elimination import Elimination
from bica.invert.groups import Group
from bica.invert.rows import Rows
from bica.invert.shown import shown_cost
from bica.kernels.best_lists import merge_lists
from bica.kernels.decoding import TIE
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
