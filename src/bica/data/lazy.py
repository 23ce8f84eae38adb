"""Frames that an engine has yet to compute (Polars, Dask, Spark, Ibis through narwhals) as tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from bica.data.chunks import GROUPED_SENSORS, Chunk
from bica.data.columns import Columns
from bica.data.frames import FrameTable
from bica.errors import DataError


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
        names = [f"cell{i}" for i in range(len(self.sensors))]
        rows = self.frame.select(*(self._cell(i).alias(name) for i, name in enumerate(names)))
        groups = rows.group_by(names).agg(nw.len().alias("rows")).collect()
        columns = Columns(self.sensors, None, weight=len(names))
        return FrameTable(groups.select(*names, "rows"), columns, in_order=False)

    def _cell(self, sensor: int) -> nw.Expr:
        """The column, or whether it is above its threshold; null where that cannot be said."""
        column = nw.nth(self.columns.places[sensor])
        if self.columns.thresholds is None or np.isnan(self.columns.thresholds[sensor]):
            return column
        number = column.cast(nw.Float64)
        return nw.when(~number.is_nan()).then(number > self.columns.thresholds[sensor])


def check_lazy_types(schema: nw.Schema) -> None:
    """Refuse columns that cannot hold 0 and 1 before the engine does any work."""
    for name, kind in schema.items():
        if not (kind.is_numeric() or kind in (nw.Boolean, nw.Unknown)):
            raise DataError(f"column {name!r} holds {kind}, not 0 and 1; leave it out or turn it into numbers")
