"""``bica name``."""

import json

import numpy as np
import pytest

from bica import OrMixture
from bica.model.fit import Fit
from tests.cli.conftest import MODEL


def test_names_are_kept_in_the_file_and_shown(run, model_file):
    done = run("name", model_file, "source1=front door", "cat=dog")
    assert done.exit_code == 0
    assert [source.get("name") for source in json.loads(model_file.read_text())["sources"]] == ["front door", "dog"]
    shown = run("show", model_file).stdout
    assert "front door" in shown
    assert "dog" in shown


def test_without_names_it_lists_ids_and_changes_nothing(run, model_file):
    before = model_file.read_bytes()
    done = run("name", model_file)
    identity = Fit.load(model_file).model.source_ids()[0]
    assert identity in done.stdout
    assert model_file.read_bytes() == before
    named = json.loads(run("name", model_file, f"{identity}=lift", "--json").stdout)["sources"]
    assert named[0] == {"source": "source1", "id": identity, "name": "lift", "sensors": ["hall", "door"]}


def test_all_else_in_the_file_stays(run, model_file):
    run("name", model_file, "source1=a")
    run("name", model_file, "a=")
    assert json.loads(model_file.read_text()) == MODEL


def test_another_file_may_be_written(run, model_file, tmp_path):
    before = model_file.read_bytes()
    assert run("name", model_file, "source1=a", "-o", tmp_path / "named.json").exit_code == 0
    assert model_file.read_bytes() == before
    assert run("name", model_file, "source1=a", "-o", tmp_path / "named.json").exit_code == 3
    assert run("name", "-", "source1=a", input=json.dumps(MODEL)).exit_code == 2


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [(["source9=x"], 2, "no source 'source9'"), (["x"], 2, "SOURCE=NAME"), (["source1=cat"], 2, "two sources")],
)
def test_what_cannot_be_named_is_refused(run, model_file, words, code, sentence):
    before = model_file.read_bytes()
    done = run("name", model_file, *words)
    assert done.exit_code == code
    assert sentence in done.stderr
    assert model_file.read_bytes() == before


def test_words_are_used_by_every_screen(run, model_file, tmp_path):
    run("name", model_file, "--sensors-are", "detectors", "--sources-are", "burglars", "--rows-are", "nights")
    shown = run("show", model_file).stdout
    assert "2 burglars behind 3 detectors" in shown
    assert "from 5000 nights" in shown
    explained = run("explain", model_file, "--on", "hall,door").stdout
    assert "active burglars" in explained
    assert "detectors" in explained
    (tmp_path / "t.csv").write_text("hall,door,yard\n1,1,0\n")
    assert (
        "1 night decoded, 2 burglars behind them"
        in run("decode", model_file, tmp_path / "t.csv", "-o", tmp_path / "a.csv").stdout
    )
    run("report", model_file, "-o", tmp_path / "r.html")
    assert "2 burglars behind 3 detectors" in (tmp_path / "r.html").read_text()


def test_a_source_is_known_by_the_users_noun_too(run, model_file):
    run("name", model_file, "--sources-are", "diseases")
    assert run("name", model_file, "disease1=flu").exit_code == 0
    assert json.loads(model_file.read_text())["sources"][0]["name"] == "flu"
    assert run("name", model_file, "disease7=flu").exit_code == 2


def test_fitting_again_keeps_names_and_words(run, tmp_path):
    rng = np.random.default_rng(0)
    truth = OrMixture([[1, 0], [1, 0], [0, 1], [0, 1]], [0.2, 0.3])
    for k in (1, 2):
        rows = truth.sample(800, rng).astype(int)
        np.savetxt(tmp_path / f"{k}.csv", rows, fmt="%d", delimiter=",", header="a,b,c,d", comments="")
    model = tmp_path / "m.json"
    assert run("fit", tmp_path / "1.csv", "-o", model, "--rows-are", "days").exit_code == 0
    (a_and_b,) = [s for s in json.loads(run("name", model, "--json").stdout)["sources"] if s["sensors"] == ["a", "b"]]
    run("name", model, f"{a_and_b['id']}=printer")
    again = run("fit", tmp_path / "2.csv", "-o", model, "--force")
    assert "1 of 1 names kept" in again.stderr
    assert "from 800 days" in again.stdout
    other = run("fit", tmp_path / "2.csv", "-o", tmp_path / "n.json", "--names-from", model)
    for document in (json.loads(model.read_text()), json.loads((tmp_path / "n.json").read_text())):
        assert [s["name"] for s in document["sources"] if s["sensors"] == ["a", "b"]] == ["printer"]
    assert other.exit_code == 0


def test_a_source_without_a_name_is_called_by_the_users_noun_everywhere(run, model_file, tmp_path):
    """The screens, the activity, the graph and the report: one name for one source."""
    run("name", model_file, "cat=", "--sources-are", "diseases")
    (tmp_path / "t.csv").write_text("hall,door,yard\n1,1,0\n0,0,1\n")
    run("decode", model_file, tmp_path / "t.csv", "-o", tmp_path / "a.csv")
    run("decode", model_file, tmp_path / "t.csv", "-o", tmp_path / "a.csv", "--picture", tmp_path / "a.svg", "--force")
    run("export", model_file, "-o", tmp_path / "g.graphml")
    run("report", model_file, tmp_path / "t.csv", "-o", tmp_path / "r.html")
    run("show", model_file, "--picture", tmp_path / "m.svg")
    told = {
        "show": run("show", model_file).stdout,
        "search": run("show", model_file, "--search", "disease1").stdout,
        "explain": run("explain", model_file, "--on", "hall,door").stdout,
        "explain --json": run("explain", model_file, "--on", "hall,door", "--json").stdout,
        "name": run("name", model_file).stdout,
        "name --json": run("name", model_file, "--json").stdout,
        "watch": run("watch", model_file, "--all", input="hall,door,yard\n1,1,0\n").stdout,
    } | {file: (tmp_path / file).read_text() for file in ("a.csv", "a.svg", "g.graphml", "r.html", "m.svg")}
    assert [what for what, text in told.items() if "disease1" not in text] == []
    assert [what for what, text in told.items() if "source1" in text] == []
    assert [source.get("name") for source in json.loads(model_file.read_text())["sources"]] == [None, None]
