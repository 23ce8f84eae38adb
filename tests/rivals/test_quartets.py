import numpy as np
import pytest

import bica.rivals.quartets as module
from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, SettingError
from bica.model.noise import Noise
from bica.rivals.quartets import Moments, Quartets, Source, core_of


class Network:
    """Sources on sets of sensors, each link with a probability of leaving its sensor quiet, and leaks."""

    def __init__(self, seed, sets, n_sensors):
        rng = np.random.default_rng(seed)
        self.probability = rng.uniform(0.15, 0.4, len(sets))
        self.quiet = np.ones((n_sensors, len(sets)))
        for k, sensors in enumerate(sets):
            self.quiet[list(sensors), k] = rng.uniform(0.1, 0.4, len(sensors))
        self.leak = rng.uniform(0.01, 0.05, n_sensors)

    def silence(self, activity):
        return np.where(activity[:, None, :], self.quiet, 1.0).prod(axis=2) * (1 - self.leak)

    def sample(self, n_samples, rng):
        silence = self.silence(rng.random((n_samples, self.probability.size)) < self.probability)
        return PatternCounts.of(rng.random(silence.shape) >= silence)

    def distribution(self, n_samples):
        """Every possible row, with its exact share of so many samples as its weight."""
        n_sources, n_sensors = self.probability.size, self.leak.size
        states = (np.arange(2**n_sources)[:, None] >> np.arange(n_sources)) & 1 == 1
        rows = (np.arange(2**n_sensors)[:, None] >> np.arange(n_sensors)) & 1 == 1
        weight = np.zeros(len(rows))
        for state, silence in zip(states, self.silence(states), strict=True):
            chance = np.where(state, self.probability, 1 - self.probability).prod()
            weight += chance * np.where(rows, 1 - silence, silence).prod(axis=1)
        return PatternCounts.of(rows, sample_weight=n_samples * weight)

    def check(self, found, of_probability, of_quiet):
        """That the columns are right, and all parameters as close as this."""
        assert found.model.n_sources == self.probability.size
        place = {tuple(column): k for k, column in enumerate((self.quiet < 1).T.tolist())}
        order = [place[tuple(column)] for column in found.model.mixing.T.tolist()]
        reach = np.array(found.diagnostics["reach"])
        np.testing.assert_allclose(found.model.probability, self.probability[order], atol=of_probability)
        np.testing.assert_allclose(reach, 1 - self.quiet[:, order], atol=of_quiet)


def fit(data, **settings):
    return Quartets(**settings).fit(data, np.random.default_rng(0))


CHAIN = (range(6), range(4, 10), range(8, 14))  # neighbours share two sensors


@pytest.mark.parametrize("seed", range(5))
def test_three_sources_of_fourteen_sensors_are_found_with_their_links(seed):
    network = Network(seed, CHAIN, 14)
    found = fit(network.sample(20_000, np.random.default_rng(seed)))
    network.check(found, 0.014, 0.028)
    assert found.diagnostics["not_learnable"] == []


@pytest.mark.parametrize("seed", range(3))
def test_exact_moments_give_exact_parameters(seed):
    network = Network(seed, (range(5), range(4, 9)), 9)
    found = fit(network.distribution(1e6))
    network.check(found, 1e-9, 1e-9)
    np.testing.assert_allclose(found.model.noise.rates(9)[0], network.leak, atol=1e-9)


def test_a_source_of_three_sensors_is_reported_as_not_learnable():
    network = Network(0, (range(5), range(5, 8)), 8)
    found = fit(network.sample(20_000, np.random.default_rng(0)))
    assert found.model.mixing.T.tolist() == [[True] * 5 + [False] * 3]
    assert found.diagnostics["not_learnable"] == [["x5", "x6", "x7"]]


def test_four_sensors_with_two_common_sources_are_no_quartet():
    network = Network(1, (range(4), range(2, 6)), 6)
    moments, method = Moments(network.distribution(1e6)), Quartets()
    rng = np.random.default_rng(0)
    assert method._misfit(moments, (0, 1, 2, 3), rng) > 1  # the last two share a second source
    moments.divide_by(Source(network.probability[1], network.quiet[:, 1]))
    assert method._misfit(moments, (0, 1, 2, 3), rng) < 0.01
    probability, drop = core_of(moments.of_quartet((0, 1, 2, 3)))
    assert probability == pytest.approx(network.probability[0])
    np.testing.assert_allclose(drop, ((1 - network.leak) * (1 - network.quiet[:, 0]))[:4])


def test_a_true_quartet_passes_as_often_as_the_level_says():
    network = Network(2, (range(4),), 4)
    rng = np.random.default_rng(0)
    passed = [
        Quartets(level=0.9)._misfit(Moments(network.sample(2000, rng)), (0, 1, 2, 3), rng) <= 1 for _ in range(60)
    ]
    # the largest of three tables is judged by the level of one: between 0.9^3 and 0.9 pass, less 4 standard errors
    assert np.mean(passed) > 0.9**3 - 4 * np.sqrt(0.73 * 0.27 / 60)


def test_ctrl_c_keeps_the_sources_so_far(monkeypatch):
    data = Network(0, CHAIN, 14).sample(20_000, np.random.default_rng(0))
    learned = Quartets._learned
    calls = []

    def interrupt(self, *arguments):
        if any(calls):
            raise KeyboardInterrupt
        calls.append(learned(self, *arguments))
        return calls[-1]

    monkeypatch.setattr(module.Quartets, "_learned", interrupt)
    with pytest.warns(BicaWarning, match="the sources so far"):
        found = fit(data)
    assert found.model.n_sources == 1
    assert not found.converged
    assert found.diagnostics["interrupted"]


def test_given_noise_stays():
    data = Network(0, (range(5),), 5).sample(2000, np.random.default_rng(0))
    assert fit(data, noise=Noise.flips(0.1)).model.noise == Noise.flips(0.1)


@pytest.mark.parametrize("settings", [{"standard_errors": 0.0}, {"n_resamples": 0}, {"level": 1.0}])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        Quartets(**settings)
