"""``bica slots``."""

import json

import pytest

from bica.data.patterns import PatternCounts
from tests.reference import capture_writer as writer

LOG = """time,sensor,channel
2024-05-01T12:00:00.1Z,roof,1
2024-05-01T12:00:00.1Z,roof,1
2024-05-01T12:00:02Z,door,6
2024-05-01T12:00:01Z,door,6
"""


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    return "log.csv"


def answer(shown):
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


def test_one_table_a_channel_with_all_that_is_worth_telling(run, log, tmp_path):
    told = answer(run("slots", log, "--slot", "1s", "--no-time", "-o", "t.csv", "--json"))
    assert (tmp_path / "t-1.csv").read_text() == "door,roof\n0,1\n0,0\n0,0\n"
    assert (tmp_path / "t-6.csv").read_text() == "door,roof\n0,0\n1,0\n1,0\n"
    assert (told["n_events"], told["n_used"], told["n_repeats"], told["left_out"]) == (4, 4, 1, {})
    assert (told["start"], told["end"]) == ("2024-05-01T12:00:00+00:00", "2024-05-01T12:00:03+00:00")
    assert [table["silent_sensors"] for table in told["tables"]] == [["door"], ["roof"]]
    assert told["clocks_that_went_back"] == [{"sensor": "door", "n_steps": 1, "largest_seconds": 1.0}]


def test_people_are_told_the_same(run, log):
    shown = run("slots", log, "--slot", "1s", "-o", "t.csv").output
    for words in (
        "3 slots of 1 s from 2024-05-01T12:00:00+00:00",
        "4 events used, 1 of them in a slot that was on already",
        "door heard nothing on channel 1",
        "the clock of door went back 1 time, by up to 1 s",
    ):
        assert words in shown


def test_parquet_is_read_back_as_the_same_table(run, log, tmp_path):
    (tmp_path / "down.csv").write_text("sensor,start,end,channel\nroof,2024-05-01T12:00:01Z,,\n")
    for name in ("t.csv", "t.parquet"):
        answer(
            run("slots", log, "--slot", "1s", "--no-time", "--one-table", "--down", "down.csv", "-o", name, "--json")
        )
    assert (tmp_path / "t.csv").read_text() == "door,roof\n0,1\n1,\n1,\n"
    assert PatternCounts.of("t.csv") == PatternCounts.of("t.parquet")


def test_events_outside_the_range_and_of_others_are_left_out_and_counted(run, log):
    options = ["--start", "2024-05-01T12:00:01Z", "--end", "2024-05-01T12:00:02Z", "--sensors", "door,cellar"]
    told = answer(run("slots", log, "--slot", "1s", "--channels", "6,11", *options, "-o", "t.csv", "--json"))
    assert told["left_out"] == {"before the start": 2, "after the end": 1}
    assert [(table["channel"], table["n_on"]) for table in told["tables"]] == [("6", 1), ("11", 0)]
    assert told["tables"][0]["silent_sensors"] == ["cellar"]
    shown = run("slots", log, "--slot", "1s", "--channels", "11", "-o", "u.csv").output
    assert "nothing was heard on channel 11: its table has no 1" in shown
    assert "4 events left out: other channels" in shown


def test_one_channel_only_may_go_to_standard_output(run, log):
    shown = run("slots", log, "--slot", "2s", "--no-time", "--channels", "6", "-o", "-")
    assert shown.stdout == "door,roof\n1,0\n1,0\n"
    several = run("slots", log, "--slot", "2s", "-o", "-")
    assert several.exit_code == 2
    assert "there are 2 channels, so 2 tables, but one standard output" in several.stderr


def test_times_are_local_to_the_time_zone(run, tmp_path):
    (tmp_path / "log.jsonl").write_text('{"time": "2024-05-01 00:30:00", "sensor": "a"}\n')
    words = ["--slot", "1h", "--timezone", "Asia/Kolkata", "-o", tmp_path / "t.csv", "--json"]
    assert answer(run("slots", tmp_path / "log.jsonl", *words))["start"] == "2024-05-01T00:00:00+05:30"


def test_a_heard_cell_of_a_sensor_that_was_down_is_empty_and_told(run, log, tmp_path):
    (tmp_path / "down.jsonl").write_text('{"sensor": "door", "start": "2024-05-01T12:00:02.9Z", "end": null}\n')
    shown = run("slots", log, "--slot", "1s", "--no-time", "--channels", "6", "--down", "down.jsonl", "-o", "t.csv")
    assert (tmp_path / "t-6.csv").read_text() == "door,roof\n0,0\n1,0\n,0\n"
    assert "1 cell left empty on channel 6 although something was heard while down" in shown.output


def test_outages_may_be_numbers_in_any_unit(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("time,sensor\n1714564800000,a\n1714564802000,b\n")
    (tmp_path / "down.csv").write_text("sensor,start,end\na,1714564801000,\n")
    run("slots", "log.csv", "--slot", "1s", "--no-time", "--down", "down.csv", "-o", "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a,b\n1,0\n,0\n,1\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("door,12,11", "row 0: the outage ends at '11', which is not after its start '12'"),
        ("door,soon,", "row 0: 'soon' is no time"),
        (",1,2", "row 0: it is not said which sensor was down"),
    ],
)
def test_a_strange_outage_is_refused(run, log, tmp_path, line, message):
    (tmp_path / "down.csv").write_text(f"sensor,start,end\n{line}\n")
    shown = run("slots", log, "--slot", "1s", "--down", "down.csv", "-o", "t.csv")
    assert shown.exit_code == 3
    assert message in shown.stderr


def test_captures_of_several_sniffers_with_damage_told(run, tmp_path):
    made = [(1_700_000_000 * 10**6 + 400_000 * i, writer.frame(2412)) for i in range(5)]
    (tmp_path / "roof.pcap").write_bytes(writer.pcap(made))
    (tmp_path / "door.pcap").write_bytes(writer.pcap(made[:2])[:-5])
    words = [
        "slots",
        tmp_path / "roof.pcap",
        tmp_path / "door.pcap",
        "--slot",
        "1s",
        "--no-time",
        "-o",
        tmp_path / "t.csv",
    ]
    shown = run(*words).output
    assert (tmp_path / "t-1.csv").read_text() == "door,roof\n1,1\n0,1\n"
    assert "door.pcap: the end is cut off" in shown
    told = answer(run(*words, "--force", "--json"))
    assert [counts["cut_off"] for counts in told["captures"].values()] == [0, 1]


def test_nothing_is_overwritten_without_force(run, log, tmp_path):
    (tmp_path / "t-6.csv").write_text("mine")
    words = ["slots", log, "--slot", "1s", "-o", "t.csv"]
    assert run(*words).exit_code == 3
    assert (tmp_path / "t-6.csv").read_text() == "mine"
    assert not (tmp_path / "t-1.csv").exists()
    assert run(*words, "--force").exit_code == 0
    assert (tmp_path / "t-6.csv").read_text() != "mine"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("log.csv --slot 1s -o t.txt", 2, "should end in .csv or .parquet"),
        ("log.csv --slot soon -o t.csv", 2, "'soon' is no length of time"),
        ("log.csv -o t.csv", 2, "Missing option '--slot'"),
        ("log.csv --slot 1s --timezone Mars/X -o t.csv", 2, "there is no time zone 'Mars/X'"),
        ("log.csv --slot 1s --one-table --channels 1 -o t.csv", 2, "exclude each other"),
        ("log.csv --slot 1s --sensors a,,b -o t.csv", 2, "different names separated by commas"),
        ("- - --slot 1s -o t.csv", 2, "standard input can be read once only"),
        ("log.csv --slot 1s -o - --json", 2, "both want standard output"),
        ("log.csv --slot 1s --time when -o t.csv", 3, "has no column 'when'"),
        ("no.csv --slot 1s -o t.csv", 3, "there is no file no.csv"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(run, log, words, code, message):
    shown = run("slots", *words.split())
    assert shown.exit_code == code
    assert message in shown.stderr


def test_events_come_from_standard_input_too(run, tmp_path):
    shown = run("slots", "-", "--slot", "1s", "--no-time", "--one-table", "-o", "-", input=LOG)
    assert shown.stdout == "door,roof\n0,1\n1,0\n1,0\n"
    strange = run("slots", "-", "--slot", "1s", "-o", tmp_path / "t.csv", input="time,sensor\nnow-ish,a\n")
    assert strange.exit_code == 3
    assert strange.stderr.startswith("bica: standard input, line 2: column 'time' holds 'now-ish'")


def test_a_line_is_named_as_the_file_counts_it(run, tmp_path):
    for name, content, line in (
        ("log.csv", "time,sensor\n1,a\n\n2,b\nlate,c\n", 5),
        ("log.jsonl", '{"time": 1, "sensor": "a"}\n\n{"time": "late", "sensor": "b"}\n', 3),
    ):
        (tmp_path / name).write_text(content)
        shown = run("slots", tmp_path / name, "--slot", "1s", "-o", tmp_path / "t.csv")
        assert f"{name}, line {line}: column 'time' holds 'late'" in shown.stderr


def test_a_log_without_names_of_columns_is_recognised(run, tmp_path):
    (tmp_path / "bare.log").write_text("2025-03-01 10:00:00,a\n2025-03-01 10:01:00,b\n")
    shown = run("slots", tmp_path / "bare.log", "--slot", "1min", "-o", tmp_path / "t.csv")
    assert shown.exit_code == 3
    assert "its first line holds an event already: put the names of the columns above it" in shown.stderr


def test_help_explains_the_command(run):
    assert "one row per slot" in " ".join(run("slots", "--help").output.split())
