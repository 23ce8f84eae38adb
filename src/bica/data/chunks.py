"""What a reader is told and what it yields: names, thresholds and weights; rows of 0, 1 and missing cells."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.errors import DataError, SettingError
from bica.kernels.bits import Words, packed
from bica.text import brief

Binarize = float | Mapping[str, float] | None
WEIGHT_LIMIT = 2.0**53  # from here on a sum does not grow by one
LEAST_WEIGHT = 2.0**-53  # below this, adding to one changes nothing


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table; one of them may hold weights instead of observations."""

    sensors: tuple[str, ...]
    thresholds: NDArray[np.float64] | None = None  # (n_sensors,), NaN where cells must be 0 or 1
    weight: int | None = None  # the number of the column of weights, if there is one

    @property
    def n_columns(self) -> int:
        """How many columns the table has, with that of the weights."""
        return len(self.sensors) + (self.weight is not None)

    @property
    def places(self) -> list[int]:
        """The number of each sensor's column in the table."""
        return [i for i in range(self.n_columns) if i != self.weight]


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about a table beside the table itself."""

    sensors: Sequence[str] | None = None  # names in place of those that the table has
    sample_weight: Any = None  # one weight per row, or the name of the column that holds them
    binarize: Binarize = None  # above this a number counts as 1; for all columns, or for some by name

    def columns(self, names: Iterable[Any], unread: str | None = None) -> Columns:
        """Settle the columns of a table whose header says ``names``.

        ``unread`` says what the table is where nobody knows yet how many rows it has: its weights must be a column.

        >>> Options(sample_weight="n", binarize={"b": 0.5}).columns(["a", "n", "b"])
        Columns(sensors=('a', 'b'), thresholds=array([nan, 0.5]), weight=1)
        """
        if unread is not None and self.sample_weight is not None and not isinstance(self.sample_weight, str):
            raise DataError(f"the weights of {unread} must be one of its columns; pass its name as `sample_weight`")
        found = [str(name) for name in names]
        place = _place_of_weights(found, self.sample_weight) if isinstance(self.sample_weight, str) else None
        kept = [name for i, name in enumerate(found) if i != place]
        settled = checked_names(kept if self.sensors is None else list(self.sensors))
        if len(settled) != len(kept):
            raise DataError(f"{len(settled)} sensor names were given, but the table has {len(kept)} columns")
        return Columns(settled, thresholds_of(self.binarize, settled), place)

    def weights(self, n_rows: int) -> NDArray[np.float64] | None:
        """The weights of the rows, unless they are in a column of the table."""
        return None if isinstance(self.sample_weight, str) else weights_of(self.sample_weight, n_rows)

    def refuse_named_weights(self, what: str) -> None:
        """Only weights themselves will do where columns are not kept apart."""
        if isinstance(self.sample_weight, str):
            raise DataError(f"{what} has no column of weights {brief(self.sample_weight)}; pass the weights themselves")


def numbered(n_columns: int) -> tuple[str, ...]:
    """The names of columns that came without any: x0, x1, ..."""
    return tuple(f"x{i}" for i in range(n_columns))


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names, provided that there are any and that no two are equal."""
    if not names:
        raise DataError("the table has no columns, so there is nothing to learn from")
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise DataError(f"sensor names are text, but the name of column {i} is {brief(name)}")
        if first.setdefault(name, i) != i:
            raise DataError(
                f"columns {first[name]} and {i} are both named {brief(name)}; give each column its own name"
            )
    return tuple(str(name) for name in names)  # NumPy has a kind of text of its own


def thresholds_of(binarize: Binarize, sensors: tuple[str, ...]) -> NDArray[np.float64] | None:
    """One threshold per sensor, NaN where the cells must be 0 or 1; None if that holds for all."""
    if binarize is None:
        return None
    if not isinstance(binarize, Mapping):
        return np.full(len(sensors), _threshold(binarize))
    thresholds = np.full(len(sensors), np.nan)
    places = {name: i for i, name in enumerate(sensors)}
    for name, value in binarize.items():
        if str(name) not in places:
            raise SettingError(f"`binarize` names a column {brief(str(name))}, which the table does not have")
        thresholds[places[str(name)]] = _threshold(value)
    return thresholds


def weights_of(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """One checked weight per row from anything like an array; None stays None."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("`sample_weight` holds something that is not a number, or far too large a one") from None
    if weights.shape != (n_rows,):
        given = f"{len(weights)} weights" if weights.ndim == 1 else f"an array of shape {weights.shape}"
        raise DataError(f"`sample_weight` needs one weight per row, {n_rows} in all, but {given} came")
    return checked_weights(weights, 0)


def checked_weights(weights: NDArray[np.float64], first_row: int) -> NDArray[np.float64]:
    """The weights, provided that each is zero or a number that sums can hold exactly."""
    strange = np.flatnonzero(~((weights == 0) | ((weights >= LEAST_WEIGHT) & (weights < WEIGHT_LIMIT))))
    if strange.size:
        row = int(strange[0])
        weight = float(weights[row])
        why = "weights are finite and not negative"
        if 0 < weight < np.inf:
            why = "weights that can be added exactly are 0 or from 2^-53 to 2^53; multiply them all by one number"
        raise DataError(f"the weight of row {first_row + row} is {weight!r}; {why}")
    return weights


def _place_of_weights(names: list[str], weight: str) -> int:
    if names.count(weight) != 1:
        raise DataError(
            f"`sample_weight` names a column {brief(weight)}, of which the table has {names.count(weight)}; "
            "it must have exactly one"
        )
    return names.index(weight)


def _threshold(value: object) -> float:
    try:
        threshold = np.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:
        threshold = np.nan
    if not np.isfinite(threshold):
        raise SettingError(f"`binarize` takes a number, or a mapping from columns to numbers, not {brief(value)}")
    return threshold


MISSING = 2  # the cell was not observed; the other two cell values are 0 and 1
CELLS_A_CHUNK = 1 << 22
GROUPED_SENSORS = 64  # wider rows seldom repeat, so that grouping them in an engine first only costs time


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a table; bit i of a row's words is sensor i, and an unobserved cell has bit 0."""

    words: Words  # (n_rows, n_words)
    observed: Words | None = None  # same shape, bit set where the cell was observed; None: all were
    weights: NDArray[np.float64] | None = None  # (n_rows,); None: every row counts once


class Table(Protocol):
    """A source of rows that may be larger than memory."""

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order."""

    def distinct(self) -> Iterator[Chunk]:
        """The same rows for counting only: in any order, equal ones perhaps already grouped."""


def chunk_of_cells(cells: NDArray[np.uint8], weights: NDArray[np.float64] | None = None) -> Chunk:
    """Pack rows whose cells are 0, 1 or ``MISSING``."""
    if cells.max(initial=0) < MISSING:
        return Chunk(packed(cells), None, weights)
    return Chunk(packed(cells == 1), packed(cells != MISSING), weights)


def rows_a_chunk(n_sensors: int) -> int:
    """How many rows keep a chunk of cells at a few megabytes."""
    return max(1, CELLS_A_CHUNK // max(1, n_sensors))


STRANGE = 3  # neither 0 nor 1 nor missing
INDEX_NAMES = ("", "Unnamed: 0", "__index_level_0__")  # in CSV, in a frame read from it, in Parquet
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
    where = f"column {brief(sensor)}" if row is None else f"row {row}, column {brief(sensor)}"
    remedy = remedy_for(sensor, "turn measurements into 0/1 with `binarize`")
    return DataError(f"{where} holds {brief(shown)}, but only 0 and 1 can be read; {remedy}")


def remedy_for(sensor: str, usual: str) -> str:
    """What to do about a column that cannot be read: ``usual``, unless pandas wrote it without being asked to."""
    if sensor not in INDEX_NAMES:
        return usual
    return "this looks like the row index that pandas writes; leave the column out, as `index=False` does"


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
