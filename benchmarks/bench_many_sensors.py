"""Tables of many sensors: narrow sources, noise unknown; FastICA, told the number of sources, in the same run.

python benchmarks/bench_many_sensors.py > benchmarks/results/many_sensors.md
"""

import statistics
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from bica import BICA, Noise, OrMixture
from bica.metrics import column_score
from bica.simulate import random_network

N_SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


@dataclass(frozen=True)
class Problem:
    """One row of the table."""

    title: str
    wanted: str
    n_sensors: int
    n_sources: int
    flip_rate: float = 0.02
    n_samples: int = 50_000
    probability: tuple[float, float] = (0.01, 0.1)
    n_rival_seeds: int = 0


PROBLEMS = [
    Problem("m = 50, n = 60, 2 %", "1.0; ≤ 0.2; ≤ 2 s", 50, 60, n_rival_seeds=3),
    Problem("m = n = 200, 2 %", "≥ 0.995; ≤ 0.5; ≤ 5 s", 200, 200, n_rival_seeds=1),
    Problem("m = n = 1000, 2 %", "≥ 0.997; ≤ 2; ≤ 25 s", 1000, 1000),
    Problem(
        "m = n = 20, T = 10 000, p to 0.3, 5 %",
        "≥ 0.98; ≤ 0.3; ≤ 2 s",
        20,
        20,
        0.05,
        10_000,
        (0.05, 0.3),
        n_rival_seeds=3,
    ),
    Problem("m = n = 4000, 2 %", "≥ 0.99; ≤ 10", 4000, 4000),
]


@dataclass(frozen=True)
class Run:
    """What one seed gave."""

    recall: float
    precision: float
    wide_extra: int  # spurious sources of two sensors or more
    lone_extra: int
    seconds: float


def main() -> None:
    """Print the table, after a run that compiles the kernels."""
    one_run(Problem("", "", 24, 24, n_samples=5000), 999, rival=False)
    print(f"Means of {N_SEEDS} seeds, noise unknown; a source is found if its column is identical.")
    print("FastICA is told the number of sources; it has no noise model and no stopping rule of its own.\n")
    asked, rival = "asked: recall; spurious 2+; time", "FastICA: recall, precision, s"
    print(f"| problem | {asked} | recall | spurious 2+ | spurious 1 | median s | {rival} |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for problem in PROBLEMS:
        runs = [one_run(problem, seed, rival=False) for seed in range(N_SEEDS)]
        rivals = [one_run(problem, seed, rival=True) for seed in range(problem.n_rival_seeds)]
        print(f"| {problem.title} | {problem.wanted} | {told(runs)} | {told_rival(rivals)} |", flush=True)


def one_run(problem: Problem, seed: int, *, rival: bool) -> Run:
    """Simulate, learn, compare."""
    rng = np.random.default_rng(seed)
    noise = Noise.flips(problem.flip_rate)
    truth = random_network(problem.n_sensors, problem.n_sources, probability=problem.probability, noise=noise, rng=rng)
    rows = truth.sample(problem.n_samples, rng)
    begun = time.perf_counter()
    found = by_rival(rows, problem.n_sources) if rival else BICA().fit(rows).model_
    return compared(found, truth, time.perf_counter() - begun)


def by_rival(rows: np.ndarray, n_sources: int) -> OrMixture:
    """What a user would try first: one run of scikit-learn's FastICA, components cut at half their maximum."""
    n_components = min(n_sources, int(np.linalg.matrix_rank(rows - rows.mean(axis=0))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ica = FastICA(n_components, whiten="unit-variance", random_state=0).fit(rows.astype(float))
    mixing = ica.mixing_ * np.sign(ica.mixing_[np.abs(ica.mixing_).argmax(axis=0), np.arange(n_components)])
    columns = np.unique(mixing >= mixing.max(axis=0) / 2, axis=1)
    return OrMixture(columns, np.full(columns.shape[1], 0.5))


def compared(found: OrMixture, truth: OrMixture, seconds: float) -> Run:
    """Columns are right if they are identical."""
    score = column_score(found, truth)
    true = {tuple(column) for column in truth.mixing.T.tolist()}
    extra = [sum(column) for column in found.mixing.T.tolist() if tuple(column) not in true]
    lone = sum(size == 1 for size in extra)
    return Run(score.recall, score.precision, len(extra) - lone, lone, seconds)


def told(runs: list[Run]) -> str:
    """Our columns of the table."""
    mean = {
        name: statistics.mean(getattr(run, name) for run in runs) for name in ("recall", "wide_extra", "lone_extra")
    }
    seconds = statistics.median(run.seconds for run in runs)
    return f"{mean['recall']:.4f} | {mean['wide_extra']:.2f} | {mean['lone_extra']:.2f} | {seconds:.1f}"


def told_rival(runs: list[Run]) -> str:
    """The rival's column."""
    if not runs:
        return "–"
    recall, precision = (statistics.mean(getattr(run, name) for run in runs) for name in ("recall", "precision"))
    return f"{recall:.2f}, {precision:.2f}, {statistics.median(run.seconds for run in runs):.1f}"


if __name__ == "__main__":
    main()
