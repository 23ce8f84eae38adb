import json

import numpy as np
import pytest
from click.testing import CliRunner

from bica.cli.app import app
from bica.model.files import read_document


def run(*arguments):
    return CliRunner().invoke(app, ["spectrum", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spectrum")
    names = {name: folder / name for name in ("reports.csv", "field.json", "truth.json", "activity.csv")}
    result = run("simulate", "-o", names["reports.csv"], "--field", names["field.json"], "--truth", names["truth.json"],
                 "--activity", names["activity.csv"], "--users", 6, "--samples", 3000, "--seed", 1000)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert run("fit", folder / "reports.csv", "-o", folder / "model.json").exit_code == 0
    return folder


def test_a_survey_is_written_whole(folder):
    truth, field = read_document(folder / "truth.json"), json.loads((folder / "field.json").read_text())
    assert len(field["users"]) == 6
    assert (folder / "reports.csv").read_text().splitlines()[0] == ",".join(truth.sensors)
    header, *lines = (folder / "activity.csv").read_text().splitlines()
    assert header.split(",") == [source.name for source in truth.sources]
    assert len(lines) == 3000


def test_the_users_are_found(folder):
    truth, found = (read_document(folder / name) for name in ("truth.json", "model.json"))
    assert {source.sensors for source in found.sources} == {source.sensors for source in truth.sources}
    assert found.fitted["method"] == "likelihood in time"


def test_the_map_tells_where_users_are(folder):
    result = run("map", folder / "model.json", folder / "field.json", "--json")
    users = json.loads(result.stdout)["users"]
    field = json.loads((folder / "field.json").read_text())
    places = np.array([(user["x"], user["y"]) for user in field["users"]])
    for user in users:  # some true user is within three times the spread
        apart = np.linalg.norm(places - [user["x"], user["y"]], axis=1).min()
        assert apart < 3 * user["spread"]
        assert user["contradictions"] == 0


@pytest.mark.slow
def test_the_map_is_drawn(folder):
    target = folder / "map.png"
    result = run("map", folder / "model.json", folder / "field.json", "--table", folder / "reports.csv", "-o", target)
    assert result.exit_code == 0, result.output
    assert target.read_bytes().startswith(b"\x89PNG")
    assert "heard within 126 m" in result.stdout


def test_monitors_of_another_field_are_refused(folder, tmp_path):
    (tmp_path / "monitors.csv").write_text("monitor,x,y\nroof,0,0\n")
    result = run("map", folder / "model.json", tmp_path / "monitors.csv")
    assert result.exit_code == 3
    assert "no monitor 'm1'" in result.stderr


def test_a_table_of_other_monitors_is_refused(folder, tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n0,1\n")
    result = run("map", folder / "model.json", folder / "field.json", "--table", tmp_path / "other.csv")
    assert result.exit_code == 3
    assert "other columns" in result.stderr


def test_a_radio_that_reaches_nobody_leaves_silent_reports(tmp_path):
    result = run("simulate", "-o", tmp_path / "reports.csv", "--loss", 140, "--samples", 50, "--json")
    assert json.loads(result.stdout)["n_heard"] == 0
    found = run("fit", tmp_path / "reports.csv")
    assert found.exit_code == 0, found.output
    assert "0 sources" in found.stdout


@pytest.mark.slow
def test_the_experiment_can_be_run_again(tmp_path):
    arguments = ["reproduce", "spectrum", "--quick", "--runs", "1", "--methods", "findbica 0.01", "--jobs", "1"]
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "run"), "--json"])
    assert result.exit_code == 0, result.output
    by_users = json.loads(result.stdout)["by_users"]
    assert {row["number"] for row in by_users} == {5, 10, 15}
    assert (tmp_path / "run" / "spectrum.png").exists()
