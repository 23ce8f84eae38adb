"""Many damaged files of a format, read by processes with limits; what makes trouble is kept, and the rest goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack.formats import FORMATS, mutated

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
KINDS = ("foreign", "wordy", "crash", "slow", "large", "left")


@dataclass
class Toll:
    """What became of the files of one format."""

    format: str
    n_inputs: int = 0
    read: int = 0
    refused: int = 0
    slowest: float = 0.0  # CPU seconds
    megabytes: float = 0.0  # of the whole process
    seconds: float = 0.0  # CPU, all files together
    troubles: list[dict[str, object]] = field(default_factory=list)

    def number_of(self, kind: str) -> int:
        return sum(trouble["trouble"] == kind for trouble in self.troubles)

    def add(self, ended: dict[str, object]) -> None:
        self.read += ended["counts"].get("read", 0)
        self.refused += ended["counts"].get("refused", 0)
        self.slowest = max(self.slowest, ended["slowest"])
        self.megabytes = max(self.megabytes, ended["megabytes"])
        self.seconds += ended["seconds"]


def attacked(names: Sequence[str], seed: int, first: int, last: int) -> dict[str, Toll]:
    """Read inputs ``first`` to ``last`` of these formats; a process that dies is replaced behind what killed it."""
    tolls = {name: Toll(name, last - first) for name in names}
    home = Path(tempfile.mkdtemp(prefix="attack-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    left = list(names)
    try:
        while left:
            left = left[_one_process(tolls, left, seed, first, last, home) :]
    finally:
        shutil.rmtree(home)
    return tolls


def _one_process(tolls: dict[str, Toll], names: list[str], seed: int, first: int, last: int, home: Path) -> int:
    """Let one process read the files of all these formats; returns how many formats were finished.

    One that dies is followed by others for the rest of the format at hand.
    """
    done, told = _told_by(names, seed, first, last, home)
    for one in told:
        if "trouble" in one:
            tolls[one["format"]].troubles.append(one)
        else:
            tolls[one["ended"]["format"]].add(one["ended"])
    finished = sum("ended" in one for one in told)
    if finished == len(names):
        return finished
    place = home / "at"
    if not place.exists():
        raise RuntimeError(f"{names[finished]}: whole files are not read: {done.stderr[-2000:]}")
    number, name = int(place.read_bytes()[:20]), place.read_bytes()[20:].decode()
    kind = "slow" if done.returncode == -signal.SIGPROF else "crash"
    said = f"exit {done.returncode}: {done.stderr.strip()[-300:]}"
    tolls[name].troubles.append({"trouble": kind, "format": name, "seed": seed, "number": number, "said": said})
    place.unlink()
    if number + 1 < last:
        _one_process(tolls, [name], seed, number + 1, last, home)
    return finished + 1


def _told_by(names: list[str], seed: int, first: int, last: int, home: Path):
    """How one process ended, and the lines that it wrote."""
    scratch = home / "temporary"
    scratch.mkdir()
    command = [sys.executable, "-m", "tests.attack.child", *map(str, (home, seed, first, last)), *names]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | ONE_THREAD | {"TMPDIR": str(scratch)}
    )
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode == 0 and list(scratch.iterdir()):
        told.append(
            {"trouble": "left", "format": names[-1], "seed": seed, "number": last - 1, "said": str(os.listdir(scratch))}
        )
    shutil.rmtree(scratch)
    return done, told


def keep(trouble: dict[str, object], folder: Path) -> Path:
    """Write the file that made trouble where it can be looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{trouble['format']}-{trouble['trouble']}-{trouble['seed']}-{trouble['number']}".replace(" ", "-")
    path = folder / (name + FORMATS[trouble["format"]].ending)
    path.write_bytes(mutated(trouble["format"], trouble["seed"], trouble["number"]))
    return path
