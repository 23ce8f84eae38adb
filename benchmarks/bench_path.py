"""The way of a small table through ``bica fit``: how many files it passes, and how often a reader changes file.

A reader meets every Python function in the order of its first call, on a warm run; compiled kernels are left out.

    python benchmarks/bench_path.py > benchmarks/results/path.md
"""

import contextlib
import io
import itertools
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import bica
from bica import OrMixture
from bica.cli.app import main
from bica.data.writers import csv_bytes

PACKAGE = Path(bica.__file__).parent
MIXING = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1]], dtype=bool)


def fit(folder: Path, model: str) -> None:
    """``bica fit`` on four columns, in this process, its screen thrown away; there is no older model."""
    sys.argv = ["bica", "fit", str(folder / "table.csv"), "-o", str(folder / model)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()


def first_visits(folder: Path) -> list[str]:
    """The file of every function of the package, in the order in which the functions are first called."""
    files: list[str] = []
    known = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in known and Path(code.co_filename).is_relative_to(PACKAGE):
            known.add(code)
            place = Path(code.co_filename).relative_to(PACKAGE)
            if place.parts[0] != "kernels":
                files.append(str(place))

    sys.setprofile(note)
    try:
        fit(folder, "model.json")
    finally:
        sys.setprofile(None)
    return files


def report() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = OrMixture(MIXING, [0.2, 0.3, 0.1, 0.2]).sample(500, np.random.default_rng(0))
        (folder / "table.csv").write_bytes(csv_bytes(rows, ["a", "b", "c", "d"]))
        fit(folder, "first.json")  # compiles and imports
        files = first_visits(folder)
    changes = sum(before != after for before, after in itertools.pairwise(files))
    print("# The way of a table of four columns through `bica fit`\n")
    print(f"{len(set(files))} files, {changes} changes of file, {len(files)} functions.\n")
    print("| file | functions |\n| --- | ---: |")
    for file, count in sorted(Counter(files).items()):
        print(f"| {file} | {count} |")


if __name__ == "__main__":
    report()
