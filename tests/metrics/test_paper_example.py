"""The paper's two sensors: three candidate sources with probabilities 0.2, 0 and 0.5 against two true ones."""

import numpy as np

from bica.metrics import (
    activity_error_ratio,
    compare_models,
    in_degree_error,
    match_columns,
    structure_error,
    transmission_probability_error,
)
from bica.model.or_mixture import OrMixture

TRUTH = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
CANDIDATES = np.array([[1, 0, 1], [0, 1, 1]])
FOUND = np.array([0.2, 0.0, 0.5])
ACTIVITY = np.array([[0, 0, 1, 0, 0, 0, 0, 0, 1, 0], [0, 1, 1, 0, 0, 1, 1, 1, 0, 0]]).T


def test_matching_removes_the_source_that_never_acts():
    match = match_columns(CANDIDATES, TRUTH.mixing, FOUND)
    assert match.order.tolist() == [0, 2]
    assert match.hamming_distance == 0
    assert match.cost == 2  # the one of the leftover column, times two sensors
    assert transmission_probability_error(match.probability, TRUTH.probability).value == 0


def test_without_matching_the_candidate_counts():
    assert in_degree_error(CANDIDATES, TRUTH.mixing) == 1
    assert structure_error(CANDIDATES, TRUTH.mixing) == 0


def test_after_pruning_nothing_is_wrong():
    found = OrMixture(CANDIDATES[:, FOUND > 0], FOUND[FOUND > 0])
    values = compare_models(found, TRUTH, n_samples=10).as_dict()
    assert values["f1"] == 1
    assert values["in_degree_error"] == values["hamming_distance"] == values["max_probability_error"] == 0


def test_decoding_the_third_slot_as_one_source_is_one_wrong_cell_of_twenty():
    """Where both sources act, the rows cannot tell whether the first did; the more probable answer says no."""
    match = match_columns(CANDIDATES, TRUTH.mixing, FOUND)
    decoded = np.column_stack([ACTIVITY[:, 0] & ~ACTIVITY[:, 1], np.zeros(10, int), ACTIVITY[:, 1]])
    assert activity_error_ratio(decoded, ACTIVITY, match) == 1 / 20
