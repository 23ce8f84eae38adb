"""What the process behind a job does, without the process."""

import json
from io import StringIO

import numpy as np
import pytest

from bica import OrMixture
from bica.data.writers import csv_bytes
from bica.errors import SettingError
from bica.web.work import Teller, do, learner_settings, options_of
from tests.data.test_trend import trending
from tests.web.conftest import MODEL


class Stream(StringIO):
    """What a teller writes to; it may ask to stop as soon as a line holds some text."""

    stop_at = None
    teller = None

    def write(self, line: str) -> int:
        if self.stop_at is not None and self.stop_at in line:
            self.teller.asked_to_stop.set()
            self.stop_at = None
        return super().write(line)

    def told(self) -> list[dict]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


def done(store, stop_at=None, **task):
    stream = Stream()
    stream.stop_at, stream.teller = stop_at, Teller(stream)
    return do({"folder": str(store.folder), **task}, stream.teller), stream


@pytest.fixture
def table(store, table_file):
    return store.new_table(table_file, table_file.name).id


class TestReading:
    def test_a_trend_is_named_with_the_next_step_before_and_after_the_fit(self, store, tmp_path):
        (tmp_path / "trend.csv").write_bytes(csv_bytes(trending(), [f"s{i}" for i in range(8)]))
        table = store.new_table(tmp_path / "trend.csv", "trend.csv").id
        done(store, kind="read", table=table)
        read = store.table(table).read
        assert read["verdict"] == "doubtful"
        assert read["findings"][0].startswith("the rows change along the table: s")
        assert read["findings"][1].startswith("next: if the rows are in order of time")
        ended, _ = done(store, kind="fit", table=table)
        diagnosis = store.fit(ended["result"]["fit"]).diagnostics["diagnosis"]
        assert any("the rows change along the table" in reason for reason in diagnosis["reasons"])

    def test_the_table_is_described_and_checked(self, store, table):
        ended, _ = done(store, kind="read", table=table)
        assert ended == {"result": {"table": table}}
        read = store.table(table).read
        assert (read["n_rows"], read["n_columns"]) == (1500, 5)
        rows = MODEL.sample(1500, np.random.default_rng(5))
        assert [column["name"] for column in read["columns"]] == list(MODEL.sensors)
        np.testing.assert_allclose([column["share"] for column in read["columns"]], rows.mean(axis=0), atol=1e-6)
        assert read["verdict"] == "open"
        assert "less than 3 seconds" in read["forecast"]

    def test_thresholds_are_used(self, store, tmp_path):
        (tmp_path / "loud.csv").write_text("a,b\n1,-50\n0,-90\n1,-60\n")
        table = store.new_table(tmp_path / "loud.csv", "loud.csv").id
        done(store, kind="read", table=table)
        read = store.table(table).read
        assert "holds -50" in read["error"]
        assert str(tmp_path) not in read["error"]
        assert [column["role"] for column in read["columns"]] == ["sensor", "sensor"]
        ended, _ = done(store, kind="read", table=table, reading={"binarize": {"b": -70}})
        assert "result" in ended
        assert [column["share"] for column in store.table(table).read["columns"]] == pytest.approx([2 / 3, 2 / 3])

    def test_an_index_ids_times_and_text_are_no_sensors(self, store, tmp_path):
        lines = [f"{i},2024-05-0{i + 1},P{i},{'north' if i % 2 else 'south'},{i % 2},1" for i in range(6)]
        (tmp_path / "wards.csv").write_text("\n".join([",day,patient,ward,cough,fever", *lines]) + "\n")
        table = store.new_table(tmp_path / "wards.csv", "wards.csv").id
        assert "result" in done(store, kind="read", table=table)[0]
        entry = store.table(table)
        assert entry.reading == {"drop": ["ward"], "id": "patient"}
        assert {column["name"]: column["role"] for column in entry.read["columns"]} == {
            "": "drop",
            "day": "time",
            "patient": "id",
            "ward": "drop",
            "cough": "sensor",
            "fever": "sensor",
        }
        assert any("row index" in note for note in entry.read["notes"])
        fit = done(store, kind="fit", table=table)[0]["result"]["fit"]
        rows = store.report(fit).content["rows"]["list"]
        assert rows[1]["label"] == "P1 2024-05-02"
        done(store, kind="activity", fit=fit)
        head = (store.home("fits", fit) / "activity.csv").read_text().splitlines()[0]
        assert head.startswith("patient,day,")

    def test_a_column_is_left_out_when_told(self, store, table):
        done(store, kind="read", table=table, reading={"drop": ["door"]})
        roles = [column["role"] for column in store.table(table).read["columns"]]
        assert roles == ["drop", "sensor", "sensor", "sensor", "sensor"]

    def test_weights_count_rows_but_have_no_place_in_the_list_of_rows(self, store, tmp_path):
        (tmp_path / "n.csv").write_text("a,b,n\n1,1,300\n0,0,600\n1,0,100\n")
        table = store.new_table(tmp_path / "n.csv", "n.csv").id
        done(store, kind="read", table=table, reading={"weights": "n"})
        assert store.table(table).read["n_rows"] == 1000
        fit = done(store, kind="fit", table=table)[0]["result"]["fit"]
        assert store.fit(fit).n_samples == 1000
        assert len(store.report(fit).content["rows"]["list"]) == 3

    def test_a_table_that_is_gone_is_one_sentence(self, store, table, table_file):
        table_file.unlink()
        ended, _ = done(store, kind="read", table=table)
        assert ended["error"] == "there is no file nights.csv; check the name and the folder"

    @pytest.mark.parametrize("content", [b"\x00\xff\x00", b"PK\x03\x04nothing", b"a,b\n1", b"{", b"a\n" + b"9" * 10000])
    def test_garbage_is_one_sentence(self, store, tmp_path, content):
        for name in ("x.csv", "x.parquet", "x.npz", "x.npy", "x.jsonl", "x.mtx", "x.exe"):
            (tmp_path / name).write_bytes(content)
            ended, _ = done(store, kind="read", table=store.new_table(tmp_path / name, name).id)
            assert "result" in ended or ("bug" not in ended["error"] and "\n" not in ended["error"])


class TestFitting:
    def test_a_fit_is_kept_with_its_report(self, store, table):
        ended, stream = done(store, kind="fit", table=table, settings={"words": {"rows": "nights"}})
        fit = store.fit(ended["result"]["fit"])
        assert np.array_equal(fit.model.mixing, MODEL.mixing)
        assert fit.nouns.rows == "nights"
        entry = store.fit_entry(ended["result"]["fit"])
        assert (entry.title, entry.table, entry.verdict, entry.n_sources) == ("nights.csv", table, "fits", 3)
        parts = store.report(entry.id)
        assert len(parts.content["rows"]["list"]) == 500
        assert parts.sentence == "The model fits: the nights look as it expects."
        assert any("learning from" in line.get("what", "") for line in stream.told())

    def test_stopped_while_learning_it_keeps_the_best_so_far(self, store, tmp_path):
        rng = np.random.default_rng(0)
        model = OrMixture(np.eye(12, dtype=bool) | np.eye(12, k=1, dtype=bool), np.full(12, 0.15))
        (tmp_path / "wide.csv").write_bytes(csv_bytes(model.sample(3000, rng), model.sensors))
        table = store.new_table(tmp_path / "wide.csv", "wide.csv").id
        ended, _ = done(store, kind="fit", table=table, stop_at=', sources"')
        assert ended["result"]["interrupted"]
        entry = store.fit_entry(ended["result"]["fit"])
        assert entry.interrupted
        assert entry.verdict != "fits"
        assert "had not settled" in store.report(entry.id).content["verdict"]["reasons"][0]

    def test_stopped_when_the_fit_is_there_it_is_kept_whole(self, store, table):
        ended, _ = done(store, kind="fit", table=table, stop_at="writing the report")
        assert not ended["result"]["interrupted"]
        assert store.report(ended["result"]["fit"]).content["sources"]

    def test_stopped_while_reading_there_is_nothing_to_keep(self, store, table):
        ended, _ = done(store, kind="fit", table=table, stop_at="reading the table")
        assert "stopped" in ended
        assert store.fits() == []

    def test_known_sources_and_forbidden_sets_are_respected(self, store, table):
        settings = {"known": [{"sensors": ["door", "hall"], "name": "cat"}], "forbidden": [["hall", "yard"]]}
        ended, _ = done(store, kind="fit", table=table, settings=settings)
        model = store.fit(ended["result"]["fit"]).model
        columns = {frozenset(np.array(model.sensors)[column]) for column in model.mixing.T}
        assert {"door", "hall"} in columns
        assert "cat" in model.names
        assert not any({"hall", "yard"} <= column for column in columns)

    def test_names_are_kept_by_a_refit(self, store, table):
        first, _ = done(store, kind="fit", table=table)
        fit = store.fit(first["result"]["fit"])
        store.save_fit(first["result"]["fit"], fit.named({"source1": "cat"}))
        again, _ = done(store, kind="fit", table=table, names_from=first["result"]["fit"])
        assert store.fit(again["result"]["fit"]).model.names == ("cat", None, None)

    def test_an_earlier_fit_stays(self, store, table):
        done(store, kind="fit", table=table)
        done(store, kind="fit", table=table)
        assert len(store.fits()) == 2

    def test_in_time(self, store, table):
        ended, _ = done(store, kind="fit", table=table, settings={"temporal": True})
        assert store.fit(ended["result"]["fit"]).method == "likelihood in time"

    def test_the_activity_is_written(self, store, table):
        fit = done(store, kind="fit", table=table)[0]["result"]["fit"]
        ended, _ = done(store, kind="activity", fit=fit)
        assert ended["result"]["file"] == "activity.csv"
        lines = (store.home("fits", fit) / "activity.csv").read_text().splitlines()
        assert (lines[0], len(lines)) == ("source1,source2,source3", 1501)

    def test_the_report_is_written_with_and_without_names_and_rows(self, store, table):
        fit = done(store, kind="fit", table=table)[0]["result"]["fit"]
        path = store.home("fits", fit) / "report.html"
        done(store, kind="report", fit=fit)
        plain = path.read_text()
        assert "hall" in plain
        done(store, kind="report", fit=fit, anonymise=True)
        assert "hall" not in path.read_text()
        done(store, kind="report", fit=fit, with_rows=True)
        assert len(path.read_text()) > len(plain)


@pytest.mark.parametrize(
    "settings",
    [{"noise": "loud"}, {"edges": 3}, {"known": 3}, {"known": [3]}, {"known": [{"sensors": []}]}, {"forbidden": [[1]]}],
)
def test_settings_are_checked(settings):
    with pytest.raises(SettingError):
        learner_settings(settings)


def test_thresholds_are_checked():
    with pytest.raises(SettingError, match="a threshold is a number"):
        options_of({"binarize": "high"})
    with pytest.raises(SettingError, match="drop is a list"):
        options_of({"drop": "ward"})


def test_the_teller_keeps_a_bearable_pace():
    stream = StringIO()
    teller = Teller(stream)
    for done_steps in range(1000):
        teller("blocks", done_steps, None)
    assert stream.getvalue().count("\n") < 20
