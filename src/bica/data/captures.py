"""Packet captures, pcap and pcapng, read piece by piece, also where damaged; and what their packets say as events."""

import gzip
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.slots.store import EventStore
from bica.errors import DataError
from bica.kernels.captures import (
    INTERFACE,
    LONGEST_BLOCK,
    LONGEST_PACKET,
    N_DAMAGED,
    N_HEADERLESS,
    N_PACKETS,
    N_SKIPPED,
    N_STATE,
    N_TIMELESS,
    PLACE,
    SEARCHING,
    SECTION,
    scan_pcap,
    scan_pcapng,
)
from bica.progress import tracked

PIECE = 1 << 22  # bytes read at a time
BATCH = 1 << 16  # packets handed on at a time
MICROSECONDS = 10**6


@dataclass(frozen=True, slots=True)
class Packets:
    """Some packets, in the order of the file."""

    moments: NDArray[np.int64]  # (n_packets,), microseconds since 1970
    interfaces: NDArray[np.int64]  # (n_packets,), places in the capture's list of interfaces
    frequencies: NDArray[np.int64]  # (n_packets,), MHz; 0 where the packet does not tell
    antennas: NDArray[np.int64]  # (n_packets,); -1 where the packet does not tell


@dataclass(slots=True)
class CaptureState:
    """How far a capture was read and what was skipped on the way."""

    numbers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(N_STATE, np.int64))
    interfaces: list[str] = field(default_factory=list)  # the name of each

    def counts(self) -> dict[str, int]:
        """What a person should know: packets read, and what could not be."""
        return {
            "packets": int(self.numbers[N_PACKETS]),
            "damaged_places": int(self.numbers[N_DAMAGED]),
            "skipped_bytes": int(self.numbers[N_SKIPPED]),
            "cut_off": int(self.numbers[SEARCHING]),
            "packets_without_time": int(self.numbers[N_TIMELESS]),
            "packets_without_radiotap": int(self.numbers[N_HEADERLESS]),
        }


def microseconds_of(ticks: NDArray[np.int64], a_second: int) -> NDArray[np.int64]:
    """Ticks of a clock as microseconds, rounded down.

    >>> microseconds_of(np.array([1_700_000_000_123_456_789]), 10**9)
    array([1700000000123456])
    """
    seconds, rest = ticks // a_second, ticks % a_second
    if a_second > 10**12:  # the product below would not fit into 64 bits
        return seconds * MICROSECONDS + (rest / a_second * MICROSECONDS).astype(np.int64)
    return seconds * MICROSECONDS + rest * MICROSECONDS // a_second


def pieces_of(file: BufferedReader | gzip.GzipFile) -> Iterator[bytes]:
    """The bytes of a file, then one empty piece; a compressed file that is cut ends where it is cut."""
    while piece := _piece(file):
        yield piece
    yield b""


def _piece(file: BufferedReader | gzip.GzipFile) -> bytes:
    """The next bytes, gathered in small steps, so that an end that cannot be unpacked costs no more than itself."""
    parts, size = [], 0
    try:
        while size < PIECE and (part := file.read1(PIECE - size)):
            parts.append(part)
            size += len(part)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        pass
    return b"".join(parts)


def open_bytes(path: Path) -> BufferedReader | gzip.GzipFile:
    """The file, unpacked on the way if it is compressed."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return gzip.open(path) if packed else path.open("rb")
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror}") from None


PCAP_MAGIC = {0xA1B2C3D4: 10**6, 0xA1B23C4D: 10**9}  # and how many ticks a second has
HEADER = 24


@dataclass(frozen=True, slots=True)
class PcapHeader:
    """What the start of the file says of all packets."""

    big: bool
    a_second: int
    longest: int
    link: int

    @classmethod
    def of(cls, start: bytes) -> "PcapHeader | None":
        """The header, or None if this is no such file."""
        for order in "<>":
            if len(start) >= HEADER and struct.unpack_from(f"{order}I", start)[0] in PCAP_MAGIC:
                magic, longest, link = struct.unpack_from(f"{order}I12xII", start)
                longest = min(max(longest, LONGEST_PACKET), LONGEST_BLOCK // 4)
                return cls(order == ">", PCAP_MAGIC[magic], longest, link & 0x0FFFFFFF)
        return None


def read_pcap(header: PcapHeader, pieces: Iterable[bytes], state: CaptureState) -> Iterator[Packets]:
    """The packets behind the header, which ``pieces`` starts with."""
    state.interfaces.append("")
    state.numbers[PLACE] = HEADER
    packets, rest = np.empty((BATCH, 4), np.int64), b""
    for piece in pieces:
        data = np.frombuffer(rest + piece, np.uint8)
        n_found = BATCH
        while n_found == BATCH:
            n_found = scan_pcap(
                data, not piece, header.big, header.a_second, header.longest, header.link, packets, state.numbers
            )
            found = packets[:n_found].copy()
            yield Packets(microseconds_of(found[:, 0], header.a_second), found[:, 1], found[:, 2], found[:, 3])
        rest = data[state.numbers[PLACE] :].tobytes()
        state.numbers[PLACE] = 0
    note_end(state, len(rest))


def note_end(state: CaptureState, n_left: int) -> None:
    """Bytes at the end that are too few for anything belong to a packet that was cut off."""
    if n_left:
        state.numbers[SEARCHING] = 1
        state.numbers[N_SKIPPED] += n_left


PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
BIG_ENDIAN = b"\x1a\x2b\x3c\x4d"
NAME, RESOLUTION, OFFSET = 2, 9, 14  # options of an interface
A_FEW_MILLENNIA = 10**11  # seconds


@dataclass(slots=True)
class Section:
    """The interfaces that packets refer to by number, from one section header to the next."""

    big: bool = False
    first: int = 0  # the place of its first interface in the list of all
    links: list[int] = field(default_factory=list)
    a_second: list[int] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)  # seconds to add

    @property
    def order(self) -> Literal["big", "little"]:
        """The order of bytes, as Python names it."""
        return "big" if self.big else "little"

    def add_interface(self, block: bytes) -> str:
        """Read the description of one more interface; returns its name, which may be empty."""
        options = dict(self._options(block[16:-4]))
        self.links.append(self._number(block[8:10]))
        self.a_second.append(ticks_a_second(options.get(RESOLUTION, b"\x06")[0]))
        offset = int.from_bytes(options.get(OFFSET, b""), self.order, signed=True)
        self.offset.append(offset if abs(offset) < A_FEW_MILLENNIA else 0)
        return options.get(NAME, b"").rstrip(b"\0").decode("utf-8", "replace")

    def _options(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        while len(data) >= 4:
            code, length = self._number(data[:2]), self._number(data[2:4])
            if code == 0 or 4 + length > len(data):
                return
            if length:
                yield code, data[4 : 4 + length]
            data = data[4 + length + -length % 4 :]

    def _number(self, data: bytes) -> int:
        return int.from_bytes(data, self.order)

    def packets(self, found: NDArray[np.int64]) -> Packets:
        """What the kernel found, with the interfaces' own clocks turned into microseconds."""
        moments = np.empty(len(found), np.int64)
        for number in np.unique(found[:, 1]).tolist():
            chosen = found[:, 1] == number
            moments[chosen] = microseconds_of(found[chosen, 0], self.a_second[number]) + self.offset[number] * 10**6
        return Packets(moments, found[:, 1] + self.first, found[:, 2].copy(), found[:, 3].copy())


def ticks_a_second(resolution: int) -> int:
    """What the option says: a power of ten, or of two if its highest bit is set.

    >>> ticks_a_second(9), ticks_a_second(0x80 | 10)
    (1000000000, 1024)
    """
    power = resolution & 0x7F
    return 1 << min(power, 62) if resolution & 0x80 else int(10 ** min(power, 18))


def read_pcapng(pieces: Iterable[bytes], state: CaptureState) -> Iterator[Packets]:
    """All packets that have a time."""
    packets, rest, section = np.empty((BATCH, 4), np.int64), b"", Section()
    for piece in pieces:
        data = np.frombuffer(rest + piece, np.uint8)
        going_on = True
        while going_on:
            links = np.array(section.links, np.int64)
            n_found = scan_pcapng(data, not piece, section.big, links, packets, state.numbers)
            if n_found:
                yield section.packets(packets[:n_found])
            described = None if n_found == BATCH else _described(data, state, section)
            section = described or section
            going_on = n_found == BATCH or described is not None
        rest = data[state.numbers[PLACE] :].tobytes()
        state.numbers[PLACE] = 0
    note_end(state, len(rest))


def _described(data: NDArray[np.uint8], state: CaptureState, section: Section) -> Section | None:
    """Take in the block at which the scan stopped, if it is a description; returns the section it belongs to."""
    place = int(state.numbers[PLACE])
    start = data[place : place + 12].tobytes()
    if state.numbers[SEARCHING] or len(start) < 12:
        return None
    if start[:4] == PCAPNG_MAGIC:
        section = Section(start[8:12] == BIG_ENDIAN, len(state.interfaces))
    kind, length = (int.from_bytes(start[i : i + 4], section.order) for i in (0, 4))
    if kind not in (SECTION, INTERFACE) or place + length > data.size:
        return None
    if kind != SECTION:
        state.interfaces.append(section.add_interface(data[place : place + length].tobytes()))
    state.numbers[PLACE] += length
    return section


Sniffer = Literal["file", "interface", "antenna"]
ENDINGS = (".pcap", ".pcapng", ".cap", ".ntar")


def is_capture(path: Path) -> bool:
    """Whether the name says so.

    >>> is_capture(Path("roof.pcap.gz")), is_capture(Path("roof.csv"))
    (True, False)
    """
    ends = [suffix.lower() for suffix in path.suffixes]
    return bool(ends) and (ends[-1] in ENDINGS or (ends[-1] == ".gz" and len(ends) > 1 and ends[-2] in ENDINGS))


def read_capture(path: Path, state: CaptureState) -> Iterator[Packets]:
    """The packets of a capture, tens of thousands at a time; ``state`` tells afterwards what was skipped."""
    with open_bytes(path) as file:
        pieces = pieces_of(file)
        start = next(pieces)
        header = PcapHeader.of(start)
        if header is None and start[:4] != PCAPNG_MAGIC:
            short = "it is empty" if not start else f"its first {min(len(start), HEADER)} bytes are no header of either"
            raise DataError(f"{path} is no capture in pcap or pcapng: {short}")
        everything = tracked(chain([start], pieces), f"reading {path.name}")
        yield from read_pcapng(everything, state) if header is None else read_pcap(header, everything, state)


def add_capture(store: EventStore, file: int, path: Path, sniffer: Sniffer) -> dict[str, int]:
    """Put every packet into the store as an event; returns counts of packets and of what was skipped."""
    state = CaptureState()
    for packets in read_capture(path, state):
        names, places = _sniffers(packets, state, path, sniffer)
        frequencies, numbers = np.unique(packets.frequencies, return_inverse=True)
        channels = [channel_of(frequency) for frequency in frequencies.tolist()]
        known = np.where(packets.frequencies > 0, numbers, -1)
        store.add_arrays(file, packets.moments, (names, places.astype(np.int32)), (channels, known.astype(np.int32)))
    return state.counts()


def _sniffers(
    packets: Packets, state: CaptureState, path: Path, sniffer: Sniffer
) -> tuple[list[str], NDArray[np.int64]]:
    if sniffer == "interface":
        return [name or f"{stem(path)}:{i}" for i, name in enumerate(state.interfaces)], packets.interfaces
    if sniffer == "antenna":
        numbers, places = np.unique(packets.antennas, return_inverse=True)
        return [stem(path) if number < 0 else f"{stem(path)}:{number}" for number in numbers.tolist()], places
    return [stem(path)], np.zeros(packets.moments.size, np.int64)


def stem(path: Path) -> str:
    """The name of the file without what tells its kind.

    >>> stem(Path("traces/roof.west.pcap.gz"))
    'roof.west'
    """
    name = path.name
    for ending in (".gz", *ENDINGS):
        name = name.removesuffix(ending)
    return name


def channel_of(frequency: int) -> str:
    """The number of the IEEE 802.11 channel around this frequency in MHz.

    >>> [channel_of(frequency) for frequency in (2412, 2437, 2484, 5180, 5955, 900)]
    ['1', '6', '14', '36', '6GHz-1', '900MHz']
    """
    if frequency == 2484:
        return "14"
    if 2407 < frequency < 2484 and (frequency - 2407) % 5 == 0:
        return str((frequency - 2407) // 5)
    if 5000 < frequency < 5925 and frequency % 5 == 0:
        return str((frequency - 5000) // 5)
    if 5950 < frequency < 7125 and frequency % 5 == 0:
        return f"6GHz-{(frequency - 5950) // 5}"
    return f"{frequency}MHz"
