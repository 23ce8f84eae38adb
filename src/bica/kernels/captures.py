"""Walking through packet captures byte by byte, and finding clocks that ran backwards.

A scan goes on from ``state`` and stops where it needs more bytes, where the outputs are full, or (pcapng) at a block
that the caller must look at. Where bytes make no sense it searches for the next record that does.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

# what a scan remembers between calls: indices into ``state``
PLACE, N_PACKETS, N_DAMAGED, N_SKIPPED, SEARCHING, LAST_SECOND, N_TIMELESS, N_HEADERLESS = range(8)
N_STATE = 8
RADIOTAP = 127  # the link type of IEEE 802.11 frames behind a radiotap header
LONGEST_PACKET = 1 << 18  # bytes; what capturing programs keep at most unless they say more
LONGEST_BLOCK = 1 << 24  # bytes of a pcapng block
RECORD_HEADER = 16  # bytes before each packet of classic pcap: seconds, fraction, length here, length on the air
LEAST_BLOCK = 12  # bytes of a pcapng block without content: kind, length, and the length again
PACKET_BLOCK = 32  # bytes of a pcapng packet block without its packet; the packet starts at byte 28
SECONDS_PER_DAY = 86_400
SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET = 0x0A0D0D0A, 1, 2, 3, 6  # kinds of pcapng blocks
LAST_KIND = 10  # the largest number of an ordinary kind
CUSTOM_KIND, KIND_BITS = 0xBAD, 0x7FFFFFFF  # the number of custom blocks, below a flag in the top bit
BIG_ENDIAN_MAGIC = 0x1A  # the first byte of a section's byte-order magic if it is big-endian
# of the radiotap fields 0 to 18, in bytes
FIELD_SIZE = np.array([8, 1, 1, 4, 2, 1, 1, 2, 2, 2, 1, 1, 1, 1, 2, 2, 1, 1, 8])
FIELD_ALIGNMENT = np.array([8, 1, 1, 2, 2, 1, 1, 2, 2, 2, 1, 1, 1, 1, 2, 2, 1, 1, 4])
CHANNEL_FIELD, ANTENNA_FIELD, EXTENDED_CHANNEL_FIELD = 3, 11, 18


@compiled
def number_at(data: Bytes, place: int, n_bytes: int, big: bool) -> int:
    """The unsigned number in ``n_bytes`` bytes from ``place`` on."""
    value = np.int64(0)
    for i in range(n_bytes):
        byte = data[place + i] if big else data[place + n_bytes - 1 - i]
        value = value << 8 | np.int64(byte)
    return int(value)


@compiled
def start_of_fields(data: Bytes, start: int, header: int) -> int:
    """Where the fields begin: after the words that list the present ones, whose top bit says that another follows."""
    place = 8
    while place <= header and number_at(data, start + place - 4, 4, False) >> 31:
        place += 4
    return place


@compiled
def radiotap_fields(data: Bytes, start: int, length: int, found: Integers) -> bool:
    """Put the frequency (MHz) and the antenna into ``found``, 0 and -1 if absent; False if there is no such header."""
    found[0], found[1] = 0, -1
    if length < 8 or data[start] != 0:
        return False
    header = number_at(data, start + 2, 2, False)
    if header < 8 or header > length:
        return False
    present = number_at(data, start + 4, 4, False)
    place = start_of_fields(data, start, header)
    for field in range(FIELD_SIZE.size):
        if not present >> field & 1:
            continue
        place += -place % FIELD_ALIGNMENT[field]
        if place + FIELD_SIZE[field] > header:
            return False
        if field == CHANNEL_FIELD:
            found[0] = number_at(data, start + place, 2, False)
        elif field == ANTENNA_FIELD:
            found[1] = data[start + place]
        elif field == EXTENDED_CHANNEL_FIELD and found[0] == 0:
            found[0] = number_at(data, start + place + 4, 2, False)
        place += FIELD_SIZE[field]
    return True


@compiled
def is_record(data: Bytes, place: int, size: int, big: bool, a_second: int, longest: int, near: int) -> bool:
    """Whether a packet of classic pcap may start here, within a day of the second ``near`` unless that is negative."""
    if place + RECORD_HEADER > size:
        return False
    length = number_at(data, place + 8, 4, big)
    sensible = 0 < length <= longest and length <= number_at(data, place + 12, 4, big) <= LONGEST_BLOCK
    if not sensible or number_at(data, place + 4, 4, big) >= a_second:
        return False
    return near < 0 or abs(number_at(data, place, 4, big) - near) <= SECONDS_PER_DAY


@compiled
def starts_again(data: Bytes, place: int, size: int, big: bool, a_second: int, longest: int, near: int) -> bool:
    """Whether, after damage, a record starts here and another one, or the end of the file, follows it."""
    if not is_record(data, place, size, big, a_second, longest, near):
        return False
    after = place + RECORD_HEADER + number_at(data, place + 8, 4, big)
    return after == size or is_record(data, after, size, big, a_second, longest, near)


@compiled
def scan_pcap(
    data: Bytes, last: bool, big: bool, a_second: int, longest: int, link: int, packets: Integers, state: Integers
) -> int:
    """Write packets of classic pcap as rows of ticks, interface, frequency and antenna; return how many."""
    found, n_found, size = np.empty(2, np.int64), 0, data.size
    while n_found < len(packets):
        place = state[PLACE]
        if size - place < RECORD_HEADER or (not last and size - place < 2 * (longest + RECORD_HEADER)):
            break
        near = state[LAST_SECOND] if state[N_PACKETS] else -1
        if state[SEARCHING]:
            good = starts_again(data, place, size, big, a_second, longest, near)
        else:
            good = is_record(data, place, size, big, a_second, longest, -1)
        length = number_at(data, place + 8, 4, big)
        if not good or place + RECORD_HEADER + length > size:
            state[SEARCHING] = 1
            state[N_SKIPPED] += 1
            state[PLACE] += 1
            continue
        state[N_DAMAGED] += state[SEARCHING]
        state[SEARCHING] = 0
        state[LAST_SECOND] = number_at(data, place, 4, big)
        packets[n_found, 0] = state[LAST_SECOND] * a_second + number_at(data, place + 4, 4, big)
        packets[n_found, 1] = 0
        found[0], found[1] = 0, -1
        if link == RADIOTAP and not radiotap_fields(data, place + RECORD_HEADER, length, found):
            state[N_HEADERLESS] += 1
        packets[n_found, 2:4] = found
        n_found += 1
        state[N_PACKETS] += 1
        state[PLACE] += RECORD_HEADER + length
    return n_found


@compiled
def block_length(data: Bytes, place: int, big: bool, searching: bool) -> int:
    """The length of the block that starts here; -1 if none does, 0 if more bytes are needed to decide."""
    kind = number_at(data, place, 4, big)
    if kind == SECTION:  # a section may change the order of bytes, which its length already follows
        if data.size - place < LEAST_BLOCK:
            return 0
        big = data[place + 8] == BIG_ENDIAN_MAGIC
    known = kind == SECTION or 0 < kind <= LAST_KIND or kind & KIND_BITS == CUSTOM_KIND
    length = number_at(data, place + 4, 4, big)
    if length % 4 or length < LEAST_BLOCK or length > LONGEST_BLOCK or (searching and not known):
        return -1
    if place + length > data.size:
        return 0
    return length if number_at(data, place + length - 4, 4, big) == length else -1


@compiled
def scan_pcapng(data: Bytes, last: bool, big: bool, links: Integers, packets: Integers, state: Integers) -> int:
    """Write packets of pcapng as rows of ticks, interface, frequency and antenna; return how many.

    Stops at the header of a section and at the description of an interface, which start at ``state[PLACE]`` then.
    """
    found, n_found = np.empty(2, np.int64), 0
    while n_found < len(packets):
        place = state[PLACE]
        if data.size - place < LEAST_BLOCK:
            break
        length = block_length(data, place, big, state[SEARCHING] == 1)
        if length == 0 and not last:
            break
        if length <= 0:
            state[SEARCHING] = 1
            state[N_SKIPPED] += 1
            state[PLACE] += 1
            continue
        state[N_DAMAGED] += state[SEARCHING]
        state[SEARCHING] = 0
        kind = number_at(data, place, 4, big)
        if kind in (SECTION, INTERFACE):
            break
        state[PLACE] += length
        if kind == SIMPLE_PACKET:
            state[N_TIMELESS] += 1
        if kind not in (PACKET, OLD_PACKET) or length < PACKET_BLOCK:
            continue
        interface = number_at(data, place + 8, 4 if kind == PACKET else 2, big)
        captured = number_at(data, place + 20, 4, big)
        if interface >= links.size or captured > length - PACKET_BLOCK:
            state[N_DAMAGED] += 1
            state[N_SKIPPED] += length
            continue
        high, low = number_at(data, place + 12, 4, big), number_at(data, place + 16, 4, big)
        packets[n_found, 0], packets[n_found, 1] = high << 32 | low, interface
        found[0], found[1] = 0, -1
        if links[interface] == RADIOTAP and not radiotap_fields(data, place + 28, captured, found):
            state[N_HEADERLESS] += 1
        packets[n_found, 2:4] = found
        n_found += 1
        state[N_PACKETS] += 1
    return n_found


NO_TIME = np.iinfo(np.int64).min  # the last time of a clock that has shown none


@compiled
def count_steps_back(
    clocks: NDArray[np.int64],
    times: NDArray[np.int64],
    last: NDArray[np.int64],
    n_steps: NDArray[np.int64],
    largest: NDArray[np.int64],
) -> None:
    """Go on counting, for every clock, how often a time is below its ``last`` one, and by how much at most."""
    for i in range(times.size):
        clock, time = clocks[i], times[i]
        if time < last[clock]:
            n_steps[clock] += 1
            largest[clock] = max(largest[clock], last[clock] - time)
        last[clock] = time
