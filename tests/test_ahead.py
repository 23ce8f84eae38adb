"""What fits, decodes and reports compile is compiled ahead and kept."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

import bica.ahead as module
from bica.ahead import Warmup, warmup
from bica.errors import OutputError
from bica.kernels import compiled
from bica.progress import listening

USED = """
import json
from bica.kernels import compiled
used = [(kernel, signature) for kernel in compiled._kernels for signature in kernel.signatures]
print(json.dumps([f"{kernel.__qualname__}{signature}" for kernel, signature in used]))
"""
WARM_UP = """
from bica import warmup
warmup()
"""
MAIN_TASKS = """
import numpy as np
from bica import BICA
from bica.simulate import random_network

for n_sensors in 7, 22:
    rng = np.random.default_rng(n_sensors)
    rows = random_network(n_sensors, n_sensors - 1, rng=rng).sample(800, rng)
    fitted = BICA(random_state=0).fit(rows)
    fitted.transform(rows), fitted.posterior(rows[:9]), fitted.explain(rows[0]), fitted.report()
"""
ONE_WORK = """
import json
import bica.ahead as module
module.WORKS = (module._doubtful,)
done = module.warmup()
print(json.dumps([done.n_compiled, done.n_ready]))
"""


def printed(program, **places):
    command = [sys.executable, "-c", program]
    return json.loads(subprocess.run(command, env=os.environ | places, capture_output=True, check=True).stdout)


@pytest.fixture
def works(monkeypatch):
    done = []
    monkeypatch.setattr(module, "WORKS", (lambda: done.append("a"), lambda: done.append("b")))
    return done


def kernel(n_signatures, path):
    stats = SimpleNamespace(cache_path=path, cache_misses={"signature": 1} if n_signatures else {}, cache_hits={})
    return SimpleNamespace(signatures=["signature"] * n_signatures, stats=stats)


def test_every_work_is_done_and_reported(works, monkeypatch):
    monkeypatch.setattr(compiled, "_kernels", [kernel(1, "folder"), kernel(0, None)])
    heard = []
    with listening(lambda *report: heard.append(report)):
        assert warmup() == Warmup(n_compiled=0, n_ready=1)
    assert works == ["a", "b"]
    assert heard == [("warming up", done, 2) for done in (0, 1, 2)]


def test_where_nothing_can_be_kept_it_says_what_to_do(works, monkeypatch):
    monkeypatch.setattr(compiled, "_kernels", [kernel(1, None)])
    with pytest.raises(OutputError, match="set NUMBA_CACHE_DIR"):
        warmup()


@pytest.mark.slow
def test_the_main_tasks_need_no_other_kernels_than_a_warm_up():
    """Whatever was compiled before: each process lists the kernels that it used, with the types of their arguments."""
    ahead, needed = set(printed(WARM_UP + USED)), set(printed(MAIN_TASKS + USED))
    assert needed - ahead == set()
    assert len(needed) > 20


def test_what_was_compiled_is_kept(tmp_path):
    (compiled_first, ready), again = (printed(ONE_WORK, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert compiled_first >= ready > 10
    assert again == [0, ready]
