"""CSV in its dialects: the delimiter, the header and the cells are told from the text itself."""

import csv
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import numbered, remedy_for
from bica.errors import DataError
from bica.text import brief

DELIMITERS = ",;\t|"
WORDS = {"": nan, "na": nan, "nan": nan, "null": nan, "true": 1.0, "false": 0.0}
REMEMBERED = 1 << 17  # cells
LONGEST_REMEMBERED = 32  # characters


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """How a CSV file is written."""

    names: tuple[str, ...]
    delimiter: str
    n_header_lines: int  # 0 where the first line is data already
    header_bytes: int  # of its longest line


def layout_of(start: list[str], path: Path) -> CsvLayout:
    """Read the layout off the first two records in these lines, with which the file at ``path`` starts.

    The delimiter is the one that splits both records alike, and the second, which holds no names, most often.
    A first record of nothing but cells of data (0, 1, missing, or numbers that are not whole) is no header.
    """
    start = [line + "\n" for line in start]
    if not any(line.strip() for line in start):
        raise DataError(f"{path} is empty: it has no columns and no rows")
    layouts = [(delimiter, *_records(start, delimiter)) for delimiter in DELIMITERS]
    readable = [layout for layout in layouts if layout[1]]
    if not readable:
        long = f"is longer than {csv.field_size_limit()} characters, or "
        raise DataError(
            f"{path} is not CSV: a quoted name in its first line {long if any(map(_is_long, start)) else ''}has no end"
        )
    delimiter, records, n_lines = max(readable, key=lambda layout: _fit(layout[1]))
    header_bytes = max(len(line.encode()) for line in start[:n_lines])
    if _is_data(records[0]):
        return CsvLayout(numbered(len(records[0])), delimiter, 0, header_bytes)
    return CsvLayout(tuple(records[0]), delimiter, n_lines, header_bytes)


def _is_long(line: str) -> bool:
    return len(line) > csv.field_size_limit()


def _records(start: list[str], delimiter: str) -> tuple[list[list[str]], int]:
    """The first two records, and how many lines the first one and what stands before it take."""
    reader = csv.reader(start, delimiter=delimiter, strict=True)
    try:
        first = next(record for record in reader if record)
    except (csv.Error, StopIteration):
        return [], 0
    n_lines, second = reader.line_num, None
    with suppress(csv.Error):  # which is reported with the number of the row, once that is read
        second = next((record for record in reader if record), None)
    return [first] if second is None else [first, second], n_lines


def _fit(records: list[list[str]]) -> tuple[bool, bool, int]:
    first, last = len(records[0]), len(records[-1])
    return max(first, last) > 1, first == last, last


def _is_data(record: list[str]) -> bool:
    try:
        values = [number_in(cell) for cell in record]
    except ValueError:
        return False
    return all(isnan(v) or v in (0, 1) for v in values) or not all(isnan(v) or v.is_integer() for v in values)


def number_in(text: str) -> float:
    """The number that a cell holds, NaN for a missing one; ``ValueError`` if it is neither.

    >>> [number_in(text) for text in ("1", "0.0", " TRUE ", "NA", "")]
    [1.0, 0.0, 1.0, nan, nan]
    """
    word = text.strip().lower()
    if word in WORDS:
        return WORDS[word]
    if "_" in word:
        raise ValueError(text)
    return float(word)


class _Remembered(dict[str, float]):
    """Cells read before: there are few different ones, and a look is faster than a reading."""

    def __missing__(self, text: str) -> float:
        number = number_in(text)
        if len(text) <= LONGEST_REMEMBERED:
            if len(self) >= REMEMBERED:
                self.clear()
            self[text] = number
        return number


@dataclass(frozen=True, slots=True)
class CsvParser:
    """Reads the lines of data of a CSV file."""

    names: tuple[str, ...]
    delimiter: str
    remembered: _Remembered = field(default_factory=_Remembered, repr=False, compare=False)

    def values(self, lines: list[str], first_row: int) -> NDArray[Any]:
        """The numbers in the lines, one column for each of the file's; NaN where a cell is missing."""
        digits = self._single_digits(lines)
        if digits is not None:
            return digits
        rows = [self._cells(line, first_row + i) for i, line in enumerate(lines)]
        try:
            flat = np.fromiter(map(self.remembered.__getitem__, chain.from_iterable(rows)), np.float64)
        except ValueError:
            raise self._not_a_number(rows, first_row) from None
        return flat.reshape(len(lines), len(self.names))

    def _single_digits(self, lines: list[str]) -> NDArray[np.uint8] | None:
        """The cells at once, where every one is a single 0 or 1 and nothing is quoted."""
        width = 2 * len(self.names)
        if any(len(line) != width - 1 for line in lines):
            return None
        letters = np.frombuffer((self.delimiter.join(lines) + self.delimiter).encode(), np.uint8)
        if letters.size != width * len(lines):
            return None  # some letters take several bytes
        letters = letters.reshape(-1, width)
        cells = letters[:, ::2] ^ np.uint8(ord("0"))
        if (letters[:, 1::2] != ord(self.delimiter)).any() or (cells > 1).any():
            return None
        return cells

    def _cells(self, line: str, row: int) -> Sequence[str]:
        if '"' not in line:
            cells = line.split(self.delimiter)
        else:
            try:
                cells = next(csv.reader([line], delimiter=self.delimiter, strict=True))
            except csv.Error:
                long = f"is longer than {csv.field_size_limit()} characters, or " if _is_long(line) else ""
                raise DataError(f"row {row} has a quoted cell that {long}does not end in its line") from None
        if len(cells) != len(self.names):
            raise DataError(f"row {row} has {len(cells)} cells, but the table has {len(self.names)} columns")
        return cells

    def _not_a_number(self, rows: list[Sequence[str]], first_row: int) -> DataError:
        for i, cells in enumerate(rows):
            for name, cell in zip(self.names, cells, strict=True):
                try:
                    number_in(cell)
                except ValueError:
                    remedy = remedy_for(name, "leave the column out or turn it into 0 and 1")
                    return DataError(
                        f"row {first_row + i}, column {brief(name)} holds {brief(cell)}, which is no number; {remedy}"
                    )
        raise AssertionError("every cell is a number")
