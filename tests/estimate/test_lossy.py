"""Learning lossy edges behind few sensors, and the choice between sure and lossy edges."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica import BICA
from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, SettingError
from bica.estimate.edges import LossyFit, LossyRival
from bica.estimate.lattice import Cells, NoiseShape
from bica.estimate.likelihood import Likelihood
from bica.estimate.lossy.families import expected_surface, families_of, with_families
from bica.estimate.lossy.learn import fit_of, lossy_cost, lossy_task
from bica.estimate.lossy.surface import LAST_PACE, LossyPoint, LossySurface, pinned, with_sure_pairs
from bica.estimate.settings import KnownSource, Varying
from bica.kernels.lattice.lossy import silence_table
from bica.model.files import rate_interval
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.progress import listening
from bica.simulate import topology

REACH = np.array(
    [
        [0.9, 0.0, 0.0],
        [0.6, 0.0, 0.0],
        [0.7, 0.8, 0.0],
        [0.8, 0.5, 0.0],
        [0.0, 0.9, 0.6],
        [0.0, 0.0, 0.9],
        [0.0, 0.0, 0.7],
    ]
)
LEAK = 0.01
TRUTH = OrMixture(REACH > 0, [0.15, 0.25, 0.1], Noise(LEAK, 0.0), REACH)
N_ROWS = 10_000
ROWS = TRUTH.sample(N_ROWS, np.random.default_rng(5))
DATA = PatternCounts.of(ROWS)


def learned(data=DATA, **settings):
    return Likelihood(**{"edges": "lossy", **settings}).fit(data, np.random.default_rng(0))


def columns(model):
    return {tuple(np.flatnonzero(column)) for column in model.mixing.T}


def in_order_of_truth(fit):
    """The places of the sources of the truth in the fit."""
    return [fit.model.mixing.T.tolist().index(column) for column in TRUTH.mixing.T.tolist()]


FOUND = learned()


def test_sources_and_numbers_are_found_within_their_errors():
    """Of 20 numbers none may be further off than 4.5 standard errors: that happens by chance once in 10 000 tables."""
    assert columns(FOUND.model) == columns(TRUTH)
    order, edges = in_order_of_truth(FOUND), TRUTH.mixing
    off = (FOUND.model.probability[order] - TRUTH.probability) / FOUND.probability_error[order]
    off_reach = (FOUND.model.reach[:, order] - TRUTH.reach)[edges] / FOUND.reach_error[:, order][edges]
    off_leak = (np.array(FOUND.model.noise.false_alarm) - LEAK) / FOUND.leak_error
    assert np.abs(np.concatenate([off, off_reach, off_leak])).max() < 4.5
    assert np.isnan(FOUND.reach_error[:, order][~edges]).all()
    assert FOUND.log_likelihood == pytest.approx(TRUTH.log_likelihood(DATA) + 10, abs=10)  # half of chi-squared with 20
    # degrees of freedom: its mean, and three standard deviations
    assert FOUND.log_likelihood == pytest.approx(FOUND.model.log_likelihood(DATA))


def test_a_leak_that_would_be_negative_has_an_interval_from_zero():
    """At its end the log-likelihood is lower by half the square of the normal quantile, as far as slopes can tell.

    Only leaks are open, so that no other number answers; where the slope grows on the way, the fall may be twice that.
    """
    reach = np.array([0.9, 0.8, 0.7])
    truth = OrMixture(np.ones((3, 1), bool), [0.3], Noise(0.0, 0.0), reach[:, None])
    rows = truth.sample(2000, np.random.default_rng(1))
    rows[np.flatnonzero(rows[:, 0] & ~rows[:, 1] & ~rows[:, 2])[:10], 0] = False  # fewer alone than even without a leak
    data = PatternCounts.of(rows)
    fit = learned(data, known=[KnownSource(data.sensors, probability=0.3, reach=reach.tolist())])
    leak = np.array(fit.model.noise.false_alarm)
    assert leak[0] < 2e-5
    low, high = rate_interval(leak[0], fit.leak_error[0])
    assert low == 0.0
    there = fit.model.with_noise(Noise(np.append(high, leak[1:]), 0.0))
    fall = fit.log_likelihood - there.log_likelihood(data)
    assert 0.5 < fall / (0.5 * NormalDist().inv_cdf(0.975) ** 2) < 2.0


def test_a_sensor_beyond_three_pays_for_being_the_best_of_many():
    cost = lossy_cost(10, 1000.0)
    assert np.diff(cost[:4]) == pytest.approx(0.5 * np.log(1000))
    assert np.diff(cost[3:]) == pytest.approx(0.5 * np.log(1000) + 0.5 * np.log(10))


def test_rows_in_any_order_and_weights_instead_of_copies_change_nothing():
    assert learned(PatternCounts.of(ROWS[::-1])).model == FOUND.model
    twice = learned(PatternCounts.of(np.vstack([ROWS[:2000], ROWS[:2000]])))
    weighted = learned(PatternCounts.of(ROWS[:2000], sample_weight=np.full(2000, 2.0)))
    assert twice.model == weighted.model


def test_cells_that_are_missing_at_random_cost_precision_only():
    holes = np.random.default_rng(1).random(ROWS.shape) < 0.05
    fit = learned(PatternCounts.of(np.where(holes, np.nan, ROWS.astype(float))))
    assert columns(fit.model) == columns(TRUTH)
    places, whole = in_order_of_truth(fit), in_order_of_truth(FOUND)
    assert (fit.probability_error[places] > FOUND.probability_error[whole]).all()
    off = fit.model.reach[:, places] - TRUTH.reach
    assert np.abs(off[TRUTH.mixing] / fit.reach_error[:, places][TRUTH.mixing]).max() < 4.5


def test_a_known_source_keeps_what_was_given():
    known = KnownSource(["x4", "x5", "x6"], probability=0.1, name="pump", reach=[0.6, 0.9, 0.7])
    fit = learned(known=[known])
    place = fit.model.names.index("pump")
    assert fit.model.probability[place] == 0.1
    assert fit.model.reach[4:, place].tolist() == [0.6, 0.9, 0.7]
    assert fit.probability_error[place] == 0
    assert (fit.reach_error[4:, place] == 0).all()
    assert columns(fit.model) == columns(TRUTH)


def test_a_known_source_keeps_its_sensors_where_its_numbers_are_unknown():
    fit = learned(known=[(["x0", "x6"],)])
    assert (0, 6) in columns(fit.model)


def test_forbidden_sensors_are_never_together_in_a_source():
    fit = learned(forbidden=[("x4", "x5"), "x0"])
    assert not any({4, 5} <= set(column) for column in columns(fit.model))
    assert not any(0 in column for column in columns(fit.model))


def test_rare_sources_are_dropped_on_request():
    assert learned(min_probability=0.2).model.n_sources == 1


def test_ctrl_c_keeps_the_best_so_far():
    heard = []

    def listener(*told):
        heard.append(told)
        if len(heard) == 3:
            raise KeyboardInterrupt

    with listening(listener), pytest.warns(BicaWarning, match="interrupted"):
        fit = learned()
    assert not fit.converged
    assert fit.diagnostics["interrupted"] is True
    assert fit.model.has_lossy_edges
    assert fit.log_likelihood == pytest.approx(fit.model.log_likelihood(DATA))


def test_a_constant_sensor_has_a_sure_source_or_hardly_a_leak():
    rows = np.column_stack([ROWS, np.ones(N_ROWS), np.zeros(N_ROWS)])
    fit = learned(PatternCounts.of(rows))
    assert columns(fit.model) == columns(TRUTH) | {(7,)}
    assert fit.model.probability[fit.model.mixing[7]].tolist() == [1.0]
    assert fit.model.noise.false_alarm[8] < 1e-6


def test_a_source_of_two_sensors_tells_one_number_only():
    pair = OrMixture([[1], [1], [0]], [0.2], Noise(0.02, 0.0), [[0.8], [0.6], [0]])
    fit = learned(PatternCounts.of(pair.sample(5000, np.random.default_rng(3))))
    assert fit.model.mixing.tolist() == [[True], [True], [False]]
    assert fit.model.reach[:2, 0].tolist() == [1.0, 1.0]
    assert np.isnan(fit.reach_error[:2, 0]).all()
    p = 0.2
    rate = np.log((1 - p + p * 0.2 * 0.4) / ((1 - p + p * 0.2) * (1 - p + p * 0.4)))
    assert abs(fit.model.probability[0] + np.expm1(-rate)) < 4.5 * fit.probability_error[0]


@pytest.mark.parametrize("n_sensors", [1, 2])
def test_one_or_two_sensors_are_leaks_and_pairs(n_sensors):
    rows = np.random.default_rng(0).random((500, n_sensors)) < 0.3
    fit = learned(PatternCounts.of(rows))
    assert fit.model.noise.false_alarm == pytest.approx(rows.mean(axis=0), abs=0.05)


chances = st.floats(0.05, 0.95)


@given(
    st.lists(st.tuples(chances, chances, chances), min_size=1, max_size=3), st.lists(chances, min_size=3, max_size=3)
)
def test_sure_pairs_have_the_distribution_of_lossy_ones(pairs, leak):
    reach = np.zeros((len(pairs), 3))
    for mode, (_, first, second) in enumerate(pairs):
        reach[mode, mode], reach[mode, (mode + 1) % 3] = first, second
    none = np.zeros(len(pairs), bool), np.zeros(reach.shape, bool)
    point = LossyPoint(np.array([p for p, _, _ in pairs]), reach, np.array(leak), *none)
    sure = with_sure_pairs(point)
    owner = np.arange(len(pairs))
    before, after = (silence_table(each.probability, each.reach, each.leak, owner) for each in (point, sure))
    assert after == pytest.approx(before, abs=1e-4)  # nearly sure: a reach of 0.99999


def test_the_top_has_no_slope_and_the_numbers_given_stay():
    surface = LossySurface(Cells.of(DATA))
    start = LossyPoint(
        np.full(3, 0.1), np.where(REACH.T > 0, 0.5, 0.0), np.full(7, 0.05), np.zeros(3, bool), np.zeros((3, 7), bool)
    )
    top = surface.refit(start, LAST_PACE)
    height, slope, _ = surface.slopes(top)
    assert height == pytest.approx(surface.height(top))
    scale = np.sqrt(np.diag(top.information))
    assert np.abs(slope / scale)[top.moving].max() < 1e-3
    held = replace(start, fixed_probability=np.array([True, False, False]))
    assert surface.refit(held, LAST_PACE).probability[0] == 0.1
    assert pinned(held).sum() == 1


def test_auto_finds_lossy_edges_where_there_are_some():
    fit = learned(edges="auto")
    assert fit.model == FOUND.model
    assert fit.diagnostics["edges"] == "lossy"
    assert fit.diagnostics["other_edges"]["sentence"].startswith("with sure edges: ")
    assert Fit.of_document(fit.document()).model == fit.model


@pytest.mark.parametrize("flip_rate", [0.0, 0.02, 0.1])
def test_auto_leaves_tables_with_sure_edges_as_they_are(flip_rate):
    nested = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    truth = OrMixture(nested, [0.2, 0.1, 0.15, 0.3], Noise.flips(flip_rate))
    data = PatternCounts.of(truth.sample(2000, np.random.default_rng(4)))
    sure, auto = learned(data, edges="sure"), learned(data, edges="auto")
    assert auto.model == sure.model
    assert auto.log_likelihood == sure.log_likelihood
    assert np.array_equal(auto.probability_error, sure.probability_error)
    assert auto.diagnostics["edges"] == "sure"
    assert auto.diagnostics["other_edges"]["sentence"].startswith("with lossy edges: ")


def test_sure_sources_inside_each_other_are_one_lossy_source_and_begin_a_search_as_what_they_are():
    together = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    chances = np.array([0.1, 0.2, 0.05])
    truth = OrMixture(together, chances, Noise.flips(0.02))
    data = PatternCounts.of(truth.sample(20_000, np.random.default_rng(2)))
    on, first_two = 1 - np.prod(1 - chances), 1 - np.prod(1 - chances[:2])
    reach = np.array([[1, 1, first_two / on, chances[0] / on, 0]]).T
    found = LossyFit(reach > 0, np.array([on]), reach, *[None] * 3, *[np.empty(0)] * 3)
    start = LossyRival(Varying.of(data, (), ()), lambda: found, lambda it: it).start(NoiseShape.shared_flips(5, 1e-6))
    assert sorted(start.sources.tolist()) == [0b11, 0b111, 0b1111]
    assert np.isclose(1 - np.exp(-start.rate), [chances[2] * (1 - first_two), first_two - chances[0], chances[0]]).all()


@pytest.mark.parametrize("n_samples", [200, 1000])
def test_nested_sources_stay_sure_where_lossy_ones_explain_the_rows_no_better(n_samples):
    """In network four most sources lie inside others, so that seven lossy ones explain its rows as well as sixteen."""
    truth = topology("four")
    fit = Likelihood().fit(
        PatternCounts.of(truth.sample(n_samples, np.random.default_rng(71))), np.random.default_rng(0)
    )
    assert not fit.model.has_lossy_edges
    assert {tuple(column) for column in fit.model.mixing.T} == {tuple(column) for column in truth.mixing.T}
    assert fit.diagnostics["other_edges"]["n_sources"] < truth.n_sources


@pytest.mark.parametrize("n_samples", [200, 1000])
def test_numbers_that_only_follow_the_noise_are_no_reason_for_lossy_edges(n_samples):
    """With flips, the additional numbers of lossy edges explain the rows of network four better by ten nats."""
    plain = topology("four")
    truth = OrMixture(plain.mixing, plain.probability, Noise.flips(0.02))
    for seed in (5, 6, 7):
        data = PatternCounts.of(truth.sample(n_samples, np.random.default_rng(seed)))
        fit = Likelihood().fit(data, np.random.default_rng(0))
        assert not fit.model.has_lossy_edges
        found = {tuple(column) for column in fit.model.mixing.T} & {tuple(column) for column in truth.mixing.T}
        assert len(found) >= truth.n_sources - 2


def test_a_search_whose_sources_cost_more_than_lossy_ones_is_given_up():
    auto = learned(edges="auto")
    assert auto.model.has_lossy_edges
    assert "when the search was given up" in auto.diagnostics["other_edges"]["sentence"]


@pytest.mark.parametrize("settings", [{"noise": Noise.flips(0.02)}, {"noise": "estimate"}, {"prior": (1.0, 2.0)}])
def test_with_noise_or_a_prior_edges_are_sure_unless_that_is_contradicted(settings):
    assert not learned(edges="auto", **settings).model.has_lossy_edges
    with pytest.raises(SettingError, match="lossy edges come with"):
        learned(edges="lossy", **settings)


def test_a_reach_that_is_known_asks_for_lossy_edges():
    known = [KnownSource(["x4", "x5", "x6"], reach=0.8)]
    assert learned(edges="auto", known=known).model.has_lossy_edges
    with pytest.raises(SettingError, match="edges are to be sure"):
        learned(edges="sure", known=known)


@pytest.mark.parametrize("reach", [0, 1.5, [0.5], "high"])
def test_a_reach_is_a_probability_per_sensor(reach):
    with pytest.raises(SettingError, match="one for each of its 2 sensors"):
        KnownSource(["a", "b"], reach=reach)


def test_the_estimator_has_the_same_choice():
    found = BICA(edges="lossy").fit(ROWS)
    assert found.model_ == FOUND.model.with_labels(found.model_.sensors, found.model_.names)
    assert found.reach_.shape == (3, 7)
    with pytest.raises(SettingError, match="edges is 'some'"):
        BICA(edges="some").fit(ROWS)
    with pytest.raises(SettingError, match="'findbica' has no setting 'edges'"):
        BICA("findbica", edges="lossy").fit(ROWS)


class TestFamilies:
    """Losses that come together: exclusive modes of one source, or independent sources with the same sensors."""

    MODES = np.array(
        [
            [0.95, 0.95, 0.95, 0.95, 0.8, 0.8, 0.7, 0.7],
            [0.95, 0.95, 0.9, 0.8, 0.3, 0.3, 0.3, 0.2],
            [0.9, 0.95, 0.95, 0.6, 0.7, 0.2, 0.6, 0.1],
        ]
    )
    SHARE = np.array([0.4, 0.3, 0.3])

    def faded(self, n_rows):
        """Rows of a source that is on in a fifth of them, in one of three states."""
        rng = np.random.default_rng(2)
        on, mode = rng.random(n_rows) < 0.2, rng.choice(3, n_rows, p=self.SHARE)
        rows = on[:, None] & (rng.random((n_rows, 8)) < self.MODES[mode])
        return PatternCounts.of(rows | (rng.random((n_rows, 8)) < 0.01))

    def test_pieces_of_one_source_are_joined_and_that_is_said(self):
        data = self.faded(20_000)
        fit = learned(data)
        assert columns(fit.model) == {tuple(range(8))}
        assert abs(fit.model.probability[0] - 0.2) < 4.5 * fit.probability_error[0]
        assert (np.abs(fit.model.reach[:, 0] - self.SHARE @ self.MODES) < 4.5 * fit.reach_error[:, 0]).all()
        (family,) = fit.diagnostics["families"]
        assert family["n_pieces"] >= 3
        assert "shown as one whose losses come together" in family["sentence"]
        assert fit.log_likelihood == pytest.approx(fit.model.log_likelihood(data))

    def test_independent_sources_that_are_often_on_together_stay_apart(self):
        reach = np.array([[0.9, 0.8, 0.7, 0.9, 0.5], [0.6, 0.9, 0.9, 0.5, 0.8], [0.9, 0.5, 0.8, 0.7, 0.9]])
        truth = OrMixture(reach.T > 0, [0.3, 0.3, 0.25], Noise(0.01, 0.0), reach.T)
        rows = truth.sample(20_000, np.random.default_rng(6))
        surface = LossySurface(Cells.of(PatternCounts.of(rows)))
        start = LossyPoint(truth.probability, reach, np.full(5, 0.01), np.zeros(3, bool), np.zeros((3, 5), bool))
        top = surface.refit(start, LAST_PACE)
        assert families_of(top.reach, top.probability, 0).tolist() == [0, 0, 0]
        table = Varying.of(PatternCounts.of(rows), (), ())
        found = fit_of(lossy_task(table, Likelihood()), top, interrupted=False)
        assert with_families(table, found) is found

    def test_known_sources_are_never_joined(self):
        alike = np.array([[0.9, 0.8], [0.9, 0.8], [0.9, 0.8]])
        assert families_of(alike, np.full(3, 0.1), 1).tolist() == [0, 1, 1]

    def test_the_expected_rows_of_a_model_have_that_model_at_their_top(self):
        surface = LossySurface(Cells.of(DATA))
        point = LossyPoint(
            TRUTH.probability, REACH.T.copy(), np.full(7, LEAK), np.zeros(3, bool), np.zeros((3, 7), bool)
        )
        expected = expected_surface(surface, point)
        _, slope, information = expected.slopes(point)
        assert expected.cells.weights.sum() == pytest.approx(N_ROWS)
        assert np.abs(slope / np.sqrt(np.diag(information))).max() < 1e-3


class TestManySensors:
    """Beyond 16 sensors lossy edges are learned from rows, where sources look like splinters."""

    @staticmethod
    def drawn(reach, noise):
        mixing = np.zeros((20, 5), dtype=bool)
        for source in range(5):
            mixing[4 * source : 4 * source + 4, source] = True
        rng = np.random.default_rng(8)
        edges = np.where(mixing, rng.uniform(*reach, mixing.shape), 0.0)
        truth = OrMixture(mixing, np.full(5, 0.12), noise, edges)
        return truth, PatternCounts.of(truth.sample(3000, rng))

    def test_lossy_edges_are_learned_on_request(self):
        truth, data = self.drawn((0.5, 0.95), Noise(0.005, 0.0))
        fit = learned(data)
        assert columns(fit.model) == columns(truth)
        assert fit.model.has_lossy_edges
        assert fit.diagnostics["edges"] == "lossy"

    def test_auto_leaves_sure_edges_as_they_are(self):
        _, data = self.drawn((1.0, 1.0), Noise.flips(0.02))
        assert learned(data, edges="auto").document() == learned(data, edges="sure").document()
