"""Classic pcap: one header, then a record a packet; times in micro- or nanoseconds, bytes in either order."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bica.data.captures.packets import BATCH, CaptureState, Packets, microseconds_of
from bica.kernels.packets import LONGEST_BLOCK, LONGEST_PACKET, N_SKIPPED, PLACE, SEARCHING, scan_pcap

MAGIC = {0xA1B2C3D4: 10**6, 0xA1B23C4D: 10**9}  # and how many ticks a second has
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
            if len(start) >= HEADER and struct.unpack_from(f"{order}I", start)[0] in MAGIC:
                magic, longest, link = struct.unpack_from(f"{order}I12xII", start)
                longest = min(max(longest, LONGEST_PACKET), LONGEST_BLOCK // 4)
                return cls(order == ">", MAGIC[magic], longest, link & 0x0FFFFFFF)
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
