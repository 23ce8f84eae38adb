"""Middle sizes, 10 to 24 connected sensors with noise: how long a fit takes, and whether it is right.

python benchmarks/bench_middle.py > benchmarks/results/middle.md

``--seeds 3`` runs fewer tables of each kind, ``--first-seed`` others, ``--only 18`` those of so many sensors.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bica import Likelihood, Noise, OrMixture, PatternCounts
from bica.kernels.lattice.subsets import subset_sums
from bica.metrics import column_score
from bica.simulate import random_network


@dataclass(frozen=True)
class Problem:
    """One row of the table."""

    n_sensors: int
    column_weight: tuple[int, int]
    probability: tuple[float, float]
    flip_rate: float
    n_samples: int
    wanted: str

    @property
    def title(self) -> str:
        """The problem in words."""
        narrow, wide = self.column_weight
        return (
            f"m = n = {self.n_sensors}, columns of {narrow}–{wide}, p ~ U{self.probability}, {self.flip_rate:.0%}, "
            f"T = {self.n_samples}"
        )


PROBLEMS = [
    Problem(10, (2, 4), (0.1, 0.5), 0.1, 1000, "≤ 0.3 s"),
    Problem(16, (2, 4), (0.05, 0.3), 0.1, 1000, "≤ 1.5 s"),
    Problem(18, (2, 6), (0.1, 0.4), 0.05, 5000, "median ≤ 2, longest ≤ 6 s; recall, precision ≥ 0.98"),
    Problem(20, (2, 6), (0.1, 0.4), 0.05, 5000, "median ≤ 3, longest ≤ 10 s; recall, precision ≥ 0.98"),
    Problem(20, (2, 4), (0.05, 0.3), 0.05, 1000, "≤ 2 s; recall ≥ 0.98"),
    Problem(24, (2, 4), (0.05, 0.3), 0.05, 10_000, "≤ 3 s; recall ≥ 0.99, none spurious"),
]


@dataclass(frozen=True)
class Run:
    """What one seed gave."""

    recall: float
    precision: float
    seconds: float
    settled: bool


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this process: other work on the machine counts little."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def one_run(problem: Problem, seed: int) -> Run:
    """Simulate, learn with unknown noise on one thread, compare; counting the rows is not timed."""
    rng = np.random.default_rng(seed)
    truth = random_network(
        problem.n_sensors,
        problem.n_sensors,
        column_weight=problem.column_weight,
        probability=problem.probability,
        noise=Noise.flips(problem.flip_rate),
        rng=rng,
    )
    data = PatternCounts.of(truth.sample(problem.n_samples, rng))
    begun = time.process_time()
    fit = Likelihood(n_jobs=1).fit(data, np.random.default_rng(0))
    seconds = time.process_time() - begun
    return _compared(fit.model, truth, seconds, settled=fit.converged)


def _compared(found: OrMixture, truth: OrMixture, seconds: float, *, settled: bool) -> Run:
    score = column_score(found, truth)
    return Run(score.recall, score.precision, seconds, settled)


def settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="tables of each kind")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="+", help="numbers of sensors")
    return parser.parse_args()


def main() -> None:
    """Print the table, after fits that compile the kernels."""
    given = settings()
    chosen = [problem for problem in PROBLEMS if given.only is None or problem.n_sensors in given.only]
    for problem in {problem.n_sensors > 16: problem for problem in chosen}.values():
        one_run(problem, 999)
    table = np.ones(2**20)
    transform = min(cpu_seconds(lambda: subset_sums(table, 1e-9)) for _ in range(9))
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    print("# Time of a fit of 10 to 24 connected sensors, noise unknown\n\n    python benchmarks/bench_middle.py\n")
    print(f"Seeds {seeds[0]} to {seeds[-1]}; CPU seconds of one thread, kernels warm, rows counted already. One zeta")
    print(f"transform of 2^20 numbers: {1000 * transform:.2f} ms. A source is found if its column is identical.\n")
    print("| problem | wanted | median s | longest s | median in zeta transforms | recall | precision | not settled |")
    print("|" + " --- |" * 8)
    for problem in chosen:
        runs = []
        for seed in seeds:
            runs.append(one_run(problem, seed))
            print(problem.title, seed, runs[-1], file=sys.stderr, flush=True)
        median, longest = statistics.median(run.seconds for run in runs), max(run.seconds for run in runs)
        recall, precision = (statistics.mean(getattr(run, name) for run in runs) for name in ("recall", "precision"))
        unsettled = sum(not run.settled for run in runs)
        print(
            f"| {problem.title} | {problem.wanted} | {median:.2f} | {longest:.2f} | {median / transform:.0f} | "
            f"{recall:.3f} | {precision:.3f} | {unsettled} of {len(runs)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
