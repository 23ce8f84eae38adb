import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.kernels.rivals.noisy_or import bound_rows, expected_reach, flip_to_best, improve_rates
from tests.reference import slow_noisy_or


def problem(seed, n_rows, n_sensors, n_sources):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 2, (n_rows, n_sensors), dtype=np.uint8)
    activity = rng.integers(0, 2, (n_rows, n_sources), dtype=np.uint8)
    rate = rng.exponential(size=(n_sources, n_sensors)) * (rng.random((n_sources, n_sensors)) < 0.7)
    return rng, cells, rate, rng.uniform(0.01, 0.5, n_sensors), rng.normal(size=n_sources), activity


sizes = st.tuples(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))


@given(sizes)
@settings(max_examples=60)
def test_flips_end_where_no_single_one_makes_a_row_likelier(size):
    _, cells, rate, leak, odds, activity = problem(*size)
    before = activity.copy()
    n_flips = flip_to_best(cells, rate, leak, odds, activity)
    assert (n_flips == 0) == (before == activity).all() or n_flips > 1  # flips may undo each other
    for row, first, on in zip(cells, before, activity, strict=True):
        value = slow_noisy_or.log_probability(row, rate, leak, odds, on)
        assert value >= slow_noisy_or.log_probability(row, rate, leak, odds, first) - 1e-9
        for k in range(on.size):
            other = on ^ (np.arange(on.size) == k)
            assert slow_noisy_or.log_probability(row, rate, leak, odds, other) <= value + 1e-8


@given(sizes)
@settings(max_examples=60)
def test_expected_reach_is_that_of_enumeration(size):
    rng, cells, rate, leak, _, activity = problem(*size)
    weights = rng.uniform(0.5, 2, len(cells))
    by_source, by_leak = np.empty(rate.shape), np.empty(leak.shape)
    value = expected_reach(cells, weights, rate, leak, activity, by_source, by_leak)
    slow = [slow_noisy_or.expected_reach(row, rate, leak, on) for row, on in zip(cells, activity, strict=True)]
    np.testing.assert_allclose(by_source, sum(w * np.array(s).T for w, (s, _) in zip(weights, slow, strict=True)))
    np.testing.assert_allclose(by_leak, sum(w * np.array(s) for w, (_, s) in zip(weights, slow, strict=True)))
    no_odds = np.zeros(len(rate))
    expected = sum(
        w * slow_noisy_or.log_probability(row, rate, leak, no_odds, on)
        for w, row, on in zip(weights, cells, activity, strict=True)
    )
    assert value == pytest.approx(expected)


def bounded(size, n_steps):
    _, cells, rate, leak, odds, activity = problem(*size)
    rate = np.maximum(rate, 0.01)
    share, expected = np.empty((len(cells), *rate.shape)), np.empty(activity.shape)
    value = bound_rows(cells, np.ones(len(cells)), rate, leak, odds, 0.3, n_steps, share, expected)
    return cells, rate, leak, odds, share, expected, value


def slow_bound(cells, rate, leak, odds, share, expected):
    share = np.maximum(share, 1e-12)
    rows = zip(cells, share, expected, strict=True)
    return sum(slow_noisy_or.bound(row, rate, leak, odds, shares, on) for row, shares, on in rows)


@given(sizes, st.integers(1, 6))
@settings(max_examples=60)
def test_the_bound_is_that_of_the_definition_and_below_the_likelihood(size, n_steps):
    cells, rate, leak, odds, share, expected, value = bounded(size, n_steps)
    assert value == pytest.approx(slow_bound(cells, rate, leak, odds, share, expected), abs=1e-6)
    assert value <= sum(slow_noisy_or.log_likelihood(row, rate, leak, odds) for row in cells) + 1e-9


@given(sizes)
@settings(max_examples=60)
def test_probabilities_and_rates_are_where_the_bound_is_highest(size):
    cells, rate, leak, odds, share, expected, value = bounded(size, 3)
    for step in (-0.01, 0.01):
        other = np.clip(expected + step, 1e-9, 1 - 1e-9)
        assert slow_bound(cells, rate, leak, odds, share, other) <= value + 1e-6
    before = np.clip(rate, 1e-4, 10)
    after = rate.copy()
    improve_rates(cells, np.ones(len(cells)), leak, share, expected, after)
    improved = slow_bound(cells, after, leak, odds, share, expected)
    # the rates are right to one part in a thousand; the bound is flat there
    assert improved >= slow_bound(cells, before, leak, odds, share, expected) - 1e-3
