"""``bica serve``, as a program of its own."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from http.cookiejar import CookieJar
from urllib.error import HTTPError

import pytest

pytest.importorskip("uvicorn", reason='the page needs two more packages: pip install "bica[web]"')


@pytest.fixture
def served(tmp_path, model_file):
    """The address that is printed, and the process."""
    command = [sys.executable, "-m", "bica", "serve", str(model_file), "--json", "--folder", str(tmp_path / "kept")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [process.stdout.readline() for _ in range(4)]
    yield json.loads("".join(lines))["address"], process
    if process.poll() is None:
        process.kill()
    process.communicate()


def test_it_answers_at_the_printed_address_and_ends_with_ctrl_c(served):
    address, process = served
    assert address.startswith("http://127.0.0.1:")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    assert "sources behind" in opener.open(address, timeout=30).read().decode()
    with pytest.raises(HTTPError, match="403"):
        urllib.request.urlopen(address.partition("?")[0], timeout=30)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert process.stderr.read() == "\nstopping\n"


def test_a_file_that_is_not_there(run, tmp_path):
    done = run("serve", tmp_path / "none.csv", "--folder", tmp_path / "kept")
    assert done.exit_code == 3
    assert "there is no file" in done.stderr


def test_a_folder_that_is_a_file(run, tmp_path):
    (tmp_path / "kept").write_text("mine")
    done = run("serve", "--folder", tmp_path / "kept")
    assert done.exit_code == 3
    assert "cannot be used as a folder" in done.stderr


def test_a_port_that_is_taken(run, tmp_path, served):
    port = served[0].split(":")[2].partition("/")[0]
    done = run("serve", "--port", port, "--folder", tmp_path / "other")
    assert done.exit_code == 2
    assert "cannot be used" in done.stderr


def test_the_folder_is_private(served, tmp_path):
    assert os.stat(tmp_path / "kept" / "fits").st_mode & 0o077 == 0
