"""Arrow's columns as bits: Booleans, numbers, missing cells, weights; datasets and Feather files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.data.columns import Options
from bica.data.observations import TableSums, observations_of
from bica.data.partitions import Partition, Shelf
from bica.data.patterns import PatternCounts
from bica.data.readers.arrow import partition_of
from bica.data.rows import Rows
from bica.data.tables import open_table
from bica.errors import DataError

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset as pads  # noqa: E402
import pyarrow.feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

TYPES = ["bool", "int8", "float32", "float64", "decimal"]


@st.composite
def arrow_tables(draw):
    """Columns of every type, with missing cells, cut anywhere."""
    n_rows, n_columns = draw(st.integers(0, 140)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cells = rng.choice(3, (n_columns, n_rows), p=[0.5, 0.4, 0.1])
    arrays = []
    for column in cells:
        name = draw(st.sampled_from(TYPES))
        kind = {"bool": pa.bool_(), "int8": pa.int8(), "float32": pa.float32(), "float64": pa.float64()}.get(name)
        values = [None if cell == 2 else bool(cell) if name == "bool" else int(cell) for cell in column]
        arrays.append(
            pa.array(values, pa.int64()).cast(pa.decimal128(19, 0)) if kind is None else pa.array(values, kind)
        )
    return pa.table(arrays, names=[f"s{i}" for i in range(n_columns)]), draw(st.integers(0, n_rows))


@given(arrow_tables())
def test_columns_of_every_type_become_the_bits_that_frames_become(given_table):
    table, first = given_table
    part = table.slice(first)  # an offset that need not be a multiple of eight
    columns = Options().columns(table.column_names)
    found = TableSums.of(Shelf.of([partition_of(part, columns)], columns.sensors)).counts()
    assert found == PatternCounts.of_chunks(open_table(part).chunks(), columns.sensors)


def test_thresholds_and_weights():
    table = pa.table({"a": [0.2, 0.9, float("nan")], "n": [2, 0, 5], "b": [7, 1, 3]})
    columns = Options(sample_weight="n", binarize={"a": 0.5, "b": 2}).columns(table.column_names)
    part = partition_of(table, columns)
    assert part.on[:, 0].tolist() == [2, 5]
    assert part.observed is not None
    assert part.observed[:, 0].tolist() == [3, 7]
    assert part.weights is not None
    assert part.weights.tolist() == [2, 0, 5]


def test_what_is_neither_0_nor_1_is_named():
    with pytest.raises(DataError, match="row 12, column 'b' holds 7"):
        partition_of(pa.table({"a": [1, 0], "b": [1, 7]}), Options().columns(["a", "b"]), first_row=11)


def rows_of(n_rows, n_columns, seed=0):
    return np.random.default_rng(seed).random((n_rows, n_columns)) < 0.1


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({f"s{i}": column for i, column in enumerate(rows.T)}), path)


def test_a_dataset_is_one_table_whose_folder_keys_are_no_sensors(tmp_path):
    rows = rows_of(90, 66)
    for k in range(3):
        write(tmp_path / f"day={k % 2}" / f"part{k}.parquet", rows[30 * k : 30 * k + 30])
    dataset = pads.dataset(tmp_path, partitioning="hive")
    counts = PatternCounts.of(dataset)
    assert counts == PatternCounts.of(rows, sensors=[f"s{i}" for i in range(66)])
    assert observations_of(open_table(dataset), large=10).counts() == counts


@pytest.mark.parametrize("ending", ["feather", "arrow"])
def test_feather_files_are_read(tmp_path, ending):
    rows = rows_of(50, 5)
    path = tmp_path / f"table.{ending}"
    pyarrow.feather.write_feather(pa.table({f"s{i}": column for i, column in enumerate(rows.T)}), str(path))
    assert Rows.of(path).cells(5).tolist() == rows.astype(int).tolist()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="not a whole Arrow file"):
        Rows.of(path)


@pytest.mark.slow
def test_ten_thousand_columns_of_parquet(tmp_path):
    rows = rows_of(100, 10_000)
    write(tmp_path / "wide.parquet", rows)
    table = open_table(tmp_path / "wide.parquet")
    parts = list(table.partitions(1000))
    assert sum(part.n_rows for part in parts) == 100
    assert np.array_equal(parts[0].on, Partition.of_cells(rows.T.astype(np.uint8)).on)


def test_a_large_file_without_pyarrow_is_read_by_the_engine(tmp_path, monkeypatch):
    rows = rows_of(70, 66)
    write(tmp_path / "table.parquet", rows)
    table = open_table(tmp_path / "table.parquet")
    with_arrow = observations_of(table, large=10).counts()
    monkeypatch.setattr("bica.data.readers.relations.has_arrow", lambda: False)
    assert observations_of(table, large=10).counts() == with_arrow == PatternCounts.of(table)


@pytest.mark.parametrize("n_columns", [5, 30])  # counted by a histogram, and by a hash table
def test_booleans_of_large_narrow_files_are_counted_as_bits(n_columns, tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    for number, gaps in enumerate((0.0, 0.05)):
        cells = rng.random((n_columns, 700)) < 0.2
        columns = [pa.array(column, pa.bool_(), mask=rng.random(700) < gaps) for column in cells]
        pq.write_table(pa.table(columns, names=[f"s{i}" for i in range(n_columns)]), tmp_path / f"{number}.parquet")
    grouped = PatternCounts.of(tmp_path)
    monkeypatch.setattr("bica.data.readers.relations.BITS_PAY", 0)
    asked = []
    monkeypatch.setattr("bica.data.readers.relations.RelationTable.distinct", lambda table: asked.append(table))
    assert PatternCounts.of(tmp_path) == grouped
    assert not asked
