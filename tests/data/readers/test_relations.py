import re
from pathlib import Path

import duckdb
import narwhals as nw
import pytest

from bica.data.patterns import PatternCounts
from bica.data.readers.engine import ctrl_c_passing
from bica.data.readers.relations import ParquetFile
from bica.errors import DataError
from tests.reference import slow_patterns


@pytest.fixture
def sql():
    with duckdb.connect() as connection:
        yield connection.sql


def test_columns_of_several_types_are_read(sql):
    relation = sql(
        "SELECT * FROM (VALUES (true, 1::UTINYINT, 'nan'::DOUBLE, 1::HUGEINT, 0.00::DECIMAL(9, 2)), "
        "(NULL, 0, 1, NULL, 1)) AS t(flag, byte, real, huge, exact)"
    )
    expected = slow_patterns.count([(1, 1, None, 1, 0), (None, 0, 1, None, 1)])
    for same in (relation, nw.from_native(relation)):
        counts = PatternCounts.of(same)
        assert counts.sensors == ("flag", "byte", "real", "huge", "exact")
        assert slow_patterns.table_of(counts) == expected


@pytest.mark.parametrize("value", ["'a'", "'1'", "[1]", "INTERVAL 1 DAY", "{'x': 1}", "[1.5::DECIMAL(3, 1)]"])
def test_other_types_are_refused_by_name(sql, value):
    with pytest.raises(DataError, match=r"column 'odd' holds .*, not 0 and 1; leave it out with `drop`, or turn"):
        PatternCounts.of(sql(f"SELECT 1 AS fine, {value} AS odd"))


def test_equal_names_are_refused_and_names_that_differ_by_case_are_kept(sql):
    with pytest.raises(DataError, match="columns 0 and 1 are both named 'a'"):
        PatternCounts.of(sql('SELECT 1 AS "a", 0 AS "a"'))
    assert PatternCounts.of(sql('SELECT 1 AS "a", 0 AS "A"')).sensors == ("a", "A")


def test_the_users_connection_keeps_no_trace(sql):
    PatternCounts.of(sql("SELECT 1 AS a"))
    assert sql("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchall() == [(0,)]
    assert sql("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]


def test_rows_are_numbered_in_the_order_of_the_relation(sql):
    relation = sql("SELECT (i % 2)::INT AS a, CASE WHEN i = 150000 THEN 9 ELSE 1 END AS b FROM range(200000) t(i)")
    with pytest.raises(DataError, match="row 150000, column 'b' holds 9"):
        PatternCounts.of(relation)


def test_a_relation_without_rows_is_refused(sql):
    with pytest.raises(DataError, match="the table has no rows"):
        PatternCounts.of(sql("SELECT 1 AS a WHERE false"))


def test_weights_for_a_relation_are_one_of_its_columns(sql):
    with pytest.raises(DataError, match="the weights of a relation must be one of its columns; pass its name"):
        PatternCounts.of(sql("SELECT 1 AS a"), sample_weight=[1])


def test_a_relation_that_fails_while_it_is_read_is_refused_in_one_sentence(sql):
    with pytest.raises(DataError, match=r"the relation cannot be read: .*nope") as raised:
        PatternCounts.of(sql("SELECT CASE WHEN i > 5 THEN error('nope') ELSE 1 END::INT AS a FROM range(9) t(i)"))
    assert "\n" not in str(raised.value)


def test_a_parquet_file_that_is_gone_by_now_is_reported(tmp_path):
    with pytest.raises(DataError, match=re.escape("gone.parquet cannot be read")):
        ParquetFile(Path(tmp_path / "gone.parquet")).n_rows()


def test_a_message_that_ends_inside_a_letter_is_shown_as_far_as_it_goes():
    with pytest.raises(duckdb.Error, match="no number: 1\ufffd"), ctrl_c_passing():
        "no number: 1²".encode()[:-1].decode()  # as the engine cuts what it quotes
