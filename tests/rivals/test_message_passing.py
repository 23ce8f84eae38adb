import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.metrics import column_score, hamming_distance
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.rivals.message_passing import MessagePassing
from tests.rivals.planted import factors, zoo_rows


def fit(data, **settings):
    return MessagePassing(**settings).fit(data, np.random.default_rng(0))


@pytest.mark.parametrize("flip_rate", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_five_planted_factors_are_found_exactly(seed, flip_rate):
    mixing, data, _ = factors(seed, 5, 300, 100, 0.5, flip_rate)
    assert hamming_distance(fit(data, n_sources=5, n_init=2).model.mixing, mixing) == 0


@pytest.mark.slow
def test_ten_sparser_factors_are_found_exactly():
    mixing, data, _ = factors(0, 10, 500, 200, 0.3, 0.05)
    assert hamming_distance(fit(data, n_sources=10, n_init=1).model.mixing, mixing) == 0


@pytest.mark.parametrize("seed", range(3))
def test_fifteen_factors_with_their_priors_are_found_exactly(seed):
    mixing, data, chance = factors(seed, 15, 100, 50, 0.25, 0.0)
    found = fit(data, n_sources=15, n_init=3, prior=(chance, chance)).model
    assert column_score(found, OrMixture(mixing, np.full(15, chance))).recall == 1


def test_two_factors_leave_at_most_271_wrong_cells_in_the_zoo(shared_data):
    rows = zoo_rows(shared_data)
    found = fit(PatternCounts.of(rows), n_sources=2, n_init=10)
    assert rows.shape == (101, 17)
    assert found.diagnostics["wrong_cells"] <= 271


def test_the_score_is_minus_the_log_of_the_joint_probability():
    mixing, data, _ = factors(1, 3, 60, 12, 0.4, 0.0)
    found = fit(data, n_sources=3, prior=(0.3, 0.2), noise=Noise(0.02, 0.1))
    assert hamming_distance(found.model.mixing, mixing) == 0
    rows = data.rows()
    evidence = np.where(rows, np.log(0.9 / 0.02), np.log(0.1 / 0.98))  # every cell is explained
    bits_on = data.n_samples * found.model.probability.sum() * np.log(0.3 / 0.7) + mixing.sum() * np.log(0.2 / 0.8)
    expected = -(data.weights @ (evidence * rows).sum(axis=1)) - bits_on
    assert found.diagnostics["objective"][-1] == pytest.approx(expected)
    assert min(found.diagnostics["scores"]) == found.diagnostics["objective"][-1]


@pytest.mark.parametrize(
    "settings", [{"prior": (0.0, 0.5)}, {"channel": 0.5}, {"damping": 0.0}, {"max_iter": 0}, {"noise": "per-sensor"}]
)
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        MessagePassing(**settings)


def test_the_number_of_sources_has_to_be_told():
    with pytest.raises(SettingError, match="give n_sources"):
        fit(PatternCounts.of([[1, 0]]))
