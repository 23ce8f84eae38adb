"""What newcomers stumbled over: each trap is typed as a new user would, and its screen is read."""

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bica import OrMixture, PatternCounts
from bica.cli.app import _end_without_unwinding
from bica.cli.options import waiting
from tests.data.containers import workbook

MODEL = OrMixture([[1, 0], [1, 0], [0, 1]], [0.3, 0.4], sensors=["door", "hall", "yard"])
N_ROWS = 300
FRAME = pd.DataFrame(MODEL.sample(N_ROWS, np.random.default_rng(5)).astype(int), columns=MODEL.sensors)
HOURS = pd.date_range("2024-05-01", periods=N_ROWS, freq="h")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder):
    MODEL.save("model.json")
    return "model.json"


def fitted(run, *words):
    shown = run("fit", *words)
    assert shown.exit_code == 0, shown.stderr
    return shown


class TestColumns:
    def test_a_table_with_its_pandas_index_just_works(self, run):
        FRAME.to_csv("t.csv")
        shown = fitted(run, "t.csv", "-o", "m.json")
        assert "note: column '' is left out: it is the row index that pandas writes\n" in shown.stderr
        assert "door, hall" in shown.stdout
        FRAME.to_csv("plain.csv", index=False)
        fitted(run, "plain.csv", "-o", "plain.json")
        assert Path("m.json").read_text() == Path("plain.json").read_text()

    def test_an_id_is_named_with_the_options_that_help(self, run, model):
        FRAME.assign(patient=[f"P{i}" for i in range(N_ROWS)]).to_csv("t.csv", index=False)
        shown = run("fit", "t.csv")
        assert shown.exit_code == 3
        assert "column 'patient' looks like an id" in shown.stderr
        assert "leave it out with --drop, or keep it beside the answers with --id" in shown.stderr
        assert "binarize" not in shown.stderr
        fitted(run, "t.csv", "--drop", "patient")
        fitted(run, "t.csv", "--columns", "door,hall,yard")
        assert run("decode", model, "t.csv", "--id", "patient", "-o", "a.csv").exit_code == 0
        assert pd.read_csv("a.csv")["patient"].tolist() == [f"P{i}" for i in range(N_ROWS)]

    @pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
    def test_times_go_from_slots_through_every_command(self, run, name):
        events = [f"{hour.isoformat()}Z,{sensor}" for hour, row in zip(HOURS, FRAME.values, strict=True)
                  for sensor, on in zip(FRAME.columns, row, strict=True) if on]  # fmt: skip
        Path("log.csv").write_text("time,sensor\n" + "\n".join(events))
        table = name.replace("a.", "t.")
        assert run("slots", "log.csv", "--slot", "1h", "-o", table).exit_code == 0
        shown = fitted(run, table, "-o", "m.json")
        assert "note: column 'time' holds times" in shown.stderr
        assert run("decode", "m.json", table, "-o", name, "--picture", "a.svg").exit_code == 0
        decoded = pd.read_csv(name) if name == "a.csv" else pd.read_parquet(name)
        times = pd.to_datetime(decoded["time"])
        assert times.is_monotonic_increasing
        assert str(times.iloc[-1]) == f"{HOURS[FRAME.any(axis=1)][-1]}+00:00"
        assert "2024-05-01 0" in Path("a.svg").read_text()
        assert run("report", "m.json", table, "-o", "r.html").exit_code == 0
        assert "2024-05-01 0" in Path("r.html").read_text()
        temporal = run("decode", "m.json", table, "--temporal", "-o", f"in_{name}")
        assert temporal.exit_code == 0, temporal.stderr

    def test_a_table_without_times_can_be_asked_for(self, run):
        Path("log.csv").write_text("time,sensor\n2024-05-01T12:00:00Z,time\n2024-05-01T12:00:02Z,door\n")
        assert run("slots", "log.csv", "--slot", "1s", "--no-time", "-o", "-").stdout == "door,time\n0,1\n0,0\n1,0\n"
        with_times = run("slots", "log.csv", "--slot", "1s", "-o", "-").stdout
        assert with_times.startswith("time (2),door,time\n2024-05-01T12:00:00Z,0,1\n")

    def test_names_come_from_a_file(self, run):
        np.save("t.npy", FRAME.to_numpy())
        Path("names.txt").write_text('door\n"hall, upper"\nyard\n')
        assert '"hall, upper"' in fitted(run, "t.npy", "--names", "names.txt", "-o", "-").stdout
        Path("names.txt").write_text("door\nhall\n")
        assert (
            "2 sensor names were given, but the table has 3 columns"
            in run("fit", "t.npy", "--names", "names.txt").stderr
        )


class TestTimes:
    @pytest.mark.parametrize(
        ("first", "second", "options"),
        [
            ("01/05/2024 12:00", "13/05/2024 13:00", []),
            ("05/01/2024 12:00 PM", "05/13/2024 1:00 PM", []),
            ("1.5.2024 12:00", "13.5.2024 13:00", []),
            ("5/1/2024 12:00", "5/2/2024 13:00", ["--time-format", "%m/%d/%Y %H:%M"]),
            ("2024 May 01, 12h", "2024 May 13, 13h", ["--time-format", "%Y %b %d, %Hh"]),
        ],
    )
    def test_days_and_months_in_either_order(self, run, first, second, options):
        Path("log.tsv").write_text(f"time\tsensor\n{first}\tdoor\n{second}\tdoor\n")
        shown = run("slots", "log.tsv", "--slot", "1d", *options, "-o", "t.csv")
        assert shown.exit_code == 0, shown.stderr
        assert "from 2024-05-01T00:00:00+00:00" in shown.stdout

    def test_what_may_be_either_is_asked_for(self, run):
        Path("log.csv").write_text("time,sensor\n01/05/2024,door\n02/05/2024,door\n")
        shown = run("slots", "log.csv", "--slot", "1d", "-o", "t.csv")
        assert shown.exit_code == 3
        assert "in '01/05/2024' the day or the month may come first; say which with --time-format, as in %d/%m/%Y" in (
            shown.stderr
        )

    def test_the_zone_of_the_option_is_that_of_local_dates(self, run):
        Path("log.csv").write_text("time,sensor\n13/05/2024 00:30,door\n")
        shown = run("slots", "log.csv", "--slot", "1h", "--timezone", "Asia/Tokyo", "-o", "-")
        assert shown.stdout == "time,door\n2024-05-13T00:00:00+09:00,1\n"


class TestShapes:
    EXPECTED = PatternCounts.of(FRAME)

    def test_a_workbook_is_read(self, run):
        pytest.importorskip("python_calamine")
        rows = [[f"P{i}", *row] for i, row in enumerate(FRAME.to_numpy().tolist())]
        workbook("t.xlsx", [["patient", *FRAME.columns], *rows])
        assert PatternCounts.of("t.xlsx", drop=["patient"]) == self.EXPECTED
        assert "looks like an id" in run("fit", "t.xlsx").stderr
        MODEL.save("m.json")
        assert run("decode", "m.json", "t.xlsx", "--id", "patient", "-o", "a.csv").exit_code == 0
        assert pd.read_csv("a.csv")["patient"].tolist() == [row[0] for row in rows]
        Path("bad.xlsx").write_bytes(b"PK")
        assert "bad.xlsx cannot be read as a workbook" in run("fit", "bad.xlsx").stderr

    def test_baskets_are_rows_of_items(self, run):
        shopped = FRAME[FRAME.any(axis=1)]
        baskets = [", ".join(shopped.columns[row == 1]) for row in shopped.to_numpy()]
        Path("t.txt").write_text("\n".join(baskets))
        counts = PatternCounts.of("t.txt", baskets=True)
        assert counts.project(list(FRAME.columns)) == PatternCounts.of(shopped)
        Path("t.txt").write_text("\n\n" + "\n".join(baskets) + "\n\n")  # only within the file an empty line is a row
        assert PatternCounts.of("t.txt", baskets=True).n_samples == len(baskets) + 2
        assert "door, hall" in fitted(run, "t.txt", "--baskets").stdout

    def test_a_name_with_a_comma_is_quoted_where_names_are_listed(self, run):
        OrMixture([[1], [1]], [0.5], sensors=["bread, dark", "milk"]).save("m.json")
        assert '"bread, dark", milk' in run("show", "m.json").stdout
        explained = run("explain", "m.json", "--on", '"bread, dark",milk').stdout
        assert 'on: "bread, dark", milk' in explained

    def test_a_long_table_has_a_line_per_cell_that_is_on(self, run):
        on = FRAME.stack()
        cells = [(f"night {row}", sensor) for row, sensor in on[on == 1].index]
        long = pd.DataFrame(cells * 2, columns=["night", "alarm"])
        long.insert(1, "level", 7)
        long.to_csv("t.csv", index=False)
        counts = PatternCounts.of("t.csv", long=("night", "alarm"))
        assert counts.project(list(FRAME.columns)) == PatternCounts.of(FRAME[FRAME.any(axis=1)])
        MODEL.save("m.json")
        shown = run("decode", "m.json", "t.csv", "--long", "night,alarm", "-o", "a.csv")
        assert shown.exit_code == 0, shown.stderr
        assert pd.read_csv("a.csv")["night"].tolist() == [f"night {row}" for row in FRAME.index[FRAME.any(axis=1)]]
        wrong = run("fit", "t.csv", "--long", "nite,alarm")
        assert "--long names a column 'nite', which t.csv does not have" in wrong.stderr


class TestText:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("a,b\n0,1\n".encode("utf-16"), "it is UTF-16; save it as UTF-8, as `iconv -f UTF-16 -t UTF-8"),
            ("caf\u00e9,b\n0,1\n".encode("latin-1"), "as in Latin-1; save it as UTF-8, as `iconv -f LATIN1"),
            (b"a,b\n0,1\n0\n", "line 3 has 1 cell, but the table has 2 columns; leave a missing cell empty"),
            (b"milk bread\ntea milk\n", "if each line lists what was on, read it with --baskets"),
            (b"day,item\n0,milk\n0,tea\n", "one cell that is on, read it with --long 'day','item'"),
            (b"a,b\n0,yes\n1,no\n1,no\n", "line 2, column 'b' holds 'yes', which is no number; leave the column out"),
        ],
        ids=["UTF-16", "Latin-1", "ragged", "baskets", "long", "words"],
    )
    def test_what_cannot_be_read_comes_with_a_next_step(self, run, content, words):
        Path("t.csv").write_bytes(content)
        shown = run("check", "t.csv")
        assert shown.exit_code == 3
        assert words in shown.stderr
        assert "`drop`" not in shown.stderr

    @pytest.mark.parametrize("name", ["t.txt", "t.log"])
    def test_text_is_told_by_its_first_line(self, name):
        FRAME.to_csv(name, index=False)
        assert PatternCounts.of(name) == PatternCounts.of(FRAME)
        FRAME.to_json(name, orient="records", lines=True)
        assert PatternCounts.of(name) == PatternCounts.of(FRAME)

    def test_a_comma_in_a_name_is_quoted_in_every_option(self, run):
        named = FRAME.rename(columns={"hall": "hall, upper"})
        named.to_csv("t.csv", index=False)
        fitted(run, "t.csv", "-o", "m.json", "--known", 'door,"hall, upper"')
        shown = run("explain", "m.json", "--on", 'door,"hall, upper"')
        assert shown.exit_code == 0, shown.stderr
        fitted(run, "t.csv", "--drop", '"hall, upper"', "-o", "less.json")
        assert json.loads(Path("less.json").read_text())["sensors"] == ["door", "yard"]


def test_methods_are_completed():
    from bica.cli.commands.fit import method_names

    assert method_names(None, None, "fi") == ["findbica"]


def test_ctrl_c_is_answered_at_once(capfd):
    """Also while a compiled loop runs, for which Python's own handlers wait: a thread reads them, and says it once."""
    reading, writing = os.pipe()
    os.write(writing, bytes([signal.SIGINT, signal.SIGINT]))
    os.close(writing)
    with waiting("learning", on_ctrl_c="stopping, keeping the best so far"):
        _end_without_unwinding(reading, [signal.SIGTERM], threading.Event())
    assert capfd.readouterr().err == "\nstopping, keeping the best so far\n"


@pytest.mark.parametrize(
    "words",
    [
        "fit t.csv -o t.csv",
        "fit t.csv -o ./t.csv",
        "fit t.csv -o link.csv",
        "decode model.json t.csv -o t.csv",
        "decode model.json t.csv -o a.csv --picture model.json",
        "report model.json t.csv -o model.json",
        "export model.json --format json -o model.json",
        "slots t.csv --slot 1s -o t.csv",
        "spectrum fit t.csv -o t.csv",
        "spectrum map model.json t.csv -o model.json",
    ],
)
def test_what_is_read_is_never_overwritten(run, model, words):
    FRAME.to_csv("t.csv", index=False)
    Path("link.csv").symlink_to("t.csv")
    before = Path("t.csv").read_bytes(), Path(model).read_bytes()
    shown = run(*words.split(), "--force")
    assert shown.exit_code == 2
    assert "is what is read, and would be lost; name another file" in shown.stderr
    assert (Path("t.csv").read_bytes(), Path(model).read_bytes()) == before


def test_a_pipe_with_a_name_is_no_file(run):
    os.mkfifo("t.csv")
    shown = run("check", "t.csv")
    assert shown.exit_code == 3
    assert "t.csv is a pipe or a device, and files are read more than once" in shown.stderr
