"""What is settled before a row is read: the columns' names, their thresholds, where the weights come from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.errors import DataError, SettingError
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
    sample_weight: Any = None  # one weight a row, or the name of the column that holds them
    binarize: Binarize = None  # above this a number counts as 1; for all columns, or for some by name

    def columns(self, names: Iterable[Any]) -> Columns:
        """Settle the columns of a table whose header says ``names``.

        >>> Options(sample_weight="n", binarize={"b": 0.5}).columns(["a", "n", "b"])
        Columns(sensors=('a', 'b'), thresholds=array([nan, 0.5]), weight=1)
        """
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

    def refuse_weights(self, what: str) -> None:
        """Only the name of a column will do where the number of rows is not known yet."""
        if self.sample_weight is not None and not isinstance(self.sample_weight, str):
            raise DataError(f"the weights of {what} must be one of its columns; pass its name as `sample_weight`")

    def refuse_named_weights(self, what: str) -> None:
        """Only weights themselves will do where columns are not kept apart."""
        if isinstance(self.sample_weight, str):
            raise DataError(f"{what} has no column of weights {brief(self.sample_weight)}; pass the weights themselves")


def numbered(n_columns: int) -> tuple[str, ...]:
    """The names of columns that came without any: x0, x1, ..."""
    return tuple(f"x{i}" for i in range(n_columns))


def are_names(columns: tuple[str, ...]) -> bool:
    """Whether these tell columns apart: mere numbers, as arrays and frames without names have them, do not.

    >>> are_names(("door", "yard")), are_names(("x0", "x1")), are_names(("0", "1"))
    (True, False, False)
    """
    return columns not in (numbered(len(columns)), tuple(map(str, range(len(columns)))))


def places_of(sensors: tuple[str, ...], columns: tuple[str, ...]) -> NDArray[np.int64]:
    """The column of each sensor of a model: by name, or in order where one of the two has no names.

    >>> places_of(("door", "yard"), ("yard", "door")), places_of(("door", "yard"), ("x0", "x1"))
    (array([1, 0]), array([0, 1]))
    """
    place = {name: i for i, name in enumerate(columns)}
    nameless = not are_names(columns)
    if place.keys() != set(sensors) and (nameless or not are_names(sensors)) and len(columns) == len(sensors):
        return np.arange(len(sensors))
    if nameless and len(columns) != len(sensors):
        raise DataError(f"the model has {len(sensors)} sensors, but the table has {len(columns)} columns")
    for name in sensors:
        if name not in place:
            raise DataError(f"the table has no column {name!r}, which the model watches; give a table with all sensors")
    for name in columns:
        if name not in sensors:
            raise DataError(f"the table has a column {name!r} that the model does not know; leave it out")
    return np.array([place[name] for name in sensors], dtype=np.int64)


def refuse_other_columns(columns: tuple[str, ...], before: tuple[str, ...]) -> None:
    """Refuse a table whose columns are not those of an earlier one, in their order; numbers match any name."""
    if len(columns) != len(before):
        raise DataError(f"X has {len(columns)} features, but BICA is expecting {len(before)} as input")
    if not (are_names(columns) and are_names(before)):
        return
    for place, (name, known) in enumerate(zip(columns, before, strict=True)):
        if name != known:
            raise DataError(
                f"column {place} is {name!r}, but it was {known!r} in fit; give the same columns in the same order"
            )


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
    """One threshold a sensor, NaN where the cells must be 0 or 1; None if that holds for all."""
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
    """One checked weight a row from anything like an array; None stays None."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("`sample_weight` holds something that is not a number, or far too large a one") from None
    if weights.shape != (n_rows,):
        given = f"{len(weights)} weights" if weights.ndim == 1 else f"an array of shape {weights.shape}"
        raise DataError(f"`sample_weight` needs one weight a row, {n_rows} in all, but {given} came")
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


def check_total_weight(total: float) -> None:
    """Refuse weights that add up to more than can be counted one by one."""
    if not total < WEIGHT_LIMIT:
        raise DataError(
            f"the weights add up to {total:.6g}, beyond what can be counted (2^53); divide all by one number"
        )


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
