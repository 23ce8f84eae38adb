"""Kernels release the interpreter lock, are kept on disk, and work where nothing can be kept."""

import json
import os
import pickle
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numba
import numpy as np
import pytest

import bica
from bica import kernels
from bica.kernels import compiled, compiler
from bica.progress import COMPILING, WAIT, listening

PACKAGE = Path(bica.__file__).parent
RUN_ONE_KERNEL = """
import json
import numba
import numpy as np
from bica.kernels import compiled, compiler
from bica.progress import COMPILING, WAIT, listening
from bica.kernels.lattice.subsets import subset_sums

values = np.arange(16.0)
subset_sums(values, 1.0)
hits, misses = (sum(count.values()) for count in (subset_sums.stats.cache_hits, subset_sums.stats.cache_misses))
print(json.dumps([values[15], subset_sums.stats.cache_path is not None, hits, misses]))
"""


MAIN_TASKS = """
import json, sys
import numba
import numpy as np
from bica import BICA, Noise
from bica.kernels import compiled
from bica.simulate import random_network

for n_sensors, n_rows in (8, 300), (20, 1000):
    rng = np.random.default_rng(0)
    rows = random_network(n_sensors, n_sensors, noise=Noise.flips(0.05), rng=rng).sample(n_rows, rng)
    found = BICA(random_state=0).fit(rows)
    found.transform(rows[:20]), found.posterior(rows[:5]), found.explain(rows[0])
def signatures(kernels):
    return {k.__qualname__: [str(s) for s in k.signatures] for k in kernels if len(k.signatures) > 1}
called = [k for k in compiled._kernels if k.signatures]
print(json.dumps([len(called), signatures(called) | signatures([k.callee for k in compiled._kernels])]))
"""


@compiler.Kernel  # which keeps nothing on disk
def last_of(values, place, backwards):
    return values[values.size - place] if backwards else values[place]


@compiler.Kernel  # which keeps nothing on disk
def calls_with_constants(values, place):
    return last_of(values, 1, True) + last_of(values, place, False) + last_of(values, 0, place > 1)


def run(package_folder, cache, home):
    """What one kernel reports in a fresh interpreter: its result, whether it was kept, hits and misses."""
    places = {"NUMBA_CACHE_DIR": str(cache), "HOME": str(home), "XDG_CACHE_HOME": str(home), "LOCALAPPDATA": str(home)}
    paths = {"PYTHONPATH": str(package_folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", RUN_ONE_KERNEL]
    done = subprocess.run(command, env=os.environ | places | paths, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def every_kernel():
    for module in pkgutil.walk_packages(kernels.__path__, "bica.kernels."):
        import_module(module.name)
    return [kernel for kernel in compiled._kernels if kernel.py_func.__module__.startswith("bica.kernels.")]


def test_every_kernel_releases_the_interpreter_lock():
    assert len(every_kernel()) > 5
    assert all(kernel.targetoptions["nogil"] for kernel in every_kernel())


def test_one_file_knows_the_compiler():
    sources = [path for path in PACKAGE.rglob("*.py") if path.name != "compiler.py"]
    assert not [path for path in sources if re.search(r"(from|import) numba", path.read_text(encoding="utf-8"))]


@pytest.mark.slow
def test_a_second_run_finds_what_the_first_compiled(tmp_path):
    assert run(PACKAGE.parent, tmp_path / "cache", tmp_path) == [120.0, True, 0, 1]
    assert run(PACKAGE.parent, tmp_path / "cache", tmp_path) == [120.0, True, 1, 0]


@pytest.mark.slow
def test_kernels_work_where_nothing_can_be_kept(tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("a file stands where a folder is needed, which stops even root")
    copy = shutil.copytree(PACKAGE, tmp_path / "src" / "bica", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(nowhere, copy / "kernels" / "lattice" / "__pycache__")
    assert run(copy.parent, nowhere / "cache", nowhere) == [120.0, False, 0, 1]


def test_constants_in_calls_make_no_versions_of_their_own():
    assert calls_with_constants(np.array([1.0, 2.0, 4.0]), 1) == 4.0 + 2.0 + 1.0
    assert len(last_of.callee.signatures) == 1
    assert last_of.signatures == []  # Python never called it
    assert last_of(np.array([1.0, 2.0]), 1, True) == 2.0


@pytest.mark.slow
def test_no_kernel_of_the_main_tasks_is_compiled_for_two_signatures(tmp_path):
    done = subprocess.run([sys.executable, "-c", MAIN_TASKS], capture_output=True, text=True, check=True)
    n_called, several = json.loads(done.stdout)
    assert n_called > 20
    assert several == {}


def test_the_stamp_of_a_file_covers_what_it_imports(tmp_path, monkeypatch):
    folder = tmp_path / "bica" / "kernels"
    folder.mkdir(parents=True)
    monkeypatch.setattr(compiler, "ROOT", tmp_path)
    caller, callee, other = (folder / name for name in ("caller.py", "callee.py", "other.py"))

    def stamp():
        compiler._text.cache_clear()
        compiler.source_stamp.cache_clear()
        return compiler.source_stamp(caller)

    caller.write_text("import numpy\nfrom bica.kernels.middle import f\n")
    (folder / "middle.py").write_text(
        "from bica.kernels.callee import (\n    g,\n)\nfrom bica.kernels.caller import h\n"
    )
    callee.write_text("x = 1\n")
    other.write_text("x = 1\n")
    before = stamp()
    other.write_text("x = 2\n")
    assert stamp() == before
    callee.write_text("x = 2\n")
    assert stamp() != before


SHIP_ONE_KERNEL = """
import sys
from pathlib import Path
import numba
import numpy as np
from bica.kernels import compiled
from bica.kernels.lattice.subsets import subset_sums

subset_sums(np.zeros(16), 1.0)
compiled.ship_all(Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_shipped_kernels_are_loaded_elsewhere_until_their_sources_change(tmp_path):
    package = shutil.copytree(PACKAGE, tmp_path / "elsewhere" / "bica", ignore=shutil.ignore_patterns("__pycache__"))
    shipped = package / "kernels" / compiler.SHIPPED.name
    places = compiler.ANY_PROCESSOR | {"NUMBA_CACHE_DIR": str(tmp_path / "build")}
    command = [sys.executable, "-c", SHIP_ONE_KERNEL, str(shipped)]
    subprocess.run(command, env=os.environ | places, check=True)
    assert run(package.parent, tmp_path / "cache", tmp_path) == [120.0, True, 1, 0]
    assert not list((tmp_path / "cache").rglob("*.nbi"))
    source = package / "kernels" / "lattice" / "subsets.py"
    source.write_text(source.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    assert run(package.parent, tmp_path / "cache", tmp_path) == [120.0, True, 0, 1]


@pytest.mark.slow
def test_kernels_of_a_version_whose_types_are_gone_are_compiled_again(tmp_path):
    package = shutil.copytree(PACKAGE, tmp_path / "src" / "bica", ignore=shutil.ignore_patterns("__pycache__"))
    assert run(package.parent, tmp_path / "cache", tmp_path) == [120.0, True, 0, 1]
    indices = list((tmp_path / "cache").rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(pickle.dumps(numba.__version__) + b"cbica.kernels.gone\nList\n.")
    assert run(package.parent, tmp_path / "cache", tmp_path) == [120.0, True, 0, 1]
    assert run(package.parent, tmp_path / "cache", tmp_path) == [120.0, True, 1, 0]


@pytest.mark.slow
def test_an_edited_callee_is_noticed(tmp_path):
    package = shutil.copytree(PACKAGE, tmp_path / "src" / "bica", ignore=shutil.ignore_patterns("__pycache__"))
    assert run(package.parent, tmp_path / "cache", tmp_path) == [120.0, True, 0, 1]
    assert run(package.parent, tmp_path / "cache", tmp_path) == [120.0, True, 1, 0]
    decorator = package / "kernels" / "compiler.py"
    decorator.write_text(decorator.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    assert run(package.parent, tmp_path / "cache", tmp_path) == [120.0, True, 0, 1]


def test_without_a_listener_one_line_of_the_log_explains_a_long_silence(monkeypatch, caplog):
    monkeypatch.setattr(
        compiled, "_News", type("News", (compiled._News,), {"n_begun": 0, "begun": None, "logged": False})
    )
    compiled.announce()
    assert caplog.messages == []  # it may be short
    monkeypatch.setattr(compiled, "PATIENCE", -1.0)
    compiled.announce()
    compiled.announce()
    assert caplog.messages == [WAIT]


def test_a_listener_hears_how_many_kernels_are_left(monkeypatch):
    monkeypatch.setattr(compiled, "_News", type("News", (compiled._News,), {"n_begun": 0, "n_expected": 0}))
    monkeypatch.setattr(compiled, "_kernels", [])
    heard = []
    compiled.expect(3)
    with listening(lambda *report: heard.append(report)):
        for _ in range(4):
            compiled.announce()
    assert heard == [(COMPILING, 1, 3), (COMPILING, 2, 3), (COMPILING, 3, 3), (COMPILING, 4, 4)]


def test_only_kernels_that_python_calls_are_announced():
    heard = []

    @compiler.Kernel
    def inner(x):
        return x + 1

    @compiler.Kernel
    def outer(x):
        return inner(x)

    with listening(lambda *report: heard.append(report)):
        assert outer(1) == 2
    assert len(heard) == 1
