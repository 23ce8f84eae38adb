"""``bica compare``."""

import json

import numpy as np
import pytest

from bica import OrMixture
from bica.data.writers import csv_bytes

QUICK = ("--methods", "findbica,grecond", "--runs", "2", "--jobs", "1")


@pytest.fixture
def table(tmp_path):
    truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.4], sensors=["a", "b", "c"])
    truth.save(tmp_path / "truth.json")
    (tmp_path / "mine.csv").write_bytes(csv_bytes(truth.sample(120, np.random.default_rng(0)), truth.sensors))
    return tmp_path / "mine.csv"


def test_tables_and_networks_in_one_contest(run, table, tmp_path):
    out = tmp_path / "out"
    shown = run(
        "compare", table, "--truth", tmp_path / "truth.json", "--network", "bars 3", "--rows", "80", "-o", out, *QUICK
    )
    assert shown.exit_code == 0, shown.output
    assert "mine.csv" in shown.stdout
    assert "bars 3, 80 rows" in shown.stdout
    files = {path.name for path in out.iterdir()}
    assert files >= {"results.jsonl", "results.csv", "table.html", "comparison.md", "comparison.png", "comparison.svg"}
    assert len((out / "results.jsonl").read_text().splitlines()) == 8


def test_the_same_command_continues_and_json_is_all_there_is(run, table, tmp_path):
    words = ("compare", table, "-o", tmp_path / "out", *QUICK)
    first = json.loads(run(*words, "--json").stdout)
    again = json.loads(run(*words, "--json").stdout)
    assert first == again  # CPU seconds included: nothing was run twice
    assert [standing["contender"] for standing in first["standings"]] == ["findbica", "grecond"]


def test_a_plan_file_takes_the_place_of_options(run, table, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('methods = ["findbica"]\nruns = 1\n[[table]]\npath = "mine.csv"\n')
    found = json.loads(run("compare", "--plan", plan, "-o", tmp_path / "out", "--json").stdout)
    assert [standing["problem"] for standing in found["standings"]] == ["mine.csv"]
    assert run("compare", table, "--plan", plan, "-o", tmp_path / "out").exit_code == 2


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ((), 2, "name a TABLE, a --network or a --plan"),
        (("--network", "bars 3", "--rows", "0"), 2, "whole numbers from 1 up"),
        (("--network", "bars 3", "--flips", "2"), 2, "does not lie in [0, 1)"),
        (("--network", "nowhere"), 2, "there is no network 'nowhere'"),
        (("--network", "bars 3", "--methods", "magic"), 2, "there is no method 'magic'"),
        (("missing.csv",), 3, "missing.csv"),
        (("missing.csv", "--truth", "a", "--truth", "b"), 2, "1 tables have 2 truths"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_sentence(run, tmp_path, words, code, sentence):
    refused = run("compare", *words, "-o", tmp_path / "out", "--jobs", "1", env={"COLUMNS": "200"})
    assert refused.exit_code == code
    assert sentence in refused.stderr
    assert not (tmp_path / "out").exists()
