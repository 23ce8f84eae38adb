"""Columns as bit sets over rows, against integers of any length."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.pairs import ColumnBits, transposed
from bica.data.patterns import PatternCounts
from bica.kernels.bits import packed
from bica.kernels.columns import add_bit_weights, add_common_bits, count_bits, count_blocks
from tests.reference import slow_bits, slow_columns

words = st.integers(0, 2**64 - 1)
edges = st.sampled_from([0, 1, 63, 64, 65, 128, 130])


@st.composite
def bit_tables(draw):
    """Rows as integers, some of them empty, and how many columns there are."""
    n_columns = draw(st.sampled_from([1, 3, 63, 64, 65, 130]))
    row = st.one_of(st.just(0), st.just(2**n_columns - 1), st.integers(0, 2**n_columns - 1))
    pool = draw(st.lists(row, min_size=1, max_size=6))
    n_rows = draw(edges)
    return [pool[(7 * r + r // 5) % len(pool)] for r in range(n_rows)], n_columns


def in_words(integers, n_bits):
    n_words = max(1, -(-n_bits // 64))
    return np.array([[n >> 64 * k & (2**64 - 1) for k in range(n_words)] for n in integers], np.uint64).reshape(
        -1, n_words
    )


@given(words)
def test_bits_are_counted(word):
    assert count_bits(np.uint64(word)) == word.bit_count()


@given(bit_tables())
@settings(max_examples=60)
def test_a_table_is_turned_round(table):
    rows, n_columns = table
    assert slow_bits.joined(transposed(in_words(rows, n_columns), n_columns)) == slow_columns.transposed(
        rows, n_columns
    )


@given(st.lists(st.integers(0, 2**130 - 1), min_size=1, max_size=6), st.data())
@settings(max_examples=60)
def test_common_rows_are_counted_in_the_lines_asked_for(columns, data):
    n = len(columns)
    lines = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1)))), np.int64)
    half, scale = data.draw(st.booleans()), data.draw(st.sampled_from([1.0, 4.0]))
    others = columns if half else data.draw(st.lists(st.integers(0, 2**130 - 1), min_size=1, max_size=6))
    counts = np.ones((n, len(others)))  # what was there before stays
    add_common_bits(in_words(columns, 130), in_words(others, 130), half, scale, lines, counts)
    for i in range(n):
        for k in range(len(others)):
            counted = i in lines and (k <= i or not half)
            assert counts[i, k] == 1 + (scale * (columns[i] & others[k]).bit_count() if counted else 0)


@given(st.data())
@settings(max_examples=60)
def test_the_histogram_of_a_few_sensors(data):
    """In any order of the sensors, with weights that are not whole, past the end of the first word."""
    n_rows = data.draw(st.sampled_from([1, 5, 64, 70]))
    rows = [[(r * (i + 3) // 2 + r // 3) % 3 == 0 for i in range(5)] for r in range(n_rows)]
    weights = data.draw(st.lists(st.sampled_from([0.25, 1.0, 3.0, 1000.5]), min_size=n_rows, max_size=n_rows))
    places = data.draw(st.lists(st.integers(0, 4), unique=True))
    table = PatternCounts.of(rows, sample_weight=weights)
    found = ColumnBits.of(table).histogram(np.array(places, np.int64))
    assert found.tolist() == [float(cell) for cell in slow_columns.histogram(rows, places, weights)]


@given(st.sampled_from([1, 7, 8, 9, 64, 130]), st.lists(st.integers(0, 12), min_size=1, max_size=4), st.integers(0, 99))
def test_patterns_of_many_blocks_are_counted_at_once(n_rows, sizes, seed):
    rng = np.random.default_rng(seed)
    rows = rng.random((n_rows, 12)) < 0.2
    blocks = [rng.permutation(12)[:size] for size in sizes]
    starts, cells = np.cumsum([0, *sizes]), np.cumsum([0] + [1 << size for size in sizes])
    counts, places = np.zeros(cells[-1], np.int64), np.concatenate([np.zeros(0, np.int64), *blocks])
    columns = in_words(
        slow_columns.transposed([sum(1 << int(i) for i in np.flatnonzero(row)) for row in rows], 12), n_rows
    )
    count_blocks(columns, n_rows, places, starts, cells[:-1], counts)
    expected = [slow_columns.histogram(rows, block.tolist(), [1] * n_rows) for block in blocks]
    assert counts.tolist() == [int(cell) for block in expected for cell in block]


@given(st.integers(0, 70), st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_weights_of_the_ones_of_every_column(n_columns, n_rows, seed):
    rng = np.random.default_rng(seed)
    rows, weights = rng.random((n_rows, n_columns)) < 0.4, rng.integers(0, 9, n_rows).astype(float)
    totals = np.zeros(64 * max(1, -(-n_columns // 64)))
    add_bit_weights(packed(rows), weights, totals)
    assert totals[:n_columns].tolist() == [
        sum(weights[r] for r in range(n_rows) if rows[r, i]) for i in range(n_columns)
    ]
    assert not totals[n_columns:].any()
