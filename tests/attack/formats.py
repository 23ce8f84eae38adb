"""One small valid file of every format, how it is read, and seeded ways to damage it."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import scipy.io
import scipy.sparse

from bica.applications.spectrum.field import Field
from bica.applications.spectrum.survey import field_text, read_field
from bica.compare.run import read_records
from bica.data.patterns import PatternCounts
from bica.data.slots.event_files import add_files
from bica.data.slots.grid import slot_grid
from bica.data.slots.store import event_store
from bica.data.slots.tables import plan_tables
from bica.model.files import read_document
from tests.cli.conftest import MODEL
from tests.data.containers import zst
from tests.reference import capture_writer

ROWS = np.random.default_rng(0).random((12, 4)) < 0.4
CSV = b"door,hall,yard,roof\n" + b"".join(b",".join(b"%d" % cell for cell in row) + b"\n" for row in ROWS)
JSON = b"".join(json.dumps({f"x{i}": int(cell) for i, cell in enumerate(row)}).encode() + b"\n" for row in ROWS)


def written(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def read_events(path: Path) -> None:
    with event_store() as store:
        add_files(store, [str(path)], skip_bad=True)
        plan_tables(store, slot_grid(store, 10**6, "0", "1"), sensors=["a"])


FORMATS = {
    "csv": (CSV, PatternCounts.of),
    "tsv": (CSV.replace(b",", b"\t"), PatternCounts.of),
    "jsonl": (JSON, PatternCounts.of),
    "csv.gz": (gzip.compress(CSV, mtime=0), PatternCounts.of),
    "csv.zst": (zst(CSV), PatternCounts.of),
    "parquet": (
        written(lambda file: pa.parquet.write_table(pa.table({f"x{i}": ROWS[:, i] for i in range(4)}), file)),
        PatternCounts.of,
    ),
    "npy": (written(lambda file: np.save(file, ROWS)), PatternCounts.of),
    "npz": (written(lambda file: scipy.sparse.save_npz(file, scipy.sparse.csr_array(ROWS))), PatternCounts.of),
    "mtx": (written(lambda file: scipy.io.mmwrite(file, scipy.sparse.coo_array(ROWS))), PatternCounts.of),
    "events.csv": (b"time,sensor\n2024-05-01T12:00:00,a\n1714564801,b\n", read_events),
    "pcap": (capture_writer.pcap([(10**6 * k, capture_writer.frame(2412)) for k in range(4)]), read_events),
    "model.json": (json.dumps(MODEL).encode(), read_document),
    "field.json": (field_text(Field([[1, 2], [30, 4]])).encode(), read_field),
    "field.csv": (b"monitor,x,y\nroof,3,4\nyard,5,6\n", read_field),
    "records": (b'{"contender": "truth", "seed": 1}\n{"contender": "truth", "seed": 2}\n', read_records),
}
TOKENS = [
    b"\0",
    b"\xff\xfe",
    b'"',
    b"\n",
    b"\r",
    b",,,,",
    b"-1",
    b"1e999",
    b"nan",
    b"9" * 30,
    b"9" * 5000,
    b"[" * 3000,
    b'{"a":',
    b"null",
    b"%%MatrixMarket",
    b"\xf4\x90\x80\x80",
    b"(" * 300,
    b"1_0",
]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The file with one to four things changed: bytes, a cut, a part twice, a part gone, a hostile piece, a number."""
    result = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        place, other = sorted(rng.integers(0, len(result) + 1, 2).tolist())
        what = rng.integers(7)
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
            result[place:place] = TOKENS[rng.integers(len(TOKENS))]
        else:
            result[place : place + 4] = int(rng.integers(1 << 32)).to_bytes(4, "little")
    return bytes(result)
