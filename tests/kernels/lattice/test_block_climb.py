"""Linear systems and parts of arrays, against NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from bica.kernels.lattice.block_climb import add_ridge, factored, places_of, solve_factored, square_part


@given(st.integers(0, 8), st.integers(0, 10_000))
def test_systems_are_solved(size, seed):
    rng = np.random.default_rng(seed)
    matrix, right, solution = rng.normal(size=(size, size)), rng.normal(size=size), np.empty(size)
    factors = matrix.copy()
    solve_factored(factors, factored(factors), right, solution)
    # elimination with pivots errs by rounding times the condition number, times a growth of at most 2^7 here
    tolerance = 2.0**7 * np.finfo(float).eps * (np.linalg.cond(matrix) if size else 1.0)
    assert_allclose(
        solution, np.linalg.solve(matrix, right), rtol=0, atol=tolerance * (1 + np.abs(solution).max(initial=0))
    )


def test_a_zero_on_the_diagonal_is_no_obstacle():
    matrix, solution = np.array([[0.0, 2.0], [4.0, 0.0]]), np.empty(2)
    solve_factored(matrix, factored(matrix), np.array([2.0, 4.0]), solution)
    assert_array_equal(solution, [1.0, 1.0])


def test_a_singular_matrix_gives_no_finite_solution():
    matrix, solution = np.ones((2, 2)), np.empty(2)
    solve_factored(matrix, factored(matrix), np.array([1.0, 2.0]), solution)
    assert not np.isfinite(solution).all()


@given(st.lists(st.booleans(), max_size=9))
def test_places_and_parts_are_those_of_numpy(flags):
    chosen = np.array(flags, dtype=bool)
    matrix = np.arange(float(chosen.size**2)).reshape(chosen.size, chosen.size)
    assert_array_equal(places_of(chosen), np.flatnonzero(chosen))
    assert_array_equal(square_part(matrix, places_of(chosen)), matrix[np.ix_(chosen, chosen)])


def test_the_ridge_is_a_share_of_the_trace():
    matrix = np.array([[1.0, 5.0], [5.0, 3.0]])
    add_ridge(matrix, 0.5, 0.25)
    assert_array_equal(matrix, [[3.25, 5.0], [5.0, 5.25]])
