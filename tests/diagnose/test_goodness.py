"""The tests behind a verdict: against definitions, and their levels on random tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from bica.data.patterns import PatternCounts
from bica.diagnose.goodness import (
    N_DRAWS,
    QuietRows,
    Splinters,
    _slopes,
    binomial_tails,
    both_on,
    confusions,
    likelihood_ratio,
    pattern_test,
    signed_deviance,
)
from bica.diagnose.table import Watched
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.reference import slow_mixture
from tests.strategies import models, sources_of

MIXTURE = OrMixture([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [0.2, 0.3, 0.1], Noise.flips(0.05))


@given(models(min_sensors=1))
@settings(max_examples=60)
def test_pairs_are_margins_of_the_table_of_all_patterns(model):
    false_alarm, miss = (rates.tolist() for rates in model.noise.rates(model.n_sensors))
    table = np.array(slow_mixture.shown_probability(sources_of(model), false_alarm, miss))
    on = (np.arange(table.size)[:, None] >> np.arange(model.n_sensors)) & 1
    assert np.allclose(both_on(model), on.T @ (on * table[:, None]), atol=1e-12)


@given(st.integers(1, 50), st.data())
@settings(max_examples=100)
def test_tails_are_those_of_the_binomial_distribution(n, data):
    k, p = data.draw(st.integers(0, n)), data.draw(st.floats(0.001, 0.999))
    tail = binomial_tails(np.array([float(k)]), np.array([float(n)]), np.array([p]))[0]
    assert np.isclose(tail, min(1.0, 2 * min(binom.cdf(k, n, p), binom.sf(k - 1, n, p))), rtol=1e-9)


def test_counts_that_cannot_be_have_no_tail():
    assert binomial_tails(np.array([1.0, 0.0]), np.array([5.0, 5.0]), np.array([0.0, 0.0])).tolist() == [0.0, 1.0]


def test_the_squares_of_signed_deviances_add_up_to_g2():
    histogram, chance = np.array([30.0, 0.0, 50.0, 20.0]), np.array([0.25, 0.05, 0.5, 0.2])
    assert np.isclose((signed_deviance(histogram, 100 * chance) ** 2).sum(), likelihood_ratio(chance, histogram))


def test_an_impossible_row_is_infinitely_far():
    test = pattern_test(np.array([1.0, 0.0]), np.array([9.0, 1.0]), 0)
    assert (test.g2, test.p_value, test.misplaced(10)) == (np.inf, 1 / (N_DRAWS + 1), 1.0)


@pytest.mark.parametrize("n_samples", [5, 400])  # fewer and more rows than the 8 patterns: two ways to draw
def test_p_values_of_a_known_model_are_uniform(n_samples):
    rng, chance, n_tables = np.random.default_rng(3), MIXTURE.pattern_probability(), 200
    p_values = [
        pattern_test(chance, rng.multinomial(n_samples, chance).astype(float), 0).p_value for _ in range(n_tables)
    ]
    # a binomial count at most four standard deviations above its mean; a discrete test may reject less often
    for level in (0.05, 0.25):
        assert np.sum(np.array(p_values) <= level) <= n_tables * level + 4 * np.sqrt(n_tables * level * (1 - level))
    assert np.mean(p_values) < 0.7


def test_what_chance_gives_is_the_mean_of_chi_square():
    """2^3 - 1 free numbers, of which 3 were fitted; the mean of all draws is within 4 standard errors."""
    chance = MIXTURE.pattern_probability()
    far = np.roll(chance, 1) * 100_000
    test = pattern_test(chance, far, 3)
    assert test.n_draws == N_DRAWS
    assert abs(test.expected - (7 - 3)) < 4 * np.sqrt(chi2(7).var() / N_DRAWS)


def test_the_share_of_misplaced_rows_is_not_understated():
    """Pinsker: with many rows, the bound is above the total variation between data and model."""
    chance = MIXTURE.pattern_probability()
    moved = chance.copy()
    moved[0] -= 0.1
    moved[7] += 0.1
    assert 0.1 <= pattern_test(chance, moved * 1e6, 0).misplaced(1e6) <= 0.3


def test_only_complete_rows_are_kept():
    cells = np.ma.masked_invalid([[1, np.nan], [1, 0], [1, 0]])
    kept = Watched.of(PatternCounts.of(cells), np.arange(2), np.ones(2)).complete
    assert kept.rows().tolist() == [[True, False]]
    assert kept.weights.tolist() == [2.0]


def test_slopes_are_derivatives_of_the_log_chance():
    data = PatternCounts.of(MIXTURE.sample(300, np.random.default_rng(0)))
    slopes, step = _slopes(MIXTURE, data, np.arange(3), MIXTURE.pattern_probability(), noise=True), 1e-6
    before = MIXTURE.log_probability(data)
    for j in range(3):
        rate = MIXTURE.rate.copy()
        rate[j] += step
        after = OrMixture(MIXTURE.mixing, -np.expm1(-rate), MIXTURE.noise).log_probability(data)
        assert np.allclose((after - before) / step, slopes[j], rtol=1e-4, atol=1e-4)
    after = MIXTURE.with_noise(Noise.flips(0.05 + step * (1 - 2 * 0.05))).log_probability(data)
    assert np.allclose((after - before) / step, slopes[3], rtol=1e-4, atol=1e-4)


def test_a_lone_source_and_the_false_alarms_of_its_only_sensor_are_confused():
    model = OrMixture([[1]], [0.2], Noise.flips(0.1))
    (found,) = confusions(
        model, PatternCounts.of([[0]] * 3 + [[1]]), np.array([0]), model.pattern_probability(), noise=True
    )
    assert found.names == ("source1", "the noise")
    assert found.correlation < -0.99


def test_sources_on_different_sensors_are_not_confused():
    model = OrMixture(np.eye(2), [0.2, 0.3])
    data = PatternCounts.of(model.sample(500, np.random.default_rng(0)))
    assert confusions(model, data, np.arange(2), model.pattern_probability(), noise=False) == []


class TestQuietRows:
    MODEL = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.3], Noise(0.01, 0.1))

    def quiet(self, rows):
        data = PatternCounts.of(rows)
        return QuietRows.of(self.MODEL, Watched.of(data, np.arange(3), np.ones(3)))

    def test_what_is_expected_is_a_lower_bound(self):
        """Sources that are missed by all their sensors come on top."""
        probability = self.MODEL.pattern_probability()[0]
        quiet = self.quiet(self.MODEL.sample(1000, np.random.default_rng(0)))
        assert 0.98 * probability <= quiet.expected / 1000 <= probability

    def test_the_tail_is_binomial(self):
        rows = np.vstack([np.zeros((420, 3)), np.ones((580, 3))])
        quiet = self.quiet(rows)
        assert np.isclose(quiet.p_value, binom.cdf(420, 1000, quiet.expected / 1000))

    def test_rows_without_the_quiet_ones_are_noticed_and_too_many_are_not(self):
        rows = self.MODEL.sample(1000, np.random.default_rng(0))
        assert self.quiet(rows[rows.any(axis=1)]).p_value < 1e-9
        assert self.quiet(np.zeros((50, 3))).p_value == 1.0


class TestSplinters:
    def test_a_source_less_each_of_its_sensors_is_splintered(self):
        mixing = np.column_stack([np.ones(4), 1 - np.eye(4)])
        assert Splinters.of(OrMixture(mixing, [0.2] + [0.01] * 4)) == Splinters(5, 4, 6)

    def test_nested_sources_along_a_path_are_not(self):
        """Each source is the next one less a sensor: many parts, but no two of the same."""
        assert Splinters.of(OrMixture(np.tri(8), [0.1] * 8)) is None
