"""Arrays in memory, or mapped from a file, as tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.data.cells import chunk_of_values
from bica.data.chunks import Chunk, rows_a_chunk
from bica.data.columns import Columns
from bica.errors import DataError


@dataclass(frozen=True, slots=True)
class ArrayTable:
    """A two-dimensional array; NaN, None and masked cells are missing.

    A few megabytes at a time are turned into cells, so that a mapped file may be larger than memory.
    """

    array: NDArray[Any]
    columns: Columns
    weights: NDArray[np.float64] | None = None

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order."""
        step = rows_a_chunk(len(self.sensors))
        for start in range(0, len(self.array), step):
            part = self.array[start : start + step]
            weights = None if self.weights is None else self.weights[start : start + step]
            yield chunk_of_values(part, self.sensors, self.columns.thresholds, start, weights)

    def distinct(self) -> Iterator[Chunk]:
        """The rows are in memory already: no need to group them first."""
        return self.chunks()


def two_dimensional(x: Any) -> NDArray[Any]:
    """Anything like an array with rows and columns, as that array."""
    array = _array_of_lists(x) if not hasattr(x, "__array__") else x if np.ma.isMaskedArray(x) else np.asarray(x)
    if array.ndim != 2:
        raise DataError(
            f"a table has rows and columns, but this array has {array.ndim} dimensions; "
            "pass one row for each sample and one column for each sensor"
        )
    if array.dtype.kind in "cV":
        raise DataError(f"an array of type {array.dtype} cannot be read as 0 and 1; pass booleans or numbers")
    return array


def _array_of_lists(x: Any) -> NDArray[Any]:
    if not isinstance(x, list | tuple):
        raise DataError(
            f"something of type {type(x).__name__} cannot be read as a table; pass an array, a data frame or a path"
        )
    try:
        array = np.asarray(x)
    except ValueError:
        raise DataError(_uneven(x)) from None
    # NumPy turns numbers among text into text, which would hide the cell at fault
    return np.asarray(x, dtype=object) if array.dtype.kind in "US" else array


def _uneven(rows: Any) -> str:
    lengths = [len(row) if hasattr(row, "__len__") else None for row in rows]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), 0)
    if None in (lengths[0], lengths[odd]) or not odd:
        return "the list cannot be read as a table; pass a list of rows, each a list of cells"
    return f"row {odd} has {lengths[odd]} cells, but row 0 has {lengths[0]}; every row needs the same number"
