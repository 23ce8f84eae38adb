"""Text files of one row a line, as tables: the engine unpacks, splits and groups lines, a parser reads them."""

# ruff: noqa: S608 - only our own names and quoted paths enter a query

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.data.cells import chunk_of_values
from bica.data.chunks import GROUPED_SENSORS, Chunk, rows_a_chunk
from bica.data.columns import Columns, checked_weights
from bica.data.compression import Compression
from bica.data.engine import Row, batches_of_query, path_literal
from bica.errors import DataError
from bica.progress import tracked

NOWHERE = "\x1f\x1e\x1f\x1e"  # the engine wants a delimiter; no text holds this one, so that a line is one cell
LONGEST_LINE = 8_000_000  # bytes; the engine keeps sixteen times as much at hand


@dataclass(frozen=True, slots=True)
class TextLines:
    """The lines of a UTF-8 file, whatever ends them; a byte order mark before the first is dropped."""

    path: Path
    compression: Compression = "none"
    skip: int = 0  # lines at the start that are not wanted

    @property
    def source(self) -> str:
        """What a query selects ``line`` from; it is null for an empty line."""
        return (
            f"read_csv({path_literal(self.path)}, columns={{'line': 'VARCHAR'}}, header=false, skip={self.skip}, "
            f"delim='{NOWHERE}', quote='', escape='', compression='{self.compression}', max_line_size={LONGEST_LINE}, "
            "auto_detect=false, strict_mode=false, hive_partitioning=false)"
        )

    def query(self, sql: str, n_rows: int = 1024) -> Iterator[list[Row]]:
        """The result of a query, so many rows at a time."""
        return batches_of_query(self.path, sql, n_rows)

    def all_lines(self) -> Iterator[str]:
        """Every line, also the empty ones."""
        for rows in self.query(f"SELECT coalesce(line, '') FROM {self.source}"):
            yield from (line for (line,) in rows)


class Parser(Protocol):
    """What a line means."""

    def values(self, lines: list[str], first_row: int) -> NDArray[Any]:
        """The numbers in the lines, one column for each of the table's; NaN where a cell is missing."""


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
        first_row = 0
        for rows in self._batches("line", ""):
            yield self._chunk([line for (line,) in rows], first_row)
            first_row += len(rows)

    def distinct(self) -> Iterator[Chunk]:
        """The distinct lines of a narrow table of 0 and 1, grouped by the engine; every row of any other."""
        narrow = len(self.sensors) <= GROUPED_SENSORS and self.columns.thresholds is None
        return self._grouped() if narrow and self.columns.weight is None else self.chunks()

    def _grouped(self) -> Iterator[Chunk]:
        for rows in self._batches("line, count(*)", "GROUP BY line"):
            try:
                chunk = self._chunk([line for line, _ in rows], 0)
            except DataError:
                for _ in self.chunks():
                    pass  # meets the same trouble, and knows the number of the row
                raise
            yield replace(chunk, weights=np.array([count for _, count in rows], np.float64))

    def _batches(self, what: str, group: str) -> Iterator[list[Row]]:
        sql = f"SELECT {what} FROM {self.lines.source} WHERE trim(line) <> '' {group}"
        return tracked(self.lines.query(sql, rows_a_chunk(self.columns.n_columns)), "reading the table")

    def _chunk(self, lines: list[str], first_row: int) -> Chunk:
        values, weights = self.parser.values(lines, first_row), None
        if self.columns.weight is not None:
            weights = checked_weights(values[:, self.columns.weight].astype(np.float64), first_row)
            values = values[:, self.columns.places]
        return chunk_of_values(values, self.sensors, self.columns.thresholds, first_row, weights)
