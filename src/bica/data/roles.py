"""What the columns of a table are: sensors or, told from their names and first cells, an index, ids, times or text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bica.errors import DataError
from bica.text import brief

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


CLOCK_PARTS = r"(\d{1,2}:\d{2})(:\d{2})?([.]\d{1,6})?( ?[AaPp][Mm])?"
DATE_FIRST = rf"^\s*(\d{{1,2}})([./-])(\d{{1,2}})[./-](\d{{4}}|\d{{2}})(?:[ T]{CLOCK_PARTS})?\s*$"
MONTHS = 12


def date_format(example: str, largest: tuple[int, int]) -> str | None:
    """How a date is written that does not begin with its year, as ``strptime`` names it; None if it is not so.

    ``largest`` are the largest first and second numbers of all dates: a number above 12 is no month. Dots mean that the
    day comes first. What is left open is refused.

    >>> date_format("01/05/2024 12:00", (31, 12)), date_format("1/5/24 9:30 PM", (12, 31))
    ('%d/%m/%Y %H:%M', '%m/%d/%y %I:%M %p')
    """
    found = re.match(DATE_FIRST, example)
    if found is None:
        return None
    _, sign, _, year, clock, seconds, fraction, half = found.groups()
    if sign != "." and max(largest) <= MONTHS:
        raise DataError(
            f"in {brief(example)} the day or the month may come first; say which with --time-format, as in "
            f"%d{sign}%m{sign}%Y or %m{sign}%d{sign}%Y"
        )
    day, month = ("%d", "%m") if sign == "." or largest[0] > MONTHS else ("%m", "%d")
    date = sign.join((day, month, "%Y" if len(year) > 2 else "%y"))
    if clock is None:
        return date
    hours = f"{'%I' if half else '%H'}:%M{':%S' if seconds else ''}{'.%f' if fraction else ''}"
    return f"{date}{'T' if 'T' in example else ' '}{hours}{'' if half is None else half[:-2] + '%p'}"


OFFSET = re.compile(r"\s*(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)$")


def as_dates(texts: Sequence[str]) -> NDArray[np.datetime64] | None:
    """The moments as the local clock showed them, offsets left out; None unless all can be read.

    >>> as_dates(["2024-05-01T12:00:00+02:00", "2024-05-01 13:00"])
    array(['2024-05-01T12:00:00.000000', '2024-05-01T13:00:00.000000'],
          dtype='datetime64[us]')
    """
    local = [OFFSET.sub("", text.strip()) if ":" in text else text.strip() for text in texts]
    parts = [found.groups() for text in local if (found := re.match(DATE_FIRST, text))]
    try:
        largest = max(int(part[0]) for part in parts), max(int(part[2]) for part in parts)
        known = date_format(local[0], largest)
        local = local if known is None else [datetime.strptime(text, known).isoformat() for text in local]
    except (ValueError, DataError):  # not one such date, other ones, or nobody knows which is the day
        pass
    try:
        dates = np.array([text.replace("/", "-") for text in local], "datetime64[us]")
    except ValueError:
        return None
    return None if np.isnat(dates).any() else dates
