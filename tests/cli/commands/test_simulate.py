"""``bica simulate``."""

import json

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.data.rows import read_complete
from bica.data.writers import csv_bytes
from bica.errors import DataError
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network, simulate, topology, with_lossy_edges


def rows_of(path):
    return np.loadtxt(path, delimiter=",", skiprows=1, dtype=int, ndmin=2).astype(bool)


def test_table_truth_and_activity_belong_together(run, tmp_path):
    table, truth, activity = tmp_path / "t.csv", tmp_path / "truth.json", tmp_path / "a.csv"
    shown = run("simulate", "-o", table, "--truth", truth, "--activity", activity, "--samples", "50", "--seed", "3")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "50 rows of 10 sensors, 10 sources behind them",
        f"table: {table}",
        f"truth: {truth}",
        f"activity: {activity}",
    ]
    model = OrMixture.load(truth)
    assert (rows_of(table) == model.observe(rows_of(activity))).all()
    assert table.read_text().splitlines()[0] == ",".join(model.sensors)
    assert activity.read_text().splitlines()[0] == ",".join(model.source_names())


def test_it_is_the_library_that_draws(run, tmp_path):
    run("simulate", "-o", tmp_path / "t.csv", "--samples", "30", "--seed", "5")
    rng = np.random.default_rng(5)
    problem = simulate(random_network(10, 10, rng=rng), 30, rng)
    assert (rows_of(tmp_path / "t.csv") == problem.rows).all()


def test_every_setting_of_a_random_network_counts(run, tmp_path):
    shape = ("--sensors", "6", "--sources", "4", "--column-weight", "3", "3", "--probability", "0.5", "0.6")
    noise = ("--leak", "0.1", "--miss", "0.2")
    shown = run("simulate", "-o", tmp_path / "t.csv", "--truth", tmp_path / "m.json", *shape, *noise)
    assert shown.exit_code == 0
    model = OrMixture.load(tmp_path / "m.json")
    assert model.mixing.shape == (6, 4)
    assert model.mixing.sum(axis=0).tolist() == [3] * 4
    assert ((model.probability >= 0.5) & (model.probability <= 0.6)).all()
    assert model.noise == Noise(0.1, 0.2)


def test_lossy_edges_are_drawn_by_the_library(run, tmp_path):
    run("simulate", "-o", tmp_path / "t.csv", "--truth", tmp_path / "m.json", "--reach", "0.5,0.9", "--leak", "0.01")
    rng = np.random.default_rng(0)
    truth = with_lossy_edges(random_network(10, 10, rng=rng), (0.5, 0.9), rng=rng).with_noise(Noise(0.01))
    assert OrMixture.load(tmp_path / "m.json") == truth
    assert (rows_of(tmp_path / "t.csv") == simulate(truth, 1000, rng).rows).all()


@pytest.mark.parametrize("reach", ["0.5,2", "0", "high", "0.9,0.5", "0.1,0.2,0.3"])
def test_an_impossible_reach_is_refused(run, tmp_path, reach):
    shown = run("simulate", "-o", tmp_path / "t.csv", "--reach", reach)
    assert shown.exit_code != 0
    assert "reach" in shown.stderr
    assert not (tmp_path / "t.csv").exists()


def test_a_topology_with_flips(run, tmp_path):
    run("simulate", "-o", tmp_path / "t.csv", "--truth", tmp_path / "m.json", "--topology", "two", "--flip-rate", "0.1")
    assert OrMixture.load(tmp_path / "m.json") == topology("two", Noise.flips(0.1))


def test_a_model_keeps_its_noise_unless_another_is_given(run, tmp_path):
    model = topology("one", Noise(0.1, 0.3))
    model.save(tmp_path / "m.json")
    run("simulate", "-o", "-", "--model", tmp_path / "m.json", "--truth", tmp_path / "same.json")
    run("simulate", "-o", "-", "--model", tmp_path / "m.json", "--truth", tmp_path / "other.json", "--flip-rate", "0")
    assert OrMixture.load(tmp_path / "same.json") == model
    assert OrMixture.load(tmp_path / "other.json").noise == Noise()


def test_persistent_sources_stay_on(run, tmp_path):
    run("simulate", "-o", "-", "--activity", tmp_path / "a.csv", "--persistence", "1000", "--samples", "2000")
    activity = rows_of(tmp_path / "a.csv")
    # sources of probability below 0.3 that stay on for 1000 rows switch in fewer than one row of a thousand
    assert np.abs(np.diff(activity.astype(int), axis=0)).mean() < 0.01


def test_same_seed_same_bytes(run, tmp_path):
    tables = [run("simulate", "-o", "-", "--samples", "40", "--seed", seed).stdout for seed in ("1", "1", "2")]
    assert tables[0] == tables[1] != tables[2]


def test_a_dash_carries_the_table_alone(run):
    shown = run("simulate", "-o", "-", "--samples", "3", "--sensors", "4", "--sources", "2")
    lines = shown.stdout.splitlines()
    assert lines[0] == "x0,x1,x2,x3"
    assert len(lines) == 4
    assert "3 rows of 4 sensors" in shown.stderr


def test_parquet_holds_the_same_table(run, tmp_path):
    run("simulate", "-o", tmp_path / "t.csv")
    run("simulate", "-o", tmp_path / "t.parquet")
    assert PatternCounts.of(tmp_path / "t.parquet") == PatternCounts.of(tmp_path / "t.csv")


def test_json_says_what_was_made(run, tmp_path):
    shown = run("simulate", "-o", tmp_path / "t.csv", "--json")
    assert json.loads(shown.stdout) == {
        "n_samples": 1000,
        "n_sensors": 10,
        "n_sources": 10,
        "table": str(tmp_path / "t.csv"),
        "truth": None,
        "activity": None,
    }


@pytest.mark.parametrize(
    "words",
    [
        "",
        "-o t.csv --topology one --sensors 5",
        "-o t.csv --topology one --model m.json",
        "-o t.csv --flip-rate 0.1 --miss 0.1",
        "-o t.csv --flip-rate 1",
        "-o t.csv --samples 0",
        "-o t.csv --seed -1",
        "-o t.csv --persistence 0.5",
        "-o - --json",
        "-o t.csv --truth t.csv",
        "-o - --truth -",
        "-o t.txt",
        "-o t.csv --topology nine",
        "-o t.csv --sensors 2 --sources 9",
        "-o t.csv --probability 0.5 0.1",
    ],
)
def test_settings_that_mean_nothing_are_usage_errors(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = run("simulate", *words.split())
    assert shown.exit_code == 2
    assert shown.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_if_one_file_is_in_the_way(run, tmp_path):
    (tmp_path / "truth.json").write_text("mine")
    words = ("simulate", "-o", tmp_path / "t.csv", "--truth", tmp_path / "truth.json")
    shown = run(*words)
    assert shown.exit_code == 3
    assert shown.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["truth.json"]
    assert (tmp_path / "truth.json").read_text() == "mine"
    assert run(*words, "--force").exit_code == 0
    assert OrMixture.load(tmp_path / "truth.json").n_sources == 10


def test_column_names_survive_the_file(tmp_path):
    rows = np.array([[1, 0], [1, 1]], dtype=bool)
    (tmp_path / "t.csv").write_bytes(csv_bytes(rows, ['a "quoted", name', "naïve"]))
    assert (read_complete(str(tmp_path / "t.csv"), ["naïve", 'a "quoted", name']) == rows[:, ::-1]).all()
    with pytest.raises(DataError, match="no column 'other'"):
        read_complete(str(tmp_path / "t.csv"), ["other"])


def test_a_table_without_columns_has_empty_lines():
    assert csv_bytes(np.zeros((2, 0), dtype=bool), []) == b"\n\n\n"


def test_a_pooling_design_puts_every_sample_into_as_many_pools(run, tmp_path):
    table, truth = tmp_path / "t.csv", tmp_path / "truth.json"
    shown = run("simulate", "-o", table, "--truth", truth, "--samples", "5", "--pooling", "6")
    assert shown.stdout.splitlines()[0] == "5 rows of 48 sensors, 384 sources behind them"
    model = OrMixture.load(truth)
    assert (model.mixing.sum(axis=0) == 6).all()
    assert (model.probability == 0.01).all()


def test_a_pooling_design_has_no_column_weight(run, tmp_path):
    shown = run("simulate", "-o", tmp_path / "t.csv", "--pooling", "6", "--column-weight", "2", "4")
    assert shown.exit_code == 2
    assert "--pooling goes with --sensors, --sources and --probability only." in shown.stderr
