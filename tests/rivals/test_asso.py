import numpy as np
import pytest
from hypothesis import given, settings

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.metrics import hamming_distance
from bica.rivals.asso import Asso
from tests.reference import slow_asso
from tests.rivals.planted import factors, zoo_rows
from tests.strategies import binary_tables


def fit(data, **settings):
    return Asso(**settings).fit(data, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(5))
def test_factors_that_own_a_sensor_are_found_exactly(seed):
    rng = np.random.default_rng(seed)
    mixing = np.vstack([np.eye(6, dtype=bool), rng.random((20, 6)) < 0.2])
    rows = (rng.random((400, 6)) < 0.2) @ mixing.T
    assert hamming_distance(fit(PatternCounts.of(rows), n_sources=6).model.mixing, mixing) == 0


@pytest.mark.parametrize(("n_sources", "most"), [(2, 326), (5, 199), (10, 86)])
def test_no_more_cells_of_the_zoo_are_wrong_than_measured_before(shared_data, n_sources, most):
    found = fit(PatternCounts.of(zoo_rows(shared_data)), n_sources=n_sources)
    assert found.diagnostics["wrong_cells"] <= most


@given(binary_tables())
@settings(max_examples=60)
def test_each_source_is_the_best_candidate_of_the_definition(table):
    data = PatternCounts.of(np.array(table))
    for threshold, costs in ((0.5, (1.0, 1.0)), (1.0, (2.0, 1.0))):
        told = {"thresholds": (threshold,), "cost_of_one": costs[0], "cost_of_zero": costs[1]}
        found = fit(data, n_sources=2, **told)
        expected = slow_asso.greedy_cover(data.rows().tolist(), data.weights.tolist(), 2, threshold, *costs)
        assert found.diagnostics["objective"] == pytest.approx(expected)


def test_the_cost_is_that_of_the_wrong_cells():
    _, data, _ = factors(0, 4, 80, 20, 0.4, 0.05)
    found = fit(data, n_sources=4)
    assert found.diagnostics["wrong_cells"] == min(found.diagnostics["scores"]) == found.diagnostics["objective"][-1]
    assert len(found.diagnostics["scores"]) == 10


def test_dear_zeros_stay_uncovered():
    _, data, _ = factors(0, 4, 80, 20, 0.4, 0.05)
    found = fit(data, n_sources=4, cost_of_zero=1000.0)
    assert found.model.n_sources > 0
    assert found.diagnostics["objective"][-1] == found.diagnostics["wrong_cells"]  # ones that are not covered


@pytest.mark.parametrize(
    "settings",
    [{}, {"n_sources": 0}, {"thresholds": ()}, {"thresholds": (0.0,)}, {"cost_of_one": 0.0}, {"noise": "per-sensor"}],
)
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        fit(PatternCounts.of([[1, 0]]), **settings)
