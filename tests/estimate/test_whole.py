"""Standard errors from the curvature, and the interval of the noise."""

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.estimate.lattice import BetaPrior, Cells, NoiseShape, Pace, Surface, refit
from bica.estimate.likelihood import Likelihood, lattice_task
from bica.estimate.score import covariance_of, standard_errors
from bica.estimate.settings import KnownSource, Varying
from bica.estimate.whole import FLIPS, two_rates
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

RNG = np.random.default_rng
MIXING = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=bool)
SOURCES = np.array([0b0011, 0b0110, 0b1101])
TRUTH = OrMixture(MIXING, [0.1, 0.3, 0.2], Noise.flips(0.05))


def expected_counts(model: OrMixture, n_samples: float) -> PatternCounts:
    """A table in which every row is there exactly as often as the model says."""
    chance = model.pattern_probability()
    return PatternCounts(np.arange(chance.size, dtype=np.uint64)[:, None], n_samples * chance, model.sensors)


def fitted(data: PatternCounts, noise: float = 0.05, free=(True, True, True), prior=None):
    surface = Surface(Cells.of(data), NoiseShape.shared_flips(data.n_sensors, 1e-9))
    start = surface.at(SOURCES, -np.log1p(-TRUTH.probability), np.array([noise]))
    return surface, refit(surface, start, np.array(free), prior or BetaPrior(), pace=Pace(tolerance=1e-12), exact=True)


def second_derivatives(surface, point, step=1e-6):
    value, n = np.concatenate([point.rate, point.noise]), point.rate.size
    slopes = []
    for shift in np.eye(value.size) * step:
        up, down = value + shift, value - shift
        difference = surface.gradient(surface.at(point.sources, up[:n], up[n:]))
        difference -= surface.gradient(surface.at(point.sources, down[:n], down[n:]))
        slopes.append(difference / (2 * step))
    return np.array(slopes)


def test_where_the_model_holds_the_information_is_minus_the_second_derivatives():
    surface, fit = fitted(expected_counts(TRUTH, 1000))
    np.testing.assert_allclose(fit.information, -second_derivatives(surface, fit.point), rtol=1e-5, atol=1e-3)


def test_one_source_on_one_sensor_has_the_binomial_error():
    data = PatternCounts.of([[1]] * 30 + [[0]] * 70)
    fit = Likelihood(noise=Noise()).fit(data, RNG(0))
    assert fit.probability_error == pytest.approx([np.sqrt(0.3 * 0.7 / 100)], rel=1e-6)


def test_four_times_the_rows_halve_the_errors():
    few, many = (standard_errors(*fitted(expected_counts(TRUTH, n))) for n in (1000, 4000))
    np.testing.assert_allclose(few.probability, 2 * many.probability, rtol=1e-6)
    np.testing.assert_allclose(few.noise, 2 * many.noise, rtol=1e-6)


def test_unknown_noise_makes_the_errors_larger_than_known_noise():
    surface, fit = fitted(expected_counts(TRUTH, 1000))
    known = np.sqrt(np.diag(np.linalg.inv(fit.information[:3, :3]))) * (1 - TRUTH.probability)
    assert (standard_errors(surface, fit).probability > known).all()


def test_noise_at_its_floor_is_left_out():
    clean = TRUTH.with_noise(Noise())
    data = expected_counts(clean, 1000)
    seen = data.weights > 0
    data = PatternCounts(data.patterns[seen], data.weights[seen], data.sensors)
    surface, fit = fitted(data, noise=1e-9)
    errors = standard_errors(surface, fit)
    assert errors.noise.tolist() == [0.0]
    alone = np.sqrt(np.diag(np.linalg.inv(fit.information[:3, :3]))) * (1 - fit.point.probability)
    np.testing.assert_allclose(errors.probability, alone, rtol=1e-9)


def test_a_given_probability_has_no_error_and_leaves_the_others_surer():
    data = expected_counts(TRUTH, 1000)
    free, held = standard_errors(*fitted(data)), standard_errors(*fitted(data, free=(True, True, False)))
    assert held.probability[2] == 0
    assert (held.probability[:2] < free.probability[:2]).all()


def test_a_prior_counts_as_information():
    data = expected_counts(TRUTH, 100)
    told = standard_errors(*fitted(data, prior=BetaPrior(20, 80))).probability
    assert (told < standard_errors(*fitted(data)).probability).all()


def test_several_rates_have_an_error_each():
    data = expected_counts(TRUTH, 5000)
    surface = Surface(Cells.of(data), two_rates(4, 1e-9))
    start = surface.at(SOURCES, -np.log1p(-TRUTH.probability), np.full(2, 0.05))
    fit = refit(surface, start, np.ones(3, dtype=bool), BetaPrior(), pace=Pace(tolerance=1e-12), exact=True)
    errors = standard_errors(surface, fit)
    covariance = np.linalg.inv(fit.information)[3:, 3:]
    np.testing.assert_allclose(errors.noise, np.sqrt(np.diag(covariance)), rtol=1e-6)


def test_directions_without_information_are_infinite_and_the_rest_is_the_inverse():
    generator = RNG(3)
    square = generator.normal(size=(4, 4)) * [1, 10, 100, 1000]
    np.testing.assert_allclose(covariance_of(square.T @ square), np.linalg.inv(square.T @ square), rtol=1e-6)
    half_blind = np.zeros((3, 3))
    half_blind[:2, :2] = [[2.0, 1.0], [1.0, 2.0]]
    covariance = covariance_of(half_blind)
    assert covariance[2, 2] == np.inf
    np.testing.assert_allclose(covariance[:2, :2], np.linalg.inv(half_blind[:2, :2]))
    assert covariance_of(np.empty((0, 0))).shape == (0, 0)


class TestNoiseReport:
    def report(self, model, n_samples=4000, seed=1, **settings):
        data = PatternCounts.of(model.sample(n_samples, RNG(seed)), sensors=model.sensors)
        return Likelihood(**settings).fit(data, RNG(0)).diagnostics["noise"]

    def test_the_interval_holds_the_true_rate_and_the_estimate(self):
        told = self.report(TRUTH)
        low, high = told["interval"]
        assert low < told["flip_rate"] < high
        assert low < 0.05 < high
        # at least the sampling interval, and not out of all proportion to it
        assert 2 * 1.9 * told["error"] < high - low < 6 * 1.96 * told["error"]

    def test_without_noise_it_reaches_from_zero_to_what_would_have_been_seen(self):
        told = self.report(TRUTH.with_noise(Noise()))
        assert told["interval"][0] == 0
        # the rule of three: 3 over the number of cells is the least that could be said, were every flip seen
        assert 3 / (4 * 4000) <= told["interval"][1] < 3 / 4000

    def test_known_noise_is_not_estimated(self):
        assert self.report(TRUTH, noise=Noise.flips(0.05)) == {"estimated": False}

    def test_every_sensor_has_its_own_interval_on_request(self):
        report = self.report(TRUTH, 20_000, noise="per-sensor")
        assert report["n_unknown"] == 8
        for each in (report["false_alarm"], report["miss"]):
            assert len(each["interval"]) == len(each["error"]) == 4
            assert all(low <= rate <= high for rate, (low, high) in zip(each["rate"], each["interval"], strict=True))

    def test_other_sets_of_sources_that_do_as_well_widen_it(self):
        data = PatternCounts.of(TRUTH.sample(4000, RNG(1)))
        task = lattice_task(Varying.of(data, (), ()), Likelihood())
        search = task.search()
        search.run()
        plain = task.result(search, FLIPS, interrupted=False).diagnostics["noise"]
        search.visited += [(search.best.score - 2.9, 0.2), (search.best.score - 3.1, 0.3)]
        wide = task.result(search, FLIPS, interrupted=False).diagnostics["noise"]
        assert wide["interval"][0] == plain["interval"][0]
        assert 0.2 < wide["interval"][1] < 0.25
        assert (wide["flip_rate"], wide["error"]) == (plain["flip_rate"], plain["error"])
        search.visited.append((search.best.score, 1e-6))  # a rate that is small against the error
        widest = task.result(search, FLIPS, interrupted=False).diagnostics["noise"]
        assert 0.0 <= widest["interval"][0] < plain["interval"][0]
        assert widest["interval"][1] == wide["interval"][1]


def test_a_known_probability_comes_with_the_value_as_its_interval():
    data = PatternCounts.of(TRUTH.sample(3000, RNG(2)), sensors=["a", "b", "c", "d"])
    known = KnownSource(("a", "b"), probability=0.1)
    fit = Likelihood(known=[known]).fit(data, RNG(0))
    place = fit.model.mixing.T.tolist().index([True, True, False, False])
    assert fit.interval()[place].tolist() == [fit.model.probability[place]] * 2
    others = np.delete(fit.interval(), place, axis=0)
    assert (others[:, 0] < others[:, 1]).all()
