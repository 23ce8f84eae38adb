import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.errors import DataError
from tests.reference import slow_patterns

CELLS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from([-2, -1, 0, 1, 2, 3])), max_size=12)


def coo(entries, kind=float):
    rows, columns, values = ([entry[i] for entry in entries] for i in range(3))
    return scipy.sparse.coo_array((np.array(values, kind), (rows, columns)), shape=(4, 3))


@given(CELLS, st.sampled_from([-3, -2, -1, 0, 1, 2]))
def test_entries_for_one_cell_are_summed_before_they_are_compared(entries, threshold):
    dense = coo(entries).toarray()
    expected = slow_patterns.count((dense > threshold).astype(int).tolist())
    assert slow_patterns.table_of(PatternCounts.of(coo(entries), binarize=threshold)) == expected


def test_a_negative_threshold_makes_ones_of_cells_that_are_not_stored():
    matrix = scipy.sparse.csr_array([[0, -5, np.nan]])
    counts = PatternCounts.of(matrix, binarize={"x0": -1, "x1": -1, "x2": -1})
    assert slow_patterns.table_of(counts) == {(1, 0, None): 1}


def test_repeated_entries_may_add_up_to_more_than_1():
    with pytest.raises(DataError, match="row 2, column 'x1' holds 2"):
        PatternCounts.of(coo([(0, 1, 1), (2, 1, 1), (2, 1, 1)]))


def test_stored_zeros_are_zeros():
    assert slow_patterns.table_of(PatternCounts.of(coo([(0, 1, 0), (1, 1, 1)]))) == {(0, 0, 0): 3, (0, 1, 0): 1}


def test_the_matrix_passed_in_stays_as_it_is():
    matrix = scipy.sparse.csr_array((np.ones(3), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3))
    matrix.data[1:] = 0.5
    PatternCounts.of(matrix)
    assert matrix.indices.tolist() == [2, 0, 0]
    assert matrix.data.tolist() == [1, 0.5, 0.5]


def test_a_matrix_is_never_made_dense_as_a_whole():
    place = np.array([0, 1, 19_999]), np.array([3, 19_999, 3])
    matrix = scipy.sparse.coo_array((np.ones(3, bool), place), shape=(20_000, 20_000))
    tracemalloc.start()
    counts = PatternCounts.of(matrix, sample_weight=np.arange(20_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sorted(counts.weights.tolist()) == [1, 19_999, sum(range(2, 19_999))]
    assert peak < 20_000 * 20_000 / 4  # a quarter of what one byte a cell would take


@pytest.mark.parametrize("kind", [bool, np.int8, np.float32])
def test_other_types_of_numbers_are_read(kind):
    assert slow_patterns.table_of(PatternCounts.of(coo([(0, 0, 1)], kind))) == {(1, 0, 0): 1, (0, 0, 0): 3}


def test_a_matrix_that_contradicts_itself_is_refused(tmp_path):
    matrix = scipy.sparse.csr_array(np.eye(3))
    matrix.indices[1] = 99_999
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    for same in (matrix, tmp_path / "a.npz"):
        with pytest.raises(DataError, match=r"the sparse array contradicts itself|a\.npz cannot be read"):
            PatternCounts.of(same)


def test_other_shapes_and_types_are_refused():
    with pytest.raises(DataError, match="this sparse array has 1 dimensions"):
        PatternCounts.of(scipy.sparse.coo_array(np.array([0, 1])))
    with pytest.raises(DataError, match="complex128 cannot be read as 0 and 1"):
        PatternCounts.of(scipy.sparse.csr_array(np.array([[1j]])))
    with pytest.raises(DataError, match="the table has no columns"):
        PatternCounts.of(scipy.sparse.csr_array((3, 0)))
