"""Which found source stands for which true one (the paper's structure matching problem), and which are neighbours."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from scipy.sparse import coo_array, csr_array, eye_array, kron, vstack
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import svds

from bica.data.columns import numbered
from bica.errors import BicaError, ModelError
from bica.model.or_mixture import OrMixture


def mixing_pair(found: ArrayLike, truth: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Two mixing matrices of the same sensors, each (n_sensors, its n_sources)."""
    left, right = binary_table(found, "the found mixing"), binary_table(truth, "the true mixing")
    if len(left) != len(right):
        raise ModelError(
            f"the found mixing has {len(left)} sensors and the true one {len(right)}; "
            "compare models of the same sensors"
        )
    return left, right


def binary_table(values: ArrayLike, what: str, error: type[BicaError] = ModelError) -> NDArray[np.bool_]:
    """A two-dimensional array of zeros and ones, as booleans."""
    table = np.asarray(values)
    if table.ndim != 2:
        raise error(f"{what} has {table.ndim} dimensions; it needs two")
    if table.dtype != bool and not ((table == 0) | (table == 1)).all():
        raise error(f"{what} may hold 0 and 1 only")
    return table.astype(bool)


def probabilities(values: ArrayLike, n_sources: int, what: str) -> NDArray[np.float64]:
    """The values as one probability per source, checked."""
    given = np.asarray(values, dtype=float)
    if given.shape != (n_sources,):
        raise ModelError(f"{what} has shape {given.shape}, but there are {n_sources} sources; give one value for each")
    if not ((given >= 0) & (given <= 1)).all():
        raise ModelError(f"{what} must lie in [0, 1]")
    return given


def aligned(found: OrMixture, truth: OrMixture) -> OrMixture:
    """``found`` with its sensors in the order of ``truth``.

    Sensors are matched by name; where one side has only default names (x0, x1, ...), by place.

    >>> found = OrMixture([[1], [0]], [0.3], sensors=["door", "window"])
    >>> truth = OrMixture([[1], [1]], [0.3], sensors=["window", "door"])
    >>> aligned(found, truth).mixing.ravel()
    array([False,  True])
    """
    if set(found.sensors) == set(truth.sensors):
        place = {name: i for i, name in enumerate(found.sensors)}
        return found.of_sensors([place[name] for name in truth.sensors])
    if _may_go_by_place(found.sensors, truth.sensors):
        return found
    only = sorted(set(found.sensors) ^ set(truth.sensors))
    raise ModelError(
        f"the found model has {found.n_sensors} sensors and the true one {truth.n_sensors}, and {only[0]!r} is in one "
        "of them only; compare models of the same sensors"
    )


def _may_go_by_place(found: tuple[str, ...], truth: tuple[str, ...]) -> bool:
    """Whether sensors may be matched by place: one side has default names only, and no name occurs on both sides."""
    unnamed = numbered(len(found))
    return len(found) == len(truth) and unnamed in (found, truth) and set(found).isdisjoint(truth)


AssignmentSolver = Callable[[NDArray[np.int64]], NDArray[np.int64]]  # a square cost -> the column chosen for each row
NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """The found sources in the order of the true ones; found sources that are left over are dropped."""

    order: NDArray[np.int64]  # (n_sources,), the found source for each true one, -1 where there is none
    mixing: NDArray[np.bool_]  # (n_sensors, n_sources), the found columns in that order, zero where there is none
    probability: NDArray[np.float64]  # (n_sources,), the found probabilities likewise
    cost: int  # what was minimised: wrong cells, plus n_sensors times the ones of each found column left over
    n_wrong: int  # cells in which ``mixing`` differs from the truth

    @property
    def hamming_distance(self) -> float:
        """Wrong cells as a share of all cells of the true mixing; 0 if it has none."""
        return self.n_wrong / self.mixing.size if self.mixing.size else 0.0


def match_columns(found: ArrayLike, truth: ArrayLike, probability: ArrayLike) -> Match:
    """MatchPG: the assignment of found columns to true ones with the fewest wrong cells.

    The narrower matrix is filled up with zero columns. A found column that goes to a zero column of the truth costs
    ``n_sensors`` times its ones, as published, so narrow columns are left over rather than wide ones. ``probability``
    belongs to the found columns. Of several best assignments one with the most exact columns is taken; among those the
    columns themselves decide, never their order. Time up to n^3 for n sources, memory n^2.

    >>> match = match_columns([[1, 0, 1], [0, 1, 1]], [[1, 1], [0, 1]], [0.2, 0.0, 0.5])  # the paper's two sensors
    >>> match.order, match.probability, match.hamming_distance
    (array([0, 2]), array([0.2, 0.5]), 0.0)
    """
    return _match(found, truth, probability, _assign)


def match_by_program(found: ArrayLike, truth: ArrayLike, probability: ArrayLike) -> Match:
    """The same by the paper's integer program: much slower, at the same cost; it may choose another best assignment.

    >>> match_by_program([[1, 0, 1], [0, 1, 1]], [[1, 1], [0, 1]], [0.2, 0.0, 0.5]).cost
    2
    """
    return _match(found, truth, probability, _solve_program)


def match_greedily(found: ArrayLike, truth: ArrayLike, probability: ArrayLike) -> Match:
    """Match only the most probable found sources, as many as there are true ones; the others cost nothing.

    >>> match_greedily([[1, 0, 1], [0, 1, 1]], [[1, 1], [0, 1]], [0.2, 0.4, 0.5]).order
    array([1, 2])
    """
    left, right = mixing_pair(found, truth)
    found_probability = probabilities(probability, left.shape[1], "the found probability")
    by_column = _by_column(left, found_probability)
    kept = by_column[np.argsort(-found_probability[by_column], kind="stable")][: right.shape[1]]
    match = _match(left[:, kept], right, found_probability[kept], _assign)
    return replace(match, order=np.append(kept, NONE)[match.order])  # NONE, the last place, stays NONE


def hamming_distance(found: ArrayLike, truth: ArrayLike) -> float:
    """Share of wrong cells in the mixing after ``match_columns`` (the paper's normalised Hamming distance).

    Sources that were not found count as zero columns, so an empty answer scores the share of ones in the truth.

    >>> hamming_distance([[1, 0, 1], [1, 1, 1]], [[1, 1], [0, 1]])
    0.25
    """
    left, right = mixing_pair(found, truth)
    return match_columns(left, right, np.zeros(left.shape[1])).hamming_distance


def matching_cost(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The cost of each pair: one row per true column, one column per found one, both filled up with zero columns.

    >>> matching_cost(np.array([[True, False], [True, True]]), np.array([[True], [False]]))
    array([[1, 2],
           [4, 2]])
    """
    size = max(found.shape[1], truth.shape[1])
    true_ones, found_ones = (np.pad(m.sum(axis=0), (0, size - m.shape[1])) for m in (truth, found))
    cost: NDArray[np.int64] = true_ones[:, None] + found_ones
    cost[: truth.shape[1], : found.shape[1]] -= 2 * _common_ones(truth, found)
    cost[true_ones == 0] *= len(truth)
    return cost


def _common_ones(truth: NDArray[np.bool_], found: NDArray[np.bool_]) -> NDArray[np.int64]:
    common: NDArray[np.int64] = (csr_array(truth.T.astype(np.int64)) @ csr_array(found.astype(np.int64))).toarray()
    return common


def _match(found: ArrayLike, truth: ArrayLike, probability: ArrayLike, solver: AssignmentSolver) -> Match:
    left, right = mixing_pair(found, truth)
    found_probability = probabilities(probability, left.shape[1], "the found probability")
    by_left, by_right = _by_column(left, found_probability), _by_column(right, np.zeros(right.shape[1]))
    cost = matching_cost(left[:, by_left], right[:, by_right])
    chosen = solver(cost)
    partner = np.append(by_left, np.full(cost.shape[0] - by_left.size, NONE))[chosen]
    order = np.empty_like(by_right)
    order[by_right] = partner[: by_right.size]
    mixing = np.pad(left, ((0, 0), (0, 1)))[:, order]  # NONE, the last place, is the column of zeros added there
    total = int(cost[np.arange(len(cost)), chosen].sum())
    return Match(order, mixing, np.append(found_probability, 0.0)[order], total, int((mixing != right).sum()))


def _by_column(mixing: NDArray[np.bool_], probability: NDArray[np.float64]) -> NDArray[np.int64]:
    """An order of the sources that depends on their columns and probabilities, not on their present order."""
    keys = [probability, *np.packbits(mixing, axis=0)]
    return np.lexsort(keys).astype(np.int64)


def _assign(cost: NDArray[np.int64]) -> NDArray[np.int64]:
    """A cheapest assignment, of these one with the most exact columns; whole numbers stay exact below 2^53."""
    chosen: NDArray[np.int64] = linear_sum_assignment(cost * (len(cost) + 1) + (cost > 0))[1]
    return chosen


def _solve_program(cost: NDArray[np.int64]) -> NDArray[np.int64]:
    """A cheapest assignment by integer programming.

    The unknown a[i, j] is 1 if found column i goes to true column j; its rows and columns sum to 1.
    """
    size = len(cost)
    if not size:
        return np.empty(0, dtype=np.int64)
    ones, one_each = np.ones((1, size)), eye_array(size)
    sums = vstack([kron(one_each, ones), kron(ones, one_each)])
    solution = milp(
        cost.T.ravel(),
        integrality=np.ones(size * size, dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(sums.tocsr(), 1, 1),
        options={"mip_rel_gap": 0},
    )
    assert solution.x is not None, solution.message  # a square cost always has an assignment
    chosen: NDArray[np.int64] = solution.x.reshape(size, size).argmax(axis=0)
    return chosen


# What stands beside what in a picture: a found source beside a true one, and those with much in common.


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
