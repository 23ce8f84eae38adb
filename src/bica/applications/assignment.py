"""Which channel each sniffer should watch: four ways to decide, each told with how good it is at least."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bica.applications.monitoring import MonitoringProblem
from bica.applications.relaxation import Relaxation, relax, solve_exactly
from bica.applications.rounding import round_by_expectation, round_by_lot
from bica.applications.rules import assign_greedily, assign_to_busiest
from bica.errors import SettingError

Solver = Literal["exact", "rounding", "derandomised", "greedy", "max"]
SOLVERS: tuple[Solver, ...] = get_args(Solver)
N_DRAWS = 200
TIME_LIMIT = 60.0  # seconds for the exact solution


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """One channel a sniffer, and what comes of it."""

    problem: MonitoringProblem
    solver: Solver
    channel: NDArray[np.int64]  # (n_sniffers,), the place of the channel; -1 where a sniffer is not needed
    bound: float  # the linear relaxation: no assignment monitors more
    proven: bool  # whether no other assignment is better

    @property
    def value(self) -> float:
        """The expected number of active users that are monitored."""
        return self.problem.value(self.channel)

    @property
    def share_of_bound(self) -> float:
        """The value as a share of the bound; 1 where there is nothing to see."""
        return min(self.value / self.bound, 1.0) if self.bound > 0 else 1.0

    def watched(self) -> dict[str, str | None]:
        """The channel of each sniffer by name; None for a sniffer that adds nothing."""
        names = [None if k < 0 else self.problem.channels[k] for k in self.channel.tolist()]
        return dict(zip(self.problem.sniffers, names, strict=True))

    def unseen(self) -> list[str]:
        """The users who are not monitored, the most active first."""
        missed = np.flatnonzero(~self.problem.seen(self.channel))
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
    solver: Solver = "exact",
    *,
    relaxation: Relaxation | None = None,
    n_draws: int = N_DRAWS,
    rng: np.random.Generator | None = None,
    time_limit: float = TIME_LIMIT,
) -> Assignment:
    """Decide which channel each sniffer watches, to monitor as many active users as possible.

    ``exact`` solves the integer program; ``rounding`` keeps the best of ``n_draws`` roundings of its linear relaxation
    by lot, ``derandomised`` rounds once by conditional expectations, and both reach 1 - 1/e of the bound, the first on
    average; ``greedy`` reaches half of the best; ``max`` puts every sniffer on its busiest channel. ``relaxation``
    saves solving it again.

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
    proven = proven or problem.value(channel) >= relaxed.bound * (1 - 1e-9)
    return Assignment(problem, solver, channel, relaxed.bound, proven)
