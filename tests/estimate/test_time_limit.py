"""A time limit ends every stage of learning with the best model so far, marked; without need it changes nothing."""

import warnings
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from bica import BICA, progress
from bica.ahead import _rows as network
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.errors import BicaWarning, LimitError, SettingError
from bica.estimate.bootstrap import bootstrap
from bica.estimate.likelihood import Likelihood
from bica.pipeline import learn
from bica.progress import go_on, in_threads, is_time_up, report, time_limited

TABLES = {  # one for every way to learn
    "lattice": (Likelihood(noise="estimate"), network(6, 500)),
    "own rates of noise": (Likelihood(noise="per-sensor"), network(6, 500)),
    "edges compared": (Likelihood(), network(5, 600, reach=0.6)),
    "lossy": (Likelihood(edges="lossy"), network(6, 1500, reach=0.6)),
    "row states": (Likelihood(noise="estimate"), network(17, 100)),
    "blocks": (Likelihood(), network(66, 400)),
    "rows": (Likelihood(), network(66, 80, n_wide=3, flip_rate=0.01)),
    "lossy rows": (Likelihood(edges="lossy"), network(18, 1200, reach=0.6, flip_rate=0.01)),
}


AGES = 1e12  # looks; without any limit nobody looks


def ticking(monkeypatch):
    """A clock that moves on by one second whenever somebody looks: seconds of a limit are looks at the clock."""
    clock = count()
    monkeypatch.setattr(progress, "monotonic", lambda: float(next(clock)))
    return clock


def fitted(method, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicaWarning)
        return method.fit(PatternCounts.of(rows), np.random.default_rng(0))


@pytest.mark.parametrize("case", TABLES)
def test_every_stage_honours_it(case, monkeypatch):
    method, rows = TABLES[case]
    clock = ticking(monkeypatch)
    whole = fitted(replace(method, time_limit=AGES), rows)
    n_looks = next(clock)
    assert "interrupted" not in whole.diagnostics
    assert n_looks > 10  # so there are places at which it can end
    for share in (0.0, 0.1, 0.7):
        limit = max(0.5, share * n_looks)
        fit = fitted(replace(method, time_limit=limit), rows)
        assert fit.diagnostics["interrupted"] is True
        assert fit.diagnostics["time_limit"] == limit
        assert not fit.converged
        assert np.isfinite(fit.model.probability).all()
        assert fit.model.n_sensors == rows.shape[1]
    enough = fitted(replace(method, time_limit=10.0 * n_looks), rows)
    assert enough.document().sources == whole.document().sources
    assert "time_limit" not in enough.diagnostics


def test_in_time(monkeypatch):
    rows = Rows.of(np.repeat(network(5, 60), 5, axis=0))
    clock = ticking(monkeypatch)
    whole = Likelihood(time_limit=AGES).fit_in_order(rows, np.random.default_rng(0))
    n_looks = next(clock)
    for share in (0.0, 0.5, 0.95):
        with pytest.warns(BicaWarning, match="the time limit is over: this is the best model so far"):
            fit = Likelihood(time_limit=max(0.5, share * n_looks)).fit_in_order(rows, np.random.default_rng(0))
        assert fit.diagnostics["time_limit"] == max(0.5, share * n_looks)
    enough = Likelihood(time_limit=10.0 * n_looks).fit_in_order(rows, np.random.default_rng(0))
    assert enough.document() == whole.document()


def test_the_verdict_never_says_fits():
    rows = np.array([[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50)
    with pytest.warns(BicaWarning, match="time limit"):
        learned = learn(PatternCounts.of(rows), Likelihood(time_limit=1e-9), np.random.default_rng(0))
    assert learned.diagnosis.verdict != "fits"
    assert any("the time limit was over before learning was" in reason for reason in learned.diagnosis.reasons)


def test_known_sources_are_kept_where_nothing_was_found():
    rows = network(70, 200)
    names = PatternCounts.of(rows).sensors
    method = Likelihood(time_limit=1e-9, known=[(names[:2], 0.25)])
    fit = fitted(method, rows)
    assert fit.model.n_sources == 1
    assert fit.model.probability == pytest.approx([0.25])
    assert np.flatnonzero(fit.model.mixing[:, 0]).tolist() == [0, 1]


def test_bica_and_its_bootstrap(monkeypatch):
    rows = [[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50
    fitted = BICA(random_state=0, time_limit=600).fit(rows)
    assert fitted.fit_.converged
    clock = ticking(monkeypatch)
    assert fitted.bootstrap(5).n_resamples == 5
    n_looks = next(clock)
    assert 1 <= fitted.set_params(time_limit=n_looks / 2).bootstrap(5).n_resamples < 5
    with pytest.raises(LimitError, match="not one resample was learned within the time limit"):
        fitted.set_params(time_limit=0.5).bootstrap(5)


def test_one_that_other_methods_do_not_know():
    with pytest.raises(SettingError, match="'findbica' has no setting 'time_limit', which is for 'likelihood'"):
        BICA("findbica", time_limit=3).fit([[0, 1], [1, 0]])
    for wrong in (0, -1.0, "5", True, float("nan")):
        with pytest.raises(SettingError, match="it can be a number of seconds above 0, or None for no limit"):
            Likelihood(time_limit=wrong)


class TestLimits:
    def test_the_earlier_of_two_counts_and_ends_with_its_block(self, monkeypatch):
        ticking(monkeypatch)
        with time_limited(3.0):
            with time_limited(100.0):
                go_on()
                with pytest.raises(progress.TimeUp):
                    report("steps", 1, 2)
            assert is_time_up()
        go_on()

    def test_threads_share_it(self):
        with time_limited(1e-9):
            assert list(in_threads(lambda _: is_time_up(), range(4), n_jobs=2)) == [True] * 4
        assert list(in_threads(lambda _: is_time_up(), range(4), n_jobs=2)) == [False] * 4

    def test_resamples_so_far_are_kept_in_threads(self, monkeypatch):
        data = PatternCounts.of(network(6, 300))
        fit = Likelihood(noise="estimate").fit(data, np.random.default_rng(0))
        clock = ticking(monkeypatch)
        unlimited = Likelihood(noise="estimate", time_limit=AGES)
        bootstrap(unlimited, data, fit, 6, np.random.default_rng(0), n_jobs=1)
        limited = Likelihood(noise="estimate", time_limit=next(clock) / 2)
        found = bootstrap(limited, data, fit, 6, np.random.default_rng(0), n_jobs=2)
        assert 1 <= found.n_resamples < 6
