"""Section III of the paper: what OR mixtures can express, when they are independent, and that they are identifiable.

Everything is checked in exact fractions on random mixtures, in the corrected form where the printed one is wrong.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bica.estimate.findbica import probability_by_recursion, probability_by_subset
from tests.reference import slow_induction
from tests.reference.exact_mixture import chance, covariance, distribution, independent

proper = st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20)  # neither 0 nor 1
columns_of = {m: [tuple(c >> i & 1 for i in range(m)) for c in range(1, 2**m)] for m in range(1, 5)}


@st.composite
def mixtures(draw, n_sensors=None):
    """Distinct non-empty columns with proper probabilities."""
    m = draw(st.integers(2, 4)) if n_sensors is None else n_sensors
    columns = draw(st.lists(st.sampled_from(columns_of[m]), unique=True, min_size=1, max_size=5))
    return columns, [draw(proper) for _ in columns]


def xor_pair(p, q):
    """x1 = y1 and x2 = y1 XOR y2, as a table of frequencies indexed by x1 + 2 x2."""
    return np.array([(1 - p) * (1 - q), p * q, (1 - p) * q, p * (1 - q)], dtype=float)


class TestExpressiveness:
    @given(proper, proper)
    def test_an_xor_pair_with_negative_covariance_is_no_or_mixture(self, p, q):
        assume(q > Fraction(1, 2))
        table = xor_pair(p, q)
        assert table[3] - (table[1] + table[3]) * (table[2] + table[3]) < 0
        assert probability_by_subset(table).min() < 0  # the only candidate solution has a negative probability

    @given(proper, proper)
    def test_with_small_q_the_xor_pair_is_an_or_mixture_after_all(self, p, q):
        assume(q < Fraction(1, 2))
        table = xor_pair(p, q)
        probability = probability_by_subset(table)
        assert probability.min() >= 0
        np.testing.assert_allclose(slow_induction.distribution(2, probability[1:]), table, atol=1e-12)

    @given(mixtures())
    def test_or_mixtures_never_correlate_negatively(self, mixture):
        table = distribution(*mixture)
        n_sensors = len(mixture[0][0])
        assert all(covariance(table, i, k) >= 0 for i in range(n_sensors) for k in range(i))


class TestLemmas:
    @given(proper, proper)
    def test_lemma_1_the_or_of_proper_variables_is_proper(self, p, q):
        table = distribution([(1,), (1,)], [p, q])
        assert 0 < table[1,] < 1
        assert table[1,] == 1 - (1 - p) * (1 - q)

    @given(proper, proper, proper)
    def test_lemma_2_mixtures_without_a_common_source_are_independent(self, p1, p2, p3):
        assert covariance(distribution([(1, 0), (1, 0), (0, 1)], [p1, p2, p3]), 0, 1) == 0

    @given(proper, proper, proper)
    def test_lemma_3_mixtures_with_a_common_source_are_correlated(self, p1, p2, p3):
        assert covariance(distribution([(1, 1), (1, 0), (0, 1)], [p1, p2, p3]), 0, 1) > 0


class TestTheorem1:
    """As printed it forgets to merge sources that look the same; with distinct columns it holds."""

    @given(mixtures())
    def test_a_diagonal_covariance_makes_the_mixing_a_permutation(self, mixture):
        columns, probability = mixture
        n_sensors = len(columns[0])
        table = distribution(columns, probability)
        assume(all(0 < chance(table, lambda x, i=i: x[i]) < 1 for i in range(n_sensors)))
        diagonal = all(covariance(table, i, k) == 0 for i in range(n_sensors) for k in range(i))
        permutation = len(columns) == n_sensors and all(sum(column) == 1 for column in columns)
        assert diagonal == permutation

    def test_the_printed_form_fails_where_columns_repeat(self):
        columns = [(1, 0), (1, 0), (0, 1)]
        table = distribution(columns, [Fraction(1, 3)] * 3)
        assert covariance(table, 0, 1) == 0
        assert len(columns) != 2

    @given(mixtures())
    def test_corollary_pairwise_independence_is_joint_independence(self, mixture):
        table = distribution(*mixture)
        n_sensors = len(mixture[0][0])
        pairwise = all(covariance(table, i, k) == 0 for i in range(n_sensors) for k in range(i))
        assert pairwise == independent(table)

    def test_in_general_pairwise_independence_is_not_enough(self):
        parity = {(a, b, a ^ b): Fraction(1, 4) for a in (0, 1) for b in (0, 1)}
        assert all(covariance(parity, i, k) == 0 for i in range(3) for k in range(i))
        assert not independent(parity)


class TestIdentifiability:
    @given(st.integers(1, 3), st.data())
    def test_basis_a_lone_sensor_needs_its_own_frequency_and_that_of_silence(self, n_sensors, data):
        probability = data.draw(st.lists(st.floats(0, 0.7), min_size=2**n_sensors - 1, max_size=2**n_sensors - 1))
        frequency = slow_induction.distribution(n_sensors, probability)
        for sensor in range(n_sensors):
            k = 1 << sensor
            # without the trailing factor F_0 of the printed formula
            assert np.isclose(frequency[k] / (frequency[k] + frequency[0]), probability[k - 1])

    @pytest.mark.slow
    @given(st.integers(1, 4), st.data())
    @settings(max_examples=40)
    def test_the_induction_finds_every_probability_and_is_the_closed_form(self, n_sensors, data):
        probability = data.draw(st.lists(st.floats(0, 0.6), min_size=2**n_sensors - 1, max_size=2**n_sensors - 1))
        frequency = slow_induction.distribution(n_sensors, probability)
        by_induction = slow_induction.probabilities(frequency)
        np.testing.assert_allclose(by_induction[1:], probability, atol=1e-7)
        np.testing.assert_allclose(probability_by_subset(frequency), by_induction, atol=1e-7)

    @given(st.lists(st.integers(1, 30), min_size=8, max_size=8))
    def test_on_any_frequencies_induction_and_closed_form_agree(self, counts):
        frequency = np.array(counts) / sum(counts)
        expected = slow_induction.probabilities(frequency)
        np.testing.assert_allclose(probability_by_subset(frequency), expected, rtol=1e-6, atol=1e-9)

    def test_the_two_distributions_written_by_hand_agree(self):
        probability = np.linspace(0.1, 0.4, 7)
        np.testing.assert_allclose(
            slow_induction.distribution(3, probability),
            slow_induction.distribution_by_enumeration(range(1, 8), probability, 3),
        )

    @given(st.integers(1, 4), st.data())
    @settings(max_examples=40)
    def test_the_algorithm_finds_every_probability_of_an_exact_distribution(self, n_sensors, data):
        probability = data.draw(st.lists(st.floats(0, 0.6), min_size=2**n_sensors - 1, max_size=2**n_sensors - 1))
        frequency = slow_induction.distribution(n_sensors, probability)
        np.testing.assert_allclose(probability_by_recursion(frequency, 0.0)[1:], probability, atol=1e-7)
