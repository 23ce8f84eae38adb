"""Dask and Spark: partitions on the workers of a cluster, and functions of rows that are mapped over them.

The workers pack their rows into bits once and keep them. Only sums and samples come to the driver.
"""

from __future__ import annotations

import operator
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from glob import glob
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from bica.data.columns import Columns
from bica.data.partitions import Partition, Partitions, Statistic, one_of
from bica.data.readers.frames import FrameTable, LazyTable
from bica.errors import DataError, SettingError

ENGINES = {"dask": "dask", "dask_expr": "dask", "pyspark": "spark"}  # by the package of a frame
ADDED_AT_ONCE = 8  # statistics that one worker adds up, so that none waits for all


@dataclass(frozen=True, slots=True)
class DaskFiles:
    """Parquet files that the workers of Dask read by themselves: quicker than a frame, which would need pandas."""

    files: tuple[str, ...]

    def frame(self) -> Any:
        """The same as a frame, which groups its rows where there are few columns."""
        import dask.dataframe as dd
        import pyarrow.parquet as pq

        return dd.read_parquet(list(self.files))[pq.read_schema(self.files[0]).names]


def engine_of(frame: Any) -> str | None:
    """The engine of a data frame, or of files: "dask", "spark", or None for any other."""
    if isinstance(frame, DaskFiles):
        return "dask"
    home = type(frame).__module__.split(".")[0]
    return ENGINES.get(home) if type(frame).__name__ == "DataFrame" else None


def partitions_on(table: LazyTable) -> Partitions | None:
    """The partitions of a lazy frame on the workers of its engine; None where that is no cluster."""
    native = table.frame.to_native()
    engine = engine_of(native)
    if engine is None:
        return None
    return (
        DaskPartitions.of_frame(native, table.columns) if engine == "dask" else SparkPartitions(native, table.columns)
    )


class DaskPartitions:
    """Partitions on the workers of Dask, on whatever scheduler is in use: threads, processes or a cluster."""

    def __init__(self, sensors: tuple[str, ...], tasks: Sequence[Any]) -> None:
        import dask

        self.sensors = sensors
        self.parts = dask.persist(*tasks)

    @classmethod
    def of_frame(cls, frame: Any, columns: Columns) -> DaskPartitions:
        """The partitions of a frame."""
        import dask

        pack = dask.delayed(packed, pure=False)
        return cls(columns.sensors, [pack(part, columns, number) for number, part in enumerate(frame.to_delayed())])

    @classmethod
    def of_files(cls, files: Sequence[Path], columns: Columns) -> DaskPartitions:
        """The row groups of Parquet files, several of them in a partition where they are small."""
        import dask

        pack = dask.delayed(packed_groups, pure=False)
        parts = [(str(file), *groups) for file in files for groups in _row_groups(file, len(columns.sensors))]
        return cls(columns.sensors, [pack(*part, columns, number) for number, part in enumerate(parts)])

    def summed(self, statistic: Callable[..., Statistic], *given: Any) -> Statistic:
        """The sum over all partitions; the workers add up, and the driver gets the total."""
        import dask

        shared = dask.delayed(given, pure=False, traverse=False)
        level = [dask.delayed(_applied, pure=False)(statistic, part, shared) for part in self.parts]
        add = dask.delayed(_added, pure=False)
        while len(level) > 1:
            level = [add(level[k : k + ADDED_AT_ONCE]) for k in range(0, len(level), ADDED_AT_ONCE)]
        return level[0].compute()  # type: ignore[no-any-return]


def packed(frame: Any, columns: Columns, number: int) -> Partition:
    """One partition of a frame as bits, on the worker that has it."""
    table = FrameTable(nw.from_native(frame, eager_only=True), columns, in_order=False)
    nothing = Partition.of_cells(np.zeros((len(columns.sensors), 0), np.uint8))
    one = one_of([nothing, *(table.partitions(-1) or ())])
    return Partition(one.on, one.n_rows, one.observed, one.weights, number)


CELLS_A_TASK = 1 << 26  # of a file that a worker reads at once


def _row_groups(file: Path, n_sensors: int) -> Iterator[tuple[list[int], int]]:
    """Numbers of row groups that are read together, and the number of their first row; one part at least."""
    import pyarrow.parquet as pq

    groups: list[int] = []
    first = n_rows = 0
    meta = pq.read_metadata(file)
    for group in range(meta.num_row_groups):
        if groups and n_rows * n_sensors >= CELLS_A_TASK:
            yield groups, first
            groups, first, n_rows = [], first + n_rows, 0
        groups.append(group)
        n_rows += meta.row_group(group).num_rows
    yield groups, first


def packed_groups(file: str, groups: list[int], first_row: int, columns: Columns, number: int) -> Partition:
    """Some row groups of a Parquet file as bits, read by a worker."""
    import pyarrow.parquet as pq

    from bica.data.readers.arrow import partition_of, rows_a_batch

    parts = [Partition.of_cells(np.zeros((len(columns.sensors), 0), np.uint8))]
    try:
        with pq.ParquetFile(file, pre_buffer=False) as source:
            size = rows_a_batch(len(columns.sensors))
            for batch in source.iter_batches(size, row_groups=groups, use_threads=False) if groups else ():
                parts.append(partition_of(batch, columns, first_row + sum(part.n_rows for part in parts)))
            if any(part.n_rows % 64 for part in parts[:-1]):  # which cannot be followed by others
                parts = [partition_of(source.read_row_groups(groups, use_threads=False), columns, first_row)]
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    one = one_of(parts)
    return Partition(one.on, one.n_rows, one.observed, one.weights, number)


def _applied(statistic: Callable[..., Statistic], part: Partition, given: tuple[Any, ...]) -> Statistic:
    return statistic(part, *given)


def _added(values: Sequence[Any]) -> Any:
    return reduce(operator.add, values)


class SparkPartitions:
    """Partitions of a Spark frame, packed on its workers and kept there."""

    def __init__(self, frame: Any, columns: Columns) -> None:
        self.sensors = columns.sensors
        packed_parts = frame.mapInArrow(partial(_packed_by_spark, columns), "part binary")
        self.parts = packed_parts.rdd.map(_unpickled).persist()

    def summed(self, statistic: Callable[..., Statistic], *given: Any) -> Statistic:
        """The sum over all partitions; the workers add up, and the driver gets the total."""
        values = self.parts.map(partial(_applied_by_spark, statistic, given))
        return values.treeReduce(operator.add)  # type: ignore[no-any-return]


def _packed_by_spark(columns: Columns, batches: Iterable[Any]) -> Iterator[Any]:
    """One partition of a frame, which comes in batches, as one cell; its number is that of the task."""
    import pyarrow as pa
    from pyspark import TaskContext

    from bica.data.readers.arrow import partition_of

    arrived, context = list(batches), TaskContext.get()
    one = Partition.of_cells(np.zeros((len(columns.sensors), 0), np.uint8))
    if sum(batch.num_rows for batch in arrived):
        one = partition_of(pa.Table.from_batches(arrived), columns)
    numbered = Partition(one.on, one.n_rows, one.observed, one.weights, context.partitionId())
    yield pa.record_batch({"part": pa.array([pickle.dumps(numbered)], pa.binary())})


def _unpickled(row: Any) -> Partition:
    return pickle.loads(row.part)  # type: ignore[no-any-return]  # noqa: S301 - our own, of a worker of this job


def _applied_by_spark(statistic: Callable[..., Statistic], given: tuple[Any, ...], part: Partition) -> Statistic:
    return statistic(part, *given)


def frame_of_files(path: str, engine: str) -> Any:
    """The Parquet files of a folder or a pattern, for an engine to read; keys in names of folders are no columns."""
    folder = Path(path)
    found = sorted(folder.rglob("*.parquet")) if folder.is_dir() else sorted(map(Path, glob(path, recursive=True)))
    files = [str(file) for file in found if not file.name.startswith((".", "_"))]
    if not files or not all(file.endswith(".parquet") for file in files):
        raise DataError(f"there are no Parquet files in {path}, and only these are read by {engine}")
    try:
        return _dask_files(files) if engine == "dask" else _spark_frame(files)
    except ImportError:
        raise SettingError(f'{engine} is not installed; `pip install "bica[{engine}]"` brings it') from None


def _dask_files(files: list[str]) -> DaskFiles:
    from distributed import Client, get_client

    try:
        get_client()
    except ValueError:
        Client(set_as_default=True)  # of the cluster that DASK_SCHEDULER_ADDRESS names, else of one on this machine
    return DaskFiles(tuple(files))


def _spark_frame(files: list[str]) -> Any:
    """A frame of the session that runs, else of a new one: where PYSPARK_SUBMIT_ARGS says, or on this machine."""
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers would take `python3`, which may lack this package
    session = SparkSession.builder.appName("bica").getOrCreate()
    names = [f"`{name.replace('`', '``')}`" for name in pq.read_schema(files[0]).names]
    return session.read.parquet(*files).select(*names)


RowsFunction = Callable[[Any], Any]  # from a pandas frame to a pandas frame with one line per row


def mapped(frame: Any, function: RowsFunction, names: Sequence[str], kind: type) -> Any:
    """A frame of the same engine with what ``function`` makes of each partition: columns ``names`` of one kind."""
    if engine_of(frame) == "spark":
        typed = ", ".join(f"`{name.replace('`', '``')}` {SPARK_TYPES[kind]}" for name in names)
        return frame.mapInPandas(partial(_mapped_by_spark, function), typed)
    import pandas as pd

    meta = pd.DataFrame({name: pd.Series(dtype=kind) for name in names})
    return frame.map_partitions(function, meta=meta)


SPARK_TYPES: dict[type, str] = {bool: "boolean", float: "double"}


def _mapped_by_spark(function: RowsFunction, frames: Iterable[Any]) -> Iterator[Any]:
    for frame in frames:
        yield function(frame)


def framed(frame: Any, cells: Any, names: Sequence[str]) -> Any:
    """Cells of the rows of a pandas frame as another one, with its index."""
    import pandas as pd

    return pd.DataFrame(cells, columns=list(names), index=frame.index)
