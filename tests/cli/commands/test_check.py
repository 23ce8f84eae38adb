"""``bica check``, and where else the diagnosis shows."""

import json
from itertools import count

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.data.writers import csv_bytes, table_bytes
from bica.estimate import forecast, likelihood
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network
from tests.cli.conftest import MODEL, write_model

TRUTH = OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.4], sensors=["hall", "door", "yard"])
ROWS = TRUTH.sample(2000, np.random.default_rng(7))
EXCLUSIVE = np.repeat([[1, 0], [0, 1], [0, 0]], 40, axis=0).astype(bool)


def written(path, rows, sensors):
    path.write_bytes(csv_bytes(rows, sensors))
    return path


@pytest.fixture
def table(tmp_path):
    return written(tmp_path / "table.csv", ROWS, TRUTH.sensors)


@pytest.fixture
def exclusive(tmp_path):
    return written(tmp_path / "exclusive.csv", EXCLUSIVE, ["day", "night"])


def test_a_table_is_looked_at_before_a_fit(run, table):
    shown = run("check", table)
    assert shown.exit_code == 0
    quiet = f"in {100 * (~ROWS.any(axis=1)).mean():.3g} % of the rows every sensor is quiet"
    for part in ("open: so far nothing", "2000 rows of 3 sensors, 4 distinct", quiet, "method likelihood, all sensors"):
        assert part in shown.stdout


def test_with_fit_the_model_is_judged_too(run, table):
    assert run("check", table, "--fit").stdout.startswith("fits: ")


def test_exclusive_sensors_are_a_misfit(run, exclusive):
    shown = run("check", exclusive)
    assert shown.stdout.startswith("misfit: independent sources do not make such rows")
    assert "model" not in shown.stdout.splitlines()[0]  # there is none yet
    assert "day and night (0 rows with both, 13.33 expected)" in " ".join(shown.stdout.split()).replace("- ", "")


def test_the_right_tool_is_named_with_its_command(run, tmp_path):
    rng = np.random.default_rng(0)
    roles = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0, 1, 1]], dtype=bool)
    path = written(tmp_path / "roles.csv", roles[rng.integers(0, 3, 300)], list("abcdefgh"))
    shown = " ".join(run("check", path, env={"COLUMNS": "400"}).stdout.split())
    assert f"`bica fit {path} --method grecond`" in shown
    (hint,) = json.loads(run("check", path, "--json").stdout)["hints"]
    assert (hint["kind"], hint["method"]) == ("roles", "grecond")
    assert run("fit", path, "--method", "grecond").exit_code == 0


def test_json_is_the_diagnosis_with_the_forecast(run, table):
    before, after = (
        json.loads(run("check", table, "--json").stdout),
        json.loads(run("check", table, "--fit", "--json").stdout),
    )
    assert (before["verdict"], before["fit"]) == ("open", None)
    assert (after["verdict"], after["fit"]["patterns_checked"]) == ("fits", True)
    assert before["table"] == after["table"]
    assert before["forecast"]["method"] == "likelihood"
    assert before["hints"] == []


def test_thresholds_weights_and_standard_input_are_as_in_fit(run):
    text = "a,b,n\n0.1,0.7,2\n0.9,0.2,3\n"
    told = json.loads(run("check", "-", "--binarize", "0.5", "--weights", "n", "--json", input=text).stdout)
    assert (told["table"]["n_samples"], told["table"]["n_sensors"]) == (5, 2)


def test_a_wide_table_is_learned_from_blocks(run, tmp_path):
    names = [f"x{i}" for i in range(21)]
    wide = written(tmp_path / "wide.csv", np.random.default_rng(0).random((60, 21)) < 0.4, names)
    told = json.loads(run("check", wide, "--json").stdout)
    assert told["forecast"]["method"] == "likelihood"
    assert 0 < told["forecast"]["seconds"] < 60
    assert 0 < told["forecast"]["megabytes"] < 10
    assert "from blocks of sensors" in told["forecast"]["sentence"]


def test_a_wider_and_longer_table_takes_more(run, tmp_path):
    def told(n_rows, n_sensors):
        rows = np.random.default_rng(0).random((n_rows, n_sensors)) < 0.4
        path = written(tmp_path / f"{n_rows}-{n_sensors}.csv", rows, [f"x{i}" for i in range(n_sensors)])
        return json.loads(run("check", path, "--json").stdout)["forecast"]

    small, wide, long = told(60, 30), told(60, 60), told(240, 30)
    for more in (wide, long):
        assert more["megabytes"] > small["megabytes"]


def test_a_fit_that_is_not_done_when_tried_takes_longer_than_that(run, table, monkeypatch):
    done = json.loads(run("check", table, "--json").stdout)["forecast"]
    assert done["seconds"] < forecast.TRIAL
    assert done["sentence"] == "method likelihood, all sensors at once: less than 3 seconds"
    monkeypatch.setattr(forecast, "process_time", count(0.0, 1.0).__next__)  # every look at the clock takes a second
    longer = json.loads(run("check", table, "--json").stdout)["forecast"]
    assert longer["seconds"] > 2 * forecast.TRIAL
    assert longer["sentence"] == "method likelihood, all sensors at once: some 9 seconds"


def test_the_forecast_says_what_cannot_be_learned(run, table, monkeypatch):
    monkeypatch.setattr(likelihood, "LATTICE_CELLS", 4)
    told = json.loads(run("check", table, "--json").stdout)["forecast"]
    assert told["sentence"].startswith("method likelihood cannot learn from this table: the missing cells")


def test_a_table_that_cannot_be_read_is_refused(run, tmp_path):
    assert run("check", tmp_path / "none.csv").exit_code == 3


@pytest.mark.parametrize("width", [40, 80, 120])
def test_findings_fold_to_the_terminal(run, exclusive, width):
    shown = run("check", exclusive, env={"COLUMNS": str(width)})
    assert max(map(len, shown.stdout.splitlines())) <= width


def test_hostile_names_are_harmless(run, tmp_path):
    hostile = written(tmp_path / "t.csv", EXCLUSIVE, ["\x1b[31mday", "[red]night[/red]"])
    shown = run("check", hostile, env={"COLUMNS": "300"}).stdout
    assert all(line.isprintable() for line in shown.splitlines())
    assert r"\x1b[31mday and [red]night[/red]" in shown


def test_fit_warns_in_one_line_and_the_model_remembers(run, exclusive, tmp_path):
    shown = run("fit", exclusive, "-o", tmp_path / "m.json")
    assert shown.stderr == "warning: misfit: the rows contradict the model\n"
    assert "misfit: the rows contradict the model" in run("show", tmp_path / "m.json").stdout
    assert "sensors exclude each other" in run("show", tmp_path / "m.json").stdout


def test_a_good_fit_is_quiet(run, table):
    shown = run("fit", table)
    assert shown.stderr == ""
    assert "fits: " in shown.stdout


@pytest.mark.parametrize(
    "diagnosis", [None, [], {"verdict": 3}, {"verdict": "\x1b[31m", "reasons": "x"}, {"reasons": []}]
)
def test_whatever_a_file_holds_as_a_diagnosis_is_harmless(run, tmp_path, diagnosis):
    fitted = MODEL["fitted"] | {"diagnostics": {"diagnosis": diagnosis}}
    shown = run("show", write_model(tmp_path / "m.json", fitted=fitted))
    assert shown.exit_code == 0
    assert all(line.isprintable() for line in shown.stdout.splitlines())


@pytest.mark.filterwarnings("ignore::bica.errors.BicaWarning")
@pytest.mark.parametrize(("kind", "command"), [("graded", "--method beta --sources 2"), ("xor", "--method xor")])
def test_the_command_for_a_table_of_another_kind_works_as_printed(run, tmp_path, kind, command):
    rng, path = np.random.default_rng(0), tmp_path / "table.csv"
    if kind == "graded":
        rows = rng.random((600, 10)) < 1 / (1 + np.exp(1.8 * (np.linspace(-1.5, 1.5, 10) - rng.normal(size=(600, 1)))))
    else:
        rows = (rng.random((1000, 7)) < 0.2) @ random_network(9, 7, rng=rng).mixing.T.astype(int) % 2 == 1
    path.write_bytes(csv_bytes(rows, [f"c{i}" for i in range(rows.shape[1])]))
    shown = " ".join(run("check", path, env={"COLUMNS": "400"}).stdout.split())
    assert f"try `bica fit {path} {command}`" in shown
    assert run("fit", path, *command.split()).exit_code == 0


def test_a_large_table_is_checked_by_its_sums(run, tmp_path, monkeypatch):
    monkeypatch.setattr("bica.data.observations.LARGE", 1000)
    monkeypatch.setattr("bica.data.observations.PatternCounts.of_chunks", refuse_many(PatternCounts.of_chunks))
    rows = np.random.default_rng(0).random((120_000, 70)) < 0.02
    rows[:, 1] |= rows[:, 0]
    path = tmp_path / "wide.parquet"
    path.write_bytes(table_bytes(rows, [f"s{i}" for i in range(70)], str(path)))
    found = json.loads(run("check", path, "--json").stdout)
    assert found["table"]["n_samples"] == 120_000
    assert found["forecast"]["megabytes"] < 100 + 120_000 * 70 / 8e6  # the bits, and what a pass takes


def refuse_many(of_chunks):
    """The same function, which fails where all rows would come into memory."""

    def checked(chunks, sensors):
        found = of_chunks(chunks, sensors)
        assert found.n_samples < 60_000 or len(sensors) < 65
        return found

    return checked
