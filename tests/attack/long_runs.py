"""Thousands of fits and decodes in one process, thousands of questions to one page: what they keep of memory."""

import asyncio
import gc
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bica import BICA, OrMixture, warmup
from bica.model.fit import Fit
from bica.web.store import Store
from tests.attack.crowd import Client, Served

SETTLED = 100  # fits after which everything is cached; kernels that are seldom needed are loaded before
N_SENSORS = (3, 8)
N_ROWS = 60


@dataclass(frozen=True, slots=True)
class Holding:
    """What a process holds."""

    done: int
    megabytes: float
    n_threads: int
    n_files: int


def holding(done: int, pid: int | None = None) -> Holding:
    place = Path("/proc", str(pid or os.getpid()))
    status = (place / "status").read_text()
    kilobytes, n_threads = (int(re.search(rf"{key}:\s+(\d+)", status).group(1)) for key in ("VmRSS", "Threads"))
    return Holding(done, kilobytes / 1000, n_threads, len(list((place / "fd").iterdir())))


def fits(n_fits: int, folder: Path) -> Iterator[Holding]:
    """Fit, decode, save and load again and again: other rows of another network each time, every fifth from a file.

    Every tenth fit is by the default method, the others by FindBICA, which is quicker. All kernels are loaded first:
    those of lossy edges would come with fit 120, and five megabytes of code look like a leak.
    """
    warmup()
    for k in range(n_fits):
        if k == SETTLED or (k > SETTLED and k % (n_fits // 10) == 0):
            gc.collect()
            yield holding(k)
        _fit_once(np.random.default_rng(k), folder, "findbica" if k % 10 else "likelihood", from_file=k % 5 == 0)
    gc.collect()
    yield holding(n_fits)


def _fit_once(rng: np.random.Generator, folder: Path, method: str, *, from_file: bool) -> None:
    n_sensors = int(rng.integers(*N_SENSORS))
    model = OrMixture(rng.random((n_sensors, 3)) < 0.5, rng.uniform(0.1, 0.4, 3))
    rows = model.sample(N_ROWS, rng)
    if from_file:
        path = folder / "table.csv"
        names = ",".join(f"s{i}" for i in range(n_sensors))
        path.write_text(f"{names}\n" + "".join(",".join(map(str, row)) + "\n" for row in rows.astype(int).tolist()))
        learned = BICA(method=method).fit(str(path))
    else:
        learned = BICA(method=method).fit(rows)
    learned.model_.decode(rows[:10], nearest=True)
    learned.model_.posterior(rows[:5])
    learned.model_.save(folder / "model.json", overwrite=True)
    OrMixture.load(folder / "model.json")


def questions(n_questions: int) -> Iterator[Holding]:
    """The same of a page: looked at, asked for explanations, and given tables."""
    with tempfile.TemporaryDirectory(prefix="bica-served-") as folder:
        served = Served(folder)
        fit = Store(folder).keep_fit(Fit(OrMixture(np.eye(5, 3), [0.3, 0.2, 0.1])), title="nights").id
        client = Client(served, 0, fit, Counter())
        try:
            for k in range(n_questions):
                if k == SETTLED or (k > SETTLED and k % (n_questions // 10) == 0):
                    yield holding(k, served.process.pid)
                deed = (client.look, client.look, client.explain, client.garbage, client.intrude)[k % 5]
                asyncio.run(deed())
            yield holding(n_questions, served.process.pid)
        finally:
            served.close()


def table_of(held: list[Holding]) -> str:
    """What was held after so many, as a table, and how much it grew since the first hundred."""
    lines = ["| done | memory (MB) | threads | open files |", "|---|---|---|---|"]
    lines += [f"| {one.done} | {one.megabytes:.1f} | {one.n_threads} | {one.n_files} |" for one in held]
    growth = held[-1].megabytes - held[0].megabytes
    return "\n".join([*lines, "", f"Memory grew by {growth:.1f} MB after the first {held[0].done}."])
