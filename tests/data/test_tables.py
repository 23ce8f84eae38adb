from dataclasses import replace

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse

from bica.data.patterns import PatternCounts
from bica.data.readers.relations import ParquetTable
from bica.data.rows import Rows
from bica.data.tables import open_table
from bica.errors import ColumnWarning, DataError
from bica.progress import listening
from tests.reference import slow_patterns


def refused(path, sentence, **options):
    with pytest.raises(DataError, match=sentence) as raised:
        PatternCounts.of(path, **options)
    assert "\n" not in str(raised.value)


class TestNames:
    def test_a_file_that_is_not_there(self, tmp_path):
        refused(tmp_path / "no.csv", "there is no file .*no.csv; check the name and the folder")
        refused("no\0.csv", "there is no file")

    def test_a_folder(self, tmp_path):
        (tmp_path / "folder.csv").mkdir()
        refused(tmp_path / "folder.csv", "there is no table in .*folder.csv; tables are files such as .csv")

    @pytest.mark.parametrize("name", ["table", "table.md", "table.gz", "table.npy.gz", "table.parquet.zst", ".csv"])
    def test_an_unknown_ending(self, tmp_path, name):
        (tmp_path / name).write_text("0,1\n")
        refused(tmp_path / name, "has an unknown kind of name; tables are read from .csv, .tsv, .txt")

    @pytest.mark.parametrize("name", ["a[1].csv", "a*.csv", "a?.csv", "it's.csv", "a b.csv", "żółw.csv", "a{1}.csv"])
    def test_a_name_is_no_pattern(self, tmp_path, name):
        (tmp_path / name).write_text("right\n1\n")
        (tmp_path / "a1.csv").write_text("wrong\n1\n1\n")
        (tmp_path / "ab.csv").write_text("wrong\n1\n1\n")
        assert PatternCounts.of(tmp_path / name).sensors == ("right",)

    def test_a_folder_is_no_column(self, tmp_path):
        (tmp_path / "year=2020").mkdir()
        (tmp_path / "year=2020" / "a.csv").write_text("a\n1\n")
        pa.parquet.write_table(pa.table({"a": [1]}), tmp_path / "year=2020" / "a.parquet")
        assert PatternCounts.of(tmp_path / "year=2020" / "a.csv").sensors == ("a",)
        assert PatternCounts.of(tmp_path / "year=2020" / "a.parquet").sensors == ("a",)

    def test_weights_for_a_file_are_one_of_its_columns(self, tmp_path):
        (tmp_path / "a.csv").write_text("a\n1\n")
        refused(
            tmp_path / "a.csv", "the weights of a file must be one of its columns; pass its name", sample_weight=[1.0]
        )


class TestParquet:
    @pytest.mark.parametrize("cells", [7, 50, 1 << 25])
    def test_pieces_are_the_rows_that_digits_give(self, tmp_path, monkeypatch, cells):
        """Arrays and words of digits are two ways to the same rows, in the same order."""
        monkeypatch.setattr("bica.data.readers.relations.CELLS_A_PIECE", cells)
        rng, path = np.random.default_rng(0), tmp_path / "table.parquet"
        frame = polars.DataFrame(
            {
                "flag": polars.Series(rng.random(41) < 0.4),
                "gap": polars.Series([None if x < 0.2 else x < 0.6 for x in rng.random(41)], dtype=polars.Boolean),
                "whole": polars.Series(rng.integers(0, 2, 41), dtype=polars.Int8),
                "level": polars.Series(np.where(rng.random(41) < 0.1, np.nan, rng.random(41))),
                "n": polars.Series(rng.integers(1, 5, 41)),
                "time": polars.Series([f"2026-01-01 00:{i:02}:00" for i in range(41)]),
            }
        )
        frame.write_parquet(path)
        given = {"sample_weight": "n", "binarize": {"level": 0.5}, "time": "time"}
        table = open_table(path, **given)
        assert isinstance(table, ParquetTable)
        ours, digits = (PatternCounts.of_chunks(t.chunks(), t.sensors) for t in (table, table.by_digits))
        assert ours == digits
        for name in ("words", "observed", "weights"):
            parts = [
                np.concatenate([getattr(chunk, name) for chunk in _with_cells(t.chunks())])
                for t in (table, table.by_digits)
            ]
            assert np.array_equal(*parts)
        labels = [[label for chunk in t.chunks() for label in chunk.labels[0]] for t in (table, table.by_digits)]
        assert labels[0] == labels[1]

    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "table.parquet"

    def test_columns_of_several_types(self, path):
        columns = {
            "flag": pa.array([True, False, None]),
            "byte": pa.array([1, 0, None], pa.uint8()),
            "real": pa.array([1.0, float("nan"), 0.0], pa.float32()),
            "exact": pa.array([1, 0, None], pa.decimal128(5, 2)),
            "nothing": pa.nulls(3),
        }
        pa.parquet.write_table(pa.table(columns), path)
        expected = [(1, 1, 1, 1, None), (0, 0, None, 0, None), (None, None, 0, None, None)]
        assert slow_patterns.table_of(PatternCounts.of(path)) == slow_patterns.count(expected)

    @pytest.mark.parametrize("values", [["a"], [[1]], [{"x": 1, "y": 0}], [b"1"]])
    def test_columns_that_cannot_hold_0_and_1_are_refused_by_name_and_type(self, path, values):
        pa.parquet.write_table(pa.table({"fine": [1], "odd": values}), path)
        refused(path, "column 'odd' holds .*, not 0 and 1; leave it out with `drop`, or turn")

    @pytest.mark.parametrize("index", [[5, 6], ["u", "v"]])
    def test_an_index_that_pandas_wrote_is_left_out(self, path, index):
        pd.DataFrame({"a": [1, 0]}, index=index).to_parquet(path)
        with pytest.warns(ColumnWarning, match="'__index_level_0__' is left out: it is the row index that pandas"):
            assert PatternCounts.of(path).sensors == ("a",)

    def test_names_that_differ_by_case_only_are_kept(self, path):
        pa.parquet.write_table(pa.table({"a": [1], "A": [0]}), path)
        assert PatternCounts.of(path).sensors == ("a", "A")

    def test_equal_names_are_refused(self, path):
        pa.parquet.write_table(pa.table([pa.array([1]), pa.array([0])], names=["a", "a"]), path)
        refused(path, "columns 0 and 1 are both named 'a'")

    def test_a_file_without_rows_or_columns_is_refused(self, path):
        pa.parquet.write_table(pa.table({"a": pa.array([], pa.bool_())}), path)
        refused(path, "the table has no rows")
        pa.parquet.write_table(pa.table({}), path)
        refused(path, "table.parquet is not a whole Parquet file|the table has no columns")

    @pytest.mark.parametrize("keep", [0, 3, 50, -9])
    def test_a_cut_file_is_refused(self, path, keep):
        pa.parquet.write_table(pa.table({"a": [0, 1] * 1000}), path)
        path.write_bytes(path.read_bytes()[:keep])
        refused(path, "table.parquet is not a whole Parquet file")

    def test_damage_inside_is_met_while_reading(self, path):
        rng = np.random.default_rng(0)
        pa.parquet.write_table(pa.table({"a": rng.random(20000) < 0.5}), path, compression="snappy")
        content = bytearray(path.read_bytes())
        content[40:1040] = bytes([255]) * 1000
        path.write_bytes(content)
        refused(path, "table.parquet cannot be read: ")

    def test_a_table_of_thousands_of_columns_is_read(self, path):
        rng = np.random.default_rng(0)
        rows = rng.random((20, 2500)) < 0.5
        pa.parquet.write_table(pa.table({f"c{i}": rows[:, i] for i in range(2500)}), path)
        assert PatternCounts.of(path) == PatternCounts.of(rows, sensors=[f"c{i}" for i in range(2500)])


class TestMatrices:
    def test_columns_without_names_are_numbered(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([[True, False]]))
        assert PatternCounts.of(tmp_path / "a.npy").sensors == ("x0", "x1")

    def test_names_beside_must_fit(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([[True, False]]))
        beside = tmp_path / "a_columns.csv"
        beside.write_text("column\nonly\n")
        refused(tmp_path / "a.npy", "a_columns.csv names 1 columns, but .*a.npy has 2")
        for text in ("", "name\na\nb\n", "column\na,b\n"):
            beside.write_text(text)
            refused(tmp_path / "a.npy", "a_columns.csv must hold the heading `column` and then one name per line")

    def test_an_array_of_objects_is_never_unpickled(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([[1, None]], dtype=object), allow_pickle=True)
        refused(tmp_path / "a.npy", "it holds Python objects, which could run code; save it as booleans or numbers")

    @pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.mtx"])
    @pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 nonsense", b"%%MatrixMarket matrix\n1 1\n"])
    def test_what_is_something_else_is_refused(self, tmp_path, name, content):
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, f"{name} cannot be read as {name[1:]}")

    @pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.mtx"])
    def test_a_cut_file_is_refused(self, tmp_path, name):
        rows = np.random.default_rng(0).random((200, 30)) < 0.3
        path = tmp_path / name
        if name == "a.npy":
            np.save(path, rows)
        elif name == "a.npz":
            scipy.sparse.save_npz(path, scipy.sparse.csr_array(rows))
        else:
            scipy.io.mmwrite(path, scipy.sparse.coo_array(rows))
        path.write_bytes(path.read_bytes()[:-400])
        refused(path, f"{name} cannot be read as {name[1:]}")

    def test_an_archive_of_several_arrays_is_no_table(self, tmp_path):
        np.savez(tmp_path / "a.npz", x=np.eye(2), y=np.eye(2))
        refused(tmp_path / "a.npz", "a.npz cannot be read as .npz")

    def test_a_dense_matrix_market_file_is_read(self, tmp_path):
        scipy.io.mmwrite(tmp_path / "a.mtx", np.array([[1, 0], [1, 1]]))
        assert PatternCounts.of(tmp_path / "a.mtx").n_samples == 2

    def test_a_matrix_without_rows_is_refused(self, tmp_path):
        np.save(tmp_path / "a.npy", np.zeros((0, 3)))
        refused(tmp_path / "a.npy", "the table has no rows")
        scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.csr_array((0, 3)))
        refused(tmp_path / "a.npz", "the table has no rows")

    def test_an_archive_is_no_array(self, tmp_path):
        np.savez(tmp_path / "a.npz", x=np.eye(2))
        (tmp_path / "a.npz").rename(tmp_path / "a.npy")
        refused(tmp_path / "a.npy", "a.npy cannot be read as .npy")

    def test_other_shapes_and_types_are_refused(self, tmp_path):
        np.save(tmp_path / "a.npy", np.zeros(3))
        refused(tmp_path / "a.npy", "this array has 1 dimensions")
        scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.csr_array(np.array([[1j]])))
        refused(tmp_path / "a.npz", "complex128 cannot be read as 0 and 1")

    def test_weights_are_given_not_named(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([[True], [False]]))
        assert PatternCounts.of(tmp_path / "a.npy", sample_weight=[2, 3]).weights.tolist() == [3, 2]
        refused(tmp_path / "a.npy", "has no column of weights 'x0'; pass the weights themselves", sample_weight="x0")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_reading_a_file_reports_how_far_it_is(tmp_path, name):
    pa.parquet.write_table(pa.table({"a": [1, 0]}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("a\n1\n0\n")
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": 0}\n')
    reports = []
    with listening(lambda *report: reports.append(report)):
        PatternCounts.of(tmp_path / name)
    assert reports == [("reading the table", 0, None), ("reading the table", 1, None)]


def test_wide_csv_files_are_read(tmp_path):
    rows = (np.random.default_rng(0).random((20, 5000)) < 0.5).astype(int)
    names = [f"name of column {i}" for i in range(5000)]
    np.savetxt(tmp_path / "wide.csv", rows, "%d", ",", header=",".join(names), comments="")
    assert PatternCounts.of(tmp_path / "wide.csv") == PatternCounts.of(rows, sensors=names)


def test_the_shared_tables_are_read(shared_data):
    americas = PatternCounts.of(shared_data / "hp_roles" / "americas_small_X.npz")
    assert (americas.n_samples, americas.n_sensors, len(americas.weights)) == (3477, 1587, 259)
    assert americas.sensors[:2] == ("perm_1", "perm_2")
    emea = PatternCounts.of(shared_data / "hp_roles" / "emea_X.csv")
    assert (emea.n_samples, emea.n_sensors, len(emea.weights)) == (35, 3046, 34)
    lora = PatternCounts.of(shared_data / "lora_gateways" / "X.csv")
    assert (lora.n_samples, lora.n_sensors, len(lora.weights)) == (69724, 11, 326)


def _with_cells(chunks):
    """Chunks in which every cell says whether it was observed, also where all were."""
    for chunk in chunks:
        yield chunk if chunk.observed is not None else replace(chunk, observed=np.full_like(chunk.words, 15))


class TestSeveralFiles:
    """A folder or a pattern is one table."""

    @pytest.fixture
    def parts(self, tmp_path):
        rows = np.random.default_rng(0).random((60, 3)) < 0.3
        for day, part in enumerate(np.split(rows, 3)):
            place = tmp_path / "days" / f"day={day}"
            place.mkdir(parents=True)
            polars.DataFrame(part, schema=["a", "b", "c"], orient="row").write_parquet(place / "part.parquet")
        (tmp_path / "days" / "_SUCCESS").write_text("")
        (tmp_path / "days" / ".hidden.csv").write_text("x\n1\n")
        return tmp_path / "days", rows

    def test_a_folder_is_the_table_of_its_files_and_keys_are_no_sensors(self, parts):
        folder, rows = parts
        assert PatternCounts.of(folder) == PatternCounts.of(rows, sensors=["a", "b", "c"])
        assert np.array_equal(Rows.of(folder).words, Rows.of(rows).words)

    def test_a_pattern_is_the_table_of_what_it_matches(self, parts):
        folder, rows = parts
        assert PatternCounts.of(f"{folder}/day=[01]/*.parquet") == PatternCounts.of(rows[:40], sensors=["a", "b", "c"])
        refused(f"{folder}/*.csv", "there is no table in")

    def test_a_file_whose_name_looks_like_a_pattern_is_that_file(self, tmp_path):
        path = tmp_path / "week[1].csv"
        path.write_text("a\n1\n0\n")
        assert PatternCounts.of(path).n_samples == 2

    def test_files_of_other_columns_are_refused(self, parts):
        folder, _ = parts
        (folder / "zz.csv").write_text("a,b\n0,1\n")
        refused(folder, "part.parquet and .*zz.csv have different columns")

    def test_trouble_names_the_file(self, parts):
        folder, _ = parts
        (folder / "day=2" / "zz.csv").write_text("a,b,c\n0,1,7\n")
        refused(folder, "zz.csv: line 2, column 'c' holds 7")
