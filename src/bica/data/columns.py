"""What a reader yields: the columns of a table, and its rows of 0, 1 and missing cells, a few megabytes at a time.

Columns are sensors or weights, an index, ids, times or text, as the user says or as their names and first cells tell;
sensors may have thresholds.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from math import inf
from numbers import Real
from typing import Any, Literal, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from bica.errors import ColumnWarning, DataError, RowError, SettingError
from bica.kernels.bits import Words, packed
from bica.text import brief, folded

Role = Literal["sensor", "index", "id", "time", "measurement", "text"]
SAMPLE = 100  # rows that tell what a column is
INDEX_NAMES = ("", "Unnamed: 0", "__index_level_0__")  # in CSV, in a frame read from it, in Parquet
MISSING_WORDS = ("", "na", "nan", "none", "null", "nat")
CELL_WORDS = {"0", "1", "0.0", "1.0", "true", "false", *MISSING_WORDS}
ID_NAME = re.compile(r"(?:.*[ _.-])?(?:id|ids|uuid|guid|idx|index|key|nr|no|number|row)|.*[a-z]I[dD]")
TIME_NAME = re.compile(r"(?i)(?:.*[ _.-])?(?:time|times|timestamp|ts|date|datetime|day|when|start|slot)")
DATE = r"\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}([./-])\d{1,2}\1\d{2,4}"
CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?: ?[AaPp][Mm])?"
ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?"
MOMENT = re.compile(rf"(?:{DATE})(?:[T ]\s*{CLOCK}{ZONE})?|{CLOCK}")
LEAST_EPOCH = 1e8  # seconds: numbers below, as in 1973, are seldom times
FEWEST_IDS, FEWEST_COUNTED = 3, 5  # different cells that tell an id: by its name, or as 1, 2, 3, ...


@dataclass(frozen=True, slots=True)
class ColumnLook:
    """A column as its first rows show it."""

    name: str
    role: Role
    examples: tuple[str, ...]  # the first few different cells


def looks_of(columns: Mapping[str, Sequence[str]] | Iterable[tuple[str, Sequence[str]]]) -> list[ColumnLook]:
    """What each column is, from its name and its first cells as text; an index stands first or says so itself.

    >>> [look.role for look in looks_of({"": ["0", "1"], "patient": ["P7", "P9", "P12"], "cough": ["0", "1"]})]
    ['index', 'id', 'sensor']
    """
    pairs = list(columns.items() if isinstance(columns, Mapping) else columns)
    found = []
    for place, (name, cells) in enumerate(pairs):
        examples = tuple(dict.fromkeys(cell.strip() for cell in cells if cell.strip().lower() not in MISSING_WORDS))
        is_index = len(pairs) > 1 and (name == INDEX_NAMES[-1] or (place == 0 and name in INDEX_NAMES))
        role = "index" if is_index else role_of(name, [cell for cell in cells if cell.strip()])
        found.append(ColumnLook(name, role, examples[:FEWEST_IDS]))
    return found


def role_of(name: str, cells: Sequence[str]) -> Role:
    """What a column of this name and these first cells is.

    >>> role_of("day", ["2024-05-01", "2024-05-02"]), role_of("ward", ["north", "south", "north"])
    ('time', 'text')
    >>> role_of("user_id", ["17", "4", "29"]), role_of("dBm", ["-71", "-80.5", "-64"])
    ('id', 'measurement')
    """
    words = [cell.strip() for cell in cells if cell.strip().lower() not in MISSING_WORDS]
    if not words or all(word.lower() in CELL_WORDS for word in words):
        return "sensor"
    if all(MOMENT.fullmatch(word) for word in words):
        return "time"
    numbers = _numbers(words)
    distinct = len(set(words)) == len(words) >= FEWEST_IDS
    if numbers is None:
        return "id" if distinct and not any(word.lower() in CELL_WORDS for word in words) else "text"
    if TIME_NAME.fullmatch(name) and min(numbers) >= LEAST_EPOCH:
        return "time"
    whole = all(number == int(number) for number in numbers)
    steps = {after - before for before, after in pairwise(numbers)}
    counts_up = steps == {1} and len(numbers) >= FEWEST_COUNTED
    named = ID_NAME.fullmatch(name) or ID_NAME.fullmatch(name.lower())
    return "id" if whole and distinct and (named or counts_up) else "measurement"


def _numbers(words: Sequence[str]) -> list[float] | None:
    """The words as finite numbers; None unless all are."""
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    return numbers if all(abs(number) < float("inf") for number in numbers) else None


Binarize = float | Mapping[str, float] | None
WEIGHT_LIMIT = 2.0**53  # from here on a sum does not grow by one
LEAST_WEIGHT = 2.0**-53  # below this, adding to one changes nothing


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table: sensors, and others that hold weights, ids or times, or that are left out."""

    sensors: tuple[str, ...]
    thresholds: NDArray[np.float64] | None = None  # (n_sensors,), NaN where cells must be 0 or 1
    weight: int | None = None  # the number of the column of weights, if there is one
    others: tuple[int, ...] = ()  # columns that are neither sensors nor weights
    carried: tuple[tuple[str, int], ...] = ()  # of these the ids and times, which go beside the answers
    time: str | None = None  # the name of the carried column that holds the times
    places: list[int] = field(init=False, repr=False, compare=False)  # the number of each sensor's column

    def __post_init__(self) -> None:
        left = {self.weight, *self.others}
        object.__setattr__(self, "places", [i for i in range(self.n_columns) if i not in left])

    @property
    def n_columns(self) -> int:
        """How many columns the table has in all."""
        return len(self.sensors) + (self.weight is not None) + len(self.others)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the columns that go beside the answers."""
        return tuple(name for name, _ in self.carried)


class Reading(TypedDict, total=False):
    """How a table is to be read, beside names, weights and thresholds."""

    drop: Sequence[str]  # columns to leave out
    columns: Sequence[str] | None  # the only sensors
    id: str | None  # a column that says what a row is about; it goes beside the answers
    time: str | None  # the column that holds the times
    baskets: bool  # a line holds the items that are on, in any number
    long: Sequence[str] | None  # a line is one cell that is on: the columns that name its row and its sensor


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about a table beside the table itself."""

    sensors: Sequence[str] | None = None  # names in place of those that the table has
    sample_weight: Any = None  # one weight per row, or the name of the column that holds them
    binarize: Binarize = None  # above this a number counts as 1; for all columns, or for some by name
    reading: Reading = field(default_factory=Reading)

    def columns(self, names: Iterable[Any], unread: str | None = None, looks: Sequence[ColumnLook] = ()) -> Columns:
        """Settle the columns of a table whose header says ``names`` and whose first rows look like ``looks``.

        ``unread`` says what the table is where nobody knows yet how many rows it has: its weights must be a column.

        >>> Options(sample_weight="n", binarize={"b": 0.5}).columns(["a", "n", "b"])
        Columns(sensors=('a', 'b'), thresholds=array([nan, 0.5]), weight=1, others=(), carried=(), time=None)
        """
        if unread is not None and self.sample_weight is not None and not isinstance(self.sample_weight, str):
            raise DataError(f"the weights of {unread} must be one of its columns; pass its name as `sample_weight`")
        found = [str(name) for name in names]
        weight = _place_of_weights(found, self.sample_weight) if isinstance(self.sample_weight, str) else None
        carried, dropped = self._beside(found, weight, looks or looks_of([(name, ()) for name in found]))
        others = tuple(sorted({*(place for _, place in carried), *dropped} - {weight}))
        kept = [name for i, name in enumerate(found) if i != weight and i not in others]
        settled = checked_names(kept if self.sensors is None else list(self.sensors))
        if len(settled) != len(kept):
            raise DataError(f"{len(settled)} sensor names were given, but the table has {len(kept)} columns")
        time = next((name for name, _ in carried if name != self.reading.get("id")), None)
        return Columns(settled, thresholds_of(self.binarize, settled), weight, others, tuple(carried), time)

    def _beside(
        self, names: list[str], weight: int | None, looks: Sequence[ColumnLook]
    ) -> tuple[list[tuple[str, int]], list[int]]:
        """The columns that are carried along, and those that are left out."""
        reading = self.reading
        only = reading.get("columns")
        drop = [_place(names, name, "drop") for name in reading.get("drop") or ()]
        chosen = range(len(names)) if only is None else [_place(names, name, "columns") for name in only]
        named = (("id", reading.get("id")), ("time", reading.get("time")))
        carried = [(name, _place(names, name, setting)) for setting, name in named if name]
        taken = {weight, *drop, *(place for _, place in carried)}
        if only is None:
            return self._recognised(looks, taken, carried, drop)
        times = [(look.name, place) for place, look in enumerate(looks) if look.role == "time"]
        if not reading.get("time"):
            carried += [pair for pair in times if pair[1] not in taken and pair[1] not in chosen][:1]
        return carried, [place for place in range(len(names)) if place not in chosen or place in drop]

    def _recognised(
        self, looks: Sequence[ColumnLook], taken: set[int | None], carried: list[tuple[str, int]], drop: list[int]
    ) -> tuple[list[tuple[str, int]], list[int]]:
        """The same with an index and times that nobody named; an id that nobody named is refused."""
        explicit = self.binarize if isinstance(self.binarize, Mapping) else {}
        for place, look in enumerate(looks):
            if place in taken or look.name in explicit:
                continue
            if look.role == "index":
                drop = [*drop, place]
                warn_of_column(f"column {brief(look.name)} is left out: it is the row index that pandas writes")
            elif look.role == "time":
                carried = [*carried, (look.name, place)]
                warn_of_column(f"column {brief(look.name)} holds times: it goes beside the answers and is no sensor")
            elif look.role == "id":
                raise DataError(
                    f"column {brief(look.name)} looks like an id, not like on and off: it holds "
                    f"{', '.join(brief(cell) for cell in look.examples)}, ...; leave it out with `drop`, or keep it "
                    "beside the answers with `id`"
                )
        return carried, drop

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
        raise RowError(first_row + row, f" is {weight!r}; {why}", "the weight of ")
    return weights


def warn_of_column(sentence: str) -> None:
    """Tell the user that a column was taken for something else than a sensor."""
    warnings.warn(sentence, ColumnWarning, stacklevel=2)


def _place(names: list[str], name: str, setting: str) -> int:
    """The number of a column that a setting names."""
    if name not in names:
        near = get_close_matches(str(name), names, n=1)
        meant = f"; did you mean {brief(near[0])}?" if near else f" ({folded([brief(n) for n in names], 8)})"
        raise SettingError(f"`{setting}` names a column {brief(name)}, which the table does not have{meant}")
    return names.index(name)


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
CELLS_A_CHUNK = 1 << 22  # four megabytes, one byte each
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


SUMS = ", or, where the levels of N sources add up in them, try `bica unmix TABLE --sources N`"
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
