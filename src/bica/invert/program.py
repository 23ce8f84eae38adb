"""Decoding by the paper's integer program, one row at a time: exact in its cost, for groups of any size."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack, vstack

from bica.data.chunks import packed
from bica.errors import LimitError
from bica.invert.groups import Group, Solution
from bica.progress import tracked

SCALE = 1024.0  # HiGHS stops within 1e-6 of the optimum whatever the relative gap; this makes it 1e-9


def solve_by_program(group: Group, cells: NDArray[np.uint8]) -> Solution:
    """A cheapest activity behind each row of cells, with ties left to the solver.

    Each row is one integer program for HiGHS: usually milliseconds, at worst exponential time. Where sensors never
    err it is the paper's program of the zero-error case, otherwise that of the noisy one.
    """
    activity = np.zeros((len(cells), group.sources.size), dtype=bool)
    for row, shown in enumerate(tracked(cells, "solving integer programs", len(cells))):
        activity[row] = _cheapest(group, group.penalty[np.arange(len(shown)), shown])
    return group.solution(packed(activity), cells)


def _cheapest(group: Group, penalty: NDArray[np.float64]) -> NDArray[np.bool_]:
    """A cheapest activity, given the penalty of each sensor's two states: (n_sensors, 2)."""
    quiet, on = np.isinf(penalty[:, 1]), np.isinf(penalty[:, 0])
    # the paper's zero-error case, sensor by sensor: who reaches one that must be quiet is off
    activity = np.logical_not(group.mixing[quiet].any(axis=0))
    links = group.mixing[:, activity]
    if not activity.any() or not links[on].any(axis=1).all():
        return np.zeros_like(activity)
    open_sensors = ~quiet & ~on & (penalty[:, 0] != penalty[:, 1])
    gain = penalty[open_sensors, 1] - penalty[open_sensors, 0]
    activity[activity] = _solve(group.price[activity], gain, links[open_sensors], links[on])
    return activity


def _solve(
    price: NDArray[np.float64],
    penalty: NDArray[np.float64],
    links: NDArray[np.bool_],
    required: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Minimise price @ y + penalty @ x, where x is the OR of the y of its links and each required row has an active y.

    The paper's alpha, the errors of the sensors, is x or 1 - x once a cell is known.
    """
    found = milp(
        SCALE * np.concatenate([price, penalty]),
        integrality=np.repeat([1, 0], [price.size, penalty.size]),
        bounds=Bounds(0, 1),
        constraints=_or_constraints(links, required),
        options={"mip_rel_gap": 0},
    )
    if found.x is None or found.status != 0:
        raise LimitError(f"the integer program of {price.size} sources was not solved: {found.message}")
    return found.x[: price.size] > 0.5


def _or_constraints(links: NDArray[np.bool_], required: NDArray[np.bool_]) -> LinearConstraint:
    """Rows over (y, x): the paper's x <= sum g y and n x >= sum g y, and sum g y >= 1 where x must be 1.

    The second is split into x >= y for each link, which says the same of integers, and makes x one where y is one.
    """
    n_sensors = len(links)
    sensor, source = np.nonzero(links)
    each_sensor, each_link = _one_a_row(np.arange(n_sensors), n_sensors), _one_a_row(sensor, n_sensors)
    blocks = [
        [csr_array(links.astype(float)), -each_sensor],
        [-_one_a_row(source, links.shape[1]), each_link],
        [csr_array(required.astype(float)), csr_array((len(required), n_sensors))],
    ]
    least = np.repeat([0.0, 1.0], [n_sensors + sensor.size, len(required)])
    return LinearConstraint(vstack([hstack(block) for block in blocks], format="csr"), least, np.inf)


def _one_a_row(columns: NDArray[np.int64], n_columns: int) -> csr_array[np.float64]:
    rows = np.arange(columns.size)
    return csr_array((np.ones(columns.size), (rows, columns)), shape=(columns.size, n_columns))
