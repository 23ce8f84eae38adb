"""Section IV of the paper: the lemmas behind the algorithm, its worked example, and its misprints, pinned."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.estimate.findbica import FindBICA, probability_by_recursion
from bica.model.or_mixture import OrMixture
from tests.paper.test_properties import mixtures
from tests.reference import slow_findbica, slow_induction
from tests.reference.exact_mixture import chance, covariance, distribution, given_quiet

RNG = np.random.default_rng(0)
EXAMPLE = np.array([[0, 1, 1, 0, 0, 1, 1, 1, 1, 0], [0, 1, 1, 0, 0, 1, 1, 1, 0, 0]]).T  # the paper's X, samples as rows
SNIFFERS = np.array(
    [
        [1, 1, 0, 1, 0, 1, 0, 0, 0, 0],
        [0, 1, 0, 1, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 1, 1, 0, 0],
        [0, 0, 0, 1, 1, 0, 0, 1, 1, 1],
    ]
)


class TestWorkedExample:
    def test_two_sensors_ten_samples(self):
        probability = probability_by_recursion(PatternCounts.of(EXAMPLE).histogram(), 0.02)
        # the table holds y1 twice, once under y2: seen alone it was on in 1 of the 5 slots in which y2 was off
        assert probability.round(12).tolist() == [0.0, 0.2, 0.0, 0.5]

    def test_as_a_fit_without_the_significance_test_which_ten_samples_cannot_pass(self):
        found = FindBICA(significance=None).fit(PatternCounts.of(EXAMPLE), RNG).model
        assert found.mixing.astype(int).tolist() == [[1, 1], [1, 0]]
        np.testing.assert_allclose(found.probability, [0.5, 0.2])

    def test_the_second_sensor_has_no_source_of_its_own(self):
        assert slow_findbica.find_bica(PatternCounts.of(EXAMPLE).histogram(), 0.0)[2] == 0.0


class TestSnifferMatrix:
    def test_users_with_the_same_sniffers_are_one_source(self):
        model = OrMixture(SNIFFERS, np.full(10, 0.1))
        assert model.n_sources == 9
        assert model.probability[-1] == pytest.approx(1 - 0.9**2)  # y9 and y10 are heard by x5 alone
        np.testing.assert_array_equal(model.mixing, SNIFFERS[:, :9])

    def test_it_is_recovered_from_its_own_observations(self):
        rng = np.random.default_rng(1)
        truth = OrMixture(SNIFFERS, np.full(10, 0.1))
        found = FindBICA().fit(PatternCounts.of(truth.sample(20_000, rng)), rng).model
        assert {tuple(c) for c in found.mixing.T} == {tuple(c) for c in truth.mixing.T}


class TestLemmas:
    @given(mixtures())
    def test_lemma_4_given_that_the_last_sensor_is_quiet_its_sources_vanish_and_the_others_stay(self, mixture):
        columns, probability = mixture
        last = len(columns[0]) - 1
        table = distribution(columns, probability)
        kept = [j for j, column in enumerate(columns) if not column[last]]
        expected = distribution([columns[j][:last] for j in kept], [probability[j] for j in kept]) if kept else None
        if expected is None:
            expected = {(0,) * last: Fraction(1)}
        assert given_quiet(table, last) == {x: p for x, p in expected.items() if p}
        assert chance(table, lambda x: not x[last]) == np.prod(
            [1 - p for column, p in zip(columns, probability, strict=True) if column[last]], initial=Fraction(1)
        )

    @given(mixtures())
    def test_lemma_5_uncorrelated_sensors_share_no_source(self, mixture):
        columns, probability = mixture
        table = distribution(columns, probability)
        for i in range(len(columns[0])):
            for k in range(i):
                shared = any(column[i] and column[k] for column in columns)
                assert (covariance(table, i, k) > 0) == shared

    @given(mixtures(n_sensors=4))
    def test_lemma_6_uncorrelated_sensors_stay_so_given_that_a_third_is_quiet(self, mixture):
        table = distribution(*mixture)
        quiet = given_quiet(table, 3)
        for i in range(3):
            for k in range(i):
                if covariance(table, i, k) == 0:
                    assert covariance(quiet, i, k) == 0

    @given(mixtures())
    def test_merging_the_last_sensor_joins_each_source_with_its_partner(self, mixture):
        columns, probability = mixture
        last = len(columns[0]) - 1
        merged = distribution([column[:last] for column in columns], probability)
        marginal = {}
        for pattern, p in distribution(columns, probability).items():
            marginal[pattern[:last]] = marginal.get(pattern[:last], Fraction(0)) + p
        assert {x: p for x, p in merged.items() if p} == {x: p for x, p in marginal.items() if p}


class TestMisprints:
    def test_columns_are_ordered_by_their_bits(self):
        # g_kl = 1 iff bit k - 1 of l - 1 is set: the source of sensors 1 and 3 is column 6, index 5 from zero
        frequency = slow_induction.distribution(3, [0, 0, 0, 0, 0.3, 0, 0])
        probability = probability_by_recursion(frequency, 0.02)
        assert np.flatnonzero(probability).tolist() == [0b101]

    def test_the_empty_source_is_never_reported(self):
        assert probability_by_recursion(np.array([3.0, 1.0, 1.0, 1.0]), 0.0)[0] == 0.0

    def test_the_lone_last_sensor_uses_only_silence_and_itself(self):
        frequency = slow_induction.distribution(2, [0.4, 0.3, 0.2])
        assert probability_by_recursion(frequency, 0.0)[2] == pytest.approx(0.3)
        # as printed the product runs over l = 1..2^m - 1 except 2^(m-1) + 1: it takes in the placeholder
        # p_1 = F(x_1 = 0) and leaves out the last source
        conditioned_on_quiet_x2 = frequency[:2].sum()
        placeholder = frequency[0] / conditioned_on_quiet_x2
        printed = frequency[2] / ((1 - placeholder) * (1 - 0.4))
        assert abs(printed - 0.3) > 0.1

    def test_pruning_runs_at_the_end_of_every_call(self):
        # {0} has 0.3 given that sensor 1 is quiet, 0.32 merged; the difference, {0, 1}, is below the threshold
        frequency = slow_induction.distribution(2, [0.3, 0.2, 0.03])
        assert probability_by_recursion(frequency, 0.05)[3] == 0.0
        assert probability_by_recursion(frequency, 0.02)[3] == pytest.approx(0.03)

    def test_a_sensor_that_is_always_on_is_a_constant_source(self):
        probability = probability_by_recursion(np.array([0.0, 0.0, 6.0, 4.0]), 0.02)
        assert probability.tolist() == [0.0, 0.4, 1.0, 0.0]

    def test_a_wide_source_survives_pruning_on_its_first_sensors(self):
        # the printed T3 would delete {0, 1, 2}: on the first two sensors the source {0} has probability 0
        rng = np.random.default_rng(2)
        truth = OrMixture([[1], [1], [1]], [0.2])
        found = FindBICA(prune=True).fit(PatternCounts.of(truth.sample(500, rng)), rng).model
        assert found.mixing.all()
        assert found.n_sources == 1

    @given(mixtures(n_sensors=4), st.integers(1, 3))
    @settings(max_examples=40)
    def test_t3_what_is_absent_on_the_first_sensors_is_the_restriction_of_no_source(self, mixture, k):
        columns, probability = mixture
        restricted = [column[:k] for column in columns]
        first = distribution(restricted, probability)
        frequency = np.zeros(2**k)
        for pattern, p in first.items():
            frequency[sum(bit << i for i, bit in enumerate(pattern))] = float(p)
        found = probability_by_recursion(frequency, 1e-6)
        present = {sum(bit << i for i, bit in enumerate(column)) for column in restricted} - {0}
        assert set(np.flatnonzero(found).tolist()) == present
