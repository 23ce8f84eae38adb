"""Refits that begin with an earlier model: the same sources, sooner; what has changed is noticed."""

import numpy as np
import pytest

from bica import BICA
from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.estimate.likelihood import Likelihood
from bica.estimate.settings import columns_of
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network


def columns(model):
    return {tuple(np.flatnonzero(column).tolist()) for column in model.mixing.T}


def learn(model, n_rows, seed, **settings):
    data = PatternCounts.of(model.sample(n_rows, np.random.default_rng(seed)), sensors=model.sensors)
    return Likelihood(n_jobs=1, **settings).fit(data, np.random.default_rng(0))


def network(n_sensors, n_sources, seed=0):
    return random_network(n_sensors, n_sources, noise=Noise.flips(0.01), rng=np.random.default_rng(seed))


def changed(model):
    """The model without its first source, and with one behind two sensors that no source joins."""
    together = (model.mixing.astype(int) @ model.mixing.T.astype(int)) > 0
    first, second = np.argwhere(~together & ~np.eye(model.n_sensors, dtype=bool))[0]
    mixing = np.hstack([model.mixing[:, 1:], np.isin(np.arange(model.n_sensors), [first, second])[:, None]])
    return OrMixture(mixing, np.append(model.probability[1:], 0.1), model.noise, sensors=model.sensors)


@pytest.mark.parametrize("size", [(8, 6, 0), pytest.param((30, 25, 1), marks=pytest.mark.slow)])
def test_a_warm_refit_finds_what_a_cold_one_finds(size):
    model = network(*size)
    first = learn(model, 5000, 1).model
    for now in (model, changed(model)):
        cold, warm = learn(now, 5000, 2), learn(now, 5000, 2, start=first)
        assert columns(warm.model) == columns(cold.model)
        assert np.allclose(np.sort(warm.model.probability), np.sort(cold.model.probability), atol=1e-3)
        assert warm.converged


@pytest.mark.slow
def test_a_warm_refit_of_many_sensors_notices_what_has_changed():
    model = network(70, 45)
    for now in (model, changed(model)):
        warm = learn(now, 20_000, 2, start=model)
        assert columns(warm.model) == columns(now)
        assert warm.converged


def test_earlier_sources_are_cut_down_to_the_sensors_that_vary():
    model = OrMixture([[1, 0], [1, 1], [0, 0]], [0.2, 0.4], sensors=["a", "b", "c"])
    rates = columns_of(model, ["b", "c"])
    assert rates == {(0,): pytest.approx(-np.log(0.8 * 0.6))}
    assert columns_of(None, ["a"]) == {}


def test_forbidden_and_known_sources_are_not_taken_from_the_earlier_model():
    model = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.4], sensors=["a", "b", "c"])
    found = learn(model, 2000, 0, start=model, forbidden=[("a", "b")]).model
    assert not any({0, 1} <= set(column) for column in columns(found))
    known = learn(model, 2000, 0, start=model, known=[(["a", "b"], 0.2)]).model
    assert columns(known) == columns(model)


def test_the_estimator_starts_from_its_last_fit_and_keeps_names():
    model = network(6, 4)
    rows = [model.sample(4000, np.random.default_rng(seed)) for seed in (1, 2)]
    learner = BICA(warm_start=True, random_state=0).fit(rows[0])
    learner.name_sources({"source1": "printer"})
    assert learner._method().start == learner.model_
    assert "printer" in learner.fit(rows[1]).get_feature_names_out()
    assert columns(learner.model_) == columns(BICA().fit(rows[1]).model_)
    with pytest.raises(SettingError, match="warm_start"):
        BICA(method="findbica", warm_start=True).fit(rows[0])
