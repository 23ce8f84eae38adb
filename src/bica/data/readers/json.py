"""JSON lines: one object per line, its keys the columns; a key that a line lacks is a missing cell."""

# ruff: noqa: S608 - only our own names and quoted paths enter a query

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import strange_value
from bica.data.columns import SAMPLE, ColumnLook, looks_of
from bica.data.readers.engine import TextLines
from bica.errors import DataError, RowError

LINES_AT_HAND = 2048  # in the engine
BYTES_AT_HAND = 1 << 28
BYTES_PER_PACKED_BYTE = 200  # that may be at hand as well; tables seldom shrink as much


def keys_of(lines: TextLines) -> tuple[str, ...]:
    """All keys of the file, in the order in which they first appear; this takes a pass over the file."""
    _check_lengths(lines)
    numbered = f"SELECT row_number() OVER () AS i, line FROM {lines.source} WHERE regexp_matches(line, '[^ ]')"
    sql = f"SELECT json_keys(line) AS keys FROM ({numbered}) GROUP BY keys ORDER BY min(i)"
    try:
        lists = [keys for rows in lines.query(sql) for (keys,) in rows]
    except DataError:
        _find_bad_line(lines)
        raise
    return tuple(dict.fromkeys(key for keys in lists for key in keys))


def _check_lengths(lines: TextLines) -> None:
    """Refuse a compressed file of huge lines: the engine unpacks thousands of lines before it looks at the first."""
    if lines.compression == "none":
        return
    [[(longest, n_lines)]] = list(lines.query(f"SELECT coalesce(max(strlen(line)), 0), count(*) FROM {lines.source}"))
    limit = BYTES_AT_HAND + BYTES_PER_PACKED_BYTE * lines.path.stat().st_size
    if longest * min(n_lines, LINES_AT_HAND) > limit:
        raise DataError(f"{lines.path} cannot be read: lines of {longest} bytes are far too long for a row")


def _find_bad_line(lines: TextLines) -> None:
    for number, line in enumerate(lines.all_lines(), 1):
        try:
            _pairs(line or "{}", 0)
        except RowError as error:
            raise DataError(error.at(f"line {number}")) from None


def _pairs(line: str, row: int) -> list[tuple[str, Any]]:
    try:
        found = json.loads(line, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        raise RowError(row, " is not JSON; every line must hold one whole object") from None
    if not isinstance(found, _Pairs):
        raise RowError(row, ' is no JSON object; write each row as {"sensor": 0, …} on a line of its own')
    return found


class _Pairs(list[tuple[str, Any]]):
    """The members of an object as they stand in the text, since equal keys would hide each other in a mapping."""


@dataclass(frozen=True, slots=True)
class JsonParser:
    """Reads the lines of a file of JSON objects."""

    places: dict[str, int]  # the column of each key

    def values(self, lines: list[str], first_row: int, places: Sequence[int]) -> NDArray[np.float64]:
        """The numbers under these keys; NaN where a cell is missing."""
        table = np.full((len(lines), len(places)), nan)
        wanted = {place: i for i, place in enumerate(places)}
        for i, line in enumerate(lines):
            pairs = _pairs(line, first_row + i)
            found = {self.places.get(key, -1): (key, value) for key, value in pairs}
            if len(found) < len(pairs) or -1 in found:
                raise RowError(first_row + i, " holds a key twice, or one that was not there a moment ago")
            cells = {wanted[p]: self._number(*pair, first_row + i) for p, pair in found.items() if p in wanted}
            table[i, list(cells)] = list(cells.values())
        return table

    def texts(self, lines: list[str], places: Sequence[int]) -> list[tuple[str, ...]]:
        """The values under each of these keys as text, empty where there is none."""
        rows = [{self.places[key]: text_of(value) for key, value in _pairs(line, 0)} for line in lines]
        return [tuple(row.get(place, "") for row in rows) for place in places]

    def _number(self, key: str, value: Any, row: int) -> float:
        if value is None:
            return nan
        if not isinstance(value, bool | int | float) or abs(value) > 1e300:
            raise strange_value(row, key, value)
        return float(value)


def text_of(value: Any) -> str:
    """A value of JSON as text; nothing for null."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def looks_of_keys(lines: TextLines, keys: Sequence[str]) -> list[ColumnLook]:
    """What the first objects show of each key."""
    first: list[dict[str, str]] = []
    for line in islice((line for line in lines.first_lines() if line.strip()), SAMPLE):
        try:
            first.append({key: text_of(value) for key, value in _pairs(line, 0)})
        except RowError:
            break  # which is reported with the number of its line, once it is read
    return looks_of([(key, [row.get(key, "") for row in first]) for key in keys])
