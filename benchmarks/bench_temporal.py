"""How much knowing that sources persist helps to decode consecutive rows.

python benchmarks/bench_temporal.py > benchmarks/results/temporal.md
"""

import numpy as np

from bica import BICA, OrMixture
from bica.invert.decode import decode
from bica.invert.temporal.decode import decode_in_time
from bica.kernels.bits import packed
from bica.metrics import activity_error_ratio, match_columns
from bica.model.noise import Noise
from bica.simulate import Problem, random_network, simulate

N_SEEDS = 20
STAY = 10


def problem(n: int, n_samples: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    model = random_network(n, n, column_weight=(2, 4), probability=(0.1, 0.1), noise=Noise.flips(0.1), rng=rng)
    return simulate(model, n_samples, rng, persistence=STAY)


def errors(model: OrMixture, given: Problem, *, known_stay: bool) -> tuple[float, float]:
    """The activity error ratio row by row and in time."""
    match = match_columns(model.mixing, given.model.mixing, model.probability)
    words = packed(given.rows)
    alone = decode(model, words).activity
    course = decode_in_time(model, words, persistence=STAY if known_stay else "estimate").activity
    return (
        activity_error_ratio(alone, given.activity, match),
        activity_error_ratio(course, given.activity, match),
    )


def row(n: int, n_samples: int, name: str, pairs: list[tuple[float, float]]) -> str:
    alone, course = np.array(pairs).T
    ratio = course / alone
    return (
        f"| {n} | {n_samples} | {name} | {alone.mean():.4f} | {course.mean():.4f} | {course.sum() / alone.sum():.2f} | "
        f"{ratio.max():.2f} | {(ratio <= 0.5).sum()} |"
    )


def main() -> None:
    print("# Decoding consecutive rows together\n\n    python benchmarks/bench_temporal.py\n")
    print(f"Random networks, columns of 2–4 ones, stationary p = 0.1, mean stay {STAY} slots, 10 % flips, seeds 0–19.")
    print("Share of wrong cells in the decoded activity: each row alone (MAP), and all rows together. Wanted at")
    print("m = n = 10: at most half. The learned model knows neither sources nor noise nor stays. Up to 12 connected")
    print("sources the course is the best there is; at m = n = 20 it is an approximation.\n")
    print("| m = n | T | model and stays | row by row | in time | ratio | worst ratio | seeds at most half, of 20 |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for n, n_samples in ((10, 2000), (10, 10_000), (20, 2000)):
        problems = [problem(n, n_samples, seed) for seed in range(N_SEEDS)]
        for known_stay, name in ((True, "true, true"), (False, "true, estimated")):
            pairs = [errors(given.model, given, known_stay=known_stay) for given in problems]
            print(row(n, n_samples, name, pairs), flush=True)
        if n <= 10:
            pairs = [errors(BICA().fit(given.rows).model_, given, known_stay=False) for given in problems]
            print(row(n, n_samples, "learned, estimated", pairs), flush=True)


if __name__ == "__main__":
    main()
