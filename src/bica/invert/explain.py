"""The likeliest explanations of one row."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bica.data.rows import Rows
from bica.errors import InfeasibleError, LimitError, SettingError
from bica.invert.decode import decode
from bica.invert.elimination import Elimination
from bica.invert.groups import Group, groups_of, shown_cost
from bica.invert.posterior import log_probability, posterior
from bica.kernels.bits import Words, n_words, packed, unpacked
from bica.kernels.decoding.table import TIE, merge_lists
from bica.model.or_mixture import OrMixture
from bica.progress import report


@dataclass(frozen=True, slots=True)
class Ranked:
    """Activities by rising cost; among equal costs those with the fewest active sources first, then by their bits."""

    cost: NDArray[np.float64]  # (n_kept,)
    activity: NDArray[np.bool_]  # (n_kept, n_sources)

    def over(self, sources: NDArray[np.int64], n_sources: int) -> Ranked:
        """The same activities over all ``n_sources``; the other sources are off."""
        activity = np.zeros((len(self.cost), n_sources), dtype=bool)
        activity[:, sources] = self.activity
        return Ranked(self.cost, activity)


def ranked(cost: NDArray[np.float64], activity: NDArray[np.bool_], k: int) -> Ranked:
    """The best ``k`` activities in order; costs within ``TIE`` of the lowest among them count as equal."""
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
    """The best ``k`` activities of two parts together, from the best of each."""
    cost = (left.cost[:, None] + right.cost).ravel()
    activity = (left.activity[:, None] | right.activity).reshape(cost.size, -1)
    return ranked(cost, activity, k)


def best_by_elimination(group: Group, cells: NDArray[np.uint8], k: int, at_most: int) -> Ranked | None:
    """The ``k`` best activities, or None if that takes more than ``at_most`` states in all.

    As for the probability of a row, but every state keeps its ``k`` cheapest activities in place of their sum.
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
    """The ``k`` best activities by splitting: decode, then split the rest by the first source that differs.

    A part is a model in which some sources are always on or always off, decoded by itself. The cheapest activity of all
    parts is the next one; its own part is split again.
    """
    parts = _Partition(model, group, row)
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


Candidate = tuple[
    float, int, int, NDArray[np.bool_], frozenset[int]
]  # cost, number of active sources, their bits, activity, fixed sources


class _Partition:
    """Sets of activities that agree in some sources, each with its cheapest member."""

    def __init__(self, model: OrMixture, group: Group, row: Rows) -> None:
        self.model, self.group, self.row = model, group, row
        self.cells = row.of_sensors(group.sensors).cells(group.sensors.size)
        here = np.zeros(model.n_sensors, dtype=bool)
        here[group.sensors] = True
        self.observed = row.observed & packed(here[None])
        self.alone = np.zeros(model.n_sources)
        self.alone[model.probability == 1] = 1.0
        self.alone[group.sources] = model.probability[group.sources]

    def cost(self, activity: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The cost of each activity in this group."""
        own, cells = activity[:, self.group.sources], self.cells.repeat(len(activity), axis=0)
        of_sources: NDArray[np.float64] = own @ self.group.source_cost
        return of_sources + shown_cost(self.group.penalty, self.group.mixing, own, cells, self.group.reach)

    def nearby_cost(self, shared: csr_array[np.int64], own: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The cost of activities of the sources of this group; infinite where impossible."""
        if self.group.reach is not None:
            cells = self.cells.repeat(len(own), axis=0)
            reached = shown_cost(self.group.penalty, self.group.mixing, own, cells, self.group.reach)
            return np.asarray(own @ self.group.source_cost + reached)
        penalty = self.group.penalty[np.arange(self.cells.shape[1]), self.cells[0]]
        state = (csr_array(own.astype(np.int64)) @ shared.T).toarray() > 0
        return np.asarray(own @ self.group.source_cost + np.where(state, penalty[:, 1], penalty[:, 0]).sum(axis=1))

    def split(self, activity: NDArray[np.bool_] | None, fixed: frozenset[int]) -> list[Candidate]:
        """The parts that are left after ``activity``, each with its best activity; all in one if there is none yet."""
        if activity is None:
            return self._part(self.alone, fixed)
        probability, parts = self.alone.copy(), []
        probability[list(fixed)] = activity[list(fixed)]
        for source in self.group.sources.tolist():
            if source not in fixed:
                probability[source] = not activity[source]
                fixed = fixed | {source}
                parts += self._part(probability, fixed)
                probability[source] = activity[source]
        return parts

    def _part(self, probability: NDArray[np.float64], fixed: frozenset[int]) -> list[Candidate]:
        model = self.model.with_probability(probability)
        found = decode(model, self.row.words & self.observed, self.observed)
        if not found.proven[0] and self.group.reach is not None:
            raise LimitError(
                "edges that may fail connect too many sources to prove which explanation is the likeliest; decode the "
                "row, or use `posterior`"
            )
        if not found.proven[0]:  # the search was cut short; the integer program never is
            found = decode(model, self.row.words & self.observed, self.observed, solver="program")
        if not found.feasible[0]:
            return []
        activity = found.activity[0]
        activity[self.model.probability == 1] = False
        cost = round(float(self.cost(activity[None])[0]) / TIE) * TIE  # rounded, so that costs in a tie are equal
        spelled = int.from_bytes(np.packbits(activity, bitorder="little").tobytes(), "little")
        return [(cost, int(activity.sum()), spelled, activity, fixed)]


SPLIT_WORK = (
    4_000_000  # edges that the splitting of a group may look at, some seconds; larger groups are searched nearby
)
MOST_ROUNDS = 8  # of changes to the best activities of a large group


def best_nearby(model: OrMixture, group: Group, row: Rows, k: int) -> Ranked:
    """The best activities of a large group that a few changes make of its cheapest one; none is proven to be the best.

    A change switches a source, or switches one on and another off that shares a sensor with it. The best ``k``
    activities so far are changed in turn until no change enters them.
    """
    parts = _Partition(model, group, row)
    shared = csr_array(group.mixing.astype(np.int64))
    first = decode(model, row.words & parts.observed, parts.observed).activity[:, group.sources]
    best = ranked(parts.nearby_cost(shared, first), first, k)
    done: set[bytes] = set()
    for _ in range(MOST_ROUNDS):
        fresh = [activity for activity in best.activity if activity.tobytes() not in done]
        if not fresh:
            break
        report("finding explanations", len(done), None)
        done |= {activity.tobytes() for activity in fresh}
        every = np.unique(np.vstack([best.activity, *(_changed(activity, shared) for activity in fresh)]), axis=0)
        best = ranked(parts.nearby_cost(shared, every), every, k)
    return best.over(group.sources, model.n_sources)


def _changed(activity: NDArray[np.bool_], shared: csr_array[np.int64]) -> NDArray[np.bool_]:
    """Every activity that one change away: (n_changes, n_sources)."""
    n_sources = activity.size
    touches = (shared.T @ shared).tocoo()
    is_exchange = activity[touches.row] & ~activity[touches.col]
    pairs = np.column_stack([touches.row, touches.col])[is_exchange]
    changes = np.vstack([np.column_stack([np.arange(n_sources), np.arange(n_sources)]), pairs])
    changed = np.tile(activity, (len(changes), 1))
    places = np.arange(len(changes))
    for column in changes.T:
        changed[places, column] = ~activity[column]
    return changed


MOST_EXPLANATIONS = 10_000  # explanations; more would be a table of all activities
ELIMINATION_STATES = 1 << 21  # times the explanations kept in each, at most


@dataclass(frozen=True, slots=True)
class Explanations:
    """The likeliest activities behind one row, in falling order; there may be fewer than were asked for."""

    activity: NDArray[np.bool_]  # (n_found, n_sources)
    probability: NDArray[np.float64]  # (n_found,), of each given the row; an upper bound where ``exact`` is False
    rank: NDArray[np.int64]  # (n_found,), from 1; explanations that are equally likely share a rank
    missed: NDArray[
        np.bool_
    ]  # (n_found, n_sensors), which sensors would have missed an active source, or an edge failed
    false_alarm: NDArray[np.bool_]  # (n_found, n_sensors), which would have shown 1 without an active source
    source_probability: NDArray[np.float64]  # (n_sources,), that each source is on, over all explanations
    exact: bool  # whether the probabilities are exact
    more_ties: bool  # whether further explanations are as likely as the last one
    names: tuple[str, ...] = ()  # (n_sources,), of the sources
    proven: bool = True  # whether no likelier explanation was left out; not where too many sources are connected

    def __repr__(self) -> str:
        best = f", the likeliest {self.probability[0]:.3g}" if len(self.probability) else ""
        return f"<Explanations: {len(self.probability)} of one row{best}>"

    def _repr_html_(self) -> str:
        from bica.report import explanation_table

        return explanation_table(self)


def explain(model: OrMixture, words: Words, observed: Words | None = None, *, k: int = 5) -> Explanations:
    """Find the ``k`` most probable activities behind one row of bit sets, proven to be the best unless marked.

    Ties go to the fewest active sources, then to the smallest number that their bits spell. Parts of the model that
    share no source are solved separately: by elimination of one source after another where that is cheap, otherwise by
    splitting what is left after each explanation and decoding every part, about ``k`` times the number of sources.
    Where that would take minutes, small changes of the most probable activity are tried instead, and ``proven`` is
    False.

    >>> model = OrMixture([[1, 1, 0], [0, 1, 1]], [0.2, 0.1, 0.2])
    >>> found = explain(model, np.array([[3]], dtype=np.uint64), k=3)
    >>> found.activity.astype(int)
    array([[0, 1, 0],
           [1, 0, 1],
           [1, 1, 0]])
    >>> found.probability.round(3), found.rank
    (array([0.471, 0.265, 0.118]), array([1, 2, 3]))
    """
    if not 1 <= k <= MOST_EXPLANATIONS:
        raise SettingError(f"k is {k}; ask for 1 to {MOST_EXPLANATIONS} explanations")
    row = Rows.of_words(words, observed, model.n_sensors)
    if len(row.words) != 1:
        raise SettingError(f"one row is explained at a time, but {len(row.words)} were given")
    total = log_probability(model, row.words, row.observed)
    if np.isinf(total.value[0]):
        raise InfeasibleError(
            "no set of sources produces this row when sensors never err; use a model with noise, or leave out cells"
        )
    lists = _lists(model, row, k + 1)
    best = reduce(lambda left, right: best_of_sums(left, right, k + 1), (found for found, _ in lists))
    proven = all(is_proven for _, is_proven in lists)
    return _explanations(model, row, best, float(total.value[0]), bool(total.exact[0]), k, proven)


def _lists(model: OrMixture, row: Rows, k: int) -> list[tuple[Ranked, bool]]:
    """The best activities of each part of the model, over all sources, and whether they are proven to be the best."""
    settled = Ranked(np.zeros(1), (model.probability == 1)[None])
    return [(settled, True), *(_best_of_group(model, group, row, k) for group in groups_of(model))]


def _best_of_group(model: OrMixture, group: Group, row: Rows, k: int) -> tuple[Ranked, bool]:
    cells = row.of_sensors(group.sensors).cells(group.sensors.size)
    if not group.mixing.any():
        return _unrelated(model, group, cells, k), True
    if group.reach is None:
        found = best_by_elimination(group, cells, k, ELIMINATION_STATES // k)
        if found is not None:
            return found.over(group.sources, model.n_sources), True
    if k * group.sources.size * int(group.mixing.sum()) > SPLIT_WORK:
        return best_nearby(model, group, row, k), False
    return best_by_partition(model, group, row, k), True


def _unrelated(model: OrMixture, group: Group, cells: NDArray[np.uint8], k: int) -> Ranked:
    """The best activities of sources that no cell depends on: each is on or off independently."""
    penalty = group.penalty[np.arange(cells.shape[1]), cells[0], 0].sum()
    silent = Ranked(np.array([penalty]), np.zeros((1, model.n_sources), dtype=bool))
    either = [
        Ranked(np.array([0.0, cost]), np.array([[False], [True]])).over(np.array([source]), model.n_sources)
        for source, cost in zip(group.sources, group.source_cost, strict=True)
    ]
    return reduce(lambda left, right: best_of_sums(left, right, k), either, silent)


def _explanations(
    model: OrMixture, row: Rows, best: Ranked, log_total: float, exact: bool, k: int, proven: bool
) -> Explanations:
    changing = model.probability < 1
    log_joint = -best.cost + np.log1p(-model.probability[changing]).sum()
    kept = best.activity[:k]
    on, observed = unpacked(row.words, model.n_sensors), unpacked(row.observed, model.n_sensors)
    there = model.observe(kept)
    steps = np.diff(best.cost[:k], prepend=-np.inf) > TIE
    return Explanations(
        activity=kept,
        probability=np.minimum(np.exp(log_joint[:k] - log_total), 1.0),
        rank=np.maximum.accumulate(np.where(steps, np.arange(len(kept)) + 1, 1)),
        missed=there & ~on & observed,
        false_alarm=~there & on & observed,
        source_probability=posterior(model, row.words, row.observed).probability[0],
        exact=exact,
        more_ties=len(best.cost) > k and bool(best.cost[k] <= best.cost[k - 1] + TIE),
        names=model.source_names(),
        proven=proven,
    )
