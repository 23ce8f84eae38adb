"""What is kept of captured packets, and the bytes of a capture, piece by piece."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bica.errors import DataError
from bica.kernels.packets import N_DAMAGED, N_HEADERLESS, N_PACKETS, N_SKIPPED, N_STATE, N_TIMELESS, SEARCHING

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
