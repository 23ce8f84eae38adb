"""The noise channel against its definition: one factor a sensor, every pair of states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.kernels.lattice.subsets import apply_channel, apply_channel_transposed, undo_channel
from tests.reference import slow_channel

rates = st.floats(0, 1)
low_rates = st.floats(0, 0.4)  # away from a + b = 1, where nothing can be undone


def problems(rate, max_sensors=5):
    """Tables with a false-alarm and a miss rate a sensor."""
    return st.integers(0, max_sensors).flatmap(
        lambda m: st.tuples(
            st.lists(st.floats(-1, 1), min_size=2**m, max_size=2**m),
            st.lists(rate, min_size=m, max_size=m),
            st.lists(rate, min_size=m, max_size=m),
        )
    )


def after(kernel, table, false_alarm, miss):
    values = np.array(table, dtype=float)
    kernel(values, np.array(false_alarm, dtype=float), np.array(miss, dtype=float))
    return values


@given(problems(rates))
def test_channel_sums_over_all_that_may_have_been_there(problem):
    # each of 2^m terms below 1 is rounded m times: 2^5 * 10 * 1.1e-16 < 1e-13
    np.testing.assert_allclose(after(apply_channel, *problem), slow_channel.channel(*problem), rtol=0, atol=1e-13)


@given(problems(rates))
def test_channel_transposed_sums_over_all_that_may_be_shown(problem):
    expected = slow_channel.channel_transposed(*problem)
    np.testing.assert_allclose(after(apply_channel_transposed, *problem), expected, rtol=0, atol=1e-13)


@given(problems(rates), st.integers(0, 2**32))
def test_transposed_is_the_adjoint(problem, seed):
    table, false_alarm, miss = problem
    other = np.random.default_rng(seed).uniform(-1, 1, len(table))
    left = after(apply_channel, table, false_alarm, miss) @ other
    right = np.array(table) @ after(apply_channel_transposed, other, false_alarm, miss)
    assert left == pytest.approx(right, rel=0, abs=1e-11)


@given(problems(low_rates))
def test_undoing_gives_the_table_back(problem):
    table, false_alarm, miss = problem
    shown = after(apply_channel, table, false_alarm, miss)
    # undoing multiplies errors by at most 1 / (1 - a - b) * 1.8 = 9 a sensor: 9^5 * 1e-15 < 1e-10
    np.testing.assert_allclose(after(undo_channel, shown, false_alarm, miss), table, rtol=0, atol=1e-10)


@given(problems(rates))
def test_the_total_stays(problem):
    assert after(apply_channel, *problem).sum() == pytest.approx(sum(problem[0]), rel=0, abs=1e-12)


def test_false_alarm_and_miss_are_told_apart():
    assert after(apply_channel, [1.0, 0.0], [0.1], [0.3]).tolist() == [0.9, 0.1]
    assert after(apply_channel, [0.0, 1.0], [0.1], [0.3]).tolist() == [0.3, 0.7]


def test_bit_i_belongs_to_sensor_i():
    shown = after(apply_channel, [1.0, 0.0, 0.0, 0.0], [0.5, 0.0], [0.0, 0.0])
    assert shown.tolist() == [0.5, 0.5, 0.0, 0.0]


@pytest.mark.parametrize("kernel", [apply_channel, apply_channel_transposed, undo_channel])
def test_a_table_without_sensors_stays_as_it_is(kernel):
    assert after(kernel, [0.25], [], []).tolist() == [0.25]


def by_axes(table, false_alarm, miss, transposed):
    """The same channel with one array axis a sensor; the last axis is sensor 0."""
    cube = table.reshape((2,) * false_alarm.size)
    for sensor, (a, b) in enumerate(zip(false_alarm, miss, strict=True)):
        matrix = np.array([[1 - a, b], [a, 1 - b]])
        axis = cube.ndim - 1 - sensor
        cube = np.moveaxis(np.tensordot(matrix.T if transposed else matrix, cube, (1, axis)), 0, axis)
    return cube.reshape(-1)


@pytest.mark.parametrize("m", [11, 12, 13, 14, 15])
def test_tiles_join_without_a_seam(m):
    rng = np.random.default_rng(m)
    table, false_alarm, miss = rng.random(2**m), rng.uniform(0, 0.5, m), rng.uniform(0, 0.5, m)
    for kernel, transposed in ((apply_channel, False), (apply_channel_transposed, True)):
        expected = by_axes(table, false_alarm, miss, transposed)  # all terms are positive: rounding stays relative
        np.testing.assert_allclose(after(kernel, table, false_alarm, miss), expected, rtol=1e-13)
