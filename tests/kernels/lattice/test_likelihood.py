"""Reading cells with gaps, and its transpose, against their definitions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bica.kernels.lattice.likelihood import mix_sources, noise_derivative, read_cells, spread_cells, with_source_on
from tests.reference import slow_channel, slow_mixture


@st.composite
def groups(draw):
    """Cells in groups of the same gap: unobserved sensors, starts, cells. Cells may repeat."""
    m = draw(st.integers(0, 4))
    gaps = draw(st.lists(st.integers(0, 2**m - 1), max_size=3, unique=True))
    members = [draw(st.lists(st.integers(0, 2**m - 1), max_size=4)) for _ in gaps]
    cells = [cell & ~gap for gap, group in zip(gaps, members, strict=True) for cell in group]
    starts = np.cumsum([0, *map(len, members)])
    return m, np.array(gaps, np.int64), starts.astype(np.int64), np.array(cells, np.int64)


def numbers(n):
    return st.lists(st.integers(-99, 99), min_size=n, max_size=n).map(lambda values: np.array(values, float))


@given(groups(), st.data())
def test_reading_sums_over_what_was_not_observed(group, data):
    m, gaps, starts, cells = group
    table, values = data.draw(numbers(2**m)), np.empty(cells.size)
    read_cells(table, gaps, starts, cells, values)
    gap_of = np.repeat(gaps, np.diff(starts))
    expected = [
        table[[s for s in range(2**m) if s & ~gap == cell]].sum() for gap, cell in zip(gap_of, cells, strict=True)
    ]
    assert values.tolist() == expected


@given(groups(), st.data())
def test_spreading_is_the_transpose_of_reading(group, data):
    m, gaps, starts, cells = group
    table, values = data.draw(numbers(2**m)), data.draw(numbers(cells.size))
    read, spread = np.empty(cells.size), np.empty(2**m)
    read_cells(table, gaps, starts, cells, read)
    spread_cells(values, gaps, starts, cells, spread)
    assert read @ values == table @ spread


@given(st.lists(st.tuples(st.integers(1, 7), st.floats(0, 1)), max_size=5), st.integers(1, 7))
def test_sources_mix_and_one_that_is_surely_on_covers_the_rest(sources, certain):
    hidden, on = np.empty(8), np.empty(8)
    mix_sources(np.array([g for g, _ in sources], np.int64), np.array([p for _, p in sources], float), hidden)
    with_source_on(hidden, certain, on)
    # 2^6 sums of products below 1, some ten roundings each
    np.testing.assert_allclose(hidden, slow_mixture.pattern_probability(sources, 3), atol=1e-12)
    np.testing.assert_allclose(on, slow_mixture.pattern_probability([*sources, (certain, 1.0)], 3), atol=1e-12)


@given(numbers(8), st.lists(st.floats(0, 0.45), min_size=6, max_size=6), st.integers(0, 2), st.booleans())
def test_the_derivative_by_one_rate_is_what_that_rate_changes(hidden, rates, sensor, by_miss):
    false_alarm, miss = rates[:3], rates[3:]
    shown = np.array(slow_channel.channel(hidden.tolist(), false_alarm, miss))
    table = np.zeros(8)
    noise_derivative(shown, sensor, false_alarm[sensor], miss[sensor], by_miss, 2.0, table)
    (miss if by_miss else false_alarm)[sensor] += 0.1  # the chances are linear in each rate: any step will do
    moved = np.array(slow_channel.channel(hidden.tolist(), false_alarm, miss))
    np.testing.assert_allclose(table, 2.0 * (moved - shown) / 0.1, rtol=1e-9, atol=1e-9)
