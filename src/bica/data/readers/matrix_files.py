"""Matrices in files: ``.npy``, ``.npz`` and Matrix Market, whose claims are checked before they are read."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bica.errors import BicaError, DataError, LimitError
from bica.kernels.bits import n_words
from bica.text import brief, counted

COLUMNS_LIMIT = 1 << 20  # names and thresholds of so many columns take some 200 MB
FREE_BYTES = 1 << 27  # that a table may take as bit sets, however few cells are stored: some 5 seconds of work
BYTES_PER_STORED_BYTE = 1 << 10  # and what each stored byte adds to that; rows are seldom as empty
REASON = 300  # characters of what a library says, which may quote all of a header
UNPACKED_LIMIT = 1 << 8  # times the size of an archive; sparse matrices shrink to a tenth at best


def check_shape(shape: tuple[int, ...], n_stored_bytes: int, what: str) -> None:
    """Refuse a shape that would take far more memory than what is stored of the matrix.

    >>> check_shape((1, 10**8), 67, "week.mtx")
    Traceback (most recent call last):
    bica.errors.LimitError: week.mtx claims 100000000 columns; a table has at most 1048576
    """
    if len(shape) != 2:
        return  # refused with a sentence of its own, once the values are at hand
    n_rows, n_columns = shape
    if n_columns > COLUMNS_LIMIT:
        raise LimitError(f"{what} claims {n_columns} columns; a table has at most {COLUMNS_LIMIT}")
    if n_rows * n_words(n_columns) * 8 > FREE_BYTES + BYTES_PER_STORED_BYTE * n_stored_bytes:
        raise LimitError(
            f"{what} claims {counted(n_rows, 'row')} of {counted(n_columns, 'cell')}, but stores next to nothing; "
            "leave out the empty rows, or give equal rows once, with weights"
        )


def read_matrix(path: Path, kind: str) -> Any:
    """The array or sparse matrix in a file; a ``.npy`` is mapped, not loaded."""
    with _as_sentence(path, kind):
        return READERS[kind](path)


@contextmanager
def _as_sentence(path: Path, kind: str) -> Iterator[None]:
    """Whatever the libraries say of a damaged file, as one sentence."""
    try:
        yield
    except LimitError:
        raise
    except Exception as error:  # noqa: BLE001 - which error damage causes is up to NumPy, SciPy, zlib and zipfile
        if kind == "npy" and "Python objects" in str(error):
            why = "it holds Python objects, which could run code; save it as booleans or numbers"
        elif isinstance(error, BicaError | OSError | ValueError | KeyError | MemoryError | zipfile.BadZipFile):
            why = str(error).strip().split("\n")[0][:REASON] or "it is cut or damaged"
        else:
            why = "it is cut or damaged"
        raise DataError(f"{path} cannot be read as .{kind}: {why}") from None


def _read_npy(path: Path) -> NDArray[Any]:
    with path.open("rb") as file:
        shape, _, kind = _header(file)
    _check_dtype(kind)
    check_shape(shape, path.stat().st_size, str(path))
    return np.lib.format.open_memmap(path, mode="r")  # never unpickles


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type in the header of an array file."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, kind = read(file)
    if any(length < 0 for length in shape):
        raise ValueError(f"its shape {shape} is negative")
    return shape, by_columns, kind


def _check_dtype(kind: np.dtype[Any]) -> None:
    if kind.hasobject:
        raise ValueError("Python objects")
    if kind.kind not in "biufc":  # complex numbers are refused by name once they are read
        raise ValueError(f"it holds {kind.name}, not booleans or numbers")


def _read_npz(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        n_bytes = sum(member.file_size for member in archive.infolist())
        if n_bytes > FREE_BYTES + UNPACKED_LIMIT * path.stat().st_size:
            raise LimitError(f"{path} would take {n_bytes} bytes unpacked, far more than a sparse matrix of its size")
        for name in archive.namelist():
            with archive.open(name) as file:
                shape, _, kind = _header(file)
            if name != "format.npy":
                _check_dtype(kind)
            if name == "shape.npy" and shape != (2,):
                raise ValueError(f"its shape has {shape} numbers in place of two")
        if "shape.npy" not in archive.namelist():
            return _read_only_array(archive, path)
        with archive.open("shape.npy") as file:
            n_rows, n_columns = np.lib.format.read_array(file, allow_pickle=False).tolist()
    check_shape((n_rows, n_columns), path.stat().st_size, str(path))
    return sparse.load_npz(path)


def _read_only_array(archive: zipfile.ZipFile, path: Path) -> NDArray[Any]:
    """The one array of an archive that ``numpy.savez`` wrote; which of several is the table, nobody knows."""
    names = [name.removesuffix(".npy") for name in archive.namelist()]
    if len(names) != 1:
        held = f"it holds the arrays {brief(', '.join(names))}" if names else "it is empty"
        raise ValueError(f"{held}; save the table alone with numpy.save, or with scipy.sparse.save_npz")
    with archive.open(archive.namelist()[0]) as file:
        check_shape(_header(file)[0], path.stat().st_size, str(path))
    with archive.open(archive.namelist()[0]) as file:
        table: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return table


@dataclass(frozen=True, slots=True)
class _MarketHeader:
    """What the first lines of a Matrix Market file promise."""

    layout: str  # coordinate or array
    field: str  # real, integer, unsigned-integer, double or pattern
    symmetry: str  # general, symmetric or skew-symmetric
    shape: tuple[int, int]
    n_entries: int  # lines that follow

    @property
    def n_numbers(self) -> int:
        """How many numbers stand in a line."""
        if self.layout == "array":
            return 1
        return 2 if self.field == "pattern" else 3


FIELDS = {"coordinate": "real integer unsigned-integer double pattern", "array": "real integer unsigned-integer double"}
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
NUMBER = rb"[0-9eE+\-.naifNAIFtyTY]++"
MARKET_PIECE = 1 << 24  # bytes read at a time
LONGEST_HEADER = 1 << 16  # bytes of a line before the numbers


def _read_market(path: Path) -> Any:
    with path.open("rb") as file:
        header = _market_header(file)
        check_shape(header.shape, path.stat().st_size, str(path))
        numbers = _market_numbers(file, header)
    return _market_array(header, numbers) if header.layout == "array" else _market_sparse(header, numbers)


def _market_header(file: IO[bytes]) -> _MarketHeader:
    words = _market_line(file).lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError("its first line is no header of a Matrix Market file")
    layout, field, symmetry = words[2:]
    if layout not in FIELDS or field not in FIELDS[layout].split() or symmetry not in SYMMETRIES:
        raise ValueError(f"a matrix of kind {brief(' '.join(words[2:]))} cannot be read as 0 and 1")
    line = "%"
    while line.startswith("%") or not line.strip():
        line = _market_line(file)
    sizes = [int(word) for word in line.split() if re.fullmatch("[0-9]{1,18}", word)]
    if len(sizes) != len(line.split()) or len(sizes) != (3 if layout == "coordinate" else 2):
        raise ValueError("its line of sizes is damaged")
    n_rows, n_columns = sizes[:2]
    if symmetry != "general" and n_rows != n_columns:
        raise ValueError(f"it cannot be {symmetry} with {n_rows} rows and {n_columns} columns")
    stored = n_rows * n_columns if symmetry == "general" else n_rows * (n_rows + 1) // 2
    if symmetry == "skew-symmetric":
        stored -= n_rows
    return _MarketHeader(layout, field, symmetry, (n_rows, n_columns), sizes[2] if layout == "coordinate" else stored)


def _market_line(file: IO[bytes]) -> str:
    line = file.readline(LONGEST_HEADER)
    if not line.endswith(b"\n"):
        raise ValueError("its header is cut or damaged")
    return line.decode("utf-8", "replace")


def _market_numbers(file: IO[bytes], header: _MarketHeader) -> NDArray[np.float64]:
    """All numbers behind the header: (n_entries, n_numbers)."""
    entry = rb"(?:[ \t]++".join([NUMBER] * header.n_numbers) + rb")" * (header.n_numbers - 1)
    lines = re.compile(rb"(?:[ \t]*+(?:" + entry + rb"[ \t]*+)?+\r?+\n)*+")
    parts, n_read, wanted = [np.empty(0)], 0, header.n_entries * header.n_numbers
    for piece in _whole_lines(file):
        if not lines.fullmatch(piece):
            raise ValueError(f"a line does not hold {counted(header.n_numbers, 'number')}")
        parts.append(_numbers(piece))
        n_read += parts[-1].size
        if n_read > wanted:
            break
    if n_read != wanted:
        promised = counted(header.n_entries, "line")
        raise ValueError(f"it promises {promised} of numbers, but holds {'more' if n_read > wanted else 'fewer'}")
    return np.concatenate(parts).reshape(header.n_entries, header.n_numbers)


def _numbers(text: bytes) -> NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # how older NumPy tells of text that is no number
        try:
            return np.fromstring(text, np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            raise ValueError("it holds something that is not a number") from None


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """The rest of the file in pieces of whole lines."""
    rest = b""
    while piece := file.read(MARKET_PIECE):
        whole, end, rest = (rest + piece).rpartition(b"\n")
        if len(rest) > LONGEST_HEADER:
            raise ValueError("it holds a line without end")
        yield whole + end
    if rest:
        yield rest + b"\n"


def _market_sparse(header: _MarketHeader, numbers: NDArray[np.float64]) -> Any:
    places, (n_rows, n_columns) = numbers[:, :2], header.shape
    if not ((places >= 1) & (places <= header.shape) & (places == np.floor(places))).all():
        raise ValueError(f"it stores a cell outside its {n_rows} rows and {n_columns} columns")
    rows, columns = (places - 1).astype(np.int64).T
    values = np.ones(len(rows)) if header.field == "pattern" else numbers[:, 2]
    if header.symmetry != "general":
        below = rows != columns
        sign = -1.0 if header.symmetry == "skew-symmetric" else 1.0
        rows, columns = np.append(rows, columns[below]), np.append(columns, rows[below])
        values = np.append(values, sign * values[below])
    return sparse.coo_array((values, (rows, columns)), shape=header.shape)


def _market_array(header: _MarketHeader, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    if header.symmetry == "general":
        return numbers.reshape(header.shape[::-1]).T  # column by column
    sign = -1.0 if header.symmetry == "skew-symmetric" else 1.0
    table = np.zeros(header.shape)
    columns, rows = np.triu_indices(header.shape[0], 1 if sign < 0 else 0)
    table[rows, columns] = numbers[:, 0]
    table[columns, rows] = sign * numbers[:, 0]
    return table


READERS: dict[str, Callable[[Path], Any]] = {"npy": _read_npy, "npz": _read_npz, "mtx": _read_market}
