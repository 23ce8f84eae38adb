"""Means over seeds, with confidence intervals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import t as student

from bica.compare.contest import SCORES, similarity
from bica.compare.task import MEASURES
from bica.errors import DataError
from bica.text import brief

LEVEL = 0.99  # of the confidence intervals
CELL_FIELDS = ("contender", "network", "n_samples", "flip_rate")


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its confidence interval, mean ± half_width, by Student's t."""

    mean: float  # NaN where nothing was measured
    half_width: float  # NaN where there are fewer than two values
    n_runs: int

    def ends(self) -> dict[str, float]:
        """The mean with the ends of its interval, which is a single point where there are fewer than two values.

        >>> Mean(0.5, 0.25, 10).ends()
        {'mean': 0.5, 'low': 0.25, 'high': 0.75}
        """
        width = self.half_width if self.n_runs > 1 else 0.0
        return {"mean": self.mean, "low": self.mean - width, "high": self.mean + width}


def mean_of(values: Sequence[float], level: float = LEVEL) -> Mean:
    """The mean of independent runs.

    >>> mean_of([1.0, 2.0, 3.0]).n_runs, round(mean_of([1.0, 2.0, 3.0]).half_width, 2)
    (3, 5.73)
    """
    if not values:
        return Mean(float("nan"), float("nan"), 0)
    if len(values) == 1:
        return Mean(float(values[0]), float("nan"), 1)
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return Mean(float(np.mean(values)), float(student.ppf((1 + level) / 2, len(values) - 1) * error), len(values))


def summarise(records: Iterable[dict[str, Any]], level: float = LEVEL) -> list[dict[str, Any]]:
    """One row for every contender, setting and measure: ``mean``, ``low``, ``high``, ``n_runs`` and ``n_failed``.

    Measures that a contender does not have are left out. Cells (contender and setting) keep the order in which they
    first appear.
    """
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    with _naming_damage():
        for record in records:
            cells.setdefault(tuple(record[part] for part in CELL_FIELDS), []).append(record)
        return [row for cell, members in cells.items() for row in _rows(cell, members, level)]


def _rows(cell: tuple[Any, ...], members: list[dict[str, Any]], level: float) -> Iterable[dict[str, Any]]:
    failed = sum(record["failure"] is not None for record in members)
    for measure in MEASURES:
        values = [record[measure] for record in members if record[measure] is not None]
        if values:
            found = mean_of(values, level)
            yield {
                **dict(zip(CELL_FIELDS, cell, strict=True)),
                "measure": measure,
                **found.ends(),
                "n_runs": found.n_runs,
                "n_failed": failed,
            }


def best_variants(
    records: Iterable[dict[str, Any]], variants: Collection[str], cell: Sequence[str]
) -> dict[tuple[Any, ...], str]:
    """The contender among ``variants`` with the lowest mean distance, for every combination of the fields ``cell``.

    The choice is made knowing the truth, which favours the variants; a user would have to guess.

    >>> far, near = ({"contender": name, "n": 5, "hamming_distance": d} for name, d in [("a", 0.2), ("b", 0.1)])
    >>> best_variants([far, near], {"a", "b"}, ["n"])
    {(5,): 'b'}
    """
    distances: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for record in records:
        if record["contender"] in variants and record["hamming_distance"] is not None:
            found = distances.setdefault(tuple(record[part] for part in cell), {})
            found.setdefault(record["contender"], []).append(record["hamming_distance"])
    return {place: min(found, key=lambda name: float(np.mean(found[name]))) for place, found in distances.items()}


def with_best_variant(
    records: Sequence[dict[str, Any]], variants: Collection[str], cell: Sequence[str], title: str
) -> list[dict[str, Any]]:
    """The records with one contender, ``title``, in place of its ``variants``: in every cell the best of them.

    >>> far, near = ({"contender": name, "n": 5, "hamming_distance": d} for name, d in [("a", 0.2), ("b", 0.1)])
    >>> with_best_variant([far, near], {"a", "b"}, ["n"], "best")
    [{'contender': 'best', 'n': 5, 'hamming_distance': 0.1, 'variant': 'b'}]
    """
    best = best_variants(records, variants, cell)
    chosen = []
    for record in records:
        name = record["contender"]
        if name not in variants:
            chosen.append(record)
        elif best[tuple(record[part] for part in cell)] == name:
            chosen.append(record | {"contender": title, "variant": name})
    return chosen


@dataclass(frozen=True, slots=True)
class Standing:
    """How one contender did on one problem of a contest, over all seeds."""

    problem: str
    contender: str
    told: int | None  # the number of sources, if the method had to be told
    means: dict[str, Mean]  # of every score that was measured, "stability" included
    runs: dict[str, dict[int, float]]  # the same scores by seed, without stability, which belongs to no single seed
    verdicts: dict[str, int]  # how often each was given
    failure: str | None  # why the contender refused the problem, if it did
    n_failed: int


def standings(records: Iterable[dict[str, Any]], level: float = LEVEL) -> list[Standing]:
    """One standing for every problem and contender, in the order in which they first appear.

    Stability is how similar the sources of two seeds are, on average over all pairs of seeds. A seed draws other rows,
    or another part of the table, so a method that follows chance has a low one.
    """
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with _naming_damage():
        for record in records:
            cells.setdefault((record["problem"], record["contender"]), []).append(record)
        ordered = dict.fromkeys(problem for problem, _ in cells)
        return [
            _standing(problem, contender, cells[problem, contender], level)
            for problem in ordered
            for place, contender in cells
            if place == problem
        ]


@contextmanager
def _naming_damage() -> Iterator[None]:
    """Records come from a file that anything may have happened to."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"a result is damaged ({type(error).__name__} {brief(str(error))}); remove its line from the file of "
            "results, and the same command does that run again"
        ) from None


def _standing(problem: str, contender: str, members: list[dict[str, Any]], level: float) -> Standing:
    runs = {name: {r["seed"]: float(r[name]) for r in members if r[name] is not None} for name in SCORES}
    measured = {name: list(values.values()) for name, values in runs.items()}
    measured["stability"] = _likeness([json.loads(r["sources"]) for r in members if r["failure"] is None])
    failures = [record["failure"] for record in members if record["failure"] is not None]
    return Standing(
        problem,
        contender,
        next((record["told"] for record in members if record["told"] is not None), None),
        {name: mean_of(values, level) for name, values in measured.items() if values},
        runs,
        dict(Counter(record["verdict"] for record in members if record["failure"] is None)),
        failures[0] if failures else None,
        len(failures),
    )


def paired_difference(one: Standing, other: Standing, measure: str, level: float = LEVEL) -> Mean:
    """The mean of ``one`` minus ``other`` over the seeds that both have, which share their rows."""
    ours, theirs = one.runs.get(measure, {}), other.runs.get(measure, {})
    return mean_of([ours[seed] - theirs[seed] for seed in ours if seed in theirs], level)


def _likeness(found: Sequence[Sequence[Sequence[int]]]) -> list[float]:
    """How similar the sources of each pair of runs are, looked at from both sides."""
    columns = [[frozenset(column) for column in run] for run in found]
    return [(similarity(one, other) + similarity(other, one)) / 2 for one, other in combinations(columns, 2)]
