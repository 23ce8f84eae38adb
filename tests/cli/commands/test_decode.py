"""``bica decode``."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from bica.data.writers import cell_lines, plain_trouble, table_bytes
from bica.errors import OutputError
from bica.invert.decode import decode
from bica.kernels.bits import packed
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.progress import work_on
from bica.simulate import random_network
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines", [("b,a\n0,1\n", "1,1\n"), ('{"a": 1, "b": 0}\n', '{"b": 1, "a": 1}\n')], ids=["csv", "jsonl"]
)
def test_a_row_is_decoded_while_the_input_stays_open(lines, tmp_path):
    OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["a", "b"]).save(tmp_path / "m.json")
    words = [sys.executable, "-m", "bica", "decode", str(tmp_path / "m.json"), "-", "-o", "-"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ, text=True) as process:
        process.stdin.write(lines[0])
        process.stdin.flush()
        assert process.stdout.readline() == "source1,source2\n"
        assert process.stdout.readline() == "1,0\n"  # would wait for ever if it were kept back
        process.stdin.write(lines[1])
        process.stdin.flush()
        assert process.stdout.readline() == "0,1\n"
        process.stdin.close()
        assert process.wait(20) == 0


@pytest.fixture
def folder(tmp_path):
    """A model, a folder of two Parquet files, one CSV and a folder in it, and all its rows."""
    model = random_network(6, 5, noise=Noise.flips(0.02), rng=np.random.default_rng(0))
    model.save(tmp_path / "m.json")
    rows = model.sample(4000, np.random.default_rng(1))
    (tmp_path / "in" / "day=2").mkdir(parents=True)
    names = ["a.parquet", "b.csv", "c.parquet", "day=2/a.parquet"]
    for name, part in zip(names, np.array_split(rows, 4), strict=True):
        (tmp_path / "in" / name).write_bytes(table_bytes(part, model.sensors, name))
    return model, rows, tmp_path


def answers(folder):
    """The activity in all files of a folder, by their names."""
    files = sorted(folder.rglob("*.parquet"), key=lambda file: str(file.relative_to(folder)))
    return np.concatenate(
        [np.column_stack(list(pq.read_table(file, partitioning=None).to_pydict().values())) for file in files]
    )


def test_a_folder_is_decoded_into_a_folder(run, folder):
    model, rows, place = folder
    shown = run("decode", place / "m.json", place / "in", "-o", f"{place / 'out'}/")
    assert shown.exit_code == 0
    assert "4000 rows decoded" in shown.stderr + shown.stdout
    names = sorted(str(path.relative_to(place / "out")) for path in (place / "out").rglob("*") if path.is_file())
    assert names == ["_bica.json", "a.parquet", "b.csv.parquet", "c.parquet", "day=2/a.parquet"]
    assert (answers(place / "out") == decode(model, packed(rows)).activity).all()


def test_what_is_decoded_already_is_kept_and_another_model_refused(run, folder):
    model, rows, place = folder
    words = ["decode", place / "m.json", place / "in", "-o", f"{place / 'out'}/", "--json"]
    assert json.loads(run(*words).stdout)["n_kept"] == 0
    (place / "out" / "c.parquet").unlink()
    again = json.loads(run(*words).stdout)
    assert (again["n_files"], again["n_kept"], again["n_rows"]) == (4, 3, 1000)
    assert (answers(place / "out") == decode(model, packed(rows)).activity).all()
    MODEL.save(place / "m.json", overwrite=True)
    refused = run(*words)
    assert refused.exit_code != 0
    assert "answers of another model" in refused.stderr
    assert "holds other files" in run(*words[:3], "-o", f"{place}/").stderr


def test_rows_without_an_answer_are_empty_in_a_folder_and_any_executor_will_do(run, files):
    place = files[0].parent
    (place / "in").mkdir()
    (place / "in" / "t.parquet").write_bytes(table_bytes(ROWS.astype(bool), MODEL.sensors, "t.parquet"))
    with ThreadPoolExecutor(2) as pool, work_on(pool):
        assert run("decode", files[0], place / "in", "-o", f"{place / 'out'}/").exit_code == 0
    assert pq.read_table(place / "out" / "t.parquet").to_pydict() == {
        "fire": [True, False, None, False, None],
        "cat": [False, True, None, False, None],
    }


@pytest.mark.slow
def test_a_killed_command_goes_on_where_it_was(tmp_path):
    model = random_network(12, 12, noise=Noise.flips(0.02), rng=np.random.default_rng(0))
    model.save(tmp_path / "m.json")
    rows = model.sample(40 * 20_000, np.random.default_rng(1))
    (tmp_path / "in").mkdir()
    for number, part in enumerate(np.array_split(rows, 40)):
        (tmp_path / "in" / f"{number:02d}.parquet").write_bytes(table_bytes(part, model.sensors, "t.parquet"))
    out = tmp_path / "out"
    words = [sys.executable, "-m", "bica", "decode", str(tmp_path / "m.json"), str(tmp_path / "in"), "-o", f"{out}/"]
    with subprocess.Popen(words, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not list(out.glob("*.parquet")):
            time.sleep(0.001)
        process.kill()
    before = {file: file.stat().st_mtime_ns for file in out.glob("*.parquet")}
    assert 0 < len(before) < 40
    assert subprocess.run(words, env=os.environ, capture_output=True, check=False).returncode == 0
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert (answers(out) == decode(model, packed(rows)).activity).all()
    assert not list(out.glob(".*"))
