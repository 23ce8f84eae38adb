"""Kernels release the interpreter lock, are kept on disk, and work where nothing can be kept."""

import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import bica
from bica import kernels
from bica.kernels import compiled

PACKAGE = Path(bica.__file__).parent
RUN_ONE_KERNEL = """
import json
import numpy as np
from bica.kernels import compiled
from bica.kernels.lattice.subsets import subset_sums

before = compiled.compiled_before()
values = np.arange(16.0)
subset_sums(values, 1.0)
hits, misses = (sum(count.values()) for count in (subset_sums.stats.cache_hits, subset_sums.stats.cache_misses))
print(json.dumps([values[15], before, subset_sums.stats.cache_path is not None, hits, misses]))
"""


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


def test_only_the_decorator_knows_the_compiler():
    sources = [path for path in PACKAGE.rglob("*.py") if path.name != "compiled.py"]
    assert not [path for path in sources if re.search(r"(from|import) numba", path.read_text(encoding="utf-8"))]


@pytest.mark.slow
def test_a_second_run_finds_what_the_first_compiled(tmp_path):
    assert run(PACKAGE.parent, tmp_path / "cache", tmp_path) == [120.0, False, True, 0, 1]
    assert run(PACKAGE.parent, tmp_path / "cache", tmp_path) == [120.0, True, True, 1, 0]


@pytest.mark.slow
def test_kernels_work_where_nothing_can_be_kept(tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("a file stands where a folder is needed, which stops even root")
    copy = shutil.copytree(PACKAGE, tmp_path / "src" / "bica", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(nowhere, copy / "kernels" / "lattice" / "__pycache__")
    assert run(copy.parent, nowhere / "cache", nowhere) == [120.0, False, False, 0, 1]
