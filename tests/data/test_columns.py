"""Columns that are no sensors: an index, ids and times are recognised, carried along or left out."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bica import BICA
from bica.data.columns import Options, looks_of, role_of
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.data.tables import open_table
from bica.errors import ColumnWarning, DataError, SettingError

DAYS = [datetime.datetime(2024, 5, day, 12) for day in (1, 2, 3, 4)]
CELLS = {"door": [1, 0, 1, 0], "yard": [1, 0, 0, 0]}
PATIENTS = ["P7", "P9", "P12", "P13"]


def csv_file(frame, folder):
    frame.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def json_file(frame, folder):
    frame.to_json(folder / "t.jsonl", orient="records", lines=True, date_format="iso")
    return folder / "t.jsonl"


def parquet_file(frame, folder):
    frame.to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def pandas_frame(frame, folder):
    return frame


def polars_frame(frame, folder):
    return pl.from_pandas(frame)


def lazy_frame(frame, folder):
    return pl.from_pandas(frame).lazy()


IN_ORDER = pytest.mark.parametrize("container", [csv_file, json_file, parquet_file, pandas_frame, polars_frame])
EVERY = pytest.mark.parametrize(
    "container", [csv_file, json_file, parquet_file, pandas_frame, polars_frame, lazy_frame]
)


@EVERY
def test_a_column_of_times_is_no_sensor(container, tmp_path):
    with pytest.warns(ColumnWarning, match="column 'when' holds times: it goes beside the answers and is no sensor"):
        counts = PatternCounts.of(container(pd.DataFrame({"when": DAYS, **CELLS}), tmp_path))
    assert counts == PatternCounts.of(pd.DataFrame(CELLS))


@IN_ORDER
def test_times_stay_with_their_rows(container, tmp_path):
    given = container(pd.DataFrame({"door": CELLS["door"], "when": DAYS, "yard": CELLS["yard"]}), tmp_path)
    with pytest.warns(ColumnWarning):
        rows = Rows.of(given)
    assert rows.sensors == ("door", "yard")
    assert [np.datetime64(time.removesuffix("Z")) for time in rows.times] == [np.datetime64(day) for day in DAYS]
    assert rows.pick(np.array([2, 0])).times == (rows.times[2], rows.times[0])
    assert rows.matched(("yard", "door")).times == rows.times


@IN_ORDER
def test_an_id_is_named_and_never_binarized(container, tmp_path):
    given = container(pd.DataFrame({"patient": PATIENTS, **CELLS}), tmp_path)
    sentence = "column 'patient' looks like an id, not like on and off: it holds 'P7', 'P9', 'P12', ...; leave it out"
    for binarize in (None, 0.5):
        with pytest.raises(DataError, match=sentence) as raised:
            PatternCounts.of(given, binarize=binarize)
        assert "binarize" not in str(raised.value)


@EVERY
def test_columns_are_left_out_by_name(container, tmp_path):
    given = container(pd.DataFrame({"patient": PATIENTS, **CELLS, "age": [4, 8, 71, 40]}), tmp_path)
    expected = PatternCounts.of(pd.DataFrame(CELLS))
    assert PatternCounts.of(given, drop=["age", "patient"]) == expected
    assert PatternCounts.of(given, columns=["yard", "door"]) == expected
    assert PatternCounts.of(given, id="patient", drop=["age"]) == expected


@IN_ORDER
def test_the_id_goes_beside_the_rows(container, tmp_path):
    given = container(pd.DataFrame({"door": CELLS["door"], "patient": PATIENTS, "yard": CELLS["yard"]}), tmp_path)
    table = open_table(given, id="patient")
    assert table.columns.labels == ("patient",)
    assert [chunk.labels for chunk in table.chunks()] == [(tuple(PATIENTS),)]


@EVERY
def test_a_column_that_is_not_there_is_named_with_the_nearest(container, tmp_path):
    given = container(pd.DataFrame(CELLS), tmp_path)
    with pytest.raises(SettingError, match="`drop` names a column 'dor', which the table does not have; did you mean"):
        PatternCounts.of(given, drop=["dor"])
    with pytest.raises(
        SettingError, match=r"`id` names a column 'zzz', which the table does not have \('door', 'yard'"
    ):
        PatternCounts.of(given, id="zzz")


def test_numbers_that_count_up_are_an_id_and_others_are_measurements():
    assert role_of("x", ["4", "5", "6", "7", "8"]) == "id"
    assert role_of("x", ["0", "1", "2"]) == "measurement"
    assert role_of("x", ["-80", "-71", "-64", "-90", "-85"]) == "measurement"
    assert role_of("patientId", ["83", "12", "7"]) == "id"
    assert role_of("valid", ["1", "0", "1"]) == "sensor"


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-05-01", "2024-05-02"],
        ["2024-05-01T12:00:00Z", "2024-05-01 12:00:01.5+02:00"],
        ["01/05/2024 12:00", "13/05/2024 12:00"],
        ["1.5.2024", "13.5.2024"],
        ["12:00:05", "9:30 PM"],
    ],
)
def test_times_are_known_by_their_look(texts):
    assert role_of("x", texts) == "time"


def test_numbers_are_times_if_they_are_called_so():
    assert role_of("timestamp", ["1714564800", "1714564801"]) == "time"
    assert role_of("packets", ["1714564800", "1714564801"]) == "measurement"


def test_a_gap_tells_nothing_and_an_empty_column_is_a_sensor():
    assert role_of("x", ["", "nan", "NA"]) == "sensor"
    assert looks_of({"when": ["", "2024-05-01"], "a": ["1", ""]})[0].examples == ("2024-05-01",)


def test_a_threshold_of_its_own_makes_a_column_a_sensor():
    columns = Options(binarize={"id": 3}).columns(["id", "a"], None, looks_of({"id": ["7", "3", "9"], "a": ["0", "1"]}))
    assert columns.sensors == ("id", "a")


def test_the_estimator_forgets_the_index_and_the_times_of_a_frame(tmp_path):
    frame = pd.DataFrame({"door": [0, 1] * 40, "yard": [0, 1] * 40})
    frame.to_csv(tmp_path / "t.csv")
    with pytest.warns(ColumnWarning, match="row index"):
        bica = BICA().fit(pd.read_csv(tmp_path / "t.csv"))
    assert bica.feature_names_in_.tolist() == ["door", "yard"]
    assert bica.transform(frame).shape == (80, 1)
    with pytest.warns(ColumnWarning, match="row index"):
        assert (bica.transform(tmp_path / "t.csv") == bica.transform(frame)).all()


def test_lines_are_counted_as_editors_count_them(tmp_path):
    (tmp_path / "t.csv").write_text('\n"two\nlines",b\n0,1\n\n1,1\n0,7\n')
    with pytest.raises(DataError, match=r"^line 7, column 'b' holds 7, but"):
        PatternCounts.of(tmp_path / "t.csv")
