import math

import polars
import pytest
from scipy.stats import ttest_1samp

from bica.compare import MEASURES, Setting, mean_of, read_records, run_plan, summarise, tasks, write_table
from bica.errors import OutputError, SettingError


def record(value, contender="a", **others):
    empty = dict.fromkeys(MEASURES)
    cell = {"contender": contender, "network": "n", "n_samples": 50, "flip_rate": 0.0, "failure": None}
    return cell | empty | {"f1": value} | others


def test_the_interval_is_that_of_students_t():
    values = [0.1, 0.4, 0.35, 0.2]
    interval = ttest_1samp(values, 0).confidence_interval(0.99)
    found = mean_of(values)
    assert (found.mean - found.half_width, found.mean + found.half_width) == pytest.approx(tuple(interval))


def test_one_value_has_no_interval_and_none_no_mean():
    assert math.isnan(mean_of([0.3]).half_width)
    assert math.isnan(mean_of([]).mean)


def test_means_are_taken_for_each_contender_and_setting():
    rows = summarise([record(0.2), record(0.4), record(1.0, "b"), record(None, "b", failure="too large")])
    assert [(row["contender"], row["measure"], row["n_runs"], row["n_failed"]) for row in rows] == [
        ("a", "f1", 2, 0),
        ("b", "f1", 1, 1),
    ]
    assert rows[0]["mean"] == pytest.approx(0.3)
    assert rows[0]["low"] < 0.2 < 0.4 < rows[0]["high"]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_the_table_has_a_row_for_every_record(tmp_path, ending):
    settings = [Setting(network="topology two", n_samples=50, flip_rate=0.1)]
    path = tmp_path / "results.jsonl"
    records = run_plan(tasks(["findbica", "mac"], settings, range(2)), path, n_jobs=1)
    write_table(read_records(path), tmp_path / f"table{ending}")
    read = polars.read_csv if ending == ".csv" else polars.read_parquet
    table = read(tmp_path / f"table{ending}")
    assert table["contender"].to_list() == [r["contender"] for r in records]
    assert table["cpu_seconds"].to_list() == pytest.approx([r["cpu_seconds"] for r in records])
    assert table["transmission_probability_error"].null_count() == 2


def test_tables_of_other_kinds_or_of_nothing_are_refused(tmp_path):
    with pytest.raises(SettingError, match=r"written as \.csv or \.parquet"):
        write_table([], tmp_path / "table.xlsx")
    with pytest.raises(OutputError, match="no results yet"):
        write_table([], tmp_path / "table.csv")
