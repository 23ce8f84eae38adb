"""Sensors that err at rates of their own, or all alike: sources and rates by default, and with one flip rate.

python benchmarks/bench_unequal.py [seeds] [first seed] [problems] > benchmarks/results/unequal.md
"""

import statistics
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np

from bica import Likelihood, Noise, OrMixture, PatternCounts
from bica.errors import BicaWarning
from bica.metrics import column_score
from bica.simulate import random_network

N_SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
FIRST_SEED = (
    int(sys.argv[2]) if len(sys.argv) > 2 else 5000
)  # the constants of estimate/whole.py were chosen on seeds below 200
N_PROBLEMS = int(sys.argv[3]) if len(sys.argv) > 3 else None
TOLD = 0.02  # a standard error below which the rows tell a rate


@dataclass(frozen=True)
class Problem:
    """One row of the table: how often sensors miss and raise false alarms, drawn for every sensor."""

    title: str
    miss: tuple[float, float]
    false_alarm: tuple[float, float]
    n_sensors: int = 12
    n_sources: int = 8
    n_samples: int = 5000

    def draw(self, seed: int) -> tuple[OrMixture, PatternCounts]:
        """The network, and rows of it."""
        rng = np.random.default_rng(seed)
        network = random_network(self.n_sensors, self.n_sources, rng=rng)
        noise = Noise(rng.uniform(*self.false_alarm, self.n_sensors), rng.uniform(*self.miss, self.n_sensors))
        truth = OrMixture(network.mixing, network.probability, noise)
        return truth, PatternCounts.of(truth.sample(self.n_samples, rng))


PROBLEMS = (
    Problem("misses 0-40 %, false alarms 0-5 %, per sensor", (0.0, 0.4), (0.0, 0.05)),
    Problem("misses 0-5 %, false alarms 0-2 %, per sensor", (0.0, 0.05), (0.0, 0.02)),
    Problem("misses 15 %, false alarms 1 %, all sensors", (0.15, 0.15), (0.01, 0.01)),
    Problem("flips 5 %, all sensors", (0.05, 0.05), (0.05, 0.05)),
    Problem("no errors", (0.0, 0.0), (0.0, 0.0)),
    Problem("flips 10 %, all sensors, 300 rows", (0.1, 0.1), (0.1, 0.1), n_samples=300),
)


@dataclass(frozen=True)
class Run:
    """What one fit came to."""

    recall: float
    precision: float
    kind: str
    errors: tuple[float, ...]  # of the rates that the rows tell
    seconds: float
    n_with_one_rate: int


def run(problem: Problem, seed: int) -> Run:
    truth, data = problem.draw(seed)
    started = time.process_time()
    fit = Likelihood().fit(data, np.random.default_rng(0))
    seconds = time.process_time() - started
    score = column_score(fit.model, truth)
    plain = Likelihood(noise="estimate").fit(data, np.random.default_rng(0)).model.n_sources
    kind = fit.diagnostics["noise"].get("kind", "estimate")
    return Run(
        score.recall,
        score.precision,
        kind,
        rate_errors(fit.diagnostics["noise"], truth, data.varying()),
        seconds,
        plain,
    )


def rate_errors(report: dict, truth: OrMixture, varying: np.ndarray) -> tuple[float, ...]:
    """How far the rates are off whose standard errors say that the rows tell them."""
    if report.get("kind") == "leaks":  # an answer with lossy edges has no misses
        return ()
    true = dict(zip(("false_alarm", "miss"), truth.noise.rates(truth.n_sensors), strict=True))
    if "flip_rate" in report:
        return (abs(report["flip_rate"] - float(np.mean([*true.values()]))),)
    off = []
    for name, rates in true.items():
        found, error = np.array(report[name]["rate"]), np.array(report[name]["error"])
        rates = rates[varying] if found.size > 1 else rates[:1]
        off += np.abs(found - rates)[(error > 0) & (error < TOLD)].tolist()
    return tuple(off)


def line(problem: Problem, runs: list[Run]) -> str:
    kinds = [sum(one.kind == kind for one in runs) for kind in ("estimate", "two-rates", "per-sensor")]
    off = [error for one in runs for error in one.errors]
    within = np.mean(np.array(off) < TOLD) if off else 1.0
    return (
        f"| {problem.title} | {statistics.mean(one.recall for one in runs):.3f} "
        f"| {statistics.mean(one.precision for one in runs):.3f} | {kinds[0]} / {kinds[1]} / {kinds[2]} "
        f"| {statistics.median(off):.4f} | {within:.0%} | {statistics.median(one.seconds for one in runs):.1f} "
        f"| {max(one.seconds for one in runs):.1f} | {statistics.mean(one.n_with_one_rate for one in runs):.1f} |"
    )


def main() -> None:
    warnings.simplefilter("ignore", BicaWarning)
    Likelihood().fit(PROBLEMS[0].draw(0)[1], np.random.default_rng(0))  # compiles
    print("# Sensors that err in different ways, noise unknown\n")
    print(f"    python benchmarks/bench_unequal.py {N_SEEDS} {FIRST_SEED}\n")
    print(f"12 sensors, 8 sources of 2 to 4 sensors, p ~ U(.05, .3), 5000 rows, {N_SEEDS} seeds from {FIRST_SEED} on.")
    print(f"Rates count where their standard error is below {TOLD}; the rows leave the others open. CPU seconds.\n")
    print(
        "| sensors | recall | precision | one rate / two / per sensor | median error of rates | within .02 "
        "| median s | longest s | sources with one flip rate |"
    )
    print("| --- " * 9 + "|")
    for problem in PROBLEMS[:N_PROBLEMS]:
        print(line(problem, [run(problem, FIRST_SEED + seed) for seed in range(N_SEEDS)]), flush=True)


if __name__ == "__main__":
    main()
