"""What a reader yields: rows of 0, 1 and missing cells, a few megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import Columns
from bica.errors import DataError, RowError
from bica.kernels.bits import Words, packed
from bica.kernels.columns import block_histogram, transpose_bits
from bica.text import brief

MISSING = 2  # the cell was not observed; the other two cell values are 0 and 1
CELLS_A_CHUNK = 1 << 22
GROUPED_SENSORS = 64  # wider rows seldom repeat, so that grouping them in an engine first only costs time


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a table; bit i of a row's words is sensor i, and an unobserved cell has bit 0."""

    words: Words  # (n_rows, n_words)
    observed: Words | None = None  # same shape, bit set where the cell was observed; None: all were
    weights: NDArray[np.float64] | None = None  # (n_rows,); None: every row counts once
    labels: tuple[tuple[str, ...], ...] = ()  # the cells of each carried column, (n_rows,) each; absent when counting


class Table(Protocol):
    """A source of rows that may be larger than memory."""

    @property
    def columns(self) -> Columns:
        """What its columns are."""

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order."""

    def distinct(self) -> Iterator[Chunk]:
        """The same rows for counting only: in any order, equal ones perhaps already grouped."""


class CountedRows(Protocol):
    """Distinct rows in memory, with their weights."""

    @property
    def patterns(self) -> Words:
        """The rows as bit sets, (n_patterns, n_words)."""

    @property
    def observed(self) -> Words | None:
        """The same for the cells that were observed; None: all were."""

    @property
    def weights(self) -> NDArray[np.float64]:
        """How often each row occurred."""

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBits:
    """One bit set per sensor: bit r is set where the sensor is on in distinct row r.

    >>> from bica.data.patterns import PatternCounts
    >>> columns = ColumnBits.of(PatternCounts.of([[0, 1], [1, 1]]))
    >>> columns.on[:, 0], columns.histogram(np.array([1]))
    (array([2, 3], dtype=uint64), array([0., 2.]))
    """

    on: Words  # (n_sensors, n_row_words)
    observed: Words | None  # the same for the cells that were observed; None: all were
    weights: NDArray[np.float64]  # (n_patterns,)

    @classmethod
    def of(cls, data: CountedRows, rows: NDArray[np.int64] | None = None) -> ColumnBits:
        """Turn the table round, or some of its distinct rows: time goes with the number of ones."""
        chosen = slice(None) if rows is None else rows
        observed = None if data.observed is None else transposed(data.observed[chosen], len(data.sensors))
        return cls(transposed(data.patterns[chosen], len(data.sensors)), observed, data.weights[chosen])

    def histogram(self, sensors: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weight of every pattern of a few sensors, all cells taken as observed: (2^n,)."""
        histogram = np.zeros(1 << sensors.size)
        block_histogram(self.on, sensors, self.weights, histogram)
        return histogram

    def complete_histogram(self, sensors: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same for the rows in which all of these sensors were observed."""
        if self.observed is None:
            return self.histogram(sensors)
        words = np.bitwise_and.reduce(self.observed[sensors], axis=0)
        complete = np.unpackbits(words.view(np.uint8), bitorder="little", count=self.weights.size).astype(bool)
        histogram = np.zeros(1 << sensors.size)
        block_histogram(self.on, sensors, np.where(complete, self.weights, 0.0), histogram)
        return histogram


def transposed(words: Words, n_sensors: int) -> Words:
    """The columns of rows that are bit sets."""
    columns = np.zeros((64 * words.shape[1], max(1, -(-len(words) // 64))), np.uint64)
    transpose_bits(np.ascontiguousarray(words), columns)
    return columns[:n_sensors]


def chunk_of_cells(cells: NDArray[np.uint8], weights: NDArray[np.float64] | None = None) -> Chunk:
    """Pack rows whose cells are 0, 1 or ``MISSING``."""
    if cells.max(initial=0) < MISSING:
        return Chunk(packed(cells), None, weights)
    return Chunk(packed(cells == 1), packed(cells != MISSING), weights)


def rows_a_chunk(n_sensors: int) -> int:
    """How many rows keep a chunk of cells at a few megabytes."""
    return max(1, CELLS_A_CHUNK // max(1, n_sensors))


STRANGE = 3  # neither 0 nor 1 nor missing
NOT_OBSERVED = ("NoneType", "NAType", "NaTType", "MaskedConstant")  # by name, since pandas may not be installed


def cells_of(values: NDArray[Any], thresholds: NDArray[np.float64] | float | None) -> NDArray[np.uint8]:
    """0, 1, ``MISSING`` or ``STRANGE`` for each value; ``thresholds`` fit the last axis, NaN where none applies.

    >>> cells_of(np.array([[0.0, 1.0, np.nan, 7.0, 7.0]]), np.array([np.nan, np.nan, np.nan, np.nan, 5.0]))
    array([[0, 1, 2, 3, 1]], dtype=uint8)
    """
    if values.dtype.kind not in "biuf":
        return _cells_of_objects(values, thresholds)
    if values.dtype == bool and thresholds is None:
        return values.view(np.uint8)
    on = values == 1
    strange = ~(on | (values == 0))
    cells: NDArray[np.uint8] = on.view(np.uint8) | np.uint8(STRANGE) * strange.view(np.uint8)
    if thresholds is not None:
        cells = np.where(np.isnan(thresholds), cells, (values > thresholds).view(np.uint8))
    if values.dtype.kind == "f" and strange.any():
        cells[np.isnan(values)] = MISSING
    return cells


def chunk_of_values(
    values: NDArray[Any],
    sensors: tuple[str, ...],
    thresholds: NDArray[np.float64] | None = None,
    first_row: int = 0,
    weights: NDArray[np.float64] | None = None,
) -> Chunk:
    """Pack rows of numbers, NaN for missing cells; anything else is refused by row, column and value."""
    cells = cells_of(np.ma.getdata(values), thresholds)
    if np.ma.isMaskedArray(values):
        cells = np.where(np.ma.getmaskarray(values), np.uint8(MISSING), cells)
    if cells.max(initial=0) == STRANGE:
        row, column = np.argwhere(cells == STRANGE)[0]
        raise strange_value(first_row + row, sensors[column], values[row, column])
    return chunk_of_cells(cells, weights)


def strange_value(row: int | None, sensor: str, value: object) -> DataError:
    """The error for a cell that is neither 0 nor 1, in a row that may be unknown."""
    shown = value.item() if isinstance(value, np.generic) else value
    if isinstance(shown, float) and shown.is_integer():
        shown = int(shown)
    remedy = AS_TEXT if isinstance(shown, str) else "turn measurements into 0/1 with `binarize`"
    remedy += SUMS if isinstance(shown, float) else ""
    trouble = f"column {brief(sensor)} holds {brief(shown)}, but only 0 and 1 can be read; {remedy}"
    return DataError(trouble) if row is None else RowError(row, f", {trouble}")


SUMS = ", or, where the levels of sources add up in them, unmix them with bica.rivals.linear.LinearSums"
AS_TEXT = "leave the column out with `drop`, or write 1 and 0 for yes and no"


def _cells_of_objects(values: NDArray[Any], thresholds: NDArray[np.float64] | float | None) -> NDArray[np.uint8]:
    numbers, alien = floats_of(values)
    cells = cells_of(numbers, thresholds)
    cells[alien] = STRANGE
    return cells


def floats_of(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Python objects as floats, NaN for those that say "not observed", and which of them are no numbers at all."""
    numbers = [_number(value) for value in values.astype(object).ravel()]
    floats = np.array([np.nan if number is None else number for number in numbers], np.float64)
    return floats.reshape(values.shape), np.array([n is None for n in numbers], bool).reshape(values.shape)


def _number(value: object) -> float | None:
    if type(value).__name__ in NOT_OBSERVED:
        return float("nan")
    if isinstance(value, Real | np.bool_) or type(value).__name__ == "Decimal":
        try:
            return float(value)  # type: ignore[arg-type]
        except OverflowError:  # a whole number beyond all floats
            return inf if value > 0 else -inf  # type: ignore[operator]
        except ValueError:  # a decimal that signals
            return None
    return None
