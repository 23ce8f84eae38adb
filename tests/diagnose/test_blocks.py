"""Score tests on blocks of sensors: against definitions, their level on true models, their power against wrong ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bica.data.patterns import PatternCounts
from bica.diagnose.blocks import (
    LEVEL,
    WIDTH,
    OddSet,
    _Block,
    _chernoff,
    _x2_tail,
    block_tests,
    blocks_of,
)
from bica.diagnose.table import Watched
from bica.diagnose.verdicts import Diagnosis
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network
from tests.reference import slow_mixture
from tests.strategies import models, sources_of

NETWORK = random_network(24, 20, noise=Noise.flips(0.02), rng=np.random.default_rng(5))


def by_blocks(model, rows):
    data = PatternCounts.of(rows)
    return block_tests(model, Watched.of(data, np.arange(data.n_sensors), np.ones(data.n_sensors)))


def shown(sources, model):
    false_alarm, miss = (rates.tolist() for rates in model.noise.rates(model.n_sensors))
    return np.array(slow_mixture.shown_probability(sources, false_alarm, miss))


class TestTheBlocks:
    def test_every_source_is_held_by_one(self):
        blocks = blocks_of(NETWORK.mixing)
        assert max(map(len, blocks)) <= WIDTH
        for column in NETWORK.mixing.T:
            assert any(set(np.flatnonzero(column)) <= set(block) for block in blocks)

    def test_wide_sources_are_cut(self):
        (block,) = blocks_of(np.ones((30, 1), dtype=bool))
        assert block.size == WIDTH

    def test_only_rows_observed_in_the_whole_block_count(self):
        data = PatternCounts.of(np.ma.masked_invalid([[1, 1, np.nan], [1, np.nan, 0], [1, 0, 0], [1, 0, np.nan]]))
        assert data.histogram_of(np.array([0, 1])).tolist() == [0, 2, 0, 1]


@given(models(min_sensors=1), st.data())
@settings(max_examples=40)
def test_directions_are_those_of_the_definition(model, data):
    """One more source that is surely on, from the slow table of all patterns."""
    block = _Block.of(model, np.arange(model.n_sensors))
    further = data.draw(st.integers(1, 2**model.n_sensors - 1))
    before, after = (shown(sources, model) for sources in (sources_of(model), [*sources_of(model), (further, 1.0)]))
    assert np.allclose(block.probability, before, atol=1e-12)
    assert np.allclose(block.further[:, further - 1], after - before, atol=1e-12)


@given(st.integers(1, 60), st.data())
@settings(max_examples=50)
def test_the_bound_is_above_the_binomial_tail_and_not_far(n, data):
    p = data.draw(st.floats(0.05, 0.95))
    k = data.draw(st.integers(int(np.ceil(n * p)), n))
    spread = np.sqrt(p * (1 - p))
    values = np.array([[-p], [1 - p]]) / spread
    bound = _chernoff(np.array([1 - p, p]), values, np.array([(k / n - p) / spread]), n)[0]
    exact = binom.sf(k - 1, n, p)
    assert exact <= bound * (1 + 1e-9)
    assert bound <= 2 * max(exact, 1e-12) * np.sqrt(8 * (n + 1))  # the bound loses no more than a root of n, twice


@pytest.mark.parametrize("flip_rate", [0.0, 0.03])
def test_true_models_are_rarely_refuted(flip_rate):
    """With the true numbers: 60 tables at 5 %, a binomial count with four standard deviations on top."""
    rng = np.random.default_rng(1)
    p_values = []
    for _ in range(60):
        truth = random_network(20, 16, noise=Noise.flips(flip_rate), rng=rng)
        p_values.append(by_blocks(truth, truth.sample(600, rng)).odd.p_value)
    assert np.sum(np.array(p_values) <= 0.05) <= 60 * 0.05 + 4 * np.sqrt(60 * 0.05 * 0.95)


class TestPower:
    """Each difference changes some per cent of 4000 rows of 24 sensors."""

    RNG = np.random.default_rng(2)
    ROWS = NETWORK.sample(4000, RNG)

    def test_the_truth_passes(self):
        assert by_blocks(NETWORK, self.ROWS).odd.p_value > LEVEL

    @pytest.mark.parametrize("lost", range(20))
    def test_a_lost_source_is_noticed_by_blocks_or_pairs(self, lost):
        data = PatternCounts.of(self.ROWS)
        check = Diagnosis.of(data, Fit(NETWORK.pick(np.delete(np.arange(20), lost)))).fit
        assert check.p_value <= LEVEL

    def test_sources_that_exclude_each_other_are_noticed(self):
        activity = NETWORK.draw_activity(4000, np.random.default_rng(3))
        activity[:, 1::2] &= ~activity[:, ::2]
        found = by_blocks(NETWORK, NETWORK.noise.apply(NETWORK.observe(activity), np.random.default_rng(4)))
        assert found.odd.p_value <= LEVEL

    def test_edges_that_fail_are_noticed(self):
        rng = np.random.default_rng(5)
        activity = NETWORK.draw_activity(4000, rng)
        rows = np.zeros((4000, 24), dtype=bool)
        for on, column in zip(activity.T, NETWORK.mixing.T, strict=True):
            rows |= on[:, None] & column & (rng.random(rows.shape) < 0.8)
        assert by_blocks(NETWORK, rows).odd.p_value <= LEVEL

    def test_fewer_rows_are_needed_without_noise(self):
        quiet, noisy = (by_blocks(NETWORK.with_noise(Noise.flips(rate)), self.ROWS) for rate in (0.01, 0.2))
        assert quiet.rows_needed < 500 < noisy.rows_needed


@pytest.mark.parametrize(
    ("z", "words"), [(7.0, "more rows than"), (-7.0, "less often than"), (None, "expects in a, b")]
)
def test_the_words_say_what_is_odd(z, words):
    assert words in OddSet(("a", "b"), z, 1e-9).words()


def test_the_sensors_of_the_clearest_difference_are_named():
    """Two sources that exclude each other, joined by a third: the rows with all sensors on are too few."""
    model = OrMixture([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], [0.2, 0.1, 0.2], Noise.flips(0.01))
    rng = np.random.default_rng(0)
    activity = model.draw_activity(600, rng)
    activity[:, 2] &= ~activity[:, 0]
    found = by_blocks(model, model.noise.apply(model.observe(activity), rng))
    assert found.odd.p_value <= LEVEL
    assert {"x1", "x2"} <= set(found.odd.sensors)


@pytest.mark.parametrize("seed", range(8))
def test_a_block_whose_numbers_explain_every_pattern_contradicts_nothing(seed):
    """Sensors 1 and 2 are always on together: three patterns, of which two rates and the number of rows leave none."""
    truth = OrMixture([[1, 0], [1, 0], [1, 1]], [0.1, 0.25], Noise.flips(1e-6))
    assert by_blocks(truth, truth.sample(500, np.random.default_rng(seed))).odd.p_value > 0.01


def test_x2_of_projected_normal_residuals_has_its_gamma_tail():
    """A projection that leaves parts of patterns: the p-value of many draws is uniform within its own error."""
    rng = np.random.default_rng(11)
    basis = np.linalg.qr(rng.standard_normal((8, 3)))[0]
    free = np.eye(6) - basis[:6] @ basis[:6].T  # six of eight patterns
    root = np.linalg.cholesky(free + 1e-12 * np.eye(6))
    draws = rng.standard_normal((2000, 6)) @ root.T
    p_values = np.array([_x2_tail(float(x @ x), np.full(6, 1e9), free) for x in draws])
    share = (p_values < 0.05).mean()
    assert abs(share - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 2000)
