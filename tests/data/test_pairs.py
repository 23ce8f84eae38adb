"""T1: the exact p-value of the permutation test."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from bica.data.pairs import PairCounts, dependent_pairs, pair_p_values, weight_planes
from bica.data.patterns import PatternCounts
from bica.kernels.columns import fisher_tail
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.reference import slow_columns

tables = st.integers(1, 60).flatmap(
    lambda t: st.tuples(
        st.lists(st.booleans(), min_size=t, max_size=t), st.lists(st.booleans(), min_size=t, max_size=t)
    )
)


@given(tables)
@settings(max_examples=100)
def test_the_p_value_is_the_hypergeometric_tail(columns):
    first, second = np.array(columns)
    p_value = pair_p_values(PatternCounts.of(np.array(columns).T))[0, 1]
    both = int((first & second).sum())
    assert np.isclose(p_value, hypergeom.sf(both - 1, first.size, first.sum(), second.sum()), rtol=1e-9, atol=1e-300)


def test_extreme_tails_do_not_underflow_to_one():
    assert fisher_tail(500.0, 500.0, 500.0, 10_000.0) < 1e-300
    assert np.isclose(fisher_tail(60.0, 500.0, 500.0, 10_000.0), hypergeom.sf(59, 10_000, 500, 500), rtol=1e-9)
    assert fisher_tail(1.0, 5000.0, 5000.0, 10_000.0) == 1.0  # the first of its terms is as good as 0
    assert np.isclose(fisher_tail(20.0, 500.0, 500.0, 10_000.0), hypergeom.sf(19, 10_000, 500, 500), rtol=1e-9)


def test_it_is_the_share_of_permutations_that_are_as_extreme():
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 40)) < 0.4
    both = (first & second).sum()
    n_shuffles = 20_000
    share = np.mean([(first & rng.permutation(second)).sum() >= both for _ in range(n_shuffles)])
    p_value = pair_p_values(PatternCounts.of(np.column_stack([first, second])))[0, 1]
    assert abs(share - p_value) < 4 * np.sqrt(p_value * (1 - p_value) / n_shuffles)


def test_the_level_holds_over_all_pairs_of_independent_sensors():
    rng = np.random.default_rng(1)
    n_tables, level = 300, 0.05
    false_alarms = sum(
        dependent_pairs(pair_p_values(PatternCounts.of(rng.random((200, 8)) < 0.3)), level).any()
        for _ in range(n_tables)
    )
    # Bonferroni with a discrete test stays below the level; four binomial standard deviations on top
    assert false_alarms <= n_tables * level + 4 * np.sqrt(n_tables * level * (1 - level))


def test_without_correction_the_level_holds_for_each_pair():
    p_values = np.array([[1.0, 0.03], [0.03, 1.0]])
    assert dependent_pairs(p_values, 0.05, corrected=False)[0, 1]
    many = np.ones((10, 10))
    many[0, 1] = many[1, 0] = 0.03
    assert not dependent_pairs(many, 0.05).any()


@given(tables)
@settings(max_examples=100)
def test_the_other_tail_is_that_of_being_apart(columns):
    first, second = np.array(columns)
    p_value = PairCounts.of(PatternCounts.of(np.array(columns).T)).apart()[0, 1]
    both = int((first & second).sum())
    assert np.isclose(p_value, hypergeom.cdf(both, first.size, first.sum(), second.sum()), rtol=1e-9, atol=1e-300)


def test_pair_counts_add_weights():
    data = PatternCounts.of([[1, 1, 0], [1, 0, 1]], sample_weight=[2, 3])
    assert PairCounts.of(data).both.tolist() == [[5, 2, 3], [2, 2, 0], [3, 0, 3]]


# halves and quarters add up without rounding; 2^53 + 2 is whole, but too large for a count of bits
any_weight = st.one_of(st.sampled_from([0.0, 0.25, 1.0, 2.5, 7.0, 2.0**40, 2.0**53 + 2]), st.integers(0, 300))


@given(st.lists(any_weight, max_size=8))
def test_bit_planes_add_up_to_the_whole_weights(weights):
    total = np.zeros(len(weights))
    for scale, rows in weight_planes(np.array(weights, float)):
        assert rows.size
        total[rows] += scale
    whole = [w if w == int(w) and w < 2**53 else 0 for w in weights]
    assert total.tolist() == whole


@given(
    st.lists(st.lists(st.sampled_from([0, 1, None]), min_size=4, max_size=4), min_size=1, max_size=20),
    st.booleans(),
    st.data(),
)
@settings(max_examples=80)
def test_a_pair_is_judged_by_the_rows_that_saw_both(rows, gaps, data):
    """With weights of any kind; a table without gaps takes a shorter way."""
    rows = rows if gaps else [[cell or 0 for cell in row] for row in rows]
    weight = st.sampled_from([0.25, 1.0, 2.5, 7.0, 2.0**40])
    weights = data.draw(st.lists(weight, min_size=len(rows), max_size=len(rows)))
    cells = np.array([[np.nan if cell is None else cell for cell in row] for row in rows])
    pairs = PairCounts.of(PatternCounts.of(np.ma.masked_invalid(cells), sample_weight=weights))
    for i in range(4):
        for k in range(4):
            found = pairs.both[i, k], pairs.on[i, k], pairs.observed[i, k]
            assert found == slow_columns.pair_counts(rows, weights, i, k)


@pytest.mark.parametrize(
    "noise", [Noise(), Noise.flips(0.1), Noise([0.05, 0.1, 0.0, 0.2], [0.1, 0.0, 0.2, 0.1])], ids=str
)
def test_the_shared_rate_is_that_of_the_sources_of_both(noise):
    """Counts of 10^6 rows as expected: the weight of every pattern is its chance, so nothing is left to luck."""
    truth = OrMixture([[1, 0, 1], [1, 1, 0], [1, 1, 0], [0, 1, 0]], [0.1, 0.2, 0.3], noise)
    patterns = np.arange(16, dtype=np.uint64)[:, None]
    data = PatternCounts(patterns, 1e6 * truth.pattern_probability(), tuple("abcd"))
    rate = -np.log1p(-truth.probability)
    expected = np.einsum("ij,kj,j->ik", truth.mixing, truth.mixing, rate)
    np.testing.assert_allclose(PairCounts.of(data).shared_rate(*noise.rates(4)), expected, atol=1e-9)
