"""Wide and mixed sources, diseases and roles, learned as a user would: ``BICA().fit(rows)``, the noise unknown.

BICA_DATA=folder-of-tables python benchmarks/bench_wide.py > benchmarks/results/wide.md
"""

import csv
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse

from bica import BICA, Noise, OrMixture
from bica.data.patterns import PatternCounts
from bica.simulate import example

N_SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
DATA = Path(os.environ.get("BICA_DATA", Path(__file__).parents[2] / "shared" / "data"))
Column = tuple[int, ...]


@dataclass(frozen=True)
class Drawn:
    """Random columns; sensor i is drawn in proportion to (i + 5) ** -skew."""

    title: str
    wanted: str
    n_sensors: int
    n_sources: int
    widths: tuple[int, int]
    skew: float = 0.0

    def model(self, flip_rate: float, rng: np.random.Generator) -> OrMixture:
        """Distinct columns with p ~ U(0.005, 0.05)."""
        share = (np.arange(self.n_sensors) + 5.0) ** -self.skew
        columns: set[Column] = set()
        while len(columns) < self.n_sources:
            width = rng.integers(self.widths[0], self.widths[1] + 1)
            chosen = rng.choice(self.n_sensors, width, replace=False, p=share / share.sum())
            columns.add(tuple(sorted(chosen.tolist())))
        mixing = np.zeros((self.n_sensors, self.n_sources), dtype=bool)
        for source, column in enumerate(sorted(columns)):
            mixing[list(column), source] = True
        return OrMixture(mixing, rng.uniform(0.005, 0.05, self.n_sources), Noise.flips(flip_rate))


WIDE = Drawn("60 of 10–25 sensors, m = 300", "≥ 0.99", 300, 60, (10, 25))
MIXED = Drawn("80 of 1–30 sensors, m = 150, drawn ∝ (i + 5)^-0.7", "≥ 0.98", 150, 80, (1, 30), 0.7)


def learned(rows: np.ndarray) -> tuple[BICA, float]:
    """The fit with its diagnosis, and the seconds it took from the array on."""
    begun = time.perf_counter()
    return BICA(random_state=0).fit(rows), time.perf_counter() - begun


def columns_of(mixing: np.ndarray) -> list[Column]:
    """The sensors of each source."""
    return [tuple(np.flatnonzero(column).tolist()) for column in mixing.T]


def drawn_line(problem: Drawn, flip_rate: float) -> str:
    """All seeds of one problem together; z is the standard deviation of (p found - p) / its standard error."""
    n_exact, n_other, seconds, rates, z = 0, 0, [], [], []
    for seed in range(N_SEEDS):
        rng = np.random.default_rng([seed, round(1000 * flip_rate)])
        truth = problem.model(flip_rate, rng)
        found, duration = learned(truth.sample(20_000, rng))
        true = dict(zip(columns_of(truth.mixing), truth.probability, strict=True))
        every = zip(columns_of(found.components_.T), found.probabilities_, found.probability_errors_, strict=True)
        exact = [(p - true[column]) / error for column, p, error in every if column in true]
        n_exact, n_other, z = n_exact + len(exact), n_other + found.n_sources_ - len(exact), z + exact
        seconds.append(duration)
        rates.append(abs(found.noise_.miss - flip_rate))
    n_true = N_SEEDS * problem.n_sources
    return (
        f"| {problem.title} | {flip_rate:.0%} | {problem.wanted} | {n_exact}/{n_true} = {n_exact / n_true:.4f} | "
        f"{n_exact / (n_exact + n_other):.4f} ({n_other}) | {max(rates):.5f} | {np.std(z):.2f} | "
        f"{statistics.median(seconds):.1f} |"
    )


def disease_lines() -> Iterator[str]:
    """The bundled simulation, and the same with some of its cells flipped."""
    folder = DATA / "disease_symptom_kb"
    rows = scipy.sparse.load_npz(folder / "X_sim_exact.npz").toarray() > 0
    sensors = [line[-1] for line in csv.reader((folder / "X_sim_exact_columns.csv").open())][1:]
    table = list(csv.reader((folder / "G.csv").open()))
    place = {line[0]: k for k, line in enumerate(table[1:])}
    mixing = np.array([[float(v) > 0 for v in line[1:]] for line in table[1:]])[[place[s] for s in sensors]]
    activity = list(csv.reader((folder / "Y_sim.csv").open()))
    n_on = dict(zip(activity[0], np.array(activity[1:], float).sum(axis=0), strict=True))
    true = dict(zip(columns_of(mixing), [n_on[name] >= 10 for name in table[0][1:]], strict=True))
    for flip_rate, wanted in ((0.0, "133, 0, < 5 s"), (0.01, "133, 0, < 5 s"), (0.03, "all with ≥ 10 activations")):
        for seed in range(N_SEEDS if flip_rate else 1):
            flips = np.random.default_rng(seed).random(rows.shape) < flip_rate
            found, seconds = learned(rows ^ flips)
            exact = [column for column in columns_of(found.components_.T) if column in true]
            yield (
                f"| {flip_rate:.0%}, seed {seed} | {wanted} | {len(exact)}/{len(true)} | "
                f"{sum(true[column] for column in exact)}/{sum(true.values())} | {found.n_sources_ - len(exact)} | "
                f"{found.noise_.miss:.5f} | {seconds:.1f} |"
            )


def role_lines() -> Iterator[str]:
    """Rebuilt: the rows are decoded, and what the active sources switch on is compared with what was there."""
    folder = DATA / "hp_roles"
    for name, reference in (("domino", 20), ("americas_small", 178)):
        if (folder / f"{name}_X.npz").exists():
            rows = scipy.sparse.load_npz(folder / f"{name}_X.npz").toarray() > 0
        else:
            rows = np.array(list(csv.reader((folder / f"{name}_X.csv").open()))[1:], float) > 0
        found, seconds = learned(rows)
        wrong = int((found.inverse_transform(found.transform(rows)) != rows).sum())
        yield (
            f"| {name} | ≤ {1.5 * reference:.0f} roles, ≤ 2 % | {found.n_sources_} | {wrong} of {rows.sum()} ones "
            f"= {wrong / rows.sum():.2%} | {found.diagnostics_['diagnosis']['verdict']} | {seconds:.1f} |"
        )


def topology_line() -> str:
    """The bundled network with more links than paths."""
    known = example("btnorthamerica")
    rows = PatternCounts.of(known.table_path)
    begun = time.perf_counter()
    found = BICA(random_state=0).fit(rows)
    seconds, true = time.perf_counter() - begun, set(columns_of(known.mixing))
    n_exact = len(true & set(columns_of(found.components_.T)))
    return f"btnorthamerica: {n_exact} of {len(true)} links, {found.n_sources_ - n_exact} spurious, {seconds:.1f} s."


def table(titles: str, lines: Iterable[str]) -> None:
    """Print a table line by line."""
    print(f"\n{titles}\n|{' --- |' * (titles.count('|') - 1)}")
    for line in lines:
        print(line, flush=True)


def main() -> None:
    """After a run that compiles the kernels."""
    learned(WIDE.model(0.01, np.random.default_rng(9)).sample(2000, np.random.default_rng(9)))
    print("# Wide sources, diseases, roles\n\n    python benchmarks/bench_wide.py\n")
    print(
        f"`BICA().fit(rows)`, noise unknown, {N_SEEDS} seeds, T = 20 000, p ~ U(0.005, 0.05); a source is found if its"
    )
    print(
        "column is identical. z: the standard deviation of (p found - p) / its standard error. Median seconds of a fit."
    )
    table(
        "| problem | noise | wanted | recall | precision (spurious) | largest rate error | z | seconds |",
        (drawn_line(problem, flip_rate) for problem in (WIDE, MIXED) for flip_rate in (0.0, 0.01, 0.03)),
    )
    table(
        "| disease_symptom_kb, flipped | wanted | exact | of ≥ 10 activations | spurious | rate | seconds |",
        disease_lines(),
    )
    table("| hp_roles | wanted | roles | cells rebuilt wrongly | verdict | seconds |", role_lines())
    print(f"\n{topology_line()}")


if __name__ == "__main__":
    main()
