"""FindBICA on a full histogram: against the recursion in NumPy, and against what memory allows.

python benchmarks/bench_findbica.py > benchmarks/results/findbica.md
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bica.estimate.findbica import probability_by_recursion

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.reference.slow_findbica import find_bica

N_SENSORS = 20
MIN_PROBABILITY = 0.0201357  # no ratio of whole numbers hits it: at equality, rounding would decide


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The least of several runs: what the work takes when nothing disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    histogram = rng.integers(0, 20, 2**N_SENSORS).astype(float)
    histogram[0] += 10  # some all-quiet rows
    probability_by_recursion(histogram[:16], MIN_PROBABILITY)  # compile
    left, right = histogram.copy(), np.zeros(2**N_SENSORS)

    adds = seconds(lambda: [np.add(left, right, out=left) for _ in range(N_SENSORS)], 15)
    lattice = seconds(lambda: probability_by_recursion(histogram, MIN_PROBABILITY), 15)
    recursion = seconds(lambda: find_bica(histogram, MIN_PROBABILITY), 1)
    difference = np.abs(
        find_bica(histogram, MIN_PROBABILITY) - probability_by_recursion(histogram, MIN_PROBABILITY)
    ).max()

    print("# FindBICA on a full histogram of 20 sensors\n\n    python benchmarks/bench_findbica.py\n")
    print("| work | seconds | ratio | wanted |\n| --- | --- | --- | --- |")
    print(f"| FindBICA, histogram in, probabilities out | {lattice:.4f} | 1 | |")
    print(f"| recursion in NumPy | {recursion:.1f} | {recursion / lattice:.0f} × FindBICA | ≥ 200 × |")
    print(
        f"| {N_SENSORS} × `np.add(a, b, out=a)` | {adds:.4f} | FindBICA takes {lattice / adds:.1f} × as long | ≤ 5 × |"
    )
    print(f"\nLargest difference between the two answers: {difference:.1e}.")


if __name__ == "__main__":
    main()
