"""What the columns of a table are: sensors or, told from their names and first cells, an index, ids, times or text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

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
