"""Writes packet captures field by field, as the formats say; shares nothing with the reader."""

import struct

FIELDS = [  # the first fields of radiotap: bit, alignment, format
    (0, 8, "<Q"),
    (1, 1, "<B"),
    (2, 1, "<B"),
    (3, 2, "<HH"),
    (4, 2, "<BB"),
    (5, 1, "<b"),
    (6, 1, "<b"),
    (7, 2, "<H"),
    (8, 2, "<H"),
    (9, 2, "<H"),
    (10, 1, "<b"),
    (11, 1, "<B"),
    (12, 1, "<B"),
    (13, 1, "<B"),
    (14, 2, "<H"),
    (15, 2, "<H"),
    (16, 1, "<B"),
    (17, 1, "<B"),
    (18, 4, "<IHBB"),
]


def radiotap(values, extra_words=0):
    """A header with these fields: bit -> tuple of values."""
    words = [sum(1 << bit for bit in values)] + [0] * extra_words
    words = [word | (1 << 31 if i < extra_words else 0) for i, word in enumerate(words)]
    body = b"".join(struct.pack("<I", word) for word in words)
    for bit, alignment, layout in FIELDS:
        if bit in values:
            body += b"\xee" * (-(4 + len(body)) % alignment)
            body += struct.pack(layout, *values[bit])
    return struct.pack("<BBH", 0, 0, 4 + len(body)) + body


def frame(frequency, antenna=0):
    """A packet as a sniffer keeps it."""
    return radiotap({0: (1,), 1: (0,), 3: (frequency, 0x80), 5: (-50,), 11: (antenna,)}) + b"\x80\x00" + bytes(22)


def pcap(packets, order="<", a_second=10**6, link=127, snaplen=65535):
    """Packets are (ticks since 1970, bytes)."""
    magic = {10**6: 0xA1B2C3D4, 10**9: 0xA1B23C4D}[a_second]
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snaplen, link)]
    return b"".join(parts + [pcap_record(ticks, data, order, a_second) for ticks, data in packets])


def pcap_record(ticks, data, order="<", a_second=10**6):
    return struct.pack(f"{order}IIII", ticks // a_second, ticks % a_second, len(data), len(data)) + data


def block(kind, body, order="<"):
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + length + body + length


def section(order="<"):
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def option(code, value, order="<"):
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def interface(order="<", name=b"", resolution=None, offset=None, link=127):
    options = option(2, name, order) if name else b""
    options += b"" if resolution is None else option(9, bytes([resolution]), order)
    options += b"" if offset is None else option(14, struct.pack(f"{order}q", offset), order)
    return block(
        1, struct.pack(f"{order}HHI", link, 0, 0) + options + (option(0, b"", order) if options else b""), order
    )


def enhanced(ticks, data, order="<", number=0):
    head = struct.pack(f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(6, head + data, order)


def simple(data, order="<"):
    return block(3, struct.pack(f"{order}I", len(data)) + data, order)


def obsolete(ticks, data, order="<", number=0):
    head = struct.pack(f"{order}HHIIII", number, 0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(2, head + data, order)
