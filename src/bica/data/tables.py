"""One door for tables of every kind: values in memory, files by the end of their name, standard input."""

from __future__ import annotations

import codecs
import glob
import os
import shutil
import sys
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from math import isfinite, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, Unpack

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from bica.data.columns import (
    GROUPED_SENSORS,
    Binarize,
    Chunk,
    ColumnLook,
    Columns,
    Options,
    Reading,
    Table,
    looks_of,
    rows_a_chunk,
)
from bica.data.engines import DaskFiles
from bica.data.partitions import Partition
from bica.data.readers.arrays import (
    ArrayTable,
    SparseTable,
    basket_table,
    long_table,
    matrix_table,
    table_of_matrix,
    workbook_table,
)
from bica.data.readers.arrow import STORES, ArrowTable, dataset_table, feather_table, stored_table
from bica.data.readers.engine import (
    COUNT_COLUMN,
    SUFFIXES,
    Compression,
    TextLines,
    whole_lines,
)
from bica.data.readers.frames import FrameTable, LazyTable, check_lazy_types, looks_of_frame, looks_of_schema
from bica.data.readers.relations import ParquetFile, ParquetTable, Relation, RelationTable, relation_table
from bica.data.readers.text import (
    ArrivingTable,
    CsvParser,
    JsonParser,
    LinesTable,
    arriving_table,
    keys_of,
    layout_of,
    line_of,
    longest_line,
    looks_of_keys,
    number_in,
)
from bica.errors import BicaError, ColumnWarning, DataError, LimitError, OutputError, RowError, SettingError
from bica.output import end_passing, passing_path
from bica.text import brief

if TYPE_CHECKING:
    import duckdb

Kind = Literal["csv", "jsonl", "parquet", "npy", "npz", "mtx", "xlsx", "feather"]
KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".npy": "npy",
    ".npz": "npz",
    ".mtx": "mtx",
    ".xlsx": "xlsx",
    ".feather": "feather",
    ".arrow": "feather",
}
TEXTS = (".txt", ".log")  # CSV or JSON lines, as their first line tells


def open_path(path: Path, options: Options) -> Table:
    """A file; or all files of a folder or of a pattern such as ``week*.csv``, as one table."""
    if os.path.isdir(path):
        return open_files(_tables_in(path), path, options)
    if not os.path.exists(path) and glob.has_magic(str(path)):
        return open_files([Path(name) for name in sorted(glob.glob(str(path), recursive=True))], path, options)
    return open_file(path, options)


def open_file(path: Path, options: Options) -> Table:
    """Look at the start of a file just enough to know its columns."""
    check_file(path)
    kind, compression = kind_of(path)
    return open_kind(path, kind, compression, options)


def files_of(path: Path) -> list[tuple[Path, Path]] | None:
    """The tables of a folder or a pattern, each with its name below the folder; None for anything else."""
    if os.path.isdir(path):
        return [(file, file.relative_to(path)) for file in _tables_in(path)]
    if os.path.exists(path) or not glob.has_magic(str(path)):
        return None
    files = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
    above = Path(os.path.commonpath([file.parent for file in files])) if files else path
    return [(file, file.relative_to(above)) for file in files]


def _tables_in(folder: Path) -> list[Path]:
    """The tables in a folder and its folders, by their names; hidden files, and those of other programs, are none."""
    found = []
    for path in sorted(folder.rglob("*")):
        shown = not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        if shown and path.is_file() and KINDS.get(path.suffixes[0].lower() if path.suffixes else ""):
            found.append(path)
    return found


def open_files(paths: Sequence[Path], asked: Path, options: Options) -> FilesTable:
    """Files with the same columns as one table, in this order."""
    if not paths:
        raise DataError(f"there is no table in {asked}; tables are files such as .csv, .jsonl and .parquet")
    tables = [open_file(path, options) for path in paths]
    for path, table in zip(paths, tables, strict=True):
        if table.sensors != tables[0].sensors:
            raise DataError(f"{paths[0]} and {path} have different columns, so they are not parts of one table")
    return FilesTable(tuple(tables), tuple(paths))


def check_file(path: Path) -> None:
    """Refuse what is no file."""
    if not os.path.exists(path):
        raise DataError(f"there is no file {path}; check the name and the folder")
    if not (os.path.isfile(path) or os.path.isdir(path)):
        raise DataError(
            f"{path} is a pipe or a device, and files are read more than once; save it to a file, or send it to "
            "standard input and give - as its name"
        )
    try:
        path.open("rb").close()
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror}") from None


def kind_of(path: Path) -> tuple[Kind, Compression]:
    """What the end of the name promises.

    >>> kind_of(Path("week.CSV.gz"))
    ('csv', 'gzip')
    """
    compression = SUFFIXES.get(path.suffix.lower(), "none")
    ending = path.suffix.lower() if compression == "none" else Path(path.stem).suffix.lower()
    kind = KINDS.get(ending)
    if ending in TEXTS and path.is_file():
        return kind_inside(path)[0], compression
    if kind is None or (compression != "none" and kind not in ("csv", "jsonl")):
        raise DataError(
            f"{path} has an unknown kind of name; tables are read from .csv, .tsv, .txt, .log, .jsonl and .ndjson "
            "(also with .gz or .zst behind), .parquet, .feather, .arrow, .npy, .npz, .mtx and .xlsx"
        )
    return kind, compression


def open_kind(path: Path, kind: Kind, compression: Compression, options: Options) -> Table:
    """The table in a file of a known kind."""
    if kind == "xlsx":
        return workbook_table(path, options)
    if kind == "feather":
        return feather_table(path, options)
    if kind in ("npy", "npz", "mtx"):
        return matrix_table(path, kind, options)
    if kind == "parquet":
        file = ParquetFile(path)
        if options.sample_weight is None and file.holds_counts():
            options = replace(options, sample_weight=COUNT_COLUMN)
        return relation_table(file, *file.columns(), options, "a file")
    long = options.reading.get("long")
    if (long or options.reading.get("baskets")) and kind != "csv":
        raise SettingError("baskets and long tables are read from CSV, TSV and plain text; write one of these")
    if long:
        return long_table(path, compression, options, long)
    if options.reading.get("baskets"):
        return basket_table(path, compression, options)
    return _csv_table(path, compression, options) if kind == "csv" else _json_table(path, compression, options)


def _csv_table(path: Path, compression: Compression, options: Options) -> Table:
    layout = layout_of(whole_lines(path, compression).first_lines(), path)
    columns = options.columns(layout.names, "a file", layout.looks)
    at_a_time = rows_a_chunk(columns.n_columns)
    longest = max(layout.header_bytes, longest_line(len(layout.names)))
    lines = TextLines(path, compression, layout.n_header_lines, longest, at_a_time)
    return LinesTable(lines, CsvParser(layout.names, layout.delimiter), columns)


def _json_table(path: Path, compression: Compression, options: Options) -> Table:
    keys = keys_of(whole_lines(path, compression))
    columns = options.columns(keys, "a file", looks_of_keys(TextLines(path, compression), keys))
    longest = longest_line(len(keys), sum(6 * len(key) for key in keys))  # a letter takes at most six as an escape
    lines = TextLines(path, compression, longest=longest, at_a_time=rows_a_chunk(columns.n_columns))
    return LinesTable(lines, JsonParser({key: i for i, key in enumerate(keys)}), columns)


BEGINNINGS: dict[bytes, Kind] = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"%%MatrixMarket": "mtx",
}
PACKED: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(frozen=True, slots=True)
class FilesTable:
    """The rows of several files with the same columns, one file after another."""

    tables: tuple[Table, ...]
    paths: tuple[Path, ...]
    on_workers: bool = False  # whether the workers of Dask are to read them

    @property
    def columns(self) -> Columns:
        """What the columns are."""
        return self.tables[0].columns

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order."""
        for table, path in zip(self.tables, self.paths, strict=True):
            with _speaking_of(path):
                yield from table.chunks()

    def partitions(self, large: int) -> Iterator[Partition] | None:
        """The rows column by column, if the files are Parquet and have more than ``large`` cells together."""
        sources = [getattr(getattr(table, "by_digits", table), "source", None) for table in self.tables]
        parquet = [source for source in sources if isinstance(source, ParquetFile)]
        if len(parquet) < len(self.tables) or sum(file.n_rows() for file in parquet) * len(self.sensors) <= large:
            return None
        return self._partitions()

    def _partitions(self) -> Iterator[Partition]:
        for table, path in zip(self.tables, self.paths, strict=True):
            parts = table.partitions(-1) if isinstance(table, ParquetTable | RelationTable) else None
            with _speaking_of(path):
                yield from (
                    (Partition.of_chunk(chunk, len(self.sensors)) for chunk in table.chunks())
                    if parts is None
                    else parts
                )

    def distinct(self) -> Iterator[Chunk]:
        """The same rows for counting only."""
        for table, path in zip(self.tables, self.paths, strict=True):
            with _speaking_of(path):
                yield from table.distinct()


@contextmanager
def _speaking_of(path: Path) -> Iterator[None]:
    """Name the file in errors that only say which row."""
    try:
        yield
    except DataError as error:
        raise error if str(path) in str(error) else DataError(f"{path}: {error}") from None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SpooledTable:
    """A table in a file that goes away with it."""

    table: Table
    path: Path

    @property
    def columns(self) -> Columns:
        """What its columns are."""
        return self.table.columns

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.table.sensors

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order."""
        with speaking_of_standard_input(self.path):  # and a generator of our own keeps the file while it is read
            yield from self.table.chunks()

    def distinct(self) -> Iterator[Chunk]:
        """The same rows for counting only."""
        with speaking_of_standard_input(self.path):
            yield from self.table.distinct()


def open_standard_input(options: Options) -> Table:
    """Keep all of standard input on disk, tell its kind from its first bytes, and open it."""
    path = passing_path()
    try:
        keep_standard_input(path)
        with speaking_of_standard_input(path):
            table = SpooledTable(open_kind(path, *kind_inside(path), options), path)
    except BaseException:
        end_passing(path)
        raise
    weakref.finalize(table, end_passing, path)  # also runs when the interpreter ends
    return table


def open_stream(known: Sequence[str], binarize: Binarize = None, **reading: Unpack[Reading]) -> Table | None:
    """Standard input row by row while it stays open; None where it is no plain text, or a table in another shape."""
    peek = getattr(sys.stdin.buffer, "peek", None)
    if peek is None or reading.get("baskets") or reading.get("long"):
        return None
    if peek(1).startswith((*BEGINNINGS, *PACKED, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    return arriving_table(sys.stdin.buffer, Options(None, None, binarize, reading), known)


def keep_standard_input(path: Path) -> None:
    """Copy all of standard input into a new file."""
    try:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        raise OutputError(f"standard input cannot be kept in {path.parent}: {error.strerror or error}") from None


@contextmanager
def speaking_of_standard_input(path: Path) -> Iterator[None]:
    """Keep the name of our own file out of errors."""
    try:
        yield
    except (DataError, LimitError) as error:
        kind = LimitError if isinstance(error, LimitError) else DataError
        raise kind(str(error).replace(str(path), "standard input")) from None


def kind_inside(path: Path) -> tuple[Kind, Compression]:
    """What the first bytes of a file promise; text is CSV unless it starts like a JSON object."""
    with path.open("rb") as file:
        beginning = file.read(16)
    for bytes_, kind in BEGINNINGS.items():
        if beginning.startswith(bytes_):
            return kind, "none"
    found = [packed for bytes_, packed in PACKED.items() if beginning.startswith(bytes_)]
    compression: Compression = found[0] if found else "none"
    first = next((line for line in TextLines(path, compression).all_lines() if line.strip()), "")
    return ("jsonl" if first.lstrip().startswith("{") else "csv"), compression


__all__ = ["Binarize", "open_table"]
OPENED = (
    ArrayTable,
    ArrivingTable,
    ArrowTable,
    FilesTable,
    FrameTable,
    LazyTable,
    LinesTable,
    ParquetTable,
    RelationTable,
    SparseTable,
    SpooledTable,
)


def open_table(
    x: Any,
    *,
    sensors: Sequence[str] | None = None,
    sample_weight: Any = None,
    binarize: Binarize = None,
    **reading: Unpack[Reading],
) -> Table:
    """Look at ``x`` just enough to know its columns; the rows are read later, chunk by chunk.

    ``x`` is an array, a list of rows, a sparse matrix, a data frame (also a lazy one), a DuckDB relation, a path or
    ``"-"`` for standard input. A folder, or a pattern such as ``"week*.csv"``, is one table of all its files;
    so is a prefix of Parquet files in an object store, such as ``"s3://bucket/week"``.
    ``sample_weight`` holds one weight per row, or names the column of a frame, a relation or a file that does. ``drop``
    names columns to leave out, ``columns`` the only sensors; ``id`` and ``time`` name columns that go beside the
    answers. The row index that pandas writes and columns of times are no sensors anyway, and a warning says so. A table
    that is open already stays as it is.

    >>> open_table([[0, 1], [1, 1]], sensors=["door", "window"]).sensors
    ('door', 'window')
    """
    options = Options(sensors, sample_weight, binarize, reading)
    if isinstance(x, OPENED):
        if not (sensors is None and sample_weight is None and binarize is None and not reading):
            raise DataError("this table is open already: names, weights and thresholds come before that")
        return x
    if isinstance(x, DaskFiles):
        files = open_files([Path(file) for file in x.files], Path(x.files[0]), options)
        few = len(files.sensors) <= GROUPED_SENSORS  # then Dask groups equal rows
        return _open_lazy(nw.from_native(x.frame()), options) if few else replace(files, on_workers=True)
    if isinstance(x, str) and x.startswith(STORES):
        return stored_table(x, options)
    if isinstance(x, str | os.PathLike):
        return open_standard_input(options) if str(x) == "-" else open_path(Path(x), options)
    if _is_relation(x):
        return _open_relation(x, options)
    if type(x).__module__.startswith("pyarrow._dataset"):
        return dataset_table(x, options)
    frame = _frame_in(x)
    if isinstance(frame, nw.DataFrame):
        return FrameTable(
            frame, options.columns(frame.columns, None, looks_of_frame(frame)), options.weights(len(frame))
        )
    if isinstance(frame, nw.LazyFrame):
        return _open_lazy(frame, options)
    options.refuse_named_weights("an array")
    return table_of_matrix(x, None, options)


@dataclass(frozen=True, slots=True)
class _NotingOptions(Options):
    """Options that note what the columns look like."""

    noted: list[ColumnLook] = field(default_factory=list)

    def columns(self, names: Iterable[Any], unread: str | None = None, looks: Sequence[ColumnLook] = ()) -> Columns:
        found = [str(name) for name in names]
        self.noted.extend(looks or looks_of([(name, ()) for name in found]))
        return Options.columns(self, found, unread, looks)


def looks_in(path: str | Path) -> list[ColumnLook]:
    """What the columns of a file look like, also if it cannot be read as they are; empty where there are none."""
    options = _NotingOptions()
    with suppress(BicaError), warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        open_file(Path(path), options)
    return options.noted


def measurements_in(path: str | Path, columns: Sequence[str] | None = None) -> tuple[tuple[str, ...], NDArray[Any]]:
    """The names of these columns of a text table, or of all, and their numbers: (n_rows, n_columns)."""
    if str(path) != "-":
        check_file(Path(path))
        return _measurements(Path(path), *kind_of(Path(path)), columns)
    kept = passing_path()
    try:
        keep_standard_input(kept)
        with speaking_of_standard_input(kept):
            return _measurements(kept, *kind_inside(kept), columns)
    finally:
        end_passing(kept)


def _measurements(
    path: Path, kind: Kind, compression: Compression, columns: Sequence[str] | None
) -> tuple[tuple[str, ...], NDArray[Any]]:
    if kind != "csv":
        raise DataError(
            f"{path} is no CSV; measurements are read from .csv, .tsv, .txt and .log, also with .gz or .zst"
        )
    layout = layout_of(whole_lines(path, compression).first_lines(), path)
    names = layout.names if columns is None else tuple(columns)
    for name in names:
        if layout.names.count(name) != 1:
            raise DataError(
                f"{path} has {layout.names.count(name)} columns {brief(name)}; each needs a name of its own"
            )
    longest = max(layout.header_bytes, longest_line(len(layout.names)))
    lines = TextLines(path, compression, layout.n_header_lines, longest)
    rows = [line for line in lines.all_lines() if line.strip(" ")]
    if not rows:
        raise DataError(f"{path} has no rows of measurements")
    try:
        cells = CsvParser(layout.names, layout.delimiter).texts(rows, [layout.names.index(name) for name in names])
    except RowError as error:
        raise DataError(error.at(f"line {line_of(lines, error.row)}")) from None
    values = np.empty((len(rows), len(names)))
    for place, (name, texts) in enumerate(zip(names, cells, strict=True)):
        for row, text in enumerate(texts):
            values[row, place] = number = _finite(text)
            if isnan(number):
                raise DataError(
                    f"line {line_of(lines, row)}, column {brief(name)} holds {brief(text)}, which is no measurement; "
                    "name the columns to use, or leave the line out"
                )
    return names, values


def _finite(text: str) -> float:
    """The number that a cell holds; NaN if it holds none, or one without end."""
    try:
        number = number_in(text)
    except ValueError:
        return nan
    return number if isfinite(number) else nan


def is_weighted(table: Table) -> bool:
    """Whether the rows of an open table have weights."""
    return table.columns.weight is not None or getattr(table, "weights", None) is not None


def _frame_in(x: Any) -> Any:
    """The data frame that narwhals sees in ``x``, or ``x`` itself."""
    try:
        frame = nw.from_native(x, pass_through=True)
        if frame is x and hasattr(x, "__arrow_c_stream__") and hasattr(x, "schema"):
            return nw.from_arrow(x, backend="pyarrow")  # a record batch, or a stream of them
        return frame
    except DuplicateError as error:
        raise DataError(f"two columns have the same name: {str(error).splitlines()[-1].strip('- ')}") from None


def _is_relation(x: Any) -> TypeGuard[duckdb.DuckDBPyRelation]:
    """Whether this is a relation of DuckDB; where that is not loaded there are none, and loading takes a while."""
    engine = sys.modules.get("duckdb")
    return engine is not None and isinstance(x, engine.DuckDBPyRelation)


def _open_relation(relation: duckdb.DuckDBPyRelation, options: Options) -> Table:
    types = [str(kind) for kind in relation.types]
    return relation_table(Relation(relation), relation.columns, types, options, "a relation")


def _open_lazy(frame: nw.LazyFrame[Any], options: Options) -> Table:
    native = frame.to_native()
    if _is_relation(native):
        return _open_relation(native, options)
    schema = frame.collect_schema()
    columns = options.columns(schema.names(), "a lazy frame", looks_of_schema(schema))
    check_lazy_types(schema, columns)
    return LazyTable(frame, columns)
