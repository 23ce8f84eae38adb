import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.kernels.bits import packed, unpacked
from bica.kernels.rivals.factors import count_bits, covered_by_smaller, grow_concept
from tests.reference import slow_concepts
from tests.strategies import binary_tables


@given(st.integers(0, 2**64 - 1))
def test_bits_are_counted(word):
    assert count_bits(np.uint64(word)) == word.bit_count()


@given(binary_tables(max_rows=6, max_columns=6))
@settings(max_examples=100)
def test_a_grown_concept_is_that_of_the_definition(table):
    rows = packed(np.array(table, dtype=bool))
    columns = np.zeros((1, rows.shape[1]), np.uint64)
    inside = grow_concept(rows, rows.copy(), np.ones(len(table)), np.arange(len(table[0])), columns)
    everywhere = [(i, j) for i in range(len(table)) for j in range(len(table[0]))]
    expected = slow_concepts.greedy_cover(table, everywhere, [1] * len(table))
    if expected:
        found = frozenset(np.flatnonzero(unpacked(columns, len(table[0]))[0]).tolist())
        assert (frozenset(inside.tolist()), found) == expected[0]
    else:
        assert not columns.any()


@given(binary_tables(max_rows=6, max_columns=6))
def test_bits_of_strictly_smaller_rows_are_marked(table):
    words = packed(np.array(table, dtype=bool))
    covered = np.zeros_like(words)
    covered_by_smaller(words, covered)
    sets = [{j for j, cell in enumerate(row) if cell} for row in table]
    expected = [set().union(*(other for other in sets if other < row)) for row in sets]
    assert [set(np.flatnonzero(line).tolist()) for line in unpacked(covered, len(table[0]))] == expected
