import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bica.estimate.rows.pool import as_columns, as_lists
from bica.kernels.bits import packed
from bica.kernels.rows.gains import list_bits, spliced, taken, turned
from tests.reference import slow_rows

sets = st.lists(st.sets(st.integers(0, 129)).map(lambda s: tuple(sorted(s))), min_size=1, max_size=5)


@given(sets)
def test_the_set_bits_are_listed(rows):
    cells = np.array([[i in row for i in range(130)] for row in rows], np.uint8)
    assert as_columns(list_bits(packed(cells), 130)) == rows


@given(sets)
def test_turned_lists_tell_who_holds_a_number(rows):
    assert [list(c) for c in as_columns(turned(as_lists(rows), 130))] == slow_rows.turned(rows, 130)


@given(sets, st.data())
def test_lists_are_taken_in_any_order(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1)))
    assert as_columns(taken(as_lists(rows), np.array(chosen, np.int64))) == [rows[k] for k in chosen]


@given(sets, st.data())
def test_spliced_lists_carry_their_values(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), unique=True))
    new = data.draw(st.lists(sets.map(lambda s: s[0]), min_size=len(chosen), max_size=len(chosen)))
    old_lists, new_lists = as_lists(rows), as_lists(new)
    lists, values = spliced(
        old_lists, old_lists.items * 1.0, np.array(chosen, np.int64), new_lists, new_lists.items * 2.0
    )
    replaced = dict(zip(chosen, new, strict=True))
    assert as_columns(lists) == [replaced.get(k, row) for k, row in enumerate(rows)]
    factor = [2.0 if k in replaced else 1.0 for k in range(len(rows)) for _ in replaced.get(k, rows[k])]
    assert values.tolist() == (lists.items * np.array(factor)).tolist()
