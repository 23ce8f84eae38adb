import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bica.data.patterns import PatternCounts
from bica.data.tables import open_table
from bica.errors import DataError
from tests.reference import slow_patterns


def test_a_pandas_frame_may_mix_types():
    frame = pd.DataFrame(
        {
            "flag": [True, False],
            "whole": pd.array([1, None], dtype="Int64"),
            "real": [1.0, np.nan],
            "exact": pd.array([None, 1], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
            "objects": [True, None],
            "sparse": pd.arrays.SparseArray([0, 1]),
        }
    )
    expected = [(1, 1, 1, None, 1, 0), (0, None, None, 1, None, 1)]
    assert slow_patterns.table_of(PatternCounts.of(frame)) == slow_patterns.count(expected)


def test_a_polars_frame_may_mix_types():
    frame = pl.DataFrame(
        {
            "flag": [True, None],
            "whole": [1, None],
            "byte": pl.Series([1, 0], dtype=pl.UInt8),
            "real": [float("nan"), 0.0],
            "nothing": [None, None],
            "exact": pl.Series(["1", "0"]).cast(pl.Decimal(5, 2)),
        }
    )
    expected = [(1, 1, 1, None, None, 1), (None, None, 0, 0, None, 0)]
    for same in (frame, frame.lazy(), frame.to_arrow(), nw.from_native(frame), nw.from_native(frame.lazy())):
        assert slow_patterns.table_of(PatternCounts.of(same)) == slow_patterns.count(expected)


def test_names_that_are_no_text_are_written_as_text():
    assert PatternCounts.of(pd.DataFrame([[0, 1]])).sensors == ("0", "1")
    assert PatternCounts.of(pd.DataFrame([[0, 1]]), binarize={0: 0.5, 1: 0.5}).sensors == ("0", "1")
    with pytest.raises(DataError, match="columns 0 and 1 are both named '1'"):
        PatternCounts.of(pd.DataFrame([[0, 1]], columns=[1, "1"]))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[0, 1]], columns=["a", "a"]),
        pa.table([pa.array([1]), pa.array([0])], names=["a", "a"]),
    ],
    ids=["pandas", "arrow"],
)
def test_equal_names_are_refused(frame):
    with pytest.raises(DataError, match="two columns have the same name: 'a' 2 times"):
        PatternCounts.of(frame)


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (["x", "y"], "'x'"),
        (pd.Categorical(["no", "yes"]), "'no'"),
        ([1, "1"], "'1'"),
    ],
    ids=["text", "categories", "objects"],
)
def test_other_columns_are_refused_by_row_and_value(column, shown):
    with pytest.raises(DataError, match=f"row [01], column 'odd' holds .*{shown}.*, but only 0 and 1 can be read"):
        PatternCounts.of(pd.DataFrame({"fine": [0, 1], "odd": column}))


def test_other_columns_of_a_lazy_frame_are_refused_by_type():
    with pytest.raises(DataError, match="column 'odd' holds String, not 0 and 1; leave it out or turn it into numbers"):
        PatternCounts.of(pl.LazyFrame({"fine": [0, 1], "odd": ["0", "1"]}))


@pytest.mark.parametrize("frame", [pd.DataFrame(index=[0, 1]), pl.DataFrame(), pl.LazyFrame(), pa.table({})])
def test_a_frame_without_columns_is_refused(frame):
    with pytest.raises(DataError, match="the table has no columns"):
        PatternCounts.of(frame)


@pytest.mark.parametrize("frame", [pd.DataFrame({"a": []}), pl.DataFrame({"a": []}), pl.LazyFrame({"a": []})])
def test_a_frame_without_rows_is_refused(frame):
    with pytest.raises(DataError, match="the table has no rows"):
        PatternCounts.of(frame)


@pytest.mark.parametrize("series", [pd.Series([0, 1]), pl.Series([0, 1]), pa.chunked_array([[0, 1]]), pa.array([0, 1])])
def test_one_column_alone_is_no_table(series):
    with pytest.raises(DataError, match="a table has rows and columns, but this array has 1 dimensions"):
        PatternCounts.of(series)


def test_a_lazy_frame_takes_weights_by_name_only():
    with pytest.raises(DataError, match="the weights of a lazy frame must be one of its columns; pass its name"):
        PatternCounts.of(pl.LazyFrame({"a": [0, 1]}), sample_weight=[1, 1])


def test_weights_of_text_are_refused():
    with pytest.raises(DataError, match="the column of weights 'n' holds String, not numbers"):
        PatternCounts.of(pl.DataFrame({"a": [0], "n": ["1"]}), sample_weight="n")


def test_a_frame_of_many_chunks_is_read_in_order(monkeypatch):
    monkeypatch.setattr("bica.data.columns.CELLS_A_CHUNK", 7)
    rows = np.random.default_rng(0).random((40, 5)) < 0.5
    chunks = list(open_table(pl.DataFrame(rows)).chunks())
    assert len(chunks) == 10
    assert np.vstack([chunk.words for chunk in chunks])[:, 0].tolist() == (rows @ [1, 2, 4, 8, 16]).tolist()
    strange = rows.astype(int)
    strange[39, 3] = 2
    with pytest.raises(DataError, match="row 39, column 'column_3' holds 2"):
        PatternCounts.of(pl.DataFrame(strange))
