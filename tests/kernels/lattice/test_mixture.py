"""Mixing sources one by one against all 2^n activities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.kernels.lattice.subsets import mix_source
from tests.reference import slow_mixture

probabilities = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


@st.composite
def mixtures(draw):
    n_sensors = draw(st.integers(0, 5))
    source = st.tuples(st.integers(0, 2**n_sensors - 1), probabilities)  # twins and empty sources may occur
    return n_sensors, draw(st.lists(source, max_size=7))


def mixed(n_sensors, sources):
    table = np.zeros(2**n_sensors)
    table[0] = 1.0
    for sensors, probability in sources:
        mix_source(table, sensors, probability)
    return table


@given(mixtures())
def test_table_matches_all_activities(mixture):
    n_sensors, sources = mixture
    expected = slow_mixture.pattern_probability(sources, n_sensors)
    # 2^7 sums of products below 1, some ten roundings each: 1280 * 1.1e-16 < 1e-12
    np.testing.assert_allclose(mixed(n_sensors, sources), expected, rtol=0, atol=1e-12)


@given(mixtures())
def test_a_row_has_exactly_no_chance_where_no_set_of_sources_makes_it(mixture):
    n_sensors, sources = mixture
    possible = {0}
    for sensors, probability in sources:
        reached = {row | sensors for row in possible}
        possible = reached if probability == 1 else possible if probability == 0 else possible | reached
    impossible = sorted(set(range(2**n_sensors)) - possible)
    assert (mixed(n_sensors, sources)[impossible] == 0).all()


@given(mixtures(), st.randoms(use_true_random=False))
def test_the_order_of_sources_does_not_matter(mixture, random):
    n_sensors, sources = mixture
    shuffled = random.sample(sources, len(sources))
    np.testing.assert_allclose(mixed(n_sensors, shuffled), mixed(n_sensors, sources), rtol=0, atol=1e-12)


def test_rare_rows_keep_their_digits():
    table = mixed(2, [(0b01, 1e-200), (0b10, 1e-100)])
    assert table[0b11] == pytest.approx(1e-300, rel=1e-15)
