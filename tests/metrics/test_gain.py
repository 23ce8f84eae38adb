"""The information gain: what sources explain of a table, less what they cost."""

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.errors import DataError
from bica.metrics import information_gain
from tests.rivals.planted import bars


def entropy(probability):
    return -sum(p * log2(p) for p in (probability, 1 - probability) if p > 0)


def slow_gain(rows, mixing, activity):
    """Cell by cell, each with the mean of its sensor among the cells that are covered alike."""
    n_rows, n_sensors = len(rows), len(rows[0])
    covered = [
        [any(mixing[j][k] and activity[t][k] for k in range(len(mixing[0]))) for j in range(n_sensors)]
        for t in range(n_rows)
    ]
    before = n_rows * sum(entropy(sum(row[j] for row in rows) / n_rows) for j in range(n_sensors))
    after = n_rows * sum(entropy(sum(row[k] for row in activity) / n_rows) for k in range(len(mixing[0])))
    for t in range(n_rows):
        for j in range(n_sensors):
            alike = [rows[s][j] for s in range(n_rows) if covered[s][j] == covered[t][j]]
            after += entropy(sum(alike) / len(alike))
    return (before - after) / before if before else 0.0


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=60)
def test_the_gain_is_that_of_the_definition(seed, n_rows, n_sensors, n_sources):
    rng = np.random.default_rng(seed)
    rows, mixing = rng.random((n_rows, n_sensors)) < 0.5, rng.random((n_sensors, n_sources)) < 0.5
    activity = rng.random((n_rows, n_sources)) < 0.5
    expected = slow_gain(rows.tolist(), mixing.tolist(), activity.tolist())
    assert information_gain(rows, mixing, activity) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_missing_bar_and_a_bar_of_chance_cost_gain(seed):
    mixing, rows, activity = bars(seed, 8, 0.1)
    true = information_gain(rows, mixing, activity)
    assert true == pytest.approx(0.83, abs=0.02)
    assert true - information_gain(rows, mixing[:, 1:], activity[:, 1:]) >= 0.05
    rng = np.random.default_rng(seed)
    one_more = np.column_stack([activity, rng.random(len(rows)) < 0.1])
    assert information_gain(rows, np.column_stack([mixing, rng.random(64) < 0.1]), one_more) < true


def test_weights_count_as_rows():
    rng = np.random.default_rng(0)
    rows, mixing, activity = rng.random((5, 4)) < 0.5, rng.random((4, 2)) < 0.5, rng.random((5, 2)) < 0.5
    weights = np.array([1, 2, 3, 0, 1])
    repeated = [np.repeat(table, weights, axis=0) for table in (rows, activity)]
    expected = information_gain(repeated[0], mixing, repeated[1])
    assert information_gain(rows, mixing, activity, sample_weight=weights) == pytest.approx(expected)


def test_constant_tables_have_no_gain_and_tables_must_match():
    assert information_gain([[1, 0], [1, 0]], [[1], [0]], [[1], [1]]) == 0.0
    with pytest.raises(DataError, match="do not belong together"):
        information_gain([[1, 0]], [[1]], [[1]])
