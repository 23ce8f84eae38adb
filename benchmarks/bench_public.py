"""Rivals of this package beside public implementations of the same methods, in one run.

    pip install nimfa PyBMF          # what is not there is left out
    python benchmarks/bench_public.py > benchmarks/results/public.md

Both sides get the same table, the same number of factors, one start and the same settings, on one thread. CPU seconds
are medians over five runs, each with a start of its own, kernels compiled.
"""

import argparse
import contextlib
import importlib.metadata
import io
import platform
import statistics
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from bica import PatternCounts
from bica.compare import Setting
from bica.errors import BicaWarning
from bica.methods import method_named

N_RUNS = 5
N_FACTORS = 10
ELASTIC = {"l1": 0.01, "l2": 0.02, "growth": 1.02, "max_iter": 3000}
THRESHOLD = 0.7  # of Asso; the others would repeat the same work


def planted(n_rows, n_columns, n_factors=N_FACTORS, share_on=0.3, flip_rate=0.05, seed=0):
    """Random factors whose OR is on in a given share of the cells, with flips."""
    rng = np.random.default_rng(seed)
    density = np.sqrt(1 - (1 - share_on) ** (1 / n_factors))
    activity, mixing = rng.random((n_rows, n_factors)) < density, rng.random((n_factors, n_columns)) < density
    return (activity @ mixing) ^ (rng.random((n_rows, n_columns)) < flip_rate)


TABLES = {"100 x 20": planted(100, 20), "300 x 50": planted(300, 50)}


def wrong(rows, left, right):
    """Cells that a Boolean product gets wrong."""
    return int((((np.asarray(left) > 0.5) @ (np.asarray(right) > 0.5)) != rows).sum())


def pybmf(model, rows):
    from scipy.sparse import csr_matrix

    model.fit(csr_matrix(rows.astype(int)), task="reconstruction", verbose=False, display=False, show_logs=False,
              show_result=False, save_model=False)  # fmt: skip
    return wrong(rows, model.U.toarray(), model.V.toarray().T)


def public_asso(rows, _):
    from PyBMF.models import Asso

    with TemporaryDirectory() as folder:  # it draws a picture into ../experiment
        Path(folder, "experiment").mkdir()
        Path(folder, "here").mkdir()
        with contextlib.chdir(Path(folder, "here")):
            return pybmf(Asso(tau=THRESHOLD, k=N_FACTORS, w_fp=0.5), rows)


def public_grecond(rows, _):
    from PyBMF.models import GreConD

    return pybmf(GreConD(), rows)


def public_grecond_plus(rows, _):
    from PyBMF.models import GreConDPlus

    return pybmf(GreConDPlus(k=N_FACTORS, w_fp=0.8), rows)


def public_elbmf(rows, seed):
    from PyBMF.models.ELBMFNumPy import ELBMF

    table = rows.astype(float)
    settings = [ELASTIC[name] for name in ("l1", "l2", "growth", "max_iter")]
    start = ELBMF(table, table, N_FACTORS, *settings, 1e-8, random_seed=seed)
    start.factorize()
    return wrong(rows, start.U, start.V)


def public_fastica(rows, seed):
    from sklearn.decomposition import FastICA

    FastICA(N_FACTORS, whiten="unit-variance", max_iter=200, random_state=seed).fit(rows.astype(float))


def public_bmf(rows, _):
    from nimfa import Bmf

    if not hasattr(np, "mat"):
        np.mat = np.asmatrix  # noqa: NPY201 (the name that it uses is gone since NumPy 2)
    found = Bmf(rows.astype(float), rank=N_FACTORS, max_iter=200, seed="nndsvd")()
    return wrong(rows, found.basis(), found.coef())


PAIRS = [  # package, what it has, called so; ours with the same work
    ("PyBMF", "Asso", public_asso, "asso", {"n_sources": N_FACTORS, "thresholds": (THRESHOLD,)}),
    ("PyBMF", "GreConD", public_grecond, "grecond", {}),
    ("PyBMF", "GreConD+", public_grecond_plus, "grecond-plus", {"max_sources": N_FACTORS, "cost_of_zero": 4.0}),
    ("PyBMF", "ELBMF (NumPy)", public_elbmf, "elbmf", {"n_sources": N_FACTORS, "n_init": 1, **ELASTIC}),
    ("scikit-learn", "FastICA", public_fastica, "fastica", {"n_sources": N_FACTORS, "n_init": 1}),
    ("nimfa", "Bmf", public_bmf, "elbmf", {"n_sources": N_FACTORS, "n_init": 1, **ELASTIC}),
]


def ours(name, settings, rows, seed):
    """Counting of rows included."""
    data = PatternCounts.of(rows)
    fit = method_named(name, **settings).fit(data, np.random.default_rng(seed))
    return int(fit.diagnostics["wrong_cells"])


def measured(task):
    """CPU seconds and wrong cells, medians over starts of different seeds."""
    seconds, cells = [], []
    for seed in range(N_RUNS):
        begin = process_time()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cells.append(task(seed))
        seconds.append(process_time() - begin)
    return statistics.median(seconds), None if None in cells else int(statistics.median(cells))


def line(table, package, title, public, name, settings):
    rows = TABLES[table]
    ours(name, settings, rows, 0)  # compiles
    our_seconds, our_cells = measured(lambda seed: ours(name, settings, rows, seed))
    try:
        version = importlib.metadata.version(package)
        seconds, cells = measured(lambda seed: public(rows, seed))
    except Exception as error:  # noqa: BLE001 (whatever a package of others runs into)
        return f"| {package} {title} | {table} | not run: {type(error).__name__} | - | `{name}` {our_seconds:.3f} | {our_cells} | - |"  # noqa: E501
    shown = "-" if cells is None else cells
    return (
        f"| {package} {version} {title} | {table} | {seconds:.3f} | {shown} | `{name}` {our_seconds:.3f} | "
        f"{our_cells} | {seconds / our_seconds:.1f} |"
    )


def ormachine_seconds():
    """Ten sensors, ten sources, 1000 rows: CPU seconds of the default, five starts, median over seeds."""
    seconds = []
    for seed in range(N_RUNS + 1):
        problem = Setting(network="random 10 x 10", n_samples=1000, flip_rate=0.02).draw(seed)
        data = PatternCounts.of(problem.rows)
        begin = process_time()
        method_named("ormachine", n_sources=10).fit(data, np.random.default_rng(seed))
        seconds.append(process_time() - begin)
    return statistics.median(seconds[1:])  # the first compiles


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--methods", type=lambda text: text.split(","), help="ours, by name; all unless given")
    asked = parser.parse_args().methods
    warnings.simplefilter("ignore")
    warnings.simplefilter("ignore", BicaWarning)
    print("# Rivals beside public implementations\n\n    python benchmarks/bench_public.py\n")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, one thread. CPU seconds, median of {N_RUNS};")
    print(f"{N_FACTORS} factors planted, 5 % of the cells flipped, one start, equal settings. Wrong: cells that the")
    print("factors rebuild wrongly; `-` where there is nothing to count. The last column is how many times as long the")
    print(
        "public one takes. nimfa's Bmf stands for no method here; it is put beside `elbmf`, the other relaxation, with"
    )
    print("`np.mat`, which NumPy 2 no longer has, given back for this run. Both GreConD+ stop at 10 factors: without a")
    print("number the public one ends in an error. Of OrMachine and message passing nothing public installs.\n")
    print("| public | table | CPU s | wrong | here, CPU s | wrong | ratio |\n|" + " --- |" * 7)
    for table in TABLES:
        for pair in PAIRS:
            if asked is None or pair[3] in asked:
                print(line(table, *pair), flush=True)
    print(f"\nOrMachine, 10 sensors, 10 sources, 1000 rows, defaults (5 starts): {ormachine_seconds():.2f} s CPU.")


if __name__ == "__main__":
    main()
