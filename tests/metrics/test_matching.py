"""Matching found to true columns, against every permutation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.errors import ModelError
from bica.metrics import hamming_distance, match_by_program, match_columns, match_greedily
from tests.metrics.matrices import SHAPES, as_mixing, chances, columns, pairs
from tests.reference import slow_metrics


def partners(match):
    return [None if j == -1 else j for j in match.order.tolist()]


def check_parts(match, found, truth, probability, m):
    """The matrix, the probabilities and the wrong cells are those of the order that the match states."""
    chosen = partners(match)
    columns_of_match = [[0] * m if j is None else found[j] for j in chosen]
    assert match.mixing.T.astype(int).tolist() == columns_of_match
    assert match.probability.tolist() == [0 if j is None else probability[j] for j in chosen]
    assert match.n_wrong == sum(slow_metrics.wrong_cells(found, truth, chosen, m))
    assert match.hamming_distance == (match.n_wrong / (m * len(truth)) if m and truth else 0)


@pytest.mark.parametrize(("n_found", "n_true"), SHAPES)
@settings(max_examples=50)
@given(data=st.data())
def test_no_permutation_is_better(n_found, n_true, data):
    found, truth, m = data.draw(pairs(n_found, n_true))
    probability = data.draw(chances(n_found))
    arrays = as_mixing(found, m), as_mixing(truth, m), probability
    match = match_columns(*arrays)
    cost, best = slow_metrics.best_matchings(found, truth, m)
    assert match.cost == cost
    assert partners(match) in best
    check_parts(match, found, truth, probability, m)
    exact = [slow_metrics.wrong_cells(found, truth, one, m).count(0) for one in best]
    assert slow_metrics.wrong_cells(found, truth, partners(match), m).count(0) == max(exact)
    assert hamming_distance(*arrays[:2]) == match.hamming_distance


@pytest.mark.parametrize(("n_found", "n_true"), SHAPES)
@settings(max_examples=15)
@given(data=st.data())
def test_the_integer_program_reaches_the_same_cost(n_found, n_true, data):
    found, truth, m = data.draw(pairs(n_found, n_true))
    probability = data.draw(chances(n_found))
    match = match_by_program(as_mixing(found, m), as_mixing(truth, m), probability)
    cost, best = slow_metrics.best_matchings(found, truth, m)
    assert match.cost == cost
    assert partners(match) in best
    check_parts(match, found, truth, probability, m)


def test_the_integer_program_agrees_where_permutations_are_too_many():
    rng = np.random.default_rng(5)
    found, truth = rng.random((9, 14)) < 0.3, rng.random((9, 11)) < 0.3
    probability = rng.random(14)
    assert match_by_program(found, truth, probability).cost == match_columns(found, truth, probability).cost


@pytest.mark.parametrize(("n_found", "n_true"), SHAPES)
@settings(max_examples=50)
@given(data=st.data())
def test_greedy_matching_keeps_the_most_probable(n_found, n_true, data):
    found, truth, m = data.draw(pairs(n_found, n_true))
    probability = data.draw(st.permutations([k / 8 for k in range(n_found)]))
    match = match_greedily(as_mixing(found, m), as_mixing(truth, m), probability)
    kept = sorted(range(n_found), key=lambda j: -probability[j])[:n_true]
    cost, best = slow_metrics.best_matchings([found[j] for j in kept], truth, m)
    assert match.cost == cost
    assert partners(match) in [[None if j is None else kept[j] for j in one] for one in best]
    check_parts(match, found, truth, probability, m)


@given(st.data())
def test_the_order_of_the_sources_changes_nothing_but_the_numbers(data):
    m = 3
    found, truth = data.draw(columns(m, 4)), data.draw(columns(m, 3))
    probability = data.draw(chances(4))
    shuffled = data.draw(st.permutations(range(4)))
    for matched in (match_columns, match_greedily):
        straight = matched(as_mixing(found, m), as_mixing(truth, m), probability)
        other = matched(
            as_mixing([found[j] for j in shuffled], m), as_mixing(truth, m), [probability[j] for j in shuffled]
        )
        assert other.mixing.tolist() == straight.mixing.tolist()
        assert other.probability.tolist() == straight.probability.tolist()


def test_wide_columns_are_placed_before_narrow_ones():
    """The published factor on zero columns: leaving the exact column over costs 4, leaving the wide one 16."""
    found = np.array([[1, 1], [0, 1], [0, 1], [0, 1]])
    match = match_columns(found, np.array([[1], [0], [0], [0]]), [0.3, 0.1])
    assert (match.order.tolist(), match.cost) == ([1], 3 + 4)


def test_an_empty_answer_scores_the_density_of_the_truth():
    truth = np.array([[1, 0], [1, 1], [0, 0]])
    assert hamming_distance(np.zeros((3, 0)), truth) == 3 / 6


def test_a_probability_for_each_found_column_is_needed():
    with pytest.raises(ModelError, match=r"shape \(1,\), but there are 2 sources"):
        match_columns(np.eye(2), np.eye(2), [0.1])
