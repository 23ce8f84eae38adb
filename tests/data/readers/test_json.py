import gzip

import pytest

from bica.data.patterns import PatternCounts
from bica.errors import DataError
from tests.data.containers import zst
from tests.reference import slow_patterns


@pytest.fixture
def read(tmp_path):
    def read_text(text, name="table.jsonl", **options):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return PatternCounts.of(tmp_path / name, **options)

    return read_text


def test_keys_are_columns_in_the_order_of_their_first_appearance(read):
    counts = read('{"b": 1, "a": 0}\n{"a": true}\n{"c": 1.0, "b": null}\n')
    assert counts.sensors == ("b", "a", "c")
    assert slow_patterns.table_of(counts) == {(1, 0, None): 1, (None, 1, None): 1, (None, None, 1): 1}


def test_equal_rows_count_together_however_they_are_written(read):
    counts = read('{"a": 1, "b": 0}\n\n{"b":false,"a":1.0}\r\n{"a": 1, "b": 0, "c": null}')
    assert slow_patterns.table_of(counts) == {(1, 0, None): 3}


@pytest.mark.parametrize("name", ["table.ndjson.gz", "table.jsonl.zst"])
def test_compressed_files_are_unpacked(read, name):
    plain = b'{"a": 1}\n{"a": 0}\n'
    counts = read(gzip.compress(plain) if "gz" in name else zst(plain), name)
    assert slow_patterns.table_of(counts) == {(1,): 1, (0,): 1}


def test_escaped_keys_are_the_names_they_stand_for(read):
    assert read(r'{"a\"b\u00e9\n": 1}').sensors == ('a"bé\n',)


def test_numbers_are_binarized(read):
    assert slow_patterns.table_of(read('{"a": -7.5}\n{"a": 12}\n{"a": NaN}\n', binarize=0)) == {
        (0,): 1,
        (1,): 1,
        (None,): 1,
    }


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"a": 2}', "line 2, column 'a' holds 2, but only 0 and 1"),
        ('{"a": "yes"}', "line 2, column 'a' holds 'yes', but only 0 and 1"),
        ('{"a": [1]}', r"line 2, column 'a' holds \[1\], but only 0 and 1"),
        ('{"a": 1e999}', "line 2, column 'a' holds inf, but only 0 and 1"),
        ('{"a": 1', "line 2 is not JSON; every line must hold one whole object"),
        ("[1]", "line 2 is no JSON object"),
        ('{"a": 1, "a": 0}', "line 2 holds a key twice"),
        ("[" * 5000, "line 2 is not JSON"),
    ],
)
def test_trouble_is_named_by_row(read, line, sentence):
    with pytest.raises(DataError, match=sentence):
        read('{"a": 1}\n' + line + '\n{"a": 0}\n')


@pytest.mark.parametrize("text", ["", "\n", "{}\n"])
def test_a_file_without_keys_has_no_columns(read, text):
    with pytest.raises(DataError, match="the table has no columns"):
        read(text)
