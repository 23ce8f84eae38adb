import csv
from importlib.resources import files

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import DataError
from bica.simulate import DESCRIPTIONS, example

SHAPES = {"abilene": (10, 7), "geant2009": (15, 13), "btnorthamerica": (21, 26)}


@pytest.mark.parametrize("name", SHAPES)
class TestExample:
    def test_the_parts_fit_each_other(self, name):
        found = example(name)
        assert found.mixing.shape == SHAPES[name] == (len(found.sensors), len(found.source_names))
        assert found.probability.shape == (len(found.source_names),)
        assert ((found.probability >= 0.01) & (found.probability <= 0.12)).all()
        assert len({tuple(column) for column in found.mixing.T.tolist()}) == len(found.source_names)
        assert found.mixing.any(axis=0).all()
        assert found.description

    def test_the_table_shows_the_sensors_under_their_names(self, name):
        found = example(name)
        counts = PatternCounts.of(found.table_path)
        assert counts.sensors == found.sensors
        assert (counts.n_samples, counts.observed) == (5000, None)

    def test_sensors_are_on_as_often_as_the_answer_says(self, name):
        found = example(name)
        expected = 1 - np.array([np.prod(1 - found.probability[row]) for row in found.mixing])
        error = PatternCounts.of(found.table_path).ones() / 5000 - expected
        # each is a mean of 5000 draws: four and a half standard errors for 46 sensors in all
        assert (np.abs(error) < 4.5 * np.sqrt(expected * (1 - expected) / 5000)).all()

    def test_the_answer_is_the_one_in_the_files(self, name):
        found = example(name)
        folder = files("bica.data") / "examples"
        with (folder / f"{name}_G.csv").open() as file:
            for i, row in enumerate(csv.DictReader(file)):
                assert row.pop("sensor") == found.sensors[i]
                assert [int(row[source]) for source in found.source_names] == found.mixing[i].tolist()
        with (folder / f"{name}_sources.csv").open() as file:
            known = {row["source"]: float(row["probability"]) for row in csv.DictReader(file)}
        assert known == dict(zip(found.source_names, found.probability.tolist(), strict=True))


def test_other_names_are_refused():
    assert list(DESCRIPTIONS) == list(SHAPES)
    with pytest.raises(DataError, match="there is no example 'nowhere'; there are abilene, geant2009, btnorthamerica"):
        example("nowhere")


def test_the_origin_and_the_licence_come_with_the_tables():
    notice = (files("bica.data") / "examples" / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for fact in ("Internet Topology Zoo", "Knight", "CC BY 4.0", "mroughan/InternetTopologyZoo", "simulated"):
        assert fact in notice
