"""Means over seeds, with how sure they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from bica.compare.task import MEASURES

LEVEL = 0.99
CELL = ("contender", "network", "n_samples", "flip_rate")


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its confidence interval, mean +- half_width, by Student's t."""

    mean: float  # NaN where nothing was measured
    half_width: float  # NaN where there are fewer than two values
    n_runs: int


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

    Measures that a contender does not have are left out. The order is that in which cells first appear.
    """
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        cells.setdefault(tuple(record[part] for part in CELL), []).append(record)
    return [row for cell, members in cells.items() for row in _rows(cell, members, level)]


def _rows(cell: tuple[Any, ...], members: list[dict[str, Any]], level: float) -> Iterable[dict[str, Any]]:
    failed = sum(record["failure"] is not None for record in members)
    for measure in MEASURES:
        values = [record[measure] for record in members if record[measure] is not None]
        if values:
            found = mean_of(values, level)
            width = 0.0 if np.isnan(found.half_width) else found.half_width
            yield {
                **dict(zip(CELL, cell, strict=True)),
                "measure": measure,
                "mean": found.mean,
                "low": found.mean - width,
                "high": found.mean + width,
                "n_runs": found.n_runs,
                "n_failed": failed,
            }
