"""The transmission probability error."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.errors import ModelError, SettingError
from bica.metrics import transmission_probability_error
from tests.reference import slow_metrics

CHANCE = st.one_of(st.just(0.0), st.floats(1e-6, 1))
PAIRS = st.lists(st.tuples(CHANCE, CHANCE), max_size=5)


@given(PAIRS, st.sampled_from([None, 1, 10, 1000]), st.booleans())
def test_it_matches_the_definition(pairs, n_samples, literal):
    found, truth = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    error = transmission_probability_error(found, truth, n_samples=n_samples, literal=literal)
    slow = slow_metrics.transmission_probability_error(found, truth, n_samples, literal)
    assert error.value == pytest.approx(slow, rel=1e-9, abs=1e-12)
    assert error.n_missing == found.count(0)


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=5), st.floats(0.1, 1))
def test_a_common_factor_costs_nothing_and_nothing_is_below_zero(truth, factor):
    error = transmission_probability_error([p * factor for p in truth], truth)
    assert 0 <= error.value < 1e-12


def test_a_missing_source_is_infinitely_far_without_a_number_of_samples():
    assert transmission_probability_error([0.2, 0], [0.2, 0.5]).value == inf
    assert transmission_probability_error([0, 0], [0.2, 0.5]).value == inf


def test_no_true_source_is_no_error():
    assert transmission_probability_error([], []).value == 0
    assert transmission_probability_error([0.3], [0.0]).value == 0


def test_bad_numbers_are_refused():
    with pytest.raises(SettingError, match="give at least 1"):
        transmission_probability_error([0.1], [0.1], n_samples=0)
    with pytest.raises(ModelError, match="found probability has shape"):
        transmission_probability_error([0.1, 0.2], [0.1])
    with pytest.raises(ModelError, match=r"must lie in \[0, 1\]"):
        transmission_probability_error([1.5], [0.1])
