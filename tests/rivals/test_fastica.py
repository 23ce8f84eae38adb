import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import DataError
from bica.metrics import hamming_distance
from bica.model.or_mixture import OrMixture
from bica.rivals.fastica import FastICA


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


def test_fractional_weights_are_refused():
    with pytest.raises(DataError, match="whole numbers"):
        fit([[1, 0], [0, 1]], n_sources=1, weights=[0.5, 1.0])
