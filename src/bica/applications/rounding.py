"""From shares of time to one channel each: by lot, or by the method of conditional expectations.

A user whom the relaxation sees to a part y is seen by lot with chance 1 - prod(1 - z) >= (1 - 1/e) y, so both keep at
least 1 - 1/e of the bound, the lot on average and the other always.
"""

import numpy as np
from numpy.typing import NDArray

from bica.applications.monitoring import MonitoringProblem
from bica.progress import tracked


def round_by_lot(
    problem: MonitoringProblem, shares: NDArray[np.float64], n_draws: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The best of many assignments in which each sniffer draws its channel by its shares."""
    best, best_value = np.full(problem.n_sniffers, -1), -1.0
    for _ in tracked(range(n_draws), "rounding", n_draws):
        drawn = draw(shares, rng)
        value = problem.value(drawn)
        if value > best_value:
            best, best_value = drawn, value
    return best


def draw(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One channel a sniffer, by lot; -1 where all shares are 0.

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
    """Settle one sniffer after the other on the channel that leaves the most to be expected."""
    misses = _misses(problem, shares)
    later = np.vstack([np.cumprod(misses[::-1], axis=0)[::-1], np.ones((1, problem.n_users))])
    unseen = problem.probability.copy()
    chosen = np.full(problem.n_sniffers, -1)
    for sniffer in range(problem.n_sniffers):
        gain = gains(problem, sniffer, unseen * later[sniffer + 1])
        if gain.max(initial=0.0) > 0:
            chosen[sniffer] = gain.argmax()
            unseen[problem.reach[sniffer] & (problem.channel == chosen[sniffer])] = 0
    return chosen


def gains(problem: MonitoringProblem, sniffer: int, worth: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a sniffer reaches on each channel, where a user is worth so much."""
    reached = problem.reach[sniffer]
    return np.bincount(problem.channel[reached], worth[reached], minlength=problem.n_channels).astype(np.float64)


def _misses(problem: MonitoringProblem, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The chance that a sniffer does not see a user: (n_sniffers, n_users)."""
    return np.where(problem.reach, 1 - shares[:, problem.channel], 1.0)
