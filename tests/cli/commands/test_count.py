"""``bica count``."""

import json

import numpy as np
import pytest

from bica import OrMixture
from bica.data.writers import csv_bytes

TRUTH = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.4], sensors=["a", "b", "c"])


@pytest.fixture
def batches(tmp_path):
    rows = TRUTH.sample(300, np.random.default_rng(0))
    for name, part in (("one.csv", rows[:100]), ("two.csv", rows[100:]), ("all.csv", rows)):
        (tmp_path / name).write_bytes(csv_bytes(part, TRUTH.sensors))
    return tmp_path


def test_a_model_of_merged_counts_is_that_of_all_rows(run, batches):
    """Also where a file of counts is merged again."""
    assert run("count", batches / "one.csv", "-o", batches / "one.parquet").exit_code == 0
    merged = run("count", batches / "one.parquet", batches / "two.csv", "-o", batches / "both.parquet")
    assert "300 rows of 3 sensors" in merged.stdout
    for table, model in (("all.csv", "all.json"), ("both.parquet", "both.json")):
        assert run("fit", batches / table, "-o", batches / model).exit_code == 0
    assert (batches / "all.json").read_bytes() == (batches / "both.json").read_bytes()


def test_json_says_what_was_counted(run, batches):
    found = json.loads(run("count", batches / "all.csv", "-o", batches / "c.parquet", "--json").stdout)
    assert (found["rows"], found["sensors"]) == (300.0, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("all.csv", "-o", "counts.csv"), 2, "should end in .parquet"),
        (("all.csv", "other.csv", "-o", "new.parquet"), 3, "different columns"),
        (("all.csv", "-o", "old.parquet"), 3, "exists already"),
    ],
)
def test_what_cannot_be_counted_is_said_in_one_sentence(run, batches, monkeypatch, words, code, sentence):
    monkeypatch.chdir(batches)
    (batches / "other.csv").write_text("x,y\n0,1\n")
    (batches / "old.parquet").write_bytes(b"precious")
    refused = run("count", *words)
    assert refused.exit_code == code
    assert sentence in refused.stderr
    assert (batches / "old.parquet").read_bytes() == b"precious"
    assert not (batches / "new.parquet").exists()
