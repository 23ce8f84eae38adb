"""Random monitoring problems, small enough to try every assignment."""

import itertools

import numpy as np
from hypothesis import strategies as st

from bica.applications import MonitoringProblem


@st.composite
def problems(draw, most_sniffers=4, most_users=7):
    n_sniffers, n_users = draw(st.integers(1, most_sniffers)), draw(st.integers(0, most_users))
    n_channels = draw(st.integers(1, 3))
    bits = st.lists(st.booleans(), min_size=n_users, max_size=n_users)
    reach = np.array(draw(st.lists(bits, min_size=n_sniffers, max_size=n_sniffers)), bool).reshape(n_sniffers, n_users)
    channel = draw(st.lists(st.integers(0, n_channels - 1), min_size=n_users, max_size=n_users))
    chances = draw(st.lists(st.integers(0, 100), min_size=n_users, max_size=n_users))
    names = [str(k) for k in range(n_channels)]
    return MonitoringProblem(reach, channel, np.array(chances) / 100, channels=names)


def best_value(problem):
    """The most that any assignment monitors, by trying them all, one user at a time."""
    best = 0.0
    for choice in itertools.product(range(problem.n_channels), repeat=problem.n_sniffers):
        value = 0.0
        for user in range(problem.n_users):
            watchers = [s for s in range(problem.n_sniffers) if problem.reach[s, user]]
            if any(choice[s] == problem.channel[user] for s in watchers):
                value += problem.probability[user]
        best = max(best, value)
    return best
