"""Two models side by side, and the columns found exactly."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.errors import ModelError
from bica.metrics import column_score, compare_models, hamming_distance, in_degree_error, structure_error
from bica.model.or_mixture import OrMixture
from tests.metrics.matrices import as_mixing, columns

TRUTH = OrMixture([[1, 1, 0], [0, 1, 0], [0, 0, 1]], [0.2, 0.5, 0.1], sensors=["a", "b", "c"])
NOTHING = OrMixture(np.zeros((3, 0)), [], sensors=["a", "b", "c"])


@given(st.integers(1, 4).flatmap(lambda m: st.tuples(columns(m, 4), columns(m, 3), st.just(m))))
def test_exact_columns_are_the_common_sets(pair):
    found, truth, m = pair
    models = [OrMixture(as_mixing(each, m), np.linspace(0.1, 0.4, len(each))) for each in (found, truth)]
    left, right = (
        {tuple(column): p for column, p in zip(x.mixing.T.tolist(), x.probability, strict=True)} for x in models
    )
    both = left.keys() & right.keys()
    score = column_score(*models)
    assert (score.n_found, score.n_true, score.n_exact) == (len(left), len(right), len(both))
    assert score.precision * len(left) == pytest.approx(len(both) if left else 0)
    assert score.recall * len(right) == pytest.approx(len(both) if right else 0)
    if both:
        errors = [abs(left[column] - right[column]) for column in both]
        assert score.mean_probability_error == pytest.approx(sum(errors) / len(errors))
        assert score.max_probability_error == pytest.approx(max(errors))
        assert score.f1 == pytest.approx(2 / (1 / score.precision + 1 / score.recall))
    else:
        assert score.mean_probability_error is None


def test_the_truth_against_itself_is_perfect():
    assert compare_models(TRUTH, TRUTH).as_dict() == {
        "n_found": 3,
        "n_true": 3,
        "n_exact": 3,
        "precision": 1,
        "recall": 1,
        "f1": 1,
        "mean_probability_error": 0,
        "max_probability_error": 0,
        "hamming_distance": 0,
        "in_degree_error": 0,
        "structure_error": 0,
        "transmission_probability_error": 0,
        "n_missing": 0,
    }


def test_the_parts_are_the_single_measures():
    found = OrMixture([[1, 0], [1, 0], [1, 1]], [0.3, 0.2], sensors=["a", "b", "c"])
    comparison = compare_models(found, TRUTH, n_samples=50)
    assert comparison.in_degree_error == in_degree_error(found.mixing, TRUTH.mixing) == 2
    assert comparison.structure_error == structure_error(found.mixing, TRUTH.mixing) == 2
    assert comparison.hamming_distance == hamming_distance(found.mixing, TRUTH.mixing) == 2 / 9
    assert comparison.columns == column_score(found, TRUTH)
    assert comparison.transmission_probability_error.n_missing == 1


def test_nothing_found_has_defined_answers():
    comparison = compare_models(NOTHING, TRUTH)
    assert (comparison.columns.precision, comparison.columns.recall, comparison.columns.f1) == (1, 0, 0)
    assert comparison.match.order.tolist() == [-1, -1, -1]
    assert comparison.hamming_distance == 4 / 9
    assert (comparison.in_degree_error, comparison.structure_error) == (4, 1)
    assert comparison.as_dict()["transmission_probability_error"] is None  # infinite
    # floored at the same value, the found shares are all 1/3
    shares = TRUTH.probability / TRUTH.probability.sum()
    floored = compare_models(NOTHING, TRUTH, n_samples=100).transmission_probability_error
    assert floored.value == pytest.approx(float(shares @ np.log(3 * shares)))


def test_nothing_to_find_has_defined_answers():
    comparison = compare_models(TRUTH, NOTHING)
    assert (comparison.columns.precision, comparison.columns.recall, comparison.columns.f1) == (0, 1, 0)
    assert (comparison.hamming_distance, comparison.transmission_probability_error.value) == (0, 0)
    assert (comparison.in_degree_error, comparison.structure_error) == (4, 1)
    both_empty = compare_models(NOTHING, NOTHING)
    assert (both_empty.columns.f1, both_empty.hamming_distance, both_empty.in_degree_error) == (1, 0, 0)


@pytest.mark.parametrize("found", [NOTHING, TRUTH, TRUTH.pick([1])])
def test_the_plain_values_are_json(found):
    values = compare_models(found, TRUTH).as_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values


class TestSensors:
    def test_are_matched_by_name(self):
        assert compare_models(TRUTH.of_sensors([2, 0, 1]), TRUTH).columns.f1 == 1
        assert column_score(TRUTH.of_sensors([2, 0, 1]), TRUTH).f1 == 1

    def test_go_by_place_where_one_side_has_no_names(self):
        unnamed = OrMixture(TRUTH.mixing, TRUTH.probability)
        assert compare_models(unnamed, TRUTH).columns.f1 == 1
        assert compare_models(TRUTH, unnamed).columns.f1 == 1

    def test_with_other_names_are_refused(self):
        other = OrMixture(TRUTH.mixing, TRUTH.probability, sensors=["a", "b", "d"])
        with pytest.raises(ModelError, match="'c' is in one of them only"):
            compare_models(other, TRUTH)

    def test_with_half_the_names_in_common_do_not_go_by_place(self):
        shifted = OrMixture(TRUTH.mixing, TRUTH.probability, sensors=["x1", "x2", "x3"])
        with pytest.raises(ModelError, match="'x0' is in one of them only"):
            compare_models(OrMixture(TRUTH.mixing, TRUTH.probability), shifted)

    def test_of_another_number_are_refused(self):
        with pytest.raises(ModelError, match="2 sensors and the true one 3"):
            compare_models(TRUTH.of_sensors([0, 1]), TRUTH)
