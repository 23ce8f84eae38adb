"""Sums over partitions are the counts of the whole table, however it is cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from bica.data.observations import TableSums, observations_of
from bica.data.partitions import Partition, Shelf, binomial_quantile, joined, pairs_in, sample_in
from bica.data.patterns import PatternCounts
from bica.data.rows import first_rows
from bica.data.tables import open_table
from bica.estimate.likelihood import Likelihood
from bica.pipeline import learn, observe
from tests.reference import slow_columns


@st.composite
def tables(draw):
    """Cells of 0, 1 and 2 for missing, weights or None, and where to cut."""
    n_rows, n_sensors = draw(st.integers(1, 150)), draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shares = [0.6, 0.3, 0.1] if draw(st.booleans()) else [0.7, 0.3, 0.0]
    cells = rng.choice(3, (n_rows, n_sensors), p=shares).astype(np.uint8)
    weights = rng.integers(0, 9, n_rows).astype(float) if draw(st.booleans()) else None
    cuts = sorted(draw(st.lists(st.integers(0, n_rows), max_size=4)))
    return cells, weights, [0, *cuts, n_rows]


def cut(cells, weights, cuts):
    """The table in partitions, empty ones included."""
    pieces = [slice(begin, end) for begin, end in pairwise(cuts)]
    parts = [
        Partition.of_cells(np.ascontiguousarray(cells[p].T), None if weights is None else weights[p]) for p in pieces
    ]
    return Shelf.of(parts, tuple(f"s{i}" for i in range(cells.shape[1])), kept_bytes=200)


def whole(cells, weights):
    values = np.where(cells == 2, np.nan, cells)
    sensors = [f"s{i}" for i in range(cells.shape[1])]
    return PatternCounts.of_chunks(open_table(values, sensors=sensors, sample_weight=weights).chunks(), tuple(sensors))


@given(tables())
def test_every_statistic_is_that_of_the_whole_table(table):
    cells, weights, cuts = table
    sums, counts = TableSums.of(cut(cells, weights, cuts)), whole(cells, weights)
    places = np.arange(cells.shape[1])
    assert sums.n_samples == counts.n_samples
    assert sums.has_gaps == counts.has_gaps
    assert sums.ones().tolist() == counts.ones().tolist()
    assert sums.times_observed().tolist() == counts.times_observed().tolist()
    assert sums.varying().tolist() == counts.varying().tolist()
    for name in ("both", "on", "observed"):
        assert np.array_equal(getattr(sums.pair_counts(), name), getattr(counts.pair_counts(), name)), name
    assert sums.counts() == counts
    assert sums.quiet_rows() == counts.quiet_rows()
    assert sums.equal_columns() == counts.equal_columns()
    for block in (places[:3], places[::-2], places):
        sums.fetch([block])
        assert sums.counts_of(block) == counts.counts_of(block)
        assert sums.histogram_of(block).tolist() == counts.histogram_of(block).tolist()
    some = sums.project(places[::-2].tolist())
    assert some.counts() == counts.project(places[::-2].tolist())
    assert some.quiet_rows() == counts.project(places[::-2].tolist()).quiet_rows()


@given(tables(), st.floats(0.05, 1.0))
def test_a_sample_does_not_depend_on_the_cut(table, share):
    cells, weights, cuts = table

    def drawn(at):
        shelf = cut(cells, weights, at)
        return TableSums.of(shelf).sample(share * TableSums.of(shelf).n_samples, np.random.default_rng(3))

    if weights is None or weights.sum():
        assert drawn(cuts) == drawn([0, len(cells)])
        everything = TableSums.of(cut(cells, weights, cuts)).sample(1e9, np.random.default_rng(3))
        assert everything == whole(cells, weights)


def test_a_sample_has_the_share_that_was_asked_for():
    rows = np.arange(200_000)
    part = Partition.of_cells((rows % 2)[None].astype(np.uint8))
    drawn = sample_in(part, np.array([0]), 0.1, 5)
    assert abs(drawn.weights.sum() - 20_000) < 4 * np.sqrt(200_000 * 0.1 * 0.9)
    assert abs(int(drawn.rows[:, 0].sum()) - 10_000) < 4 * np.sqrt(100_000 * 0.1 * 0.9)
    heavy = Partition.of_cells(np.zeros((1, 2000), np.uint8), np.full(2000, 100.0))
    assert abs(sample_in(heavy, np.array([0]), 0.1, 5).weights.sum() - 20_000) < 4 * np.sqrt(200_000 * 0.1 * 0.9)


@given(st.lists(st.tuples(st.floats(0.001, 0.999), st.integers(0, 500)), min_size=1), st.floats(0.01, 0.99))
def test_quantiles_are_those_of_the_binomial_distribution(pairs, probability):
    level, n_trials = (np.array(values) for values in zip(*pairs, strict=True))
    found = binomial_quantile(level, n_trials, probability)
    for u, n, k in zip(level, n_trials, found, strict=True):
        reached = [binom.cdf(i, n, probability) for i in range(n + 1)]
        first = next(i for i, value in enumerate(reached) if value >= u or i == n)
        assert k == first or abs(reached[min(int(k), first)] - u) < 1e-12  # up to rounding


def test_the_first_rows_of_a_large_table_are_few_and_in_order(monkeypatch):
    monkeypatch.setattr("bica.data.rows.LARGE", 100)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.random.default_rng(0).random((1000, 3)) < 0.4, columns=["a", "b", "c"])
    (found,) = first_rows(open_table(frame), 100)
    assert len(found.words) == 128  # whole words
    assert found.words[:, 0].tolist() == (frame[:128].to_numpy() @ [1, 2, 4]).tolist()
    assert sum(len(chunk.words) for chunk in first_rows(open_table(frame[:0]), 100)) == 0


@given(tables())
def test_rows_come_back_as_they_were(table):
    cells, weights, _ = table
    chunk = Partition.of_cells(np.ascontiguousarray(cells.T), weights).rows()
    again = Partition.of_chunk(chunk, cells.shape[1])
    assert PatternCounts.of_chunks([again.rows()], tuple("abcdefg"[: cells.shape[1]])).weights.sum() == (
        len(cells) if weights is None else weights.sum()
    )
    assert slow_columns.transposed(chunk.words[:, 0].tolist(), cells.shape[1]) == [
        sum(1 << int(r) for r in np.flatnonzero(column == 1)) for column in cells.T
    ]


def test_weights_that_are_not_whole_add_up():
    cells, weights = np.array([[0, 1], [1, 1], [1, 0]], np.uint8), np.array([0.5, 2.0, 0.25])
    pairs = pairs_in(Partition.of_cells(np.ascontiguousarray(cells.T), weights))
    assert pairs.both.tolist() == [[2.25, 0.0], [2.0, 2.5]]


def test_joined_partitions_hold_the_same_rows():
    rng = np.random.default_rng(1)
    parts = [
        Partition.of_cells(rng.choice(3 if k == 1 else 2, (3, n)).astype(np.uint8)) for k, n in enumerate((64, 128, 5))
    ]
    together = list(joined(parts))
    assert len(together) == 1
    assert (
        TableSums.of(Shelf.of(parts, ("a", "b", "c"))).counts()
        == TableSums.of(Shelf.of(together, ("a", "b", "c"))).counts()
    )


def sparse_table(n_rows, n_sensors=70, seed=0):
    rng = np.random.default_rng(seed)
    mixing = np.zeros((n_sensors, 45), dtype=bool)
    for j in range(45):
        mixing[rng.choice(n_sensors, 3, replace=False), j] = True
    activity = rng.random((n_rows, 45)) < 0.04
    return (activity @ mixing.T) ^ (rng.random((n_rows, n_sensors)) < 0.005)


def saved(learned, path):
    """The model file, without the number of distinct rows, which sums do not tell."""
    learned.fit.save(path, overwrite=True)
    return [line for line in path.read_text().splitlines() if '"n_distinct"' not in line]


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_model_learned_from_partitions_is_the_model_of_the_table(gaps, weighted, tmp_path):
    rng = np.random.default_rng(5)
    rows = sparse_table(4000).astype(float)
    if gaps:
        rows[rng.random(rows.shape) < 0.01] = np.nan
    weights = rng.integers(0, 4, 4000).astype(float) if weighted else None
    counts = observe(rows, sample_weight=weights).data
    expected = saved(learn(counts, Likelihood(n_jobs=1), np.random.default_rng(0)), tmp_path / "model.json")
    cells = np.where(np.isnan(rows), 2, rows).astype(np.uint8)
    for cuts in ([0, 4000], [0, 0, 1, 777, 4000, 4000]):
        shelf = cut(cells, weights, cuts)
        data = TableSums.of(Shelf.of(map(shelf.part, range(len(cuts) - 1)), counts.sensors))
        sums = learn(data, Likelihood(n_jobs=2), np.random.default_rng(0))
        assert saved(sums, tmp_path / "model.json") == expected


def test_large_wide_tables_are_learned_from_partitions(tmp_path):
    rows = sparse_table(300)
    data = PatternCounts.of(rows)
    data.save(tmp_path / "counts.parquet")
    sums = observations_of(open_table(tmp_path / "counts.parquet"), large=1000)
    assert isinstance(sums, TableSums)
    assert sums.counts() == data
    assert isinstance(observations_of(open_table(rows), large=1000), TableSums)
    assert isinstance(observations_of(open_table(rows)), PatternCounts)


@pytest.mark.parametrize("cuts", [[0, 3000], [0, 0, 1001, 1001, 3000]], ids=["one file", "files, some without rows"])
def test_measurements_weights_and_missing_cells_of_files_are_summed_as_in_memory(cuts, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng, on = np.random.default_rng(1), sparse_table(3000)
    values = np.where(on, rng.integers(3, 6, on.shape), rng.integers(0, 3, on.shape))  # above 2: on
    there, weights = rng.random(on.shape) >= 0.01, rng.integers(0, 5, 3000)
    kinds = [pa.int16(), pa.float64(), pa.int64()]
    columns = {
        f"s{i:02d}": pa.array(values[:, i].tolist(), kinds[i % 3], mask=~there[:, i]) for i in range(on.shape[1])
    }
    table = pa.table({**columns, "n": pa.array(weights)})
    (tmp_path / "parts").mkdir()
    for number, (begin, end) in enumerate(pairwise(cuts)):
        pq.write_table(table.slice(begin, end - begin), tmp_path / "parts" / f"{number}.parquet")
    data = observations_of(open_table(tmp_path / "parts", sample_weight="n", binarize=2), large=0)
    assert isinstance(data, TableSums)
    counts = PatternCounts.of(np.where(there, on, np.nan), sensors=list(columns), sample_weight=weights)
    assert data.counts() == counts
    assert data.quiet_rows() == counts.quiet_rows()
    for name in ("both", "on", "observed"):
        assert np.array_equal(getattr(data.pair_counts(), name), getattr(counts.pair_counts(), name)), name


@pytest.mark.slow
def test_wide_sources_of_a_table_beyond_memory_are_learned_from_a_sample(monkeypatch):
    rng = np.random.default_rng(2)
    mixing = np.zeros((80, 6), dtype=bool)
    for j in range(6):
        mixing[rng.choice(80, 20, replace=False), j] = True
    activity = rng.random((20_000, 6)) < 0.1
    rows = (activity @ mixing.T) ^ (rng.random((20_000, 80)) < 0.01)
    monkeypatch.setattr("bica.data.observations.CELLS_IN_MEMORY", 80 * 4000)
    data = TableSums.of(cut(rows.astype(np.uint8), None, [0, 7000, 7000, 20_000]))
    found = learn(data, Likelihood(n_jobs=1), np.random.default_rng(0)).fit
    assert {tuple(column) for column in found.model.mixing.T} == {tuple(column) for column in mixing.T}
    order = [next(j for j in range(6) if (mixing[:, j] == column).all()) for column in found.model.mixing.T]
    error = found.model.probability - activity.mean(axis=0)[order]
    assert np.abs(error).max() < 4 * np.sqrt(0.1 * 0.9 / 4000)  # as precise as the sample
    assert data.rows_to_learn_from(np.random.default_rng(0)).n_samples == pytest.approx(4000, abs=4 * np.sqrt(4000))
