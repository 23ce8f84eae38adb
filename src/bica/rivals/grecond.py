"""GreConD: cover a table by formal concepts, greedily (Belohlavek and Vychodil 2010)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.kernels.bits import Words, packed, unpacked
from bica.kernels.rivals.concepts import covered_by_smaller, grow_concept
from bica.model.fit import Fit
from bica.rivals.counted import Attempt, NoiseSetting, check_noise, fit_best_start


@dataclass(frozen=True, kw_only=True)
class GreConD:
    """Explain every 1 of the table exactly, by few sources; each is the concept that covers most of what is left.

    A 0 is never covered. The number of sources is found. There is no noise model, so noisy tables need many sources.
    The first start breaks ties by the lowest column, further ones by a random order; the fewest sources win. Time for
    each source: about columns^2 times rows / 64.

    >>> found = GreConD().fit(PatternCounts.of([[1, 1, 0], [0, 1, 1], [1, 1, 1]]), np.random.default_rng(0))
    >>> found.model.mixing.astype(int).T
    array([[1, 1, 0],
           [0, 1, 1]])
    >>> found.diagnostics["objective"]  # the ones that are not yet covered
    [3.0, 0.0]
    """

    max_sources: int | None = None  # stop there even if ones are left uncovered
    coverage: float = 1.0  # stop when this share of the ones is covered
    essential: bool = False  # cover only the ones outside every smaller row and column; the others follow
    n_init: int = 1
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "GreConD")
        if not 0 < self.coverage <= 1:
            raise SettingError(f"coverage must lie in (0, 1], but {self.coverage:g} was given")
        if self.max_sources is not None and self.max_sources < 1:
            raise SettingError(f"max_sources counts from 1 up, but {self.max_sources} was given")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold the weight of the ones left after each source."""
        name = "grecond-essential" if self.essential else "grecond"
        data = data.complete(name)
        wanted = essential_cells(data.rows()) if self.essential else data.rows()

        def start(number: int, stream: np.random.Generator) -> Attempt:
            order = np.arange(data.n_sensors) if number == 0 else stream.permutation(data.n_sensors)
            return self._cover(data, packed(wanted), order)

        return fit_best_start(name, data, start, self.n_init, rng)

    def _cover(self, data: PatternCounts, left: Words, order: NDArray[np.int64]) -> Attempt:
        columns: list[NDArray[np.bool_]] = []
        members: list[NDArray[np.bool_]] = []
        trace: list[float] = []
        total = remaining = _weight(left, data)
        enough = (1 - self.coverage) * total
        while remaining > enough and len(columns) != self.max_sources:
            closed = np.zeros((1, left.shape[1]), np.uint64)
            inside = grow_concept(data.patterns, left, data.weights, order, closed)
            left[inside] &= ~closed[0]
            remaining = _weight(left, data)
            columns.append(unpacked(closed, data.n_sensors)[0])
            members.append(np.isin(np.arange(len(data.weights)), inside))
            trace.append(remaining)
        mixing = np.array(columns, dtype=bool).reshape(-1, data.n_sensors).T
        activity = np.array(members, dtype=bool).reshape(-1, len(data.weights)).T
        score = len(columns) + remaining / (total + 1)  # fewest sources, then fewest ones left
        return Attempt(mixing, activity, self.noise, score, {"objective": trace}, True)


@dataclass(frozen=True, kw_only=True)
class GreConDEssential(GreConD):
    """GreConD on the essential ones only: as exact, and usually with fewer sources.

    >>> GreConDEssential().fit(PatternCounts.of([[1, 1, 0], [0, 1, 1]]), np.random.default_rng(0)).model.n_sources
    2
    """

    essential: bool = True


def essential_cells(rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The ones of the table that lie in no strictly smaller row and no strictly smaller column.

    Concepts that cover these cover all other ones too: where (i, j) is not essential, each concept that covers the cell
    of the smaller row or column covers (i, j) as well.

    >>> essential_cells(np.array([[1, 0], [1, 1]], dtype=bool)).astype(int)
    array([[1, 0],
           [0, 1]])
    """
    explained = _in_smaller_rows(rows) | _in_smaller_rows(np.ascontiguousarray(rows.T)).T
    return np.ascontiguousarray(rows & ~explained)


def _in_smaller_rows(rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    words = packed(rows)
    covered = np.zeros_like(words)
    covered_by_smaller(words, covered)
    return unpacked(covered, rows.shape[1])


def _weight(left: Words, data: PatternCounts) -> float:
    return float(data.weights @ unpacked(left, data.n_sensors).sum(axis=1))
