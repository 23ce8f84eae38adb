"""How often sources and edges return from resampled rows."""

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.estimate.bootstrap import Bootstrap, OtherSource, bootstrap
from bica.estimate.findbica import FindBICA
from bica.estimate.likelihood import Likelihood
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

RNG = np.random.default_rng
MODEL = OrMixture([[1, 0], [1, 1], [0, 1]], [0.4, 0.2], sensors=["a", "b", "c"])


def with_columns(*columns, probability=None, noise=0.0):
    mixing = np.array(columns, dtype=bool).reshape(-1, 3).T
    chance = np.full(len(columns), 0.3) if probability is None else probability
    return OrMixture(mixing, chance, Noise.flips(noise), sensors=MODEL.sensors)


class TestComparison:
    def test_sources_are_matched_by_their_columns_whatever_their_order(self):
        found = Bootstrap.of(MODEL, [with_columns((0, 1, 1), (1, 1, 0), probability=[0.25, 0.35]), MODEL])
        assert found.probability.tolist() == [[0.35, 0.25], [0.4, 0.2]]
        assert found.support.tolist() == [1, 1]
        assert found.n_resamples == 2

    def test_a_near_miss_does_not_count_as_a_return(self):
        found = Bootstrap.of(MODEL, [with_columns((1, 1, 0), (1, 1, 1)), with_columns((1, 1, 0)), MODEL, MODEL])
        assert found.support.tolist() == [1.0, 0.5]

    def test_edges_follow_the_nearest_source(self):
        found = Bootstrap.of(MODEL, [with_columns((1, 1, 0), (1, 1, 1)), with_columns((1, 1, 0), (0, 0, 1))])
        np.testing.assert_array_equal(found.edge_support, [[1, 0.5], [1, 0.5], [0, 1]])

    def test_an_exact_source_stands_for_itself_though_another_match_would_share_more(self):
        model = with_columns((1, 1, 0), (0, 1, 0))
        found = Bootstrap.of(model, [with_columns((0, 1, 0), (0, 0, 1))])
        np.testing.assert_array_equal(found.edge_support[:, 1], [0, 1, 0])

    def test_a_source_that_shares_no_sensor_stands_for_none(self):
        found = Bootstrap.of(with_columns((1, 0, 0)), [with_columns((0, 1, 1))])
        assert not found.edge_support.any()

    def test_other_sources_are_listed_by_their_share(self):
        resamples = [with_columns((1, 1, 1), (1, 0, 0)), with_columns((1, 0, 0)), MODEL, MODEL]
        others = Bootstrap.of(MODEL, resamples).others
        assert others == (OtherSource(("a",), 0.5), OtherSource(("a", "b", "c"), 0.25))

    def test_models_without_sources_are_compared_too(self):
        empty = with_columns()
        assert Bootstrap.of(MODEL, [empty]).support.tolist() == [0, 0]
        nothing = Bootstrap.of(empty, [MODEL])
        assert (nothing.support.shape, nothing.error.shape, nothing.interval().shape) == ((0,), (0,), (0, 2))

    def test_errors_and_intervals_are_those_of_the_returned_values(self):
        values = np.linspace(0.1, 0.3, 101)
        resamples = [with_columns((1, 1, 0), probability=[value], noise=value / 10) for value in values]
        found = Bootstrap.of(MODEL, resamples)
        assert found.error[0] == pytest.approx(np.std(values, ddof=1))
        np.testing.assert_allclose(found.interval(0.9)[0], [0.11, 0.29])
        assert found.flip_rate_error == pytest.approx(np.std(values, ddof=1) / 10)
        assert found.flip_rate_interval(0.9) == pytest.approx((0.011, 0.029))
        assert np.isnan(found.error[1])
        assert np.isnan(found.interval()[1]).all()

    @pytest.mark.parametrize("level", [0, 1, np.nan])
    def test_a_level_that_means_nothing_is_refused(self, level):
        with pytest.raises(SettingError, match="between 0 and 1"):
            Bootstrap.of(MODEL, [MODEL, MODEL]).interval(level)


class TestFindings:
    found = Bootstrap.of(MODEL, [MODEL, with_columns((1, 1, 0), (1, 1, 1), probability=[0.42, 0.1]), MODEL])

    def test_they_join_the_diagnostics_and_come_back_from_a_file(self, tmp_path):
        fit = self.found.added_to(Fit(MODEL, "some", diagnostics={"score": 1.0}, probability_error=[0.1, 0.2]))
        fit.save(tmp_path / "m.json")
        told = Fit.load(tmp_path / "m.json").diagnostics
        assert told["score"] == 1.0
        assert told["bootstrap"] == self.found.summary()
        assert told["bootstrap"]["support"] == [1.0, pytest.approx(2 / 3)]
        assert told["bootstrap"]["edge_support"][1] == [1.0, 1.0]
        assert told["bootstrap"]["others"] == [{"sensors": ["a", "b", "c"], "share": pytest.approx(1 / 3)}]

    def test_errors_of_the_fit_stay_and_gaps_are_null(self):
        fit = Fit(MODEL, probability_error=[0.1, 0.2])
        assert self.found.added_to(fit).probability_error.tolist() == [0.1, 0.2]
        assert self.found.added_to(Fit(MODEL)).probability_error[0] == self.found.error[0]
        once = Bootstrap.of(MODEL, [MODEL]).summary()
        assert once["error"] == [None, None]
        assert once["flip_rate"] == {"error": None, "interval": [None, None]}


# two clear sources, and one that explains 8 of 2000 rows: about the price of a source
DOUBTFUL = PatternCounts.of([[0, 0, 0]] * 1192 + [[1, 1, 0]] * 600 + [[0, 1, 1]] * 200 + [[0, 0, 1]] * 8)


class TestOfMethods:
    def test_clear_sources_always_return_and_a_doubtful_one_does_not(self):
        method = Likelihood()
        fit = method.fit(DOUBTFUL, RNG(0))
        found = bootstrap(method, DOUBTFUL, fit, 60, RNG(1))
        columns = fit.model.mixing.T.astype(int).tolist()
        assert found.support[columns.index([1, 1, 0])] == 1.0
        assert found.support[columns.index([0, 1, 1])] == 1.0
        assert 0 < found.support[columns.index([0, 0, 1])] < 1

    @pytest.mark.slow
    def test_errors_agree_with_the_curvature_on_clear_data(self):
        truth = OrMixture([[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 0, 1]], [0.3, 0.2, 0.1], Noise.flips(0.02))
        data = PatternCounts.of(truth.sample(5000, RNG(2)))
        method = Likelihood()
        fit = method.fit(data, RNG(0))
        found = bootstrap(method, data, fit, 150, RNG(3))
        assert found.support.tolist() == [1, 1, 1]
        # a standard deviation from 150 values has a relative error of 1 / sqrt(300): four of them are 0.23
        assert np.abs(found.error / fit.probability_error - 1).max() < 0.25
        assert found.flip_rate_error == pytest.approx(fit.diagnostics["noise"]["error"], rel=0.25)

    @pytest.mark.parametrize("method", [FindBICA(), Likelihood()], ids=lambda method: type(method).__name__)
    def test_same_seed_same_answer_whatever_the_threads(self, method):
        fit = method.fit(DOUBTFUL, RNG(0))
        one, two, other = (
            bootstrap(method, DOUBTFUL, fit, 6, RNG(seed), n_jobs=n_jobs) for seed, n_jobs in [(1, 1), (1, 3), (2, 1)]
        )
        assert one.summary() == two.summary()
        assert one.summary() != other.summary()

    @pytest.mark.parametrize("n_resamples", [0, -1])
    def test_counts_that_mean_nothing_are_refused(self, n_resamples):
        with pytest.raises(SettingError, match="a count from 1 up"):
            bootstrap(FindBICA(), DOUBTFUL, Fit(MODEL), n_resamples, RNG(0))
