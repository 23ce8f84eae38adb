"""Damaged files of every format are read or refused in one sentence: no crash, no foreign error, little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.files import KINDS, attacked
from tests.attack.formats import FORMATS

pytestmark = [pytest.mark.attack, pytest.mark.slow]
N_INPUTS = 40  # per format; `python -m tests.attack --inputs 200000` takes as many as are wanted
SEED = 0  # the long attack has others
CORPUS = Path(__file__).parent / "corpus"
PARTS = [list(FORMATS)[k::3] for k in range(3)]


@pytest.mark.parametrize("names", PARTS, ids=lambda names: names[0])
def test_no_damage_gets_through(names):
    tolls = attacked(names, SEED, 0, N_INPUTS)
    for name in names:
        toll = tolls[name]
        assert toll.troubles == [], name
        assert all(toll.number_of(kind) == 0 for kind in KINDS)
        assert toll.read + toll.refused == N_INPUTS
        assert toll.refused > 0


def test_no_file_that_ever_failed_fails_again():
    """Each is read, or refused with a sentence of its own."""
    command = [sys.executable, "-m", "tests.attack.child", "corpus", str(CORPUS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["file"] for one in told] == sorted(path.name for path in CORPUS.iterdir())
    for one in told:
        assert one["outcome"] in ("read", "refused"), one
        assert one["troubles"] == [], one
