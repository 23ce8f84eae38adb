"""The tables of the spectrum experiment, from the folder of `bica reproduce spectrum`, finished or not.

bica reproduce spectrum -o bica-spectrum
python benchmarks/bench_spectrum.py bica-spectrum > benchmarks/results/spectrum.md
"""

import csv
import sys
from collections import Counter
from pathlib import Path

from bica.compare import read_records
from bica.experiments.spectrum import (
    BEST_FINDBICA,
    CONTENDERS,
    FLIP_RATES,
    N_RUNS,
    N_USERS,
    ROWS,
    TITLES,
    markdown_of_users,
    means_by,
    spectrum_errors_chart,
    with_best_findbica,
)
from bica.report.pictures import save_picture

HERE = Path(__file__).parent
OURS = TITLES["likelihood in time"]
COLUMNS = ("contender", "n_users", "flip_rate", "seed", "n_true", "n_found", "n_exact", "hamming_distance", "exact",
           "activity_error", "activity_error_in_time", "cpu_seconds")  # fmt: skip
HEADER = """# Primary users separated

    bica reproduce spectrum -o bica-spectrum
    python benchmarks/bench_spectrum.py bica-spectrum

10 monitors and 5 to 20 users on 500 m x 500 m, hearing radius 126 m, T = 10 000 slots, activity U(0.005, 0.035) in
stays of 5 slots; users with the same reach merged, unheard ones left out. {runs} of 50 runs a cell: seeds {seeds}.
"Likelihood in time" is what `bica spectrum fit` does. FindBICA has T1-T3 and, in each cell, the best of its
least probabilities 0.002, 0.005, 0.01 and 0.02, chosen with the truth in view. All runs are in `spectrum.csv`.
"""


def complete_seeds(records):
    """Seeds whose every cell is done."""
    wanted = len(CONTENDERS) * len(N_USERS) * len(FLIP_RATES)
    counts = Counter(record["seed"] for record in records)
    return {seed for seed, count in counts.items() if count == wanted}


def write_csv(records):
    with open(HERE / "results" / "spectrum.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for record in records:
            values = [record[name] for name in COLUMNS]
            writer.writerow([f"{value:.5g}" if isinstance(value, float) else value for value in values])


def lines_of_targets(means):
    found = {(row["contender"], row["flip_rate"], row["number"], row["measure"]): row["mean"] for row in means}
    yield "Asked: exact mixings at 0 % in 0.90 of the runs with 5 to 10 users; at 5 % at most half of FindBICA's"
    yield "distance, wherever that exceeds 0.01. Reached by the likelihood in time:\n"
    yield "| users | exact at 0 % | distance at 5 % | FindBICA's at 5 % | ratio |\n| --- | --- | --- | --- | --- |"
    for n in N_USERS:
        rival, ours = (found[name, 0.05, n, "hamming_distance"] for name in (BEST_FINDBICA, OURS))
        ratio = f"{ours / rival:.2f}" if rival > 0.01 else "not asked"
        yield f"| {n} | {found[OURS, 0.0, n, 'exact']:.2f} | {ours:.4f} | {rival:.4f} | {ratio} |"


def main():
    records = read_records(Path(sys.argv[1]) / "results.jsonl")
    seeds = complete_seeds(records)
    records = sorted(
        (r for r in records if r["seed"] in seeds), key=lambda r: (r["seed"], r["n_users"], r["flip_rate"])
    )
    write_csv(records)
    lines = with_best_findbica(records)
    by_users, by_distinct = means_by(lines, "n_users"), means_by(lines, "n_true")
    save_picture(
        spectrum_errors_chart(by_users, by_distinct),
        HERE.parent / "docs" / "pictures" / "spectrum_errors.png",
        overwrite=True,
    )
    print(HEADER.format(runs=len(seeds), seeds=f"{min(seeds)}-{max(seeds)}"))
    if len(seeds) < N_RUNS:
        print("**Not finished: 50 runs a cell are asked for.**\n")
    print("\n".join(lines_of_targets(by_users)), end="\n\n")
    for measure, title in ROWS.items():
        print(
            f"{title[0].upper()}{title[1:]}, mean by the number of users:\n\n{markdown_of_users(by_users, measure)}\n"
        )


if __name__ == "__main__":
    main()
