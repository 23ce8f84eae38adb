"""``bica watch``."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from bica import Noise, OrMixture
from bica.data.writers import csv_bytes

TRUTH = OrMixture(
    [[1, 0], [1, 1], [0, 1]], [0.2, 0.4], Noise.flips(0.01), sensors=["a", "b", "c"], names=["lift", None]
)


@pytest.fixture
def model(tmp_path):
    TRUTH.save(tmp_path / "model.json")
    return tmp_path / "model.json"


def test_changes_are_printed_as_sentences(run, model):
    shown = run("watch", model, input="c,b,a\n0,0,0\n0,1,1\n0,1,1\n1,1,1\n0,0,0\n")
    assert shown.stdout.splitlines() == [
        "row 2: + lift (on: lift)",
        "row 4: + source2 (on: lift, source2)",
        "row 5: - lift, - source2 (on: nothing)",
    ]
    assert "5 rows, 0 that the model hardly ever shows, 0 alarms" in shown.stderr


def test_json_lines_in_and_out(run, model):
    given = '{"a": 1, "b": true}\n{"a": 0, "b": null, "c": 1}\n'
    lines = [json.loads(line) for line in run("watch", model, "--json", "--all", input=given).stdout.splitlines()]
    assert [line["on"] for line in lines] == [["lift"], ["source2"]]
    assert lines[1]["switched_off"] == ["lift"]


def test_a_changed_world_raises_an_alarm(run, model, tmp_path):
    rows = TRUTH.sample(600, np.random.default_rng(0))
    rows[200:, 2] = True
    (tmp_path / "rows.csv").write_bytes(csv_bytes(rows, TRUTH.sensors))
    shown = run("watch", model, tmp_path / "rows.csv", "--false-alarms", "1000")
    first = next(line for line in shown.stdout.splitlines() if "ALARM" in line)
    assert "c is on more often than the model expects" in first
    assert int(first.split()[1].rstrip(":")) > 200


def test_lines_that_are_no_rows_are_noted_and_passed_over(run, model):
    shown = run("watch", model, input="a,b,c\n1,1\n1,1,x\x1b[31m\n{\n\n1,1,0\n")
    assert shown.stdout.splitlines() == ["row 1: + lift (on: lift)"]
    notes = shown.stderr.splitlines()
    assert notes[0] == "line 2 is passed over: it has 2 cells, fewer than the header"
    assert notes[1].startswith("line 3 is passed over: a cell holds")
    assert "\x1b[" not in shown.stderr.replace("\\x1b[", "")
    assert notes[2] == "line 4 is passed over: it is no JSON object"


def test_a_header_without_a_sensor_is_refused(run, model):
    refused = run("watch", model, input="a,b\n1,1\n")
    assert refused.exit_code == 3
    assert "has no column 'c', which is a sensor of the model" in refused.stderr


@pytest.mark.slow
def test_a_row_is_answered_while_the_input_stays_open(model):
    words = [sys.executable, "-m", "bica", "watch", str(model)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ, text=True) as process:
        process.stdin.write("a,b,c\n1,1,0\n")
        process.stdin.flush()
        assert process.stdout.readline() == "row 1: + lift (on: lift)\n"  # would wait for ever if it were kept back
        process.stdin.write("0,0,0\n")
        process.stdin.flush()
        assert process.stdout.readline() == "row 2: - lift (on: nothing)\n"
        process.stdin.close()
        assert process.wait(20) == 0
