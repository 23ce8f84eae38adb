"""Tables in an object store, against a stand-in on this machine that speaks as much of S3 as reading takes."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.data.tables import open_table
from bica.errors import DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ROWS = np.random.default_rng(0).random((3000, 5)) < 0.3
NAMES = ["a", "b", "c", "d", "e"]


class Store(BaseHTTPRequestHandler):
    """Objects by their path, listed by prefix."""

    objects: dict[str, bytes] = {}  # noqa: RUF012 - one store for all requests of a test

    def do_HEAD(self):
        found = self.objects.get(unquote(urlsplit(self.path).path))
        self.answer(404 if found is None else 200, b"", 0 if found is None else len(found))

    def do_GET(self):
        asked = urlsplit(self.path)
        path, query = unquote(asked.path), parse_qs(asked.query)
        if "list-type" in query:
            self.answer(200, self.listed(path.rstrip("/"), query).encode())
        elif path not in self.objects:
            self.answer(404, b"")
        else:
            whole = self.objects[path]
            first, last = self.headers.get("Range", f"bytes=0-{len(whole) - 1}").removeprefix("bytes=").split("-")
            part = whole[int(first) : int(last) + 1]
            self.answer(206, part, more={"Content-Range": f"bytes {first}-{int(first) + len(part) - 1}/{len(whole)}"})

    def listed(self, bucket, query):
        prefix = query.get("prefix", [""])[0]
        keys = [key.removeprefix(f"{bucket}/") for key in sorted(self.objects) if key.startswith(f"{bucket}/{prefix}")]
        entries = "".join(
            f"<Contents><Key>{key}</Key><Size>{len(self.objects[f'{bucket}/{key}'])}</Size>"
            "<LastModified>2024-05-01T00:00:00.000Z</LastModified></Contents>"
            for key in keys
        )
        head = f"<Name>{bucket[1:]}</Name><Prefix>{prefix}</Prefix><KeyCount>{len(keys)}</KeyCount>"
        return f"<ListBucketResult>{head}<IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"

    def answer(self, status, content, size=None, more=()):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content) if size is None else size), **dict(more)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(Store, "objects", {})
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=here"
        server.shutdown()


def put(path, rows):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))), sink)
    Store.objects[path] = sink.getvalue().to_pybytes()


def test_all_files_below_a_prefix_are_one_table(store):
    for day, first in enumerate(range(0, 3000, 1000)):
        put(f"/events/week/day={day}/part.parquet", ROWS[first : first + 1000])
    put("/events/other/part.parquet", ~ROWS)
    Store.objects["/events/week/_SUCCESS"] = b""
    table = open_table(f"s3://someone:secret@events/week?{store}")
    assert table.sensors == tuple(NAMES)
    assert PatternCounts.of(table) == PatternCounts.of(ROWS, sensors=NAMES)
    assert PatternCounts.of(f"s3://someone:secret@events/week/day=1/part.parquet?{store}").n_samples == 1000


def test_what_is_not_there_is_one_sentence_that_keeps_the_secret(store):
    with pytest.raises(DataError, match="cannot be read") as caught:
        open_table(f"s3://someone:secret@events/nothing?{store}")
    assert "secret" not in str(caught.value)
