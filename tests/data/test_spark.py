"""Spark: the same model as from memory, and nothing but statistics on the driver.

Spark is no part of the extra `test`: it weighs 500 MB and needs Java, and starting it takes half a minute.
"""

import os
import shutil
import sys

import numpy as np
import pytest

from bica import BICA
from bica.data.engines import engine_of, frame_of_files
from bica.data.observations import TableSums, observations_of
from bica.data.patterns import PatternCounts
from bica.data.tables import open_table
from bica.estimate.likelihood import Likelihood
from bica.pipeline import learn, observe
from tests.data.test_engines import NAMES, ROWS
from tests.data.test_partitions import saved

pd = pytest.importorskip("pandas")
pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason='Spark is absent: pip install "bica[spark]"')
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is absent")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers would take python3 from the path, without this package
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    builder = sql.SparkSession.builder.master("local[2]").appName("bica")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def parts(spark, tmp_path_factory):
    """Three files, one of them without rows, as a frame."""
    folder = tmp_path_factory.mktemp("day=1")
    frame = pd.DataFrame(ROWS, columns=NAMES)
    for number, part in enumerate((frame[:1000], frame[:0], frame[1000:])):
        part.to_parquet(folder / f"{number}.parquet", index=False)
    return frame_of_files(str(folder), "spark")


def test_spark_learns_the_same_model_and_keeps_the_rows(parts, tmp_path, monkeypatch):
    frame = pd.DataFrame(ROWS, columns=NAMES)
    expected = saved(learn(frame, Likelihood(n_jobs=1), np.random.default_rng(0)), tmp_path / "here.json")
    for method in ("collect", "toPandas", "toArrow", "toLocalIterator"):
        monkeypatch.setattr(type(parts), method, lambda *_, **__: pytest.fail("rows came to the driver"), raising=False)
    for given in (parts, parts.repartition(5)):
        data = observe(given).data
        assert isinstance(data, TableSums)
        assert saved(learn(data, Likelihood(n_jobs=1), np.random.default_rng(0)), tmp_path / "there.json") == expected


def test_missing_cells_weights_and_thresholds_on_spark(spark):
    rng = np.random.default_rng(1)
    values = pd.DataFrame(ROWS[:500], columns=NAMES).astype(float).mask(rng.random((500, 70)) < 0.05) * 3
    values["n"] = rng.integers(0, 5, len(values))
    how = {"sample_weight": "n", "binarize": 2}
    given = spark.createDataFrame(values).repartition(3)
    assert observations_of(open_table(given, **how)).counts() == PatternCounts.of(values, **how)


def test_spark_decodes_on_its_workers(spark):
    frame = pd.DataFrame(ROWS, columns=NAMES)
    parts = spark.createDataFrame(frame)  # in this order; files come in any
    learner = BICA(random_state=0).fit(frame)
    decoded, probability = learner.model_.decode(parts), learner.model_.posterior(parts)
    assert engine_of(decoded) == engine_of(probability) == "spark"
    assert decoded.toPandas().to_numpy().astype(int).tolist() == learner.transform(frame).tolist()
    assert np.allclose(probability.toPandas().to_numpy(), learner.posterior(frame), rtol=1e-12)
