"""In-degree and structure error, and edges with their reach."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.errors import ModelError
from bica.metrics import compare_models, edge_score, in_degree_error, structure_error
from bica.model.or_mixture import OrMixture
from tests.metrics.matrices import SHAPES, as_mixing, pairs
from tests.reference import slow_metrics


@pytest.mark.parametrize(("n_found", "n_true"), SHAPES)
@given(data=st.data())
def test_both_errors_match_the_definition(n_found, n_true, data):
    found, truth, m = data.draw(pairs(n_found, n_true))
    arrays = as_mixing(found, m), as_mixing(truth, m)
    assert in_degree_error(*arrays) == slow_metrics.in_degree_error(found, truth, m)
    for diagonal in (False, True):
        slow = slow_metrics.structure_error(found, truth, m, diagonal)
        assert structure_error(*arrays, diagonal=diagonal) == slow


def test_the_order_of_the_sources_does_not_matter():
    rng = np.random.default_rng(3)
    mixing = rng.random((6, 5)) < 0.4
    assert structure_error(mixing[:, ::-1], mixing, diagonal=True) == 0


def test_other_numbers_of_sensors_are_refused():
    with pytest.raises(ModelError, match="found mixing has 2 sensors and the true one 3"):
        in_degree_error(np.eye(2), np.eye(3))


@pytest.mark.parametrize(
    ("mixing", "complaint"), [([[2, 0]], "0 and 1 only"), ([[np.nan]], "0 and 1 only"), ([1, 0], "needs two")]
)
def test_what_is_no_mixing_is_refused(mixing, complaint):
    with pytest.raises(ModelError, match=complaint):
        structure_error(mixing, [[1, 0]])


class TestLossyEdges:
    TRUTH = OrMixture([[1, 0], [1, 0], [1, 1], [1, 1]], [0.2, 0.3], reach=[[0.5, 0], [0.6, 0], [0.7, 0.9], [0.8, 0.4]])

    def test_the_truth_is_perfect(self):
        score = edge_score(self.TRUTH, self.TRUTH)
        assert (score.f1, score.mean_reach_error, score.max_reach_error) == (1.0, 0.0, 0.0)

    def test_only_edges_that_rows_can_tell_count(self):
        """The second source is a pair, so its reach is anybody's guess."""
        reach = self.TRUTH.reach.copy()
        reach[2, 1], reach[0, 0] = 0.1, 0.9
        score = edge_score(OrMixture(reach > 0, [0.2, 0.3], reach=reach), self.TRUTH)
        assert score.f1 == 1.0
        assert score.max_reach_error == pytest.approx(0.4)
        assert score.mean_reach_error == pytest.approx(0.1)

    def test_missing_and_spurious_edges_count_against_it(self):
        found = OrMixture(
            [[1, 0], [1, 0], [1, 1], [0, 1]], [0.2, 0.3], reach=[[0.5, 0], [0.6, 0], [0.7, 0.9], [0, 0.4]]
        )
        assert edge_score(found, self.TRUTH).f1 == pytest.approx(2 * 5 / (5 + 6))
        spurious = OrMixture(np.eye(4), np.full(4, 0.1))
        assert edge_score(spurious, self.TRUTH).f1 < 0.5

    def test_lossy_twins_are_counted_one_by_one(self):
        twins = OrMixture(np.ones((3, 2)), [0.1, 0.3], reach=[[0.5, 0.9], [0.5, 0.9], [0.5, 0.8]])
        one = twins.pick([1])
        assert compare_models(twins, twins).columns.f1 == 1.0
        assert compare_models(one, twins).columns.recall == 0.5

    def test_it_is_among_the_measures_of_lossy_models_only(self):
        assert compare_models(self.TRUTH, self.TRUTH).as_dict()["edge_f1"] == 1.0
        sure = OrMixture(self.TRUTH.mixing, [0.2, 0.3])
        assert "edge_f1" not in compare_models(sure, sure).as_dict()
