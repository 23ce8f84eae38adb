"""Markov activity has the stated frequency and persistence.

For a chain with P(on) = p, P(on -> off) = b and P(off -> on) = a, neighbouring slots correlate by r = 1 - a - b,
and slots k apart by r^k; all tolerances below are four standard deviations that follow from this.
"""

from itertools import pairwise, product
from math import sqrt

import numpy as np
import pytest

from bica.errors import SettingError
from bica.simulate import markov_activity

N_SAMPLES = 100_000
CHANCE = np.array([0.02, 0.2, 0.5, 0.2, 0.5, 0.9])
STAY = np.array([3.0, 10.0, 4.0, 1.25, 1.0, 9.0])  # the fourth is independent from slot to slot, the fifth alternates
STOP = 1 / STAY
START = STOP * CHANCE / (1 - CHANCE)
CORRELATION = 1 - START - STOP
ACTIVITY = markov_activity(CHANCE, STAY, N_SAMPLES, np.random.default_rng(7))


def test_every_source_is_on_as_often_as_stated():
    variance = CHANCE * (1 - CHANCE) / N_SAMPLES * (1 + CORRELATION) / (1 - CORRELATION)
    # an alternating source has no variance: its mean is off by half a slot at most
    assert (np.abs(ACTIVITY.mean(axis=0) - CHANCE) <= 4 * np.sqrt(variance) + 0.5 / N_SAMPLES).all()


def test_stays_have_the_stated_mean_and_are_geometric():
    for slots, stay in zip(ACTIVITY.T, STAY, strict=True):
        edges = np.diff(slots.astype(int), prepend=0, append=0)
        stays = np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)
        stays = stays[1:-1]  # the first and the last may be cut off
        sd = sqrt(stay * (stay - 1))
        assert abs(stays.mean() - stay) <= 4 * sd / sqrt(stays.size)
        single = 1 / stay  # the chance that a geometric stay lasts one slot
        assert abs((stays == 1).mean() - single) <= 4 * sqrt(single * (1 - single) / stays.size)


def test_neighbouring_slots_correlate_as_stated():
    """The correlation is 1 - a - b, and a and b are shares of the silent and of the active slots that switch."""
    for j, slots in enumerate(ACTIVITY.T):
        found = np.corrcoef(slots[:-1], slots[1:])[0, 1]
        variance = START[j] * (1 - START[j]) / np.sum(~slots) + STOP[j] * (1 - STOP[j]) / np.sum(slots)
        assert abs(found - CORRELATION[j]) <= 4 * sqrt(variance) + 2 / N_SAMPLES


def test_sources_are_independent_of_each_other():
    """The mean product of two independent chains, centred, has variance s^2 t^2 (1 + r q) / (1 - r q) / T."""
    chance, stay = np.array([0.2, 0.2, 0.4, 0.1]), np.array([10.0, 10.0, 4.0, 2.0])
    r = 1 - 1 / (stay * (1 - chance))
    found = np.corrcoef(markov_activity(chance, stay, N_SAMPLES, np.random.default_rng(11)).T)
    both = np.outer(r, r)
    allowed = 4 * np.sqrt((1 + both) / (1 - both) / N_SAMPLES)
    assert (np.abs(found - np.eye(4)) < allowed).all()


@pytest.mark.parametrize(("chance", "stay"), [(0.3, 5.0), (0.7, 2.5), (0.4, 1.0)])
def test_short_runs_follow_the_chain_from_the_first_slot(chance, stay):
    """Every pattern of three slots is as frequent as the stationary chain makes it."""
    n_runs = 10_000
    runs = markov_activity(np.full(n_runs, chance), stay, 3, np.random.default_rng(13)).T
    leave = {True: 1 / stay, False: chance / (1 - chance) / stay}
    for pattern in product([False, True], repeat=3):
        expected = chance if pattern[0] else 1 - chance
        for now, later in pairwise(pattern):
            expected *= leave[now] if now != later else 1 - leave[now]
        found = (runs == pattern).all(axis=1).mean()
        assert abs(found - expected) <= 4 * sqrt(expected * (1 - expected) / n_runs) + 1e-12


def test_one_number_or_one_a_source():
    rng = np.random.default_rng
    one = markov_activity([0.1, 0.3], 4, 50, rng(3))
    assert one.tolist() == markov_activity([0.1, 0.3], [4, 4], 50, rng(3)).tolist()
    assert markov_activity(0.1, 4, 50, rng(3)).shape == (50, 1)


def test_the_ends_of_the_ranges():
    rng = np.random.default_rng(5)
    assert not markov_activity([0.0], 3, 100, rng).any()
    assert markov_activity([], 3, 10, rng).shape == (10, 0)
    assert markov_activity([0.3], 3, 0, rng).shape == (0, 1)
    frozen = markov_activity(np.full(200, 0.5), 1e18, 40, rng)  # stays far longer than the run
    assert (frozen == frozen[0]).all()
    assert 0 < frozen[0].sum() < 200


@pytest.mark.parametrize(
    ("chance", "stay", "n_samples", "complaint"),
    [
        ([0.2, 0.9], 2, 10, "source 1 cannot be on with probability 0.9 in stays of 2 slots"),
        ([1.0], 1e9, 10, "source 0 cannot be on with probability 1"),
        ([0.2], 0.5, 10, "at least 1"),
        ([0.2], np.inf, 10, "finite"),
        ([1.2], 3, 10, r"lie in \[0, 1\]"),
        ([0.2, 0.3], [3, 3, 3], 10, "one number for all sources or one per source"),
        ([0.2], 3, -1, "-1 samples cannot be drawn"),
    ],
)
def test_impossible_settings_are_refused(chance, stay, n_samples, complaint):
    with pytest.raises(SettingError, match=complaint):
        markov_activity(chance, stay, n_samples, np.random.default_rng(1))
