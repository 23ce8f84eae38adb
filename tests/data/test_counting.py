"""The same rows give the same bytes, whatever their order, their chunks and the number of threads."""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data import columns
from bica.data import patterns as counting
from bica.data.columns import Chunk
from bica.data.patterns import PatternCounts, count_rows
from bica.data.tables import open_table
from bica.kernels.bits import packed
from tests.data import containers
from tests.reference import slow_patterns

WEIGHTS = st.floats(0, 1e6, allow_subnormal=False) | st.sampled_from([0.1, 0.2, 0.3, 1e-17, 1, 2])


def chunked(cells, weights, cuts):
    """The same rows in chunks that end at the cuts."""
    edges = [0, *sorted(cuts), len(cells)]
    for start, stop in pairwise(edges):
        part = cells[start:stop]
        seen = None if (part >= 0).all() else packed(part >= 0)
        yield Chunk(packed(part == 1), seen, None if weights is None else weights[start:stop])


def same_bytes(left, right):
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))


@st.composite
def weighted_rows(draw):
    width = draw(st.sampled_from([2, 3, 70]))
    row = st.lists(st.sampled_from([0, 1, -1]), min_size=width, max_size=width)
    pool = draw(st.lists(row, min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(st.sampled_from(pool), WEIGHTS), min_size=1, max_size=12))
    return np.array([row for row, _ in rows]), np.array([weight for _, weight in rows])


@settings(max_examples=60)
@given(weighted_rows(), st.data())
def test_order_and_chunks_leave_every_byte_as_it_is(table, data):
    cells, weights = table
    whole = count_rows(chunked(cells, weights, []), cells.shape[1])
    order = data.draw(st.permutations(range(len(cells))))
    cuts = data.draw(st.lists(st.integers(0, len(cells)), max_size=4))
    assert same_bytes(whole, count_rows(chunked(cells[order], weights[order], cuts), cells.shape[1]))


@settings(max_examples=60)
@given(weighted_rows())
def test_sums_of_weights_are_right_to_the_last_digits(table):
    cells, weights = table
    *_, sums = count_rows(chunked(cells, weights, []), cells.shape[1])
    rows = [[None if cell < 0 else int(cell) for cell in row] for row in cells.tolist()]
    exact = sorted(float(total) for total in slow_patterns.count(rows, weights.tolist()).values())
    assert np.allclose(np.sort(sums), exact, rtol=12 * np.finfo(float).eps, atol=0)


@given(st.lists(st.integers(0, 9), max_size=50), st.integers(1, 7))
def test_groups_are_merged_as_they_grow(keys, step):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "UNMERGED_WORDS", 4)
        groups = counting.Groups(1)
        for start in range(0, len(keys), step):
            groups.add(np.array(keys[start : start + step], np.uint64)[:, None], None)
        found, counts = groups.result()
    expected = {key: keys.count(key) for key in keys}
    assert dict(zip(found[:, 0].tolist(), counts.tolist(), strict=True)) == expected


@pytest.mark.parametrize("container", containers.WITH_COLUMNS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("grouped", [0, 64])
@pytest.mark.parametrize("cells_a_chunk", [1, 10, 1 << 22])
def test_every_reader_gives_the_same_bytes_for_any_chunks(monkeypatch, container, grouped, cells_a_chunk):
    rng = np.random.default_rng(0)
    rows = [[None if cell == 2 else int(cell) for cell in row] for row in rng.integers(0, 3, (30, 3))]
    expected = PatternCounts.of(np.array(rows, object), sensors=["a", "b", "c"])
    monkeypatch.setattr(columns, "CELLS_A_CHUNK", cells_a_chunk)
    monkeypatch.setattr("bica.data.readers.text.GROUPED_ROWS", cells_a_chunk)
    for reader in ("frames", "text", "relations"):
        monkeypatch.setattr(f"bica.data.readers.{reader}.GROUPED_SENSORS", grouped)
    with TemporaryDirectory() as folder:
        assert PatternCounts.of(container(rows, ["a", "b", "c"], Path(folder))) == expected


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_threads_leave_rows_and_their_order_as_they_are(monkeypatch, tmp_path, n_threads):
    cells = np.random.default_rng(0).random((20_000, 12)) < 0.5
    weights = np.random.default_rng(1).random(20_000)
    table = pa.table({**{f"x{i}": cells[:, i] for i in range(12)}, "weight": weights})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=2048)  # work for each thread
    (tmp_path / "a.csv").write_bytes(containers.csv_text(cells.astype(int).tolist(), table.column_names[:12]).encode())
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *_, config: connect(config=config | {"threads": n_threads}))
    assert PatternCounts.of(tmp_path / "a.csv") == PatternCounts.of(cells)
    weighted = PatternCounts.of(tmp_path / "a.parquet", sample_weight="weight")
    assert weighted.weights.tobytes() == PatternCounts.of(cells, sample_weight=weights).weights.tobytes()
    rows = [chunk.words for chunk in open_table(tmp_path / "a.parquet", sample_weight="weight").chunks()]
    assert np.array_equal(np.vstack(rows), packed(cells))
