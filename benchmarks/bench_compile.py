"""The first run: CPU seconds with no compiled kernel on disk, what each kernel costs, and which task needs it.

python benchmarks/bench_compile.py > benchmarks/results/compile.md

Every task runs twice in an interpreter of its own, the first time with an empty cache. A reference beside each task,
the compilation of one fixed function by numba alone, shows how fast the machine was at that moment. The benchmark ends
with an error if a kernel was compiled for two signatures, in one task or in two.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict

TASKS = {
    "small": "10 columns, 1000 rows, 5 % flips: fit and transform",
    "demo": "`bica demo`",
    "fit20": "20 columns, 10 000 rows, 5 % flips: fit",
    "fit200": "200 columns, 50 000 rows, 2 % flips: fit",
    "decode20": "fit20, then transform, posterior, score, explain",
    "report": "small, then report and bootstrap",
    "missing": "fit20 with missing cells",
}
BEFORE = {"small": 9.6, "demo": 7.8, "fit20": 32.8, "fit200": 30.2, "decode20": 43.2, "report": 9.4}  # numba's own way
OURS = "bica."


def rows_of(name: str):
    """The table of a task."""
    import numpy as np

    from bica import Noise
    from bica.simulate import random_network, simulate, topology

    rng = np.random.default_rng(0)
    if name == "small":
        return simulate(topology("one", noise=Noise.flips(0.05)), 1000, rng).rows
    size, n_rows, flips, highest = (20, 10_000, 0.05, 0.3) if name == "20" else (200, 50_000, 0.02, 0.1)
    truth = random_network(size, size, probability=(highest / 10, highest), noise=Noise.flips(flips), rng=rng)
    return truth.sample(n_rows, rng)


def perform(task: str) -> None:
    """One task, as a user would write it."""
    if task == "demo":
        from bica.cli.app import app

        app(["demo"], prog_name="bica", standalone_mode=False)
        return
    from bica import BICA

    rows = rows_of({"fit20": "20", "decode20": "20", "missing": "20", "fit200": "200"}.get(task, "small"))
    if task == "missing":
        rows = rows.astype(float)
        rows[::7, 1] = float("nan")
    found = BICA(random_state=0).fit(rows)
    if task == "small":
        found.transform(rows)
    if task == "decode20":
        found.transform(rows), found.posterior(rows[:50]), found.score(rows[:50]), found.explain(rows[0])
    if task == "report":
        found.report(), found.bootstrap(5)


class Watch:
    """Adds up the CPU seconds of every compilation, without those of the compilations that it waits for."""

    def __init__(self):
        self.open, self.own, self.signatures = [], defaultdict(float), defaultdict(list)

    def begin(self) -> None:
        """A compilation begins."""
        self.open.append([time.thread_time(), 0.0])

    def end(self, data: dict) -> None:
        """The innermost compilation ends."""
        begun, inner = self.open.pop()
        whole = time.thread_time() - begun
        if self.open:
            self.open[-1][1] += whole
        function = data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__qualname__}"
        kind = type(data["dispatcher"]).__name__  # a kernel that Python calls, or one that kernels call
        self.own[name] += whole - inner
        self.signatures[name].append(f"{kind} {data['args']}")


def child(task: str) -> None:
    """Perform a task and print what it took as JSON."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event):
            watch.begin()

        def on_end(self, event):
            watch.end(event.data)

    watch, answers = Watch(), sys.stdout
    sys.stdout = sys.stderr
    with event.install_listener("numba:compile", Listener()):
        perform(task)
    cpu = time.process_time()
    print(json.dumps({"cpu": cpu, "own": watch.own, "signatures": watch.signatures}), file=answers)


def reference() -> None:
    """Print the CPU seconds that numba takes for a function of a fixed size."""
    from numba import njit

    lines = [f"    for k in range({n}, a.size):\n        a[k] += {n} * a[k - 1]" for n in range(1, 40)]
    made: dict = {}
    exec("def loop(a):\n" + "\n".join(lines), made)
    begun = time.process_time()
    njit(made["loop"]).compile("(float64[::1],)")
    print(json.dumps(time.process_time() - begun))


def run(*arguments: str, cache: str):
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return json.loads(done.stdout)


def twice(signatures: dict[str, list[str]]) -> dict[str, list[str]]:
    """The kernels with more than one signature, called from Python or from kernels."""
    many = {}
    for name, all_signatures in signatures.items():
        of_kind = defaultdict(list)
        for signature in all_signatures:
            of_kind[signature.split()[0]].append(signature)
        if name.startswith(OURS) and any(len(of_one) > 1 for of_one in of_kind.values()):
            many[name] = all_signatures
    return many


def costs(cold: dict[str, dict]) -> None:
    """Print the kernels with the CPU seconds that each takes in each task, the dearest first."""
    names = {name for done in cold.values() for name in done["own"] if name.startswith(OURS)}
    most = {name: max(done["own"].get(name, 0.0) for done in cold.values()) for name in names}
    print(f"\n| kernel | {' | '.join(cold)} |\n| --- |{' --- |' * len(cold)}")
    for name in sorted(names, key=lambda name: -most[name]):
        cells = (f"{done['own'][name]:.2f}" if name in done["own"] else "" for done in cold.values())
        print(f"| `{name.removeprefix('bica.kernels.')}` | {' | '.join(cells)} |")
    others = (sum(s for n, s in done["own"].items() if not n.startswith(OURS)) for done in cold.values())
    print(f"| numba's own functions | {' | '.join(f'{seconds:.2f}' for seconds in others)} |")


def main() -> None:
    """Print both tables."""
    print("# The first run\n\n    python benchmarks/bench_compile.py\n")
    print(
        "CPU seconds of the whole process. Cold: nothing compiled on disk. Before: each kernel was compiled by itself"
    )
    print("and again in every caller. Reference: one fixed function; it shows how busy the machine was.\n")
    print("| task | | cold | before | warm | reference | kernels called from Python | all |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    cold, many = {}, {}
    for task in sys.argv[1:] or TASKS:
        with tempfile.TemporaryDirectory() as cache:
            speed = run("--reference", cache=cache)
            cold[task], warm = run("--task", task, cache=cache), run("--task", task, cache=cache)
        kinds = [s.split()[0] for n, found in cold[task]["signatures"].items() if n.startswith(OURS) for s in found]
        seconds = f"{cold[task]['cpu']:.1f} | {BEFORE.get(task, '')} | {warm['cpu']:.1f} | {speed:.2f}"
        print(f"| {task} | {TASKS[task]} | {seconds} | {kinds.count('Kernel')} | {len(kinds)} |", flush=True)
    every: dict[str, set[str]] = defaultdict(set)
    for done in cold.values():
        for name, found in done["signatures"].items():
            every[name] |= set(found)
        many |= twice(done["signatures"])
    many |= twice({name: sorted(found) for name, found in every.items()})
    costs(cold)
    if many:
        sys.exit("\n".join(["compiled for more than one signature:", *(f"{n}: {s}" for n, s in many.items())]))


if __name__ == "__main__":
    if "--task" in sys.argv:
        child(sys.argv[-1])
    elif "--reference" in sys.argv:
        reference()
    else:
        main()
