import gc
import gzip
import io
import sys
import tempfile
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from bica.data.columns import Options
from bica.data.patterns import PatternCounts
from bica.data.readers.text import arriving_table
from bica.data.tables import open_stream, open_table
from bica.errors import DataError
from tests.data.containers import zst

ROWS = np.array([[1, 0, 1], [0, 0, 1], [1, 0, 1]])
CSV = b"x0,x1,x2\n1,0,1\n0,0,1\n1,0,1\n"
JSON = b'\n{"x0": 1, "x1": 0, "x2": 1}\n{"x0": 0, "x1": 0, "x2": 1}\n{"x0": 1, "x1": 0, "x2": 1}\n'


def written(write):
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


KINDS = {
    "csv": CSV,
    "csv with a mark": b"\xef\xbb\xbf" + CSV,
    "csv without names": CSV.split(b"\n", 1)[1],
    "csv.gz": gzip.compress(CSV),
    "csv.zst": zst(CSV),
    "jsonl": JSON,
    "jsonl.gz": gzip.compress(JSON),
    "jsonl.zst": zst(JSON),
    "parquet": written(lambda b: pa.parquet.write_table(pa.table({f"x{i}": ROWS[:, i] for i in range(3)}), b)),
    "npy": written(lambda b: np.save(b, ROWS)),
    "npz": written(lambda b: scipy.sparse.save_npz(b, scipy.sparse.csr_array(ROWS))),
    "mtx": written(lambda b: scipy.io.mmwrite(b, scipy.sparse.coo_array(ROWS))),
}


@pytest.fixture
def spool(tmp_path, monkeypatch):
    """Feed standard input, and tell which files stand in the folder for temporary ones."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gc.freeze()  # what is there already need not be looked through by every gc.collect()

    def feed(content):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        return lambda: list(tmp_path.iterdir())

    yield feed
    gc.unfreeze()


@pytest.mark.parametrize("content", KINDS.values(), ids=KINDS)
def test_the_kind_is_told_by_the_first_bytes_and_nothing_stays_behind(spool, content):
    files = spool(content)
    assert PatternCounts.of("-") == PatternCounts.of(ROWS)
    gc.collect()
    assert files() == []


def test_a_table_may_be_read_more_than_once_while_it_lives(spool):
    files = spool(CSV)
    table = open_table("-")
    assert [len(chunk.words) for chunk in table.chunks()] == [len(chunk.words) for chunk in table.chunks()] == [3]
    assert len(files()) == 1
    del table
    gc.collect()
    assert files() == []


def test_rows_under_way_keep_the_file(spool):
    spool(CSV)
    chunks = open_table("-").chunks()
    gc.collect()
    assert len(next(chunks).words) == 3


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n0,1\n1\n", b"\x1f\x8bnot gzip", b"PAR1 cut", b'{"a": 1\n', b"a,a\n1,1\n", b"a\n1\n\xff\n"]
)
def test_bad_input_is_refused_without_the_name_of_a_file_and_leaves_none(spool, content):
    files = spool(content)
    with pytest.raises(DataError) as raised:
        PatternCounts.of("-")
    assert "bica-" not in str(raised.value)
    del raised
    gc.collect()
    assert files() == []


def test_an_interrupt_while_reading_leaves_nothing(spool, monkeypatch):
    files = spool(b"")

    class Interrupted:
        def read(self, size):
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Interrupted()))
    with pytest.raises(KeyboardInterrupt):
        PatternCounts.of("-")
    assert files() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_of_text_has_the_rows_of_the_whole_text_and_others_are_kept_first(kind, monkeypatch):
    stream = io.BufferedReader(io.BytesIO(KINDS[kind]))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    table = open_stream(("x0", "x1", "x2"))
    if kind not in ("csv", "csv with a mark", "csv without names", "jsonl"):
        assert table is None
        assert stream.read() == KINDS[kind]  # nothing of it is lost
        return
    assert table.sensors == ("x0", "x1", "x2")
    assert PatternCounts.of_chunks(table.chunks(), table.sensors) == PatternCounts.of(ROWS, sensors=table.sensors)


class Slow(io.RawIOBase):
    """A stream on which some bytes arrive at a time."""

    def __init__(self, pieces):
        self.pieces = list(pieces)

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self.pieces.pop(0) if self.pieces else b""
        buffer[: len(piece)] = piece
        return len(piece)


@given(st.lists(st.integers(0, len(CSV)), max_size=8))
def test_however_the_bytes_arrive_the_rows_are_the_same(cuts):
    pieces = [CSV[i:k] for i, k in pairwise([0, *sorted(cuts), len(CSV)]) if k > i]
    table = arriving_table(io.BufferedReader(Slow(pieces)), Options(), ())
    assert np.concatenate([chunk.words[:, 0] for chunk in table.chunks()]).tolist() == [5, 4, 5]


def test_what_is_wrong_on_a_stream_is_named_by_its_line():
    table = arriving_table(io.BufferedReader(Slow([b"a,b\n0,1\n", b"\n1,1\n1,7\n"])), Options(), ())
    chunks = table.chunks()
    assert len(next(chunks).words) == 1
    with pytest.raises(DataError, match="line 5 of standard input, column 'b' holds 7"):
        next(chunks)
