from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import DataError, SettingError
from tests.reference import slow_patterns


@pytest.mark.parametrize(
    "kind", [bool, np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.float64, object]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_type_of_number_is_read(kind, order):
    rows = np.array([[0, 1, 1], [1, 0, 1], [0, 1, 1]])
    counts = PatternCounts.of(np.array(rows, kind, order=order))
    assert slow_patterns.table_of(counts) == slow_patterns.count(rows.tolist())


def test_views_with_gaps_are_read_as_what_they_show():
    rows = np.random.default_rng(0).random((40, 12)) < 0.5
    for view in (rows[::2, ::3], rows[::-1], rows[:, ::-1], rows.T):
        assert slow_patterns.table_of(PatternCounts.of(view)) == slow_patterns.count(view.astype(int).tolist())


def test_the_array_passed_in_stays_as_it_is():
    rows = np.ma.masked_array([[True, False]], [[True, False]])
    PatternCounts.of(rows)
    assert rows.data.tolist() == [[True, False]]


def test_every_way_to_say_not_seen():
    cells = [[None, np.nan, pd.NA, pd.NaT, float("nan"), np.ma.masked, 1, True, np.bool_(True), Decimal(1)]]
    rows = np.empty((1, 10), object)
    rows[0] = cells[0]
    assert slow_patterns.table_of(PatternCounts.of(rows)) == {(None,) * 6 + (1,) * 4: 1}


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (np.zeros(3), "this array has 1 dimensions; pass one row for each sample"),
        (np.zeros((2, 2, 2)), "this array has 3 dimensions"),
        (np.array(1), "this array has 0 dimensions"),
        ([1, 0, 1], "this array has 1 dimensions"),
        ([], "this array has 1 dimensions"),
        ([[1, 0], [1]], "row 1 has 1 cells, but row 0 has 2; every row needs the same number"),
        ([np.zeros(2), np.zeros(3)], "row 1 has 3 cells, but row 0 has 2"),
        ([[1, 0], 1], "the list cannot be read as a table; pass a list of rows"),
        ([[1, "0"]], "row 0, column 'x1' holds '0', but only 0 and 1 can be read"),
        ([[1, 0], [1, "b"]], "row 1, column 'x1' holds 'b', but only 0 and 1 can be read"),
        (np.array([["0", "1"]]), "row 0, column 'x0' holds '0', but only 0 and 1 can be read"),
        (np.array([["2020-01-01"]], "M8[D]"), "row 0, column 'x0' holds datetime.date"),
        (np.array([[1j]]), "an array of type complex128 cannot be read as 0 and 1"),
        (np.zeros((1, 1), [("a", int)]), "cannot be read as 0 and 1"),
        ([[0, 2]], "row 0, column 'x1' holds 2,"),
        ([[0, 0.5]], r"row 0, column 'x1' holds 0\.5,"),
        ([[0, -1]], "row 0, column 'x1' holds -1,"),
        ([[0, np.inf]], "row 0, column 'x1' holds inf,"),
        (np.zeros((0, 3)), "the table has no rows"),
        (np.zeros((3, 0)), "the table has no columns, so there is nothing to learn from"),
        ([[]], "the table has no columns, so there is nothing to learn from"),
        (pd.Series([0, 1]), "this array has 1 dimensions"),
        ({"a": [0, 1]}, "something of type dict cannot be read as a table; pass an array, a data frame or a path"),
        (7, "something of type int cannot be read as a table"),
        (None, "something of type NoneType cannot be read as a table"),
    ],
    ids=str,
)
def test_what_is_no_table_of_0_and_1_is_refused_in_one_sentence(table, sentence):
    with pytest.raises(DataError, match=sentence) as raised:
        PatternCounts.of(table)
    assert "\n" not in str(raised.value)


def test_the_number_of_a_row_counts_from_the_start_of_the_array():
    rows = np.zeros((5000, 1000), np.int8)  # more than one chunk
    rows[4999, 7] = 3
    with pytest.raises(DataError, match="row 4999, column 'x7' holds 3"):
        PatternCounts.of(rows)


class TestNumbersBeyondFloats:
    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (10**400, "100000.*0000"),
            (-(10**6000), "a number of thousands of digits"),
            (Decimal("sNaN"), r"Decimal\('sNaN'\)"),
            (Decimal("1e9999"), r"Decimal\('1E\+9999'\)"),
        ],
        ids=["400 digits", "6000 digits", "signalling", "decimal"],
    )
    def test_they_are_strange_values(self, value, shown):
        for rows in (
            [[0, value]],
            np.array([[0, value]], object),
            pd.DataFrame({"x0": [0], "x1": [value]}, dtype=object),
        ):
            with pytest.raises(DataError, match=f"row 0, column 'x1' holds {shown}, but only 0 and 1"):
                PatternCounts.of(rows)

    def test_they_are_above_or_below_a_threshold(self):
        rows = [[10**400, -(10**400)]]
        assert slow_patterns.table_of(PatternCounts.of(rows, binarize=0.5)) == {(1, 0): 1}

    def test_they_are_no_thresholds_and_no_weights(self):
        with pytest.raises(SettingError, match="`binarize` takes a number"):
            PatternCounts.of([[0, 1]], binarize=10**400)
        with pytest.raises(DataError, match="`sample_weight` holds something that is not a number"):
            PatternCounts.of([[0, 1]], sample_weight=[10**400])


class TestBinarize:
    @pytest.mark.parametrize("threshold", [True, "1", np.nan, np.inf, [1, 2], {"x0": None}])
    def test_only_numbers_are_thresholds(self, threshold):
        with pytest.raises(SettingError, match="`binarize` takes a number, or a mapping from columns to numbers, not"):
            PatternCounts.of([[0, 1]], binarize=threshold)

    def test_text_is_refused_with_a_threshold_too(self):
        with pytest.raises(DataError, match="row 0, column 'x1' holds 'b'"):
            PatternCounts.of([[1, "b"]], binarize=0.5)

    def test_masked_cells_stay_missing(self):
        rows = np.ma.masked_array([[5, 5], [0, 5]], [[True, False], [False, False]])
        assert slow_patterns.table_of(PatternCounts.of(rows, binarize=1)) == {(None, 1): 1, (0, 1): 1}

    def test_an_empty_mapping_changes_nothing(self):
        assert PatternCounts.of([[0, 1]], binarize={}) == PatternCounts.of([[0, 1]])


class TestWeights:
    @pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
    def test_one_weight_a_row_from_anything_like_an_array(self, kind):
        counts = PatternCounts.of([[0], [1], [0]], sample_weight=kind([1, 2, 0.5]))
        assert slow_patterns.table_of(counts) == {(0,): 1.5, (1,): 2}

    def test_rows_of_no_weight_are_left_out(self):
        assert slow_patterns.table_of(PatternCounts.of([[0], [1]], sample_weight=[0, 1])) == {(1,): 1}

    @pytest.mark.parametrize(
        ("weights", "sentence"),
        [
            ([1], "`sample_weight` needs one weight per row, 2 in all, but 1 weights came"),
            ([[1], [1]], r"`sample_weight` needs one weight per row, 2 in all, but an array of shape \(2, 1\) came"),
            (3, r"an array of shape \(\) came"),
            ([1, -1], r"the weight of row 1 is -1\.0; weights are finite and not negative"),
            ([np.nan, 1], "the weight of row 0 is nan"),
            ([1, np.inf], "the weight of row 1 is inf"),
            (
                [1, 2.0**53],
                r"the weight of row 1 is 9007199254740992\.0; weights that can be added exactly are 0 or from",
            ),
            ([1e300, 1], r"the weight of row 0 is 1e\+300; weights that can be added exactly"),
            ([1, 5e-324], "the weight of row 1 is 5e-324; weights that can be added exactly"),
            ([2.0**52, 2.0**52], r"the weights add up to 9\.0072e\+15, beyond what can be counted \(2\^53\)"),
            (["a", "b"], "`sample_weight` holds something that is not a number"),
            ("x0", "an array has no column of weights 'x0'; pass the weights themselves"),
            ([0, 0], "the table has no rows, or their weights are all zero"),
        ],
        ids=str,
    )
    def test_other_weights_are_refused(self, weights, sentence):
        with pytest.raises(DataError, match=sentence):
            PatternCounts.of([[0], [1]], sample_weight=weights)
