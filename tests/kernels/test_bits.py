import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.kernels.bits import (
    add_to_histogram,
    choose_bits,
    count_into_histogram,
    group_equal,
    group_small,
    n_words,
    pack_columns,
    pack_sparse,
    packed,
    split_bits,
    unpacked,
)
from tests.reference import slow_bits

WIDTHS = st.sampled_from([1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200])


@st.composite
def tables(draw, max_rows=6):
    width = draw(WIDTHS)
    sets = draw(st.lists(st.integers(0, 2**width - 1), max_size=max_rows))
    return np.array([[s >> i & 1 for i in range(width)] for s in sets], np.uint8).reshape(len(sets), width)


def empty_words(cells):
    return np.zeros((cells.shape[0], n_words(cells.shape[1])), np.uint64)


@given(tables())
def test_packed_rows_are_the_integers_of_the_definition(cells):
    assert slow_bits.joined(packed(cells)) == slow_bits.packed(cells.tolist())


@given(tables())
def test_packing_columns_agrees_with_the_definition(cells):
    words = empty_words(cells)
    pack_columns(np.ascontiguousarray(cells.T), words)
    assert slow_bits.joined(words) == slow_bits.packed(cells.tolist())


@given(tables())
def test_the_order_of_the_cells_in_memory_does_not_matter(cells):
    wide = np.zeros((cells.shape[0], 2 * cells.shape[1]), np.uint8)
    wide[:, ::2] = cells
    for same in (np.asfortranarray(cells), wide[:, ::2], cells.astype(bool)):
        assert np.array_equal(packed(same), packed(cells))


@given(tables())
def test_splitting_a_long_bit_set_gives_the_rows(cells):
    long = slow_bits.packed([cells.ravel().tolist()])[0]
    stream = np.array([long >> 64 * k & (2**64 - 1) for k in range(cells.size // 64 + 2)], np.uint64)
    words = empty_words(cells)
    split_bits(stream, cells.shape[1], words)
    assert slow_bits.joined(words) == slow_bits.packed(cells.tolist())


@given(tables())
def test_unpacking_undoes_packing(cells):
    assert np.array_equal(unpacked(packed(cells), cells.shape[1]), cells.astype(bool))


@given(tables())
def test_sparse_rows_pack_like_dense_ones(cells):
    starts = np.concatenate([[0], np.cumsum(cells.sum(axis=1, dtype=np.int64))])
    words = empty_words(cells)
    pack_sparse(starts, np.nonzero(cells)[1].astype(np.int64), words)
    assert slow_bits.joined(words) == slow_bits.packed(cells.tolist())


@given(tables(), st.data())
def test_chosen_bits_are_the_chosen_columns(cells, data):
    columns = data.draw(st.lists(st.integers(0, cells.shape[1] - 1), min_size=1, max_size=70))
    words = np.zeros((cells.shape[0], n_words(len(columns))), np.uint64)
    choose_bits(packed(cells), np.array(columns, np.int64), words)
    assert slow_bits.joined(words) == slow_bits.packed(slow_bits.chosen(cells.tolist(), columns))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2**63, 2**64 - 1])), max_size=40))
def test_equal_rows_get_equal_numbers_in_the_order_of_appearance(keys):
    numbers, firsts = slow_bits.numbered(keys)
    first, group = np.full(len(keys), -1), np.full(len(keys), -1)
    n_groups = group_equal(np.array(keys, np.uint64).reshape(-1, 2), first, group)
    assert n_groups == len(firsts)
    assert group.tolist() == numbers
    assert first[:n_groups].tolist() == firsts


@given(st.lists(st.integers(0, 9), max_size=30))
def test_small_words_are_numbered_by_size(words):
    distinct = sorted(set(words))
    first, group = np.full(len(words), -1), np.full(len(words), -1)
    assert group_small(np.array(words, np.uint64), np.full(10, -1), first, group) == len(distinct)
    assert group.tolist() == [distinct.index(word) for word in words]
    assert first[: len(distinct)].tolist() == [words.index(word) for word in distinct]


@pytest.mark.parametrize("step", [1, 2**20, 2**32, 2**58])
def test_keys_that_differ_in_a_few_bits_only_are_told_apart(step):
    keys = np.arange(64, dtype=np.uint64)[:, None] * np.uint64(step)
    first, group = np.empty(64, np.int64), np.empty(64, np.int64)
    assert group_equal(keys, first, group) == 64
    assert group.tolist() == list(range(64))


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), max_size=30))
def test_histograms_add_up_what_falls_into_each_cell(seen):
    words = [word for word, _ in seen]
    weights = [weight for _, weight in seen]
    weighted, counted = np.zeros(8), np.zeros(8)
    add_to_histogram(np.array(words, np.uint64), np.array(weights, float), weighted)
    count_into_histogram(np.array(words, np.uint64), counted)
    assert weighted.tolist() == slow_bits.histogram(words, weights, 8)
    assert counted.tolist() == slow_bits.histogram(words, [1] * len(words), 8)
