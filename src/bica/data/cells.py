"""From numbers to cells: 0, 1 or missing, and one sentence for anything else."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import MISSING, Chunk, chunk_of_cells
from bica.errors import DataError

STRANGE = 3  # neither 0 nor 1 nor missing
NOT_SEEN = ("NoneType", "NAType", "NaTType", "MaskedConstant")  # by name, since pandas may not be installed


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
    where = f"column {sensor!r}" if row is None else f"row {row}, column {sensor!r}"
    return DataError(
        f"{where} holds {shown!r}, but only 0 and 1 can be read; turn measurements into 0/1 with `binarize`"
    )


def _cells_of_objects(values: NDArray[Any], thresholds: NDArray[np.float64] | float | None) -> NDArray[np.uint8]:
    numbers, alien = floats_of(values)
    cells = cells_of(numbers, thresholds)
    cells[alien] = STRANGE
    return cells


def floats_of(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Python objects as floats, NaN for those that say "not seen", and which of them are no numbers at all."""
    numbers = [_number(value) for value in values.astype(object).ravel()]
    floats = np.array([np.nan if number is None else number for number in numbers], np.float64)
    return floats.reshape(values.shape), np.array([n is None for n in numbers], bool).reshape(values.shape)


def _number(value: object) -> float | None:
    if type(value).__name__ in NOT_SEEN:
        return float("nan")
    if isinstance(value, Real | np.bool_) or type(value).__name__ == "Decimal":
        return float(value)  # type: ignore[arg-type]
    return None
