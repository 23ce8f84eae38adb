"""``bica demo``."""

import json

import pytest

from bica.model.or_mixture import OrMixture
from bica.report import pictures as extra


def test_found_stands_against_true(run):
    shown = run("demo", env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    assert "7 of 7 true sources found exactly, and no others" in shown.stdout
    assert shown.stdout.count("✓") == 7
    assert "link01" in shown.stdout
    assert "path_01, path_03" in shown.stdout
    assert "bica fit" in shown.stderr.splitlines()[-1]


def test_json_has_both_sides(run):
    sources = json.loads(run("demo", "--json").stdout)["sources"]
    assert len(sources) == 7
    assert all(pair["exact"] and pair["true"]["sensors"] == pair["found"]["sensors"] for pair in sources)
    assert all(abs(pair["true"]["probability"] - pair["found"]["probability"]) < 0.02 for pair in sources)


@pytest.mark.slow
def test_a_folder_gets_the_model_and_pictures(run, tmp_path):
    folder = tmp_path / "demo"
    assert run("demo", "-o", folder).exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "found-and-true.png",
        "model.json",
        "network.png",
        "overview.png",
    ]
    assert OrMixture.load(folder / "model.json").n_sources == 7
    again = run("demo", "-o", folder)
    assert again.exit_code == 3
    assert "--force" in again.stderr


def test_without_the_extra_the_folder_is_refused_with_one_sentence(run, tmp_path, monkeypatch):
    monkeypatch.setattr(extra, "PACKAGES", ("not_there",))
    shown = run("demo", "-o", tmp_path / "demo")
    assert shown.exit_code == 3
    assert 'pip install "bica[report]"' in shown.stderr
    assert list(tmp_path.iterdir()) == []
    assert run("demo").exit_code == 0


@pytest.mark.parametrize("place", ["file", "absent/demo"])
def test_a_place_that_is_no_folder_is_refused(run, tmp_path, place):
    (tmp_path / "file").write_text("mine")
    assert run("demo", "-o", tmp_path / place).exit_code == 3
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
