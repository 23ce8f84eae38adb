"""``bica warmup`` says in one line what it did."""

import json

import pytest

import bica.ahead as module
from bica.ahead import Warmup


@pytest.mark.parametrize(
    ("done", "line"),
    [
        (Warmup(3, 5), "3 kernels compiled; 5 are ready\n"),
        (Warmup(0, 5), "all 5 kernels were ready already\n"),
    ],
)
def test_one_line_says_what_was_done(run, monkeypatch, done, line):
    monkeypatch.setattr(module, "warmup", lambda: done)
    assert run("warmup").stdout == line
    assert json.loads(run("warmup", "--json").stdout) == {"compiled": done.n_compiled, "ready": done.n_ready}
