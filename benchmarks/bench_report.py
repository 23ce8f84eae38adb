"""How long a report and the page take: ``python benchmarks/bench_report.py``; ``--clients`` for the server alone.

The way of a newcomer from a table with an index column to a report, on the clock, with an empty cache of kernels and
again; reports of 200 x 200 and 1000 x 1000 (seconds of CPU, bytes); in Chromium, the first paint of the page on
loopback and a filter among 1000 sources; then 200 clients at once for a minute, with garbage and half-sent requests
among them.
"""

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from bica import Noise, OrMixture
from bica.model.fit import Fit
from bica.report.content import parts_of
from bica.report.page import page_of
from bica.web.store import Store
from tests.attack.crowd import Served, crowd
from tests.browser.test_five_minutes import TYPED, typed, write_table

SEED = 7  # of the models; another than any in the tests
N_ROWS = 5000


def fit_of(n: int) -> tuple[Fit, np.ndarray]:
    """A model of n sources of one to five sensors behind n sensors, and rows of it."""
    rng = np.random.default_rng(SEED + n)
    mixing = np.zeros((n, n), bool)
    for j in range(n):
        mixing[rng.choice(n, 1 + j % 5, replace=False), j] = True
    model = OrMixture(mixing, rng.beta(1, 30, n) * min(1.0, 60 / n), Noise.flips(0.01)).in_order()
    fit = Fit(model, method="likelihood", n_samples=N_ROWS, probability_error=np.full(model.n_sources, 0.002))
    return fit, model.sample(N_ROWS, rng)


def reports() -> None:
    page_of(parts_of(*fit_of(20)))  # compiled before anything is measured
    print("| report | CPU seconds | limit | megabytes | limit |\n|---|---|---|---|---|")
    for n, seconds, megabytes in ((200, "5", "1"), (1000, "–", "5")):
        fit, rows = fit_of(n)
        start = time.process_time()
        size = len(page_of(parts_of(fit, rows)).html.encode())
        took = time.process_time() - start
        print(f"| {n} × {n}, {N_ROWS} rows | {took:.2f} | {seconds} | {size / 1e6:.2f} | {megabytes} |", flush=True)


def newcomer() -> None:
    print("| typed by a newcomer | first time (s) | again (s) | CPU s, first time |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        first, again = (_way(Path(home)) for _ in range(2))
    for (command, wall, used), (_, later, _) in zip(first, again, strict=True):
        print(f"| `bica {command}` | {wall:.1f} | {later:.1f} | {used:.1f} |")
    totals = [sum(seconds) for seconds in zip(*([w, u] for _, w, u in first), strict=True)]
    print(f"| all; 300 s are allowed | {totals[0]:.1f} | {sum(w for _, w, _ in again):.1f} | {totals[1]:.1f} |\n")


def _way(home: Path) -> list[tuple[str, float, float]]:
    """Every command with its seconds on the clock and of CPU; the second time, kernels are compiled already."""
    taken = []
    with tempfile.TemporaryDirectory(dir=home) as folder:
        write_table(Path(folder))
        for words in TYPED:
            wall, used = time.perf_counter(), _children()
            typed(Path(folder), *words, env=os.environ | {"NUMBA_CACHE_DIR": str(home / "cache")})
            taken.append((" ".join(words[:2]), time.perf_counter() - wall, _children() - used))
    return taken


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


FILTER = """() => { const field = document.getElementById('search'), took = [];
for (const text of ['x1', 'x12', 'x123', 'source', 'no such', '']) { const start = performance.now();
field.value = text; field.dispatchEvent(new Event('input')); document.body.offsetHeight;
took.push(performance.now() - start); } return took; }"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def browser_figures(served: Served, fit: str) -> None:
    from playwright.sync_api import sync_playwright

    print("\n| in Chromium | milliseconds, median of 5 | limit |\n|---|---|---|")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, path in (
            ("start page, first paint", "/"),
            ("fit of 1000 sources, first paint", f"/fit/{fit}"),
        ):
            paints = [_paint(browser, f"{served.origin}{path}?token={served.token}") for _ in range(5)]
            print(f"| {name} | {np.median(paints):.0f} | 1000 |", flush=True)
        page = browser.new_page()
        page.goto(f"{served.origin}/fit/{fit}?token={served.token}")
        page.wait_for_selector("html[data-ready]")
        took = [milliseconds for _ in range(5) for milliseconds in page.evaluate(FILTER)]
        print(f"| a filter among 1000 sources (median of {len(took)}) | {np.median(took):.0f} | 100 |", flush=True)
        browser.close()


def _paint(browser, address: str) -> float:
    page = browser.new_context().new_page()
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.wait_for_timeout(300)
    found = page.evaluate(PAINT)
    page.context.close()
    return found


def crowd_figures(served: Served, fit: str, n_clients: int, seconds: float) -> None:
    before, used = served.megabytes(), served.cpu_seconds()
    counts, peak = crowd(served, fit, n_clients, seconds)
    print(
        f"\n{n_clients} clients at once for {seconds:.0f} s: {sum(counts.values())} requests, "
        f"{served.cpu_seconds() - used:.0f} s of CPU in the server; memory {before:.0f} MB before, {peak:.0f} MB at "
        f"most, {served.megabytes():.0f} MB after; alive: {'yes' if served.process.poll() is None else 'no'}"
    )
    print("\n| request | answer | times |\n|---|---|---|")
    for (deed, status), times in sorted(counts.items(), key=str):
        print(f"| {deed} | {status} | {times} |")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--clients", type=int, default=200)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--only", choices=["newcomer", "reports", "browser", "clients"])
    given = options.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    for part in (newcomer, reports):
        if given.only in (None, part.__name__):
            part()
    if given.only in ("newcomer", "reports"):
        return
    served = Served()
    store, (fit, rows) = Store(served.folder), fit_of(1000)
    large, small = store.keep_fit(fit, title="1000 sources").id, store.keep_fit(fit_of(20)[0], title="20 sources").id
    store.write_report(large, parts_of(fit, rows))
    try:
        if given.only in (None, "browser"):
            browser_figures(served, large)
        if given.only in (None, "clients"):
            crowd_figures(served, small, given.clients, given.seconds)
    finally:
        errors = served.close()
        shutil.rmtree(served.folder)
    print(f"\nwhat the server wrote on standard error: {' '.join(errors.split()) or 'nothing'}")


if __name__ == "__main__":
    main()
