"""Tables as text: CSV in its dialects, and JSON lines.

The delimiter, the header and the cells of CSV are told from the text itself. A JSON object per line has the columns as
its keys; a key that a line lacks is a missing cell.
"""

# ruff: noqa: S608 - only our own names and quoted paths enter a query

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from math import isnan, nan
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import (
    AS_TEXT,
    GROUPED_SENSORS,
    SAMPLE,
    Chunk,
    ColumnLook,
    Columns,
    Options,
    checked_weights,
    chunk_of_values,
    looks_of,
    numbered,
    strange_value,
)
from bica.data.readers.engine import LONGEST_LINE, NOT_EMPTY, TextLines
from bica.errors import DataError, RowError
from bica.text import brief, counted

DELIMITERS = ",;\t|"
WORDS = {"": nan, "na": nan, "nan": nan, "null": nan, "true": 1.0, "false": 0.0}
REMEMBERED = 1 << 17  # cells
LONGEST_REMEMBERED = 32  # characters


LEAST_LIMIT = 1 << 16  # bytes that a line of any table may take
BYTES_PER_CELL = 1000  # far more than a number takes


def longest_line(n_columns: int, n_bytes: int = 0) -> int:
    """How many bytes a line of so many cells may take, and of so many bytes beside them."""
    return min(LONGEST_LINE, max(LEAST_LIMIT, BYTES_PER_CELL * n_columns + n_bytes))


GROUPED_ROWS = 1 << 16  # distinct lines at a time, of few cells each


class Parser(Protocol):
    """What a line means."""

    def values(self, lines: list[str], first_row: int, places: Sequence[int]) -> NDArray[Any]:
        """The numbers in these columns of the lines; NaN where a cell is missing."""

    def texts(self, lines: list[str], places: Sequence[int]) -> list[tuple[str, ...]]:
        """The cells of each of these columns as they are written; the lines were read before."""


@dataclass(frozen=True, slots=True)
class LinesTable:
    """Rows of text; empty lines are no rows."""

    lines: TextLines
    parser: Parser
    columns: Columns

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order, a few megabytes at a time."""
        sql, first_row = f"SELECT line FROM {self.lines.source} WHERE {NOT_EMPTY}", 0
        for rows in self.lines.query(sql, self.lines.at_a_time):
            lines = [line for (line,) in rows]
            try:
                yield self.parsed(lines, first_row)
            except RowError as error:
                raise DataError(error.at(f"line {line_of(self.lines, error.row)}")) from None
            first_row += len(rows)

    def distinct(self) -> Iterator[Chunk]:
        """The distinct lines of a narrow table of 0 and 1, grouped by the engine; every row of any other."""
        narrow = len(self.sensors) <= GROUPED_SENSORS and self.columns.thresholds is None
        plain = self.columns.weight is None and not self.columns.others  # ids and times make every line distinct
        return self._grouped() if narrow and plain else self.chunks()

    def _grouped(self) -> Iterator[Chunk]:
        sql = f"SELECT line, count(*) FROM {self.lines.source} WHERE {NOT_EMPTY} GROUP BY line"
        for rows in self.lines.query(sql, GROUPED_ROWS):
            lines, counts = [line for line, _ in rows], [count for _, count in rows]
            try:
                chunk = self._chunk(lines, 0)
            except DataError:
                for _ in self.chunks():
                    pass  # meets the same trouble, and knows the number of the line
                raise
            yield replace(chunk, weights=np.array(counts, np.float64))

    def parsed(self, lines: list[str], first_row: int) -> Chunk:
        """These lines as rows, with their labels; a ``RowError`` says which row is wrong."""
        return replace(self._chunk(lines, first_row), labels=self._labels(lines))

    def _chunk(self, lines: list[str], first_row: int) -> Chunk:
        columns = self.columns
        wanted = columns.places if columns.weight is None else [*columns.places, columns.weight]
        values, weights = self.parser.values(lines, first_row, wanted), None
        if columns.weight is not None:
            weights = checked_weights(values[:, -1].astype(np.float64), first_row)
            values = values[:, :-1]
        return chunk_of_values(values, self.sensors, columns.thresholds, first_row, weights)

    def _labels(self, lines: list[str]) -> tuple[tuple[str, ...], ...]:
        places = [place for _, place in self.columns.carried]
        return tuple(self.parser.texts(lines, places)) if places else ()


def line_of(lines: TextLines, row: int) -> int:
    """The number of a row's line in the file, counted from 1 as editors do."""
    whole = replace(lines, skip=0).all_lines()
    full = (number for number, line in enumerate(whole, 1) if number > lines.skip and line.strip(" "))
    return next(islice(full, row, None))


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """How a CSV file is written."""

    names: tuple[str, ...]
    delimiter: str
    n_header_lines: int  # 0 where the first line is data already
    header_bytes: int  # of its longest line
    looks: tuple[ColumnLook, ...]  # what the first rows show of each column


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
    names, n_lines = (numbered(len(records[0])), 0) if _is_data(records[0]) else (tuple(records[0]), n_lines)
    return CsvLayout(names, delimiter, n_lines, header_bytes, _looks(start[n_lines:], names, delimiter))


def _looks(start: list[str], names: tuple[str, ...], delimiter: str) -> tuple[ColumnLook, ...]:
    """What the first whole records show; what cannot be read is reported once it is."""
    records = []
    with suppress(csv.Error):
        for record in csv.reader(start, delimiter=delimiter, strict=True):
            if len(record) == len(names):
                records.append(record)
            if len(records) == SAMPLE:
                break
    return tuple(looks_of([(name, [record[i] for record in records]) for i, name in enumerate(names)]))


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

    def values(self, lines: list[str], first_row: int, places: Sequence[int]) -> NDArray[Any]:
        """The numbers in these columns of the lines; NaN where a cell is missing."""
        digits = self._single_digits(lines, places)
        if digits is not None:
            return digits
        rows: list[Sequence[str]] = [self._cells(line, first_row + i) for i, line in enumerate(lines)]
        if list(places) != list(range(len(self.names))):
            rows = [[cells[place] for place in places] for cells in rows]
        try:
            flat = np.fromiter(map(self.remembered.__getitem__, chain.from_iterable(rows)), np.float64)
        except ValueError:
            raise self._not_a_number(rows, first_row, places) from None
        return flat.reshape(len(lines), len(places))

    def texts(self, lines: list[str], places: Sequence[int]) -> list[tuple[str, ...]]:
        """The cells of each of these columns as they are written."""
        rows = [self._cells(line, i) for i, line in enumerate(lines)]
        return [tuple(cells[place].strip() for cells in rows) for place in places]

    def _single_digits(self, lines: list[str], places: Sequence[int]) -> NDArray[np.uint8] | None:
        """The cells at once, where every one is a single 0 or 1 and nothing is quoted; a first column may be cut."""
        if list(places) == list(range(1, len(self.names))) and not any('"' in line for line in lines):
            lines = [line.partition(self.delimiter)[2] for line in lines]
        elif list(places) != list(range(len(self.names))):
            return None
        width = 2 * len(places)
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
                raise RowError(row, f" has a quoted cell that {long}does not end in its line") from None
        if len(cells) != len(self.names):
            raise RowError(row, f" {_ragged(len(cells), len(self.names))}")
        return cells

    def _other_form(self, cells: Sequence[str]) -> str:
        """What else the file may be, by its first line that ends in a word; nothing if there are more columns."""
        if cells[-1].strip().lower() in YES_AND_NO or not _is_text(cells[-1]):
            return ""
        forms = {1: "lists what was on, read it with --baskets", 2: "is one cell that is on, read it with --long"}
        if len(cells) not in forms:
            return ""
        names = f" {','.join(map(brief, self.names))}" if len(cells) == 2 else ""
        return f"if each line {forms[len(cells)]}{names}; {AS_TEXT}"

    def _not_a_number(self, rows: list[Sequence[str]], first_row: int, places: Sequence[int]) -> DataError:
        for i, cells in enumerate(rows):
            for name, cell in zip([self.names[place] for place in places], cells, strict=True):
                try:
                    number_in(cell)
                except ValueError:
                    remedy = AS_TEXT if first_row + i else self._other_form(cells) or AS_TEXT
                    trouble = f", column {brief(name)} holds {brief(cell)}, which is no number; {remedy}"
                    return RowError(first_row + i, trouble)
        raise AssertionError("every cell is a number")


YES_AND_NO = frozenset({"yes", "no", "y", "n", "true", "false", "t", "f", "on", "off"})


def _is_text(cell: str) -> bool:
    try:
        number_in(cell)
    except ValueError:
        return True
    return False


def _ragged(n_cells: int, n_columns: int) -> str:
    """What is wrong with a row of too few or too many cells, and what to do."""
    remedy = (
        "leave a missing cell empty between its delimiters"
        if n_cells < n_columns
        else "put a cell that holds a delimiter in double quotes, or read lists of what was on with --baskets"
    )
    return f"has {counted(n_cells, 'cell')}, but the table has {counted(n_columns, 'column')}; {remedy}"


def keys_of(lines: TextLines) -> tuple[str, ...]:
    """All keys of the file, in the order in which they first appear; this takes a pass over the file."""
    numbered = f"SELECT row_number() OVER () AS i, line FROM {lines.source} WHERE regexp_matches(line, '[^ ]')"
    sql = f"SELECT json_keys(line) AS keys FROM ({numbered}) GROUP BY keys ORDER BY min(i)"
    try:
        lists = [keys for rows in lines.query(sql) for (keys,) in rows]
    except DataError:
        _find_bad_line(lines)
        raise
    return tuple(dict.fromkeys(key for keys in lists for key in keys))


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


AT_A_TIME = 1 << 16  # bytes that are taken from a stream
HERE = Path("standard input")  # what errors call it


def arriving_lines(stream: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[list[str]]:
    r"""The lines of a stream that stays open: all that are whole by now, as soon as there is one.

    >>> import io
    >>> list(arriving_lines(io.BufferedReader(io.BytesIO(b"a,b\r\n0,1\n1"))))
    [['a,b', '0,1'], ['1']]
    """
    rest = b""
    while piece := stream.read1(AT_A_TIME):  # type: ignore[attr-defined]
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > longest:
            whole, rest = [*whole, rest], b""
        if whole:
            yield [_text(line) for line in whole]
    if rest:
        yield [_text(rest)]


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").removesuffix("\r")


@dataclass(frozen=True, slots=True)
class ArrivingTable:
    """Rows as they arrive on a stream that stays open: a chunk is what has come since the last one."""

    reader: LinesTable  # what a line means
    batches: Iterator[list[str]]
    n_header_lines: int

    @property
    def columns(self) -> Columns:
        """What the columns are."""
        return self.reader.columns

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order; this can be asked for once."""
        number = self.n_header_lines
        for lines in self.batches:
            places = [i for i, line in enumerate(lines) if line.strip(" ")]
            try:
                if places:
                    yield self.reader.parsed([lines[i] for i in places], 0)
            except RowError as error:
                raise DataError(error.at(f"line {number + places[error.row] + 1} of standard input")) from None
            number += len(lines)

    def distinct(self) -> Iterator[Chunk]:
        """The same rows for counting only."""
        return self.chunks()


def arriving_table(stream: BinaryIO, options: Options, known: Sequence[str]) -> ArrivingTable:
    """CSV or JSON lines as a table, once a header and a row have come.

    Objects may have the ``known`` keys, and those of the first ones.
    """
    batches, first = arriving_lines(stream), list[str]()
    for lines in batches:
        first += lines
        full = [line for line in first if line.strip()]
        if len(full) > 1 or (full and (full[0].lstrip().startswith("{") or _is_data(full[0].split(",")))):
            break
    first[:1] = [line.removeprefix("\ufeff") for line in first[:1]]
    if next((line for line in first if line.strip()), "").lstrip().startswith("{"):
        keys = tuple(dict.fromkeys([*known, *(key for line in first if line.strip() for key in _keys(line))]))
        reader = LinesTable(TextLines(HERE), JsonParser({key: i for i, key in enumerate(keys)}), options.columns(keys))
        return ArrivingTable(reader, chain([first], batches), 0)
    layout = layout_of(first, HERE)
    columns = options.columns(layout.names, "a stream", layout.looks)
    reader = LinesTable(TextLines(HERE), CsvParser(layout.names, layout.delimiter), columns)
    return ArrivingTable(reader, chain([first[layout.n_header_lines :]], batches), layout.n_header_lines)


def _keys(line: str) -> list[str]:
    """The keys of an object; what is wrong with the line is reported once it is read."""
    with suppress(RowError):
        return [key for key, _ in _pairs(line, 0)]
    return []
