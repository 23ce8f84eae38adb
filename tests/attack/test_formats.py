"""Damaged files of every format are read or refused in one sentence: no crash, no foreign error, little memory."""

import json
import subprocess
import sys

import pytest

from tests.attack.formats import FORMATS

N_INPUTS = 60  # per format; `python -m tests.attack.child FORMAT SEED N FOLDER` takes as many as are wanted


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_no_damage_gets_through(tmp_path, name):
    command = [sys.executable, "-m", "tests.attack.child", name, "0", str(N_INPUTS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{")))
    assert told["foreign"] == told["long"] == []
    assert told["read"] + told["refused"] == N_INPUTS
    assert told["refused"] > 0
    assert told["slowest"] < 10
    assert told["megabytes"] < 1000
