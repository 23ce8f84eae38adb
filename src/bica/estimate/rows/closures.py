"""Tables with few distinct rows: what rows have in common are candidates too."""

from __future__ import annotations

import numpy as np

from bica.data.chunks import packed, unpacked
from bica.estimate.rows.pool import Column
from bica.estimate.rows.table import RowTable
from bica.kernels.bits import Words
from bica.kernels.rows_births import closure_areas

FEW_ROWS, MOST = 400, 20_000


def has_few_rows(table: RowTable) -> bool:
    """Whether there are so few distinct rows that all their intersections can be looked at."""
    return table.n_rows <= FEW_ROWS


def closures(table: RowTable, left: Words, *, lone: bool) -> list[tuple[float, Column]]:
    """Rows, unexplained parts of rows and intersections of two of either, with the area of each.

    Single sensors are among them only if ``lone``. Only for few distinct rows; ``left`` are the unexplained ones.
    """
    if not has_few_rows(table):
        return []
    alone = packed(np.eye(table.n_sensors, dtype=np.uint8)) if lone else table.words[:0]
    sets = np.unique(np.concatenate([_intersections(table.words), _intersections(left), alone]), axis=0)
    sets = sets[sets.any(axis=1)]
    areas = closure_areas(sets, table.words, left, table.cells.weights)
    best = np.argsort(-areas, kind="stable")[:MOST]
    best = best[areas[best] > 0]
    columns = [tuple(np.flatnonzero(row).tolist()) for row in unpacked(sets[best], table.n_sensors)]
    # of two sets that explain as much the smaller one: it promises less
    ranked = [(area - 0.01 * len(column), column) for area, column in zip(areas[best].tolist(), columns, strict=True)]
    return [candidate for candidate in ranked if lone or len(candidate[1]) > 1]


def _intersections(words: Words) -> Words:
    rows = np.unique(words, axis=0)
    return np.unique(np.concatenate([rows[k] & rows[k:] for k in range(len(rows))]), axis=0)
