"""Sources as independent two-state Markov chains, a few of them at once, observed through the sensors they reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.errors import SettingError
from bica.invert.groups import Group, mixed_cost, shown_cost, silent_share
from bica.kernels.bits import group_equal
from bica.kernels.decoding.markov import (
    cheapest_moves,
    cheapest_moves_of_kinds,
    expected_moves,
    log_probability,
    trace_back,
)

STRETCH = 1024  # slots that are traced back together; between stretches only the least costs are kept
LEAST_SHARE = 1e-250  # of the probability in the likeliest state: 0 in all states of a slot would leave no answer
BYTES_PER_WORD = 8
ROUNDING = 1e-9  # relative: 0.9 and 9 slots belong together, though 1 - 0.9 is a little below 0.1
Shown = Any  # what the sensors of a block showed in every slot, in the form of its own ``cells``
N_CELLS = 3  # 0, 1 and missing; the same again for a sensor that sources outside the block have switched on


@dataclass(frozen=True, slots=True)
class Chains:
    """The probabilities of each source to start on or off, and to move from one slot to the next."""

    start: NDArray[np.float64]  # (n_sources, 2)
    move: NDArray[np.float64]  # (n_sources, 2, 2): before, after

    @staticmethod
    def of(probability: NDArray[np.float64], persistence: NDArray[np.float64]) -> Chains:
        """Stationary chains that are on with ``probability``, for ``persistence`` slots on average at a time."""
        stop = 1 / persistence
        with np.errstate(divide="ignore", invalid="ignore"):
            begin = np.minimum(1.0, np.where(probability < 1, probability * stop / (1 - probability), 1.0))
        stop = np.where(probability < 1, stop, 0.0)
        start = np.stack([1 - probability, probability], axis=1)
        return Chains(start, np.stack([1 - begin, begin, stop, 1 - stop], axis=1).reshape(-1, 2, 2))

    def pick(self, sources: NDArray[np.int64]) -> Chains:
        """The chains of these sources."""
        return Chains(self.start[sources], self.move[sources])

    def cost(self, activity: NDArray[np.bool_]) -> float:
        """``-log`` of the probability of this course of the sources."""
        if not len(activity):
            return 0.0
        state, each = activity.astype(np.intp), np.arange(activity.shape[1])
        with np.errstate(divide="ignore"):
            first, moves = -np.log(self.start[each, state[0]]), -np.log(self.move[each, state[:-1], state[1:]])
        return float(first.sum() + moves.sum())


def checked_persistence(persistence: ArrayLike, probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean number of slots per stay, one per source; refuses what no chain with that probability can have."""
    stay = np.asarray(persistence, dtype=float)
    shaped = stay.shape in ((), probability.shape)
    if not shaped or not ((stay >= 1) & (np.isfinite(stay) | (probability == 1))).all():  # always on: for ever
        raise SettingError(
            "persistence is the mean number of slots that a source stays on: one number from 1 up, or one per source"
        )
    stay = np.broadcast_to(stay, probability.shape)
    moving = probability < 1
    short = np.flatnonzero(moving & (probability > (1 + ROUNDING) * (1 - probability) * np.where(moving, stay, 1.0)))
    if short.size:
        source = short[0]
        raise SettingError(
            f"a source that is on with probability {probability[source]:g} cannot have stays of {stay[source]:g} "
            "slots; raise persistence to at least p / (1 - p)"
        )
    return stay


class ChainBlock:
    """Some sources of a group, solved together while the others are given."""

    def __init__(self, group: Group, sources: NDArray[np.int64]) -> None:
        self.sources = sources  # numbers in the group
        self.sensors = np.flatnonzero(group.mixing[:, sources].any(axis=1))
        mixing = group.mixing[self.sensors]
        self.by_own = mixing[:, sources]
        self.reach = self.by_own.astype(np.int64) @ (1 << np.arange(sources.size))
        self.neighbours = np.setdiff1d(np.flatnonzero(mixing.any(axis=0)), sources)
        self.by_neighbours = mixing[:, self.neighbours]
        penalty = group.penalty[self.sensors]
        self.penalty = np.concatenate([penalty, penalty[:, :, [1, 1]]], axis=1)

    def cells(self, cells: NDArray[np.uint8], activity: NDArray[np.bool_]) -> Shown:
        """What the sensors of the block showed, and whether sources outside the block switch them on anyway."""
        covered = activity[:, self.neighbours] @ self.by_neighbours.T  # on booleans, @ is exactly OR over ANDs
        return cells[:, self.sensors] + N_CELLS * covered.astype(np.uint8)

    def cheapest(self, cells: Shown, chains: Chains) -> NDArray[np.bool_]:
        """The likeliest course of the block's sources through all slots: (n_slots, n_sources)."""
        with np.errstate(divide="ignore"):
            start, move = -np.log(chains.start), -np.log(chains.move)
        path = self._path(cells, _over_states(start), move)
        return (path[:, None] >> np.arange(self.sources.size) & 1).astype(bool)

    def _path(self, cells: Shown, cost: NDArray[np.float64], move: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cheapest path of states: all stretches forwards, then each once more, from the last, to trace it back."""
        starts = range(0, len(cells), STRETCH)
        came_from = np.empty((STRETCH, cost.size), np.uint16)
        known = []
        for first in starts:
            known.append(cost.copy())
            self._through(cells, first, move, cost, came_from)
        path, state = np.empty(len(cells), np.int64), int(cost.argmin())
        for first in reversed(starts):
            self._through(cells, first, move, known.pop(), came_from)
            state = trace_back(came_from, state, path[first : first + STRETCH])
        return path

    def _through(
        self,
        cells: Shown,
        first: int,
        move: NDArray[np.float64],
        cost: NDArray[np.float64],
        came_from: NDArray[np.uint16],
    ) -> None:
        """Carry the costs through one stretch; no source moves on the way into the very first slot."""
        part, standing = cells[first : first + STRETCH], 1 if first == 0 else 0
        still = np.where(np.eye(2, dtype=bool), 0.0, np.inf)[None].repeat(len(move), axis=0)
        cheapest_moves(part[:standing], self.reach, self.penalty, still, cost, came_from[:standing])
        cheapest_moves(part[standing:], self.reach, self.penalty, move, cost, came_from[standing:])

    def cost(self, cells: Shown, activity: NDArray[np.bool_], chains: Chains) -> float:
        """``-log`` of the probability of this course of the block's sources, and of the cells given it."""
        return chains.cost(activity) + float(shown_cost(self.penalty, self.by_own, activity, cells).sum())

    def moves(self, cells: Shown, chains: Chains, parts: list[slice] | None = None) -> NDArray[np.float64]:
        """How often each source of the block is expected to make each move, over separate parts of the slots."""
        counts, (kind, shown) = np.zeros(chains.move.shape), self._shown(cells)
        start = _probability_of_states(chains)
        for part in [slice(None)] if parts is None else parts:
            expected_moves(kind[part], shown, start, chains.move, counts)
        return counts

    def gain_of_last(self, cells: NDArray[np.uint8], chains: Chains) -> float:
        """By how much the log-likelihood of the cells rises when the block's last source joins the others."""
        kind, shown = self._shown(cells)
        others = chains.pick(np.arange(self.sources.size - 1))
        without = np.ascontiguousarray(shown[:, : shown.shape[1] // 2])  # the states in which the last bit is not set
        alone = log_probability(kind, without, _probability_of_states(others), others.move)
        return log_probability(kind, shown, _probability_of_states(chains), chains.move) - alone

    def _shown(self, cells: Shown) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The kind of each slot, and the probability of each kind in every state, relative to the likeliest state."""
        first, kind = _distinct(cells)
        on = (self.reach[:, None] & np.arange(1 << self.sources.size)) > 0
        cost = np.zeros((first.size, on.shape[1]))
        for sensor, penalty in enumerate(self.penalty):
            cost += penalty[cells[first, sensor]][:, on[sensor].astype(np.intp)]
        cost -= cost.min(axis=1, keepdims=True)
        return kind, np.maximum(np.exp(-cost), LEAST_SHARE)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Slots by what their sensors showed and what the sources outside the block did."""

    kind: NDArray[np.int64]  # (n_slots,)
    cost: NDArray[np.float64]  # (n_kinds, 2^n_sources), of every state of the block's sources

    def __len__(self) -> int:
        return self.kind.size


class LossyChainBlock(ChainBlock):
    """Some sources whose edges may fail: only what a slot costs in a state changes."""

    def __init__(self, group: Group, sources: NDArray[np.int64]) -> None:
        super().__init__(group, sources)
        assert group.reach is not None
        own, self.neighbour_reach = (group.reach[np.ix_(self.sensors, of)] for of in (sources, self.neighbours))
        states = (np.arange(1 << sources.size)[:, None] >> np.arange(sources.size) & 1).astype(bool)
        self.silent = silent_share(own, states)

    def cells(self, cells: NDArray[np.uint8], activity: NDArray[np.bool_]) -> Shown:
        """The kind of each slot, and what each kind costs in every state of the block."""
        shown, near = cells[:, self.sensors], activity[:, self.neighbours]
        first, kind = _distinct(np.ascontiguousarray(np.hstack([shown, near.astype(np.uint8)])))
        outside = silent_share(self.neighbour_reach, near[first])
        cost = [mixed_cost(self.penalty, outside * inside, shown[first]).sum(axis=1) for inside in self.silent]
        return Kinds(kind, np.stack(cost, axis=1))

    def cost(self, cells: Shown, activity: NDArray[np.bool_], chains: Chains) -> float:
        """``-log`` of the probability of this course of the block's sources, and of the cells given it."""
        state = activity @ (1 << np.arange(self.sources.size))
        return chains.cost(activity) + float(cells.cost[cells.kind, state].sum())

    def _through(
        self,
        cells: Shown,
        first: int,
        move: NDArray[np.float64],
        cost: NDArray[np.float64],
        came_from: NDArray[np.uint16],
    ) -> None:
        kind, standing = cells.kind[first : first + STRETCH], 1 if first == 0 else 0
        still = np.where(np.eye(2, dtype=bool), 0.0, np.inf)[None].repeat(len(move), axis=0)
        cheapest_moves_of_kinds(kind[:standing], cells.cost, still, cost, came_from[:standing])
        cheapest_moves_of_kinds(kind[standing:], cells.cost, move, cost, came_from[standing:])

    def _shown(self, cells: Shown) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        cost = cells.cost - cells.cost.min(axis=1, keepdims=True)
        return cells.kind, np.maximum(np.exp(-cost), LEAST_SHARE)


def block_of(group: Group, sources: NDArray[np.int64]) -> ChainBlock:
    """Some sources of a group, whatever its edges are."""
    return ChainBlock(group, sources) if group.reach is None else LossyChainBlock(group, sources)


def _distinct(cells: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first row of each distinct row of cells, and for every row the number of its distinct row."""
    keys = np.pad(cells, ((0, 0), (0, BYTES_PER_WORD - cells.shape[1] % BYTES_PER_WORD))).view(np.uint64)
    first, number = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    return first[: group_equal(keys, first, number)], number


def _probability_of_states(chains: Chains) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.exp(-_over_states(-np.log(chains.start)))


def _over_states(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Costs of single sources, off and on, added up for every set of them: (n_sources, 2) to (2^n_sources,)."""
    total = np.zeros(1)
    for off, on in cost:
        total = np.concatenate([total + off, total + on])
    return total
