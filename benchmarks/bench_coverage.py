"""How often the 95 % intervals of ``Likelihood`` hold the truth.

python benchmarks/bench_coverage.py > benchmarks/results/coverage.md
"""

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from bica import Likelihood, Noise, PatternCounts
from bica.simulate import random_network

N_RUNS = 500
N_SENSORS = N_SOURCES = 10
N_SAMPLES = 10_000
LEVEL = 0.95
TITLES = (
    "noise",
    "covered, of all",
    "of found",
    "found",
    "exact runs",
    "mean error / s.e.",
    "mean s.e.",
    "s.d. of the error",
    "their ratio",
    "noise covered",
    "width of its interval",
)


@dataclass(frozen=True)
class Run:
    """One simulated table: what the intervals held."""

    found: list[bool]  # for each true source
    held: list[bool]  # for each found one of these: the interval holds the true probability
    miss: list[float]  # estimate minus truth
    error: list[float]  # the standard error
    n_spurious: int
    noise_held: bool
    noise_width: float


def one_run(seed: int, noisy: bool) -> Run:
    rng = np.random.default_rng([seed, noisy])
    flip_rate = rng.uniform(0.09, 0.11) if noisy else 0.0
    truth = random_network(N_SENSORS, N_SOURCES, noise=Noise.flips(flip_rate), rng=rng)
    fit = Likelihood().fit(PatternCounts.of(truth.sample(N_SAMPLES, rng)), rng)
    places = {column.tobytes(): place for place, column in enumerate(np.ascontiguousarray(fit.model.mixing.T))}
    found = [places.get(column.tobytes()) for column in np.ascontiguousarray(truth.mixing.T)]
    pairs = [(true, place) for true, place in enumerate(found) if place is not None]
    ends = fit.interval(LEVEL)
    low, high = fit.diagnostics["noise"]["interval"]
    return Run(
        found=[place is not None for place in found],
        held=[bool(ends[place][0] <= truth.probability[true] <= ends[place][1]) for true, place in pairs],
        miss=[float(fit.model.probability[place] - truth.probability[true]) for true, place in pairs],
        error=[float(fit.probability_error[place]) for _, place in pairs],
        n_spurious=fit.model.n_sources - len(pairs),
        noise_held=low <= flip_rate <= high,
        noise_width=high - low,
    )


def row(title: str, runs: Sequence[Run]) -> str:
    found, held = sum((run.found for run in runs), []), sum((run.held for run in runs), [])
    miss, error = np.array(sum((run.miss for run in runs), [])), np.array(sum((run.error for run in runs), []))
    exact = np.mean([all(run.found) and not run.n_spurious for run in runs])
    shares = [sum(held) / len(found), np.mean(held), np.mean(found), exact]
    noise = np.mean([run.noise_held for run in runs])
    cells = [title, *(f"{100 * share:.1f} %" for share in shares), f"{np.mean(miss / error):+.2f}"]
    cells += [f"{error.mean():.5f}", f"{miss.std():.5f}", f"{error.mean() / miss.std():.2f}"]
    cells += [f"{100 * noise:.1f} %", f"{np.mean([run.noise_width for run in runs]):.5f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else N_RUNS
    print("# Coverage of the 95 % intervals of Likelihood\n\n    python benchmarks/bench_coverage.py\n")
    print(
        f"Random networks, m = n = {N_SENSORS}, columns of 2–4 ones, p ~ U(0.05, 0.3), T = {N_SAMPLES}, {n_runs} runs a"
    )
    print(
        "row, noise unknown to the method; 10 % stands for rates drawn from U(0.09, 0.11). Every true source counts; one"
    )
    print("that was not found exactly is not covered. Wanted: 92–98 % of all.\n")
    print("| " + " | ".join(TITLES) + " |\n|" + " --- |" * len(TITLES), flush=True)
    with ProcessPoolExecutor(2) as pool:
        for noisy, title in ((False, "0"), (True, "10 %")):
            print(row(title, list(pool.map(one_run, range(n_runs), [noisy] * n_runs, chunksize=5))), flush=True)


if __name__ == "__main__":
    main()
