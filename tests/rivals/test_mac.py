import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import LimitError, SettingError
from bica.metrics import hamming_distance
from bica.model.noise import Noise
from bica.rivals.mac import MAC, assignment_sets
from tests.reference import slow_assignment
from tests.rivals.planted import clusters


def fit(data, **settings):
    return MAC(**settings).fit(data, np.random.default_rng(0))


@pytest.mark.slow
def test_it_recovers_five_clusters_under_a_fifth_of_noise():
    errors = []
    for seed in range(5):
        mixing, data = clusters(seed, 0.2)
        errors.append(hamming_distance(fit(data, n_sources=5, max_assign=5, n_init=12).model.mixing, mixing))
    assert np.median(errors) == 0
    assert max(errors) <= 0.02


def test_the_free_energy_falls_at_every_temperature():
    _, data = clusters(1, 0.1, n_samples=100)
    told = fit(data, n_sources=5, n_init=2).diagnostics
    energy, temperature = np.array(told["objective"]), np.array(told["temperature"])
    same = temperature[1:] == temperature[:-1]
    assert same.any()
    assert (np.diff(energy)[same] <= 1e-8 * np.abs(energy[1:][same])).all()
    assert len(told["scores"]) == 2


def test_a_start_is_scored_by_the_free_energy_of_its_links():
    data = PatternCounts.of([[1, 1, 0]] * 20 + [[0, 1, 1]] * 10 + [[0, 0, 0]] * 15 + [[1, 0, 0]])
    found = fit(data, n_sources=2, n_init=1)
    assert found.model.mixing.T.tolist() == [[True, True, False], [False, True, True]]
    noise = (found.model.noise.false_alarm, found.model.noise.miss)
    quiet = (~found.model.mixing.T).astype(float).tolist()
    sets = slow_assignment.sets_of(2, 2)
    score = slow_assignment.free_energy(data.rows(), data.weights, quiet, sets, noise, MAC().end_temperature)
    assert found.diagnostics["scores"] == [pytest.approx(score)]


def test_noise_is_estimated_with_false_alarms_and_misses_apart():
    rng = np.random.default_rng(3)
    clean = (rng.random((600, 3)) < 0.3) @ np.kron(np.eye(3, dtype=bool), np.ones((1, 8), bool))
    rows = Noise(0.02, 0.2).apply(clean, rng)
    noise = fit(PatternCounts.of(rows), n_sources=3, n_init=6).model.noise
    n_quiet, n_on = (~clean).sum(), clean.sum()
    # the rates are shares of cells; blocks of eight leave next to no doubt who was on
    assert abs(noise.false_alarm - 0.02) < 4 * np.sqrt(0.02 * 0.98 / n_quiet) + 0.005
    assert abs(noise.miss - 0.2) < 4 * np.sqrt(0.2 * 0.8 / n_on) + 0.005


def test_symmetric_noise_has_one_rate_and_given_noise_stays():
    _, data = clusters(1, 0.2, n_samples=100)
    noise = fit(data, n_sources=5, n_init=1, symmetric=True).model.noise
    assert noise.false_alarm == noise.miss > 0
    assert fit(data, n_sources=5, n_init=1, noise=Noise(0.1, 0.05)).model.noise == Noise(0.1, 0.05)


def test_sets_and_their_neighbours():
    sets = slow_assignment.sets_of(4, 3)
    without = assignment_sets(4, 3)
    assert without.shape == (4, len(sets))
    for number, members in enumerate(sets):
        for k in range(4):
            smaller = tuple(other for other in members if other != k)
            assert without[k, number] == (sets.index(smaller) if k in members else -1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "has to be told how many sources"),
        ({"n_sources": 0}, "cannot look for 0 sources"),
        ({"n_sources": 2, "n_init": 0}, "at least one start"),
        ({"cooling": 1.0}, "cooling must lie between"),
        ({"first_temperatures": ()}, "temperatures above 0"),
        ({"end_temperature": 0.0}, "temperatures above 0"),
        ({"max_assign": 0}, "count from 1 up"),
        ({"noise": "per-sensor"}, "not 'per-sensor'"),
        ({"noise": Noise([0.1, 0.2], 0.0)}, "give single rates"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, words):
    with pytest.raises(SettingError, match=words):
        fit(PatternCounts.of([[1, 0], [0, 1]]), **settings)


def test_too_many_sets_are_refused_before_the_memory_is_gone():
    with pytest.raises(LimitError, match="lower max_assign"):
        fit(PatternCounts.of([[1, 0], [0, 1]]), n_sources=60, max_assign=30)
