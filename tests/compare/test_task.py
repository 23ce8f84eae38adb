import signal
import sys
from types import SimpleNamespace

import numba.core.serialize
import numpy as np
import pytest

from bica.compare import CONTENDERS, NETWORKS, Contender, Setting, Task
from bica.compare.task import cpu_limit
from bica.errors import LimitError, SettingError
from bica.invert.decode import decode
from bica.kernels.bits import packed
from bica.methods import METHODS
from bica.metrics import activity_error_ratio, compare_models
from bica.model.fit import Fit
from bica.model.noise import Noise

SETTING = Setting(network="topology two", n_samples=60, flip_rate=0.1)


class Half:
    """A method that finds every second source, and a noise of its own."""

    def fit(self, data, rng):
        truth = SETTING.draw(0).model
        return Fit(truth.pick(range(0, truth.n_sources, 2)).with_noise(Noise.flips(0.03)), method="half")


@pytest.mark.filterwarnings("ignore::bica.errors.BicaWarning")  # so few rows leave doubts, which some methods mention
@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_part(name):
    record = Task(contender=name, setting=SETTING, seed=0).perform()
    assert record["failure"] is None
    assert 0 <= record["hamming_distance"] <= 1
    assert 0 <= record["activity_error"] <= 1
    assert record["cpu_seconds"] > 0


def test_methods_that_count_have_no_probability_error():
    assert Task(contender="mac", setting=SETTING, seed=0).perform()["transmission_probability_error"] is None
    assert Task(contender="findbica", setting=SETTING, seed=0).perform()["transmission_probability_error"] is not None


def test_measures_are_those_of_the_metrics_with_both_kinds_of_noise(monkeypatch):
    monkeypatch.setattr(Contender, "prepared", lambda self, n_sources: Half())
    record = Task(contender="findbica", setting=SETTING, seed=0).perform()
    problem, found = SETTING.draw(0), Half().fit(None, None).model
    compared = compare_models(found, problem.model, 60)
    assert record["hamming_distance"] == compared.hamming_distance
    assert record["structure_error"] == compared.structure_error
    assert (record["n_found"], record["recall"]) == (4, compared.columns.recall)
    for name, model in (("", found), ("_true_noise", found.with_noise(problem.model.noise))):
        activity = decode(model, packed(problem.rows)).activity
        expected = activity_error_ratio(activity, problem.activity, compared.match)
        assert record[f"activity_error{name}"] == expected
    assert record["found_flip_rate"] == pytest.approx(0.03)


def test_a_refusal_is_recorded_with_its_reason(monkeypatch):
    monkeypatch.setitem(CONTENDERS, "greedy", Contender("mac", {"max_assign": 40}))
    monkeypatch.setattr("bica.rivals.mac.TABLE_CELLS", 10)
    monkeypatch.setattr("bica.compare.task.warm_up", lambda *_: None)
    record = Task(contender="greedy", setting=SETTING, seed=0).perform()
    assert "lower max_assign" in record["failure"]
    assert record["hamming_distance"] is None


def test_unknown_names_are_refused_with_the_choice():
    with pytest.raises(SettingError, match="no method 'magic'"):
        Task(contender="magic", setting=SETTING, seed=0).perform()
    with pytest.raises(SettingError, match="no network 'magic'"):
        Setting(network="magic", n_samples=10, flip_rate=0.0).draw(0)


@pytest.mark.parametrize("network", NETWORKS)
def test_every_network_can_be_drawn(network):
    problem = Setting(network=network, n_samples=20, flip_rate=0.0).draw(3)
    assert np.array_equal(problem.rows, problem.model.observe(problem.activity))


def test_the_limit_waits_until_numba_has_handed_over_what_a_loop_returned():
    """An exception between a compiled loop and Python would crash the process."""
    with cpu_limit(60):
        give_up = signal.getsignal(signal.SIGPROF)
        inside = sys._getframe()
        place = {"co_filename": numba.core.serialize.__file__, "co_name": "_numba_unpickle"}
        handing_over = SimpleNamespace(f_code=SimpleNamespace(**place))
        assert give_up(signal.SIGPROF, handing_over) is None
        with pytest.raises(LimitError, match="more than 60 s"):
            give_up(signal.SIGPROF, inside)
