"""New candidate sources from cells that are 1 and unexplained, and from intersections of a few distinct rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bica.estimate.rows.explained import Explained
from bica.estimate.rows.pool import (
    Column,
    Cost,
    Forbidden,
    Numbers,
    RowPool,
    RowTable,
    as_columns,
    as_lists,
    joined,
    ranges,
)
from bica.kernels.bits import Words, pack_sparse, packed, unpacked
from bica.kernels.rows.births import accept_columns, closure_areas, find_seeds, grow_columns
from bica.kernels.rows.lists import Lists, turned
from bica.progress import in_threads

FEW_ROWS = 400  # distinct rows up to which all their intersections are tried
MOST_CLOSURES = 20_000  # intersections kept, those of the largest area
PER_SENSOR = 0.01  # cells taken off the area for each sensor: of two sets that explain as much, the smaller wins


def has_few_rows(table: RowTable) -> bool:
    """Whether there are so few distinct rows that all their intersections can be tried."""
    return table.n_rows <= FEW_ROWS


def closures(table: RowTable, left: Words, *, lone: bool) -> list[tuple[float, Column]]:
    """Rows, unexplained parts of rows and intersections of two of either, with the area of each; none if rows are many.

    Single sensors are among them only if ``lone``. ``left`` holds the unexplained parts of the rows.
    """
    if not has_few_rows(table):
        return []
    alone = packed(np.eye(table.n_sensors, dtype=np.uint8)) if lone else table.words[:0]
    sets = np.unique(np.concatenate([_intersections(table.words), _intersections(left), alone]), axis=0)
    sets = sets[sets.any(axis=1)]
    areas = closure_areas(sets, table.words, left, table.cells.weights)
    best = np.argsort(-areas, kind="stable")[:MOST_CLOSURES]
    best = best[areas[best] > 0]
    columns = [tuple(np.flatnonzero(row).tolist()) for row in unpacked(sets[best], table.n_sensors)]
    pairs = zip(areas[best].tolist(), columns, strict=True)
    ranked = [(area - PER_SENSOR * len(column), column) for area, column in pairs]
    return [candidate for candidate in ranked if lone or len(candidate[1]) > 1]


def _intersections(words: Words) -> Words:
    rows = np.unique(words, axis=0)
    return np.unique(np.concatenate([rows[k] & rows[k:] for k in range(len(rows))]), axis=0)


PARTNERS = 6  # of each sensor that make seeds with it
SURPRISE = 5.0  # standard deviations above what independent sensors give: a pair this frequent is a seed
FEW_SAMPLES = 1000  # rows: with fewer, surprises are hard to come by, so every pair that is on together is a seed
MOST_SEEDS = 6000  # grown in one round; of more, a random choice
LONGEST = 250  # sensors of a grown column
SENSORS_PER_PART, SEEDS_PER_PART = 32, 64  # work for one thread at a time
RAREST_BIRTH, MOST_FREQUENT_BIRTH = 1e-4, 0.5  # probability of a new source
PER_SEED_ROW = 0.5  # area of a bare seed for each row with both on, half that of a grown pair
EXACT = 1e-3  # a higher flip rate explains single ones better than one source per sensor would
MOST_OF_IT = 0.8  # share of its sensors that must be on in the rows that a new source explains


def births(
    state: Explained, cost: Cost, least: float, rng: np.random.Generator, forbidden: Forbidden | None = None
) -> RowPool:
    """New sources that pay by explaining what is unexplained, grown from pairs that are on together too often.

    ``least`` is the weight of the rows that a source needs. With few distinct rows, their intersections are tried, too.
    """
    table, left = state.table, state.coverage().unexplained
    left_words = np.zeros_like(table.words)
    pack_sparse(left.start, left.items.astype(np.int64), left_words)
    candidates = [
        *_grown(state, left, left_words, least, rng),
        *closures(table, left_words, lone=state.cell_weights.flip_rate < EXACT),
    ]
    have = set(as_columns(state.pool.columns))
    columns: list[Column] = []
    for _, column in sorted(candidates, key=lambda candidate: (-candidate[0], candidate[1])):
        if column not in have and not (forbidden and forbidden(column)):
            have.add(column)
            columns.append(column)
    lists = as_lists(columns)
    needed = cost(np.diff(lists.start)) - 0.5 * np.log(table.n_samples)
    explained = accept_columns(
        lists, needed, table.ones_of, table.cells, table.words, left_words, state.cell_weights.one, least, MOST_OF_IT
    )
    born = np.flatnonzero(explained)
    probability = np.maximum(explained[born] / table.n_samples, RAREST_BIRTH)
    return RowPool.of([columns[k] for k in born.tolist()], np.minimum(probability, MOST_FREQUENT_BIRTH).tolist())


def _grown(
    state: Explained, left: Lists, left_words: Words, least: float, rng: np.random.Generator
) -> Iterable[tuple[float, Column]]:
    """Columns grown from seeds, and the bare seeds, each with the area that it would explain."""
    table, rows_of = state.table, turned(left, state.table.n_sensors)
    seeds, together = _seeds(state, left, rows_of, left_words, least, rng)
    frequency, miss, longest = table.ones(), float(np.mean(state.cell_weights.miss)), min(table.n_sensors, LONGEST)

    def grow(part: NDArray[np.int64]) -> tuple[Lists, Numbers]:
        return grow_columns(
            seeds[part], left_words, rows_of, table.cells, table.words, frequency, miss, least, max(2, longest)
        )

    parts = list(in_threads(grow, ranges(np.arange(len(seeds)), SEEDS_PER_PART), state.n_jobs))
    columns = as_columns(joined([part[0] for part in parts]))
    areas = np.concatenate([part[1] for part in parts]).tolist()
    grown = [(area, tuple(sorted(column))) for area, column in zip(areas, columns, strict=True) if column]
    bare = [(PER_SEED_ROW * count, (i, k)) for count, (i, k) in zip(together.tolist(), seeds.tolist(), strict=True)]
    return grown + bare


def _seeds(
    state: Explained, left: Lists, rows_of: Lists, left_words: Words, least: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Numbers]:
    """Pairs of sensors that are on and unexplained together, and in how many rows."""
    table = state.table
    each = table.added_up(left)
    surprise = SURPRISE if table.n_samples >= FEW_SAMPLES else -np.inf

    def find(sensors: NDArray[np.int64]) -> tuple[NDArray[np.int64], Numbers]:
        return find_seeds(sensors, left, rows_of, each, table.cells, PARTNERS, surprise, least)

    parts = list(in_threads(find, ranges(np.arange(table.n_sensors), SENSORS_PER_PART), state.n_jobs))
    partners, together = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    sensor, place = np.nonzero(partners >= 0)
    pairs = np.sort(np.column_stack([sensor, partners[sensor, place]]), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    counts = together[sensor, place][first]
    if len(pairs) > MOST_SEEDS:
        chosen = np.sort(rng.choice(len(pairs), MOST_SEEDS, replace=False))
        pairs, counts = pairs[chosen], counts[chosen]
    return np.ascontiguousarray(pairs), counts
