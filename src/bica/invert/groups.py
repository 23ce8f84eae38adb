"""The parts of a model that can be decoded separately, with the costs that every decoder minimises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import MISSING
from bica.kernels.bits import Words, unpacked
from bica.model.noise import connected_groups
from bica.model.or_mixture import OrMixture


def silent_share(reach: NDArray[np.float64], activity: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The probability that all active sources of a sensor fail to reach it, for each row of ``activity`` and sensor.

    >>> silent_share(np.array([[0.5, 1.0], [0.0, 0.9]]), np.array([[True, False], [False, True]])).round(3)
    array([[0.5, 1. ],
           [0. , 0.1]])
    """
    sure = reach >= 1
    log_lost = np.log1p(-np.where(sure, 0.0, reach))
    share: NDArray[np.float64] = np.where(activity @ sure.T, 0.0, np.exp(activity.astype(float) @ log_lost.T))
    return share


def shown_cost(
    penalty: NDArray[np.float64],
    mixing: NDArray[np.bool_],
    activity: NDArray[np.bool_],
    cells: NDArray[np.uint8],
    reach: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """``-log`` of the probability of each row of cells, given its row of ``activity``; infinite where impossible.

    ``penalty`` is (n_sensors, n_kinds, 2), by the cell shown and the sensor's true state; edges are sure without
    ``reach``.

    >>> penalty = np.array([[[0.0, 3.0], [2.0, 0.0]]])
    >>> shown_cost(penalty, np.array([[True]]), np.array([[False], [True]]), np.array([[1], [1]], dtype=np.uint8))
    array([2., 0.])
    """
    if reach is not None:
        mixed: NDArray[np.float64] = mixed_cost(penalty, silent_share(reach, activity), cells).sum(axis=1)
        return mixed
    state = activity @ mixing.T  # on booleans, @ is exactly OR over ANDs
    cost: NDArray[np.float64] = penalty[np.arange(len(mixing)), cells, state.astype(np.intp)].sum(axis=1)
    return cost


def mixed_cost(
    penalty: NDArray[np.float64], share: NDArray[np.float64], cells: NDArray[np.uint8]
) -> NDArray[np.float64]:
    """``-log`` of the probability of each cell, with its sensor quiet at probability ``share``: (n_rows, n_sensors)."""
    weight = np.exp(-penalty)[np.arange(len(penalty)), cells]
    with np.errstate(divide="ignore"):
        cost: NDArray[np.float64] = -np.log(share * weight[..., 0] + (1 - share) * weight[..., 1])
    return cost + 0.0  # never -0.0


@dataclass(frozen=True, slots=True)
class Solution:
    """What every solver returns: a cheapest activity behind each row of a group."""

    active: Words  # (n_rows, n_words), bit j is the group's source j; anything where the row is impossible
    cost: NDArray[np.float64]  # (n_rows,), infinite where no activity is possible, or none was found
    gap: NDArray[np.float64]  # (n_rows,), how much cheaper an unknown activity could still be; 0 if proven


@dataclass(frozen=True, slots=True)
class Group:
    """Sensors and sources that share nothing with the rest; sources that never change are left out.

    The cost of an activity behind a row is the sum of the costs of its active sources and of the penalties of the row's
    cells. A penalty is infinite where a sensor never errs that way.
    """

    sensors: NDArray[np.int64]  # numbers in the model
    sources: NDArray[np.int64]  # numbers in the model, rising
    mixing: NDArray[np.bool_]  # (n_sensors, n_sources) of the group
    source_cost: NDArray[np.float64]  # (n_sources,), log((1 - p) / p)
    penalty: NDArray[np.float64]  # (n_sensors, 3, 2), by the cell shown (0, 1 or missing) and the sensor's true state
    reach: NDArray[np.float64] | None = None  # (n_sensors, n_sources) of the group; None where all its edges are sure

    def solution(self, active: Words, cells: NDArray[np.uint8]) -> Solution:
        """These activities, proven by their solver, with their cost for each row of cells."""
        activity = unpacked(active, self.sources.size)
        cost: NDArray[np.float64] = activity @ self.source_cost
        if self.reach is not None:
            cost += shown_cost(self.penalty, self.mixing, activity, cells, self.reach)
            return Solution(active, cost, np.zeros(len(cells)))
        for reached_by, penalty, shown in zip(self.mixing, self.penalty, cells.T, strict=True):
            state = activity @ reached_by  # on booleans, @ is exactly OR over ANDs
            cost += penalty[shown, state.astype(np.intp)]
        return Solution(active, cost, np.zeros(len(cells)))

    def n_wrong(self, active: Words, cells: NDArray[np.uint8]) -> NDArray[np.int64]:
        """How many cells of each row its activity cannot produce."""
        activity = unpacked(active, self.sources.size)
        if self.reach is not None:
            wrong: NDArray[np.int64] = np.isinf(
                mixed_cost(self.penalty, silent_share(self.reach, activity), cells)
            ).sum(axis=1)
            return wrong
        state = activity @ self.mixing.T
        chosen = self.penalty[np.arange(self.sensors.size), cells, state.astype(np.intp)]
        n_wrong: NDArray[np.int64] = np.isinf(chosen).sum(axis=1)
        return n_wrong

    def forgiving(self) -> Group:
        """The same group with a finite penalty for impossible cells, larger than all other costs together.

        Its cheapest activity has the fewest impossible cells, and is the most probable of those that have as few.
        """
        return replace(self, penalty=np.where(np.isinf(self.penalty), self.prohibitive(), self.penalty))

    def prohibitive(self) -> float:
        """A penalty larger than all possible costs together."""
        possible = np.where(np.isinf(self.penalty), 0.0, self.penalty).max(axis=(1, 2))
        if self.reach is not None:  # a cell may also depend on the weakest edge alone, or on all edges failing
            sure = self.reach >= 1
            rarest = -np.log(np.where(self.mixing, self.reach, 1.0).min(axis=1, initial=1.0))
            possible = possible + rarest - np.log1p(-np.where(sure, 0.0, self.reach)).sum(axis=1)
        return float(1 + np.abs(self.source_cost).sum() + possible.sum())


def groups_of(model: OrMixture) -> Iterator[Group]:
    """The groups of a model; the last one holds the sensors and sources that nothing connects.

    Sensors under a source that is always on cannot be changed by the others.
    """
    penalty = penalties(*model.noise.rates(model.n_sensors))
    if model.lossy_reach is not None:
        penalty[:, :, 0] = _switched_at_times(penalty, model.lossy_reach[:, model.probability == 1])
    sure = model.mixing if model.lossy_reach is None else model.lossy_reach >= 1
    covered = np.flatnonzero(sure[:, model.probability == 1].any(axis=1))
    penalty[covered, :, 0] = penalty[covered, :, 1]
    mixing = model.mixing & changing(model)
    mixing[covered] = False
    reach = None if model.lossy_reach is None else np.where(mixing, model.lossy_reach, 0.0)
    with np.errstate(divide="ignore"):
        source_cost = np.log1p(-model.probability) - np.log(model.probability)
    settled = []
    for sensors, sources in connected_groups(mixing):
        if sources.size:
            part = np.ix_(sensors, sources)
            of_part = None if reach is None or (reach[part] == mixing[part]).all() else reach[part]
            yield Group(sensors, sources, mixing[part], source_cost[sources], penalty[sensors], of_part)
        else:
            settled.extend(sensors.tolist())
    unreached = np.flatnonzero(changing(model) & ~mixing.any(axis=0))
    alone = np.array(settled, dtype=np.int64)
    yield Group(alone, unreached, mixing[np.ix_(alone, unreached)], source_cost[unreached], penalty[alone])


def _switched_at_times(penalty: NDArray[np.float64], reach: NDArray[np.float64]) -> NDArray[np.float64]:
    """The penalties of sensors that sources which are always on switch on at times: (n_sensors, n_kinds)."""
    quiet = np.prod(1 - reach, axis=1)[:, None]
    with np.errstate(divide="ignore"):
        mixed = np.abs(np.log(quiet * np.exp(-penalty[:, :, 0]) + (1 - quiet) * np.exp(-penalty[:, :, 1])))
    return np.where(quiet < 1, mixed, penalty[:, :, 0])


def changing(model: OrMixture) -> NDArray[np.bool_]:
    """Which sources are neither always on nor always off."""
    return (model.probability > 0) & (model.probability < 1)


def penalties(false_alarm: NDArray[np.float64], miss: NDArray[np.float64]) -> NDArray[np.float64]:
    """``-log`` of the probability of each cell (0, 1 or missing) given the sensor's true state: (n_sensors, 3, 2).

    >>> penalties(np.array([0.0]), np.array([0.5])).round(2)[0]
    array([[0.  , 0.69],
           [ inf, 0.69],
           [0.  , 0.  ]])
    """
    probability = np.ones((false_alarm.size, 3, 2))
    probability[:, 0], probability[:, 1] = np.stack([1 - false_alarm, miss], 1), np.stack([false_alarm, 1 - miss], 1)
    assert MISSING == 2
    with np.errstate(divide="ignore"):
        return np.abs(np.log(probability))  # abs: a probability of 1 costs 0, not -0
