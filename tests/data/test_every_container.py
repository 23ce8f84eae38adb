"""What every container must honour: the counts are those of the slow twin, whatever holds the rows."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.data.tables import open_table
from bica.errors import DataError, SettingError
from bica.kernels.bits import unpacked
from tests.data import containers
from tests.data.strategies import tables
from tests.reference import slow_patterns

FEW = settings(max_examples=6)  # for each of some thirty containers
EVERY = pytest.mark.parametrize("container", containers.ALL, ids=lambda c: c.__name__)
OF_NUMBERS = pytest.mark.parametrize("container", containers.FOR_NUMBERS, ids=lambda c: c.__name__)
WITH_COLUMNS = pytest.mark.parametrize("container", containers.WITH_COLUMNS, ids=lambda c: c.__name__)


def measurements(width=3):
    cell = st.sampled_from([-2, -0.5, 0, 0.5, 0.75, 1, 3, None])
    return st.lists(st.lists(cell, min_size=width, max_size=width), min_size=1, max_size=6)


def weights_for(rows):
    return st.lists(st.sampled_from([0, 1, 2, 7, 0.5, 0.25]), min_size=len(rows), max_size=len(rows)).filter(any)


def row_words(container, row):
    """What a message calls a row: its line in a file of text, counted from 1."""
    lines = {containers.csv_file: 2, containers.json_lines_file: 1}
    return f"line {row + lines[container]}" if container in lines else f"row {row}"


def names_of(rows):
    return [f"sensor {i}" for i in range(len(rows[0]))]


def read(container, rows, names=None, **options):
    names = names or names_of(rows)
    if container in containers.WITHOUT_NAMES:
        options["sensors"] = names
    with TemporaryDirectory() as folder:
        return PatternCounts.of(container(rows, names, Path(folder)), **options)


@EVERY
@FEW
@given(rows=tables())
def test_counts_are_those_of_the_definition(container, rows):
    counts = read(container, rows)
    assert slow_patterns.table_of(counts) == slow_patterns.count(rows)
    assert counts.sensors == tuple(names_of(rows))
    assert counts.n_samples == len(rows)


@EVERY
@FEW
@given(rows=tables(widths=(1, 3, 70)))
def test_chunks_hold_every_row_in_order(container, rows):
    found = []
    with TemporaryDirectory() as folder:
        for chunk in open_table(container(rows, names_of(rows), Path(folder))).chunks():
            ones = unpacked(chunk.words, len(rows[0]))
            seen = ones | True if chunk.observed is None else unpacked(chunk.observed, len(rows[0]))
            pairs = zip(ones, seen, strict=True)
            found += [[int(one) if known else None for one, known in zip(*row, strict=True)] for row in pairs]
    assert found == rows


@OF_NUMBERS
@pytest.mark.parametrize("width", [3, 70])
def test_a_value_that_is_neither_0_nor_1_is_named_by_row_and_column(container, width):
    rows = [[0, None, 1] + [0] * (width - 3), [0, 1, 1] + [0] * (width - 3), [1, 7, 5] + [0] * (width - 3)]
    known = row_words(container, 2) + ", " if container is not containers.polars_lazy or width > 64 else ""
    sentence = (
        known + "column 'sensor 1' holds 7, but only 0 and 1 can be read; turn measurements into 0/1 with `binarize`"
    )
    with pytest.raises(DataError, match=f"^{re.escape(sentence)}$"):
        read(container, rows)


@OF_NUMBERS
@FEW
@given(rows=measurements(), threshold=st.sampled_from([-1, -0.5, 0, 0.5, 2]))
def test_binarize_makes_1_of_what_is_above_the_threshold(container, rows, threshold):
    expected = [[None if cell is None else int(cell > threshold) for cell in row] for row in rows]
    assert slow_patterns.table_of(read(container, rows, binarize=threshold)) == slow_patterns.count(expected)


@OF_NUMBERS
@FEW
@given(rows=measurements(), bits=st.data(), low=st.sampled_from([-1, 0.5]), high=st.sampled_from([-0.5, 0, 2]))
def test_binarize_takes_a_threshold_for_each_of_some_columns(container, rows, bits, low, high):
    rows = [[row[0], bits.draw(st.sampled_from([0, 1, None])), row[2]] for row in rows]
    expected = [
        [None if row[0] is None else int(row[0] > high), row[1], None if row[2] is None else int(row[2] > low)]
        for row in rows
    ]
    counts = read(container, rows, binarize={"sensor 2": low, "sensor 0": high})
    assert slow_patterns.table_of(counts) == slow_patterns.count(expected)


@OF_NUMBERS
def test_columns_without_a_threshold_of_their_own_must_hold_0_and_1(container):
    with pytest.raises(DataError, match="column 'sensor 1' holds 3"):
        read(container, [[0.5, 3], [2, 1]], binarize={"sensor 0": 1})


@EVERY
def test_a_threshold_for_a_column_that_is_not_there_is_refused(container):
    with pytest.raises(SettingError, match="`binarize` names a column 'sensor 9', which the table does not have"):
        read(container, [[0, 1]], binarize={"sensor 9": 1})


@WITH_COLUMNS
@FEW
@given(rows=tables(widths=(1, 3, 70)), data=st.data())
def test_a_column_of_weights_is_taken_out_and_used(container, rows, data):
    weights = data.draw(weights_for(rows))
    place = data.draw(st.integers(0, len(rows[0])))
    wide = [[*row[:place], weight, *row[place:]] for row, weight in zip(rows, weights, strict=True)]
    names = names_of(rows)
    counts = read(container, wide, [*names[:place], "count", *names[place:]], sample_weight="count")
    assert slow_patterns.table_of(counts) == slow_patterns.count(rows, weights)
    assert counts.sensors == tuple(names)


@WITH_COLUMNS
def test_a_negative_weight_in_a_column_is_refused_by_row(container):
    with pytest.raises(
        DataError, match=f"the weight of {row_words(container, 1)} is -1.0; weights are finite and not negative"
    ):
        read(container, [[1, 2], [0, -1]], sample_weight="sensor 1")


@WITH_COLUMNS
def test_a_missing_weight_in_a_column_is_refused_by_row(container):
    with pytest.raises(DataError, match=f"the weight of {row_words(container, 1)} is nan"):
        read(container, [[1, 2], [0, None], [1, 1]], sample_weight="sensor 1")


@WITH_COLUMNS
def test_a_column_of_weights_that_is_not_there_is_refused(container):
    with pytest.raises(DataError, match="`sample_weight` names a column 'n', of which the table has 0"):
        read(container, [[1, 2]], sample_weight="n")


@EVERY
def test_names_given_by_the_user_replace_those_of_the_table(container):
    with TemporaryDirectory() as folder:
        source = container([[0, 1], [1, 1]], ["a", "b"], Path(folder))
        assert PatternCounts.of(source, sensors=["left", "right"]).sensors == ("left", "right")
        with pytest.raises(DataError, match="3 sensor names were given, but the table has 2 columns"):
            PatternCounts.of(source, sensors=["a", "b", "c"])
        with pytest.raises(DataError, match="columns 0 and 1 are both named 'a'"):
            PatternCounts.of(source, sensors=["a", "a"])


HOSTILE = [
    'a"b',
    "it's",
    "x; DROP TABLE t; --",
    "two\nlines",
    "żółw 🐢",
    "long" * 5000,
    "",
    "^.*$",
    "c0",
    "line",
    "A",
    "a",
    "a.b",
    "{braces}",
    "count",
    "*",
]


@pytest.mark.parametrize("container", containers.WITH_COLUMNS + containers.WITH_NAMES_BESIDE, ids=lambda c: c.__name__)
def test_no_name_of_a_column_is_too_strange(container):
    names = [name for name in HOSTILE if name or container is not containers.relation]  # SQL has no empty names
    rows = [[(i >> k) & 1 for k in range(len(names))] for i in (1, 2, 77, 77, 30000)]
    counts = read(container, rows, names)
    assert counts.sensors == tuple(names)
    assert slow_patterns.table_of(counts) == slow_patterns.count(rows)
