"""Results on disk: one finished task is one line, written at once; a line torn by a crash does not count."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bica.data.engine import connection, path_literal, text_literal
from bica.errors import DataError, OutputError, SettingError
from bica.output import check_target, write_whole

Record = dict[str, Any]
FORMATS = {".csv": "csv, HEADER", ".parquet": "parquet"}


class RecordFile:
    """A file of JSON lines that only grows; every line is on the disk before the next task counts as done."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.exists():
            check_target(self.path)
        self.records = read_records(self.path) if self.path.exists() else []
        self._cut_torn_line()

    def _cut_torn_line(self) -> None:
        if self.path.exists() and not self.path.read_bytes().endswith(b"\n"):
            whole = self.path.read_bytes().rfind(b"\n") + 1
            os.truncate(self.path, whole)

    def add(self, record: Record) -> None:
        """Write one record and wait until the disk has it."""
        with open(self.path, "ab") as file:
            file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.records.append(record)


def read_records(path: str | Path) -> list[Record]:
    """The whole lines of a file of results."""
    try:
        content = Path(path).read_bytes()
        lines = content[: content.rfind(b"\n") + 1].decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as results: {error}") from None
    return [_record(line, number, path) for number, line in enumerate(lines, 1)]


def _record(line: str, number: int, path: str | Path) -> Record:
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        record = None
    if not isinstance(record, dict) or "contender" not in record:
        raise DataError(f"{path} is no file of results: line {number} is not a record of a comparison")
    return record


def write_table(records: Iterable[Record], path: str | Path, *, overwrite: bool = False) -> None:
    """The records as a table with a row each, CSV or Parquet as the ending says; written whole."""
    ending = Path(path).suffix
    if ending not in FORMATS:
        raise SettingError(f"a table of results is written as {' or '.join(FORMATS)}, but {path} ends in {ending!r}")
    check_target(path, overwrite=overwrite)
    with tempfile.TemporaryDirectory(prefix="bica-") as folder:
        source, target = Path(folder) / "records.jsonl", Path(folder) / f"table{ending}"
        source.write_text("".join(json.dumps(record) + "\n" for record in records))
        if not source.stat().st_size:
            raise OutputError(f"{path} would be empty: there are no results yet")
        with connection() as engine:
            rows = f"read_json({path_literal(source)}, format='newline_delimited', sample_size=-1)"
            place = f"{text_literal(str(target))} (FORMAT {FORMATS[ending]})"
            engine.execute(f"COPY (SELECT * FROM {rows}) TO {place}")  # noqa: S608 (paths of our own, quoted)
        write_whole(path, target.read_bytes(), overwrite=overwrite)
