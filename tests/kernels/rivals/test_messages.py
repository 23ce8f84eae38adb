import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.kernels.rivals.factors import answer_cells, gather_answers
from tests.reference import slow_messages

odds = st.floats(-6, 6).map(lambda x: round(x, 3))


@given(st.integers(1, 4).flatmap(lambda n: st.tuples(*(st.lists(odds, min_size=n, max_size=n),) * 2, odds)))
@settings(max_examples=100)
def test_a_cell_answers_with_the_best_of_all_configurations(given_messages):
    activity, mixing, evidence = given_messages
    shape = (1, 1, len(activity))
    to_activity, to_mixing = np.zeros(shape), np.zeros(shape)
    messages = np.reshape(activity, shape), np.reshape(mixing, shape)
    change = answer_cells(*messages, np.array([[evidence]]), 1.0, to_activity, to_mixing)
    expected = slow_messages.answers(activity, mixing, evidence)
    np.testing.assert_allclose((to_activity[0, 0], to_mixing[0, 0]), expected, atol=1e-12)
    assert change == pytest.approx(np.abs(expected).max(), abs=1e-12)


def test_damping_keeps_most_of_the_old_answer():
    shape = (1, 1, 1)
    to_activity, to_mixing = np.full(shape, 10.0), np.full(shape, 10.0)
    answer_cells(np.ones(shape), np.ones(shape), np.array([[3.0]]), 0.2, to_activity, to_mixing)
    assert to_activity[0, 0, 0] == pytest.approx(0.8 * 10 + 0.2 * 3)


def test_a_row_of_weight_two_tells_what_two_rows_tell():
    rng = np.random.default_rng(0)
    one = rng.normal(size=(2, 3, 2))
    both = np.concatenate([one[:1], one])  # the first row twice

    def gathered(messages, weights):
        activity, mixing = np.empty((len(messages), 2)), np.empty((3, 2))
        sent = np.empty(messages.shape), np.empty(messages.shape)
        gather_answers(messages, messages, np.array(weights), (-0.5, 0.25), activity, mixing, *sent)
        return activity, mixing, *sent

    weighted, plain = gathered(one, [2.0, 1.0]), gathered(both, [1.0, 1.0, 1.0])
    np.testing.assert_allclose(weighted[1], plain[1])
    for a, b in zip((weighted[0], *weighted[2:]), (plain[0], *plain[2:]), strict=True):
        np.testing.assert_allclose(a, b[1:])
    np.testing.assert_allclose(plain[0], -0.5 + both.sum(axis=1))
    np.testing.assert_allclose(plain[1], 0.25 + both.sum(axis=0))
    np.testing.assert_allclose(plain[2], plain[0][:, None, :] - both)
