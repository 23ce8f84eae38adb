"""In-degree and structure error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.errors import ModelError
from bica.metrics import in_degree_error, structure_error
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
