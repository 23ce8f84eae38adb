"""The likelihood of lossy edges on the lattice against sums over all activities and firings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.estimate.lattice import Cells
from bica.kernels.lattice.lossy import (
    lossy_em,
    lossy_log_likelihood,
    lossy_scores,
    row_probabilities,
    silence_table,
    spectrum_em,
    sums_without,
)
from tests.reference import slow_modes

chances = st.floats(0.05, 0.9)


@st.composite
def lossy_problems(draw):
    """Numbers of modes, reach and leaks, and rows with gaps and weights."""
    n_sensors, n_modes = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    owner = np.cumsum([0, *(draw(st.integers(0, 1)) for _ in range(n_modes - 1))])[:n_modes]
    most = [1.0 / np.sum(owner == group) for group in owner]
    probability = np.array([share * draw(chances) for share in most])
    edge = st.one_of(st.just(0.0), chances)
    reach = np.array(draw(st.lists(edge, min_size=n_modes * n_sensors, max_size=n_modes * n_sensors)))
    leak = np.array(draw(st.lists(chances, min_size=n_sensors, max_size=n_sensors)))
    cell = st.sampled_from([0.0, 1.0, np.nan])
    rows = draw(st.lists(st.lists(cell, min_size=n_sensors, max_size=n_sensors), min_size=1, max_size=4))
    weights = draw(st.lists(st.floats(0.5, 3), min_size=len(rows), max_size=len(rows)))
    cells = Cells.of(PatternCounts.of(np.array(rows), sample_weight=weights))
    return (probability, reach.reshape(n_modes, n_sensors), leak, owner.astype(np.int64)), cells


def gaps(cells):
    return np.repeat(cells.unobserved, np.diff(cells.starts))


def rows_of(cells):
    """The rows of a table as lists of True, False and None."""
    return [
        [None if gap >> i & 1 else bool(cell >> i & 1) for i in range(cells.n_sensors)]
        for cell, gap in zip(cells.cells.tolist(), gaps(cells).tolist(), strict=True)
    ]


def slow_rows(cells, parts):
    return np.array([slow_modes.row(row, *(part.tolist() for part in parts)) for row in rows_of(cells)])


@given(lossy_problems())
def test_rows_have_the_probability_of_all_firings_that_show_them(problem):
    parts, cells = problem
    expected = slow_rows(cells, parts)
    found = row_probabilities(silence_table(*parts), cells.cells, gaps(cells))
    assert found == pytest.approx(expected, rel=1e-9)
    height = lossy_log_likelihood(*parts, cells.cells, gaps(cells), cells.weights)
    assert height == pytest.approx(cells.weights @ np.log(expected), rel=1e-9)


def slow_derivatives(cells, parts):
    """By every probability, every reach that is not 0 and every leak: a row is linear in each of these numbers."""
    probability, reach, leak, owner = parts
    columns = []
    for part, places in (
        (0, np.argwhere(probability > 0)),
        (1, np.argwhere(reach > 0)),
        (2, np.argwhere(leak > 0)),
    ):
        for place in places:
            ends = []
            for value in (0.0, 1.0):
                moved = [probability.copy(), reach.copy(), leak.copy()]
                moved[part][tuple(place)] = value
                ends.append(slow_rows(cells, (*moved, owner)))
            columns.append(ends[1] - ends[0])
    return np.array(columns).T


@given(lossy_problems())
def test_derivatives_are_differences_between_never_and_always(problem):
    parts, cells = problem
    found, scores = lossy_scores(*parts, cells.cells, gaps(cells))
    assert found == pytest.approx(slow_rows(cells, parts), rel=1e-9)
    assert scores * found[:, None] == pytest.approx(slow_derivatives(cells, parts), abs=1e-10)
    information = (scores.T * cells.weights) @ scores
    expected = slow_derivatives(cells, parts) / found[:, None]
    assert information == pytest.approx((expected.T * cells.weights) @ expected, abs=1e-6, rel=1e-6)


@given(lossy_problems())
def test_a_step_of_expectation_and_maximisation_counts_activations_and_firings(problem):
    (probability, reach, leak, owner), cells = problem
    n_active, n_fired, n_leaks = np.zeros(probability.size), np.zeros(reach.shape), np.zeros(leak.size)
    plain = [part.tolist() for part in (probability, reach, leak, owner)]
    for row, weight in zip(rows_of(cells), cells.weights, strict=True):
        counts = slow_modes.expected_counts(row, *plain)
        for total, count in zip((n_active, n_fired, n_leaks), counts, strict=True):
            total += weight * np.array(count).reshape(total.shape)
    moved = probability.copy(), reach.copy(), leak.copy()
    fixed = np.zeros(probability.size, bool), np.zeros(reach.shape, bool)
    groups = (cells.unobserved, cells.starts, cells.cells)
    lossy_em(*moved, owner, fixed, groups, cells.weights, gaps(cells), 1, -np.inf)
    n_rows = cells.n_samples
    assert moved[0] == pytest.approx(np.clip(n_active / n_rows, 1e-6, 1 - 1e-4), abs=1e-9)
    by_edge = np.clip(n_fired / np.maximum(n_active, 1e-9)[:, None], 1e-5, 1 - 1e-5)
    assert moved[1] == pytest.approx(np.where(reach > 0, by_edge, 0.0), abs=1e-6)
    assert moved[2] == pytest.approx(np.clip(n_leaks / n_rows, 1e-5, 0.999), abs=1e-9)


@given(lossy_problems())
def test_steps_never_lead_down_and_given_numbers_stay(problem):
    (probability, reach, leak, owner), cells = problem
    moved = probability.copy(), reach.copy(), leak.copy()
    fixed = np.ones(probability.size, bool), np.ones(reach.shape, bool)
    groups = (cells.unobserved, cells.starts, cells.cells)

    def height():
        return lossy_log_likelihood(*moved, owner, cells.cells, gaps(cells), cells.weights)

    before = height()
    lossy_em(*moved, owner, fixed, groups, cells.weights, gaps(cells), 3, -np.inf)
    assert height() >= before - 1e-9
    assert np.array_equal(moved[0], probability)
    assert np.array_equal(moved[1], reach)


@given(st.integers(0, 5), st.integers(0, 10_000))
def test_sums_over_all_sets_without_a_sensor(n_sensors, seed):
    values, sums = np.random.default_rng(seed).random(2**n_sensors), np.empty(n_sensors)
    expected = [values[[s for s in range(values.size) if not s >> i & 1]].sum() for i in range(n_sensors)]
    whole = values.sum()
    assert sums_without(values, sums) == pytest.approx(whole)
    assert sums.tolist() == pytest.approx(expected)


def test_the_spectrum_of_sure_sources_settles_at_their_rates():
    """Two sure sources without noise: expected rows of a model have that model as their fixed point."""
    rate = np.zeros(8)
    rate[[3, 6]] = -np.log1p(-0.3), -np.log1p(-0.2)
    expected = np.zeros(8)
    expected[[0, 3, 6, 7]] = 0.7 * 0.8, 0.3 * 0.8, 0.7 * 0.2, 0.3 * 0.2
    patterns = np.flatnonzero(expected)
    rows = (patterns[:, None] >> np.arange(3)) & 1
    cells = Cells.of(PatternCounts.of(rows, sample_weight=1000 * expected[patterns]))
    found = np.full(8, 0.05)
    found[0] = 0.0
    groups = (cells.unobserved, cells.starts, cells.cells)
    spectrum_em(np.ones(8), groups, cells.weights, gaps(cells), found, 2000)
    assert found == pytest.approx(rate, abs=2e-3)
