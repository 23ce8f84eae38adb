"""What fits, decodes and reports compile is compiled ahead and kept."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

import bica.warmup as module
from bica.errors import OutputError
from bica.kernels import compiled
from bica.progress import listening
from bica.warmup import Warmup, warmup

MAIN_TASKS = """
import json
import numpy as np
from bica import BICA
from bica.kernels import compiled
from bica.simulate import random_network

for n_sensors in 7, 22:
    rng = np.random.default_rng(n_sensors)
    rows = random_network(n_sensors, n_sensors - 1, rng=rng).sample(800, rng)
    fitted = BICA(random_state=0).fit(rows)
    fitted.transform(rows), fitted.posterior(rows[:9]), fitted.explain(rows[0]), fitted.report()
print(json.dumps([kernel.__qualname__ for kernel in compiled._kernels if kernel.stats.cache_misses]))
"""


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
def test_after_a_warm_up_the_main_tasks_compile_nothing(tmp_path):
    places = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "bica", "warmup", "--json"]
    first = json.loads(subprocess.run(command, env=places, capture_output=True, check=True).stdout)
    assert first["compiled"] >= first["ready"] > 40
    again = json.loads(subprocess.run(command, env=places, capture_output=True, check=True).stdout)
    assert again == {"compiled": 0, "ready": first["ready"]}
    done = subprocess.run([sys.executable, "-c", MAIN_TASKS], env=places, capture_output=True, check=True)
    assert json.loads(done.stdout) == []
