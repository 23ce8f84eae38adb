"""The activity error ratio."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.errors import DataError
from bica.metrics import activity_error_ratio, match_columns
from tests.metrics.matrices import as_mixing, columns
from tests.reference import slow_metrics


def table(n_rows, n_columns):
    row = st.lists(st.integers(0, 1), min_size=n_columns, max_size=n_columns)
    return st.lists(row, min_size=n_rows, max_size=n_rows)


@pytest.mark.parametrize(("n_found", "n_true"), [(1, 3), (3, 3), (4, 2), (0, 2)])
@given(data=st.data())
def test_it_matches_the_definition(n_found, n_true, data):
    found = data.draw(columns(3, n_found))
    truth = data.draw(columns(3, n_true))
    found_rows = data.draw(table(4, n_found))
    true_rows = data.draw(table(4, n_true))
    match = match_columns(as_mixing(found, 3), as_mixing(truth, 3), np.zeros(n_found))
    partners = [None if j == -1 else j for j in match.order.tolist()]
    slow = slow_metrics.activity_error_ratio(found_rows, true_rows, partners)
    ratio = activity_error_ratio(np.reshape(found_rows, (4, n_found)), true_rows, match)
    assert ratio == pytest.approx(slow)


def test_nothing_to_decode_is_no_error():
    match = match_columns(np.ones((2, 1)), np.zeros((2, 0)), [0.5])
    assert activity_error_ratio(np.ones((3, 1)), np.zeros((3, 0)), match) == 0


def test_activities_that_do_not_belong_together_are_refused():
    match = match_columns(np.eye(2), np.eye(2), [0.5, 0.5])
    with pytest.raises(DataError, match="3 rows and the true one 4"):
        activity_error_ratio(np.zeros((3, 2)), np.zeros((4, 2)), match)
    with pytest.raises(DataError, match="other sources than the match"):
        activity_error_ratio(np.zeros((3, 1)), np.zeros((3, 2)), match)
    with pytest.raises(DataError, match="other sources than the match"):
        activity_error_ratio(np.zeros((3, 2)), np.zeros((3, 3)), match)
    with pytest.raises(DataError, match="0 and 1 only"):
        activity_error_ratio(np.full((3, 2), 0.4), np.zeros((3, 2)), match)
