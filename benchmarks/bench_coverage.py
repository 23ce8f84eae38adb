"""How often the 95 % intervals of ``Likelihood`` hold the truth.

python benchmarks/bench_coverage.py > benchmarks/results/coverage.md
"""

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica import Likelihood, Noise, PatternCounts
from bica.simulate import random_network

N_RUNS = 500
N_SAMPLES = 10_000
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
SETTING = """
Random networks, m = n = 10, columns of 2–4 ones, p ~ U(0.05, 0.3), T = 10 000, {} runs a row, noise unknown to the
method; 10 % stands for rates drawn from U(0.09, 0.11). Every true source counts; one that was not found exactly is not
covered. Wanted: 92–98 % of all. The error is estimate minus truth of the sources found, s.e. the standard error given.
In runs that are not exact, a spurious source may take a share of a true one, whose error is then many s.e.
"""


@dataclass(frozen=True)
class Run:
    """One simulated table; arrays have an entry for every true source, NaN where it was not found."""

    covered: NDArray[np.bool_]
    deviation: NDArray[np.float64]  # estimate minus truth
    error: NDArray[np.float64]
    exact: bool
    noise_covered: bool
    noise_width: float


def one_run(seed: int, noisy: bool) -> Run:
    rng = np.random.default_rng([seed, noisy])
    flip_rate = rng.uniform(0.09, 0.11) if noisy else 0.0
    truth = random_network(10, 10, noise=Noise.flips(flip_rate), rng=rng)
    fit = Likelihood().fit(PatternCounts.of(truth.sample(N_SAMPLES, rng)), rng)
    known = np.column_stack([fit.model.probability, fit.probability_error, fit.interval()])
    found = dict(zip(map(tuple, fit.model.mixing.T), known, strict=True))
    matched = np.array([found.get(tuple(column), [np.nan] * 4) for column in truth.mixing.T])
    estimate, error, low, high = matched.T
    noise_low, noise_high = fit.diagnostics["noise"]["interval"]
    return Run(
        covered=(low <= truth.probability) & (truth.probability <= high),
        deviation=estimate - truth.probability,
        error=error,
        exact=not np.isnan(estimate).any() and len(found) == truth.n_sources,
        noise_covered=noise_low <= flip_rate <= noise_high,
        noise_width=noise_high - noise_low,
    )


def row(title: str, runs: Sequence[Run]) -> str:
    covered, deviation, error = (
        np.concatenate([getattr(run, part) for run in runs]) for part in ("covered", "deviation", "error")
    )
    found = ~np.isnan(error)
    deviation, error = deviation[found], error[found]
    shares = [covered.mean(), covered[found].mean(), found.mean(), np.mean([run.exact for run in runs])]
    noise_covered, noise_width = np.mean([(run.noise_covered, run.noise_width) for run in runs], axis=0)
    cells = [title, *(f"{share:.1%}" for share in shares), f"{np.mean(deviation / error):+.2f}"]
    cells += [f"{error.mean():.5f}", f"{deviation.std():.5f}", f"{error.mean() / deviation.std():.2f}"]
    return "| " + " | ".join([*cells, f"{noise_covered:.1%}", f"{noise_width:.5f}"]) + " |"


def main() -> None:
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else N_RUNS
    print("# Coverage of the 95 % intervals of Likelihood\n\n    python benchmarks/bench_coverage.py")
    print(SETTING.format(n_runs))
    print("| " + " | ".join(TITLES) + " |\n|" + " --- |" * len(TITLES), flush=True)
    with ProcessPoolExecutor(2) as pool:
        for noisy, title in ((False, "0"), (True, "10 %")):
            runs = list(pool.map(one_run, range(n_runs), [noisy] * n_runs, chunksize=5))
            print(row(title, runs))
            print(row(f"{title}, exact runs only", [run for run in runs if run.exact]), flush=True)


if __name__ == "__main__":
    main()
