"""One door for tables of every kind."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
from narwhals.exceptions import DuplicateError

from bica.data.chunks import Table
from bica.data.columns import Binarize, Options
from bica.data.files import open_file
from bica.data.frames import FrameTable
from bica.data.lazy import LazyTable, check_lazy_types
from bica.data.matrix_files import table_of_matrix
from bica.data.relations import Relation, RelationTable, check_types
from bica.data.standard_input import open_standard_input
from bica.errors import DataError

__all__ = ["Binarize", "open_table"]


def open_table(
    x: Any,
    *,
    sensors: Sequence[str] | None = None,
    sample_weight: Any = None,
    binarize: Binarize = None,
) -> Table:
    """Look at ``x`` just enough to know its columns; the rows are read later, chunk by chunk.

    ``x`` is an array, a list of rows, a sparse matrix, a data frame (also a lazy one), a DuckDB relation, a path or
    ``"-"`` for standard input. ``sample_weight`` holds one weight a row, or names the column of a frame, a relation
    or a file that does.

    >>> open_table([[0, 1], [1, 1]], sensors=["door", "window"]).sensors
    ('door', 'window')
    """
    options = Options(sensors, sample_weight, binarize)
    if isinstance(x, str | os.PathLike):
        return open_standard_input(options) if str(x) == "-" else open_file(Path(x), options)
    if isinstance(x, duckdb.DuckDBPyRelation):
        return _open_relation(x, options)
    frame = _frame_in(x)
    if isinstance(frame, nw.DataFrame):
        return FrameTable(frame, options.columns(frame.columns), options.weights(len(frame)))
    if isinstance(frame, nw.LazyFrame):
        return _open_lazy(frame, options)
    options.refuse_named_weights("an array")
    return table_of_matrix(x, None, options)


def _frame_in(x: Any) -> Any:
    """The data frame that narwhals sees in ``x``, or ``x`` itself."""
    try:
        frame = nw.from_native(x, pass_through=True)
        if frame is x and hasattr(x, "__arrow_c_stream__") and hasattr(x, "schema"):
            return nw.from_arrow(x, backend="pyarrow")  # a record batch, or a stream of them
        return frame
    except DuplicateError as error:
        raise DataError(f"two columns have the same name: {str(error).splitlines()[-1].strip('- ')}") from None


def _open_relation(relation: duckdb.DuckDBPyRelation, options: Options) -> Table:
    options.refuse_weights("a relation")
    check_types(relation.columns, relation.types)
    return RelationTable(Relation(relation), options.columns(relation.columns))


def _open_lazy(frame: nw.LazyFrame[Any], options: Options) -> Table:
    native = frame.to_native()
    if isinstance(native, duckdb.DuckDBPyRelation):
        return _open_relation(native, options)
    options.refuse_weights("a lazy frame")
    schema = frame.collect_schema()
    check_lazy_types(schema)
    return LazyTable(frame, options.columns(schema.names()))
