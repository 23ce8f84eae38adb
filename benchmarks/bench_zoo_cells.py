"""Cells of the zoo table that Boolean factorisations of a given number of factors rebuild wrongly.

BICA_DATA=folder-of-tables python benchmarks/bench_zoo_cells.py > benchmarks/results/zoo_cells.md
"""

import csv
import os
import statistics
import time
from pathlib import Path

import numpy as np

from bica import PatternCounts
from bica.methods import method_named

DATA = Path(os.environ.get("BICA_DATA", Path(__file__).parents[2] / "shared" / "data"))
SIZES = (2, 5, 10)
SEEDS = range(5)
STARTS = {"n_init": 10}
METHODS = {  # settings that differ from the defaults; the wrong cells of a prototype written before, at every size
    "message-passing": (STARTS, (271, 126, 46)),
    "ormachine": (STARTS, (271, 134, 110)),
    "asso": ({}, (326, 199, 86)),
    "elbmf": (STARTS, (274, 148, 109)),
}
PUBLISHED = {
    "best of integer programs, 20 minutes each": (271, 126, 39),
    "k-greedy": (323, 218, 175),
    "NMF, thresholded": (281, 140, 51),
}


def zoo() -> np.ndarray:
    """101 animals by 17 traits: legs are two columns, at most four and at least five."""
    with open(DATA / "zoo" / "X.csv") as file:
        animals = list(csv.DictReader(file))
    many = [sum(int(animal[f"legs_{n}"]) for n in (5, 6, 8)) for animal in animals]
    rest = [[int(value) for name, value in animal.items() if not name.startswith("legs")] for animal in animals]
    return np.column_stack([rest, 1 - np.array(many), many])


def line(name: str, data: PatternCounts) -> str:
    """One line of the table: wrong cells with the first seed, their range over all seeds, and seconds."""
    settings, before = METHODS[name]
    cells = []
    seconds = []
    for size, prototype in zip(SIZES, before, strict=True):
        wrong = []
        for seed in SEEDS:
            begun = time.process_time()
            fit = method_named(name, n_sources=size, **settings).fit(data, np.random.default_rng(seed))
            seconds.append(time.process_time() - begun)
            wrong.append(int(fit.diagnostics["wrong_cells"]))
        cells.append(f"{wrong[0]} ({min(wrong)}–{max(wrong)}) | {prototype} | {wrong[0] / prototype - 1:+.1%}")
    return f"| `{name}` | " + " | ".join(cells) + f" | {statistics.median(seconds):.2f} |"


def main() -> None:
    """Print the table."""
    rows = zoo()
    data = PatternCounts.of(rows)
    print("# Cells of the zoo table that are rebuilt wrongly\n")
    print("    python benchmarks/bench_zoo_cells.py\n")
    print(f"{len(rows)} animals, {rows.shape[1]} columns, {int(rows.sum())} ones. Every method is told the number k of")
    print(
        f"factors and takes the best of 10 starts by its own objective, Asso of its 10 thresholds; {len(SEEDS)} seeds:"
    )
    print(
        "the first one (least–most). Beside it the figure of a prototype, and the difference of the first seed from it."
    )
    print("Seconds: CPU, median over all fits, kernels compiled.\n")
    print("| method |" + "".join(f" k = {size} | prototype | difference |" for size in SIZES) + " seconds |")
    print("|" + " --- |" * (2 + 3 * len(SIZES)))
    for name, (settings, _) in METHODS.items():
        method_named(name, n_sources=2, **settings).fit(data, np.random.default_rng(0))  # compiles
        print(line(name, data), flush=True)
    print("\nPublished figures (Kovács, Günlük and Hauser, AAAI 2021; budgets differ, so this ranks nothing):\n")
    print("| method |" + "".join(f" k = {size} |" for size in SIZES))
    print("|" + " --- |" * (1 + len(SIZES)))
    for name, figures in PUBLISHED.items():
        print(f"| {name} | " + " | ".join(map(str, figures)) + " |")


if __name__ == "__main__":
    main()
