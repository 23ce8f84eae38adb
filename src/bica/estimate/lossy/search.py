"""The moves of the search for lossy edges: drop and add edges; delete, merge and add sources, while the score rises."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.lossy.surface import LossyPoint, LossySurface, Matrix, Vector
from bica.kernels.lattice.lossy import NEARLY_NONE
from bica.progress import go_on

BETTER = 1e-3  # nats: a smaller rise of the score counts as none

FAINT_REACH, FAINT_ROWS = 0.02, 1.5  # an edge below, or that switches on fewer rows, is dropped at first sight

# edges
CLEAR = 0.4  # of its cost: an edge that loses less goes together with others
DOUBT = 4.0  # nats: an edge whose loss exceeds its cost by more is not tried
SINGLE_TRIES = 3

# sources
DELETIONS, MERGES, REFITS = 4, 5, 4  # looked at closely, and refitted
DELETE_STEPS, MERGE_STEPS = 10, 40  # two sure pairs are far from the three sensors that they may be
FAR, HOPELESS = 400.0, 25.0  # nats below
ALIKE = 0.35  # cosine of two rows of reach that may be one source
LEFT_TO_LEAKS = 0.3  # of what a source explained

# births and new edges
BIRTH_SPECTRUM, BIRTH_RATE, BIRTHS, BIRTH_REFITS = 40, 1e-3, 3, 2
SPARED_LEAKS = 0.7  # of the leaks, so that some of the ones are left to explain
BORN, BORN_INSIDE, BORN_OUTSIDE = 0.03, 0.7, 0.05
FIRST_BIRTH_STEPS, BIRTH_STEPS = 40, 60
BIRTH_SETS, BIRTH_TOLERANCE = 60, 1e-2  # sets that are looked at, and nats at which the steps end
NEW_REACH, NEW_EDGES, PROMISING = 0.1, 4, 2.0
NO_LONGER_SURE = 0.8  # what is left of the reach of a pair that gets a third sensor
EDGE_STEPS = 5


@dataclass(frozen=True, slots=True, eq=False)
class LossyTask:
    """A surface, what a source of 0, 1, ... sensors must gain, and what the user knows."""

    surface: LossySurface
    cost: Vector  # (n_sensors + 1,)
    known: LossyPoint  # the known sources, which come first and keep their edges
    forbidden: NDArray[np.int64]  # bit sets that no other source may contain

    def score(self, point: LossyPoint) -> float:
        """The log-likelihood minus the costs."""
        return point.log_likelihood - self.cost_of(point)

    def cost_of(self, point: LossyPoint) -> float:
        """What the unknown sources cost."""
        return float(self.cost[point.sizes[self.known.n_modes :]].sum())

    def refit(self, start: LossyPoint, bar: float = -np.inf) -> LossyPoint:
        """The best numbers, given up where the score cannot reach ``bar``."""
        go_on()
        return self.surface.refit(start, needed=bar + self.cost_of(start))

    def obeying(self, point: LossyPoint) -> LossyPoint:
        """Without the weakest edge of every forbidden set in an unknown source."""
        reach = point.reach.copy()
        for names in self.forbidden:
            inside = np.flatnonzero((int(names) >> np.arange(reach.shape[1])) & 1)
            for mode in range(self.known.n_modes, point.n_modes):
                if (reach[mode, inside] > 0).all():
                    reach[mode, inside[reach[mode, inside].argmin()]] = 0.0
        return replace(point, reach=reach)

    def allows(self, mode: int, sensors: NDArray[np.bool_]) -> bool:
        """Whether this mode may have these edges."""
        whole = int((1 << np.flatnonzero(sensors)).sum())
        return mode >= self.known.n_modes and not any(whole & int(names) == int(names) for names in self.forbidden)


def without_faint(task: LossyTask, point: LossyPoint) -> LossyPoint:
    """Without edges that are hardly there, and without sources of fewer than two sensors; known ones stay."""
    n_known = task.known.n_modes
    faint = (point.reach < FAINT_REACH) | (
        point.probability[:, None] * point.reach * task.surface.cells.n_samples < FAINT_ROWS
    )
    faint[:n_known] = False
    reach = np.where(faint, 0.0, point.reach)
    kept = (reach > 0).sum(axis=1) > 1
    kept[:n_known] = True
    return replace(point, reach=reach).pick(kept)


def prune(task: LossyTask, point: LossyPoint, only: Iterable[int] | None = None) -> LossyPoint:
    """Drop edges while the score rises: the curvature says which, several at first, and a refit decides."""
    refused: set[tuple[bytes, int]] = set()
    score = task.score(point)
    while True:
        covariance = point.covariance()
        modes, sensors, promise, saved = _edges_to_drop(task, point, covariance, refused, only)
        better = None
        clear = _one_per_source(modes, promise > (1.0 - CLEAR) * saved, max(1, int(point.sizes.sum()) // 8))
        for chosen, start in _starts_without(task, point, modes, sensors, covariance, clear):
            tried = task.refit(start, score)
            if task.score(tried) > score + BETTER:
                better = tried
                break
            if chosen.size == 1:
                refused.add((_support(point, int(modes[chosen[0]])), int(sensors[chosen[0]])))
        if better is None:
            return point
        point, score = better, task.score(better)


def _starts_without(
    task: LossyTask,
    point: LossyPoint,
    modes: NDArray[np.int64],
    sensors: NDArray[np.int64],
    covariance: Matrix,
    clear: NDArray[np.int64],
) -> list[tuple[NDArray[np.int64], LossyPoint]]:
    """Where to climb from without some edges: first without all clear ones, then the best without one."""
    singles = [np.array([e]) for e in range(modes.size)]
    starts = [(one, _nearest_without(task, point, modes[one], sensors[one], covariance)) for one in singles]
    starts.sort(key=lambda pair: -task.score(pair[1]))
    several = [clear] if clear.size > 1 else []
    together = [(e, _nearest_without(task, point, modes[e], sensors[e], covariance)) for e in several]
    return together + starts[:SINGLE_TRIES]


def _nearest_without(
    task: LossyTask, point: LossyPoint, modes: NDArray[np.int64], sensors: NDArray[np.int64], covariance: Matrix
) -> LossyPoint:
    """Without some edges: all else as it is or where the curvature puts it, whichever is higher.

    Along a direction in which the rows say next to nothing, the curvature leads astray.
    """
    starts = [point.without_edges(modes, sensors, shift) for shift in (covariance, None)]
    starts = [replace(start, log_likelihood=task.surface.height(start)) for start in starts]
    return max(starts, key=lambda start: start.log_likelihood)


def _support(point: LossyPoint, mode: int) -> bytes:
    return bytes(point.reach[mode] > 0)


def _edges_to_drop(
    task: LossyTask,
    point: LossyPoint,
    covariance: Matrix,
    refused: set[tuple[bytes, int]],
    only: Iterable[int] | None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Vector, Vector]:
    """Edges that may not pay, the most promising first: mode, sensor, what dropping promises, and what it saves."""
    modes, sensors = np.nonzero(point.reach > 0)
    sizes = point.sizes[modes]
    variance = np.diag(covariance)[point.n_modes : -point.leak.size]
    loss = np.where(variance > 0, 0.5 * point.reach[modes, sensors] ** 2 / np.where(variance > 0, variance, 1.0), 0.0)
    saved = task.cost[sizes] - task.cost[np.maximum(sizes - 1, 0)]
    promise = saved - loss
    eligible = (modes >= task.known.n_modes) & (sizes > 2) & (promise > -DOUBT)
    if only is not None:
        eligible &= np.isin(modes, list(only))
    places = [e for e in np.flatnonzero(eligible) if (_support(point, int(modes[e])), int(sensors[e])) not in refused]
    order = np.array(sorted(places, key=lambda e: -promise[e]), dtype=np.int64)
    return modes[order], sensors[order], promise[order], saved[order]


def _one_per_source(modes: NDArray[np.int64], clear: NDArray[np.bool_], at_most: int) -> NDArray[np.int64]:
    first = np.unique(modes, return_index=True)[1]
    return np.array([e for e in np.sort(first) if clear[e]][:at_most], dtype=np.int64)


def without_source(point: LossyPoint, mode: int) -> LossyPoint:
    """Without this source; the leaks take over a part of what it explained."""
    rest = point.pick(np.arange(point.n_modes) != mode)
    left = LEFT_TO_LEAKS * point.probability[mode] * point.reach[mode]
    return replace(rest, leak=np.clip(1.0 - (1.0 - point.leak) * (1.0 - left), NEARLY_NONE, 0.9))


def merged(point: LossyPoint, mode: int, into: int) -> LossyPoint:
    """With two sources made one, as often on as both and with their mean reach."""
    probability, reach = point.probability.copy(), point.reach.copy()
    both = probability[mode] + probability[into]
    mean = (probability[into] * reach[into] + probability[mode] * reach[mode]) / both
    reach[into], probability[into] = np.clip(mean, 0.0, 0.97), min(both, 0.9)
    return replace(point, probability=probability, reach=reach).pick(np.arange(point.n_modes) != mode)


def shrink(task: LossyTask, point: LossyPoint) -> LossyPoint:
    """Delete and merge sources while the score rises."""
    score = task.score(point)
    while point.n_modes > task.known.n_modes:
        better = _smaller(task, point, score)
        if better is None:
            return point
        point, score = better, task.score(better)
    return point


def _smaller(task: LossyTask, point: LossyPoint, score: float) -> LossyPoint | None:
    """The first of the most promising deletions and merges that raises the score."""
    tried = _deletions(task, point) + _merges(task, point)
    tried.sort(key=lambda found: -task.score(found[0]))
    for candidate, into in tried[:REFITS]:
        if task.score(candidate) < score - HOPELESS:
            return None
        smaller = task.refit(candidate)
        smaller = prune(task, smaller, None if into is None else {into})
        if task.score(smaller) > score + BETTER:
            return smaller
    return None


def _deletions(task: LossyTask, point: LossyPoint) -> list[tuple[LossyPoint, int | None]]:
    found = []
    for mode in range(task.known.n_modes, point.n_modes):
        rest = without_source(point, mode)
        found.append(replace(rest, log_likelihood=task.surface.height(rest)))
    found.sort(key=lambda rest: -rest.log_likelihood)
    near = [rest for rest in found[:DELETIONS] if rest.log_likelihood > point.log_likelihood - FAR]
    return [(task.surface.em(rest, DELETE_STEPS), None) for rest in near]


def _merges(task: LossyTask, point: LossyPoint) -> list[tuple[LossyPoint, int | None]]:
    length = np.linalg.norm(point.reach, axis=1)
    cosine = point.reach @ point.reach.T / np.outer(length, length)
    found = []
    for mode, into in zip(*np.nonzero(cosine > ALIKE), strict=True):
        rarer = (point.probability[mode], mode) < (point.probability[into], into)
        if mode < task.known.n_modes or into < task.known.n_modes or mode == into or not rarer:
            continue
        one = task.obeying(merged(point, int(mode), int(into)))
        place = int(into - (mode < into))
        found.append((replace(one, log_likelihood=task.surface.height(one)), place))
    found.sort(key=lambda pair: -pair[0].log_likelihood)
    return [(task.surface.em(one, MERGE_STEPS), into) for one, into in found[:MERGES]]


def give_birth(task: LossyTask, point: LossyPoint) -> LossyPoint | None:
    """With one more source where the rows leave most to sure sources beside the present ones, if that pays."""
    score, n_sensors = task.score(point), point.leak.size
    spared = replace(point, leak=np.maximum(SPARED_LEAKS * point.leak, NEARLY_NONE))
    rate = task.surface.spectrum(spared, BIRTH_RATE, BIRTH_SPECTRUM)
    size = np.bitwise_count(np.arange(rate.size))
    born = []
    for chosen in _apart(np.argsort(-rate * np.maximum(size - 1.0, 0.0), kind="stable")[:BIRTH_SETS], BIRTHS):
        inside = (chosen >> np.arange(n_sensors)) & 1 == 1
        more = task.obeying(spared.plus(BORN, np.where(inside, BORN_INSIDE, BORN_OUTSIDE)))
        born.append(task.surface.em(more, FIRST_BIRTH_STEPS))
    born.sort(key=lambda more: -more.log_likelihood)
    for more in born[:BIRTH_REFITS]:
        if more.log_likelihood < score:
            continue
        more = task.refit(without_faint(task, task.surface.em(more, BIRTH_STEPS, BIRTH_TOLERANCE)))
        more = prune(task, more)
        if task.score(more) > score + BETTER:
            return more
    return None


def _apart(sets: NDArray[np.int64], n_most: int) -> list[int]:
    """The first sets that differ from each other by more than one sensor."""
    chosen: list[int] = []
    for one in sets.tolist():
        if len(chosen) < n_most and all((one ^ other).bit_count() > 1 for other in chosen):
            chosen.append(one)
    return chosen


def add_edges(task: LossyTask, point: LossyPoint) -> LossyPoint:
    """With more edges, the best by the score test first, while they pay."""
    score = task.score(point)
    while True:
        better = None
        for mode, sensor in _promising_edges(task, point):
            reach = point.reach.copy()
            reach[mode, sensor] = NEW_REACH
            if (reach[mode] > 0).sum() == 3:  # a pair is stored with sure edges, which a third sensor would contradict
                reach[mode] *= NO_LONGER_SURE
            more = replace(point, reach=reach)
            more = task.refit(task.surface.em(more, EDGE_STEPS), score)
            if task.score(more) > score + BETTER:
                better = more
                break
        if better is None:
            return point
        point, score = better, task.score(better)


def _promising_edges(task: LossyTask, point: LossyPoint) -> list[tuple[int, int]]:
    every = replace(point, reach=np.where(point.reach > 0, point.reach, 1e-9))
    _, slope, information = task.surface.slopes(every)
    part = slice(point.n_modes, -point.leak.size)
    slope, curvature = slope[part].reshape(point.reach.shape), np.diag(information)[part].reshape(point.reach.shape)
    gain = np.where((slope > 0) & (point.reach == 0), 0.5 * slope**2 / np.maximum(curvature, 1e-9), 0.0)
    gain[: task.known.n_modes] = 0.0
    found = []
    for place in np.argsort(-gain, axis=None, kind="stable")[:NEW_EDGES]:
        mode, sensor = divmod(int(place), point.leak.size)
        wider = point.reach[mode] > 0
        wider[sensor] = True
        if gain[mode, sensor] > PROMISING and task.allows(mode, wider):
            found.append((mode, sensor))
    return found
