"""Few noisy rows: what averaging over sets of sources changes, and whether its support is calibrated.

    python benchmarks/bench_few_rows.py records.jsonl random:200:5000:5100 three:1000:5000:5025 ...
    python benchmarks/bench_few_rows.py records.jsonl > benchmarks/results/few_rows.md

The first line learns and appends records: network, rows, first seed and the one after the last. The second prints
their tables. Prior and distance were chosen on seeds 1000 to 1024. Noise is unknown to the learner.
"""

import json
import sys
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bica import FindBICA, Fit, Likelihood, Noise, OrMixture, PatternCounts
from bica.estimate import likelihood
from bica.metrics import column_score, match_columns, transmission_probability_error
from bica.simulate import random_network, topology

BINS = (0.0, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0)
THRESHOLD = 0.05  # of FindBICA, the best of its settings at 10 %
WAYS = ("FindBICA", "best score", "averaged")
ORDER = ("random", "one", "two", "three", "four")


def measures(found: OrMixture, truth: OrMixture, n_samples: int, seconds: float) -> list[float]:
    """H̄g, F1, the number of sources, whether it is right, P̄ and the CPU seconds."""
    match = match_columns(found.mixing, truth.mixing, found.probability)
    error = transmission_probability_error(match.probability, truth.probability, n_samples=n_samples)
    right = float(found.n_sources == truth.n_sources)
    return [match.hamming_distance, column_score(found, truth).f1, found.n_sources, right, error.value, seconds]


def drawn(name: str, n_samples: int, seed: int) -> tuple[OrMixture, PatternCounts]:
    rng = np.random.default_rng([seed, n_samples])
    if name == "random":
        truth = random_network(10, 10, noise=Noise.flips(rng.uniform(0.09, 0.11)), rng=rng)
    else:
        plain = topology(name)
        truth = OrMixture(plain.mixing, plain.probability, Noise.flips(0.1), sensors=plain.sensors)
    return truth, PatternCounts.of(truth.sample(n_samples, rng), sensors=truth.sensors)


def both_ways(data: PatternCounts) -> tuple[Fit, float, Fit, float]:
    """The best-scoring set of sources, and the averaged answer from there on, with the CPU seconds of each."""
    before, averaged = [], likelihood.averaged

    def noting(table, settings, fit, task):  # what the search alone would have answered
        before.append((fit, time.process_time()))
        return averaged(table, settings, fit, task)

    likelihood.averaged = noting
    start = time.process_time()
    fit = Likelihood().fit(data, np.random.default_rng(0))
    end = time.process_time()
    likelihood.averaged = averaged
    found, found_at = before[0] if before else (fit, end)  # a search that leads by far is not averaged
    return found, found_at - start, fit, end - start


def edges_right(fit: Fit, truth: OrMixture) -> list[tuple[float, bool]]:
    """The support of every edge, and whether the true source that stands for its source has it."""
    match = match_columns(fit.model.mixing, truth.mixing, fit.model.probability)
    true = np.zeros(fit.model.mixing.shape, dtype=bool)
    for place, found in enumerate(match.order):
        if found >= 0:
            true[:, found] = truth.mixing[:, place]
    edge = fit.model.mixing
    return list(zip(fit.edge_support[edge].tolist(), true[edge].tolist(), strict=True))


def sources_right(fit: Fit, truth: OrMixture) -> list[tuple[float, bool]]:
    true = {column.tobytes() for column in truth.mixing.T.copy()}
    return [
        (share, column.tobytes() in true) for share, column in zip(fit.support, fit.model.mixing.T.copy(), strict=True)
    ]


def record(name: str, n_samples: int, seed: int) -> dict[str, Any]:
    """What one table gave."""
    truth, data = drawn(name, n_samples, seed)
    start = time.process_time()
    rival = FindBICA(min_probability=THRESHOLD, noise=Noise()).fit(data, np.random.default_rng(0)).model
    of_rival = measures(rival, truth, n_samples, time.process_time() - start)
    before, first, fit, seconds = both_ways(data)
    known = fit.support is not None
    return {
        "network": name,
        "n_samples": n_samples,
        "seed": seed,
        "FindBICA": of_rival,
        "best score": measures(before.model, truth, n_samples, first),
        "averaged": measures(fit.model, truth, n_samples, seconds),
        "sources": sources_right(fit, truth) if known else [],
        "edges": edges_right(fit, truth) if known else [],
    }


def print_calibration(what: str, pairs: list[tuple[float, bool]]) -> None:
    """How many of the sources or edges of each support are true."""
    share, right = np.array(pairs).T
    print(f"\n| support of {what} | how many | mean support | true |\n| --- | ---: | ---: | ---: |")
    for low, high in pairwise(BINS):
        inside = (share >= low) & ((share < high) | (high == 1.0))
        if inside.any():
            print(f"| {low:g}–{high:g} | {inside.sum()} | {share[inside].mean():.2f} | {right[inside].mean():.2f} |")


def print_tables(records: list[dict[str, Any]]) -> None:
    """One line per network, number of rows and way; then the calibration."""
    cells = defaultdict(list)
    for entry in records:
        cells[ORDER.index(entry["network"]), entry["n_samples"]].append(entry)
    print("# Few noisy rows: averaging over sets of sources\n\n    python benchmarks/bench_few_rows.py records.jsonl\n")
    print(
        "10 % flips, unknown (random networks, m = n = 10: drawn from U(0.09, 0.11)); seeds from 5000 on, while prior"
    )
    print(
        "and distance were chosen on seeds 1000 to 1024. “Best score” is the answer of the search alone, “averaged” the"
    )
    print(
        "one that is given. P̄ is the divergence of the probabilities, where a missing source counts as 1 / T; FindBICA"
    )
    print(
        f"with the threshold {THRESHOLD}. Medians of CPU seconds on a busy machine; “averaged” includes the search.\n"
    )
    print("| network | T | tables | answer | H̄g | F1 | sources | number right | P̄ | CPU s |\n|" + " --- |" * 10)
    for (place, n_samples), entries in sorted(cells.items()):
        for way in WAYS:
            values = np.array([entry[way] for entry in entries])
            distance, f1, number, right, divergence, _ = values.mean(axis=0)
            print(
                f"| {ORDER[place]} | {n_samples} | {len(entries)} | {way} | {distance:.4f} | {f1:.3f} | {number:.2f} "
                f"| {right:.0%} | {divergence:.4f} | {np.median(values[:, 5]):.2f} |"
            )
    for what, names in (("random networks", ORDER[:1]), ("the four networks", ORDER[1:])):
        for kind in ("sources", "edges"):
            pairs = [tuple(pair) for entry in records if entry["network"] in names for pair in entry[kind]]
            if pairs:
                print_calibration(f"{kind}, {what}", pairs)


def main() -> None:
    path = Path(sys.argv[1])
    for cell in sys.argv[2:]:
        name, *numbers = cell.split(":")
        n_samples, first, last = map(int, numbers)
        for seed in range(first, last):
            with path.open("a") as file:
                file.write(json.dumps(record(name, n_samples, seed)) + "\n")
    if len(sys.argv) == 2:
        print_tables([json.loads(line) for line in path.read_text().splitlines()])


if __name__ == "__main__":
    main()
