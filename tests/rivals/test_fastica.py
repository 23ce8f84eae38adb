import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import FastICA as Reference
from sklearn.exceptions import ConvergenceWarning

from bica.data.patterns import PatternCounts
from bica.metrics import hamming_distance
from bica.model.or_mixture import OrMixture
from bica.rivals.fastica import TOLERANCE, FastICA, WhiteRows


def fit(rows, **settings):
    data = PatternCounts.of(rows, **({"sample_weight": settings.pop("weights")} if "weights" in settings else {}))
    return FastICA(**settings).fit(data, np.random.default_rng(0))


def test_disjoint_sources_are_linear_and_found():
    truth = OrMixture(np.kron(np.eye(3, dtype=bool), np.ones((2, 1), bool)), [0.2, 0.3, 0.4])
    found = fit(truth.sample(2000, np.random.default_rng(1)), n_sources=3).model
    assert hamming_distance(found.mixing, truth.mixing) == 0
    assert np.abs(found.probability - [0.4, 0.3, 0.2]).max() < 4 * np.sqrt(0.25 / 2000)


def test_silent_and_duplicate_sensors_cap_the_number_of_components():
    one = np.random.default_rng(2).random((200, 2)) < 0.4
    rows = np.column_stack([one, one, np.zeros((200, 2), bool), np.ones((200, 1), bool)])
    model = fit(rows, n_sources=6).model
    assert model.n_sources <= 2
    assert np.isfinite(model.probability).all()


def test_constant_rows_have_one_source_that_is_always_on():
    model = fit([[1, 0, 1]] * 5, n_sources=2).model
    assert model.mixing.T.tolist() == [[True, False, True]]
    assert model.probability.tolist() == [1.0]


@given(st.integers(0, 10**6))
def test_from_one_start_it_is_the_fast_ica_of_all_rows(seed):
    """scikit-learn's, which visits every row, ends at the same directions after as many steps."""
    rng = np.random.default_rng(seed)
    data = PatternCounts.of(rng.random((200, 5)) < rng.uniform(0.1, 0.5, 5))
    table, begin = WhiteRows.of(data, 3), rng.normal(size=(3, 3))
    rows = np.repeat(data.rows(), data.weights.astype(int), axis=0).astype(float)
    unmixing, _ = table.unmixed(begin, max_iter=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        any_start = Reference(3, whiten="unit-variance", max_iter=1).fit(rows)
        signs = np.sign((any_start.whitening_.T * table.back).sum(axis=0))  # the same axes, perhaps turned round
        reference = Reference(3, whiten="unit-variance", max_iter=4, w_init=begin * signs, tol=TOLERANCE).fit(rows)
    assert np.abs(table.back @ unmixing.T) == pytest.approx(np.abs(reference.mixing_), abs=1e-6)


def test_weights_count_as_rows():
    rows = np.random.default_rng(3).random((60, 4)) < 0.4
    half = fit(rows, n_sources=3, weights=np.full(60, 0.5))
    assert (half.model.mixing == fit(rows, n_sources=3).model.mixing).all()
