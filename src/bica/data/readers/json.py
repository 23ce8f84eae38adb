"""JSON lines: one object per line, its keys the columns; a key that a line lacks is a missing cell."""

# ruff: noqa: S608 - only our own names and quoted paths enter a query

import json
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import strange_value
from bica.data.readers.engine import TextLines
from bica.errors import DataError

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
    rows = (line for line in lines.all_lines() if line.strip(" "))
    for row, line in enumerate(rows):
        _pairs(line, row)


def _pairs(line: str, row: int) -> list[tuple[str, Any]]:
    try:
        found = json.loads(line, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        raise DataError(f"row {row} is not JSON; every line must hold one whole object") from None
    if not isinstance(found, _Pairs):
        raise DataError(f'row {row} is no JSON object; write each row as {{"sensor": 0, …}} on a line of its own')
    return found


class _Pairs(list[tuple[str, Any]]):
    """The members of an object as they stand in the text, since equal keys would hide each other in a mapping."""


@dataclass(frozen=True, slots=True)
class JsonParser:
    """Reads the lines of a file of JSON objects."""

    places: dict[str, int]  # the column of each key

    def values(self, lines: list[str], first_row: int) -> NDArray[np.float64]:
        """The numbers in the lines, one column for each key; NaN where a cell is missing."""
        table = np.full((len(lines), len(self.places)), nan)
        for i, line in enumerate(lines):
            pairs = _pairs(line, first_row + i)
            cells = {self.places.get(key, -1): self._number(key, value, first_row + i) for key, value in pairs}
            if len(cells) < len(pairs) or -1 in cells:
                raise DataError(f"row {first_row + i} holds a key twice, or one that was not there a moment ago")
            table[i, list(cells)] = list(cells.values())
        return table

    def _number(self, key: str, value: Any, row: int) -> float:
        if value is None:
            return nan
        if not isinstance(value, bool | int | float) or abs(value) > 1e300:
            raise strange_value(row, key, value)
        return float(value)
