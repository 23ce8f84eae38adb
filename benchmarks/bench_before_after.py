"""The same tasks with two states of the package, one after the other in turn: CPU seconds, and what was found.

Give the folder of another checkout, such as ``git worktree add ../before COMMIT``. Each task runs in its own process,
once to compile and then timed, with one thread, and the two checkouts take turns.

    python benchmarks/bench_before_after.py ../before > benchmarks/results/before_after.md
    python benchmarks/bench_before_after.py ../before counting decoding    # some tasks only
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from statistics import median

import numpy as np

HERE = Path(__file__).resolve().parents[1]
TURNS = 3
LEAST_SECONDS = 0.3  # a short task is run again until it took this long
NOISE = {"noise": "estimate"}  # the first commits know no other kinds, nor lossy edges
Task = Callable[[Path], Callable[[], str]]  # files in a folder -> what is timed, which says what it found


def packed_rows(rows: np.ndarray) -> np.ndarray:
    try:
        from bica.kernels.bits import packed
    except ImportError:
        from bica.data.chunks import packed
    return packed(rows)


def network(n: int, seed: int = 0, flip_rate: float = 0.02, **settings: object) -> tuple[object, np.random.Generator]:
    from bica import Noise
    from bica.simulate import random_network

    rng = np.random.default_rng(seed)
    return random_network(n, n, noise=Noise.flips(flip_rate), rng=rng, **settings), rng


def written(path: Path, model: object, n_rows: int, rng: np.random.Generator) -> Path:
    """Rows of a model as a CSV file."""
    digits = model.sample(n_rows, rng).astype(int).tolist()
    lines = [",".join(map(str, row)) for row in digits]
    path.write_text("\n".join([",".join(model.sensors), *lines, ""]))
    return path


def counting_array(_: Path) -> Callable[[], str]:
    from bica import PatternCounts

    model, rng = network(20)
    rows = model.sample(10**6, rng)
    return lambda: f"{len(PatternCounts.of(rows).weights)} distinct rows"


def counting_csv(folder: Path) -> Callable[[], str]:
    from bica import PatternCounts

    model, rng = network(20)
    path = written(folder / "table.csv", model, 10**5, rng)
    return lambda: f"{len(PatternCounts.of(path).weights)} distinct rows"


def decoding(n: int, n_rows: int, solver: str, **settings: object) -> Task:
    def prepare(_: Path) -> Callable[[], str]:
        from bica.invert.decode import decode

        model, rng = network(n, 1, **settings)
        words = packed_rows(model.sample(n_rows, rng))
        return lambda: f"cost {decode(model, words, solver=solver).cost.sum():.6g}"

    return prepare


def in_time(_: Path) -> Callable[[], str]:
    try:
        from bica.invert import decode_in_time
    except ImportError:
        from bica.invert.markov import decode_in_time
    from bica.simulate import simulate

    model, rng = network(10, 3, 0.1)
    given = simulate(model, 20_000, rng, persistence=10)
    words = packed_rows(given.rows)
    return lambda: f"{(decode_in_time(model, words, persistence=10).activity != given.activity).mean():.5f} wrong"


def learning(name: str, n: int, n_samples: int, *, defaults: bool = False, **settings: object) -> Task:
    def prepare(_: Path) -> Callable[[], str]:
        import bica
        from bica.metrics import compare_models

        model, rng = network(n, 2, **settings)
        data = bica.PatternCounts.of(model.sample(n_samples, rng))
        method = getattr(bica, name)
        known = {field.name for field in fields(method)}
        same = (
            (NOISE | ({"edges": "sure"} if "edges" in known else {})) if name == "Likelihood" and not defaults else {}
        )
        jobs = {"n_jobs": 1} if "n_jobs" in known else {}

        def timed() -> str:
            found = method(**same, **jobs).fit(data, np.random.default_rng(0))
            return f"F1 {compare_models(found.model, model).columns.f1:.3f}"

        return timed

    return prepare


def slots(folder: Path) -> Callable[[], str]:
    rng = np.random.default_rng(5)
    moments, sensors = np.sort(rng.integers(0, 20_000, 300_000)), rng.integers(0, 21, 300_000)
    lines = [f"{moment},sniffer{sensor}" for moment, sensor in zip(moments, sensors, strict=True)]
    (folder / "events.csv").write_text("\n".join(["time,sensor", *lines]))

    def timed() -> str:
        output = folder / "slots.csv"
        typed("slots", folder / "events.csv", "--slot", "1s", "-o", output, "--force")
        return f"{output.stat().st_size} bytes"

    return timed


def help_screen(_: Path) -> Callable[[], str]:
    return lambda: f"{typed('--version')}".split()[0]


def small_fit(folder: Path) -> Callable[[], str]:
    model, rng = network(6)
    path = written(folder / "table.csv", model, 500, rng)
    return lambda: f"{len(json.loads(typed('fit', path, '--noise', 'estimate', '--json'))['sources'])} sources"


def typed(*words: object) -> str:
    """What a command of the package prints, in a process of its own, as a user starts it."""
    command = [sys.executable, "-m", "bica", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


TASKS: dict[str, Task] = {
    "counting, array, 10^6 x 20": counting_array,
    "counting, CSV, 10^5 x 20": counting_csv,
    "decoding, table, 20 sensors, 10^6 rows": decoding(20, 10**6, "table", flip_rate=0.05),
    "decoding, search, 200 sensors, 10^4 rows": decoding(200, 10**4, "search", probability=(0.01, 0.1)),
    "decoding in time, 10 sensors, 20 000 rows": in_time,
    "slots, 300 000 events": slots,
    "fit time, 10 sensors, 1000 rows": learning("Likelihood", 10, 1000),
    "fit time, 10 sensors, 10 000 rows": learning("Likelihood", 10, 10_000),
    "fit time, FindBICA, 10 sensors, 10 000 rows": learning("FindBICA", 10, 10_000),
    "scaling, 50 sensors, 5000 rows": learning("Likelihood", 50, 5000, probability=(0.02, 0.1)),
    "wide and many sensors, 200 sensors, 10 000 rows": learning("Likelihood", 200, 10_000, probability=(0.01, 0.1)),
    "default settings, 10 sensors, 10 000 rows": learning("Likelihood", 10, 10_000, defaults=True),
    "default settings, 50 sensors, 5000 rows": learning("Likelihood", 50, 5000, defaults=True, probability=(0.02, 0.1)),
    "startup, bica --version": help_screen,
    "startup and fit, 6 sensors, 500 rows": small_fit,
}


def cpu() -> float:
    """CPU seconds of this process and of those it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def one_task(name: str) -> None:
    """In a process of its own: the mean CPU seconds of a run once all is compiled, and what it found."""
    with tempfile.TemporaryDirectory() as folder:
        timed = TASKS[name](Path(folder))
        timed()  # compiles
        start, n_runs = cpu(), 0
        while n_runs == 0 or cpu() - start < LEAST_SECONDS:
            found, n_runs = timed(), n_runs + 1
        print(json.dumps([(cpu() - start) / n_runs, found]))


def measured(name: str, checkout: Path) -> tuple[float, str]:
    command = [sys.executable, __file__, "--task", name]
    threads = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    place = {**os.environ, **threads, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, env=place, check=True, capture_output=True, text=True)
    seconds, found = json.loads(done.stdout.splitlines()[-1])
    return seconds, found


def commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "log", "-1", "--format=%h"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def report(before: Path, chosen: list[str]) -> None:
    names = [name for name in TASKS if not chosen or any(name.startswith(word) for word in chosen)]
    print("# The same tasks before and after\n")
    print(
        f"Before: {commit(before)}. After: {commit(HERE)}. CPU seconds, one thread, medians of {TURNS} turns; "
        f"made at {time.strftime('%Y-%m-%d')}, load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores.\n"
    )
    print("| task | before | after | ratio | range of the ratio | found before | found after |")
    print("| --- | ---: | ---: | ---: | --- | --- | --- |", flush=True)
    for name in names:
        pairs = [(measured(name, before), measured(name, HERE)) for _ in range(TURNS)]
        old, new = (median(pair[side][0] for pair in pairs) for side in (0, 1))
        ratios = sorted(new[0] / old[0] for old, new in pairs)
        print(
            f"| {name} | {old:.3g} | {new:.3g} | {median(ratios):.2f} | {ratios[0]:.2f}-{ratios[-1]:.2f} "
            f"| {pairs[0][0][1]} | {pairs[0][1][1]} |",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        one_task(sys.argv[2])
    else:
        report(Path(sys.argv[1]).resolve(), sys.argv[2:])
