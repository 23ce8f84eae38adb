"""The paper's claims, checked on the records of its evaluation.

bica reproduce topologies -o run
bica reproduce table --runs 2 -o times  # for the times: everybody in one run on an idle machine
python benchmarks/bench_reproduction.py run/results.jsonl times/results.jsonl > benchmarks/results/reproduction.md
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from bica import FindBICA, Likelihood, Noise, PatternCounts
from bica.compare import mean_of, read_records
from bica.compare.run import Record
from bica.experiments.evaluation import BEST_FINDBICA, mean_times, with_best_findbica
from bica.metrics import column_score
from bica.simulate import random_network

LIKELIHOOD, MAC, EXACT = "Likelihood", "MAC", "exact model"
METHODS = (BEST_FINDBICA, LIKELIHOOD, MAC)
DISTANCE = "hamming_distance"
MATTERS = 0.005
M20_SEEDS = 5

Cell = tuple[str, int, float]  # network, rows, flip rate
Values = dict[tuple[str, Cell], dict[int, float]]  # of one measure, by seed


def values_of(records: Iterable[Record], measure: str) -> Values:
    """The values of one measure, by contender, cell and seed."""
    values: Values = defaultdict(dict)
    for record in records:
        if record[measure] is not None:
            cell = (record["network"], record["n_samples"], record["flip_rate"])
            values[record["contender"], cell][record["seed"]] = record[measure]
    return values


def cells_of(values: Values) -> list[Cell]:
    """Every cell, by network, noise and size."""
    return sorted({cell for _, cell in values}, key=lambda cell: (network_place(cell[0]), cell[2], cell[1]))


def network_place(name: str) -> int:
    """The topologies in the order of the paper."""
    return ["one", "two", "three", "four"].index(name.removeprefix("topology "))


def difference(left: dict[int, float], right: dict[int, float]) -> tuple[float, float]:
    """Mean and half width of the 99 % interval of left - right on the same problems."""
    found = mean_of([left[seed] - right[seed] for seed in sorted(left.keys() & right.keys())])
    return found.mean, found.half_width


def table(head: list[str], lines: Iterable[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join(["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines)])


def place(cell: Cell) -> list[str]:
    """A cell as the first columns of a table."""
    return [cell[0].removeprefix("topology "), f"{100 * cell[2]:g} %", f"{cell[1]}"]


def distances(records: list[Record]) -> str:
    """Every cell: the three distances, and whether Likelihood is beaten anywhere."""
    values = values_of(records, DISTANCE)
    lines, verdicts = [], []
    for cell in cells_of(values):
        found = {name: values[name, cell] for name in METHODS if values[name, cell]}
        means = {name: float(np.mean(list(by_seed.values()))) for name, by_seed in found.items()}
        verdict = "" if cell[1] < 200 else judged(found, means)
        lines.append([*place(cell), *(f"{means[n]:.4f}" if n in means else "-" for n in METHODS), verdict])
        verdicts += [verdict] if verdict else []
    kept = sum(verdict == "yes" for verdict in verdicts)
    told = "A cell of 200 rows or more is kept if Likelihood is below every rival above 0.005 in distance, and above"
    return (
        table(["network", "flips", "rows", *METHODS, "kept"], lines)
        + f"\n\n{told} none significantly (99 % interval of the paired difference): {kept} of {len(verdicts)} cells."
    )


def judged(found: dict[str, dict[int, float]], means: dict[str, float]) -> str:
    """``yes``, or what stands against it."""
    for rival in (BEST_FINDBICA, MAC):
        if rival not in found:
            continue
        mean, width = difference(found[LIKELIHOOD], found[rival])
        if mean - width > 0:
            return f"no: above {rival} by {mean:.4f} ± {width:.4f}"
        if means[rival] > MATTERS and means[LIKELIHOOD] >= means[rival]:
            return f"not below {rival}: {mean:+.4f} ± {width:.4f}"
    return "yes"


def numbers_of_sources(records: list[Record]) -> str:
    """How often the number of sources is right at 1000 rows."""
    right: dict[tuple[str, float], list[bool]] = defaultdict(list)
    for record in records:
        if record["contender"] == LIKELIHOOD and record["n_samples"] == 1000:
            right[record["network"], record["flip_rate"]].append(record["n_found"] == record["n_true"])
    by_rate = {rate: [hit for key, hits in right.items() if key[1] == rate for hit in hits] for rate in (0.0, 0.1)}
    lines = [
        [name.removeprefix("topology "), f"{100 * rate:g} %", f"{100 * np.mean(hits):.0f} %"]
        for (name, rate), hits in sorted(right.items(), key=lambda item: (network_place(item[0][0]), item[0][1]))
    ]
    lines += [["all", f"{100 * rate:g} %", f"{100 * np.mean(hits):.0f} %"] for rate, hits in by_rate.items()]
    return table(["network", "flips", "number of sources right"], lines)


def times(records: list[Record]) -> str:
    """Mean CPU seconds, and how many times faster than MAC."""
    means = {(row["contender"], row["network"]): row["mean"] for row in mean_times(records)}
    networks = sorted({network for _, network in means}, key=network_place)
    lines = [[f"{n}, CPU seconds", *(f"{means[n, network]:.4f}" for network in networks)] for n in METHODS]
    for name in (BEST_FINDBICA, LIKELIHOOD):
        ratios = [means[MAC, network] / means[name, network] for network in networks]
        lines.append([f"MAC / {name}", *(f"{ratio:.1f}" for ratio in ratios)])
    return table(["", *(network.removeprefix("topology ") for network in networks)], lines)


def mean_by(records: list[Record], measure: str, key: Callable[[Record], object]) -> dict[object, float]:
    """Means of one measure over groups of records."""
    groups: dict[object, list[float]] = defaultdict(list)
    for record in records:
        if record[measure] is not None:
            groups[key(record)].append(record[measure])
    return {name: float(np.mean(values)) for name, values in groups.items()}


def times_by_size_and_noise(records: list[Record]) -> str:
    """Whether the time grows with the number of rows and with noise."""
    means = mean_by(records, "cpu_seconds", lambda r: (r["contender"], r["flip_rate"], r["n_samples"]))
    sizes = sorted({record["n_samples"] for record in records})
    lines = [
        [name, f"{100 * rate:g} %", *(f"{means[name, rate, size]:.4f}" for size in sizes)]
        for name in METHODS
        for rate in (0.0, 0.1)
    ]
    return table(["CPU seconds", "flips", *map(str, sizes)], lines)


def decoding(records: list[Record]) -> str:
    """Activity errors with the learned models, beside those with the exact model."""
    means = mean_by(records, "activity_error", lambda r: (r["contender"], r["network"], r["flip_rate"], r["n_samples"]))
    networks = sorted({record["network"] for record in records}, key=network_place)
    lines = [
        [*place((network, size, rate)), *(f"{means[name, network, rate, size]:.4f}" for name in (EXACT, *METHODS))]
        for network in networks
        for rate in (0.0, 0.1)
        for size in (100, 1000)
    ]
    return table(["network", "flips", "rows", EXACT, *METHODS], lines)


def short_runs(records: list[Record]) -> str:
    """The share of fits under half a second."""
    lines = []
    for name in METHODS:
        seconds = [r["cpu_seconds"] for r in records if r["contender"] == name and r["cpu_seconds"] is not None]
        lines.append([name, f"{100 * np.mean(np.array(seconds) < 0.5):.1f} %", f"{max(seconds):.2f}"])
    return table(["", "fits under 0.5 s", "longest, s"], lines)


def twenty_sensors() -> str:
    """20 sensors, 20 sources, 1000 rows: seconds and what was found."""
    lines = []
    for rate in (0.0, 0.05):
        for name, method in (("FindBICA", FindBICA()), ("Likelihood", Likelihood())):
            runs = [twenty_sensor_run(method, rate, seed) for seed in range(M20_SEEDS)]
            seconds, recall, precision = (float(np.mean(part)) for part in zip(*runs, strict=True))
            lines.append([name, f"{100 * rate:g} %", f"{seconds:.2f}", f"{recall:.3f}", f"{precision:.3f}"])
    return table(["20 sensors, 20 sources, 1000 rows", "flips", "seconds", "recall", "precision"], lines)


def twenty_sensor_run(method: FindBICA | Likelihood, rate: float, seed: int) -> tuple[float, float, float]:
    """One network of that size."""
    rng = np.random.default_rng([20, seed])
    truth = random_network(20, 20, rng=rng).with_noise(Noise.flips(rate))
    data = PatternCounts.of(truth.sample(1000, rng))
    begin = time.perf_counter()
    found = method.fit(data, rng).model
    seconds = time.perf_counter() - begin
    score = column_score(found, truth)
    return seconds, score.recall, score.precision


def main() -> None:
    """Print every section."""
    records = with_best_findbica(read_records(sys.argv[1]))
    timed = with_best_findbica(read_records(sys.argv[2]))
    variants = {(r["network"], r["flip_rate"]): r["variant"] for r in records if r["contender"] == BEST_FINDBICA}
    n_runs = len({record["seed"] for record in records})
    print(f"# The paper's evaluation, {n_runs} runs a cell\n\n```\n{(__doc__ or '').strip()}\n```\n")
    print("## Distance of the mixing\n\n" + distances(records))
    chosen = (f"{n.removeprefix('topology ')} {100 * f:g} %: {v}" for (n, f), v in sorted(variants.items()))
    print("\nFindBICA is at its best setting: " + "; ".join(chosen) + ".")
    print("\n## Number of sources, Likelihood, 1000 rows\n\n" + numbers_of_sources(records))
    print("\n## Time of a fit\n\n" + times(timed))
    print("\n" + times_by_size_and_noise(timed) + "\n\n" + short_runs(timed))
    print("\n## Activities\n\n" + decoding(records))
    print("\n## Twenty sensors\n\n" + twenty_sensors())


if __name__ == "__main__":
    main()
