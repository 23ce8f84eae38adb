"""Which channel each sniffer should watch: four ways to decide, each reported with how good it is at least.

Two of them round the linear relaxation. A user who is monitored to a share y there is monitored by a random rounding
with probability 1 - prod(1 - z) >= (1 - 1/e) y. So random rounding keeps at least 1 - 1/e of the bound on average, and
rounding by conditional expectations always does. A sniffer that hears a user only at times, with probability r, counts
as r z; nothing else changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from bica.applications.monitoring.problem import MonitoringProblem
from bica.errors import LimitError, SettingError
from bica.progress import tracked

SCALE = 1024.0  # HiGHS stops within 1e-6 of the optimum; probabilities are often not much larger than that
TOO_MUCH = 1e-7  # of a user's activity: the program may promise that much more than there is
LEAST_SECONDS = 0.01  # for another run of the program when the time is nearly up
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
    ``time_limit`` seconds the best assignment so far is returned. Where sniffers hear users only at times, the program
    adds up what they hear, which is too much, and is solved again with a tighter bound where that was promised.
    """
    if not problem.n_users or not problem.n_sniffers:
        return np.full(problem.n_sniffers, -1), True
    cuts: list[Cut] = []
    end = monotonic() + time_limit
    while True:
        found = _solved(problem, integer=True, time_limit=max(end - monotonic(), LEAST_SECONDS), cuts=cuts)
        watched = (found.x[: -problem.n_users].reshape(problem.n_sniffers, -1) > 0.5) & _reaches_a_user(problem)
        channel = np.where(watched.any(axis=1), watched.argmax(axis=1), -1)
        share, promised = problem.monitored_share(channel), found.x[-problem.n_users :]
        new = [Cut(user, channel) for user in np.flatnonzero(promised > share + TOO_MUCH).tolist()]
        if not new or found.status != 0 or monotonic() > end:
            return channel, found.status == 0 and not new
        cuts += new


class Cut(NamedTuple):
    """Where the program promised more than there is: of this user, when sniffers watch these channels.

    What the sniffers of a set hear of a user has diminishing returns, so no assignment hears more than this one plus
    what each other sniffer would add to it alone.
    """

    user: int
    channel: NDArray[np.int64]  # (n_sniffers,)


def _solved(
    problem: MonitoringProblem, *, integer: bool, time_limit: float | None, cuts: Sequence[Cut] = ()
) -> OptimizeResult:
    n_choices = problem.n_sniffers * problem.n_channels
    found = milp(
        np.concatenate([np.zeros(n_choices), -SCALE * problem.probability]),
        integrality=np.repeat([int(integer), 0], [n_choices, problem.n_users]),  # y is an integer where z is
        bounds=Bounds(0, 1),
        constraints=[_constraints(problem), *([_at_most(problem, cuts)] if cuts else [])],
        options={"mip_rel_gap": 0.0, "time_limit": np.inf if time_limit is None else time_limit},
    )
    if found.x is None:
        raise LimitError(
            f"the program of {problem.n_sniffers} sniffers and {problem.n_users} users was not solved: {found.message}"
        )
    return found


def _constraints(problem: MonitoringProblem) -> LinearConstraint:
    """Rows over (z, y): each sniffer watches at most one channel; a user needs sniffers that hear it on its channel."""
    n_users, n_choices = problem.n_users, problem.n_sniffers * problem.n_channels
    one_channel = kron(eye_array(problem.n_sniffers), np.ones((1, problem.n_channels)))
    sniffer, user = np.nonzero(problem.reach)
    choice = sniffer * problem.n_channels + problem.channel[user]
    watchers = csr_array((problem.reach[sniffer, user], (user, choice)), shape=(n_users, n_choices))
    rows = vstack(
        [hstack([one_channel, csr_array((problem.n_sniffers, n_users))]), hstack([-watchers, eye_array(n_users)])],
        format="csr",
    )
    return LinearConstraint(rows, -np.inf, np.repeat([1.0, 0.0], [problem.n_sniffers, n_users]))


def _at_most(problem: MonitoringProblem, cuts: Sequence[Cut]) -> LinearConstraint:
    """Rows over (z, y), one per cut."""
    n_choices = problem.n_sniffers * problem.n_channels
    rows, heard = np.zeros((len(cuts), n_choices + problem.n_users)), np.empty(len(cuts))
    for row, (user, channel) in enumerate(cuts):
        others = np.flatnonzero(channel != problem.channel[user])
        heard[row] = problem.monitored_share(channel)[user]
        rows[row, others * problem.n_channels + problem.channel[user]] = (heard[row] - 1) * problem.reach[others, user]
        rows[row, n_choices + user] = 1.0
    return LinearConstraint(csr_array(rows), -np.inf, heard)


def _reaches_a_user(problem: MonitoringProblem) -> NDArray[np.bool_]:
    """On which channels each sniffer reaches any user: (n_sniffers, n_channels)."""
    on_channel = problem.channel[:, None] == np.arange(problem.n_channels)
    reaches: NDArray[np.bool_] = (problem.reach > 0) @ on_channel  # on booleans, @ is exactly OR over ANDs
    return reaches


def round_by_lot(
    problem: MonitoringProblem, shares: NDArray[np.float64], n_draws: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The best of ``n_draws`` assignments in which each sniffer draws its channel at random, by its shares."""
    best, best_value = np.full(problem.n_sniffers, -1), -1.0
    for _ in tracked(range(n_draws), "rounding", n_draws):
        drawn = draw(shares, rng)
        value = problem.value(drawn)
        if value > best_value:
            best, best_value = drawn, value
    return best


def draw(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One random channel per sniffer, drawn by its shares; -1 where all shares are 0.

    >>> draw(np.array([[0.0, 1.0], [0.0, 0.0]]), np.random.default_rng(0))
    array([ 1, -1])
    """
    chosen = (rng.random((len(shares), 1)) >= shares.cumsum(axis=1)).sum(axis=1)
    last = shares.shape[1] - 1 - (shares[:, ::-1] > 0).argmax(axis=1)  # rounding errors must not lead past it
    return np.where(shares.any(axis=1), np.minimum(chosen, last), -1)


def expected_value(problem: MonitoringProblem, shares: NDArray[np.float64]) -> float:
    """What one draw monitors on average."""
    return float(problem.probability @ (1 - _misses(problem, shares).prod(axis=0)))


def round_by_expectation(problem: MonitoringProblem, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Settle one sniffer after another on the channel with the largest expected value, later sniffers still random."""
    misses = _misses(problem, shares)
    later = np.vstack([np.cumprod(misses[::-1], axis=0)[::-1], np.ones((1, problem.n_users))])
    unseen = problem.probability.copy()
    chosen = np.full(problem.n_sniffers, -1)
    for sniffer in range(problem.n_sniffers):
        gain = gains(problem, sniffer, unseen * later[sniffer + 1])
        if gain.max(initial=0.0) > 0:
            chosen[sniffer] = gain.argmax()
            unseen *= 1.0 - problem.reach[sniffer] * (problem.channel == chosen[sniffer])
    return chosen


def gains(problem: MonitoringProblem, sniffer: int, value_of_user: NDArray[np.float64]) -> NDArray[np.float64]:
    """The total value of the users that a sniffer reaches on each channel, as far as it hears them."""
    heard = problem.reach[sniffer] * value_of_user
    return np.bincount(problem.channel, heard, minlength=problem.n_channels).astype(np.float64)


def _misses(problem: MonitoringProblem, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability that a sniffer misses a user: (n_sniffers, n_users)."""
    return 1.0 - problem.reach * shares[:, problem.channel]


def assign_greedily(problem: MonitoringProblem) -> NDArray[np.int64]:
    """Settle the sniffer and the channel that gain most, again and again: at least half of the best possible.

    >>> assign_greedily(MonitoringProblem([[1, 1], [0, 1]], [0, 1], [0.3, 0.4]))
    array([ 1, -1])
    """
    unseen = problem.probability.copy()
    chosen = np.full(problem.n_sniffers, -1)
    gain = np.array([gains(problem, s, unseen) for s in range(problem.n_sniffers)])
    while gain.max(initial=0.0) > 0:
        sniffer, channel = np.unravel_index(gain.argmax(), gain.shape)
        chosen[sniffer] = channel
        unseen *= 1.0 - problem.reach[sniffer] * (problem.channel == channel)
        gain = np.array([gains(problem, s, unseen * (chosen[s] < 0)) for s in range(problem.n_sniffers)])
    return chosen


def assign_to_busiest(problem: MonitoringProblem) -> NDArray[np.int64]:
    """Max, the naive rule: every sniffer watches the channel on which it hears most, even if others hear the same."""
    if not problem.n_channels:
        return np.full(problem.n_sniffers, -1)
    return np.where(problem.busy.max(axis=1) > 0, problem.busy.argmax(axis=1), -1)


MonitoringSolver = Literal["exact", "rounding", "derandomised", "greedy", "max"]
SOLVERS: tuple[MonitoringSolver, ...] = get_args(MonitoringSolver)
N_DRAWS = 200  # random roundings
TIME_LIMIT = 60.0  # seconds for the exact solution
ROUNDING = 1e-9  # relative: a value this close to the bound has reached it


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """One channel per sniffer, and how many active users are monitored that way."""

    problem: MonitoringProblem
    solver: MonitoringSolver
    channel: NDArray[np.int64]  # (n_sniffers,), the place of the channel; -1 where a sniffer is not needed
    bound: float  # that of the linear relaxation: no assignment monitors more
    proven: bool  # whether no other assignment is better

    @property
    def value(self) -> float:
        """The expected number of active users that are monitored."""
        return self.problem.value(self.channel)

    @property
    def share_of_bound(self) -> float:
        """The value as a share of the bound; 1 where there is nothing to monitor."""
        return min(self.value / self.bound, 1.0) if self.bound > 0 else 1.0

    def watched(self) -> dict[str, str | None]:
        """The channel of each sniffer by name; None for a sniffer that adds nothing."""
        names = [None if k < 0 else self.problem.channels[k] for k in self.channel.tolist()]
        return dict(zip(self.problem.sniffers, names, strict=True))

    def unseen(self) -> list[str]:
        """The users who are not monitored, the most active first."""
        missed = np.flatnonzero(~self.problem.monitored(self.channel))
        order = missed[np.argsort(-self.problem.probability[missed], kind="stable")]
        return [self.problem.users[u] for u in order.tolist()]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "solver": self.solver,
            "value": self.value,
            "bound": self.bound,
            "share_of_bound": self.share_of_bound,
            "proven": self.proven,
            "assignment": self.watched(),
            "unseen": self.unseen(),
        }


def assign(
    problem: MonitoringProblem,
    solver: MonitoringSolver = "exact",
    *,
    relaxation: Relaxation | None = None,
    n_draws: int = N_DRAWS,
    rng: np.random.Generator | None = None,
    time_limit: float = TIME_LIMIT,
) -> Assignment:
    """Decide which channel each sniffer watches, to monitor as many active users as possible.

    ``exact`` solves the integer program; ``rounding`` keeps the best of ``n_draws`` random roundings of its linear
    relaxation and ``derandomised`` rounds it once by conditional expectations (both reach 1 - 1/e of the bound, the
    first on average); ``greedy`` reaches at least half of the best; ``max`` puts every sniffer on its busiest channel.
    Give ``relaxation`` where it was solved before.

    >>> problem = MonitoringProblem([[1, 1, 0], [1, 0, 1]], [0, 1, 1], [0.5, 0.2, 0.3])
    >>> best = assign(problem)
    >>> best.watched(), round(best.value, 3), best.unseen()
    ({'sniffer1': 'channel1', 'sniffer2': 'channel2'}, 0.8, ['user2'])
    >>> round(assign(problem, "max").value, 3)  # both hear most on the first channel
    0.5
    """
    if solver not in SOLVERS:
        raise SettingError(f"there is no solver {solver!r}; choose from {', '.join(SOLVERS)}")
    relaxed = relaxation or relax(problem)
    proven = False
    if solver == "exact":
        channel, proven = solve_exactly(problem, time_limit)
    elif solver == "rounding":
        channel = round_by_lot(problem, relaxed.shares, n_draws, rng or np.random.default_rng(0))
    elif solver == "derandomised":
        channel = round_by_expectation(problem, relaxed.shares)
    else:
        channel = assign_greedily(problem) if solver == "greedy" else assign_to_busiest(problem)
    proven = proven or problem.value(channel) >= relaxed.bound * (1 - ROUNDING)
    return Assignment(problem, solver, channel, relaxed.bound, proven)
