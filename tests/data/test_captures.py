"""Captures are read as they were written, also where they are damaged."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data import captures as pieces
from bica.data.captures import CaptureState, add_capture, read_capture
from bica.data.slots.store import event_store
from bica.errors import DataError
from bica.kernels.captures import radiotap_fields
from tests.reference import capture_writer as writer

NOW = 1_700_000_000
FRAMES = [writer.frame(frequency, i) for i, frequency in enumerate((2412, 2437, 2462, 5180))]
TICKS = [(NOW + i) * 10**6 + 125_000 * i for i in range(4)]
PLAIN = list(zip(TICKS, FRAMES, strict=True))


def read(path, content):
    path.write_bytes(content)
    state = CaptureState()
    batches = list(read_capture(path, state))
    rows = [
        tuple(row)
        for batch in batches
        for row in np.column_stack([batch.moments, batch.interfaces, batch.frequencies, batch.antennas]).tolist()
    ]
    return rows, state


def expected(frequencies=(2412, 2437, 2462, 5180), interface=0):
    return [(TICKS[i], interface, frequency, i) for i, frequency in enumerate(frequencies)]


def ng(order="<"):
    blocks = [writer.section(order), writer.interface(order, name=b"wlan0")]
    return b"".join(blocks + [writer.enhanced(ticks, data, order) for ticks, data in PLAIN])


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("a_second", [10**6, 10**9])
def test_pcap_in_both_orders_of_bytes_and_both_units(tmp_path, order, a_second):
    ticks = [(tick * (a_second // 10**6), data) for tick, data in PLAIN]
    rows, state = read(tmp_path / "a.pcap", writer.pcap(ticks, order, a_second))
    assert rows == expected()
    assert state.counts()["packets"] == 4
    assert sum(state.counts().values()) == 4


@pytest.mark.parametrize("order", "<>")
def test_pcapng_in_both_orders_of_bytes(tmp_path, order):
    rows, state = read(tmp_path / "a.pcapng", ng(order))
    assert rows == expected()
    assert state.interfaces == ["wlan0"]
    assert sum(state.counts().values()) == 4


def test_interfaces_have_clocks_of_their_own_and_sections_start_anew(tmp_path):
    content = b"".join(
        [
            writer.section(),
            writer.interface(name=b"fast", resolution=9),
            writer.interface(name=b"binary", resolution=0x80 | 10, offset=NOW),
            writer.enhanced((NOW * 10**9) + 1999, FRAMES[0], number=0),
            writer.enhanced(512, FRAMES[1], number=1),
            writer.block(5, b"statistics of an interface"),
            writer.obsolete(NOW * 10**9, FRAMES[2], number=0),
            writer.section(">"),
            writer.interface(">", name=b"later"),
            writer.enhanced(TICKS[3], FRAMES[3], ">", number=0),
        ]
    )
    rows, state = read(tmp_path / "a.pcapng", content)
    assert state.interfaces == ["fast", "binary", "later"]
    assert [row[:2] for row in rows] == [
        (NOW * 10**6 + 1, 0),
        (NOW * 10**6 + 500_000, 1),
        (NOW * 10**6, 0),
        (TICKS[3], 2),
    ]


def test_packets_without_a_time_are_counted(tmp_path):
    rows, state = read(tmp_path / "a.pcapng", ng() + writer.simple(FRAMES[0]) * 3)
    assert rows == expected()
    assert state.counts()["packets_without_time"] == 3


def test_a_packet_of_an_interface_that_nobody_described_is_damage(tmp_path):
    rows, state = read(tmp_path / "a.pcapng", ng() + writer.enhanced(TICKS[0], FRAMES[0], number=7))
    assert rows == expected()
    assert state.counts()["damaged_places"] == 1


def test_other_links_have_no_channel(tmp_path):
    rows, state = read(tmp_path / "a.pcap", writer.pcap(PLAIN, link=1))
    assert [row[2:] for row in rows] == [(0, -1)] * 4
    assert state.counts()["packets_without_radiotap"] == 0


def test_a_broken_radiotap_header_is_counted_and_the_packet_kept(tmp_path):
    rows, state = read(
        tmp_path / "a.pcap", writer.pcap([*PLAIN, (TICKS[3], b"\x01radio"), (TICKS[3], b"\0\0\xff\xff" * 4)])
    )
    assert len(rows) == 6
    assert state.counts()["packets_without_radiotap"] == 2


def test_small_pieces_and_small_batches_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 7)
    monkeypatch.setattr(pieces, "BATCH", 2)
    assert read(tmp_path / "a.pcapng", ng())[0] == expected()
    monkeypatch.setattr(pieces, "PIECE", 30)
    rows, state = read(tmp_path / "a.pcap", writer.pcap(PLAIN))
    assert rows == expected()
    assert sum(state.counts().values()) == 4


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_capture_that_is_cut_anywhere_keeps_what_came_before(tmp_path, kind):
    content = writer.pcap(PLAIN) if kind == "pcap" else ng()
    head = 24 if kind == "pcap" else len(ng()) - sum(len(writer.enhanced(*packet)) for packet in PLAIN)
    sizes = [len(writer.pcap_record(*packet) if kind == "pcap" else writer.enhanced(*packet)) for packet in PLAIN]
    for length in range(head, len(content), 3):
        rows, state = read(tmp_path / f"a.{kind}", content[:length])
        whole = int((head + np.cumsum(sizes) <= length).sum())
        assert rows == expected()[:whole]
        assert state.counts()["cut_off"] == (length != head + sum(sizes[:whole]))
        assert state.counts()["skipped_bytes"] == length - head - sum(sizes[:whole])


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_rubbish_between_packets_is_stepped_over_and_counted(tmp_path, kind):
    parts = [writer.pcap([])] if kind == "pcap" else [writer.section(), writer.interface()]
    packets = [writer.pcap_record(*packet) if kind == "pcap" else writer.enhanced(*packet) for packet in PLAIN]
    rubbish = bytes(range(256)) + bytes(1001) + b"\xff" * 500
    content = b"".join([*parts, *packets[:2], rubbish, *packets[2:]])
    rows, state = read(tmp_path / f"a.{kind}", content)
    assert rows == expected()
    assert state.counts()["damaged_places"] == 1
    assert state.counts()["skipped_bytes"] == len(rubbish)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["pcap", "pcapng"]),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
)
def test_changed_bytes_never_stop_the_reader_and_cost_few_packets(tmp_path_factory, kind, changes):
    many = [(TICKS[0] + 1000 * i, FRAMES[i % 4]) for i in range(40)]
    start = writer.pcap([]) if kind == "pcap" else writer.section() + writer.interface()
    made = [writer.pcap_record(*packet) if kind == "pcap" else writer.enhanced(*packet) for packet in many]
    content = bytearray(start + b"".join(made))
    for where, byte in changes:
        content[len(start) + round(where * (len(content) - len(start) - 1))] = byte
    rows, state = read(tmp_path_factory.getbasetemp() / f"changed.{kind}", bytes(content))
    assert state.counts()["packets"] == len(rows) <= 40
    if len(changes) <= 1:  # several may make up a length that swallows many packets
        assert len(rows) >= 40 - 2 * len(changes)  # the packet itself, and the one behind while looking for a start
        good = {tick for tick, _ in many}
        assert sum(row[0] not in good for row in rows) <= len(changes)


def test_compressed_captures_are_unpacked_also_if_cut(tmp_path):
    packed = gzip.compress(writer.pcap(PLAIN))
    assert read(tmp_path / "a.pcap.gz", packed)[0] == expected()
    noise = np.random.default_rng(0).bytes(3000)  # cannot be packed, so that the end of the file holds its end
    long = gzip.compress(writer.pcap([*PLAIN, (TICKS[0], FRAMES[0] + noise)]))
    rows, state = read(tmp_path / "b.pcap.gz", long[:-1000])
    assert rows == expected()
    assert state.counts()["cut_off"] == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\xd4\xc3\xb2"])
def test_what_is_no_capture_is_refused(tmp_path, content):
    with pytest.raises(DataError, match="is no capture in pcap or pcapng"):
        read(tmp_path / "a.pcap", content)


fields = st.fixed_dictionaries(
    {},
    optional={
        0: st.tuples(st.integers(0, 2**64 - 1)),
        1: st.tuples(st.integers(0, 255)),
        2: st.tuples(st.integers(0, 255)),
        3: st.tuples(st.integers(1, 65535), st.integers(0, 65535)),
        4: st.tuples(st.integers(0, 255), st.integers(0, 255)),
        7: st.tuples(st.integers(0, 65535)),
        10: st.tuples(st.integers(-128, 127)),
        11: st.tuples(st.integers(0, 255)),
        14: st.tuples(st.integers(0, 65535)),
        16: st.tuples(st.integers(0, 255)),
        18: st.tuples(st.integers(0, 9), st.integers(1, 65535), st.integers(0, 255), st.integers(0, 255)),
    },
)


@settings(max_examples=100, deadline=None)
@given(fields, st.integers(0, 3), st.integers(0, 9))
def test_radiotap_fields_are_found_whatever_else_is_present(values, extra_words, before):
    header = writer.radiotap(values, extra_words)
    data = np.frombuffer(bytes(before) + header, np.uint8)
    found = np.zeros(2, np.int64)
    assert radiotap_fields(data, before, len(header), found)
    frequency = values[3][0] if 3 in values else values[18][1] if 18 in values else 0
    assert found.tolist() == [frequency, values[11][0] if 11 in values else -1]
    for length in range(len(header)):
        assert not radiotap_fields(data[: before + length], before, length, found)


class TestEvents:
    def events(self, path, content, sniffer):
        path.write_bytes(content)
        with event_store() as store:
            counts = add_capture(store, 0, path, sniffer)
            return store.ask("SELECT sensor, channel FROM events"), counts

    def test_the_file_names_the_sniffer(self, tmp_path):
        rows, counts = self.events(tmp_path / "roof.pcap", writer.pcap(PLAIN), "file")
        assert rows == [("roof", "1"), ("roof", "6"), ("roof", "11"), ("roof", "36")]
        assert counts["packets"] == 4

    def test_the_interface_names_the_sniffer_if_it_has_a_name(self, tmp_path):
        content = ng() + writer.interface() + writer.enhanced(TICKS[0], FRAMES[0], number=1)
        rows, _ = self.events(tmp_path / "roof.pcapng", content, "interface")
        assert [sensor for sensor, _ in rows] == ["wlan0"] * 4 + ["roof:1"]

    def test_the_antenna_names_the_sniffer(self, tmp_path):
        packets = [*PLAIN, (TICKS[0], writer.radiotap({3: (2412, 0)}))]
        rows, _ = self.events(tmp_path / "roof.pcap", writer.pcap(packets), "antenna")
        assert [sensor for sensor, _ in rows] == ["roof:0", "roof:1", "roof:2", "roof:3", "roof"]

    def test_without_radiotap_there_is_no_channel(self, tmp_path):
        rows, _ = self.events(tmp_path / "roof.pcap", writer.pcap(PLAIN, link=105), "file")
        assert rows == [("roof", None)] * 4


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_capture_of_scapy_is_read(tmp_path, kind):
    scapy = pytest.importorskip("scapy.all", reason="scapy is in the extra `test`")
    made = []
    for i, frequency in enumerate((2412, 2437, 2462)):
        head = scapy.RadioTap(
            present="TSFT+Flags+Channel+dBm_AntSignal+Antenna",
            ChannelFrequency=frequency,
            ChannelFlags="2GHz",
            Antenna=i,
        )
        packet = head / scapy.Dot11()
        packet.time = NOW + i / 4
        made.append(packet)
    path = tmp_path / f"scapy.{kind}"
    if kind == "pcap":
        scapy.wrpcap(str(path), made)
    else:
        with scapy.PcapNgWriter(str(path)) as file:
            file.write(made)
    rows, state = read(path, path.read_bytes())
    assert rows == [(NOW * 10**6 + 250_000 * i, 0, frequency, i) for i, frequency in enumerate((2412, 2437, 2462))]
    assert sum(state.counts().values()) == 3
