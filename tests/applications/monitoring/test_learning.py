"""Users learned from tables of slots are as good as known ones, where the tables are long enough."""

import numpy as np
import pytest

from bica.applications import MonitoringProblem, assign, learn_channels
from bica.methods import method_named
from bica.model.fit import Fit
from bica.model.or_mixture import OrMixture

TRUTH = {
    "1": OrMixture([[1, 0], [1, 1], [0, 1]], [0.2, 0.1]),
    "6": OrMixture([[1, 0], [0, 0], [1, 1]], [0.15, 0.05]),
}


@pytest.mark.parametrize("method", ["likelihood", "findbica"])
def test_an_assignment_from_learned_users_is_as_good_as_from_known_ones(method):
    rng = np.random.default_rng(11)
    tables = {name: model.sample(4000, rng) for name, model in TRUTH.items()}
    learned = learn_channels(tables, method_named(method)).problem()
    known = MonitoringProblem.of(TRUTH)
    assert known.value(assign(learned).channel) == pytest.approx(assign(known).value)
    # each share of on-cells is within four standard errors of the truth
    assert np.abs(learned.busy - known.busy).max() < 4 * np.sqrt(0.25 / 4000)


def test_half_learned_users_make_no_plan():
    class Stopped:
        def fit(self, data, rng):
            return Fit(TRUTH["1"], diagnostics={"interrupted": True})

    with pytest.raises(KeyboardInterrupt, match="while learning channel 1"):
        learn_channels({"1": [[1, 0, 0]]}, Stopped())


def test_sniffers_without_a_cell_hear_nothing_there():
    rows = TRUTH["1"].sample(500, np.random.default_rng(2)).astype(float)
    rows[:100, 2] = np.nan
    learned = learn_channels({"1": rows, "6": np.zeros((50, 3))})
    assert learned.fits["6"].model.n_sources == 0
    assert learned.busy["1"]["x2"] == pytest.approx(rows[100:, 2].mean())
    assert learned.busy["6"] == {"x0": 0, "x1": 0, "x2": 0}
