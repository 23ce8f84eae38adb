"""One engine per process: what it puts aside goes with it, and a copy of the process starts one of its own."""

import os
import subprocess
import sys
import threading

import pytest

from bica.data.readers.engine import _shared, connection


def test_connections_share_an_engine_and_know_nothing_of_each_other():
    with connection() as one, connection() as other:
        one.execute("CREATE TEMP TABLE mine AS SELECT 1")
        assert other.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'mine'").fetchall() == [(0,)]


def test_threads_have_connections_of_their_own():
    found = []

    def ask(number):
        with connection() as engine:
            found.extend(engine.execute(f"SELECT sum(range) + {number} FROM range(100000)").fetchall())

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(4999950000 + number,) for number in range(8)]


def test_a_connection_outlives_the_end_of_the_engine():
    with connection() as engine:
        _shared.end()
        assert engine.execute("SELECT 7").fetchall() == [(7,)]
    with connection() as engine:
        assert engine.execute("SELECT 8").fetchall() == [(8,)]


COPIED = """
import os
from bica import PatternCounts
expected = PatternCounts.of("t.csv")
child = os.fork()
assert PatternCounts.of("t.csv") == expected
if child:
    _, status = os.waitpid(child, 0)
    raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not copied there")
def test_a_copy_of_the_process_reads_too_and_ends(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n0,1\n1,1\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = os.environ | {"TMPDIR": str(scratch)}
    command = [sys.executable, "-W", "ignore", "-c", COPIED]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(scratch.iterdir()) == []
