"""Dask: the same model as from memory, and nothing but statistics on the driver."""

import numpy as np
import pytest

from bica import BICA
from bica.data.engines import engine_of, frame_of_files
from bica.data.observations import TableSums, observations_of
from bica.data.patterns import PatternCounts
from bica.data.tables import open_table
from bica.errors import DataError
from bica.estimate.likelihood import Likelihood
from bica.pipeline import learn, observe
from tests.data.test_partitions import saved, sparse_table

pd = pytest.importorskip("pandas")
pytestmark = [pytest.mark.cluster, pytest.mark.slow]
NAMES = [f"s{i:02d}" for i in range(70)]
ROWS = sparse_table(3000)


@pytest.fixture(scope="module")
def dask_client():
    distributed = pytest.importorskip("distributed", reason='Dask is absent: pip install "bica[dask]"')
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(ROWS, columns=NAMES)


@pytest.fixture(scope="module")
def expected(tmp_path_factory, frame):
    learned = learn(frame, Likelihood(n_jobs=1), np.random.default_rng(0))
    return saved(learned, tmp_path_factory.mktemp("model") / "model.json")


def received(client, monkeypatch):
    """What the driver gets from the workers from now on."""
    from dask.sizeof import sizeof

    sizes, gather = [], type(client)._gather

    async def noted(self, *given, **settings):
        values = await gather(self, *given, **settings)
        sizes.append(sizeof(values))
        assert not any(isinstance(value, pd.DataFrame) for value in values)
        return values

    monkeypatch.setattr(type(client), "_gather", noted)
    return sizes


@pytest.mark.parametrize("n_parts", [1, 3])
def test_dask_learns_the_same_model_and_keeps_the_rows(dask_client, frame, expected, n_parts, tmp_path, monkeypatch):
    import dask.dataframe as dd

    sizes = received(dask_client, monkeypatch)
    parts = dd.from_pandas(frame, npartitions=n_parts)
    parts = dd.concat([parts, parts[parts.s00 != parts.s00]])  # and empty partitions
    data = observe(parts).data
    assert isinstance(data, TableSums)
    assert saved(learn(data, Likelihood(n_jobs=2), np.random.default_rng(0)), tmp_path / "model.json") == expected
    pairs = 70 * 70 * 8
    assert 0 < max(sizes) < 10 * pairs + 200_000  # pairs, and the patterns of all blocks of a round


def test_dask_decodes_on_its_workers(dask_client, frame):
    import dask.dataframe as dd

    learner = BICA(random_state=0).fit(frame)
    parts = dd.from_pandas(frame, npartitions=2)
    assert engine_of(parts) == "dask"
    decoded, probability = learner.model_.decode(parts), learner.model_.posterior(parts)
    assert engine_of(decoded) == engine_of(probability) == "dask"
    assert decoded.compute().to_numpy().astype(int).tolist() == learner.transform(frame).tolist()
    assert probability.compute().to_numpy().tolist() == learner.posterior(frame).tolist()


def test_dask_says_what_is_wrong_with_a_cell(dask_client, frame):
    import dask.dataframe as dd

    strange = frame.astype(int)
    strange.iloc[17, 3] = 5
    with pytest.raises(DataError, match="column 's03' holds 5"):
        observe(dd.from_pandas(strange, npartitions=2))


def test_row_groups_of_files_with_missing_cells_weights_and_thresholds(dask_client, frame, tmp_path, monkeypatch):
    monkeypatch.setattr("bica.data.engines.CELLS_A_TASK", 70 * 500)
    rng = np.random.default_rng(1)
    values = frame.astype(float).mask(rng.random(frame.shape) < 0.05) * 3
    values["n"] = rng.integers(0, 5, len(values))
    values[:1700].to_parquet(tmp_path / "a.parquet", index=False, row_group_size=301)
    values[1700:].to_parquet(tmp_path / "b.parquet", index=False)
    how = {"sample_weight": "n", "binarize": 2}
    found = observe(frame_of_files(str(tmp_path), "dask"), **how).data
    assert isinstance(found, TableSums)
    assert len(found.partitions.parts) > 3
    assert found.counts() == PatternCounts.of(values, **how)
    strange = frame.astype(int)
    strange.iloc[2000, 3] = 5
    strange.to_parquet(tmp_path / "c.parquet", index=False, row_group_size=600)
    with pytest.raises(DataError, match=r"c.parquet: row 2000, column 's03' holds 5"):
        observe(frame_of_files(str(tmp_path / "c.parquet"), "dask"))


def test_missing_cells_weights_and_thresholds_on_dask(dask_client, frame):
    import dask.dataframe as dd

    rng = np.random.default_rng(1)
    values = frame.astype(float).mask(rng.random(frame.shape) < 0.05) * 3
    values["n"] = rng.integers(0, 5, len(values))
    how = {"sample_weight": "n", "binarize": 2}
    expected = PatternCounts.of(values, **how)
    assert observations_of(open_table(dd.from_pandas(values, npartitions=3), **how)).counts() == expected


def test_files_are_read_by_the_workers_without_the_keys_of_their_folders(dask_client, frame, expected, tmp_path):
    for day in (0, 1):
        (tmp_path / f"day={day}").mkdir()
        frame[1500 * day : 1500 * day + 1500].to_parquet(tmp_path / f"day={day}" / "part.parquet", index=False)
    frame[:0].to_parquet(tmp_path / "day=1" / "nothing.parquet", index=False)
    found = frame_of_files(str(tmp_path), "dask")
    data = observe(found).data
    assert data.sensors == tuple(NAMES)
    assert isinstance(data, TableSums)
    assert data.counts() == PatternCounts.of(frame)
    assert saved(learn(data, Likelihood(n_jobs=2), np.random.default_rng(0)), tmp_path / "model.json") == expected
    few = frame_of_files(str(tmp_path), "dask")
    assert observe(few, columns=NAMES[:9]).data == PatternCounts.of(frame[NAMES[:9]])
    with pytest.raises(DataError, match="no Parquet files"):
        frame_of_files(str(tmp_path / "nothing*"), "dask")
