"""Lattice sums against their definition, and beyond one tile against a NumPy version."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.kernels.lattice.subsets import TILE, subset_sums, superset_sums
from tests.reference import slow_subsets

# whole numbers this small add up exactly in float64, so equality is the right test
numbers = st.integers(-99, 99).map(float)
tables = st.integers(0, 6).flatmap(lambda m: st.lists(numbers, min_size=2**m, max_size=2**m))
pairs = st.integers(0, 6).flatmap(lambda m: st.tuples(*[st.lists(numbers, min_size=2**m, max_size=2**m)] * 2))
kernels = pytest.mark.parametrize("kernel", [subset_sums, superset_sums])
signs = pytest.mark.parametrize("sign", [1.0, -1.0])


def after(kernel, table, sign):
    values = np.array(table, dtype=float)
    kernel(values, sign)
    return values


@given(tables)
def test_zeta_is_the_sum_over_subsets(table):
    assert after(subset_sums, table, 1.0).tolist() == slow_subsets.subset_sums(table)


@given(tables)
def test_moebius_is_the_signed_sum_over_subsets(table):
    assert after(subset_sums, table, -1.0).tolist() == slow_subsets.signed_subset_sums(table)


@given(tables)
def test_zeta_transposed_is_the_sum_over_supersets(table):
    assert after(superset_sums, table, 1.0).tolist() == slow_subsets.superset_sums(table)


@given(tables)
def test_moebius_transposed_is_the_signed_sum_over_supersets(table):
    assert after(superset_sums, table, -1.0).tolist() == slow_subsets.signed_superset_sums(table)


@kernels
@given(table=tables)
def test_minus_undoes_plus(kernel, table):
    assert after(kernel, after(kernel, table, 1.0), -1.0).tolist() == table


@signs
@given(pair=pairs)
def test_superset_sums_are_the_adjoint_of_subset_sums(sign, pair):
    x, y = np.array(pair[0]), np.array(pair[1])
    assert after(subset_sums, x, sign) @ y == x @ after(superset_sums, y, sign)


@kernels
@signs
def test_a_table_without_sensors_stays_as_it_is(kernel, sign):
    assert after(kernel, [3.5], sign).tolist() == [3.5]


@kernels
@signs
@given(table=tables)
def test_a_whole_number_will_do_as_sign(kernel, sign, table):
    assert after(kernel, table, int(sign)).tolist() == after(kernel, table, sign).tolist()


def by_axes(table, sign, upwards):
    """The same sums with one array axis a sensor."""
    cube = table.reshape((2,) * (table.size.bit_length() - 1)).copy()
    for axis in range(cube.ndim):
        quiet, on = np.moveaxis(cube, axis, 0)
        if upwards:
            on += sign * quiet
        else:
            quiet += sign * on
    return cube.reshape(-1)


@kernels
@signs
@pytest.mark.parametrize("m", [11, 12, 13, 14, 15])
def test_tiles_join_without_a_seam(kernel, sign, m):
    table = np.random.default_rng(m).integers(-99, 100, 2**m).astype(float)
    assert np.array_equal(after(kernel, table, sign), by_axes(table, sign, kernel is subset_sums))


def test_the_sizes_above_lie_on_both_sides_of_a_tile():
    assert 2**11 < TILE < 2**14


@kernels
def test_infinite_entries_stay_apart_from_finite_ones(kernel):
    table = np.zeros(16)
    table[5] = np.inf  # the rate of a source that is always on
    expected = slow_subsets.subset_sums(table) if kernel is subset_sums else slow_subsets.superset_sums(table)
    assert after(kernel, table, 1.0).tolist() == expected
