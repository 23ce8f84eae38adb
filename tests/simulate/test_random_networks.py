"""Random networks have the columns and probabilities that were asked for."""

from collections import Counter
from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.errors import SettingError
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network, simulate, with_lossy_edges


def columns(model):
    return [tuple(np.flatnonzero(column).tolist()) for column in model.mixing.T]


def sigmas(count, n_trials, chance):
    """How many standard deviations a count is from its mean."""
    return abs(count - n_trials * chance) / sqrt(n_trials * chance * (1 - chance))


@given(st.integers(0, 6), st.integers(1, 4), st.integers(0, 3), st.integers(0, 2**32), st.data())
def test_every_possible_request_is_met(n_sensors, least, extra, seed, data):
    possible = sum(comb(n_sensors, size) for size in range(least, least + extra + 1))
    n_sources = data.draw(st.integers(0, possible))
    model = random_network(
        n_sensors,
        n_sources,
        column_weight=(least, least + extra),
        probability=(0.1, 0.4),
        rng=np.random.default_rng(seed),
    )
    assert model.mixing.shape == (n_sensors, n_sources)
    assert len(set(columns(model))) == n_sources
    assert all(least <= len(column) <= least + extra for column in columns(model))
    assert ((model.probability >= 0.1) & (model.probability <= 0.4)).all()


def test_sizes_and_probabilities_are_uniform():
    model = random_network(60, 3000, rng=np.random.default_rng(7))
    sizes = Counter(len(column) for column in columns(model))
    assert sizes.keys() == {2, 3, 4}
    assert all(sigmas(sizes[size], 3000, 1 / 3) < 4 for size in (2, 3, 4))
    assert sigmas(int((model.probability < 0.1).sum()), 3000, 0.05 / 0.25) < 4
    # the mean of 3000 uniform values has a standard deviation of their range over sqrt(12 * 3000)
    assert abs(model.probability.mean() - 0.175) < 4 * 0.25 / sqrt(12 * 3000)


@pytest.mark.parametrize("n_sources", [3, 7])  # drawn one by one, and picked from the full list
def test_sets_of_one_size_are_uniform(n_sources):
    rng = np.random.default_rng(11)
    seen = Counter(
        column for _ in range(800) for column in columns(random_network(5, n_sources, column_weight=(2, 2), rng=rng))
    )
    assert all(sigmas(seen[pair], 800, n_sources / 10) < 4 for pair in combinations(range(5), 2))


def test_the_place_of_a_column_tells_nothing_of_its_size():
    rng = np.random.default_rng(13)
    first = sum(len(columns(random_network(8, 4, column_weight=(1, 2), rng=rng))[0]) == 1 for _ in range(800))
    assert sigmas(first, 800, 1 / 2) < 4


def test_a_full_size_passes_its_turn_on():
    """Of four sensors, one set has all four: it is taken unless three fair coins all choose three sensors."""
    rng = np.random.default_rng(17)
    networks = [columns(random_network(4, 3, column_weight=(3, 4), rng=rng)) for _ in range(800)]
    assert sigmas(sum((0, 1, 2, 3) in network for network in networks), 800, 7 / 8) < 4


def test_the_same_seed_gives_the_same_network():
    assert random_network(9, 12, rng=np.random.default_rng(1)) == random_network(9, 12, rng=np.random.default_rng(1))
    assert random_network(9, 12, rng=np.random.default_rng(1)) != random_network(9, 12, rng=np.random.default_rng(2))


def test_noise_is_carried_into_the_model():
    assert random_network(4, 2, noise=Noise.flips(0.1), rng=np.random.default_rng(1)).noise == Noise.flips(0.1)


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        ({"n_sensors": 4, "n_sources": 12}, "12 sources need as many distinct columns, but 4 sensors allow only 11"),
        ({"n_sensors": 1, "n_sources": 1}, "1 sensors allow only 0"),
        ({"n_sensors": -1, "n_sources": 1}, "counts from 0 up"),
        ({"n_sensors": 4, "n_sources": 1, "column_weight": (0, 2)}, "from 1 up"),
        ({"n_sensors": 4, "n_sources": 1, "column_weight": (3, 2)}, "from 1 up"),
        ({"n_sensors": 4, "n_sources": 1, "probability": (0.5, 1.5)}, r"range in \[0, 1\]"),
        ({"n_sensors": 4, "n_sources": 1, "probability": (0.5, 0.4)}, r"range in \[0, 1\]"),
    ],
)
def test_impossible_requests_are_refused(request_, complaint):
    with pytest.raises(SettingError, match=complaint):
        random_network(**request_, rng=np.random.default_rng(1))


class TestLossyEdges:
    def test_every_edge_works_as_often_as_the_range_says(self):
        sure = random_network(20, 15, rng=np.random.default_rng(0))
        lossy = with_lossy_edges(sure, (0.3, 0.6), rng=np.random.default_rng(1))
        reach = lossy.reach[lossy.mixing]
        assert np.array_equal(lossy.mixing, sure.mixing)
        assert np.array_equal(lossy.probability, sure.probability)
        assert 0.3 <= reach.min() < 0.35 < 0.55 < reach.max() <= 0.6

    def test_a_range_of_1_keeps_edges_sure(self):
        sure = random_network(6, 4, rng=np.random.default_rng(0))
        assert with_lossy_edges(sure, (1.0, 1.0), rng=np.random.default_rng(1)) == sure

    @pytest.mark.parametrize("reach", [(0.0, 0.5), (0.6, 0.5), (0.5, 1.1)])
    def test_a_range_outside_is_refused(self, reach):
        with pytest.raises(SettingError, match="reach is"):
            with_lossy_edges(random_network(6, 4, rng=np.random.default_rng(0)), reach, rng=np.random.default_rng(1))

    def test_edges_fail_anew_in_every_slot_while_sources_stay_on(self):
        model = OrMixture([[1], [1], [1]], [0.5], reach=[[0.5], [0.5], [1]])
        problem = simulate(model, 20_000, np.random.default_rng(2), persistence=20)
        heard = problem.rows[problem.rows[:, 2]]
        assert heard.mean(axis=0) == pytest.approx([0.5, 0.5, 1], abs=0.02)  # four errors of some 10,000 rows
        again = heard[1:, 0] & heard[:-1, 0]
        assert again.mean() == pytest.approx(0.25, abs=0.02)
