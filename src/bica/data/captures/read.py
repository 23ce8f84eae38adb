"""One door for captures, and what their packets say as events: which sniffer heard something on which channel."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.captures.packets import (
    HEADER,
    PCAPNG_MAGIC,
    CaptureState,
    Packets,
    PcapHeader,
    open_bytes,
    pieces_of,
    read_pcap,
    read_pcapng,
)
from bica.data.slots.store import EventStore
from bica.errors import DataError
from bica.progress import tracked

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
