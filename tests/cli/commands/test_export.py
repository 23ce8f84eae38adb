"""``bica export``."""

import json

import pytest

from bica.model.export import export_text
from bica.model.or_mixture import OrMixture
from tests.cli.conftest import MODEL


@pytest.mark.parametrize("form", ["graphml", "dot", "csv"])
def test_the_text_is_the_librarys(run, model_file, form, tmp_path):
    wanted = export_text(OrMixture.load(model_file), form)
    assert run("export", model_file, "--format", form).stdout == wanted
    assert run("export", model_file, "-o", tmp_path / f"m.{form}").exit_code == 0
    assert (tmp_path / f"m.{form}").read_text() == wanted


def test_json_is_the_model_with_how_it_was_found(run, model_file):
    assert json.loads(run("export", model_file, "--format", "json").stdout)["fitted"]["method"] == "findbica"


def test_the_format_wins_over_the_ending(run, model_file, tmp_path):
    run("export", model_file, "--format", "csv", "-o", tmp_path / "m.dot")
    assert (tmp_path / "m.dot").read_text().startswith("source,sensor")


def test_dashes_are_standard_input_and_output(run):
    shown = run("export", "-", "--format", "csv", "-o", "-", input=json.dumps(MODEL))
    assert shown.stdout.startswith("source,sensor")


@pytest.mark.parametrize("words", [(), ("-o", "m.xyz"), ("--format", "xyz")], ids=str)
def test_an_unknown_format_is_a_usage_error(run, model_file, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("export", model_file, *words).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


def test_nothing_is_overwritten_unasked(run, model_file, tmp_path):
    (tmp_path / "m.csv").write_text("mine")
    assert run("export", model_file, "-o", tmp_path / "m.csv").exit_code == 3
    assert (tmp_path / "m.csv").read_text() == "mine"
    assert run("export", model_file, "-o", tmp_path / "m.csv", "--force").exit_code == 0
    assert (tmp_path / "m.csv").read_text() != "mine"
