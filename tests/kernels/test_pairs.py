"""Pairs that are on together too often for chance, against exact fractions over all small tables."""

from math import erfc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.kernels.columns import _short_tail, fisher_tail, likely_pairs
from tests.reference import slow_columns


def test_no_significant_pair_is_passed_over():
    """Nothing within one and a half deviations of its expectation is significant: all tables of up to 24 rows."""
    for total in range(2, 25):
        for first in range(1, total):
            for second in range(1, first + 1):
                expected = first * second / total
                spread = expected * (1 - first / total) * (1 - second / total) * total / (total - 1)
                bar = int(np.floor(expected + 1.5 * np.sqrt(spread) + 1e-12))
                assert slow_columns.tail(bar, first, second, total) > 0.05 or bar < max(0, first + second - total)


@st.composite
def count_tables(draw):
    """Counts of pairs as tables of up to 60 rows show them, each pair with its own gaps."""
    n = draw(st.integers(0, 5))
    both, on, seen = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for k in range(i):
            total = draw(st.integers(0, 60))
            first, second = draw(st.integers(0, total)), draw(st.integers(0, total))
            common = draw(st.integers(max(0, first + second - total), min(first, second)))
            both[i, k] = both[k, i] = common
            on[i, k], on[k, i], seen[i, k], seen[k, i] = first, second, total, total
    return both, on, seen


@given(count_tables(), st.sampled_from([0.05, 0.01, 1e-4]))
@settings(max_examples=100)
def test_likely_pairs_are_those_with_a_small_tail(counts, level):
    both, on, seen = counts
    first, second, excess, tail = likely_pairs(both, on, seen, level)
    found = dict(zip(zip(first.tolist(), second.tolist(), strict=True), zip(excess, tail, strict=True), strict=True))
    assert len(found) == first.size
    for i in range(len(both)):
        for k in range(i):
            numbers = [int(n) for n in (both[i, k], on[i, k], on[k, i], seen[i, k])]
            exact = slow_columns.tail(*numbers) if numbers[-1] >= 2 else 1
            assert ((i, k) in found) == (exact <= level)
            if (i, k) in found:
                np.testing.assert_allclose(found[i, k][1], float(exact), rtol=1e-9)
                expected = numbers[1] * numbers[2] / numbers[3]
                assert found[i, k][0] > 1.5
                assert numbers[0] > expected


def test_more_pairs_than_the_first_guess_of_their_number():
    """Sixty equal columns: 1770 pairs, all of them likely."""
    n = 60
    first, second, excess, tail = likely_pairs(
        np.full((n, n), 20.0), np.full((n, n), 20.0), np.full((n, n), 40.0), 0.05
    )
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == {(i, k) for i in range(n) for k in range(i)}
    np.testing.assert_allclose(excess, 10 / np.sqrt(10 * 0.25 * 40 / 39))
    np.testing.assert_allclose(tail, float(slow_columns.tail(20, 20, 20, 40)), rtol=1e-9)


@given(st.integers(0, 40), st.data())
def test_the_tail_is_exact(total, data):
    first, second = data.draw(st.integers(0, total)), data.draw(st.integers(0, total))
    both = data.draw(st.integers(max(0, first + second - total), min(first, second)))
    found = fisher_tail(float(both), float(first), float(second), float(total))
    # the long tail is one minus the short one: right to the roundings of one
    np.testing.assert_allclose(found, float(slow_columns.tail(both, first, second, total)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("total", [1e7, 1e9, 1e12, 2.0**53 - 1])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.3, 0.01), (0.999, 0.2)])
@pytest.mark.parametrize("deviations", [0.1, 1.0])
def test_the_tails_of_huge_tables_add_up_to_one(total, shares, deviations):
    """Both tails are summed, one from its larger terms on; only exact terms add up to one."""
    first, second = (np.floor(share * total) for share in shares)
    spread = np.sqrt(first * (second / total) * (1 - first / total) * (1 - second / total))
    both = np.floor(first / total * second + deviations * spread)
    above = _short_tail(both, first, second, total, min(first, second))
    below = _short_tail(first - both + 1, first, total - second, total, min(first, total - second))
    np.testing.assert_allclose(above + below, 1.0, rtol=0, atol=1e-7)
    assert fisher_tail(both, first, second, total) == pytest.approx(above, rel=1e-12)


@pytest.mark.parametrize("z", [3.0, 6.0])
def test_a_far_tail_of_a_huge_table_is_the_normal_one(z):
    """Of 10^14 rows with columns on in half of them: skewness 0, so the error is of order z^4 over the rows."""
    total = 1e14
    both = total / 4 + z * np.sqrt(total) / 4
    found = fisher_tail(both, total / 2, total / 2, total)
    border = (both - 0.5 - total / 4) / (np.sqrt(total) / 4)
    np.testing.assert_allclose(found, erfc(border / np.sqrt(2)) / 2, rtol=1e-6)
