"""How often FindBICA finds exactly the true sources.

python benchmarks/bench_recovery.py > benchmarks/results/recovery.md
"""

import numpy as np

from bica import FindBICA, OrMixture, PatternCounts
from bica.metrics import column_score
from bica.simulate import example, random_network

N_SEEDS = 100


def exact_runs(method: FindBICA, n_sensors: int, n_sources: int, n_samples: int) -> tuple[int, float, float]:
    """Exact runs out of N_SEEDS, mean recall, mean number of spurious sources."""
    exact, recall, spurious = 0, 0.0, 0.0
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        truth = random_network(n_sensors, n_sources, column_weight=(2, 4), probability=(0.05, 0.3), rng=rng)
        found = method.fit(PatternCounts.of(truth.sample(n_samples, rng)), rng).model
        score = column_score(found, truth)
        exact += score.recall == 1 and score.precision == 1
        recall += score.recall / N_SEEDS
        spurious += (1 - score.precision) * found.n_sources / N_SEEDS
    return exact, recall, spurious


def main() -> None:
    print("# Recovery by FindBICA, no noise\n\n    python benchmarks/bench_recovery.py\n")
    print("Random networks, columns of 2–4 ones, p ~ U(0.05, 0.3), ε = 0.02, seeds 0–99.")
    print("Wanted: exact in 9 of 10 runs at T = 10 000.\n")
    print("| m = n | T | reductions | exact of 100 | recall | spurious |\n| --- | --- | --- | --- | --- | --- |")
    variants = {"T1–T3": FindBICA(), "T1, T2": FindBICA(prune=False), "none": FindBICA(significance=None, prune=False)}
    for n_samples in (1000, 10_000):
        for name, method in variants.items():
            exact, recall, spurious = exact_runs(method, 10, 10, n_samples)
            print(f"| 10 | {n_samples} | {name} | {exact} | {recall:.3f} | {spurious:.2f} |")
    print("\nBundled networks, ε = 0.01, T = 5000:\n")
    print("| network | sensors | found of true | spurious |\n| --- | --- | --- | --- |")
    for name in ("abilene", "geant2009", "btnorthamerica"):
        known = example(name)
        truth = OrMixture(known.mixing, known.probability, sensors=known.sensors)
        data = PatternCounts.of(known.table_path)
        found = FindBICA(min_probability=0.01).fit(data, np.random.default_rng(0)).model
        score = column_score(found, truth)
        hits = round(score.recall * truth.n_sources)
        print(f"| {name} | {truth.n_sensors} | {hits} of {truth.n_sources} | {found.n_sources - hits} |")


if __name__ == "__main__":
    main()
