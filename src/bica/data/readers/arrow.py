"""Arrow's columns as column bits: Booleans are bit sets already, and no cell becomes a Python object.

Batches come from Parquet, Feather, object stores and datasets of files where PyArrow is installed, and from the workers
of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bica.data.columns import MISSING, STRANGE, Chunk, Columns, Options, cells_of, checked_weights, strange_value
from bica.data.partitions import Partition, joined
from bica.data.readers.frames import check_lazy_types, looks_of_frame, texts_of
from bica.errors import DataError
from bica.kernels.bits import Words

CELLS_A_BATCH = 1 << 20  # PyArrow takes some ten bytes per cell while it reads
FEWEST_ROWS, MOST_ROWS = 1 << 11, 1 << 14  # of a batch: a call per column costs as much as some thousand cells


def has_arrow() -> bool:
    """Whether PyArrow is there."""
    try:
        import pyarrow.parquet  # noqa: F401 - only whether it is there
    except ImportError:
        return False
    return True


def rows_a_batch(n_sensors: int) -> int:
    """How many rows make a batch: a multiple of 64."""
    return min(MOST_ROWS, max(FEWEST_ROWS, CELLS_A_BATCH // max(1, n_sensors) // 64 * 64))


def partition_of(batch: Any, columns: Columns, first_row: int = 0) -> Partition:
    """The sensors of a batch as bits, with their weights; what is neither 0 nor 1 is refused by row and column.

    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"a": [True, None, False], "b": [1.0, 0.0, 1.0]})
    >>> part = partition_of(batch, Columns(("a", "b")))
    >>> part.on[:, 0], part.observed[:, 0]
    (array([1, 5], dtype=uint64), array([5, 7], dtype=uint64))
    """
    n_rows, n_sensors = batch.num_rows, len(columns.sensors)
    n_words = max(1, -(-n_rows // 64))
    on = np.zeros((n_sensors, n_words), np.uint64)
    known: Words | None = None
    for sensor, place in enumerate(columns.places):
        threshold = np.nan if columns.thresholds is None else float(columns.thresholds[sensor])
        bits, gaps = _bits_of(_array(batch.column(place)), threshold, columns.sensors[sensor], first_row)
        on[sensor].view(np.uint8)[: bits.size] = bits
        if gaps is not None:
            known = _all_rows(n_sensors, n_rows) if known is None else known
            known[sensor].view(np.uint8)[: gaps.size] = gaps
            on[sensor] &= known[sensor]
    _clear_tail(on, n_rows)
    if known is not None:
        _clear_tail(known, n_rows)
    weights = None
    if columns.weight is not None:
        numbers = _numbers(_array(batch.column(columns.weight)))
        weights = checked_weights(np.where(numbers[1], np.nan, numbers[0].astype(np.float64)), first_row)
    return Partition(on, n_rows, known, weights)


def _array(column: Any) -> Any:
    """The column in one piece."""
    if not hasattr(column, "chunks"):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _bits_of(
    column: Any, threshold: float, sensor: str, first_row: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
    """The cells that are on, and those that were observed (None: all), as bytes of eight rows each."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type) and np.isnan(threshold) and column.offset % 8 == 0:
        return _buffer(column, 1), None if not column.null_count else _buffer(column, 0)
    values, gaps = _numbers(column)
    cells = cells_of(values, None if np.isnan(threshold) else threshold)
    cells = np.where(gaps, np.uint8(MISSING), cells) if column.null_count else cells
    if cells.max(initial=0) == STRANGE:
        row = int(np.argmax(cells == STRANGE))
        raise strange_value(first_row + row, sensor, column[row].as_py())
    observed = None if cells.max(initial=0) < MISSING else np.packbits(cells != MISSING, bitorder="little")
    return np.packbits(cells == 1, bitorder="little"), observed


def _buffer(column: Any, which: int) -> NDArray[np.uint8]:
    """The bits of a column: its validity, or its values; those behind the last row may be anything."""
    first, n_bytes = column.offset // 8, -(-len(column) // 8)
    return np.frombuffer(column.buffers()[which], np.uint8)[first : first + n_bytes]


def _numbers(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values as an array, and which of them are null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    gaps = np.zeros(len(column), dtype=bool)
    if column.null_count:
        gaps = column.is_null().to_numpy(zero_copy_only=False)
        column = pc.cast(column, pa.float64()) if pa.types.is_null(column.type) else column
        column = column.fill_null(pa.scalar(0).cast(column.type))
    if pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.float64())
    return column.to_numpy(zero_copy_only=False), gaps


def _all_rows(n_sensors: int, n_rows: int) -> Words:
    known = np.full((n_sensors, max(1, -(-n_rows // 64))), ~np.uint64(0))
    _clear_tail(known, n_rows)
    return known


def _clear_tail(columns: Words, n_rows: int) -> None:
    """Bits behind the last row are 0."""
    if n_rows % 64 or not n_rows:
        columns[:, -1] &= np.uint64((1 << n_rows % 64) - 1)


def partitions_of_parquet(path: Path, columns: Columns) -> Iterator[Partition]:
    """The rows of a Parquet file, batch by batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            batches = file.iter_batches(rows_a_batch(len(columns.sensors)), use_threads=False)
            yield from _partitions(batches, columns)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
    finally:
        pa.default_memory_pool().release_unused()  # what it keeps for the next file would add to what learning takes


def _partitions(batches: Iterator[Any], columns: Columns) -> Iterator[Partition]:
    def small() -> Iterator[Partition]:
        first_row = 0
        for batch in batches:
            yield partition_of(batch, columns, first_row)
            first_row += batch.num_rows

    return joined(small())


@dataclass(frozen=True, slots=True)
class ArrowTable:
    """Batches that can be asked for again and again: of a dataset of files, or of one Feather file."""

    batches: Callable[[], Iterator[Any]]
    columns: Columns
    count_rows: Callable[[], int]

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.sensors

    def partitions(self, large: int) -> Iterator[Partition] | None:
        """The rows column by column, if the table has more than ``large`` cells."""
        return _partitions(self.batches(), self.columns) if self.count_rows() * len(self.sensors) > large else None

    def chunks(self) -> Iterator[Chunk]:
        """Every row, in order."""
        first_row = 0
        for batch in self.batches():
            frame = nw.from_native(batch_as_table(batch), eager_only=True)
            labels = tuple(texts_of(frame[:, place]) for _, place in self.columns.carried)
            yield replace(partition_of(batch, self.columns, first_row).rows(), labels=labels)
            first_row += batch.num_rows

    def distinct(self) -> Iterator[Chunk]:
        """The same rows for counting only."""
        return self.chunks()


def batch_as_table(batch: Any) -> Any:
    """A batch as a table of one batch, which narwhals knows."""
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def dataset_table(dataset: Any, options: Options, what: str = "a dataset") -> ArrowTable:
    """A ``pyarrow.dataset``, also of many files; keys in the names of its folders are no sensors."""
    files = getattr(dataset, "files", None) or []
    keys = {part.split("=", 1)[0] for file in files[:1] for part in Path(file).parts[:-1] if "=" in part}
    names = [name for name in dataset.schema.names if name not in keys]
    first = nw.from_native(dataset.head(100, columns=names), eager_only=True)
    columns = options.columns(names, what, looks_of_frame(first))
    check_lazy_types(first.schema, columns)
    size = rows_a_batch(len(columns.sensors))

    def batches() -> Iterator[Any]:
        try:
            yield from dataset.to_batches(columns=names, batch_size=size, use_threads=False)
        except OSError as error:
            raise DataError(f"{what} cannot be read to its end: {str(error).splitlines()[0]}") from None

    return ArrowTable(batches, columns, dataset.count_rows)


def feather_table(path: Path, options: Options) -> ArrowTable:
    """A Feather or Arrow file; only what is read of it is in memory."""
    try:
        import pyarrow as pa
        import pyarrow.dataset as pads
    except ImportError:
        raise DataError(f"{path} is an Arrow file, which needs PyArrow; install it, or write Parquet") from None
    try:
        return dataset_table(pads.dataset(path, format="feather"), options, "a file")
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a whole Arrow file: {str(error).splitlines()[0]}") from None


STORES = ("s3://", "gs://", "gcs://", "abfs://", "abfss://", "hdfs://")  # that PyArrow knows


def stored_table(address: str, options: Options) -> ArrowTable:
    """Parquet files in an object store: one, or all below a prefix; PyArrow finds out how to reach it and as whom."""
    parts = urlsplit(address)
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"  # a key may stand before it
    try:
        import pyarrow as pa
        import pyarrow.dataset as pads
        from pyarrow.fs import FileSystem
    except ImportError:
        raise DataError(f"{shown} is in an object store, which needs PyArrow; install it, or copy the files") from None
    try:
        system, path = FileSystem.from_uri(address)
        return dataset_table(pads.dataset(path, filesystem=system, format="parquet"), options, "an object store")
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{shown} cannot be read: {str(error).splitlines()[0]}") from None
