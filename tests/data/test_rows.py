"""Rows in order: read from anything, counted, chosen, refused."""

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.data.rows import Rows, read_complete
from bica.errors import DataError


def test_rows_keep_their_order_and_what_was_missing():
    rows = Rows.of([[0, 1], [np.nan, 0], [1, 1]])
    assert rows.words.ravel().tolist() == [2, 0, 3]
    assert rows.observed.ravel().tolist() == [3, 2, 3]
    assert not rows.is_complete


def test_counting_rows_is_counting_the_table():
    cells = np.random.default_rng(0).integers(0, 2, (60, 70)).astype(float)
    cells[3, 5] = np.nan
    names = [f"sensor{i}" for i in range(70)]
    assert Rows.of(cells, sensors=names).counts() == PatternCounts.of(cells, sensors=names)


def test_counts_have_lost_the_order():
    with pytest.raises(DataError, match="do not know the order"):
        Rows.of(PatternCounts.of([[0, 1]]))


def test_a_choice_of_sensors_keeps_their_names():
    rows = Rows.of([[0, 1, 1]], sensors=["a", "b", "c"]).of_sensors(np.array([2, 0]))
    assert rows.sensors == ("c", "a")
    assert rows.cells(2).tolist() == [[1, 0]]


def test_words_of_another_shape_are_refused():
    with pytest.raises(DataError, match="a row of 70 sensors takes 2 words"):
        Rows.of_words(np.zeros((3, 1), np.uint64), None, 70)


def test_an_incomplete_file_is_refused_where_every_cell_is_needed(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,\n0,1\n")
    with pytest.raises(DataError, match="missing cells"):
        read_complete(str(tmp_path / "t.csv"), ["a"])
