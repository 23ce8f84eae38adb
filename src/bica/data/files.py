"""Files as tables, by the end of their name."""

import os
from pathlib import Path
from typing import Literal

from bica.data.chunks import Table
from bica.data.columns import Options
from bica.data.compression import SUFFIXES, Compression, check_whole
from bica.data.csv_lines import CsvParser, layout_of
from bica.data.json_lines import JsonParser, keys_of
from bica.data.lines import LinesTable, TextLines
from bica.data.matrix_files import matrix_table
from bica.data.relations import ParquetFile, RelationTable
from bica.errors import DataError

Kind = Literal["csv", "jsonl", "parquet", "npy", "npz", "mtx"]
KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".npy": "npy",
    ".npz": "npz",
    ".mtx": "mtx",
}


def open_file(path: Path, options: Options) -> Table:
    """Look at the start of a file just enough to know its columns."""
    check_file(path)
    kind, compression = kind_of(path)
    return open_kind(path, kind, compression, options)


def check_file(path: Path) -> None:
    """Refuse what is no file."""
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder; name a file in it")
    if not os.path.exists(path):
        raise DataError(f"there is no file {path}; check the name and the folder")
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
    if kind is None or (compression != "none" and kind not in ("csv", "jsonl")):
        raise DataError(
            f"{path} has an unknown kind of name; tables are read from .csv, .tsv, .jsonl and .ndjson "
            "(also with .gz or .zst behind), .parquet, .npy, .npz and .mtx"
        )
    return kind, compression


def open_kind(path: Path, kind: Kind, compression: Compression, options: Options) -> Table:
    """The table in a file of a known kind."""
    if kind in ("npy", "npz", "mtx"):
        return matrix_table(path, kind, options)
    options.refuse_weights("a file")
    if kind == "parquet":
        file = ParquetFile(path)
        return RelationTable(file, options.columns(file.names()))
    check_whole(path, compression)
    lines = TextLines(path, compression)
    return _csv_table(lines, options) if kind == "csv" else _json_table(lines, options)


def _csv_table(lines: TextLines, options: Options) -> Table:
    layout = layout_of(lines)
    data = TextLines(lines.path, lines.compression, layout.n_header_lines)
    return LinesTable(data, CsvParser(layout.names, layout.delimiter), options.columns(layout.names))


def _json_table(lines: TextLines, options: Options) -> Table:
    keys = keys_of(lines)
    return LinesTable(lines, JsonParser({key: i for i, key in enumerate(keys)}), options.columns(keys))
