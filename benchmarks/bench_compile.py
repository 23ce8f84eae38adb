"""The first run: CPU seconds with no compiled kernel on disk, and what each kernel costs and which task needs it.

python benchmarks/bench_compile.py > benchmarks/results/compile.md

Every task runs twice in an interpreter of its own, the first time with an empty cache. Ends with an error if a kernel
was compiled for two signatures.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

WANTED = {"small": 12, "demo": 9, "fit20": 20, "fit200": 24}  # CPU seconds of the cold run
TASKS = {
    "small": "10 columns, 1000 rows, 5 % flips: fit and transform",
    "demo": "`bica demo`",
    "fit20": "20 columns, 10 000 rows, 5 % flips: fit",
    "fit200": "200 columns, 50 000 rows, 2 % flips: fit",
    "decode20": "after fit20: transform, posterior, score, explain",
    "report": "after small: report and bootstrap",
}


def table(name: str):
    """The rows of a task."""
    import numpy as np

    from bica import Noise
    from bica.simulate import random_network, simulate, topology

    rng = np.random.default_rng(0)
    if name == "small":
        return simulate(topology("one", noise=Noise.flips(0.05)), 1000, rng).rows
    size, rows, flips, probability = (20, 10_000, 0.05, (0.05, 0.3)) if name == "20" else (200, 50_000, 0.02, (0.01, 0.1))
    truth = random_network(size, size, probability=probability, noise=Noise.flips(flips), rng=rng)
    return truth.sample(rows, rng)


def perform(task: str) -> None:
    """One task, as a user would write it."""
    if task == "demo":
        from bica.cli.app import app

        app(["demo"], prog_name="bica", standalone_mode=False)
        return
    from bica import BICA

    rows = table({"fit20": "20", "decode20": "20", "fit200": "200"}.get(task, "small"))
    found = BICA().fit(rows)
    if task == "small":
        found.transform(rows)
    if task == "decode20":
        found.transform(rows), found.posterior(rows[:50]), found.score(rows[:50]), found.explain(rows[0])
    if task == "report":
        found.report(), found.bootstrap(5)


class Listener:
    """Adds up the CPU seconds of every compilation without those that it waits for."""

    def __init__(self):
        self.stack, self.own, self.signatures = [], defaultdict(float), defaultdict(list)

    def on_start(self, event):
        self.stack.append([time.thread_time(), 0.0])

    def on_end(self, event):
        begun, inner = self.stack.pop()
        whole = time.thread_time() - begun
        if self.stack:
            self.stack[-1][1] += whole
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__qualname__}"
        self.own[name] += whole - inner
        self.signatures[name].append(str(event.data["args"]))


def child(task: str) -> None:
    from numba.core import event

    class Numba(Listener, event.Listener):
        pass

    listener = Numba()
    begun = time.process_time()
    with event.install_listener("numba:compile", listener):
        out, sys.stdout = sys.stdout, sys.stderr
        perform(task)
        sys.stdout = out
    result = {"cpu": time.process_time(), "imports": begun, "own": listener.own, "signatures": listener.signatures}
    print(json.dumps(result))


def run(task: str, cache: str) -> dict:
    places = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, __file__, "--task", task], env=places, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    return json.loads(done.stdout)


def main() -> None:
    if "--task" in sys.argv:
        child(sys.argv[-1])
        return
    tasks = sys.argv[1:] or list(TASKS)
    results = {}
    for task in tasks:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = run(task, cache), run(task, cache)
        results[task] = cold
        ours = [n for n in cold["own"] if n.startswith("bica.")]
        n_sig = sum(len(cold["signatures"][n]) for n in ours)
        helpers = sum(v for n, v in cold["own"].items() if not n.startswith("bica."))
        print(f"{task}: cold {cold['cpu']:.1f} warm {warm['cpu']:.1f} compiling {sum(cold['own'].values()):.1f} kernels {len(ours)} signatures {n_sig} helpers {helpers:.1f}", flush=True)
        for n in ours:
            if len(cold["signatures"][n]) > 1:
                print("   TWICE", n, *cold["signatures"][n], sep="\n       ")
    names = sorted({n for r in results.values() for n in r["own"]}, key=lambda n: -max(r["own"].get(n, 0) for r in results.values()))
    for n in names[:200]:
        print(f"{n:70s}", *(f"{r['own'].get(n, 0):6.2f}" for r in results.values()))


if __name__ == "__main__":
    main()
