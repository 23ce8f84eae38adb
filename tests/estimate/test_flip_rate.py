"""The flip rate that is fitted for decoding."""

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.estimate.findbica import fitted_flip_rate
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture


@pytest.mark.parametrize("flip_rate", [0.02, 0.1, 0.25])
@pytest.mark.parametrize("n_sensors", [6, 30])
def test_with_the_true_sources_the_rate_is_found(flip_rate, n_sensors):
    rng = np.random.default_rng(n_sensors)
    chain = np.eye(n_sensors, dtype=bool) | np.eye(n_sensors, k=1, dtype=bool)  # connected: larger than a block
    truth = OrMixture(chain, np.full(n_sensors, 0.1), Noise.flips(flip_rate))
    n_samples = 4000
    found = fitted_flip_rate(truth, PatternCounts.of(truth.sample(n_samples, rng)))
    # a rate seen through sources that are themselves uncertain has at most the error of a tenth of all cells
    assert abs(found - flip_rate) < 4 * np.sqrt(flip_rate * (1 - flip_rate) / (n_samples * n_sensors / 10))


def test_the_rate_maximises_the_exact_likelihood():
    rng = np.random.default_rng(0)
    truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.3], Noise.flips(0.07))
    data = PatternCounts.of(truth.sample(2000, rng))
    found = fitted_flip_rate(truth, data)
    best = truth.with_noise(Noise.flips(found)).log_likelihood(data)
    for other in np.linspace(0.001, 0.4, 80):
        assert truth.with_noise(Noise.flips(other)).log_likelihood(data) <= best + 1e-3
