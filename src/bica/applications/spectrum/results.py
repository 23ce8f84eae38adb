"""What came of the experiment: means over fields, by the number of users and of those that can be told apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from bica.applications.spectrum.experiment import FINDBICA
from bica.applications.spectrum.learning import METHOD
from bica.compare.records import Record
from bica.compare.summary import best_variants, mean_of

By = Literal["n_users", "n_true"]
MEASURES = ("hamming_distance", "exact", "activity_error", "activity_error_in_time", "n_found", "f1", "cpu_seconds")
TITLES = {"likelihood": "Likelihood", METHOD: "Likelihood in time", "truth": "exact model"}
BEST_FINDBICA = "FindBICA"
CELL = ("reading", "n_users", "flip_rate")


def with_best_findbica(records: Sequence[Record]) -> list[Record]:
    """One FindBICA in place of all: for each number of users and noise the setting with the lowest mean distance.

    Its activity in time is that of the one setting for which it was decoded. Others get their titles.
    """
    in_time = {_run(record): record["activity_error_in_time"] for record in records if _decoded_findbica(record)}
    best = best_variants(records, FINDBICA, CELL)
    lines = []
    for record in records:
        name = record["contender"]
        if name not in FINDBICA:
            lines.append(record | {"contender": TITLES.get(name, name)})
        elif best[_cell(record)] == name:
            error = in_time.get(_run(record))
            lines.append(record | {"contender": BEST_FINDBICA, "variant": name, "activity_error_in_time": error})
    return lines


def _run(record: Record) -> tuple[Any, ...]:
    return *_cell(record), record["seed"]


def _decoded_findbica(record: Record) -> bool:
    return record["contender"] in FINDBICA and record["activity_error_in_time"] is not None


def _cell(record: Record) -> tuple[Any, ...]:
    return tuple(record[part] for part in CELL)


def means_by(records: Iterable[Record], by: By) -> list[Record]:
    """Means with 99 % intervals for every contender, noise level and number: of users, or of those told apart.

    >>> record = {"contender": "a", "flip_rate": 0.0, "n_users": 5, **dict.fromkeys(MEASURES, 0.5)}
    >>> means_by([record, record], "n_users")[0]["mean"]
    0.5
    """
    cells: dict[tuple[str, float, int], list[Record]] = {}
    for record in records:
        cells.setdefault((record["contender"], record["flip_rate"], record[by]), []).append(record)
    return [
        {
            "contender": contender,
            "flip_rate": rate,
            "number": number,
            "measure": measure,
            **mean_of(values).ends(),
            "n_runs": len(values),
        }
        for (contender, rate, number), members in sorted(cells.items())
        for measure in MEASURES
        if (values := [record[measure] for record in members if record[measure] is not None])
    ]


def markdown_of_users(means: Sequence[Record], measure: str, digits: int = 4) -> str:
    """One measure as text: a line a method and noise level, a column a number of users.

    >>> row = {"contender": "FindBICA", "flip_rate": 0.05, "number": 5, "measure": "exact", "mean": 0.5}
    >>> print(markdown_of_users([row], "exact", 2))
    | method | flips | 5 |
    | --- | --- | ---: |
    | FindBICA | 5 % | 0.50 |
    """
    rows = [row for row in means if row["measure"] == measure]
    numbers = sorted({row["number"] for row in rows})
    lines: dict[tuple[str, float], dict[int, float]] = {}
    for row in rows:
        lines.setdefault((row["contender"], row["flip_rate"]), {})[row["number"]] = row["mean"]
    text = ["| method | flips | " + " | ".join(map(str, numbers)) + " |", "| --- | --- |" + " ---: |" * len(numbers)]
    for (contender, rate), found in sorted(lines.items(), key=lambda line: (line[0][1], line[0][0])):
        cells = [f"{found[n]:.{digits}f}" if n in found else "-" for n in numbers]
        text.append(f"| {contender} | {100 * rate:g} % | " + " | ".join(cells) + " |")
    return "\n".join(text)
