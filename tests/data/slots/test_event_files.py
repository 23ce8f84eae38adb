"""Event logs of every kind and times of every kind."""

import gzip
import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.slots.event_files import EventColumns, add_files
from bica.data.slots.store import event_store, in_words, microseconds, moment_given, written
from bica.data.slots.tables import slot_grid
from bica.errors import DataError, SettingError

NOON = int(datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp())
EVENTS = [(f"2024-05-01T12:00:0{i}.25Z", f"s{i % 2}", str(i)) for i in range(3)]
STORED = [((NOON + i) * 10**6 + 250_000, f"s{i % 2}", str(i)) for i in range(3)]


def stored(*paths, zone="UTC", columns=None, **options):
    with event_store(zone) as store:
        add_files(store, [str(path) for path in paths], columns, **options)
        return store.ask("SELECT moment, sensor, channel FROM events")


def moments_of(path, zone="UTC", **columns):
    return [moment for moment, *_ in stored(path, zone=zone, columns=EventColumns(**columns))]


def csv_file(folder, *lines, header="time,sensor"):
    path = folder / "events.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.fixture(params=["events.csv", "events.tsv", "events.csv.gz", "events.jsonl", "events.parquet"])
def log(request, tmp_path):
    """The same events in every kind of file."""
    path = tmp_path / request.param
    mark = "\t" if ".tsv" in request.param else ","
    text = "\n".join(mark.join(event) for event in [("time", "sensor", "channel"), *EVENTS])
    if request.param.endswith("jsonl"):
        keys = ("time", "sensor", "channel")
        path.write_text(
            "\n\n".join(json.dumps(dict(zip(keys, event, strict=True)) | {"more": [1]}) for event in EVENTS)
        )
    elif request.param.endswith("parquet"):
        rows = ", ".join(str((time, sensor, int(channel))) for time, sensor, channel in EVENTS)
        duckdb.sql(f"SELECT * FROM (VALUES {rows}) t(time, sensor, channel)").write_parquet(str(path))
    else:
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_every_kind_of_file_gives_the_same_events(log):
    assert stored(log) == STORED


def test_several_files_add_up(log):
    assert stored(log, log) == STORED * 2


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-01T12:00:00", NOON - 7200),
        ("2024-05-01 12:00:00.5", NOON - 7200 + 0.5),
        ("2024-05-01T12:00:00Z", NOON),
        ("2024-05-01T12:00:00+05:30", NOON - 19800),
        (str(NOON), NOON),
        (f"{NOON}.125", NOON + 0.125),
        (f"{NOON}125", NOON + 0.125),
        (f"{NOON}000125", NOON + 0.000125),
        (f"{NOON}000125999", NOON + 0.000125),
    ],
)
def test_times_are_dates_or_numbers_since_1970(tmp_path, text, moment):
    assert moments_of(csv_file(tmp_path, f"{text},a"), zone="Europe/Berlin") == [round(moment * 10**6)]


def test_the_unit_of_numbers_can_be_said(tmp_path):
    assert moments_of(csv_file(tmp_path, "1500,a"), unit="ms") == [1_500_000]
    assert moments_of(csv_file(tmp_path, "1500,a")) == [1_500_000_000]


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_timestamps_of_parquet_without_a_zone_are_local_times(tmp_path, kind, zone):
    path = tmp_path / "events.parquet"
    with duckdb.connect() as engine:
        engine.execute(f"SET TimeZone = '{zone}'")
        engine.execute(f"COPY (SELECT '2024-05-01 12:00:00'::{kind} AS time, 7 AS sensor) TO '{path}'")
    local = datetime(2024, 5, 1, 12, tzinfo=ZoneInfo(zone))
    assert stored(path, zone=zone) == [(round(local.timestamp()) * 10**6, "7", None)]


@pytest.mark.parametrize("number", ["1714564800::INTEGER", "1714564800000::BIGINT", "1714564800.0::DOUBLE"])
def test_numbers_of_parquet_are_times_since_1970(tmp_path, number):
    path = tmp_path / "events.parquet"
    duckdb.sql(f"SELECT {number} AS time, 'a' AS sensor").write_parquet(str(path))
    assert moments_of(path) == [1714564800 * 10**6]


def test_columns_can_have_other_names(tmp_path):
    path = csv_file(tmp_path, "a,12,x,3", header="who,when,what,where")
    columns = EventColumns(time="when", sensor="who", channel="where")
    assert stored(path, columns=columns) == [(12_000_000, "a", "3")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("yesterday,a,1", "line 3: column 'time' holds 'yesterday', which is no time"),
        (",a,1", "line 3: column 'time' is empty"),
        ("5,,1", "line 3: column 'sensor' is empty"),
        ("5,a, ", "line 3: column 'channel' is empty"),
        ("5", "line 3: column 'sensor' is empty"),
        ("inf,a,1", "line 3: column 'time' holds 'inf', which is no time"),
    ],
)
def test_an_event_that_cannot_be_read_is_refused_by_number_or_skipped(tmp_path, line, message):
    path = csv_file(tmp_path, "4,a,1", line, "6,b,1", header="time,sensor,channel")
    with pytest.raises(DataError, match=message):
        stored(path)
    kept = [row for row in stored(path, skip_bad=True) if row[0] is not None]
    assert kept == [(4_000_000, "a", "1"), (6_000_000, "b", "1")]


def test_a_line_that_is_no_json_is_an_event_that_cannot_be_read(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"time": 1, "sensor": "a"}\n{"time": \n')
    with pytest.raises(DataError, match="line 2: column 'time' is empty"):
        stored(path)
    assert stored(path, skip_bad=True) == [(1_000_000, "a", None), (None, None, None)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("events.csv", "when,sensor\n1,a\n", "has no column 'time'; name the right one with --time"),
        ("events.csv", "", "is empty"),
        ("events.parquet", "no", "is not a whole Parquet file"),
        ("events.npy", "no", "is no event log"),
        ("events.md", "no", "unknown kind of name"),
        ("events.pcap", "no", "is no capture in pcap or pcapng"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        stored(tmp_path / name)


def test_a_file_that_is_not_there_is_told(tmp_path):
    for name in ("no.csv", "no.pcap"):
        with pytest.raises(DataError, match="there is no file"):
            stored(tmp_path / name)


class TestGrid:
    def grid(self, folder, *times, zone="UTC", length="1s", **ends):
        with event_store(zone) as store:
            add_files(store, [str(csv_file(folder, *(f"{time},a" for time in times)))])
            grid = slot_grid(store, microseconds(length), **ends)
            return written(store.engine, grid.start), grid.n_slots

    def test_it_reaches_from_the_first_event_to_the_last_in_any_order(self, tmp_path):
        assert self.grid(tmp_path, 12.5, 10.25, 11) == ("1970-01-01T00:00:10+00:00", 3)

    def test_long_slots_begin_with_the_local_day(self, tmp_path):
        found = self.grid(tmp_path, "2024-05-01T12:00:00Z", zone="Asia/Kolkata", length="1d")
        assert found == ("2024-05-01T00:00:00+05:30", 1)

    def test_the_ends_can_be_given_and_are_kept_exactly(self, tmp_path):
        found = self.grid(tmp_path, 5, start="1970-01-01T00:00:00.5Z", end="1970-01-01T00:00:03Z")
        assert found == ("1970-01-01T00:00:00.5+00:00", 3)

    def test_an_event_at_the_very_end_of_a_slot_opens_the_next(self, tmp_path):
        assert self.grid(tmp_path, 1, 2)[1] == 2

    def test_a_stray_time_is_not_answered_with_an_endless_table(self, tmp_path):
        with pytest.raises(DataError, match="slots of 1 ms; if that is no stray time"):
            self.grid(tmp_path, 0, NOON, length="1ms")
        with pytest.raises(DataError, match=r"^4 events reach from .* 10000001 slots of 1 s"):
            self.grid(tmp_path, 0, 1, 2, 10_000_000)
        assert self.grid(tmp_path, 0, 1, 2, 10_000_000, start="0", end="3") == ("1970-01-01T00:00:00+00:00", 3)
        assert self.grid(tmp_path, 0, 1, 2, 999_999)[1] == 1_000_000

    def test_a_time_outside_the_calendar_is_no_time(self, tmp_path):
        path = tmp_path / "events.parquet"
        moments = ["make_timestamp(0)", "make_timestamp(9223372022400000000)"]
        rows = " UNION ALL ".join(f"SELECT {moment} AS time, 'a' AS sensor" for moment in moments)
        duckdb.sql(rows).write_parquet(str(path))
        with pytest.raises(DataError, match="which is no time"):
            stored(path)
        assert stored(path, skip_bad=True) == [(0, "a", None), (None, "a", None)]

    def test_no_slot_at_all_is_refused(self, tmp_path):
        with pytest.raises(SettingError, match="the end must be later"):
            self.grid(tmp_path, 5, start="9", end="3")

    def test_without_events_the_ends_must_be_given(self, tmp_path):
        with pytest.raises(DataError, match="there are no events"):
            self.grid(tmp_path)
        assert self.grid(tmp_path, start="0", end="2")[1] == 2


@pytest.mark.parametrize("text", ["0s", "-1s", "1 week", "", "0.1us", "1e3", "²s", "\N{ARABIC-INDIC DIGIT THREE}s"])
def test_lengths_that_mean_nothing_are_refused(text):
    with pytest.raises(SettingError):
        microseconds(text)


@pytest.mark.parametrize("text", ["9" * 5000, "1." + "0" * 5000, "99999999999999d"])
def test_lengths_of_any_number_of_digits_are_refused_in_a_short_sentence(text):
    with pytest.raises(SettingError) as raised:
        microseconds(text)
    assert len(str(raised.value)) < 400


@settings(max_examples=50)
@given(st.integers(1, 10**12))
def test_a_length_in_words_is_read_back(length):
    assert microseconds(in_words(length)) == length


def test_a_time_zone_that_does_not_exist_is_refused():
    with pytest.raises(SettingError, match="there is no time zone 'Mars/Olympus'"), event_store("Mars/Olympus"):
        pass


def test_a_moment_that_is_no_time_is_refused():
    with event_store() as store, pytest.raises(SettingError, match="the start 'soon' is no time"):
        moment_given(store.engine, "soon", "the start")
