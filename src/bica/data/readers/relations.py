"""Typed columns inside DuckDB, of a relation or a Parquet file, as tables."""

# ruff: noqa: S608 - only our own names and quoted paths enter a query

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import duckdb
import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import (
    GROUPED_SENSORS,
    MISSING,
    STRANGE,
    Chunk,
    Columns,
    checked_weights,
    chunk_of_cells,
    remedy_for,
    rows_a_chunk,
    strange_value,
)
from bica.data.readers.engine import Row, batches_of_query, connection, path_literal, plain
from bica.errors import DataError
from bica.text import brief

NUMERIC = re.compile(r'BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+, ?\d+\)|BIGNUM|"NULL"')


class Source(Protocol):
    """Rows that can be asked for with SQL."""

    @property
    def name(self) -> str:
        """What a query selects from."""

    def batches(self, sql: str, n_rows: int) -> Iterator[list[Row]]:
        """The result of a query, in order, about so many rows at a time."""


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A Parquet file; a batch is read when it is wanted."""

    path: Path

    @property
    def name(self) -> str:
        """What a query selects from."""
        return f"read_parquet({path_literal(self.path)}, hive_partitioning=false)"

    def batches(self, sql: str, n_rows: int) -> Iterator[list[Row]]:
        """The result of a query, in the order of the file."""
        return batches_of_query(self.path, sql, n_rows)

    def names(self) -> list[str]:
        """The names of the columns, all of them of types that can hold 0 and 1."""
        leaves = f"SELECT name FROM parquet_schema({path_literal(self.path)}) WHERE num_children IS NULL"
        try:
            with connection() as engine:
                described = engine.execute(f"DESCRIBE SELECT * FROM {self.name}").fetchall()
                written = engine.execute(leaves).fetchall()
        except duckdb.Error as error:
            raise DataError(f"{self.path} is not a whole Parquet file: {plain(error)}") from None
        check_types([row[0] for row in described], [row[1] for row in described])
        return [name for (name,) in written]  # the description renames columns that differ by case only


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of the user's own connection; the result of a query is in memory as a whole."""

    relation: duckdb.DuckDBPyRelation
    name: str = "__bica_rows"

    def batches(self, sql: str, n_rows: int) -> Iterator[list[Row]]:
        """The result of a query, in the order of the relation."""
        try:
            found = self.relation.query(self.name, sql)
            assert found is not None  # a SELECT always has a result
            result = found.fetchnumpy()
        except duckdb.Error as error:
            raise DataError(f"the relation cannot be read: {plain(error)}") from None
        finally:
            with suppress(duckdb.Error):  # older engines leave the name behind
                self.relation.query(self.name, f"DROP VIEW IF EXISTS {self.name}")
        columns = [column.tolist() for column in result.values()]
        for start in range(0, len(columns[0]), n_rows):
            yield list(zip(*(column[start : start + n_rows] for column in columns), strict=True))


@dataclass(frozen=True, slots=True)
class RelationTable:
    """Typed columns; the engine writes a row's cells as one word of digits, since thousands of results choke it."""

    source: Source
    columns: Columns

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order: a few megabytes at a time of a file, the digits of all rows of a relation."""
        weight = "NULL" if self.columns.weight is None else f"c{self.columns.weight}::DOUBLE"
        return self._read(f"SELECT {self._digits()}, {weight} FROM {self._rows()}", self.columns.weight is not None)

    def distinct(self) -> Iterator[Chunk]:
        """The distinct rows of a narrow table, grouped by the engine; every row of any other."""
        if self.columns.weight is not None or len(self.sensors) > GROUPED_SENSORS:
            return self.chunks()
        cells = ", ".join(f"c{i}" for i in self.columns.places)
        # grouping typed columns is faster than grouping words, but measurements would hardly ever be equal
        grouped = f"SELECT {cells}, count(*) AS n FROM {self._rows()} GROUP BY ALL"
        single = f"SELECT {cells}, 1 AS n FROM {self._rows()}"
        rows = grouped if self.columns.thresholds is None else single
        return self._read(f"SELECT {self._digits()}, sum(n)::DOUBLE FROM ({rows}) GROUP BY 1", weighted=True)

    def _rows(self) -> str:
        """The source with numbers for names, so that no name of a column ever enters a query."""
        return f"{self.source.name} AS t({', '.join(f'c{i}' for i in range(self.columns.n_columns))})"

    def _digits(self) -> str:
        return " || ".join(_digits(places, threshold) for threshold, places in self._sections())

    def _sections(self) -> list[tuple[float, list[int]]]:
        """The columns by threshold, since one expression for many columns is planned faster than many."""
        if self.columns.thresholds is None:
            return [(np.nan, self.columns.places)]
        sections: dict[str, tuple[float, list[int]]] = {}
        for place, threshold in zip(self.columns.places, self.columns.thresholds.tolist(), strict=True):
            sections.setdefault(repr(threshold), (threshold, []))[1].append(place)
        return list(sections.values())

    def _read(self, sql: str, weighted: bool) -> Iterator[Chunk]:
        first_row = 0
        for rows in self.source.batches(sql, rows_a_chunk(len(self.sensors))):
            cells = self._cells([row[0] for row in rows])
            if cells.max(initial=0) == STRANGE:
                raise self._strange()
            weights = checked_weights(np.array([row[1] for row in rows], np.float64), first_row) if weighted else None
            yield chunk_of_cells(cells, weights)
            first_row += len(rows)

    def _cells(self, words: list[str]) -> NDArray[np.uint8]:
        written = [place for _, places in self._sections() for place in places]
        return cells_of_digits(words, len(written))[:, np.argsort(written)]

    def _strange(self) -> DataError:
        """The error for the first cell that is neither 0 nor 1; the engine looks for it in a pass of its own."""
        values = ", ".join(f"c{i}::VARCHAR" for i in self.columns.places)
        rows = (
            f"SELECT row_number() OVER () - 1 AS i, {self._digits()} AS word, [{values}] AS shown FROM {self._rows()}"
        )
        sql = f"SELECT * FROM ({rows}) WHERE contains(word, '{STRANGE}') ORDER BY i LIMIT 1"
        [(row, word, shown)] = next(self.source.batches(sql, 1))
        sensor = int(np.argmax(self._cells([word])[0] == STRANGE))
        return strange_value(row, self.sensors[sensor], float(shown[sensor]))


def _digits(places: list[int], threshold: float) -> str:
    """SQL for the cells of some columns as a word: 0, 1, 2 for missing and 3 for strange."""
    values = ", ".join(f"c{i}::DOUBLE" for i in places)
    on_off = f"WHEN x > {threshold!r}::DOUBLE THEN '1' ELSE '0'"
    if np.isnan(threshold):
        on_off = f"WHEN x = 0 THEN '0' WHEN x = 1 THEN '1' ELSE '{STRANGE}'"
    cell = f"CASE WHEN x IS NULL OR isnan(x) THEN '{MISSING}' {on_off} END"
    return f"array_to_string([{cell} FOR x IN [{values}]], '')"


def cells_of_digits(words: Sequence[str], n_sensors: int) -> NDArray[np.uint8]:
    """Rows of cells from words of digits.

    >>> cells_of_digits(["012", "111"], 3)
    array([[0, 1, 2],
           [1, 1, 1]], dtype=uint8)
    """
    return np.frombuffer("".join(words).encode(), np.uint8).reshape(-1, n_sensors) - np.uint8(ord("0"))


def check_types(names: Sequence[str], types: Sequence[object]) -> None:
    """Refuse columns that cannot hold 0 and 1 before the engine does any work."""
    for name, kind in zip(names, types, strict=True):
        if not NUMERIC.fullmatch(str(kind)):
            remedy = remedy_for(name, "leave it out or turn it into numbers")
            raise DataError(f"column {brief(name)} holds {kind}, not 0 and 1; {remedy}")
