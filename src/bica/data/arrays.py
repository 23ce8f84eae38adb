"""NumPy arrays as tables."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import MISSING, Chunk, chunk_of_cells, packed, rows_a_chunk
from bica.errors import DataError


@dataclass(frozen=True, slots=True)
class ArrayTable:
    """A two-dimensional array; NaN and masked cells are missing."""

    array: NDArray[np.generic]
    sensors: tuple[str, ...]
    weights: NDArray[np.float64] | None = None
    thresholds: NDArray[np.float64] | None = None  # (n_sensors,), NaN where cells must be 0 or 1

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order."""
        step = rows_a_chunk(len(self.sensors))
        for start in range(0, len(self.array), step):
            part = self.array[start : start + step]
            weights = None if self.weights is None else self.weights[start : start + step]
            if part.dtype == bool and self.thresholds is None and not np.ma.isMaskedArray(part):
                yield Chunk(packed(part.view(np.uint8)), None, weights)
            else:
                yield chunk_of_cells(self._cells(part, start), weights)

    def distinct(self) -> Iterator[Chunk]:
        """The rows are in memory already: no need to group them first."""
        return self.chunks()

    def _cells(self, part: NDArray[np.generic], start: int) -> NDArray[np.uint8]:
        return cells_of(part, self.sensors, start, self.thresholds)


def cells_of(
    part: NDArray[np.generic], sensors: tuple[str, ...], first_row: int, thresholds: NDArray[np.float64] | None
) -> NDArray[np.uint8]:
    """Cells 0, 1 or ``MISSING`` from numbers; anything else is refused by row, column and value."""
    missing = np.ma.getmaskarray(part) | (np.isnan(np.ma.getdata(part)) if part.dtype.kind == "f" else False)
    values = np.ma.getdata(part)
    if thresholds is None:
        strange = ~missing & (values != 0) & (values != 1)
        on = values == 1
    else:
        plain = np.isnan(thresholds)
        strange = ~missing & plain & (values != 0) & (values != 1)
        on = np.where(plain, values == 1, values > thresholds)
    if strange.any():
        row, column = np.argwhere(strange)[0]
        raise strange_value(first_row + row, sensors[column], values[row, column])
    return np.where(missing, np.uint8(MISSING), on.astype(np.uint8))


def strange_value(row: int | None, sensor: str, value: object) -> DataError:
    """The error for a cell that is neither 0 nor 1."""
    shown = value.item() if isinstance(value, np.generic) else value
    where = f"column {sensor!r}" if row is None else f"row {row}, column {sensor!r}"
    return DataError(
        f"{where} holds {shown!r}, but only 0 and 1 can be read; turn measurements into 0/1 with `binarize`"
    )
