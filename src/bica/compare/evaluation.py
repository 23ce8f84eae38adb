"""The paper's evaluation: who takes part, on what, and the lines of its figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bica.compare.contenders import CONTENDERS
from bica.compare.problems import Setting, topology_settings
from bica.compare.summary import CELL, best_variants, mean_of
from bica.compare.task import MEASURES, Task, tasks

Record = dict[str, Any]
FINDBICA = tuple(name for name, contender in CONTENDERS.items() if contender.method == "findbica")
TRUTH = "truth"
EVALUATED = (*FINDBICA, "likelihood", "mac", TRUTH)
TITLES = {"likelihood": "Likelihood", "mac": "MAC", TRUTH: "exact model"}
BEST_FINDBICA = "FindBICA"
QUICK_SAMPLES, QUICK_RUNS = (50, 100, 200), 1


def evaluation_plan(n_runs: int, contenders: Iterable[str] = EVALUATED, *, quick: bool = False) -> list[Task]:
    """Seeds 0 to ``n_runs`` - 1 of every topology, size and noise level; ``quick`` takes three sizes.

    >>> len(evaluation_plan(50, ["mac"]))
    2000
    """
    settings: list[Setting] = topology_settings(QUICK_SAMPLES) if quick else topology_settings()
    return tasks(contenders, settings, range(n_runs))


def with_best_findbica(records: Sequence[Record]) -> list[Record]:
    """One FindBICA in place of all: for each network and noise level the setting with the lowest mean distance.

    Other contenders get their titles; of the true model only the errors of decoding count.
    """
    chosen = best_variants(records, FINDBICA, ("network", "flip_rate"))
    lines = []
    for record in records:
        name = record["contender"]
        if name not in FINDBICA:
            lines.append(_titled(record))
        elif chosen[record["network"], record["flip_rate"]] == name:
            lines.append(record | {"contender": BEST_FINDBICA, "variant": name})
    return lines


def _titled(record: Record) -> Record:
    name = record["contender"]
    trivial = dict.fromkeys(measure for measure in MEASURES if not measure.startswith("activity"))
    return record | {"contender": TITLES.get(name, name)} | (trivial if name == TRUTH else {})


def mean_times(records: Iterable[Record]) -> list[Record]:
    """The table of computation times: mean CPU seconds of each contender on each network, over all else."""
    times: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if record["cpu_seconds"] is not None:
            times.setdefault((record["contender"], record["network"]), []).append(record["cpu_seconds"])
    return [{"contender": name, "network": network, **_times(values)} for (name, network), values in times.items()]


def _times(values: list[float]) -> Record:
    found = mean_of(values)
    return {"mean": found.mean, "half_width": found.half_width, "n_runs": found.n_runs}


def markdown_of_times(times: Iterable[Record]) -> str:
    """The table of computation times as text.

    >>> print(markdown_of_times([{"contender": "MAC", "network": "topology one", "mean": 0.5}]))
    | CPU seconds a fit | topology one |
    | --- | ---: |
    | MAC | 0.500 |
    """
    rows: dict[str, dict[str, float]] = {}
    for time in times:
        rows.setdefault(time["contender"], {})[time["network"]] = time["mean"]
    networks = list(dict.fromkeys(network for row in rows.values() for network in row))
    lines = ["| CPU seconds a fit | " + " | ".join(networks) + " |", "| --- |" + " ---: |" * len(networks)]
    lines += [f"| {name} | " + " | ".join(_cell(row.get(n)) for n in networks) + " |" for name, row in rows.items()]
    return "\n".join(lines)


def markdown_of_means(means: Iterable[Record]) -> str:
    """Every mean of the evaluation figure as text, a line a cell."""
    lines = ["| contender | network | rows | flips | measure | mean | 99 % interval | runs |"]
    lines.append("| --- " * 8 + "|")
    for row in means:
        cell = " | ".join(f"{row[part]}" for part in CELL)
        interval = f"{max(0.0, row['low']):.4f} to {row['high']:.4f}"
        lines.append(f"| {cell} | {row['measure']} | {row['mean']:.4f} | {interval} | {row['n_runs']} |")
    return "\n".join(lines)


def _cell(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3f}"
