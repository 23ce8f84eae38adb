"""Data frames as tables: in memory (pandas, Polars, PyArrow), or yet to be computed (Dask, Spark, Ibis)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bica.data.columns import (
    GROUPED_SENSORS,
    ID_NAME,
    NOT_OBSERVED,
    SAMPLE,
    STRANGE,
    TIME_NAME,
    Chunk,
    ColumnLook,
    Columns,
    cells_of,
    checked_weights,
    chunk_of_cells,
    floats_of,
    looks_of,
    rows_a_chunk,
    strange_value,
)
from bica.data.partitions import Partition
from bica.errors import DataError
from bica.text import brief


@dataclass(frozen=True, slots=True)
class FrameTable:
    """A data frame, read a column of a slice of rows at a time; null and NaN are missing."""

    frame: nw.DataFrame[Any]
    columns: Columns
    weights: NDArray[np.float64] | None = None
    in_order: bool = True  # False: a row of the frame stands for many of the data, so its number says nothing

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order; a few megabytes of cells beside the frame itself."""
        step = 4 * rows_a_chunk(len(self.sensors))  # taking a slice of a column costs more than one of an array
        for start in range(0, len(self.frame), step):
            part = self.frame[start : start + step]
            labels = tuple(texts_of(part[:, place]) for _, place in self.columns.carried)
            yield replace(chunk_of_cells(self._cells(part, start), self._weights(part, start)), labels=labels)

    def distinct(self) -> Iterator[Chunk]:
        """The rows are in memory already: no need to group them first."""
        return self.chunks()

    def partitions(self, large: int) -> Iterator[Partition] | None:
        """The rows column by column, if the frame has more than ``large`` cells."""
        return self._partitions() if len(self.frame) * len(self.sensors) > large else None

    def _partitions(self) -> Iterator[Partition]:
        step = max(64, 4 * rows_a_chunk(len(self.sensors)) // 64 * 64)
        for start in range(0, len(self.frame), step):
            part = self.frame[start : start + step]
            yield Partition.of_cells(self._cells(part, start).T, self._weights(part, start))

    def _cells(self, part: nw.DataFrame[Any], start: int) -> NDArray[np.uint8]:
        cells = np.empty((len(part), len(self.sensors)), np.uint8, order="F")
        thresholds = self.columns.thresholds
        for sensor, place in enumerate(self.columns.places):
            cells[:, sensor] = cells_of(values_of(part[:, place]), None if thresholds is None else thresholds[sensor])
        if cells.max(initial=0) == STRANGE:
            row, sensor = (int(i) for i in np.argwhere(cells == STRANGE)[0])
            value = part[:, self.columns.places[sensor]][row]
            raise strange_value(start + row if self.in_order else None, self.sensors[sensor], value)
        return cells

    def _weights(self, part: nw.DataFrame[Any], start: int) -> NDArray[np.float64] | None:
        if self.columns.weight is not None:
            return weights_in(part[:, self.columns.weight], start)
        return None if self.weights is None else self.weights[start : start + len(part)]


def values_of(column: nw.Series[Any]) -> NDArray[Any]:
    """The column as an array: numbers with NaN for null, or Python objects where there are others than numbers."""
    try:
        values = np.asarray(column.to_numpy())
    except ArithmeticError:  # older pandas compares decimals, of which one that signals cannot be compared
        values = np.array(column.to_list(), dtype=object)
    if values.dtype.kind not in "biuf" and (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        return np.asarray(column.cast(nw.Float64).to_numpy())  # nulls among booleans, or decimals
    return values


def weights_in(column: nw.Series[Any], first_row: int) -> NDArray[np.float64]:
    """The column as checked weights."""
    weights, alien = floats_of(values) if (values := values_of(column)).dtype == object else (values, np.False_)
    if alien.any() or weights.dtype.kind not in "biuf":
        raise DataError(f"the column of weights {column.name!r} holds {column.dtype}, not numbers")
    return checked_weights(weights.astype(np.float64), first_row)


@dataclass(frozen=True, slots=True)
class LazyTable:
    """A lazy frame; its engine groups equal rows, and only the distinct ones are collected."""

    frame: nw.LazyFrame[Any]
    columns: Columns

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in the engine's order; the whole frame is collected first."""
        return FrameTable(self.frame.collect(), self.columns).chunks()

    def distinct(self) -> Iterator[Chunk]:
        """The distinct rows of a narrow frame, grouped by its engine; every row of any other."""
        if self.columns.weight is not None or len(self.sensors) > GROUPED_SENSORS:
            return self.chunks()
        return self._groups().chunks()

    def _groups(self) -> FrameTable:
        kept, names = self.columns.places, [f"cell{i}" for i in range(len(self.sensors))]
        # Polars takes a name that begins with ^ and ends with $ for a pattern, so that none may enter an expression
        given = self.frame.collect_schema().names()
        others = {given[place]: f"other{place}" for place in self.columns.others}
        renamed = self.frame.rename({**{given[place]: name for place, name in zip(kept, names, strict=True)}, **others})
        rows = renamed.select(*(self._cell(i).alias(name) for i, name in enumerate(names)))
        groups = rows.group_by(names).agg(nw.len().alias("rows")).collect()
        columns = Columns(self.sensors, None, weight=len(names))
        return FrameTable(groups.select(*names, "rows"), columns, in_order=False)

    def _cell(self, sensor: int) -> nw.Expr:
        """The column, or whether it is above its threshold; null where that cannot be said."""
        column = nw.col(f"cell{sensor}")
        if self.columns.thresholds is None or np.isnan(self.columns.thresholds[sensor]):
            return column
        number = column.cast(nw.Float64)
        return nw.when(~number.is_nan()).then(number > self.columns.thresholds[sensor])


def texts_of(column: nw.Series[Any]) -> tuple[str, ...]:
    """The cells as text, moments in ISO 8601; nothing where a cell is missing."""
    return tuple(_text(value) for value in column.to_list())


def _text(value: Any) -> str:
    if type(value).__name__ in NOT_OBSERVED or (isinstance(value, float) and isnan(value)):
        return ""
    try:
        return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
    except ValueError:  # Python writes whole numbers of up to 4300 digits
        return brief(value)


def looks_of_frame(frame: nw.DataFrame[Any]) -> list[ColumnLook]:
    """What the columns of a frame are, by their types and, where these leave it open, by their first cells."""
    first = frame.head(SAMPLE)
    cells = [texts_of(first[:, i]) if _is_open(name, kind) else () for i, (name, kind) in enumerate(_types(frame))]
    return _with_times(looks_of(zip(frame.columns, cells, strict=True)), [kind for _, kind in _types(frame)])


def looks_of_schema(schema: nw.Schema) -> list[ColumnLook]:
    """What the columns of a lazy frame are, by their names and types."""
    return _with_times(looks_of([(name, ()) for name in schema.names()]), schema.dtypes())


def _types(frame: nw.DataFrame[Any]) -> list[tuple[str, nw.dtypes.DType]]:
    return list(zip(frame.columns, frame.schema.dtypes(), strict=True))


def _with_times(looks: list[ColumnLook], types: list[nw.dtypes.DType]) -> list[ColumnLook]:
    times = [kind.is_temporal() for kind in types]
    return [
        replace(look, role="time") if it and look.role == "sensor" else look
        for look, it in zip(looks, times, strict=True)
    ]


def _is_open(name: str, kind: nw.dtypes.DType) -> bool:
    named = kind.is_integer() and (ID_NAME.fullmatch(str(name).lower()) or TIME_NAME.fullmatch(str(name)))
    return bool(named) or kind in (nw.String, nw.Object, nw.Categorical, nw.Enum)


def check_lazy_types(schema: nw.Schema, columns: Columns) -> None:
    """Refuse columns that cannot hold 0 and 1 before the engine does any work."""
    pairs = list(schema.items())
    for place in columns.places:
        name, kind = pairs[place]
        if not (kind.is_numeric() or kind in (nw.Boolean, nw.Unknown)):
            raise DataError(f"column {brief(name)} holds {kind}, not 0 and 1; leave it out or turn it into numbers")
