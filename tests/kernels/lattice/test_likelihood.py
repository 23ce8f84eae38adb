"""Reading cells with gaps, and its transpose, against their definitions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bica.kernels.lattice.likelihood import (
    CellGroups,
    best_additions,
    cells_with_source_on,
    mix_sources,
    noise_derivatives,
    on_errors,
    read_cells,
    spread_cells,
    with_source_on,
)
from bica.kernels.lattice.subsets import channel_matrices
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


rates_of_noise = st.lists(st.floats(0, 0.45), min_size=8, max_size=8)


@given(groups(), rates_of_noise, st.integers(0, 15), st.integers(0, 99), st.data())
def test_with_a_source_on_cells_are_as_likely_as_on_the_hidden_lattice(group, rates, source, times, data):
    m, gaps, starts, cells = group
    hidden, source = np.abs(data.draw(numbers(2**m))), source & (2**m - 1)
    many = np.tile(
        cells[: starts[1]] if gaps.size else cells, times
    )  # the lattice is summed at once where cells abound
    cells, starts = np.append(many, cells), starts + np.append(0, np.full(starts.size - 1, many.size))
    false_alarm, miss = rates[:m], rates[4 : 4 + m]
    shown = np.array(slow_channel.channel(hidden.tolist(), false_alarm, miss))
    on, expected, values = np.empty(2**m), np.empty(cells.size), np.empty(cells.size)
    with_source_on(hidden, source, on)
    read_cells(np.array(slow_channel.channel(on.tolist(), false_alarm, miss)), gaps, starts, cells, expected)
    errors = on_errors(channel_matrices(np.array(false_alarm), np.array(miss)))
    cells_with_source_on(shown, source, errors, CellGroups(gaps, starts, cells), np.empty(2**m), values)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)  # sums of at most 16 positive numbers


@given(st.integers(1, 5), st.lists(st.floats(0.01, 0.45), min_size=10, max_size=10), st.integers(1, 40), st.data())
def test_many_candidates_gain_what_each_gains_alone(m, rates, n_cells, data):
    """Also those that share sums with their neighbours: in ascending order many of them do."""
    hidden = np.abs(data.draw(numbers(2**m))) + 0.01
    cells = np.sort(np.array(data.draw(st.lists(st.integers(0, 2**m - 1), min_size=n_cells, max_size=n_cells))))
    candidates = np.array(data.draw(st.lists(st.integers(1, 2**m - 1), min_size=1, max_size=40)))
    candidates = np.sort(candidates) if data.draw(st.booleans()) else candidates
    false_alarm, miss, weights = rates[:m], rates[5 : 5 + m], np.ones(n_cells)
    shown, on = np.array(slow_channel.channel(hidden.tolist(), false_alarm, miss)), np.empty(2**m)
    groups_of_one = CellGroups(np.zeros(1, np.int64), np.array([0, n_cells]), cells)
    gain, probability = np.empty(candidates.size), np.empty(candidates.size)
    matrices = channel_matrices(np.array(false_alarm), np.array(miss))
    best_additions(shown, matrices, candidates, groups_of_one, shown[cells], weights, gain, probability)
    for candidate, at_best, p in zip(candidates, gain, probability, strict=True):
        with_source_on(hidden, int(candidate), on)
        ratio = np.array(slow_channel.channel(on.tolist(), false_alarm, miss))[cells] / shown[cells] - 1.0
        # sums of at most 32 positive numbers, divided by some that are not small
        np.testing.assert_allclose(at_best, np.log1p(p * ratio).sum(), rtol=1e-9, atol=1e-9)
        assert (p > 0) == (ratio.sum() > 0) or abs(ratio.sum()) < 1e-9


@given(groups(), rates_of_noise, st.integers(0, 3), st.booleans(), st.data())
def test_the_derivative_by_one_rate_is_what_that_rate_changes(group, rates, sensor, by_miss, data):
    m, gaps, starts, cells = group
    hidden, false_alarm, miss = data.draw(numbers(2**m)), np.array(rates[:m]), np.array(rates[4 : 4 + m])
    if sensor >= m:
        return
    of_one = (np.zeros((m, 1)), np.zeros((m, 1)))
    of_one[by_miss][sensor] = 2.0
    derivatives, read = np.empty((1, cells.size)), np.empty((2, cells.size))
    shown = np.array(slow_channel.channel(hidden.tolist(), false_alarm.tolist(), miss.tolist()))
    noise_derivatives(shown, (false_alarm, miss), of_one, CellGroups(gaps, starts, cells), derivatives)
    rate = miss if by_miss else false_alarm
    rate[sensor] += 0.1  # the probabilities are linear in each rate: any step will do
    moved = np.array(slow_channel.channel(hidden.tolist(), false_alarm.tolist(), miss.tolist()))
    for table, values in zip((shown, moved), read, strict=True):
        read_cells(table, gaps, starts, cells, values)
    np.testing.assert_allclose(derivatives[0], 2.0 * (read[1] - read[0]) / 0.1, rtol=1e-9, atol=1e-9)
