"""Which noise the sensors have: chosen by evidence, with the sources that the right noise makes visible."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

from bica import Likelihood
from bica.data.patterns import PatternCounts
from bica.diagnose.verdicts import Diagnosis
from bica.errors import BicaWarning
from bica.estimate import likelihood
from bica.estimate.blocks.learn import rate_of_noise_alone, with_noise_alone
from bica.estimate.lattice import Surface
from bica.estimate.likelihood import lattice_task
from bica.estimate.search import SAME_AGAIN, Start, has_splinters
from bica.estimate.settings import Settings, Varying
from bica.estimate.whole import TYPICAL_ERROR, log_evidence, own_rates, promised
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network


def columns(model):
    return {tuple(column) for column in model.mixing.T}


def learned(rows, **settings):
    return Likelihood(**settings).fit(PatternCounts.of(rows), np.random.default_rng(0))


def unequal(seed, miss=(0.0, 0.4), false_alarm=(0.0, 0.05), n_samples=5000):
    """Twelve sensors with rates of their own, eight sources, and rows."""
    rng = np.random.default_rng(seed)
    network = random_network(12, 8, rng=rng)
    noise = Noise(rng.uniform(*false_alarm, 12), rng.uniform(*miss, 12))
    truth = OrMixture(network.mixing, network.probability, noise)
    return truth, truth.sample(n_samples, rng)


class TestUnequalSensors:
    @pytest.mark.parametrize("seed", [100, 101, 103])
    def test_sources_and_rates_are_found(self, seed):
        """Other tables have a source too many, such as seed 102: ``benchmarks/bench_unequal.py`` says how often."""
        truth, rows = unequal(seed)
        fit = learned(rows)
        assert columns(fit.model) == columns(truth)
        report = fit.diagnostics["noise"]
        assert report["kind"] == "per-sensor"
        for name, rates in (("false_alarm", truth.noise.false_alarm), ("miss", truth.noise.miss)):
            found, error = np.array(report[name]["rate"]), np.array(report[name]["error"])
            told = (error > 0) & (error < 0.02)  # the others the rows leave open, or at zero
            assert told.sum() >= 4
            assert np.abs((found - rates)[told] / error[told]).max() < 4.5

    def test_one_flip_rate_would_splinter(self):
        truth, rows = unequal(100)
        assert learned(rows, noise="estimate").model.n_sources > 2 * truth.n_sources

    def test_misses_that_all_sensors_share(self):
        rng = np.random.default_rng(5)
        network = random_network(10, 8, rng=rng)
        truth = OrMixture(network.mixing, network.probability, Noise(0.01, 0.15))
        fit = learned(truth.sample(4000, rng))
        assert columns(fit.model) == columns(truth)
        assert fit.diagnostics["noise"]["kind"] == "two-rates"
        # every miss shows in a cell whose source is on: some 4000 * 10 / 3 of them, but some are hidden by overlaps
        assert abs(fit.model.noise.miss - 0.15) < 4 * np.sqrt(0.15 / 5000)
        assert abs(fit.model.noise.false_alarm - 0.01) < 4 * np.sqrt(0.01 / 10_000)

    def test_a_kind_that_was_asked_for_is_kept(self):
        _, rows = unequal(3, n_samples=800)
        fit = learned(rows, noise="two-rates")
        assert fit.diagnostics["noise"]["kind"] == "two-rates"
        assert fit.model.noise.n_sensors is None


class TestManyUnequalSensors:
    def rows(self):
        rng = np.random.default_rng([1, 9])
        network = random_network(18, 9, column_weight=(3, 5), probability=(0.05, 0.12), rng=rng)
        noise = Noise(rng.uniform(0, 0.02, 18), rng.uniform(0, 0.4, 18))
        truth = OrMixture(network.mixing, network.probability, noise)
        return truth, truth.sample(2000, rng)

    def test_sources_and_rates_are_found(self):
        truth, rows = self.rows()
        fit = learned(rows)
        assert columns(fit.model) == columns(truth)
        assert fit.diagnostics["noise"]["kind"] == "per-sensor"
        miss = fit.diagnostics["noise"]["miss"]
        error = np.array(miss["error"])
        told = (error > 0) & (error < 0.05)
        assert told.sum() >= 9
        assert np.abs((np.array(miss["rate"]) - truth.noise.miss)[told] / error[told]).max() < 4.5

    def test_beyond_the_lattice_lossy_sources_show_the_way(self, monkeypatch):
        truth, rows = self.rows()
        monkeypatch.setattr(likelihood, "LATTICE_SENSORS", 16)
        fit = learned(rows)
        assert columns(fit.model) == columns(truth)
        assert (fit.diagnostics["noise"]["kind"], fit.diagnostics["edges"]) == ("per-sensor", "sure")

    @pytest.mark.filterwarnings("ignore:the rows leave the error rates")
    def test_they_also_do_where_splinters_have_too_many_hidden_states(self, monkeypatch):
        truth, rows = self.rows()
        monkeypatch.setattr(likelihood, "LATTICE_SENSORS", 16)
        monkeypatch.setattr(likelihood, "fit_on_rows", lambda *args, **settings: None)
        assert columns(learned(rows[:1000], noise="per-sensor").model) >= columns(truth)

    def test_an_interrupt_on_that_way_keeps_what_was_found(self, monkeypatch):
        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(likelihood, "LATTICE_SENSORS", 16)
        monkeypatch.setattr(likelihood, "fit_on_rows", lambda *args, **settings: None)
        monkeypatch.setattr(likelihood, "fit_with_own_rates", interrupt)
        with pytest.warns(BicaWarning, match="interrupted"):
            fit = learned(self.rows()[1], noise="per-sensor")
        assert fit.diagnostics["interrupted"]


def test_beyond_sixteen_sensors_and_with_sure_edges_it_has_to_be_asked_for():
    rng = np.random.default_rng(2)
    mixing = np.zeros((18, 6), dtype=bool)
    for source in range(6):
        mixing[3 * source : 3 * source + 4, source] = True
    truth = OrMixture(mixing, np.full(6, 0.1), Noise(0.005, np.linspace(0.0, 0.2, 18)))
    rows = truth.sample(3000, rng)
    assert "flip_rate" in learned(rows, edges="sure").diagnostics["noise"]
    asked = learned(rows, noise="per-sensor")
    assert asked.diagnostics["noise"]["kind"] == "per-sensor"
    assert columns(asked.model) >= columns(truth)


@pytest.mark.parametrize("flip_rate", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_where_one_flip_rate_is_right_nothing_changes(seed, flip_rate):
    rng = np.random.default_rng(seed)
    truth = random_network(10, 10, rng=rng, noise=Noise.flips(flip_rate))
    rows = truth.sample(1000, rng)
    plain = learned(rows, noise="estimate")
    sure, auto = learned(rows, edges="sure"), learned(rows)
    assert columns(sure.model) == columns(plain.model)
    assert np.allclose(
        sure.model.probability, plain.model.probability, rtol=0, atol=1e-6
    )  # another way to the same top
    assert auto.model == sure.model
    assert auto.log_likelihood == sure.log_likelihood


def search_of(rows):
    search = task_of(rows).search()
    search.run()
    return search


def task_of(rows):
    return lattice_task(Varying.of(PatternCounts.of(rows), (), ()), Settings())


def search_at(rows, sources):
    """A search that stands at these sources, with the rates and the noise they begin with."""
    start = Start(np.array(sources), np.full(len(sources), 0.1), np.ones(len(sources), bool), np.array([0.1]))
    search = task_of(rows).search(start)
    here = search.surface.at(start.sources, start.rate, start.noise)  # a refit would drop sources that do not pay
    search.best = replace(search.best, fit=replace(search.best.fit, point=here))
    return search


def with_own_rates(search):
    """The surface of the same rows with rates of every sensor."""
    cells = search.task.scale.surface.cells
    return Surface(cells, own_rates(cells.n_sensors, 1e-6))


class TestEvidence:
    def integral(self, search):
        """Over the flip rate, with no source at all, from the definition."""
        surface, best = search.task.scale.surface, search.best.fit.point

        def weight(rate):
            height = surface.at(best.sources, best.rate, np.array([rate])).log_likelihood
            return (
                np.exp(height - best.log_likelihood) * 2 / (np.pi * TYPICAL_ERROR * (1 + (rate / TYPICAL_ERROR) ** 2))
            )

        peak = float(best.noise[0])
        return search.best.score + np.log(quad(weight, 1e-12, 0.5, points=[peak, 2 * peak + 0.01], limit=500)[0])

    def test_it_is_the_integral_over_the_flip_rate(self):
        rows = np.random.default_rng(1).random((400, 4)) < 0.08
        search = search_of(rows)
        assert search.best.fit.point.sources.size == 0
        assert log_evidence(search) == pytest.approx(self.integral(search), abs=0.1)

    def test_also_where_the_rate_is_at_its_bound(self):
        """All rows equal up to one source: any flip would show."""
        rows = np.vstack([np.zeros((300, 3)), np.ones((200, 3))])
        search = search_of(rows)
        best = search.best.fit
        assert best.point.noise[0] <= 1e-4
        slope = float(search.task.scale.surface.gradient(best.point)[-1])
        expected = search.best.score + np.log(2 / (np.pi * TYPICAL_ERROR)) - np.log(-slope)
        assert log_evidence(search) == pytest.approx(expected, abs=0.05)


def test_splinters_are_sources_within_others():
    _, rows = unequal(100)
    assert has_splinters(search_of(rows))
    assert not has_splinters(search_of(np.random.default_rng(0).random((300, 4)) < 0.2))


def test_sources_within_one_wide_source_are_none():
    """Noisy rows suggest a wide source for a while; only sources that lack single sensors tell of edges that fail."""
    rows = np.random.default_rng(0).random((300, 6)) < 0.2
    assert has_splinters(search_at(rows, [0b111111, 0b111110, 0b111101, 0b111011]))
    assert not has_splinters(search_at(rows, [0b111111, 0b11, 0b1100, 0b110000, 0b1001]))


def test_sources_that_come_back_at_the_same_rates_are_no_success():
    """Each success begins all moves again, so the last digits of a refit must not count as one."""
    rows = OrMixture([[1, 0], [1, 1], [0, 1]], [0.3, 0.2], Noise.flips(0.05)).sample(1000, np.random.default_rng(1))
    search = search_of(rows)
    best = search.best
    again = replace(best, fit=replace(best.fit, objective=best.fit.objective + 0.5 * SAME_AGAIN))
    assert search.task.scale.advantage(again, best) > search.better
    assert not search.improves(again)
    higher = replace(best, fit=replace(best.fit, objective=best.fit.objective + 2 * SAME_AGAIN))
    assert search.improves(higher)


def test_the_slope_promises_nothing_where_one_rate_is_right_and_much_where_it_is_not():
    rng = np.random.default_rng(4)
    network = random_network(8, 5, rng=rng)
    promise = []
    for noise in (Noise.flips(0.03), Noise(0.01, np.linspace(0, 0.4, 8))):
        search = search_of(OrMixture(network.mixing, network.probability, noise).sample(3000, rng))
        promise.append(promised(search, with_own_rates(search)))
    assert promise[0] < 20  # half a chi-squared of 15 degrees: 7.5 on average, 18 in one of a thousand
    assert promise[1] > 50


def test_the_rate_of_noise_alone_allows_for_sensors_left_out_because_they_never_vary():
    inside = 0
    for seed in range(40):
        rows = np.random.default_rng([17, seed]).random((10, 2000)) < 0.102
        varies = rows.any(axis=0) & ~rows.all(axis=0)
        rate, error = rate_of_noise_alone(rows[:, varies].sum(axis=0).astype(float), np.full(varies.sum(), 10.0))
        inside += abs(rate - 0.102) <= 1.96 * error
    assert inside >= 34  # of 40 at 95 %: fewer happens in 1 of 700 cases


def test_with_many_rows_it_is_the_share_of_ones():
    ones = np.array([48.0, 52.0, 60.0])
    rate, error = rate_of_noise_alone(ones, np.full(3, 1000.0))
    assert rate == pytest.approx(160 / 3000, rel=1e-4)
    assert error == pytest.approx(np.sqrt(rate * (1 - rate) / 3000), rel=1e-2)


def test_a_wide_fit_without_sources_has_the_rate_its_noise_was_drawn_with():
    rows = np.random.default_rng(3).random((10, 3000)) < 0.102
    table = Varying.of(PatternCounts.of(rows), (), ())
    noise = {"estimated": True, "flip_rate": 0.155, "error": 0.001, "interval": [0.153, 0.157]}
    nothing = Fit(OrMixture(np.zeros((3000, 0)), [], Noise.flips(0.155)), diagnostics={"noise": noise})
    fit = with_noise_alone(nothing, table)
    low, high = fit.diagnostics["noise"]["interval"]
    assert low <= 0.102 <= high
    assert fit.model.noise == Noise.flips(fit.diagnostics["noise"]["flip_rate"])
    assert Diagnosis.of(table.whole, fit).verdict != "fits"


def test_a_fit_with_sources_keeps_its_noise():
    rows = np.random.default_rng(3).random((10, 20)) < 0.3
    fit = Fit(OrMixture(np.ones((20, 1)), [0.1], Noise.flips(0.2)), diagnostics={"noise": {"flip_rate": 0.2}})
    assert with_noise_alone(fit, Varying.of(PatternCounts.of(rows), (), ())) is fit
