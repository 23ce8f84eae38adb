"""Simulated problems: activity, what it shows, and noise on top."""

from math import sqrt

import numpy as np
import pytest

from bica.errors import SettingError
from bica.model.noise import Noise
from bica.simulate import simulate, topology

MODEL = topology("three")


def shown(problem):
    """What noise-free sensors would show, cell by cell from the definition."""
    mixing = problem.model.mixing
    return np.array([[(row & sensor).any() for sensor in mixing] for row in problem.activity])


@pytest.mark.parametrize("persistence", [None, 5])
def test_rows_are_the_or_of_the_active_sources(persistence):
    problem = simulate(MODEL, 60, np.random.default_rng(3), persistence)
    assert problem.model is MODEL
    assert problem.n_samples == 60
    assert problem.activity.shape == (60, MODEL.n_sources)
    assert problem.rows.dtype == bool
    assert problem.rows.tolist() == shown(problem).tolist()


def test_sources_are_on_as_often_as_the_model_says():
    activity = simulate(MODEL, 20_000, np.random.default_rng(5)).activity
    p = MODEL.probability
    assert (np.abs(activity.mean(axis=0) - p) < 4 * np.sqrt(p * (1 - p) / 20_000)).all()


def test_persistence_makes_sources_stay():
    problem = simulate(MODEL, 20_000, np.random.default_rng(5), persistence=8)
    for slots in problem.activity.T:
        stops = (slots[:-1] & ~slots[1:]).sum() / slots[:-1].sum()
        assert abs(stops - 1 / 8) < 4 * sqrt(1 / 8 * 7 / 8 / slots.sum())


def test_flips_turn_cells_over_at_the_stated_rate():
    problem = simulate(MODEL.with_noise(Noise.flips(0.1)), 2000, np.random.default_rng(7))
    flipped = problem.rows != shown(problem)
    assert abs(flipped.mean() - 0.1) < 4 * sqrt(0.1 * 0.9 / flipped.size)


def test_every_sensor_has_its_own_noise():
    false_alarm, miss = np.linspace(0, 0.3, 8), np.linspace(0.4, 0, 8)
    problem = simulate(MODEL.with_noise(Noise(false_alarm, miss)), 4000, np.random.default_rng(9))
    clean = shown(problem)
    for i in range(8):
        for state, rate in ((False, false_alarm[i]), (True, miss[i])):
            cells = problem.rows[clean[:, i] == state, i] != state
            assert abs(cells.mean() - rate) <= 4 * sqrt(rate * (1 - rate) / cells.size)


def test_the_same_seed_gives_the_same_problem():
    first, second = (simulate(MODEL, 50, np.random.default_rng(1), 4) for _ in range(2))
    assert (first.activity == second.activity).all()
    assert (first.rows == second.rows).all()


def test_no_rows_and_fewer():
    assert simulate(MODEL, 0, np.random.default_rng(1)).rows.shape == (0, 8)
    with pytest.raises(SettingError, match="-3 samples cannot be drawn"):
        simulate(MODEL, -3, np.random.default_rng(1))
