"""``bica decode``."""

import json

import duckdb
import numpy as np
import pytest

from bica.data.writers import cell_lines, plain_trouble
from bica.errors import OutputError
from bica.invert.decode import decode
from bica.kernels.bits import packed
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.cli.conftest import shell, write_model

ROWS = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0], [1, 0, 1]])
MODEL = OrMixture([[1, 0], [1, 0], [0, 1]], [0.25, 0.1], sensors=["hall", "door", "yard"], names=["fire", "cat"])


@pytest.fixture
def files(tmp_path):
    """A model without noise and a table of which two rows are impossible."""
    MODEL.save(tmp_path / "m.json")
    lines = "\n".join(",".join(map(str, row)) for row in ROWS[:, ::-1])
    (tmp_path / "t.csv").write_text(f"yard,door,hall\n{lines}\n")
    return tmp_path / "m.json", tmp_path / "t.csv"


def test_rows_keep_their_order_and_impossible_ones_stay_empty(run, files, tmp_path):
    shown = run("decode", *files, "-o", tmp_path / "a.csv")
    assert shown.exit_code == 0
    assert (tmp_path / "a.csv").read_text() == "fire,cat\n1,0\n0,1\n,\n0,0\n,\n"
    lines = shown.stdout.splitlines()
    assert lines[0] == "5 rows decoded, 2 sources behind them"
    assert lines[1].endswith("with the least number of wrong cells: 2 (1 wrong), 4 (1 wrong)")
    assert lines[2] == f"activity: {tmp_path / 'a.csv'}"


def test_the_nearest_explanation_on_request(run, files, tmp_path):
    run("decode", *files, "-o", tmp_path / "a.csv", "--nearest")
    assert (tmp_path / "a.csv").read_text() == "fire,cat\n1,0\n0,1\n0,0\n0,0\n0,1\n"


def test_json_lists_the_impossible_rows(run, files, tmp_path):
    shown = run("decode", *files, "-o", tmp_path / "a.csv", "--json")
    assert json.loads(shown.stdout) == {
        "n_rows": 5,
        "n_infeasible": 2,
        "infeasible": [{"row": 2, "n_wrong": 1}, {"row": 4, "n_wrong": 1}],
        "n_unproven": 0,
        "largest_gap": 0.0,
        "n_sources": 2,
        "activity": str(tmp_path / "a.csv"),
    }


def test_parquet_holds_the_same_with_nulls(run, files, tmp_path):
    assert run("decode", *files, "-o", tmp_path / "a.parquet").exit_code == 0
    table = duckdb.read_parquet(str(tmp_path / "a.parquet"))
    assert table.columns == ["fire", "cat"]
    assert table.fetchall() == [(True, False), (False, True), (None, None), (False, False), (None, None)]


@pytest.mark.parametrize("solver", ["auto", "table", "search", "program"])
def test_a_larger_table_through_a_pipe_is_what_the_library_finds(run, tmp_path, solver):
    rng = np.random.default_rng(4)
    model = OrMixture(rng.random((6, 5)) < 0.5, rng.uniform(0.1, 0.4, 5), Noise.flips(0.05))
    model.save(tmp_path / "m.json")
    rows = model.sample(300, rng)
    text = "\n".join([",".join(model.sensors), *(",".join(map(str, row)) for row in rows.astype(int))])
    shown = run("decode", tmp_path / "m.json", "-", "-o", "-", "--solver", solver, input=text)
    assert shown.exit_code == 0
    header, *lines = shown.stdout.splitlines()
    assert header == ",".join(model.source_names())
    found = decode(model, packed(rows), solver=solver)
    assert lines == [",".join(map(str, row)) for row in found.activity.astype(int)]
    assert "300 rows decoded" in shown.stderr


def test_zero_error_ignores_the_noise_of_the_model(run, files, tmp_path):
    MODEL.with_noise(Noise.flips(0.1)).save(tmp_path / "noisy.json")
    run("decode", tmp_path / "noisy.json", files[1], "-o", tmp_path / "a.csv", "--solver", "zero-error")
    assert (tmp_path / "a.csv").read_text() == "fire,cat\n1,0\n0,1\n,\n0,0\n,\n"


def test_other_columns_are_told_in_one_sentence_and_nothing_is_written(run, files, tmp_path):
    (tmp_path / "u.csv").write_text("hall,door,garden\n0,0,1\n")
    for output in (tmp_path / "a.csv", "-"):
        shown = run("decode", files[0], tmp_path / "u.csv", "-o", output)
        assert (shown.exit_code, shown.stdout) == (3, "")
        assert shown.stderr == (
            "bica: the table has no column 'yard', which the model watches; give a table with all sensors\n"
        )
    assert not (tmp_path / "a.csv").exists()


def test_nothing_is_overwritten_without_force(run, files, tmp_path):
    (tmp_path / "a.csv").write_text("mine")
    assert run("decode", *files, "-o", tmp_path / "a.csv").exit_code == 3
    assert (tmp_path / "a.csv").read_text() == "mine"
    assert run("decode", *files, "-o", tmp_path / "a.csv", "--force").exit_code == 0
    assert (tmp_path / "a.csv").read_text().startswith("fire,cat\n")


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_bad_rows_late_in_the_table_leave_nothing(run, files, tmp_path, end):
    (tmp_path / "t.csv").write_text("hall,door,yard\n" + "0,0,0\n" * 50 + "0,7,0\n")
    shown = run("decode", *files, "-o", tmp_path / f"a.{end}")
    assert shown.exit_code == 3
    assert "line 52, column 'door' holds 7" in shown.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", "t.csv"]


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_ctrl_c_tells_how_far_it_came_and_leaves_nothing(run, files, tmp_path, end, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("bica.cli.screens.decoding.Summary.add", interrupt)
    shown = run("decode", *files, "-o", tmp_path / f"a.{end}")
    assert shown.exit_code == 130
    assert shown.stderr.endswith("bica: interrupted after 0 rows; no file was left half-written\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", "t.csv"]


@pytest.mark.parametrize("words", ["- - -o a.csv", "m.json t.csv", "m.json t.csv -o a.txt", "m.json t.csv -o - --json"])
def test_settings_that_mean_nothing_are_usage_errors(run, files, words, monkeypatch):
    monkeypatch.chdir(files[0].parent)
    assert run("decode", *words.split()).exit_code == 2


def test_names_that_parquet_mixes_up_are_refused(run, tmp_path, files):
    OrMixture([[1, 0], [1, 0], [0, 1]], [0.2, 0.1], sensors=MODEL.sensors, names=["a", "A"]).save(tmp_path / "n.json")
    shown = run("decode", tmp_path / "n.json", files[1], "-o", tmp_path / "a.parquet")
    assert shown.exit_code == 2
    assert "write a .csv instead" in shown.stderr


def test_an_engine_in_trouble_is_told_plainly(tmp_path):
    with pytest.raises(OutputError, match=r"t\.parquet cannot be written as Parquet"), plain_trouble("t.parquet"):
        raise duckdb.Error("IO Error: no space left")


def test_one_source_without_an_answer_is_still_a_row():
    assert cell_lines(np.array([[1], [0], [2]], np.uint8)) == b'1\n0\n""\n'


@pytest.mark.slow
def test_it_works_in_a_process_of_its_own(files):
    shown = shell("decode", *files, "-o", "-")
    assert shown.stdout == "fire,cat\n1,0\n0,1\n,\n0,0\n,\n"


def test_the_activity_is_drawn(run, tmp_path):
    model = write_model(tmp_path / "m.json")
    (tmp_path / "t.csv").write_text("hall,door,yard\n" + "1,1,0\n0,0,1\n" * 50)
    done = run("decode", model, tmp_path / "t.csv", "-o", tmp_path / "a.csv", "--picture", tmp_path / "a.svg")
    assert done.exit_code == 0, done.stderr
    picture = (tmp_path / "a.svg").read_text()
    assert picture.startswith("<svg")
    assert "cat" in picture
    assert run("decode", model, tmp_path / "t.csv", "-o", tmp_path / "b.csv", "--picture", "a.bmp").exit_code == 2
    assert not (tmp_path / "b.csv").exists()
