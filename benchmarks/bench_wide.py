"""Wide sources, learned from rows alone, with nothing to start from and the noise unknown.

BICA_DATA=folder-of-tables python benchmarks/bench_wide.py > benchmarks/results/wide.md
"""

import csv
import os
import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse

from bica import PatternCounts
from bica.estimate.rows.evidence import Evidence
from bica.estimate.rows.explained import decode
from bica.estimate.rows.pool import Pool, as_columns
from bica.estimate.rows.rounds import RowFit, RowSettings, row_rounds
from bica.estimate.rows.table import RowTable

N_SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
GUESS = 0.02
DATA = Path(os.environ.get("BICA_DATA", Path(__file__).parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class Drawn:
    """Random columns, and rows in which they are on."""

    title: str
    wanted: str
    n_sensors: int
    n_sources: int
    n_samples: int
    widths: tuple[int, int]
    probability: tuple[float, float]
    skew: float = 0.0  # sensor i is drawn in proportion to (i + 5) ** -skew

    def columns(self, rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Distinct columns."""
        share = (np.arange(self.n_sensors) + 5.0) ** -self.skew
        columns: set[tuple[int, ...]] = set()
        while len(columns) < self.n_sources:
            width = rng.integers(self.widths[0], self.widths[1] + 1)
            chosen = rng.choice(self.n_sensors, width, replace=False, p=share / share.sum())
            columns.add(tuple(sorted(chosen.tolist())))
        return sorted(columns)

    def rows(self, columns: list[tuple[int, ...]], probability: np.ndarray, flip_rate: float, rng: np.random.Generator):
        """What the sensors show while these sources come and go."""
        mixing = np.zeros((self.n_sources, self.n_sensors), np.float32)
        for source, column in enumerate(columns):
            mixing[source, list(column)] = 1
        activity = rng.random((self.n_samples, self.n_sources)) < probability
        rows = activity.astype(np.float32) @ mixing > 0
        return rows ^ (rng.random(rows.shape) < flip_rate)


WIDE = Drawn(
    "60 of 10–25 sensors, m = 300, p ~ U(.005, .05), T = 20 000", "≥ 0.99", 300, 60, 20_000, (10, 25), (0.005, 0.05)
)
MIXED = Drawn(
    "80 of 1–30 sensors, m = 150, drawn ∝ (i + 5)^-0.7, p ~ U(.005, .05), T = 20 000", "≥ 0.98",
    150, 80, 20_000, (1, 30), (0.005, 0.05), 0.7,
)  # fmt: skip
NARROW = Drawn(
    "200 of 2–4 sensors, m = 200, p ~ U(.01, .1), T = 50 000", "report", 200, 200, 50_000, (2, 4), (0.01, 0.1)
)
MANY = Drawn(
    "1000 of 2–4 sensors, m = 1000, p ~ U(.01, .1), T = 50 000", "report", 1000, 1000, 50_000, (2, 4), (0.01, 0.1)
)


def learned(rows: np.ndarray, start: Pool | None = None, settings: RowSettings | None = None) -> tuple[RowFit, float]:
    """The fit and how long it took, counting the rows not included."""
    table = RowTable.of(PatternCounts.of(rows))
    begin = time.perf_counter()
    fit = row_rounds(table, start or Pool.of(), GUESS, np.random.default_rng(0), settings)
    return fit, time.perf_counter() - begin


def compared(fit: RowFit, columns: Iterable[tuple[int, ...]]) -> tuple[int, int]:
    """How many of the columns were found exactly, and how many others."""
    found, true = set(fit.columns), set(columns)
    return len(found & true), len(found - true)


def drawn_line(problem: Drawn, flip_rate: float, n_seeds: int) -> str:
    hits, others, seconds, rates, errors = 0, 0, [], [], []
    for seed in range(n_seeds):
        rng = np.random.default_rng([seed, round(1000 * flip_rate)])
        columns, probability = problem.columns(rng), rng.uniform(*problem.probability, problem.n_sources)
        fit, duration = learned(problem.rows(columns, probability, flip_rate, rng))
        hit, other = compared(fit, columns)
        hits, others = hits + hit, others + other
        seconds.append(duration)
        rates.append(abs(fit.flip_rate - flip_rate))
        true = dict(zip(columns, probability, strict=True))
        found = zip(fit.columns, fit.probability, fit.probability_error, strict=True)
        errors += [(p - true[c]) / e for c, p, e in found if c in true]
    n_true = n_seeds * problem.n_sources
    return (
        f"| {problem.title} | {flip_rate:.0%} | {problem.wanted} | {hits}/{n_true} = {hits / n_true:.4f} "
        f"| {hits / max(1, hits + others):.4f} ({others}) | {max(rates):.5f} | {np.std(errors):.2f} "
        f"| {statistics.median(seconds):.1f} |"
    )


def verified_line() -> str:
    """From the true columns and one false one for every twenty."""
    rng = np.random.default_rng(0)
    columns, probability = MANY.columns(rng), rng.uniform(*MANY.probability, MANY.n_sources)
    rows = MANY.rows(columns, probability, 0.02, rng)
    false = [tuple(sorted(rng.choice(1000, rng.integers(2, 5), replace=False).tolist())) for _ in range(50)]
    start = Pool.of([*columns, *false], [*probability, *[0.03] * 50])
    one = RowSettings(most_rounds=1, first_rows=MANY.n_samples, n_burnt=2, n_used=2)
    parts = []
    for title, settings in (("one round on all rows, 7 sweeps", one), ("to the end", RowSettings())):
        fit, seconds = learned(rows, start, settings)
        hit, other = compared(fit, columns)
        parts.append(f"{title}: {hit}/1000 exact, {other} spurious, flip rate {fit.flip_rate:.5f}, {seconds:.1f} s")
    return f"{MANY.title}, 2 %, started from the true columns and 50 false ones: {'; '.join(parts)}."


def disease_lines() -> Iterable[str]:
    folder = DATA / "disease_symptom_kb"
    rows = scipy.sparse.load_npz(folder / "X_sim_exact.npz").toarray() > 0
    sensors = [line[-1] for line in csv.reader((folder / "X_sim_exact_columns.csv").open())][1:]
    table = list(csv.reader((folder / "G.csv").open()))
    place = {line[0]: k for k, line in enumerate(table[1:])}
    mixing = np.array([[float(v) > 0 for v in line[1:]] for line in table[1:]])[[place[s] for s in sensors]]
    activity = list(csv.reader((folder / "Y_sim.csv").open()))
    counts = dict(zip(activity[0], np.array(activity[1:], float).sum(axis=0), strict=True))
    often = np.array([counts[name] for name in table[0][1:]]) >= 10
    columns = [tuple(np.flatnonzero(column).tolist()) for column in mixing.T]
    for flip_rate, wanted in ((0.0, "133, 0, < 5 s"), (0.01, "133, 0"), (0.03, "all with ≥ 10 activations")):
        for seed in range(N_SEEDS if flip_rate else 1):
            flips = np.random.default_rng(seed).random(rows.shape) < flip_rate
            fit, seconds = learned(rows ^ flips)
            hit, other = compared(fit, columns)
            hit_often, _ = compared(fit, [c for c, many in zip(columns, often, strict=True) if many])
            yield (
                f"| {flip_rate:.0%}, seed {seed} | {wanted} | {hit}/{len(columns)} | {hit_often}/{often.sum()} "
                f"| {other} | {fit.flip_rate:.5f} | {seconds:.1f} |"
            )


def role_lines() -> Iterable[str]:
    folder = DATA / "hp_roles"
    for name, reference in (("domino", 20), ("americas_small", 178)):
        if (folder / f"{name}_X.npz").exists():
            rows = scipy.sparse.load_npz(folder / f"{name}_X.npz").toarray() > 0
        else:
            rows = np.array(list(csv.reader((folder / f"{name}_X.csv").open()))[1:], float) > 0
        fit, seconds = learned(rows)
        wrong = rebuilt_wrongly(rows, fit)
        yield (
            f"| {name} | ≤ {1.5 * reference:.0f} roles, ≤ 2 % | {len(fit.columns)} | {wrong} of {rows.sum()} ones "
            f"= {wrong / rows.sum():.2%} | {seconds:.1f} |"
        )


def rebuilt_wrongly(rows: np.ndarray, fit: RowFit) -> int:
    """Cells that differ when the rows are decoded with these sources and put together again."""
    table = RowTable.of(PatternCounts.of(rows))
    evidence, pool = Evidence.of(fit.flip_rate, table.n_sensors), Pool.of(fit.columns, fit.probability.tolist())
    activity = decode(table, pool.sources(evidence.one, evidence.zero), evidence, table.rows)
    ones = as_columns(table.cells.ones)
    wrong = 0.0
    for on, shown, weight in zip(as_columns(activity.active), ones, table.cells.weights, strict=True):
        built = {sensor for source in on for sensor in fit.columns[source]}
        wrong += weight * len(built ^ set(shown))
    return round(wrong)


def main() -> None:
    print("# Wide sources from rows, noise unknown\n\n    python benchmarks/bench_wide.py\n")
    print(f"{N_SEEDS} seeds, nothing to start from, first guess of the flip rate {GUESS}. Recall: exact columns.")
    print("“z”: the standard deviation of (p found - p) / its standard error. Seconds: medians of single runs, two")
    print("threads on a machine that others use too.\n")
    print("| problem | noise | wanted | recall | precision (spurious) | largest rate error | z | seconds |")
    print("|" + " --- |" * 8)
    rng = np.random.default_rng(9)
    learned(WIDE.rows(WIDE.columns(rng), np.full(60, 0.02), 0.01, rng)[:2000])  # compiles the kernels
    for problem in (WIDE, MIXED):
        for flip_rate in (0.0, 0.01, 0.03):
            print(drawn_line(problem, flip_rate, N_SEEDS), flush=True)
    print(drawn_line(NARROW, 0.02, 2), flush=True)
    print(f"\n{verified_line()}\n", flush=True)
    print("| disease_symptom_kb, bits flipped | wanted | exact | of ≥ 10 activations | spurious | rate | seconds |")
    print("|" + " --- |" * 7)
    for line in disease_lines():
        print(line, flush=True)
    print("\n| hp_roles | wanted | roles | cells rebuilt wrongly | seconds |")
    print("|" + " --- |" * 5)
    for line in role_lines():
        print(line, flush=True)


if __name__ == "__main__":
    main()
