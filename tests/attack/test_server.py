"""The page under attack, on this machine and within bounds; `benchmarks/bench_report.py` does it for a minute."""

import socket
from pathlib import Path

import pytest

from bica.model.fit import Fit
from bica.web.store import Store
from tests.attack.crowd import Served, crowd
from tests.web.conftest import MODEL

pytestmark = pytest.mark.attack
N_CLIENTS, SECONDS = 200, 4
MOST_MEGABYTES = 150  # more than at rest: 4 uploads at a time in pieces, answers of 200 clients, what Python keeps


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    running = Served(str(folder))
    running.fit = Store(folder).keep_fit(Fit(MODEL), title="nights").id
    yield running
    assert running.process.poll() is None
    assert "Traceback" not in running.close()


def raw(served, request: bytes) -> bytes:
    """What comes back for these very bytes, until the server hangs up."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as line:
        line.sendall(request)
        line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(65536), b""))


def test_a_crowd_is_answered_in_bounded_memory(served):
    before = served.megabytes()
    counts, peak = crowd(served, served.fit, N_CLIENTS, SECONDS)
    assert peak < before + MOST_MEGABYTES
    assert counts["look", 200] > 0
    assert counts["explain", 200] > 0
    assert not any(deed == "intrude" and status not in (403, 421, "hung up") for deed, status in counts)
    assert not any(status == 500 for _, status in counts)
    assert not any(deed == "half" and status == 200 for deed, status in counts)
    uploads = {status for deed, status in counts if deed == "upload"}
    assert uploads <= {200, 403, 413, "hung up"}


def test_half_sent_bodies_leave_nothing_behind(served):
    tables = Path(served.folder) / "tables"
    n_before = len(list(tables.iterdir()))
    cookie = raw(served, f"GET /?token={served.token} HTTP/1.0\r\nhost: 127.0.0.1:{served.port}\r\n\r\n".encode())
    cookie = cookie.partition(b"set-cookie: ")[2].partition(b";")[0].decode()
    head = (
        f"host: 127.0.0.1:{served.port}\r\norigin: {served.origin}\r\ncookie: {cookie}\r\ncontent-length: 9999\r\n\r\n"
    )
    for _ in range(20):
        raw(served, f"POST /api/tables?name=x.csv HTTP/1.1\r\n{head}a,b\n".encode())
    assert len(list(tables.iterdir())) == n_before


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"\x00\xff\xfe" * 100,
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 50_000,
        b"POST / HTTP/1.1\r\nhost: a\r\nhost: b\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcde",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # the beginning of a TLS connection
    ],
)
def test_bytes_that_are_no_request_are_refused(served, request_bytes):
    try:
        answer = raw(served, request_bytes)
    except OSError:  # hung up while we were still sending
        return
    assert b" 200 " not in answer.partition(b"\r\n")[0]
    assert b"Traceback" not in answer
    assert b"root:" not in answer


def test_it_listens_on_this_machine_alone(served):
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    local = [line.split()[1] for line in lines if line.split()[3] == "0A"]
    assert [address for address in local if address.endswith(f":{served.port:04X}")] == [f"0100007F:{served.port:04X}"]
