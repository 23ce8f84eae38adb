import json

import pytest
from click.testing import CliRunner

from bica.cli.app import app

QUICK = ["--quick", "--runs", "1", "--methods", "findbica,truth", "--jobs", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduced") / "run"
    result = CliRunner().invoke(app, ["reproduce", "topologies", *QUICK, "-o", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


@pytest.mark.slow
def test_a_folder_of_results_and_pictures_is_written(folder):
    names = {"results.jsonl", "results.csv", *(f"topologies{end}" for end in (".png", ".svg", ".html", ".md"))}
    assert {path.name for path in folder.iterdir()} == names
    assert (folder / "topologies.png").read_bytes().startswith(b"\x89PNG")
    assert len((folder / "results.jsonl").read_text().splitlines()) == 2 * 24


@pytest.mark.slow
def test_the_same_results_give_the_table_of_times(folder):
    before = (folder / "results.jsonl").read_bytes()
    result = CliRunner().invoke(app, ["reproduce", "table", *QUICK, "-o", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    assert (folder / "results.jsonl").read_bytes() == before  # nothing was fitted again
    times = json.loads(result.stdout)["times"]
    assert {time["contender"] for time in times} == {"FindBICA"}  # the true model takes no time
    assert len(times) == 4
    assert (folder / "table.md").read_text().startswith("| CPU seconds per fit | topology one |")


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    result = CliRunner().invoke(app, ["reproduce", "topologies", *QUICK, "-o", str(tmp_path)])
    assert result.exit_code == 3
    assert "holds other files" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_unknown_contender_is_refused(tmp_path):
    arguments = ["reproduce", "table", "--quick", "--methods", "magic", "-o", str(tmp_path / "new")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "no method 'magic'" in result.stderr
