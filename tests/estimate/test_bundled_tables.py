"""Likelihood on the bundled tables: exactly the true sources, none spurious, and a diagnosis that agrees."""

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.diagnose.verdicts import Diagnosis
from bica.estimate.likelihood import Likelihood
from bica.simulate import example


@pytest.mark.parametrize("name", ["abilene", "geant2009"])
def test_exactly_the_true_sources_are_found(name):
    known = example(name)
    data = PatternCounts.of(known.table_path)
    fit = Likelihood().fit(data, np.random.default_rng(0))
    place = [fit.model.sensors.index(sensor) for sensor in known.sensors]
    assert {tuple(c) for c in fit.model.mixing[place].T.tolist()} == {tuple(c) for c in known.mixing.T.tolist()}
    assert Diagnosis.of(data, fit).verdict == "fits"
