from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bica.kernels.captures import NO_TIME, count_steps_back


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 5)), max_size=30), st.integers(0, 30))
def test_steps_back_are_those_of_the_definition_however_the_times_are_cut(events, cut):
    last, n_steps, largest = np.full(3, NO_TIME), np.zeros(3, np.int64), np.zeros(3, np.int64)
    for part in (events[:cut], events[cut:]):
        clocks, times = np.array(part, np.int64).reshape(-1, 2).T.copy()
        count_steps_back(clocks, times, last, n_steps, largest)
    for clock in range(3):
        times = [time for who, time in events if who == clock]
        steps = [before - after for before, after in pairwise(times) if after < before]
        assert n_steps[clock] == len(steps)
        assert largest[clock] == max(steps, default=0)
