import numpy as np
import pytest
from scipy.special import logsumexp

from bica.data.patterns import PatternCounts
from bica.errors import LimitError, SettingError
from bica.model.noise import Noise
from bica.rivals.noca import NOCA, BoundLearner, ExactLearner


def causes(seed, n_sensors=64, n_samples=500):
    """Eight sources that reach a fifth of the sensors with probability 0.9, and a leak of 0.02."""
    rng = np.random.default_rng(seed)
    mixing, activity = rng.random((n_sensors, 8)) < 0.2, rng.random((n_samples, 8)) < 0.2
    quiet = 0.98 * 0.1 ** (activity.astype(int) @ mixing.T.astype(int))
    return mixing, PatternCounts.of(rng.random(quiet.shape) >= quiet)


def fit(data, **settings):
    return NOCA(**settings).fit(data, np.random.default_rng(0))


def n_near(found, mixing, most=3):
    """How many true columns have a found one within three sensors."""
    wrong = (found.model.mixing[:, :, None] != mixing[:, None, :]).sum(axis=0)
    return int((wrong.min(axis=0) <= most).sum())


@pytest.mark.slow
def test_the_bound_finds_the_sources():
    mixing, data = causes(2)
    found = fit(data, n_sources=8)
    assert n_near(found, mixing) == 8
    assert abs(found.model.probability.mean() - 0.2) < 0.065
    assert found.converged


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 4])
def test_the_exact_sibling_finds_all_sources_and_their_links(seed):
    mixing, data = causes(seed)
    found = fit(data, n_sources=8, exact=True)
    assert n_near(found, mixing) == 8
    reach = np.array(found.diagnostics["reach"])
    assert abs(reach[found.model.mixing].mean() - 0.9) < 0.03
    assert abs(np.mean(found.model.noise.false_alarm) - 0.02) < 0.015
    costs = np.array(found.diagnostics["objective"])
    assert (np.diff(costs) <= 1e-8 * np.abs(costs[1:])).all()


def test_the_bound_is_below_the_likelihood_of_the_same_parameters():
    _, data = causes(3, n_sensors=20, n_samples=100)
    bounded = BoundLearner(data, 8, np.random.default_rng(0))
    exact = ExactLearner(data, 8, np.random.default_rng(0))
    for _ in range(10):
        exact.link, exact.leak, exact.probability = bounded.link, bounded.leak, bounded.probability
        likelihood = data.weights @ logsumexp(exact.log_joint(exact._quiet()), axis=1)
        assert bounded.step() <= likelihood + 1e-9


def test_the_likelihood_is_that_of_enumeration():
    rows = np.array([[1, 0], [1, 1], [0, 0]])
    data = PatternCounts.of(rows)
    learner = ExactLearner(data, 1, np.random.default_rng(0))
    learner.link, learner.leak, learner.probability = np.array([[0.7, 0.4]]), np.array([0.1, 0.2]), np.array([0.3])
    expected = 0.0
    for row in rows:
        off = np.where(row, learner.leak, 1 - learner.leak).prod()
        quiet = (1 - learner.leak) * (1 - learner.link[0])
        expected += np.log(0.7 * off + 0.3 * np.where(row, 1 - quiet, quiet).prod())
    assert learner.step() == pytest.approx(expected)


def test_weights_count_as_rows():
    _, data = causes(1, n_sensors=16, n_samples=80)
    double = PatternCounts(data.patterns, 2 * data.weights, data.sensors)
    for exact in (False, True):
        one, two = (fit(given, n_sources=3, n_init=1, exact=exact, max_iter=5) for given in (data, double))
        np.testing.assert_allclose(one.diagnostics["reach"], two.diagnostics["reach"], atol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"n_sources": 0}, {"n_sources": 1, "max_iter": 0}, {"noise": "per-sensor"}])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        fit(PatternCounts.of([[1, 0]]), **settings)


def test_more_states_than_can_be_listed_are_refused():
    with pytest.raises(LimitError, match="up to 12 sources"):
        fit(PatternCounts.of([[1, 0]]), n_sources=13, exact=True)


def test_given_noise_stays():
    _, data = causes(1, n_sensors=16, n_samples=80)
    assert fit(data, n_sources=3, n_init=1, noise=Noise.flips(0.1)).model.noise == Noise.flips(0.1)
