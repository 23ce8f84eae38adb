"""Means over seeds, with confidence intervals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from bica.compare.task import MEASURES

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
