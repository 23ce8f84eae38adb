"""``bica show``."""

import json

import pytest

from tests.cli.conftest import MODEL, shell, write_model

HOSTILE = ["[red]alert[/red]", "bell\x07\x1b[31m", ":smile:", "two\nlines", "back\u202ewards", "日本", ""]


def test_sources_sensors_and_how_it_was_found_are_shown(run, model_file):
    shown = run("show", model_file)
    assert shown.exit_code == 0
    assert shown.stderr == ""
    told = ["2 sources behind 3 sensors", "source1", "0.2500", "0.2291 to 0.2722", "hall, door"]
    for part in [*told, "cat", "2e-05", "7.51e-06 to 5.33e-05", "yard"]:
        assert part in shown.stdout
    assert "noise: none" in shown.stdout
    assert "learned by findbica from 5000 rows, log-likelihood -1234.5" in shown.stdout


def test_json_is_the_model_and_nothing_else(run, model_file):
    assert json.loads(run("show", model_file, "--json").stdout) == MODEL


def test_a_dash_reads_standard_input(run):
    assert "2 sources behind 3 sensors" in run("show", "-", input=json.dumps(MODEL)).stdout


def test_a_model_without_sources_is_shown(run, tmp_path):
    shown = run("show", write_model(tmp_path / "m.json", sources=[]))
    assert shown.exit_code == 0
    assert "0 sources behind 3 sensors" in shown.stdout


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        ({"false_alarm": 0.1, "miss": 0.1}, "cells flipped at rate 0.1000"),
        ({"false_alarm": 0, "miss": 0.1}, "false alarms at rate 0, misses at rate 0.1000"),
        ({"false_alarm": [0, 0, 0], "miss": [0, 0, 0]}, "none"),
        ({"false_alarm": 0, "miss": [0, 0.1, 0.2]}, "misses at rates from 0 to 0.2000"),
    ],
)
def test_noise_is_told_in_words(run, tmp_path, noise, words):
    assert words in run("show", write_model(tmp_path / "m.json", noise=noise)).stdout


def test_a_given_model_was_not_learned(run, tmp_path):
    assert "not learned from data" in run("show", write_model(tmp_path / "m.json", fitted={})).stdout


def test_impossible_data_are_told(run, tmp_path):
    shown = run("show", write_model(tmp_path / "m.json", fitted={"method": "findbica", "log_likelihood": "-inf"}))
    assert "log-likelihood -inf" in shown.stdout


def test_a_search_that_did_not_settle_says_so(run, tmp_path):
    shown = run("show", write_model(tmp_path / "m.json", fitted={"method": "findbica", "converged": False}))
    assert "it had not settled" in shown.stdout


def test_the_interval_of_the_noise_is_told(run, tmp_path):
    fitted = {"method": "likelihood", "diagnostics": {"noise": {"interval": [0.0964, 0.1032]}}}
    shown = run("show", write_model(tmp_path / "m.json", fitted=fitted))
    assert "noise: none (95 % interval 0.0964 to 0.1032)" in shown.stdout


def test_the_support_of_a_bootstrap_is_shown(run, tmp_path):
    fitted = {"method": "likelihood", "diagnostics": {"bootstrap": {"support": [1.0, 0.37]}}}
    shown = run("show", write_model(tmp_path / "m.json", fitted=fitted)).stdout
    assert all(part in shown for part in ("support", "100%", "37%", "returned when the rows were drawn again"))
    assert "support" not in run("show", write_model(tmp_path / "m.json")).stdout


@pytest.mark.parametrize("width", [50, 80])
def test_all_columns_together_fit_the_terminal(run, tmp_path, width):
    fitted = {"method": "likelihood", "diagnostics": {"bootstrap": {"support": [1.0, 0.37]}}}
    shown = run("show", write_model(tmp_path / "m.json", fitted=fitted), env={"COLUMNS": str(width)}).stdout
    assert max(len(line) for line in shown.splitlines() if "source" in line) <= width


@pytest.mark.parametrize(
    "diagnostics",
    [
        {"noise": {"interval": "wide"}, "bootstrap": 7},
        {"noise": {"interval": [0.1]}, "bootstrap": {"support": [1.0]}},
        {"noise": {"interval": ["a", "b"]}, "bootstrap": {"support": ["a", None]}},
        {"noise": {"interval": [-1, 5]}, "bootstrap": {"support": [-1, 5]}},
        {"noise": 3, "bootstrap": {"support": "ab"}},
    ],
)
def test_strange_diagnostics_are_left_out(run, tmp_path, diagnostics):
    fitted = {"method": "likelihood", "diagnostics": diagnostics}
    shown = run("show", write_model(tmp_path / "m.json", fitted=fitted))
    assert shown.exit_code == 0
    assert "noise: none\n" in shown.stdout
    assert "support" not in shown.stdout


@pytest.mark.parametrize("width", [40, 80, 120])
def test_long_lists_fold_to_the_terminal_and_end_in_a_count(run, tmp_path, width):
    sensors = [f"sensor_{i:03}" for i in range(100)]
    model = write_model(tmp_path / "m.json", sensors=sensors, sources=[{"sensors": sensors, "probability": 0.5}])
    shown = run("show", model, env={"COLUMNS": str(width)})
    assert max(map(len, shown.stdout.splitlines())) <= width
    assert "sensor_023" in shown.stdout
    assert "sensor_024" not in shown.stdout
    assert "and 76 more" in " ".join(shown.stdout.split())
    full = run("show", model, "--full", env={"COLUMNS": str(width)}).stdout
    assert all(name in full for name in sensors)


def test_hostile_names_are_harmless(run, tmp_path):
    sources = [{"sensors": HOSTILE, "probability": 0.5, "name": "\x1b]0;owned\x07[link=x]y[/link]"}]
    shown = run("show", write_model(tmp_path / "m.json", sensors=HOSTILE, sources=sources), env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert all(line.isprintable() for line in shown.stdout.splitlines())
    for part in ("[red]alert[/red]", r"bell\x07\x1b[31m", ":smile:", r"two\nlines", r"back\u202ewards", "日本"):
        assert part in shown.stdout
    assert r"\x1b]0;owned\x07[link=x]" in shown.stdout


def test_a_terminal_of_plain_letters_is_enough(model_file):
    shown = shell("show", model_file, env={"PYTHONIOENCODING": "ascii"})
    assert shown.returncode == 0
    assert "hall, door" in shown.stdout
    assert shown.stdout.isascii()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "cut short"),
        (json.dumps(MODEL).encode()[:-40], "cut short"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a,b\n0,1\n", "not a model file"),
        (json.dumps(MODEL | {"fitted": {"n_samples": "many"}}).encode(), "'many'"),
        (json.dumps(MODEL | {"version": 99}).encode(), "version 99"),
        (json.dumps(MODEL | {"sources": [{"sensors": ["roof"], "probability": 0.5}]}).encode(), "'roof'"),
    ],
)
def test_a_file_that_is_no_model_is_refused(run, tmp_path, content, complaint):
    (tmp_path / "m.json").write_bytes(content)
    shown = run("show", tmp_path / "m.json")
    assert shown.exit_code == 3
    assert shown.stdout == ""
    assert shown.stderr.count("\n") == 1
    assert complaint in shown.stderr


def test_a_missing_file_and_a_folder_are_refused(run, tmp_path):
    assert run("show", tmp_path / "none.json").exit_code == 3
    assert run("show", tmp_path).exit_code == 3
