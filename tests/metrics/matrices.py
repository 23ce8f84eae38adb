"""Small random mixings for the tests of the measures, as lists of columns and as arrays."""

import numpy as np
from hypothesis import strategies as st

# fewer, as many and more found sources than true ones, and none on either side
SHAPES = [(1, 3), (2, 4), (3, 3), (4, 2), (4, 3), (0, 3), (3, 0), (0, 0)]
N_SENSORS = st.integers(0, 4)


def columns(n_sensors: int, n_sources: int):
    return st.lists(
        st.lists(st.integers(0, 1), min_size=n_sensors, max_size=n_sensors), min_size=n_sources, max_size=n_sources
    )


def pairs(n_found: int, n_true: int):
    """Found and true columns of the same sensors, with the number of sensors."""
    return N_SENSORS.flatmap(lambda m: st.tuples(columns(m, n_found), columns(m, n_true), st.just(m)))


def chances(n_sources: int):
    return st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), min_size=n_sources, max_size=n_sources)


def as_mixing(given, n_sensors: int) -> np.ndarray:
    return np.array(given, dtype=bool).reshape(len(given), n_sensors).T
