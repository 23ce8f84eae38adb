"""Compressed files must be whole: the engine that unpacks them may take a cut one for a short one."""

import gzip
import os
import zlib
from pathlib import Path
from typing import BinaryIO, Literal

from bica.errors import DataError

Compression = Literal["none", "gzip", "zstd"]
SUFFIXES: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
ZSTD_FRAME = 0xFD2FB528
ZSTD_SKIPPABLE = 0x184D2A50  # and the fifteen numbers after it


def check_whole(path: Path, compression: Compression) -> None:
    """Refuse a compressed file that is cut or damaged; gzip is unpacked once for that, zstd only walked over."""
    try:
        if compression == "gzip":
            _unpack_gzip(path)
        elif compression == "zstd":
            with path.open("rb") as file:
                _walk_zstd(file)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{path} is cut or damaged: it cannot be unpacked as {compression}") from None


def _unpack_gzip(path: Path) -> None:
    if not path.stat().st_size:
        raise EOFError
    with gzip.open(path) as file:  # compares every checksum on the way
        while file.read(1 << 20):
            pass


def _walk_zstd(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    while not size or file.tell() < size:
        magic = _number(file, 4)
        if magic & ~15 == ZSTD_SKIPPABLE:
            _skip(file, _number(file, 4), size)
        elif magic == ZSTD_FRAME:
            _walk_frame(file, size)
        else:
            raise EOFError


def _walk_frame(file: BinaryIO, size: int) -> None:
    """Pass over one frame: its header, its blocks, its checksum (RFC 8878, section 3.1.1)."""
    descriptor = _number(file, 1)
    single_segment = bool(descriptor & 32)
    window = 0 if single_segment else 1
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    content = (int(single_segment), 2, 4, 8)[descriptor >> 6]
    _skip(file, window + dictionary + content, size)
    last = False
    while not last:
        block = _number(file, 3)
        last, kind = bool(block & 1), block >> 1 & 3
        _skip(file, 1 if kind == 1 else block >> 3, size)
    _skip(file, 4 if descriptor & 4 else 0, size)


def _number(file: BinaryIO, n_bytes: int) -> int:
    raw = file.read(n_bytes)
    if len(raw) < n_bytes:
        raise EOFError
    return int.from_bytes(raw, "little")


def _skip(file: BinaryIO, n_bytes: int, size: int) -> None:
    if file.seek(n_bytes, os.SEEK_CUR) > size:
        raise EOFError
