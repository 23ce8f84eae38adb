"""Assignments by simple rules: greedily, and the naive way."""

import numpy as np
from numpy.typing import NDArray

from bica.applications.monitoring import MonitoringProblem
from bica.applications.rounding import gains


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
        unseen[problem.reach[sniffer] & (problem.channel == channel)] = 0
        gain = np.array([gains(problem, s, unseen * (chosen[s] < 0)) for s in range(problem.n_sniffers)])
    return chosen


def assign_to_busiest(problem: MonitoringProblem) -> NDArray[np.int64]:
    """Max, the naive rule: every sniffer watches the channel on which it hears most, whoever else hears it, too."""
    if not problem.n_channels:
        return np.full(problem.n_sniffers, -1)
    return np.where(problem.busy.max(axis=1) > 0, problem.busy.argmax(axis=1), -1)
