"""Lossy edges on many sensors: sources, edges and their numbers found from the rows alone.

BICA_DATA=folder-of-tables python benchmarks/bench_lossy_rows.py > benchmarks/results/lossy_rows.md
"""

import csv
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.optimize import linear_sum_assignment

from bica import Noise, OrMixture
from bica.data.patterns import PatternCounts
from bica.estimate.edges import LossyFit
from bica.estimate.rows.lossy import learn_lossy_rows
from bica.estimate.settings import Settings, Varying

SHARE = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0  # of the tables of each case
DATA = Path(os.environ.get("BICA_DATA", Path(__file__).parents[2] / "shared" / "data"))
FIRST_SEED = 1000  # settings were chosen on other tables: see the text
Z = 1.959964


@dataclass(frozen=True)
class Case:
    """Random sources: distinct sets of sensors, p log-uniform, reach and leaks uniform."""

    title: str
    wanted: str
    n_tables: int
    n_sensors: int
    n_sources: int
    n_samples: int
    widths: tuple[int, int] = (3, 20)
    p: tuple[float, float] = (0.01, 0.1)
    reach: tuple[float, float] = (0.4, 1.0)
    leak: float = 0.01
    flip_rate: float | None = None

    def draw(self, seed: int) -> tuple[OrMixture, np.ndarray]:
        """A model and rows drawn from it."""
        rng = np.random.default_rng(seed)
        columns: set[tuple[int, ...]] = set()
        while len(columns) < self.n_sources:
            width = rng.integers(self.widths[0], self.widths[1] + 1)
            columns.add(tuple(sorted(rng.choice(self.n_sensors, width, replace=False).tolist())))
        mixing = np.zeros((self.n_sensors, self.n_sources), dtype=bool)
        for source, column in enumerate(sorted(columns)):
            mixing[list(column), source] = True
        probability = np.exp(rng.uniform(*np.log(self.p), self.n_sources))
        if self.flip_rate is not None:
            truth = OrMixture(mixing, probability, Noise.flips(self.flip_rate))
        else:
            reach = np.where(mixing, rng.uniform(*self.reach, mixing.shape), 0.0)
            noise = Noise(rng.uniform(0, self.leak, self.n_sensors), 0.0)
            truth = OrMixture(mixing, probability, noise, reach)
        return truth, truth.sample(self.n_samples, rng)


CASES = [
    Case("m = 200, n = 100, T = 10 000", "≥ 98 exact, 0 spurious, ≤ 10 s", 20, 200, 100, 10_000),
    Case("m = 200, n = 100, T = 50 000", "≥ 98 exact, 0 spurious, ≤ 20 s", 5, 200, 100, 50_000),
    Case("m = 1000, n = 500, p .003–.03, T = 20 000", "≥ 495 exact, ≤ 60 s", 2, 1000, 500, 20_000, p=(0.003, 0.03)),
    Case("m = n = 50, T = 10 000", "≥ 49 at J ≥ .8 on 9 of 10", 10, 50, 50, 10_000),
    Case("plain OR, no flips, m = 100, n = 50, 3–10 sensors", "right", 8, 100, 50, 10_000, (3, 10), flip_rate=0.0),
    Case("plain OR, 2 % flips, same", "right", 8, 100, 50, 10_000, (3, 10), flip_rate=0.02),
    Case("plain OR, 10 % flips, same", "right", 8, 100, 50, 10_000, (3, 10), flip_rate=0.1),
    Case("m = 24, n = 12, 3–6 sensors, p .05–.2, T = 5000", "–", 20, 24, 12, 5000, (3, 6), p=(0.05, 0.2)),
]


@dataclass(frozen=True)
class Outcome:
    """How one fit compares with the truth; J is the Jaccard index of two sets of sensors."""

    n_close: int  # J >= .8 after the best matching
    n_exact: int
    n_spurious: int  # found sources whose best J is below .5
    n_found: int
    seconds: float
    z: dict[str, np.ndarray]  # (found - true) / standard error, of exact sources

    @classmethod
    def of(cls, mixing: np.ndarray, truth: OrMixture | None, found: LossyFit, seconds: float) -> "Outcome":
        """The comparison; without a truth no numbers are compared."""
        true, learned = mixing.T.astype(int), found.mixing.T.astype(int)
        common = true @ learned.T
        jaccard = common / np.maximum(true.sum(axis=1)[:, None] + learned.sum(axis=1) - common, 1)
        rows, columns = linear_sum_assignment(-jaccard)
        best = jaccard[rows, columns]
        exact = best == 1.0
        z = {} if truth is None or not truth.has_lossy_edges else numbers(truth, found, rows[exact], columns[exact])
        n_spurious = int((jaccard.max(axis=0) < 0.5).sum())
        return cls(int((best >= 0.8).sum()), int(exact.sum()), n_spurious, len(learned), seconds, z)


def numbers(truth: OrMixture, found: LossyFit, true: np.ndarray, learned: np.ndarray) -> dict[str, np.ndarray]:
    """(found - true) / standard error of probabilities, reach and leaks."""
    p = (found.probability[learned] - truth.probability[true]) / found.probability_error[learned]
    edges = found.mixing[:, learned]
    reach = (found.reach[:, learned] - truth.reach[:, true])[edges] / found.reach_error[:, learned][edges]
    leak = (found.leak - truth.noise.rates(truth.mixing.shape[0])[0]) / found.leak_error
    leak = leak[found.leak > 0]
    return {"p": p, "reach": reach, "leak": leak}


def fitted(rows: np.ndarray, seed: int) -> tuple[LossyFit, float]:
    """The fit, and the processor seconds that it took from the counted rows on."""
    table = Varying.of(PatternCounts.of(rows), (), ())
    begun = time.process_time()
    found = learn_lossy_rows(table, Settings(), np.random.default_rng(seed))
    seconds = time.process_time() - begun
    return for_all_sensors(found, table), seconds


def for_all_sensors(found: LossyFit, table: Varying) -> LossyFit:
    """The fit with sensors that never came on, which are not learned."""
    wide: dict[str, np.ndarray] = {}
    for name in ("mixing", "reach", "reach_error", "leak", "leak_error"):
        values = getattr(found, name)
        wide[name] = np.zeros((table.whole.n_sensors, *values.shape[1:]), values.dtype)
        wide[name][table.places] = values
    return replace(found, **wide)


def disease_line() -> str:
    """Five chains on the bundled simulation of diseases and symptoms."""
    folder = DATA / "disease_symptom_kb"
    rows = scipy.sparse.load_npz(folder / "X_sim_noisy_or.npz").toarray() > 0
    sensors = [line[-1] for line in csv.reader((folder / "X_sim_noisy_or_columns.csv").open())][1:]
    table = list(csv.reader((folder / "G.csv").open()))
    place = {line[0]: k for k, line in enumerate(table[1:])}
    mixing = np.array([[float(v) > 0 for v in line[1:]] for line in table[1:]])[[place[s] for s in sensors]]
    outcomes = [Outcome.of(mixing, None, *fitted(rows, seed)) for seed in range(5)]
    wanted = "≥ 130 each, median ≥ 131; ≥ 121 exact; ≤ 1 spurious; ≤ 10 s"
    return line("disease_symptom_kb, noisy-OR, 133 diseases, chains 0–4", wanted, outcomes)


def case_lines() -> Iterator[str]:
    """One line for each case."""
    for case in CASES:
        outcomes = []
        for seed in range(FIRST_SEED, FIRST_SEED + max(1, round(SHARE * case.n_tables))):
            truth, rows = case.draw(seed)
            outcomes.append(Outcome.of(truth.mixing, truth, *fitted(rows, 0)))
        yield line(case.title, case.wanted, outcomes)


def line(title: str, wanted: str, outcomes: list[Outcome]) -> str:
    """Smallest, median and largest of each figure, and how many intervals cover."""
    shares = []
    for name in ("p", "reach", "leak"):
        z = np.concatenate([outcome.z.get(name, np.empty(0)) for outcome in outcomes])
        shares.append(f"{np.mean(np.abs(z) < Z):.3f}" if z.size else "–")
    figures = [
        spread([getattr(outcome, name) for outcome in outcomes])
        for name in ("n_close", "n_exact", "n_spurious", "n_found")
    ]
    seconds = [outcome.seconds for outcome in outcomes]
    timing = f"{np.median(seconds):.1f} ({max(seconds):.1f})"
    return f"| {title} | {len(outcomes)} | {wanted} | {' | '.join(figures)} | {', '.join(shares)} | {timing} |"


def spread(values: list[int]) -> str:
    """Lowest, median and highest."""
    return f"{min(values)}, {np.median(values):g}, {max(values)}" if min(values) < max(values) else f"{values[0]}"


def main() -> None:
    """After a run that compiles the kernels."""
    fitted(CASES[-1].draw(0)[1], 0)
    print("# Lossy edges on many sensors\n\n    python benchmarks/bench_lossy_rows.py\n")
    print(
        "`learn_lossy_rows`, nothing known but the rows. 3–20 sensors per source, reach ~ U(.4, 1), leaks\n"
        "~ U(0, .01), p log-uniform .01–.1 unless said otherwise. J: Jaccard index of the sensors after the\n"
        "best matching; spurious: best J below .5. Lowest, median, highest over the tables where they differ.\n"
        "Cover: share of the 95 % intervals of p, reach and leaks of exact sources that hold the true value.\n"
        f"Processor seconds of one thread: median (most). Tables from seeds {FIRST_SEED} on, chain 0. Settings were\n"
        "chosen on chains 101–105 of the diseases and on tables of seeds below 200.\n"
    )
    print("| case | tables | wanted | J ≥ .8 | exact | spurious | found | cover p, reach, leak | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    print(disease_line(), flush=True)
    for text in case_lines():
        print(text, flush=True)


if __name__ == "__main__":
    main()
