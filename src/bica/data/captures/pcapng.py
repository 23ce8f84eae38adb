"""pcapng: sections of blocks; interfaces are described before the packets that they caught."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.captures.packets import BATCH, CaptureState, Packets, microseconds_of
from bica.data.captures.pcap import note_end
from bica.kernels.packets import INTERFACE, PLACE, SEARCHING, SECTION, scan_pcapng

MAGIC = b"\x0a\x0d\x0d\x0a"
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
    if start[:4] == MAGIC:
        section = Section(start[8:12] == BIG_ENDIAN, len(state.interfaces))
    kind, length = (int.from_bytes(start[i : i + 4], section.order) for i in (0, 4))
    if kind not in (SECTION, INTERFACE) or place + length > data.size:
        return None
    if kind != SECTION:
        state.interfaces.append(section.add_interface(data[place : place + length].tobytes()))
    state.numbers[PLACE] += length
    return section
