import json

import pytest
from click.testing import CliRunner

from bica.cli.app import app

SMALL = ["--runs", "1", "--jobs", "1", "--sniffers", "7,5"]


def reproduced(*arguments):
    return CliRunner().invoke(app, ["reproduce", "monitoring", *arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campus") / "run"
    result = reproduced(*SMALL, "-o", str(folder))
    assert result.exit_code == 0, result.output
    assert "LPR, Likelihood" in result.stdout
    return folder


@pytest.mark.slow
def test_a_folder_of_results_and_pictures_is_written(folder):
    names = {"results.jsonl", "results.csv", *(f"monitoring{end}" for end in (".png", ".svg", ".html", ".md"))}
    assert {path.name for path in folder.iterdir()} == names
    assert len((folder / "results.jsonl").read_text().splitlines()) == 2 * 4
    assert (folder / "monitoring.md").read_text().startswith("| sniffers | upper bound |")


@pytest.mark.slow
def test_a_second_call_runs_nothing_again(folder):
    before = (folder / "results.jsonl").read_bytes()
    result = reproduced(*SMALL, "-o", str(folder), "--json")
    assert result.exit_code == 0, result.output
    assert (folder / "results.jsonl").read_bytes() == before
    means = json.loads(result.stdout)["means"]
    assert [row["n_sniffers"] for row in means] == [5] * 5 + [7] * 5
    for row in means:
        assert row["n_runs"] == 1
        assert row["contender"] == "upper bound" or row["share_mean"] <= 1 + 1e-9


@pytest.mark.parametrize("sizes", ["0,5", "22", "five", "5,,7", "-3"])
def test_strange_numbers_of_sniffers_are_refused(sizes, tmp_path):
    result = reproduced("--sniffers", sizes, "-o", str(tmp_path / "new"))
    assert result.exit_code == 2
    assert "numbers from 1 to 21" in result.stderr
    assert not (tmp_path / "new").exists()
