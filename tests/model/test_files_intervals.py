"""Intervals for chances."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.model.files import probability_interval

chances = st.floats(1e-9, 1 - 1e-9)
errors = st.floats(0, 10)


@given(chances, errors, st.floats(0.01, 0.99))
def test_the_interval_holds_the_estimate_and_stays_among_chances(chance, error, level):
    low, high = probability_interval(chance, error, level)
    assert 0 <= low <= chance * (1 + 1e-9)
    assert chance * (1 - 1e-9) <= high <= 1


@given(chances, st.floats(1e-3, 1), st.floats(0.1, 0.9))
def test_a_higher_level_is_wider(chance, relative, level):
    error = relative * chance * (1 - chance)  # where neither end is rounded away
    low, high = probability_interval(chance, error, level)
    wider_low, wider_high = probability_interval(chance, error, level + 0.05)
    assert wider_low < low <= high < wider_high


@given(st.floats(0.01, 0.99), st.floats(0, 0.5))
def test_off_is_the_mirror_of_on(chance, error):
    low, high = probability_interval(chance, error)
    assert (1 - high, 1 - low) == pytest.approx(probability_interval(1 - chance, error), abs=1e-12)


def test_far_from_the_ends_it_is_the_normal_interval():
    # the logit bends by less than 1 part in 1000 over two hundredths around one half
    assert probability_interval(0.5, 0.01) == pytest.approx((0.5 - 1.96 * 0.01, 0.5 + 1.96 * 0.01), abs=2e-5)


def test_a_rare_source_keeps_a_positive_lower_end():
    low, high = probability_interval(1e-12, 1e-12)
    assert (low, high) == pytest.approx((1e-12 * math.exp(-1.959964), 1e-12 * math.exp(1.959964)), rel=1e-6)


@pytest.mark.parametrize(
    ("chance", "error", "ends"),
    [(0.3, 0.0, (0.3, 0.3)), (1.0, 0.0, (1.0, 1.0)), (0.0, 0.1, (0.0, 0.196)), (1.0, 0.1, (0.804, 1.0))],
)
def test_certain_values_and_the_ends(chance, error, ends):
    assert probability_interval(chance, error) == pytest.approx(ends, abs=1e-4)


def test_without_information_everything_is_possible_and_without_an_error_nothing_is_said():
    assert probability_interval(0.3, math.inf) == (0.0, 1.0)
    assert all(math.isnan(end) for end in probability_interval(0.3, math.nan))
