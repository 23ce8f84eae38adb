"""One small valid file of every format, how a command reads it, and the ways to damage it."""

import atexit
import gzip
import io
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import scipy.io
import scipy.sparse

from bica import OrMixture
from bica.applications.spectrum.field import Field
from bica.applications.spectrum.survey import field_text, read_field
from bica.cli.commands.report import read_times
from bica.cli.commands.watch import _rows
from bica.compare.contest import SCORES
from bica.compare.run import read_plan, run_plan
from bica.compare.summary import standings
from bica.data.patterns import PatternCounts
from bica.data.readers.arrays import names_in
from bica.data.rows import Rows, read_complete
from bica.data.slots.event_files import add_files
from bica.data.slots.store import EventStore, event_store
from bica.data.slots.tables import plan_tables, read_outages, slot_grid
from bica.methods import method_named
from bica.model.fit import Fit
from bica.pipeline import learn
from tests.attack.mutators import (
    Mutator,
    damaged,
    of_other_types,
    with_other_footer,
    with_other_header,
    with_other_lines,
    with_other_numbers,
    with_other_values,
    within_gzip,
    within_zip,
    within_zst,
)
from tests.cli.conftest import MODEL
from tests.data.containers import workbook, zst
from tests.reference import capture_writer

NAMES = ("door", "hall", "yard", "roof")
ROWS = np.random.default_rng(0).random((12, 4)) < 0.4
LEARNED_CELLS = 4000  # larger tables are read, but nothing is learned from them
FINDBICA = method_named("findbica")


def lines_of(rows: Sequence[Sequence[object]]) -> bytes:
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode()


CSV = lines_of([NAMES, *ROWS.astype(int).tolist()])
JSON = b"".join(json.dumps(dict(zip(NAMES, map(int, row), strict=True))).encode() + b"\n" for row in ROWS)
LOSSY = OrMixture([[1, 0], [1, 1]], [0.3, 0.2], reach=[[0.5, 0], [1, 0.7]], sensors=["a", "b"])
WATCHED = OrMixture([[1, 0], [1, 0], [0, 1], [0, 1]], [0.3, 0.4], sensors=NAMES)
EVENTS = b"time,sensor,channel\n2024-05-01T12:00:00,a,1\n2024-05-01 12:00:01Z,b,1\n2024-05-01 12:00:03.5,a,6\n"
PACKETS = [(1_700_000_000_000_000 + 10**6 * k, capture_writer.frame(2412 + 25 * (k % 2))) for k in range(4)]
PCAPNG = (
    capture_writer.section()
    + capture_writer.interface(name=b"wlan0", resolution=6, offset=1)
    + b"".join(capture_writer.enhanced(ticks, data) for ticks, data in PACKETS)
    + capture_writer.simple(PACKETS[0][1])
)
RECORD = {"settings": "{}", "problem": "rows", "fingerprint": "f", "failure": None, "told": None, "verdict": "fits"}
RECORDS = [
    {"contender": "truth", "seed": seed, "sources": "[[0, 1]]", **RECORD, **dict.fromkeys(SCORES, 0.5)}
    for seed in (1, 2)
]
PLAN = b'methods = ["likelihood", "asso"]\nruns = 2\n[[table]]\npath = "t.csv"\nsources = 3\n'
PLAN += b'[[simulated]]\nnetwork = "bars 3"\nrows = [100, 500]\nflips = [0, 0.05]\n'


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: what its name ends in, whole examples, how it is used, and ways to damage it."""

    ending: str
    examples: tuple[bytes, ...]
    read: Callable[[Path], object]
    mutators: tuple[Mutator, ...] = (damaged,)


def written(write, ending: str = "") -> bytes:
    """What a function writes into a file of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"file{ending}")
        write(path)
        return path.read_bytes()


def packed_by(write) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def use_table(path: Path, **reading: object) -> None:
    """Count the rows, read them in order, and learn from them if they are few."""
    data = PatternCounts.of(path, **reading)
    if "sample_weight" not in reading and "parquet" not in path.suffix:
        Rows.of(path, **reading)
    if data.n_sensors * len(data.weights) <= LEARNED_CELLS:
        learn(data, FINDBICA, np.random.default_rng(0))


class SharedStore:
    """A store of events for a hundred files, emptied before each: starting an engine takes longer than the files."""

    def __init__(self) -> None:
        self._open, self._n_uses = ExitStack(), 0
        atexit.register(self._open.close)

    def emptied(self) -> EventStore:
        if self._n_uses % 100 == 0:
            self._open.close()
            self._store = self._open.enter_context(event_store())
        self._n_uses += 1
        self._store.engine.execute("DELETE FROM events")
        return self._store


SHARED = SharedStore()


def use_events(path: Path) -> None:
    store = SHARED.emptied()
    add_files(store, [str(path)], skip_bad=True)
    plan_tables(store, slot_grid(store, 10**6), sensors=["a"])


def use_model(path: Path) -> None:
    model = Fit.load(path).model
    if model.n_sensors <= 64 and model.n_sources <= 64:
        model.decode(np.zeros((1, model.n_sensors), bool), nearest=True)


@dataclass(frozen=True)
class Known:
    """A job whose record is in the file, unless that was damaged."""

    record: dict[str, object]

    def key(self) -> dict[str, object]:
        return {part: self.record[part] for part in ("contender", "settings", "problem", "fingerprint", "seed")}

    def perform(self) -> dict[str, object]:
        return self.record


def use_watched(path: Path) -> None:
    for _ in _rows(str(path), WATCHED.sensors):
        pass


def use_outages(path: Path) -> None:
    read_outages(SHARED.emptied(), path)


TEXT = (damaged, with_other_numbers, with_other_lines)
TREE = (damaged, with_other_numbers, with_other_values)
BINARY = (damaged, damaged, with_other_footer)
FORMATS = {
    "csv": Format(".csv", (CSV,), use_table, TEXT),
    "tsv": Format(".tsv", (CSV.replace(b",", b"\t"),), use_table, TEXT),
    "json lines": Format(".jsonl", (JSON,), use_table, (*TREE, with_other_lines)),
    "gzip": Format(".csv.gz", (gzip.compress(CSV, mtime=0),), use_table, (damaged, *map(within_gzip, TEXT))),
    "zstd": Format(".csv.zst", (zst(CSV),), use_table, (damaged, *map(within_zst, TEXT))),
    "weights": Format(
        ".csv",
        (lines_of([("often", *NAMES), *([k, *row] for k, row in enumerate(ROWS.astype(int).tolist(), 1))]),),
        lambda path: use_table(path, sample_weight="often"),
        (with_other_numbers,),
    ),
    "baskets": Format(
        ".txt",
        (lines_of([[NAMES[i] for i in np.flatnonzero(row)] for row in ROWS if row.any()]),),
        lambda path: use_table(path, baskets=True),
        TEXT,
    ),
    "long table": Format(
        ".csv",
        (lines_of([("night", "alarm"), *((f"n{i}", NAMES[j]) for i, j in np.argwhere(ROWS))]),),
        lambda path: use_table(path, long=("night", "alarm")),
        TEXT,
    ),
    "workbook": Format(
        ".xlsx",
        (written(lambda path: workbook(path, [NAMES, *ROWS.astype(int).tolist()]), ".xlsx"),),
        use_table,
        (damaged, within_zip(damaged), within_zip(with_other_numbers)),
    ),
    "parquet": Format(
        ".parquet",
        (packed_by(lambda file: pa.parquet.write_table(pa.table(dict(zip(NAMES, ROWS.T, strict=True))), file)),),
        use_table,
        (*BINARY, of_other_types),
    ),
    "counts": Format(".parquet", (written(PatternCounts.of(ROWS, sensors=NAMES).save, ".parquet"),), use_table, BINARY),
    "npy": Format(
        ".npy",
        tuple(packed_by(lambda file, rows=rows: np.save(file, rows)) for rows in (ROWS, ROWS.astype(float))),
        use_table,
        (damaged, with_other_header, with_other_header),
    ),
    "npz": Format(
        ".npz",
        (packed_by(lambda file: scipy.sparse.save_npz(file, scipy.sparse.csr_array(ROWS))),),
        use_table,
        (damaged, within_zip(damaged), within_zip(with_other_header)),
    ),
    "mtx": Format(
        ".mtx",
        tuple(packed_by(lambda file, m=m: scipy.io.mmwrite(file, m)) for m in (scipy.sparse.coo_array(ROWS), ROWS * 1)),
        use_table,
        TEXT,
    ),
    "names": Format(".txt", (b"column\ndoor\nhall\n",), names_in, TEXT),
    "times": Format(".txt", (b"time\n2024-05-01T12:00\n2024-05-02\n",), lambda path: read_times(str(path)), TEXT),
    "watched rows": Format(".csv", (CSV, JSON), use_watched, (*TEXT, with_other_values)),
    "event log": Format(".csv", (EVENTS,), use_events, TEXT),
    "event lines": Format(".jsonl", (b'{"time": 1714564801, "sensor": "a"}\n' * 3,), use_events, TREE),
    "outages": Format(".csv", (b"sensor,start,end\na,2024-05-01,2024-05-02\nb,,\n",), use_outages, TEXT),
    "pcap": Format(".pcap", (capture_writer.pcap(PACKETS), capture_writer.pcap(PACKETS, ">")), use_events),
    "pcapng": Format(".pcapng", (PCAPNG,), use_events),
    "model": Format(".json", (json.dumps(MODEL).encode(), written(LOSSY.save)), use_model, TREE),
    "field": Format(".json", (field_text(Field([[1, 2], [30, 4]], [[5, 5]])).encode(),), read_field, TREE),
    "monitors": Format(".csv", (b"monitor,x,y\nroof,3,4\nyard,5,6\n",), read_field, TEXT),
    "records": Format(
        ".jsonl",
        (b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS),),
        lambda path: standings(run_plan([Known(record) for record in RECORDS], path)),
        (*TREE, with_other_lines),
    ),
    "activity": Format(".csv", (CSV,), lambda path: read_complete(str(path), NAMES), TEXT),
    "plan": Format(".toml", (PLAN,), read_plan, TEXT),
}


def mutated(name: str, seed: int, number: int) -> bytes:
    """Input ``number`` of a seed: an example of the format, damaged in one of its ways, now and then in two."""
    format_ = FORMATS[name]
    rng = np.random.default_rng([seed, number, *name.encode()])
    content = format_.examples[int(rng.integers(len(format_.examples)))]
    content = format_.mutators[int(rng.integers(len(format_.mutators)))](content, rng)
    return damaged(content, rng) if rng.random() < 0.1 and content else content
