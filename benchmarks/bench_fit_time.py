"""How long Likelihood takes on one core, warm, noise unknown; and that its time hardly depends on the number of rows.

Run it as

    python benchmarks/bench_fit_time.py > benchmarks/results/fit_time.md
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from bica import Likelihood, Noise, PatternCounts
from bica.kernels.lattice.subsets import subset_sums
from bica.simulate import random_network

N_SEEDS = 15


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fit_seconds(n_sensors: int, n_samples: int, n_seeds: int) -> tuple[float, float]:
    """Median and longest fit of a random network with about 10 % noise; counting the rows is not included."""
    times = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        truth = random_network(n_sensors, n_sensors, noise=Noise.flips(rng.uniform(0.09, 0.11)), rng=rng)
        data = PatternCounts.of(truth.sample(n_samples, rng))
        times.append(seconds(partial(Likelihood().fit, data, rng)))
    return statistics.median(times), max(times)


def main() -> None:
    fit_seconds(5, 200, 1)  # compile
    table = np.ones(2**20)
    transform = min(seconds(lambda: subset_sums(table, 1e-9)) for _ in range(9))
    print("# Time of one fit by likelihood\n\n    python benchmarks/bench_fit_time.py\n")
    print("Random networks, m = n, columns of 2–4 ones, p ~ U(0.05, 0.3), flip rate from U(0.09, 0.11); one core,")
    print(f"kernels warm, rows counted already. One zeta transform of 2^20 numbers: {1000 * transform:.2f} ms.\n")
    print("| m | T | runs | median s | longest s | median in zeta transforms | wanted |\n" + "|" + " --- |" * 7)
    for n_sensors, n_samples, n_seeds, wanted in (
        (10, 1000, N_SEEDS, "0.5 s"),
        (10, 10_000, N_SEEDS, ""),
        (10, 100_000, N_SEEDS, ""),
        (16, 1000, 7, "5 s"),
    ):
        median, longest = fit_seconds(n_sensors, n_samples, n_seeds)
        row = n_sensors, n_samples, n_seeds, f"{median:.2f}", f"{longest:.2f}", f"{median / transform:.0f}", wanted
        print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
