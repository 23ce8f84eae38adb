"""What the user knows changes the answer for the better; what makes no sense is refused in one sentence."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone

from bica import BICA
from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, LimitError, SettingError
from bica.estimate.lattice import Cells, NoiseShape, Surface
from bica.estimate.likelihood import Likelihood
from bica.estimate.score import Scale
from bica.estimate.search import SearchTask, SourceSearch, Start
from bica.estimate.settings import KnownSource, Varying
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.estimate.test_likelihood import columns, drawn, learned

TRUTH = OrMixture(
    [[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 1, 0]],
    [0.25, 0.2, 0.15, 0.02],
    Noise.flips(0.08),
    sensors=["a", "b", "c", "d", "e"],
)
FAINT = (True, False, False, True, False)  # the fourth source, on as rarely as two flips coincide


def n_wrong(model, truth=TRUTH):
    """Sources that were missed or made up."""
    return len(columns(model) ^ columns(truth))


def spread(truth, n_samples, seeds, **settings):
    """Fits to many tables of the same truth, without and with what is known."""
    tables = [drawn(truth, n_samples, seed) for seed in seeds]
    return [learned(table).model for table in tables], [learned(table, **settings).model for table in tables]


class TestKnownSources:
    @pytest.mark.parametrize("probability", [None, 0.02])
    def test_a_faint_source_is_kept(self, probability):
        without, told = spread(TRUTH, 400, range(8), known=[KnownSource(["a", "d"], probability)])
        assert sum(FAINT in columns(model) for model in without) < 4
        assert all(FAINT in columns(model) for model in told)
        assert sum(map(n_wrong, told)) < sum(map(n_wrong, without))

    def test_a_given_probability_is_not_touched_and_the_name_is_carried(self):
        fit = learned(drawn(TRUTH, 400), known=[KnownSource(["a", "d"], 0.03, name="fox")])
        (place,) = [j for j, name in enumerate(fit.model.names) if name == "fox"]
        assert fit.model.probability[place] == pytest.approx(0.03, abs=1e-15)
        assert fit.probability_error[place] == 0
        assert tuple(fit.model.mixing[:, place].tolist()) == FAINT
        assert "fox" in [source.name for source in fit.document().sources]

    def test_a_given_probability_helps_those_that_share_its_sensors(self):
        """One source hides the other most of the time; told how often it is on, the other is found more exactly."""
        truth = OrMixture([[1, 1], [1, 0]], [0.3, 0.5], Noise.flips(0.1), sensors=["a", "b"])
        without, told = spread(truth, 300, range(20), known=[(["a", "b"], 0.3)], noise=Noise.flips(0.1))
        plain = [learned(drawn(truth, 300, seed), noise=Noise.flips(0.1)).model for seed in range(20)]

        def errors(models):
            return [abs(m.probability[m.mixing[1] == 0].sum() - 0.5) for m in models]

        assert np.mean(errors(told)) < np.mean(errors(plain))
        assert np.mean(errors(told)) < np.mean(errors(without))

    def test_one_that_is_never_on_stays_with_probability_zero(self):
        rows = np.repeat([[0, 0], [1, 0], [0, 1]], [80, 10, 10], axis=0)
        fit = learned(PatternCounts.of(rows, sensors=["a", "b"]), known=[KnownSource(["a", "b"], name="both")])
        assert fit.model.probability[fit.model.names.index("both")] == 0

    def test_it_may_reach_a_sensor_that_is_always_on(self):
        rows = np.column_stack([TRUTH.sample(1000, np.random.default_rng(0)), np.ones(1000)])
        data = PatternCounts.of(rows, sensors=["a", "b", "c", "d", "e", "on"])
        model = learned(data, known=[KnownSource(["a", "b", "on"], name="wide")]).model
        assert model.mixing[:, model.names.index("wide")].tolist() == [True, True, False, False, False, True]
        assert model.probability.max() == 1


class TestForbiddenSets:
    def test_a_pair_that_shares_no_source_keeps_its_neighbours_apart(self):
        """At 60 rows chance joins what is separate; who knows better says so."""
        truth = OrMixture(np.kron(np.eye(3), [[1], [1]]), [0.3, 0.3, 0.3], Noise.flips(0.1), sensors=list("abcdef"))
        apart = [(x, y) for x, y in ("ac", "ad", "ae", "af", "bc", "bd", "be", "bf", "ce", "cf", "de", "df")]
        without, told = spread(truth, 60, range(20), forbidden=apart)
        assert sum(n_wrong(model, truth) for model in told) < sum(n_wrong(model, truth) for model in without)
        assert all((model.mixing.T.reshape(-1, 3, 2).any(axis=2).sum(axis=1) == 1).all() for model in told)

    def test_a_single_name_keeps_unknown_sources_away(self):
        """A sensor that only its known source can reach: what else it shows is noise."""
        truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.3, 0.2], Noise([0.1, 0, 0], 0.0), sensors=["a", "b", "c"])
        without, told = spread(truth, 500, range(5), known=[(["a", "b"],)], forbidden=["a"])
        assert all((True, False, False) in columns(model) for model in without)
        assert all(columns(model) == columns(truth) for model in told)

    def test_what_contains_a_forbidden_set_is_forbidden(self):
        data = PatternCounts.of([[0, 1, 0], [1, 0, 1]], sensors=["a", "b", "c"])
        forbidden = Varying.of(data, (), [["a", "c"], ["b"]]).forbidden_sets
        surface = Surface(Cells.of(data), NoiseShape.shared_flips(3, 1e-6), forbidden)
        assert [source for source in range(8) if surface.allows(source)] == [0b001, 0b100]


class TestPriors:
    def test_a_prior_pulls_probabilities_towards_the_truth(self):
        truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.1, 0.1], Noise.flips(0.02), sensors=["a", "b", "c"])
        without, told = spread(truth, 50, range(20), prior=(20, 180))

        def error(models):
            return np.mean([np.abs(m.probability - 0.1).mean() for m in models if columns(m) == columns(truth)])

        assert error(told) < 0.5 * error(without)

    def test_a_prior_says_which_sources_are_too_rare_to_be_there(self):
        """Sources are known to be frequent: a few coincidences are no source."""
        truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.4, 0.4], Noise.flips(0.05), sensors=["a", "b", "c"])
        without, told = spread(truth, 100, range(20), prior=(40, 60))
        assert sum(n_wrong(m, truth) for m in told) == 0 < sum(n_wrong(m, truth) for m in without)

    def test_one_that_says_nothing_changes_nothing(self):
        data = drawn(TRUTH, 500)
        assert learned(data, prior=(1, 1)).document() == learned(data).document()

    def test_its_rows_are_counted_in_the_cost_of_a_source(self):
        """A sharp prior is worth no more than what it says: rows of pure noise get no sources."""
        noise = np.random.default_rng(0).random((500, 4)) < 0.1
        assert learned(PatternCounts.of(noise), prior=(101, 901)).model.n_sources == 0


class TestNumber:
    def test_a_faint_source_is_found_where_four_are_there(self):
        without, told = spread(TRUTH, 400, range(8), n_sources=4)
        assert all(model.n_sources == 4 for model in told)
        assert sum(FAINT in columns(model) for model in told) > sum(FAINT in columns(model) for model in without)

    def test_it_is_the_best_of_all_structures_of_that_size(self):
        """Three sensors have 21 pairs of sources: no pair is more likely, to what a refit leaves."""
        table = drawn(OrMixture([[1, 0, 1], [1, 1, 0], [0, 1, 1]], [0.3, 0.2, 0.25], Noise.flips(0.05)), 500, 3)
        cells = Cells.of(table)
        task = SearchTask(Scale(Surface(cells, NoiseShape.shared_flips(3, 1e-6)), 500), (), cells.cells)
        pairs = (np.array(pair) for pair in combinations(range(1, 8), 2))
        free = np.ones(2, dtype=bool)
        slow = [SourceSearch(task, Start(pair, np.full(2, 0.2), free, np.array([0.1]))).best for pair in pairs]
        best = max((found for found in slow if found.fit.point.sources.size == 2), key=lambda found: found.score)
        fit = learned(table, n_sources=2, noise="estimate")
        assert sorted((1 << np.arange(3)) @ fit.model.mixing) == sorted(best.fit.point.sources)

    def test_sources_of_constant_columns_are_among_them(self):
        rows = [[1, 0, 0]] * 30 + [[1, 1, 0]] * 20 + [[1, 0, 1]] * 10 + [[1, 1, 1]] * 5
        model = Likelihood(n_sources=3).fit(PatternCounts.of(rows), np.random.default_rng(0)).model
        assert model.n_sources == 3

    def test_more_than_the_rows_can_show_are_not_made_up(self):
        rows = [[0, 0]] * 30 + [[1, 1]] * 20
        with pytest.warns(BicaWarning, match="the rows tell of 1 sources, not of the 3 that were asked for"):
            assert learned(PatternCounts.of(rows), n_sources=3).model.n_sources == 1

    def test_what_makes_no_sense_is_refused(self):
        for number, complaint in (
            (0, "whole number from 1 on"),
            (2.5, "whole number"),
            (1, "2 sources are known, more"),
        ):
            with pytest.raises(SettingError, match=complaint):
                Likelihood(n_sources=number, known=[["a"], ["b"]])


def test_known_noise_finds_what_unknown_noise_hides():
    """Two sensors: with the noise unknown, flips and lone sources cannot be told apart."""
    truth = OrMixture([[1], [1]], [0.3], Noise.flips(0.1))
    tables = [drawn(truth, 1000, seed) for seed in range(10)]
    told = [learned(table, noise=Noise.flips(0.1)).model for table in tables]
    assert all(columns(model) == columns(truth) for model in told)
    assert np.mean([abs(model.probability[0] - 0.3) for model in told]) < 0.03


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"known": [KnownSource(["a", "q"])]}, "known names the sensor 'q', which the table does not have"),
        ({"forbidden": [("a", "q")]}, "forbidden names the sensor 'q', which the table does not have"),
        ({"known": [KnownSource(["a", "off"])]}, "switches on 'off', which is never on in the table; leave it out"),
        ({"known": [KnownSource(["on"])]}, "reaches only sensors that are always on"),
    ],
)
def test_what_does_not_fit_the_table_is_refused(settings, complaint):
    data = PatternCounts.of([[0, 1, 0], [1, 1, 0]], sensors=["a", "on", "off"])
    with pytest.raises(SettingError, match=complaint):
        learned(data, **settings)


@pytest.mark.parametrize(
    ("known", "complaint"),
    [
        (([],), "at least one sensor"),
        ((["a"], 1.5), r"must lie in \(0, 1\), but 1.5 was given"),
        ((["a"], "often"), "but 'often' was given"),
        ((["a"], 0.1, "fox", 0.9, "more"), "is not a known source; give KnownSource"),
        ({"sensor": ["a"]}, "is not a known source"),
        (7, "7 is not a known source"),
    ],
)
def test_what_is_no_known_source_is_refused(known, complaint):
    with pytest.raises(SettingError, match=complaint):
        Likelihood(known=[known])


def test_no_two_known_sources_have_the_same_sensors():
    with pytest.raises(SettingError, match="two known sources have the same sensors, b, a"):
        Likelihood(known=[(["a", "b"], 0.1), (["b", "a"],)])


class TestBICA:
    DATA = drawn(TRUTH, 400)

    @pytest.mark.parametrize(
        "known", [KnownSource(["a", "d"], 0.02), (["a", "d"], 0.02), {"sensors": ["a", "d"], "probability": 0.02}]
    )
    def test_knowledge_is_passed_on_in_any_form(self, known):
        found = BICA(known=[known], forbidden=["e", ("b", "d")], prior=(2, 9)).fit(self.DATA)
        expected = learned(self.DATA, known=[KnownSource(["a", "d"], 0.02)], forbidden=["e", ("b", "d")], prior=(2, 9))
        assert (found.model_, found.log_likelihood_) == (expected.model, expected.log_likelihood)
        assert FAINT in columns(found.model_)

    def test_clones_know_the_same(self):
        learner = BICA(known=[(["a", "d"], 0.02)], forbidden=[("b", "d")], prior=(2, 9))
        copy = clone(learner)
        assert copy.get_params() == learner.get_params()
        assert copy.fit(self.DATA).model_ == learner.fit(self.DATA).model_
        assert learner.known == [(["a", "d"], 0.02)]

    def test_findbica_knows_nothing_of_it(self):
        with pytest.raises(SettingError, match="'findbica' has no setting 'known'"):
            BICA("findbica", known=[(["a", "d"], 0.02)]).fit(self.DATA)


@pytest.mark.parametrize("method", ["likelihood", "findbica"])
def test_a_small_file_of_many_columns_that_are_always_on_takes_no_gigabytes(method):
    """Each would have a source of its own: 40 000 x 20 000 edges of 160 000 cells."""
    rows = np.tile([False, True], (2, 20_000))
    with pytest.raises(LimitError, match="20000 sources behind 40000 sensors are more than a model holds"):
        BICA(method=method).fit(rows)
