"""Random monitoring problems, small enough to try every assignment."""

import itertools

import numpy as np
from hypothesis import strategies as st

from bica.applications import MonitoringProblem


@st.composite
def problems(draw, most_sniffers=4, most_users=7, lossy=False):
    n_sniffers, n_users = draw(st.integers(1, most_sniffers)), draw(st.integers(0, most_users))
    n_channels = draw(st.integers(1, 3))
    bits = st.lists(st.booleans(), min_size=n_users, max_size=n_users)
    reach = np.array(draw(st.lists(bits, min_size=n_sniffers, max_size=n_sniffers)), bool).reshape(n_sniffers, n_users)
    if lossy:
        tenths = st.lists(st.integers(1, 10), min_size=n_users, max_size=n_users)
        reach = reach * np.array(draw(st.lists(tenths, min_size=n_sniffers, max_size=n_sniffers))).reshape(reach.shape)
        reach = reach / 10
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
            missed = 1.0
            for sniffer in range(problem.n_sniffers):
                if choice[sniffer] == problem.channel[user]:
                    missed *= 1.0 - problem.reach[sniffer, user]
            value += problem.probability[user] * (1.0 - missed)
        best = max(best, value)
    return best
