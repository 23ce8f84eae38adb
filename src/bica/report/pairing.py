"""What stands beside what in a picture: a found source beside a true one, and those with much in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import svds

from bica.metrics.matching import aligned, matching_cost
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True)
class Pair:
    """A true source and the found one that stands for it; either may be missing."""

    true: int | None
    found: int | None
    exact: bool  # both reach the same sensors


def paired_sources(found: OrMixture, truth: OrMixture) -> list[Pair]:
    """True sources in their order, then the found ones that stand for none; a pair shares at least one sensor.

    Equal sources are paired first, then those with the fewest wrong cells. The published matching (``match_columns``)
    prefers to leave over narrow sources and may pair a true source with a wide wrong one although an equal one exists.

    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> paired_sources(truth.pick([1]), truth)
    [Pair(true=0, found=None, exact=False), Pair(true=1, found=0, exact=True)]
    """
    ordered = aligned(found, truth)
    equal = _equal_sources(ordered, truth)
    partner = equal | _similar_sources(ordered, truth, equal)
    pairs = [Pair(j, partner.get(j), j in equal) for j in range(truth.n_sources)]
    return pairs + [Pair(None, k, False) for k in range(ordered.n_sources) if k not in set(partner.values())]


def _equal_sources(found: OrMixture, truth: OrMixture) -> dict[int, int]:
    """The found source with exactly the sensors of each true one, where there is one."""
    place = {column.tobytes(): k for k, column in enumerate(found.columns)}
    wanted = [column.tobytes() for column in truth.columns]
    return {j: place[column] for j, column in enumerate(wanted) if column in place}


def _similar_sources(found: OrMixture, truth: OrMixture, equal: dict[int, int]) -> dict[int, int]:
    """Pairs of the sources without an equal one, with the fewest wrong cells in all; they share at least one sensor."""
    true_left = np.array([j for j in range(truth.n_sources) if j not in equal], dtype=int)
    found_left = np.array([k for k in range(found.n_sources) if k not in set(equal.values())], dtype=int)
    cost = matching_cost(found.mixing[:, found_left], truth.mixing[:, true_left])[: true_left.size, : found_left.size]
    chosen = zip(*linear_sum_assignment(cost), strict=True)
    pairs = [(int(true_left[j]), int(found_left[k])) for j, k in chosen]
    return {j: k for j, k in pairs if (found.mixing[:, k] & truth.mixing[:, j]).any()}


DENSE = 64  # lines of a matrix up to which all its singular vectors are found
ROUGHLY = 1e-4  # is near enough for an order


def matrix_order(mixing: NDArray[np.bool_]) -> tuple[list[int], list[int]]:
    """An order of the sources and one of the sensors in which those that have much in common are neighbours.

    Groups that share nothing come one after the other, the largest first. Inside a group both follow the second
    singular vectors of the matrix, scaled to equal sums: neighbours there are reached by similar sources.

    >>> matrix_order(np.array([[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0]], bool))
    ([2, 0, 3, 1], [2, 0, 1, 3])
    """
    n_sensors, n_sources = mixing.shape
    rows, columns = np.nonzero(mixing)
    graph = coo_array((np.ones(rows.size), (rows, n_sensors + columns)), shape=(n_sensors + n_sources,) * 2)
    n_groups, group = connected_components(graph, directed=False)
    size = np.bincount(group, minlength=n_groups)
    sources: list[int] = []
    sensors: list[int] = []
    for number in np.lexsort([np.arange(n_groups), -size]):
        ours = np.flatnonzero(group == number)
        left, right = ours[ours < n_sensors], ours[ours >= n_sensors] - n_sensors
        by_sensor, by_source = _seriated(mixing[np.ix_(left, right)])
        sensors += left[by_sensor].tolist()
        sources += right[by_source].tolist()
    return sources, sensors


def _seriated(part: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if min(part.shape) < 2:
        return np.arange(part.shape[0]), np.arange(part.shape[1])
    scale = [1 / np.sqrt(np.maximum(part.sum(axis=axis), 1)) for axis in (1, 0)]
    along = [factor * vector for factor, vector in zip(scale, _second_vectors(part, *scale), strict=True)]
    sign = np.sign(along[0][np.argmax(np.abs(along[0]).round(9))]) or 1.0
    return tuple(np.argsort((sign * values).round(9), kind="stable") for values in along)  # type: ignore[return-value]


def _second_vectors(part: NDArray[np.bool_], *scale: NDArray[np.float64]) -> tuple[Any, Any]:
    scaled = scale[0][:, None] * part * scale[1]
    if min(part.shape) <= DENSE:
        left, _, right = np.linalg.svd(scaled, full_matrices=False)
        return left[:, 1], right[1]
    start = np.cos(np.arange(min(part.shape)))  # the same for the same model
    left, values, right = svds(csr_array(scaled), k=2, v0=start, tol=ROUGHLY, maxiter=50 * min(part.shape))
    second = int(np.argmin(values))
    return left[:, second], right[second]
