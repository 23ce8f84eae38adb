"""The integer program of monitoring: its linear relaxation, which bounds every assignment, and its exact solution."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from bica.applications.monitoring.problem import MonitoringProblem
from bica.errors import LimitError

SCALE = 1024.0  # HiGHS stops within 1e-6 of the optimum; probabilities are often not much larger than that
SOLVER_ROUNDING = 1e-9  # a sniffer with less time than this in all shares is not needed


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """A best assignment of shares of time: sniffer s spends ``shares[s, k]`` on channel k."""

    shares: NDArray[np.float64]  # (n_sniffers, n_channels); a row sums to 1, or is 0 where nothing can be gained
    bound: float  # no assignment monitors more active users than this


def relax(problem: MonitoringProblem) -> Relaxation:
    """Solve the paper's program with z and y anywhere between 0 and 1: one linear program for HiGHS.

    >>> both = MonitoringProblem([[1, 1]], [0, 1], [0.3, 0.2])  # one sniffer, a user on each of two channels
    >>> relax(both).bound
    0.3
    """
    if not problem.n_users or not problem.n_sniffers:
        return Relaxation(np.zeros((problem.n_sniffers, problem.n_channels)), 0.0)
    found = _solved(problem, integer=False, time_limit=None)
    shares = np.clip(found.x[: -problem.n_users].reshape(problem.n_sniffers, -1), 0, 1)
    shares = np.where(_reaches_a_user(problem), shares, 0)
    total = shares.sum(axis=1, keepdims=True)
    # time left over is spread like the rest, which loses nothing
    shares = np.divide(shares, total, out=np.zeros_like(shares), where=total > SOLVER_ROUNDING)
    return Relaxation(shares, float(problem.probability @ np.clip(found.x[-problem.n_users :], 0, 1)))


def solve_exactly(problem: MonitoringProblem, time_limit: float) -> tuple[NDArray[np.int64], bool]:
    """A best assignment, and whether it is proven to be one.

    Exponential time at worst: milliseconds for ten sniffers, up to a minute for twenty with hundreds of users. After
    ``time_limit`` seconds the best assignment so far is returned.
    """
    if not problem.n_users or not problem.n_sniffers:
        return np.full(problem.n_sniffers, -1), True
    found = _solved(problem, integer=True, time_limit=time_limit)
    watched = (found.x[: -problem.n_users].reshape(problem.n_sniffers, -1) > 0.5) & _reaches_a_user(problem)
    return np.where(watched.any(axis=1), watched.argmax(axis=1), -1), found.status == 0


def _solved(problem: MonitoringProblem, *, integer: bool, time_limit: float | None) -> OptimizeResult:
    n_choices = problem.n_sniffers * problem.n_channels
    found = milp(
        np.concatenate([np.zeros(n_choices), -SCALE * problem.probability]),
        integrality=np.repeat([int(integer), 0], [n_choices, problem.n_users]),  # y is an integer where z is
        bounds=Bounds(0, 1),
        constraints=_constraints(problem),
        options={"mip_rel_gap": 0.0, "time_limit": np.inf if time_limit is None else time_limit},
    )
    if found.x is None:
        raise LimitError(
            f"the program of {problem.n_sniffers} sniffers and {problem.n_users} users was not solved: {found.message}"
        )
    return found


def _constraints(problem: MonitoringProblem) -> LinearConstraint:
    """Rows over (z, y): each sniffer watches at most one channel; a user needs a sniffer in reach on its channel."""
    n_users, n_choices = problem.n_users, problem.n_sniffers * problem.n_channels
    one_channel = kron(eye_array(problem.n_sniffers), np.ones((1, problem.n_channels)))
    sniffer, user = np.nonzero(problem.reach)
    choice = sniffer * problem.n_channels + problem.channel[user]
    watchers = csr_array((np.ones(user.size), (user, choice)), shape=(n_users, n_choices))
    rows = vstack(
        [hstack([one_channel, csr_array((problem.n_sniffers, n_users))]), hstack([-watchers, eye_array(n_users)])],
        format="csr",
    )
    return LinearConstraint(rows, -np.inf, np.repeat([1.0, 0.0], [problem.n_sniffers, n_users]))


def _reaches_a_user(problem: MonitoringProblem) -> NDArray[np.bool_]:
    """On which channels each sniffer reaches any user: (n_sniffers, n_channels)."""
    on_channel = problem.channel[:, None] == np.arange(problem.n_channels)
    reaches: NDArray[np.bool_] = problem.reach @ on_channel  # on booleans, @ is exactly OR over ANDs
    return reaches
