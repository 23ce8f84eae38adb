from itertools import product

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import DataError, SettingError
from bica.metrics import hamming_distance
from bica.model.noise import Noise
from bica.rivals.counted import repeated
from bica.rivals.or_machine import OrMachine, Sampling
from tests.reference.slow_sampling import log_joint
from tests.rivals.planted import factors


def fit(data, **settings):
    return OrMachine(**settings).fit(data, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(4))
def test_five_planted_factors_and_their_flip_rate_are_found(seed):
    mixing, data, _ = factors(seed, 5, 300, 100, 0.5, 0.1)
    found = fit(data, n_sources=5)
    assert hamming_distance(found.model.mixing, mixing) == 0
    flips = found.model.noise.miss
    assert abs(np.log((1 - flips) / flips) - np.log(9)) < 0.05
    assert found.converged


def test_posterior_means_are_those_of_enumeration():
    rows = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]])
    settings = OrMachine(n_sources=2, prior=(0.4, 0.3), noise=Noise(0.2, 0.3), burn_in=100, n_draws=100_000)
    data = PatternCounts.of(rows)
    task = Sampling(settings, data, repeated(data, "it"), 2)
    attempt = task.run(0, np.random.default_rng(0))
    says = np.where(data.rows(), np.log(0.7 / 0.2), np.log(0.3 / 0.8)).tolist()
    odds = np.log(0.4 / 0.6), np.log(0.3 / 0.7)
    states = np.array(list(product((0, 1), repeat=12)))
    weight = np.exp([log_joint(says, bits[:6].reshape(3, 2), bits[6:].reshape(2, 3), odds) for bits in states])
    means = weight @ states / weight.sum()
    np.testing.assert_allclose(attempt.activity, means[:6].reshape(3, 2), atol=0.01)
    np.testing.assert_allclose(attempt.reach, means[6:].reshape(2, 3).T, atol=0.01)


def test_missing_cells_may_be_anything():
    mixing, data, _ = factors(0, 3, 200, 30, 0.4, 0.0)
    cells = np.repeat(data.rows(), data.weights.astype(int), axis=0).astype(float)
    cells[np.random.default_rng(1).random(cells.shape) < 0.2] = np.nan
    found = fit(PatternCounts.of(cells), n_sources=3)
    assert hamming_distance(found.model.mixing, mixing) == 0
    assert found.diagnostics["wrong_cells"] == 0


def test_links_come_with_their_posterior_probability_in_the_order_of_the_sources():
    _, data, _ = factors(1, 3, 40, 20, 0.4, 0.25)
    found = fit(data, n_sources=3)
    reach = np.array(found.diagnostics["reach"])
    assert ((reach > 0.5) == found.model.mixing).all()
    assert ((reach > 0) & (reach < 1)).any()


def test_given_noise_stays():
    _, data, _ = factors(1, 3, 60, 12, 0.4, 0.1)
    assert fit(data, n_sources=3, n_init=1, noise=Noise(0.1, 0.05)).model.noise == Noise(0.1, 0.05)


@pytest.mark.parametrize(
    "settings", [{"prior": (0.0, 0.5)}, {"burn_in": -1}, {"n_draws": 0}, {"noise": "per-sensor"}, {"n_sources": 0}, {}]
)
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        fit(PatternCounts.of([[1, 0]]), **settings)


def test_weights_have_to_be_whole_numbers():
    with pytest.raises(DataError, match="OrMachine cannot weigh rows"):
        fit(PatternCounts.of([[1, 0]], sample_weight=[0.5]), n_sources=1)
