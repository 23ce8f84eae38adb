"""Arrays and sparse matrices in files: ``.npy``, ``.npz`` of SciPy, and Matrix Market."""

import csv
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.io
from scipy import sparse

from bica.data.arrays import ArrayTable, two_dimensional
from bica.data.chunks import Table
from bica.data.columns import Options, numbered
from bica.data.sparse import check_sparse, sparse_table
from bica.errors import DataError


def matrix_table(path: Path, kind: str, options: Options) -> Table:
    """The table in such a file; a ``.npy`` is mapped, not loaded, the others are as large as their stored cells."""
    options.refuse_named_weights(f"{path}")
    matrix = _load(path, kind)
    return table_of_matrix(matrix, names_beside(path, matrix.shape), options)


def table_of_matrix(matrix: Any, names: list[str] | None, options: Options) -> Table:
    """An array or a sparse matrix as a table."""
    if sparse.issparse(matrix):
        check_sparse(matrix)
    else:
        matrix = two_dimensional(matrix)
    columns = options.columns(numbered(matrix.shape[1]) if names is None else names)
    weights = options.weights(matrix.shape[0])
    return sparse_table(matrix, columns, weights) if sparse.issparse(matrix) else ArrayTable(matrix, columns, weights)


def names_beside(path: Path, shape: tuple[int, ...]) -> list[str] | None:
    """The names in ``<stem>_columns.csv`` beside the file: under the heading ``column``, one a line."""
    beside = path.with_name(f"{path.stem}_columns.csv")
    if not beside.is_file():
        return None
    try:
        with beside.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        rows = []
    if not rows or rows[0] != ["column"] or any(len(row) != 1 for row in rows):
        raise DataError(f"{beside} must hold the heading `column` and then one name a line")
    if len(shape) == 2 and len(rows) - 1 != shape[1]:
        raise DataError(f"{beside} names {len(rows) - 1} columns, but {path} has {shape[1]}")
    return [name for (name,) in rows[1:]]


def _load(path: Path, kind: str) -> Any:
    try:
        if kind == "npy":
            return np.lib.format.open_memmap(path, mode="r")  # never unpickles
        return sparse.load_npz(path) if kind == "npz" else scipy.io.mmread(path)
    except (OSError, ValueError, KeyError, EOFError, TypeError, OverflowError, MemoryError, BadZipFile) as error:
        raise DataError(f"{path} cannot be read as .{kind}: {_why(error, kind)}") from None


def _why(error: Exception, kind: str) -> str:
    message = str(error).strip().split("\n")[0]
    if kind == "npy" and "Python objects" in message:
        return "it holds Python objects, which could run code; save it as booleans or numbers"
    return message or "it is cut or damaged"
