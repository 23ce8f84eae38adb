"""Seeded ways to damage a file: its bytes, its lines, its numbers, its tree of values, and what is packed inside it."""

import ast
import copy
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tests.data.containers import zst

Rng = np.random.Generator
Mutator = Callable[[bytes, Rng], bytes]
MOST_BYTES = 1 << 20  # of a damaged file; what is larger may take more memory
TOKENS = [
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b'"',
    b"'",
    b"\n",
    b"\r",
    b",,,,",
    b"%%MatrixMarket",
    b"\xf4\x90\x80\x80",
    b"\xed\xa0\x80",
    b"[" * 3000,
    b'{"a":',
    b"(" * 300,
    b"1_0",
    b"-",
    b"\\u0000",
    b"\\ud800",
    b"\x1b[31m",
    b"x" * 140_000,
    "\u202e\u0661\u00b2".encode(),
]
NUMBERS = [
    *(b"-1 -0 00 01 1.0 0.5 1e999 -1e999 1e-999 nan inf -inf NaN Infinity null true false 0x1 1_0 1e5 2 3 7").split(
        b" "
    ),
    *(str(value).encode() for power in (15, 16, 31, 32, 53, 63, 64) for value in (2**power - 1, 2**power)),
    b"9" * 30,
    b"9" * 400,
    b"9" * 5000,
    b"1e300",
    b"5e-324",
    b"1e20",
    b"100000000",
    b"",
]
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
EXTREMES = [0, 1, 2, 255, 256, 65535, 65536, 1 << 24, 1 << 26, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 0xFFFFFF00]
VALUES = [None, True, False, 0, 1, -1, 2, 0.5, 1e300, 5e-324, 10**400, 2**63, "", "x", "\0", "\ud800", [], {}, [[]]]


def chosen(rng: Rng, things):
    return things[int(rng.integers(len(things)))]


def damaged(content: bytes, rng: Rng) -> bytes:
    """One to four things changed: bytes, a cut, a part twice, a part gone, a hostile piece, an integer."""
    result = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        place, other = sorted(rng.integers(0, len(result) + 1, 2).tolist())
        what = rng.integers(8)
        if what == 0 and place < len(result):
            result[place] = rng.integers(256)
        elif what == 1 and place < len(result):
            result[place] ^= 1 << int(rng.integers(8))
        elif what == 2:
            del result[other:]
        elif what == 3:
            result[place:place] = result[place:other]
        elif what == 4:
            del result[place:other]
        elif what == 5:
            result[place:place] = chosen(rng, TOKENS)
        elif what == 6:
            place -= place % 4
            result[place : place + 4] = chosen(rng, EXTREMES).to_bytes(4, chosen(rng, ["little", "big"]))
        else:
            result[place : place + 4] = int(rng.integers(1 << 32)).to_bytes(4, "little")
    return bytes(result[:MOST_BYTES])


def with_other_numbers(content: bytes, rng: Rng) -> bytes:
    """One to three numbers of a text replaced by hostile ones."""
    for _ in range(rng.integers(1, 4)):
        found = list(NUMBER.finditer(content))
        if found:
            place = chosen(rng, found)
            content = content[: place.start()] + chosen(rng, NUMBERS) + content[place.end() :]
    return content


def with_other_lines(content: bytes, rng: Rng) -> bytes:
    """Lines of a text swapped, doubled, dropped, joined, repeated a thousand times, or with a strange cell."""
    lines = content.splitlines(keepends=True)
    for _ in range(rng.integers(1, 4)):
        if not lines:
            break
        place, other = (int(rng.integers(len(lines))) for _ in range(2))
        what = rng.integers(8)
        if what == 0:
            lines[place], lines[other] = lines[other], lines[place]
        elif what == 1:
            lines[place:place] = [lines[other]] * int(chosen(rng, [1, 2, 70, 1000]))
        elif what == 2:
            del lines[place]
        elif what == 3:
            lines[place] = lines[place].rstrip(b"\r\n")
        elif what == 4:
            lines[place] = lines[place].rstrip(b"\n") + chosen(rng, [b"\r\n", b"\r", b"\n\n", b"\0\n", b"\x85"])
        elif what == 5:
            lines[place] = (lines[place].rstrip(b"\n") * int(chosen(rng, [2, 70, 2000])))[: MOST_BYTES // 4] + b"\n"
        else:
            cells = re.split(rb"([,;\t ])", lines[place])
            cells[int(rng.integers(len(cells)))] = chosen(rng, chosen(rng, [TOKENS, NUMBERS]))
            lines[place] = b"".join(cells)
    return b"".join(lines)[:MOST_BYTES]


def with_other_values(content: bytes, rng: Rng) -> bytes:
    """One to three values of a JSON document, or of one of its lines, replaced, dropped, doubled or nested deeply."""
    lines = content.splitlines() if content.count(b"\n") > 1 and content.startswith(b'{"') else [content]
    place = int(rng.integers(len(lines)))
    try:
        tree = json.loads(lines[place])
    except ValueError:
        return damaged(content, rng)
    for _ in range(rng.integers(1, 4)):
        tree = _changed(tree, rng)
    try:
        lines[place] = json.dumps(tree).encode()
    except RecursionError:
        return damaged(content, rng)
    return b"\n".join(lines)


def _changed(tree, rng: Rng):
    """The tree with one random node changed."""
    if isinstance(tree, dict | list) and tree and rng.random() < 0.8:
        key = chosen(rng, list(tree)) if isinstance(tree, dict) else int(rng.integers(len(tree)))
        what = rng.random()
        if what < 0.6:
            tree[key] = _changed(tree[key], rng)
        elif what < 0.75:
            del tree[key]
        elif isinstance(tree, list):
            tree.append(tree[key])
        else:
            tree[str(chosen(rng, VALUES))] = tree[key]
        return tree
    if rng.random() < 0.05:
        return json.loads("[" * 900 + "]" * 900)
    return copy.deepcopy(chosen(rng, VALUES))  # what is empty may be filled later


def within_gzip(inner: Mutator) -> Mutator:
    return lambda content, rng: gzip.compress(inner(gzip.decompress(content), rng), 1, mtime=0)


def within_zst(inner: Mutator) -> Mutator:
    def mutated(content: bytes, rng: Rng) -> bytes:
        plain = pa.input_stream(pa.BufferReader(content), compression="zstd").read()
        return zst(inner(plain, rng))

    return mutated


def within_zip(inner: Mutator) -> Mutator:
    """One member changed, and perhaps one dropped, renamed or there twice; sums are right again."""

    def mutated(content: bytes, rng: Rng) -> bytes:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        place = int(rng.integers(len(members)))
        name, data = members[place]
        what = rng.random()
        if what < 0.8:
            members[place] = name, inner(data, rng)
        elif what < 0.87:
            del members[place]
        elif what < 0.94:
            members[place] = chosen(rng, ["x.npy", "../x", "", name.upper()]), data
        else:
            members.append((name + " 2", inner(data, rng)))
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members:
                archive.writestr(zipfile.ZipInfo(name), data)
        return file.getvalue()

    return mutated


DESCRIPTIONS = [
    "|b1",
    "|u1",
    "<i8",
    ">i8",
    "<f8",
    "<f2",
    "<f16",
    "<c16",
    "|O",
    "<U3",
    "|S3",
    "<M8[s]",
    "|V8",
    "[('a', '<i8')]",
]


def with_other_header(content: bytes, rng: Rng) -> bytes:
    """An array file whose header says something else, at its right length; the cells stay, or are damaged."""
    if not content.startswith(b"\x93NUMPY") or len(content) < 12:
        return damaged(content, rng)
    length = int.from_bytes(content[8:10], "little")
    header, cells = content[10 : 10 + length], content[10 + length :]
    what = rng.random()
    if what < 0.5:
        header = with_other_numbers(header, rng)
    elif what < 0.7:
        kind = chosen(rng, DESCRIPTIONS)
        header = re.sub(rb"'descr': [^,]+", b"'descr': " + (kind if kind[0] == "[" else repr(kind)).encode(), header)
    elif what < 0.8:
        told = ast.literal_eval(header.decode("latin-1").strip())
        told[chosen(rng, list(told))] = chosen(rng, [None, (), (1,), (2, 3, 4), (0, 10**9), (10**9, 0), True, "x"])
        header = repr(told).encode()
    elif what < 0.9:
        header = damaged(header, rng)[:60_000]
    else:
        cells = damaged(cells, rng)
    header = header[:65_000].rstrip() + b"\n"
    return content[:8] + len(header).to_bytes(2, "little") + header + cells


def with_other_footer(content: bytes, rng: Rng) -> bytes:
    """A Parquet file damaged where it says what it holds, with the footer's length put right most of the time."""
    length = int.from_bytes(content[-8:-4], "little")
    if not 0 < length < len(content) - 8:
        return damaged(content, rng)
    body, footer = content[: -8 - length], bytearray(content[-8 - length : -8])
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(len(footer)))
        if rng.random() < 0.5:
            footer[place] = rng.integers(256)
        else:
            footer[place] ^= 1 << int(rng.integers(8))
    told = len(footer) if rng.random() < 0.9 else chosen(rng, EXTREMES)
    return body + bytes(footer) + told.to_bytes(4, "little") + b"PAR1"


NAMES = ["a", "b", "", " ", "\0", "a" * 300, "A", "\u202e", "bica_counts", "rows counted", "x\ny", '"', "'"]
CELLS = [
    (pa.bool_(), [True, False, None]),
    (pa.int64(), [0, 1, None, 2, -1, 2**62]),
    (pa.uint64(), [0, 1, 2**64 - 1]),
    (pa.float64(), [0.0, 1.0, None, float("nan"), float("inf"), 5e-324]),
    (pa.float16(), [np.float16(0), np.float16(1)]),
    (pa.string(), ["0", "1", "", "yes", None, "\0"]),
    (pa.binary(), [b"0", b"\xff"]),
    (pa.decimal128(38, 2), [None]),
    (pa.timestamp("ns"), [0, 1, 2**62]),
    (pa.date32(), [0, 1]),
    (pa.list_(pa.int8()), [[0], [1], []]),
    (pa.struct([("a", pa.int8())]), [{"a": 1}]),
    (pa.dictionary(pa.int8(), pa.string()), ["0", "1"]),
    (pa.null(), [None]),
]


def of_other_types(_: bytes, rng: Rng) -> bytes:
    """A whole Parquet file with columns of any type and name."""
    n_rows, columns = int(chosen(rng, [0, 1, 3, 20])), []
    for _ in range(rng.integers(1, 5)):
        kind, cells = chosen(rng, CELLS)
        columns.append(pa.array([chosen(rng, cells) for _ in range(n_rows)], kind))
    schema = pa.schema([pa.field(chosen(rng, NAMES), column.type) for column in columns])
    if rng.random() < 0.3:
        schema = schema.with_metadata({"bica_counts": "1"})
    file = io.BytesIO()
    pa.parquet.write_table(pa.Table.from_arrays(columns, schema=schema), file)
    return file.getvalue()
