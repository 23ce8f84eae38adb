"""Typed columns inside DuckDB, of a relation or a Parquet file, as tables."""

# ruff: noqa: S608 - only our own names and quoted paths enter a query

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import (
    GROUPED_SENSORS,
    ID_NAME,
    MISSING,
    SAMPLE,
    STRANGE,
    TIME_NAME,
    Chunk,
    ColumnLook,
    Columns,
    Options,
    Table,
    cells_of,
    checked_weights,
    chunk_of_cells,
    looks_of,
    rows_a_chunk,
    strange_value,
)
from bica.data.partitions import Partition
from bica.data.readers.arrow import has_arrow, partitions_of_parquet
from bica.data.readers.engine import COUNTS_MARK, Row, batches_of_query, connection, ctrl_c_passing, path_literal, plain
from bica.errors import DataError
from bica.text import brief

if TYPE_CHECKING:
    import duckdb

NUMERIC = re.compile(r'BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+, ?\d+\)|BIGNUM|"NULL"')
ARRAY_COLUMNS = 1024  # that the engine gives as arrays; more are fetched as words
CELLS_A_PIECE = 1 << 25  # bytes of memory; smaller pieces cost more, since each is a query of its own
BITS_PAY = 1 << 24  # cells of Booleans from which reading them as bits beats grouping them in the engine
NUMBERED_ROW = "row_of_file"
NESTED = re.compile(r"\[|STRUCT|MAP|UNION")


class SqlRows(Protocol):
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

    def arrays(self, wanted: Sequence[str], rows: str, n_rows: int) -> Iterator[list[NDArray[Any]]]:
        """Typed results of SQL expressions over ``rows``, so many rows at a time, in the order of the file."""
        import duckdb

        values = ", ".join(f"{value} AS v{i}" for i, value in enumerate(wanted))
        try:
            with ctrl_c_passing(), connection() as engine:
                [(n_all,)] = engine.execute(f"SELECT count(*) FROM {self.name}").fetchall()
                for first in range(0, n_all, n_rows):
                    part = f"{NUMBERED_ROW} >= {first} AND {NUMBERED_ROW} < {first + n_rows}"
                    yield list(engine.execute(f"SELECT {values} FROM {rows} WHERE {part}").fetchnumpy().values())
        except duckdb.Error as error:
            raise DataError(f"{self.path} cannot be read: {plain(error)}") from None

    @property
    def numbered(self) -> str:
        """What a query selects from, with the number of each row behind its columns."""
        return f"read_parquet({path_literal(self.path)}, hive_partitioning=false, file_row_number=true)"

    def n_rows(self) -> int:
        """How many rows the file says that it has."""
        import duckdb

        try:
            with ctrl_c_passing(), connection() as engine:
                [(n_all,)] = engine.execute(f"SELECT count(*) FROM {self.name}").fetchall()
        except duckdb.Error as error:
            raise DataError(f"{self.path} cannot be read: {plain(error)}") from None
        return int(n_all)

    def holds_counts(self) -> bool:
        """Whether the file says that it holds distinct rows with their counts (``PatternCounts.save``)."""
        import duckdb

        source = f"parquet_kv_metadata({path_literal(self.path)})"
        marked = f"SELECT count(*) FROM {source} WHERE key::VARCHAR = '{COUNTS_MARK}'"
        try:
            with ctrl_c_passing(), connection() as engine:
                [(n_marks,)] = engine.execute(marked).fetchall()
        except duckdb.Error:
            return False  # reading will say what is wrong with the file
        return bool(n_marks)

    def columns(self) -> tuple[list[str], list[str]]:
        """The names and the types of the columns."""
        import duckdb

        leaves = f"SELECT name FROM parquet_schema({path_literal(self.path)}) WHERE num_children IS NULL"
        try:
            with ctrl_c_passing(), connection() as engine:
                described = engine.execute(f"DESCRIBE SELECT * FROM {self.name}").fetchall()
                written = engine.execute(leaves).fetchall()
        except duckdb.Error as error:
            raise DataError(f"{self.path} is not a whole Parquet file: {plain(error)}") from None
        types = [str(row[1]) for row in described]
        nested = any(NESTED.search(kind) for kind in types)
        # the description renames columns that differ by case only; leaves are no columns where some are nested
        return [row[0] for row in (described if nested else written)], types


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of the user's own connection; the result of a query is in memory as a whole."""

    relation: duckdb.DuckDBPyRelation
    name: str = "__bica_rows"

    def batches(self, sql: str, n_rows: int) -> Iterator[list[Row]]:
        """The result of a query, in the order of the relation."""
        import duckdb

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

    source: SqlRows
    columns: Columns
    texts: tuple[str, ...] = ()  # SQL for the cells of each carried column as text

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    @property
    def groups_rows(self) -> bool:
        """Whether the engine groups equal rows when they are counted."""
        return self.columns.weight is None and len(self.sensors) <= GROUPED_SENSORS

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order: a few megabytes at a time of a file, the digits of all rows of a relation."""
        weight = "NULL" if self.columns.weight is None else f"c{self.columns.weight}::DOUBLE"
        wanted = ", ".join([self._digits(), weight, *self.texts])
        return self._read(f"SELECT {wanted} FROM {self._rows()}", self.columns.weight is not None)

    def distinct(self) -> Iterator[Chunk]:
        """The distinct rows of a narrow table, grouped by the engine; every row of any other."""
        if not self.groups_rows:
            return self.chunks()
        cells = ", ".join(f"c{i}" for i in self.columns.places)
        # grouping typed columns is faster than grouping words, but measurements would hardly ever be equal
        grouped = f"SELECT {cells}, count(*) AS n FROM {self._rows()} GROUP BY ALL"
        single = f"SELECT {cells}, 1 AS n FROM {self._rows()}"
        rows = grouped if self.columns.thresholds is None else single
        return self._read(f"SELECT {self._digits()}, sum(n)::DOUBLE FROM ({rows}) GROUP BY 1", weighted=True)

    def partitions(self, large: int) -> Iterator[Partition] | None:
        """The rows of a large Parquet file column by column, where PyArrow is installed."""
        source = self.source
        if not isinstance(source, ParquetFile) or not has_arrow() or source.n_rows() * len(self.sensors) <= large:
            return None
        return partitions_of_parquet(source.path, self.columns)

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
                raise self.strange()
            weights = checked_weights(np.array([row[1] for row in rows], np.float64), first_row) if weighted else None
            labels = tuple(tuple(row[2 + i] for row in rows) for i in range(len(rows[0]) - 2))
            yield replace(chunk_of_cells(cells, weights), labels=labels)
            first_row += len(rows)

    def _cells(self, words: list[str]) -> NDArray[np.uint8]:
        written = [place for _, places in self._sections() for place in places]
        return cells_of_digits(words, len(written))[:, np.argsort(written)]

    def strange(self) -> DataError:
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


@dataclass(frozen=True, slots=True)
class ParquetTable:
    """Typed columns of a Parquet file, fetched as arrays: three times as fast as words of digits.

    Thousands of columns choke the engine that way; ``RelationTable`` is for these.
    """

    file: ParquetFile
    by_digits: RelationTable  # the same table, which groups equal rows and knows what is wrong with a cell
    types: tuple[str, ...]

    @property
    def columns(self) -> Columns:
        """What its columns are."""
        return self.by_digits.columns

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def distinct(self) -> Iterator[Chunk]:
        """The distinct rows of a narrow table, grouped by the engine; every row of any other, or as bits if quicker."""
        if self.holds_bits and self.file.n_rows() * len(self.sensors) > BITS_PAY:
            return (part.rows() for part in partitions_of_parquet(self.file.path, self.columns))
        return self.by_digits.distinct() if self.by_digits.groups_rows else self.chunks()

    @property
    def holds_bits(self) -> bool:
        """Whether all sensors are Booleans, which PyArrow reads as bits where it is installed."""
        return all(self.types[place] == "BOOLEAN" for place in self.columns.places) and has_arrow()

    def partitions(self, large: int) -> Iterator[Partition] | None:
        """The rows column by column, if the table has more than ``large`` cells; weights and labels included."""
        if self.file.n_rows() * len(self.sensors) <= large:
            return None
        if has_arrow():
            return partitions_of_parquet(self.file.path, self.columns)
        return (Partition.of_cells(cells, weights) for cells, weights, _ in self._pieces())

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order, a few megabytes at a time."""
        for cells, weights, labels in self._pieces():
            yield replace(chunk_of_cells(cells.T, weights), labels=labels)

    def _pieces(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.float64] | None, tuple[tuple[str, ...], ...]]]:
        """Columns of cells of some rows at a time, their weights, and the texts of the carried columns."""
        columns, first_row = self.columns, 0
        wanted = [f"c{i}" if self.types[i] == "BOOLEAN" else f"c{i}::DOUBLE" for i in columns.places]
        weight = [] if columns.weight is None else [f"c{columns.weight}::DOUBLE"]
        names = ", ".join([f"c{i}" for i in range(columns.n_columns)] + [NUMBERED_ROW])
        rows, n_sensors = f"{self.file.numbered} AS t({names})", len(self.sensors)
        for arrays in self.file.arrays([*wanted, *weight, *self.by_digits.texts], rows, CELLS_A_PIECE // n_sensors):
            cells = self._cells(arrays[:n_sensors])
            weights = None
            if weight:
                weights = checked_weights(np.ma.filled(arrays[n_sensors].astype(np.float64), np.nan), first_row)
            labels = tuple(tuple(map(str, column)) for column in arrays[n_sensors + len(weight) :])
            yield cells, weights, labels
            first_row += cells.shape[1]

    def _cells(self, arrays: list[NDArray[Any]]) -> NDArray[np.uint8]:
        """0, 1 or missing for every cell of these columns."""
        cells = np.empty((len(arrays), arrays[0].size), np.uint8)
        thresholds = self.columns.thresholds
        for place, values in enumerate(arrays):
            threshold = None if thresholds is None or np.isnan(thresholds[place]) else float(thresholds[place])
            cells[place] = cells_of(np.ma.getdata(values), threshold)
            if np.ma.isMaskedArray(values):
                cells[place][np.ma.getmaskarray(values)] = MISSING
        if cells.max(initial=0) == STRANGE:
            raise self.by_digits.strange()
        return cells


CALENDAR = re.compile(r"DATE|TIME|TIMESTAMP(_S|_MS|_NS)?( WITH TIME ZONE)?")
TEXT = re.compile(r"VARCHAR|UUID|ENUM\(.*")
ZONED = "TIMESTAMP WITH TIME ZONE"


def looks_of_types(source: SqlRows, names: Sequence[str], types: Sequence[str]) -> list[ColumnLook]:
    """What columns are, by their types and, where these leave it open, by their first cells."""
    asked = [i for i, (name, kind) in enumerate(zip(names, types, strict=True)) if _is_open(name, kind)]
    first = {} if not asked else dict(zip(asked, _first_cells(source, asked, len(names)), strict=False))
    looks = looks_of([(name, first.get(i, [])) for i, name in enumerate(names)])
    return [
        replace(look, role="time") if CALENDAR.fullmatch(kind) and look.role != "index" else look
        for look, kind in zip(looks, types, strict=True)
    ]


def _is_open(name: str, kind: str) -> bool:
    whole = NUMERIC.fullmatch(kind) and kind not in ("BOOLEAN", "FLOAT", "DOUBLE", '"NULL"')
    return bool(TEXT.fullmatch(kind) or (whole and (ID_NAME.fullmatch(name.lower()) or TIME_NAME.fullmatch(name))))


def _first_cells(source: SqlRows, places: list[int], n_columns: int) -> list[list[str]]:
    """The first cells of some columns, as text."""
    cells, names = ", ".join(f"c{i}::VARCHAR" for i in places), ", ".join(f"c{i}" for i in range(n_columns))
    sql = f"SELECT [{cells}] AS cells, 0 AS nothing FROM {source.name} AS t({names}) LIMIT {SAMPLE}"
    rows = [row[0] for row in next(source.batches(sql, SAMPLE), [])]
    return [[cell or "" for cell in column] for column in zip(*rows, strict=True)]


def relation_table(source: SqlRows, names: Sequence[str], types: Sequence[str], options: Options, what: str) -> Table:
    """Typed columns as a table; those that cannot hold 0 and 1 are refused before the engine does any work."""
    columns = options.columns(names, unread=what, looks=looks_of_types(source, names, types))
    for place in columns.places:
        if not NUMERIC.fullmatch(types[place]):
            raise DataError(
                f"column {brief(names[place])} holds {types[place]}, not 0 and 1; leave it out with `drop`, or turn "
                "it into numbers"
            )
    table = RelationTable(source, columns, tuple(_as_text(place, types[place]) for _, place in columns.carried))
    if isinstance(source, ParquetFile) and columns.n_columns <= ARRAY_COLUMNS:
        return ParquetTable(source, table, tuple(types))
    return table


def _as_text(place: int, kind: str) -> str:
    """SQL for a carried cell as text; moments in UTC, whatever the time zone of the machine."""
    text = f"(c{place} AT TIME ZONE 'UTC')::VARCHAR || '+00:00'" if kind == ZONED else f"c{place}::VARCHAR"
    return f"coalesce({text}, '')"
