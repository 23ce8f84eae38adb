"""``bica score``."""

import json

import numpy as np
import pytest

from bica.cli.screens.results import MEANING
from bica.metrics import compare_models
from bica.model.or_mixture import OrMixture
from bica.simulate import topology
from tests.cli.conftest import write_model


@pytest.fixture
def truth(tmp_path):
    topology("one").save(tmp_path / "truth.json")
    return tmp_path / "truth.json"


@pytest.fixture
def found(tmp_path):
    model = topology("one").pick([0, 1, 2, 3])
    model.save(tmp_path / "found.json")
    return tmp_path / "found.json"


def test_all_measures_are_shown_with_their_meaning(run, found, truth):
    shown = run("score", found, truth, env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    measures = compare_models(OrMixture.load(found), OrMixture.load(truth)).as_dict()
    assert measures.keys() == MEANING.keys() - {
        "activity_error_ratio",
        "edge_f1",
        "mean_reach_error",
        "max_reach_error",
    }
    for name in measures:
        line = next(line for line in shown.stdout.splitlines() if line.split()[:1] == [name])
        assert MEANING[name] in line  # on one line even on a narrow terminal


def test_json_holds_the_numbers(run, found, truth):
    measures = json.loads(run("score", found, truth, "--json").stdout)
    assert measures == compare_models(OrMixture.load(found), OrMixture.load(truth)).as_dict()
    assert measures["recall"] == pytest.approx(4 / 6)


def test_sources_can_be_seen_side_by_side(run, found, truth):
    shown = run("score", found, truth, "--sources").stdout
    assert "4 of 6 true sources found exactly, and no others" in shown
    pairs = json.loads(run("score", found, truth, "--sources", "--json").stdout)["sources"]
    assert [pair["exact"] for pair in pairs] == [True] * 4 + [False] * 2
    assert [pair["found"] is None for pair in pairs] == [False] * 4 + [True] * 2


def test_near_misses_and_spurious_sources_are_told_apart(run, tmp_path):
    truth = write_model(tmp_path / "truth.json")
    near = [{"sensors": ["hall"], "probability": 0.25}, {"sensors": ["yard"], "probability": 0.1}]
    spurious = [{"sensors": ["hall", "door", "yard"], "probability": 0.05}]
    found = write_model(tmp_path / "found.json", sources=near + spurious)
    shown = run("score", found, truth, "--sources").stdout
    assert "found as" in shown
    assert "(spurious)" in shown
    assert "1 of 2 true sources found exactly, and 2 others" in shown


def test_the_number_of_rows_puts_a_floor_under_what_was_missed(run, tmp_path):
    sources = [{"sensors": ["hall", "door"], "probability": 0.25}]
    found = write_model(tmp_path / "found.json", sources=sources, fitted={"method": "m", "by": "b", "n_samples": 100})
    given = write_model(tmp_path / "given.json", sources=sources, fitted={"method": "m", "by": "b"})
    truth = write_model(tmp_path / "truth.json")
    name = "transmission_probability_error"
    assert json.loads(run("score", found, truth, "--json").stdout)[name] > 0
    assert json.loads(run("score", given, truth, "--json").stdout)[name] is None
    assert " - " in run("score", given, truth).stdout


def test_the_true_model_decodes_what_it_made(run, tmp_path):
    paths = {name: tmp_path / name for name in ("t.csv", "truth.json", "a.csv")}
    words = ("--truth", paths["truth.json"], "--activity", paths["a.csv"], "--probability", "0.01", "0.02")
    run("simulate", "-o", paths["t.csv"], *words)
    words = (paths["truth.json"], paths["truth.json"], "--activity", paths["t.csv"], paths["a.csv"], "--json")
    # so rare that two sources are seldom on together: nearly every row tells its sources
    assert json.loads(run("score", *words).stdout)["activity_error_ratio"] < 0.01


def test_rows_that_the_model_cannot_produce_are_told(run, tmp_path, truth, found):
    run("simulate", "--model", truth, "-o", tmp_path / "t.csv", "--activity", tmp_path / "a.csv")
    shown = run("score", found, truth, "--activity", tmp_path / "t.csv", tmp_path / "a.csv")
    assert shown.exit_code == 0
    assert "impossible under MODEL" in shown.stderr


def test_models_of_different_sensors_cannot_be_compared(run, model_file, truth):
    shown = run("score", model_file, truth)
    assert shown.exit_code == 3
    assert shown.stderr.count("\n") == 1


def test_a_broken_file_is_named(run, truth, tmp_path):
    (tmp_path / "cut.json").write_text(truth.read_text()[:100])
    shown = run("score", tmp_path / "cut.json", truth)
    assert shown.exit_code == 3
    assert "cut.json" in shown.stderr


def test_lossy_edges_are_scored_too(run, tmp_path):
    mixing = np.ones((4, 1))
    for name, reach in (("found", 0.7), ("truth", 0.8)):
        OrMixture(mixing, [0.2], reach=reach * mixing).save(tmp_path / name)
    scores = json.loads(run("score", tmp_path / "found", tmp_path / "truth", "--json").stdout)
    assert scores["edge_f1"] == 1.0
    assert scores["mean_reach_error"] == pytest.approx(0.1)
    assert "edge_f1" in run("score", tmp_path / "found", tmp_path / "truth").stdout
