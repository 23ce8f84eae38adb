"""New candidate sources from ones that no source explains, and from what few distinct rows have in common."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import packed, unpacked
from bica.estimate.rows.explained import Explained
from bica.estimate.rows.pool import (
    Column,
    Forbidden,
    Numbers,
    Price,
    RowPool,
    RowTable,
    as_columns,
    as_lists,
    joined,
    ranges,
)
from bica.kernels.bits import Words, pack_sparse
from bica.kernels.rows.births import accept_columns, closure_areas, find_seeds, grow_columns
from bica.kernels.rows.lists import Lists, turned
from bica.threads import in_threads

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


PARTNERS, SURPRISE = 6, 5.0
FEW_SAMPLES = 1000  # below, a surprise is hard to come by: every pair that is on together is a seed
MOST_SEEDS, LONGEST = 6000, 250
SENSORS_A_PART, SEEDS_A_PART = 32, 64
RAREST_BIRTH = 1e-4
EXACT = 1e-3  # a flip rate above it explains lone ones better than a source for each sensor would
MOST_OF_IT = 0.8  # of its sensors must be on where a new source explains the ones that are


def births(
    state: Explained, price: Price, least: float, rng: np.random.Generator, forbidden: Forbidden | None = None
) -> RowPool:
    """Sources that pay by explaining what is left: pairs that are on together too often, and what grows of them.

    ``least`` is the weight of the rows that a source needs. With few distinct rows, their intersections are tried too.
    """
    table, left = state.table, state.coverage().unexplained
    left_words = np.zeros_like(table.words)
    pack_sparse(left.start, left.items.astype(np.int64), left_words)
    pool = [
        *_grown(state, left, left_words, least, rng),
        *closures(table, left_words, lone=state.evidence.flip_rate < EXACT),
    ]
    have = set(as_columns(state.pool.columns))
    columns: list[Column] = []
    for _, column in sorted(pool, key=lambda candidate: (-candidate[0], candidate[1])):
        if column not in have and not (forbidden and forbidden(column)):
            have.add(column)
            columns.append(column)
    lists = as_lists(columns)
    needed = price(np.diff(lists.start)) - 0.5 * np.log(table.n_samples)
    explained = accept_columns(
        lists, needed, table.ones_of, table.cells, table.words, left_words, state.evidence.one, least, MOST_OF_IT
    )
    born = np.flatnonzero(explained)
    chances = np.maximum(explained[born] / table.n_samples, RAREST_BIRTH)
    return RowPool.of([columns[k] for k in born.tolist()], np.minimum(chances, 0.5).tolist())


def _grown(
    state: Explained, left: Lists, left_words: Words, least: float, rng: np.random.Generator
) -> Iterable[tuple[float, Column]]:
    """Columns grown from seeds, and the bare seeds, with the area that each would explain."""
    table, rows_of = state.table, turned(left, state.table.n_sensors)
    seeds, together = _seeds(state, left, rows_of, left_words, least, rng)
    frequency, miss, longest = table.ones(), float(np.mean(state.evidence.miss)), min(table.n_sensors, LONGEST)

    def grow(part: NDArray[np.int64]) -> tuple[Lists, Numbers]:
        return grow_columns(
            seeds[part], left_words, rows_of, table.cells, table.words, frequency, miss, least, max(2, longest)
        )

    parts = list(in_threads(grow, ranges(np.arange(len(seeds)), SEEDS_A_PART), state.n_jobs))
    columns = as_columns(joined([part[0] for part in parts]))
    areas = np.concatenate([part[1] for part in parts]).tolist()
    grown = [(area, tuple(sorted(column))) for area, column in zip(areas, columns, strict=True) if column]
    bare = [(0.5 * count, (i, k)) for count, (i, k) in zip(together.tolist(), seeds.tolist(), strict=True)]
    return grown + bare


def _seeds(
    state: Explained, left: Lists, rows_of: Lists, left_words: Words, least: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Numbers]:
    """Pairs of sensors that are unexplained together, and in how many rows."""
    table = state.table
    each = table.added_up(left)
    surprise = SURPRISE if table.n_samples >= FEW_SAMPLES else -np.inf

    def find(sensors: NDArray[np.int64]) -> tuple[NDArray[np.int64], Numbers]:
        return find_seeds(sensors, left, rows_of, each, table.cells, PARTNERS, surprise, least)

    parts = list(in_threads(find, ranges(np.arange(table.n_sensors), SENSORS_A_PART), state.n_jobs))
    partners, together = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    sensor, place = np.nonzero(partners >= 0)
    pairs = np.sort(np.column_stack([sensor, partners[sensor, place]]), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    counts = together[sensor, place][first]
    if len(pairs) > MOST_SEEDS:
        chosen = np.sort(rng.choice(len(pairs), MOST_SEEDS, replace=False))
        pairs, counts = pairs[chosen], counts[chosen]
    return np.ascontiguousarray(pairs), counts
