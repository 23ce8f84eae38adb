"""Standard input as a table: put into a file of our own, since a table is read more than once."""

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bica.data.chunks import Chunk, Table
from bica.data.columns import Options
from bica.data.compression import Compression
from bica.data.files import Kind, open_kind
from bica.data.lines import TextLines
from bica.errors import DataError

BEGINNINGS: dict[bytes, Kind] = {
    b"PAR1": "parquet",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"%%MatrixMarket": "mtx",
}
PACKED: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SpooledTable:
    """A table in a file that goes away with it."""

    table: Table
    path: Path

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
    handle, name = tempfile.mkstemp(prefix="bica-")
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with speaking_of_standard_input(path):
            table = SpooledTable(open_kind(path, *kind_inside(path), options), path)
    except BaseException:
        path.unlink()
        raise
    weakref.finalize(table, path.unlink, missing_ok=True)  # also runs when the interpreter ends
    return table


@contextmanager
def speaking_of_standard_input(path: Path) -> Iterator[None]:
    """Keep the name of our own file out of errors."""
    try:
        yield
    except DataError as error:
        raise DataError(str(error).replace(str(path), "standard input")) from None


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
