import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.metrics import hamming_distance
from bica.rivals.elbmf import ELBMF, RelaxedTable, pulled
from tests.rivals.planted import factors, zoo_rows


def fit(data, **settings):
    return ELBMF(**settings).fit(data, np.random.default_rng(0))


@pytest.mark.slow
def test_ten_sparse_factors_are_found_but_for_one_cell_in_two_hundred():
    mixing, data, _ = factors(0, 10, 500, 200, 0.3, 0.05)
    found = fit(data, n_sources=10, n_init=5)
    assert hamming_distance(found.model.mixing, mixing) <= 0.005
    assert found.converged


def test_factors_are_binary_before_they_are_rounded():
    _, data, _ = factors(0, 4, 100, 30, 0.3, 0.05)
    task = RelaxedTable(ELBMF(n_sources=4), data, data.rows().astype(float), 4)
    *both, _, converged = task.descend(np.random.default_rng(0))
    assert converged
    assert all(np.minimum(np.abs(factor), np.abs(factor - 1)).max() < 1e-6 for factor in both)


@pytest.mark.slow
@pytest.mark.parametrize(("n_sources", "most"), [(2, 274), (5, 148), (10, 109)])
def test_no_more_cells_of_the_zoo_are_wrong_than_measured_before(shared_data, n_sources, most):
    found = fit(PatternCounts.of(zoo_rows(shared_data)), n_sources=n_sources, n_init=10)
    assert found.diagnostics["wrong_cells"] <= 1.05 * most


@given(st.floats(-0.5, 1.8), st.floats(0, 0.3), st.floats(0, 3))
def test_the_pull_goes_where_the_sum_of_both_terms_is_least(place, l1, l2):
    """On its side of one half, and not below 0, as in the paper."""
    near = 1.0 if place > 0.5 else 0.0
    grid = np.linspace(0, 2, 40_001)
    cost = (grid - place) ** 2 / 2 + l1 * np.abs(grid - near) + l2 / 2 * (grid - near) ** 2
    assert pulled(np.array([place]), l1, l2)[0] == pytest.approx(grid[cost.argmin()], abs=1e-4)


def test_the_objective_is_half_the_squared_error_of_the_product():
    _, data, _ = factors(1, 3, 60, 12, 0.4, 0.1)
    task = RelaxedTable(ELBMF(n_sources=3, max_iter=7), data, data.rows().astype(float), 3)
    activity, mixing, errors, converged = task.descend(np.random.default_rng(0))
    assert not converged
    assert errors[-1] == pytest.approx(data.weights @ ((data.rows() - activity @ mixing) ** 2).sum(axis=1) / 2)


@pytest.mark.slow
def test_weights_count_as_rows():
    _, data, _ = factors(2, 3, 60, 12, 0.4, 0.1)
    double = PatternCounts(data.patterns, 2 * data.weights, data.sensors)
    assert fit(double, n_sources=3).diagnostics["wrong_cells"] == 2 * fit(data, n_sources=3).diagnostics["wrong_cells"]


@pytest.mark.parametrize("settings", [{}, {"l1": -1.0}, {"growth": 0.9}, {"max_iter": 0}, {"noise": "per-sensor"}])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        fit(PatternCounts.of([[1, 0]]), **settings)
