"""Tables with few distinct rows: what rows have in common are candidates too."""

from __future__ import annotations

import numpy as np

from bica.data.chunks import unpacked
from bica.estimate.rows.pool import Column
from bica.estimate.rows.table import RowTable
from bica.kernels.bits import Words
from bica.kernels.rows_births import closure_areas

FEW_ROWS, MOST = 400, 20_000


def has_few_rows(table: RowTable) -> bool:
    """Whether there are so few distinct rows that all their intersections can be looked at."""
    return table.n_rows <= FEW_ROWS


def closures(table: RowTable, left: Words) -> list[tuple[float, Column]]:
    """Rows, unexplained parts of rows, intersections of two of either, and single sensors, with the area of each.

    Only for few distinct rows; ``left`` are the unexplained ones as bit sets.
    """
    if not has_few_rows(table):
        return []
    alone = np.zeros((table.n_sensors, table.words.shape[1]), np.uint64)
    sensors = np.arange(table.n_sensors)
    alone[sensors, sensors // 64] = np.uint64(1) << (sensors % 64).astype(np.uint64)
    sets = np.unique(np.concatenate([_intersections(table.words), _intersections(left), alone]), axis=0)
    sets = sets[sets.any(axis=1)]
    areas = closure_areas(sets, table.words, left, table.cells.weights)
    best = np.argsort(-areas, kind="stable")[:MOST]
    best = best[areas[best] > 0]
    cells = unpacked(sets[best], table.n_sensors)
    columns = [tuple(np.flatnonzero(row).tolist()) for row in cells]
    # of two sets that explain as much the smaller one: it promises less
    return [(area - 0.01 * len(column), column) for area, column in zip(areas[best].tolist(), columns, strict=True)]


def _intersections(words: Words) -> Words:
    rows = np.unique(words, axis=0)
    return np.unique(np.concatenate([rows[k] & rows[k:] for k in range(len(rows))]), axis=0)
