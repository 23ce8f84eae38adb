"""The closed form against exact distributions; tests/paper holds it against the induction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.errors import DataError
from bica.estimate.findbica import probability_by_recursion, probability_by_subset
from tests.reference import slow_induction


@given(st.integers(1, 5), st.data())
@settings(max_examples=60)
def test_it_recovers_every_source_of_an_exact_distribution(n_sensors, data):
    probability = np.array(data.draw(st.lists(st.floats(0, 0.6), min_size=2**n_sensors - 1, max_size=2**n_sensors - 1)))
    frequencies = slow_induction.distribution(n_sensors, probability)
    np.testing.assert_allclose(probability_by_subset(frequencies)[1:], probability, atol=1e-7)


def test_where_nothing_is_clipped_it_is_the_recursion():
    frequencies = slow_induction.distribution(4, np.linspace(0.05, 0.3, 15))
    np.testing.assert_allclose(
        probability_by_recursion(frequencies, 0.0), probability_by_subset(frequencies), atol=1e-12
    )


def test_without_an_all_quiet_row_it_says_so():
    with pytest.raises(DataError, match="no row is all-quiet"):
        probability_by_subset(np.array([0.0, 0.5, 0.5, 0.0]))


def test_the_input_is_left_alone():
    frequencies = np.array([0.4, 0.1, 0.0, 0.5])
    probability_by_subset(frequencies)
    assert frequencies.tolist() == [0.4, 0.1, 0.0, 0.5]
