"""``bica report``."""

import json

import numpy as np
import pytest

from bica import OrMixture
from bica.report.page import Report
from tests.cli.conftest import write_model
from tests.report.test_content import data_of


@pytest.fixture
def table(tmp_path):
    rows = OrMixture([[1, 0], [1, 0], [0, 1]], [0.25, 0.1]).sample(400, np.random.default_rng(0)).astype(int)
    text = "\n".join(["hall,door,yard", *(",".join(map(str, row)) for row in rows)])
    (tmp_path / "nights.csv").write_text(text + "\n")
    return tmp_path / "nights.csv"


def content(path) -> dict:
    return data_of(Report(path.read_text()))


def test_one_file_is_written(run, model_file, table, tmp_path):
    done = run("report", model_file, table, "-o", tmp_path / "r.html")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert f"report: {tmp_path / 'r.html'}" in done.stderr
    page = (tmp_path / "r.html").read_text()
    assert "model.json, nights.csv" in page
    assert content(tmp_path / "r.html")["patterns"]["n_rows"] == 400


def test_the_table_may_be_left_out(run, model_file, tmp_path):
    assert run("report", model_file, "-o", tmp_path / "r.html").exit_code == 0
    assert content(tmp_path / "r.html")["patterns"] is None


def test_nothing_is_overwritten_unasked(run, model_file, tmp_path):
    (tmp_path / "r.html").write_text("mine")
    assert run("report", model_file, "-o", tmp_path / "r.html").exit_code == 3
    assert (tmp_path / "r.html").read_text() == "mine"
    assert run("report", model_file, "-o", tmp_path / "r.html", "--force").exit_code == 0


def test_a_dash_is_standard_output(run, model_file):
    done = run("report", model_file, "-o", "-")
    assert done.stdout.startswith("<!doctype html>")
    assert done.stderr == ""


def test_json_says_where_it_is(run, model_file, tmp_path):
    told = json.loads(run("report", model_file, "-o", tmp_path / "r.html", "--json").stdout)
    assert told == {"report": str(tmp_path / "r.html"), "n_bytes": (tmp_path / "r.html").stat().st_size}


def test_words_of_the_user_and_of_the_model(run, tmp_path, table):
    model = write_model(tmp_path / "m.json", words={"sensors": "alarms"})
    run("report", model, table, "-o", tmp_path / "r.html", "--rows-are", "nights")
    page = (tmp_path / "r.html").read_text()
    assert "2 sources behind 3 alarms" in page
    assert content(tmp_path / "r.html")["words"]["row"] == ["night", "nights"]


@pytest.mark.parametrize("times", ["2026-01-01T{:02}:{:02}", "{}.{:02}", '"2026-01-01 {:02}:{:02}:30"'])
def test_times_are_read_from_a_file(run, model_file, table, tmp_path, times):
    lines = [times.format(n // 60 + 1, n % 60) for n in range(400)]
    (tmp_path / "times.txt").write_text("\n".join(["time", *lines]))
    done = run("report", model_file, table, "-o", tmp_path / "r.html", "--times", tmp_path / "times.txt")
    assert done.exit_code == 0, done.stderr
    assert len(content(tmp_path / "r.html")["activity"]["labels"]) == 80


def test_rows_and_times_belong_to_a_table(run, model_file, tmp_path):
    done = run("report", model_file, "-o", tmp_path / "r.html", "--with-rows")
    assert done.exit_code == 2
    assert "give it, too" in done.stderr


def test_bad_times_are_one_sentence(run, model_file, table, tmp_path):
    done = run("report", model_file, table, "-o", tmp_path / "r.html", "--times", tmp_path / "nowhere.txt")
    assert done.exit_code == 3
    assert done.stderr.startswith("bica: ")
    assert not (tmp_path / "r.html").exists()


def test_anonymous_reports_hold_no_name(run, model_file, table, tmp_path):
    done = run("report", model_file, table, "-o", tmp_path / "r.html", "--anonymise", "--with-rows")
    assert done.exit_code == 0
    page = (tmp_path / "r.html").read_bytes()
    for name in (b"hall", b"door", b"yard", b"nights", b"model.json", b'"cat"', b"source2x"):
        assert name not in page


def test_the_settings_are_enough_to_do_it_again(run, table, tmp_path):
    first = (
        "fit",
        table,
        "-o",
        tmp_path / "m.json",
        "--noise",
        "0.01,0.02",
        "--min-probability",
        "0.01",
        "--seed",
        "3",
        "--bootstrap",
        "4",
    )
    assert run(*first).exit_code == 0
    run("report", tmp_path / "m.json", table, "-o", tmp_path / "r.html")
    command = content(tmp_path / "r.html")["commands"][0]
    assert command.startswith("bica fit TABLE --method likelihood ")
    again = [
        {"TABLE": str(table), "MODEL": str(tmp_path / "again.json")}.get(word, word) for word in command.split()[1:]
    ]
    assert run(*again).exit_code == 0
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()
