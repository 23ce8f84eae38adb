"""Sums over all activities of a group of any size, one source at a time.

After some sources, all that matters of them is which sensors they switched on, and only as long as a later source may
reach the same sensors. So the work grows with the number of different sets of such *open* sensors: at most 2 to the
number of open sensors, at most 2 to the number of sources, and often far less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import MISSING
from bica.invert.groups import Group
from bica.kernels.bits import Words, group_equal, packed
from bica.kernels.decoding.table import add_probabilities, branch, look_ahead, look_back

Logs = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Step:
    """One source, with the sensors that are settled after it and those that later sources may still reach."""

    source: int
    closing: NDArray[np.int64]  # sensors that no later source reaches
    still_open: NDArray[np.int64]
    prospect: Logs  # (n_open, 3, 2): the log of the expected probability of a cell, given the sensor's state so far


@dataclass(frozen=True, slots=True)
class Layer:
    """The states before a step, and where the step leads: two branches per state, source off and source on."""

    states: Words
    gain: Logs  # (2 n_states,)
    target: NDArray[np.int64]  # (2 n_states,), the number of the state after the step; -1 where none


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums over all activities, or over as many as were kept."""

    log_total: Logs  # (n_rows,), of the odds of all activities, each together with the row
    probability: NDArray[np.float64]  # (n_rows, n_sources), that each source is on; NaN where the row is impossible
    whole: NDArray[np.bool_]  # (n_rows,), whether nothing was left out


class Elimination:
    """The order in which the sources of a group are summed out, and the sums themselves."""

    def __init__(self, group: Group) -> None:
        self.log_probability = -group.penalty
        self.log_odds = -group.source_cost
        self.columns = packed(np.ascontiguousarray(group.mixing.T))
        self.steps = _steps(group)

    def start(self, n_rows: int) -> Words:
        """One state per row: no sensor is on yet."""
        states = np.zeros((n_rows, 1 + self.columns.shape[1]), np.uint64)
        states[:, 0] = np.arange(n_rows)
        return states

    def advance(self, step: Step, states: Words, cells: NDArray[np.uint8]) -> tuple[Layer, Words, Logs]:
        """The step from these states, the states after it, and what their open sensors promise."""
        branches, gain = np.empty((2 * len(states), states.shape[1]), np.uint64), np.empty(2 * len(states))
        odds = float(self.log_odds[step.source])
        branch(states, self.columns[step.source], odds, step.closing, self.log_probability, cells, branches, gain)
        outlook = np.empty(len(branches))
        look_ahead(branches, step.still_open, step.prospect, cells, outlook)
        alive = np.flatnonzero(np.isfinite(gain + outlook))
        first, number = np.empty(alive.size, np.int64), np.empty(alive.size, np.int64)
        first = alive[first[: group_equal(branches[alive], first, number)]]
        target = np.full(len(branches), -1)
        target[alive] = number
        return Layer(states, gain, target), branches[first], outlook[first]

    def n_states(self, at_most: int) -> int | None:
        """How many states all steps have together where every activity is possible; None if more than ``at_most``."""
        cells, states, total = np.full((1, len(self.log_probability)), MISSING, np.uint8), self.start(1), 0
        for step in self.steps:
            _, states, _ = self.advance(step, states, cells)
            total += len(states)
            if total > at_most:
                return None
        return total

    def sums(self, cells: NDArray[np.uint8], width: int | None = None) -> Sums:
        """Sum over all activities behind each row of cells; keep only the ``width`` likeliest states of a row."""
        states, value = self.start(len(cells)), np.zeros(len(cells))
        whole = np.ones(len(cells), dtype=bool)
        layers: list[tuple[Layer, Logs]] = []
        for step in self.steps:
            layer, states, outlook = self.advance(step, states, cells)
            before, value = value, np.empty(len(states))
            add_probabilities(before.repeat(2) + layer.gain, layer.target, value)
            if width is not None and len(states) > width:
                kept = _likeliest(states, value + outlook, width)
                whole[states[~kept, 0].astype(np.int64)] = False
                layer, states, value = _cut(layer, kept), states[kept], value[kept]
            layers.append((layer, before))
        log_total = np.full(len(cells), -np.inf)
        log_total[states[:, 0].astype(np.int64)] = value
        return Sums(log_total, self._shares(layers, len(states), log_total), whole)

    def _shares(self, layers: list[tuple[Layer, Logs]], n_last: int, log_total: Logs) -> NDArray[np.float64]:
        share = np.zeros((self.log_odds.size, log_total.size))
        later = np.zeros(n_last)
        for step, (layer, forward) in zip(reversed(self.steps), reversed(layers), strict=True):
            backward = np.empty(forward.size)
            look_back(layer.states, forward, layer.gain, layer.target, later, log_total, backward, share[step.source])
            later = backward
        share[:, np.isinf(log_total)] = np.nan
        return np.minimum(share.T, 1.0)


def _likeliest(states: Words, rank: Logs, width: int) -> NDArray[np.bool_]:
    """Marks the ``width`` states of highest rank in each row; of equal ones those that were reached first."""
    order = np.lexsort([-rank, states[:, 0]])
    row = states[order, 0]
    place = np.arange(len(order)) - np.searchsorted(row, row)
    kept = np.empty(len(states), dtype=bool)
    kept[order] = place < width
    return kept


def _cut(layer: Layer, kept: NDArray[np.bool_]) -> Layer:
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    target = np.where(layer.target < 0, -1, number[layer.target])
    return Layer(layer.states, layer.gain, target)


def _steps(group: Group) -> list[Step]:
    order = _order(group.mixing)
    log_silence = -np.logaddexp(0.0, -group.source_cost)  # log(1 - p)
    steps = []
    for place, source in enumerate(order):
        later = group.mixing[:, order[place + 1 :]]
        reached, touched = later.any(axis=1), group.mixing[:, order[: place + 1]].any(axis=1)
        closing = np.flatnonzero(group.mixing[:, source] & ~reached)
        still_open = np.flatnonzero(touched & reached)
        silence = later[still_open].astype(float) @ log_silence[order[place + 1 :]]
        steps.append(Step(source, closing, still_open, _prospect(-group.penalty[still_open], silence)))
    return steps


def _prospect(log_probability: Logs, log_silence: Logs) -> Logs:
    """What an open sensor promises: one that is on stays on, one that is off may be switched on by later sources.

    Sensors are treated as independent, which makes it an estimate.
    """
    prospect = log_probability.copy()
    stays, changes = log_silence[:, None], np.log(-np.expm1(log_silence))[:, None]
    prospect[:, :, 0] = np.logaddexp(log_probability[:, :, 0] + stays, log_probability[:, :, 1] + changes)
    return prospect


def _order(mixing: NDArray[np.bool_]) -> list[int]:
    """An order in which few sensors are open at a time: next comes the source that leaves the fewest open."""
    left = list(range(mixing.shape[1]))
    sources_left = mixing.sum(axis=1)
    is_open = np.zeros(len(mixing), dtype=bool)
    order: list[int] = []
    while left:
        columns = mixing[:, left]
        near = np.flatnonzero((columns & is_open[:, None]).any(axis=0)) if order else np.arange(len(left))
        near = near if near.size else np.arange(len(left))
        after = (is_open[:, None] | columns[:, near]) & (sources_left[:, None] > columns[:, near])
        best = left.pop(int(near[after.sum(axis=0).argmin()]))
        sources_left -= mixing[:, best]
        is_open = (is_open | mixing[:, best]) & (sources_left > 0)
        order.append(best)
    return order
