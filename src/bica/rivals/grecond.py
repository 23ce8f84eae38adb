"""GreConD: cover a table by formal concepts, greedily (Belohlavek and Vychodil 2010), or nearly so (GreConD+ 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.kernels.bits import Words, packed, unpacked
from bica.kernels.rivals.factors import covered_by_smaller, grow_concept
from bica.model.fit import Fit
from bica.rivals.counted import Attempt, NoiseSetting, check_noise, fit_best_start

Bits = NDArray[np.bool_]
Orientation = Literal["sensors", "rows", "best"]


@dataclass(frozen=True, kw_only=True)
class GreConD:
    """Explain every 1 of the table exactly, by few sources; each is the concept that covers most of what is left.

    A 0 is never covered. The number of sources is found. There is no noise model, so noisy tables need many sources. A
    concept grows sensor by sensor; with ``orientation="rows"`` it grows distinct row by distinct row, each counted
    once, and ``"best"`` tries both and keeps the smaller cover. The first start breaks ties by the lowest column,
    further ones by a random order; the fewest sources win. Time for each source: about columns^2 times rows / 64.

    R. Belohlavek, V. Vychodil: Discovery of optimal factors in binary data via a novel method of matrix decomposition,
    JCSS 76, 2010.

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
    orientation: Orientation = "sensors"
    n_init: int = 1
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "GreConD")
        if not 0 < self.coverage <= 1:
            raise SettingError(f"coverage must lie in (0, 1], but {self.coverage:g} was given")
        if self.max_sources is not None and self.max_sources < 1:
            raise SettingError(f"max_sources counts from 1 up, but {self.max_sources} was given")
        if self.orientation not in ("sensors", "rows", "best"):
            raise SettingError(f"orientation is 'sensors', 'rows' or 'best', not {self.orientation!r}")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold the weight of the ones left after each source."""
        name = self._name()
        data = data.complete(name)
        wanted = essential_cells(data.rows()) if self.essential else data.rows()
        turns = [False, True] if self.orientation == "best" else [self.orientation == "rows"]

        def start(number: int, stream: np.random.Generator) -> Attempt:
            concepts = Concepts.of(data, by_rows=turns[number % len(turns)])
            order = np.arange(concepts.n_columns)
            return self._cover(
                data, concepts, wanted.copy(), order if number < len(turns) else stream.permutation(order)
            )

        return fit_best_start(name, data, start, self.n_init * len(turns), rng)

    def _name(self) -> str:
        return "grecond-essential" if self.essential else "grecond"

    def _cover(self, data: PatternCounts, concepts: Concepts, left: Bits, order: NDArray[np.int64]) -> Attempt:
        cover = Cover(data)
        trace: list[float] = []
        total = remaining = cover.weight(left)
        while remaining > (1 - self.coverage) * total and len(cover.columns) != self.max_sources:
            cover.add(*self._improved(cover, *concepts.grow(left, order)))
            left[np.ix_(cover.members[-1], cover.columns[-1])] = False
            remaining = cover.weight(left)
            trace.append(remaining)
        self._finish(cover)
        score = len(cover.columns) + cover.cost(left, 1.0) / (2 * data.n_samples * data.n_sensors)
        return Attempt(*cover.factors(), self.noise, score, {"objective": trace}, True)

    def _improved(self, cover: Cover, members: Bits, column: Bits) -> tuple[Bits, Bits]:
        """What becomes of a concept before it is used."""
        return members, column

    def _finish(self, cover: Cover) -> None:
        """What becomes of all sources in the end."""


@dataclass(frozen=True, kw_only=True)
class GreConDEssential(GreConD):
    """GreConD on the essential ones only: as exact, and usually with fewer sources.

    >>> GreConDEssential().fit(PatternCounts.of([[1, 1, 0], [0, 1, 1]]), np.random.default_rng(0)).model.n_sources
    2
    """

    essential: bool = True


@dataclass(frozen=True, kw_only=True)
class GreConDPlus(GreConD):
    """GreConD that may cover some zeros, and so needs fewer sources where cells were missed.

    Every concept is extended: by the sensor that gains most, then by all rows that gain, until nothing gains. A gain is
    the weight of the ones that are newly covered, less ``cost_of_zero`` times that of the zeros. Sources whose ones are
    all covered by others are dropped in the end.

    R. Belohlavek, M. Trnecka: A new algorithm for Boolean matrix factorization which admits overcovering, Discrete
    Applied Mathematics 249, 2018.

    >>> rows = [[1, 1, 1, 0]] * 5 + [[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]  # two cells were missed
    >>> GreConDPlus(cost_of_zero=1).fit(PatternCounts.of(rows), np.random.default_rng(0)).model.n_sources
    2
    >>> GreConD().fit(PatternCounts.of(rows), np.random.default_rng(0)).model.n_sources
    5
    """

    cost_of_zero: float = 4.0  # at 1 or 2 early sources take in zeros that later ones would have spared

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.cost_of_zero > 0:
            raise SettingError(f"cost_of_zero must be above 0, but {self.cost_of_zero:g} was given")

    def _name(self) -> str:
        return "grecond-plus"

    def _improved(self, cover: Cover, members: Bits, column: Bits) -> tuple[Bits, Bits]:
        worth = cover.worth(self.cost_of_zero)
        while True:
            by_sensor = np.where(column, 0.0, worth[members].sum(axis=0))
            by_row = np.where(members, 0.0, worth[:, column].sum(axis=1))
            if by_sensor.max(initial=0.0) > 0:
                column = column | (np.arange(column.size) == by_sensor.argmax())
            elif (by_row > 0).any():
                members = members | (by_row > 0)
            else:
                return members, column

    def _finish(self, cover: Cover) -> None:
        cover.drop_redundant()


@dataclass(frozen=True, slots=True, eq=False)
class Concepts:
    """A table whose concepts grow column by column; its rows and columns may have changed places."""

    words: Words
    weights: NDArray[np.float64]  # of the rows
    n_columns: int
    by_rows: bool

    @classmethod
    def of(cls, data: PatternCounts, by_rows: bool) -> Concepts:
        """The concepts of the distinct rows, which count once each if they are what is added one by one."""
        if not by_rows:
            return cls(data.patterns, data.weights, data.n_sensors, by_rows)
        turned = np.ascontiguousarray(data.rows().T)
        return cls(packed(turned), np.ones(len(turned)), turned.shape[1], by_rows)

    def grow(self, left: Bits, order: NDArray[np.int64]) -> tuple[Bits, Bits]:
        """The rows and the sensors of the concept that grows best on the cells ``left``."""
        wanted = packed(np.ascontiguousarray(left.T) if self.by_rows else left)
        closed = np.zeros((1, self.words.shape[1]), np.uint64)
        inside = grow_concept(self.words, wanted, self.weights, order, closed)
        rows = np.isin(np.arange(len(self.words)), inside)
        columns = unpacked(closed, self.n_columns)[0]
        return (columns, rows) if self.by_rows else (rows, columns)


class Cover:
    """The sources so far and the cells that they cover."""

    def __init__(self, data: PatternCounts) -> None:
        self.rows, self.weights = data.rows(), data.weights
        self.columns: list[Bits] = []  # (n_sensors,) each
        self.members: list[Bits] = []  # (n_patterns,) each
        self.times = np.zeros(self.rows.shape, np.int64)  # how many sources cover each cell

    def add(self, members: Bits, column: Bits) -> None:
        """One more source."""
        self.members.append(members)
        self.columns.append(column)
        self.times[np.ix_(members, column)] += 1

    def weight(self, cells: Bits) -> float:
        """The weight of these cells."""
        return float(self.weights @ cells.sum(axis=1))

    def cost(self, left: Bits, cost_of_zero: float) -> float:
        """The weight of the cells ``left`` and of the zeros that are covered."""
        return self.weight(left) + cost_of_zero * self.weight(~self.rows & (self.times > 0))

    def worth(self, cost_of_zero: float) -> NDArray[np.float64]:
        """What it gains to cover each cell: nothing where it is covered already."""
        gain = np.where(self.rows, 1.0, -cost_of_zero) * self.weights[:, None]
        return np.where(self.times > 0, 0.0, gain)

    def drop_redundant(self) -> None:
        """Leave out sources, the latest first, whose ones are covered by others as well."""
        for place in reversed(range(len(self.columns))):  # from behind, so that the places before stay as they are
            cells = np.ix_(self.members[place], self.columns[place])
            if (self.times[cells] > 1)[self.rows[cells]].all():
                self.times[cells] -= 1
                del self.members[place], self.columns[place]

    def factors(self) -> tuple[Bits, Bits]:
        """Mixing and activity."""
        n_rows, n_sensors = self.rows.shape
        mixing = np.array(self.columns, dtype=bool).reshape(-1, n_sensors).T
        return mixing, np.array(self.members, dtype=bool).reshape(-1, n_rows).T


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
