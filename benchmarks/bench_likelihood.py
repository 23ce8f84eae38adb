"""Likelihood against FindBICA on random networks, noise unknown: structure, number of sources, flip rate, search.

python benchmarks/bench_likelihood.py > benchmarks/results/likelihood.md
"""

import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from bica import FindBICA, Likelihood, Noise, OrMixture, PatternCounts
from bica.estimate.likelihood import lattice_task
from bica.estimate.search import SourceSearch, Start
from bica.estimate.settings import Varying
from bica.kernels.lattice.subsets import subset_sums
from bica.metrics import column_score, hamming_distance
from bica.simulate import random_network

N_SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
THRESHOLDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.08)


@dataclass(frozen=True)
class Problem:
    """One row of the table."""

    title: str
    wanted: str
    n_sensors: int
    n_sources: int
    n_samples: int
    flip_rates: tuple[float, float]
    probability: tuple[float, float] = (0.05, 0.3)


@dataclass(frozen=True)
class Run:
    """What one seed gave."""

    hamming: float
    f1: float
    recall: float
    precision: float
    n_sources: int
    flip_error: float
    score_above_truth: float
    seconds: float
    rival_hamming: tuple[float, ...]
    rival_f1: tuple[float, ...]


NONE, TEN, FIVE = (0.0, 0.0), (0.09, 0.11), (0.045, 0.055)
PROBLEMS = [
    Problem("0 %, T = 100", "≤ 0.09", 10, 10, 100, NONE),
    Problem("0 %, T = 200", "≤ 0.01, 9.7–10.3", 10, 10, 200, NONE),
    Problem("0 %, T = 1000", "≤ 0.003, 9.9–10.1", 10, 10, 1000, NONE),
    Problem("10 %, T = 200", "≤ 0.06", 10, 10, 200, TEN),
    Problem("10 %, T = 1000", "≤ 0.025, 9.5–10.5, rate within 0.01", 10, 10, 1000, TEN),
    Problem("10 %, T = 10 000", "exact in ≥ 90 %", 10, 10, 10_000, TEN),
    Problem("m = 8, n = 12, 0 %, T = 5000", "recall, precision ≥ 0.95", 8, 12, 5000, NONE),
    Problem("m = 8, n = 12, 5 %, T = 5000", "recall, precision ≥ 0.95", 8, 12, 5000, FIVE),
    Problem("p ~ U(0.1, 0.5), 0 %, T = 1000", "exact in ≥ 95 %", 10, 10, 1000, NONE, (0.1, 0.5)),
    Problem("p ~ U(0.1, 0.5), 10 %, T = 1000", "recall, precision ≥ 0.88", 10, 10, 1000, TEN, (0.1, 0.5)),
]


def run(problem: Problem, seed: int) -> Run:
    """Draw a network and rows, learn, and compare with the truth and with FindBICA at every threshold."""
    rng = np.random.default_rng([seed, problem.n_samples])
    noise = Noise.flips(rng.uniform(*problem.flip_rates))
    truth = random_network(problem.n_sensors, problem.n_sources, probability=problem.probability, noise=noise, rng=rng)
    data = PatternCounts.of(truth.sample(problem.n_samples, rng), sensors=truth.sensors)
    start = time.perf_counter()
    fit = Likelihood().fit(data, rng)
    seconds = time.perf_counter() - start
    score = column_score(fit.model, truth)
    rivals = [FindBICA(min_probability=threshold, noise=Noise()).fit(data, rng).model for threshold in THRESHOLDS]
    return Run(
        hamming=hamming_distance(fit.model.mixing, truth.mixing),
        f1=score.f1,
        recall=score.recall,
        precision=score.precision,
        n_sources=fit.model.n_sources,
        flip_error=abs(fit.model.noise.false_alarm - noise.false_alarm),
        score_above_truth=fit.diagnostics["score"] - score_of_truth(truth, data),
        seconds=seconds,
        rival_hamming=tuple(hamming_distance(rival.mixing, truth.mixing) for rival in rivals),
        rival_f1=tuple(column_score(rival, truth).f1 for rival in rivals),
    )


def score_of_truth(truth: OrMixture, data: PatternCounts) -> float:
    """The penalised likelihood of the true sources, refitted, as far as the sensors that vary show them."""
    task = lattice_task(Varying.of(data, (), ()), Likelihood())
    seen = truth.of_sensors(task.table.places)
    sources = (1 << np.arange(seen.n_sensors)) @ seen.mixing
    scores = []
    for flip_rate in (max(truth.noise.false_alarm, 1e-4), 0.02):
        start = Start(sources, seen.rate, np.ones(sources.size, dtype=bool), np.array([flip_rate]))
        scores.append(SourceSearch(task.search().task, start).best.score)
    return max(scores)


def row(problem: Problem, runs: list[Run]) -> str:
    """One line of the table."""

    def mean(name: str) -> float:
        return statistics.mean(getattr(run, name) for run in runs)

    exact = statistics.mean(run.recall == 1 and run.precision == 1 for run in runs)
    best_hamming = min(np.mean([run.rival_hamming for run in runs], axis=0))
    best_f1 = max(np.mean([run.rival_f1 for run in runs], axis=0))
    return (
        f"| {problem.title} | {problem.wanted} | {mean('hamming'):.4f} | {mean('n_sources'):.2f} | {exact:.0%} "
        f"| {mean('recall'):.3f} | {mean('precision'):.3f} | {mean('f1'):.3f} | {mean('flip_error'):.4f} "
        f"| {mean('score_above_truth'):+.2f} | {best_hamming:.4f} | {best_f1:.3f} "
        f"| {statistics.median(run.seconds for run in runs):.2f} |"
    )


def main() -> None:
    print("# The likelihood learner, noise unknown\n\n    python benchmarks/bench_likelihood.py\n")
    print(
        f"Random networks, m = n = 10 unless said, columns of 2–4 ones, p ~ U(0.05, 0.3) unless said, {N_SEEDS} seeds."
    )
    print("“10 %” draws the flip rate from U(0.09, 0.11), “5 %” from U(0.045, 0.055). H̄g by MatchPG; “score − truth”:")
    print("mean penalised likelihood above that of the true sources, refitted (negative would be a failure of the")
    print(
        "search). FindBICA with T1–T3 at the threshold of",
        ", ".join(map(str, THRESHOLDS)),
        "that is best for the row.\n",
    )
    print(
        "| problem | wanted | H̄g | sources | exact | recall | precision | F1 | rate error | score − truth "
        "| FindBICA H̄g | FindBICA F1 | seconds |"
    )
    print("|" + " --- |" * 13)
    with ProcessPoolExecutor(2) as pool:
        for problem in PROBLEMS:
            runs = list(pool.map(run, [problem] * N_SEEDS, range(N_SEEDS)))
            print(row(problem, runs), flush=True)
    print("\nSeconds are medians of one fit on one core beside another; ", end="")
    table = np.ones(2**20)
    subset_sums(table, 1e-9)
    start = time.perf_counter()
    subset_sums(table, 1e-9)
    print(f"one zeta transform of 2^20 numbers took {1000 * (time.perf_counter() - start):.1f} ms in the same run.")


if __name__ == "__main__":
    main()
