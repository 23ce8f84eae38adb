"""Nothing reaches the network unless asked to serve: sockets are blocked while every other command runs."""

import ast
import socket
from pathlib import Path

import numpy as np
import pytest

import bica
from bica import OrMixture
from bica.cli.app import COMMANDS

MODEL = OrMixture([[1, 0], [1, 0], [0, 1]], [0.3, 0.4], sensors=["door", "hall", "yard"])
TYPED = {
    "demo": ["demo"],
    "check": ["check", "t.csv", "--fit"],
    "slots": ["slots", "log.csv", "--slot", "1s", "-o", "slots.csv"],
    "fit": ["fit", "t.csv", "-o", "fit.json"],
    "unmix": ["unmix", "t.csv", "--sources", "2"],
    "count": ["count", "t.csv", "-o", "counts.parquet"],
    "show": ["show", "m.json"],
    "name": ["name", "m.json", "source1=lift"],
    "report": ["report", "m.json", "t.csv", "-o", "r.html"],
    "decode": ["decode", "m.json", "t.csv", "-o", "a.csv", "--picture", "a.svg"],
    "explain": ["explain", "m.json", "--on", "door,hall"],
    "watch": ["watch", "m.json", "t.csv"],
    "simulate": ["simulate", "-o", "s.csv"],
    "score": ["score", "m.json", "m.json"],
    "export": ["export", "m.json", "-o", "g.graphml"],
    "monitor": ["monitor", "one=m.json"],
    "compare": ["compare", "t.csv", "--methods", "findbica", "--runs", "1", "--jobs", "1", "-o", "compared"],
    "spectrum": ["spectrum", "simulate", "-o", "spectrum.csv", "--field", "field.json"],
}
LONG = {"reproduce", "warmup"}  # their parts are the same; what they import is looked at below
REACHING = {"socket", "ssl", "urllib", "http", "ftplib", "smtplib", "requests", "httpx", "aiohttp", "asyncio"}


@pytest.fixture
def no_network(monkeypatch):
    def blocked(*_, **__):
        raise AssertionError("something tried to reach the network")

    for name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, blocked)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, blocked)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = MODEL.sample(200, np.random.default_rng(0)).astype(int)
    Path("t.csv").write_text("door,hall,yard\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    Path("log.csv").write_text("time,sensor\n2024-05-01T12:00:00Z,door\n")
    MODEL.save("m.json")


@pytest.mark.parametrize("command", TYPED)
def test_a_command_reaches_no_network(command, run, files, no_network):
    shown = run(*TYPED[command])
    assert shown.exit_code == 0, shown.output + shown.stderr


def test_every_command_is_typed_here_or_serves():
    assert TYPED.keys() | LONG | {"serve"} == COMMANDS.keys()


def test_only_the_page_and_its_command_import_what_can_reach_the_network():
    """``compare`` watches the processes it started, which needs no address."""
    home = Path(bica.__file__).parent
    found = set()
    for path in home.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {name.partition(".")[0] for name in names if name != "urllib.parse"} & REACHING:
                found.add(path.relative_to(home).as_posix())
    assert {name for name in found if not name.startswith("web/")} <= {"cli/commands/report.py"}
