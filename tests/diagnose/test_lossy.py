"""Verdicts on models whose edges may fail: true ones fit, wrong ones do not."""

import numpy as np
import pytest
from hypothesis import given, settings

from bica.data.patterns import PatternCounts
from bica.diagnose.blocks import LEVEL, _Block
from bica.diagnose.goodness import QuietRows, Splinters, _slopes, both_on
from bica.diagnose.table import Watched
from bica.diagnose.verdicts import Diagnosis
from bica.estimate.likelihood import Likelihood
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network, with_lossy_edges
from tests.reference.slow_lossy import SlowLossy
from tests.strategies import clear_probabilities, clear_rates, lossy_models

STEP = 1e-6  # of a number, for a numerical derivative
ALLOWED = 1e-4  # of that derivative: its error is of the order of the step, times second derivatives of some hundred


def lossy_network(n_sensors, n_sources, rng, column_weight=(3, 5)):
    network = random_network(n_sensors, n_sources, column_weight=column_weight, noise=Noise(0.005), rng=rng)
    return with_lossy_edges(network, rng=rng)


def with_reach(model, sensor, source, value):
    reach = model.reach.copy()
    reach[sensor, source] = value
    return OrMixture(reach > 0, model.probability, model.noise, reach)


def watched(rows):
    data = PatternCounts.of(rows)
    return Watched.of(data, np.arange(data.n_sensors), np.ones(data.n_sensors))


@given(lossy_models(min_sensors=1))
def test_pairs_are_margins_of_the_table_of_all_patterns(model):
    table, slow = both_on(model), SlowLossy.of(model)
    for i in range(model.n_sensors):
        for k in range(model.n_sensors):
            cells = [True if sensor in (i, k) else None for sensor in range(model.n_sensors)]
            assert table[i, k] == pytest.approx(slow.row(cells), abs=1e-12)


@given(lossy_models(min_sensors=1))
def test_quiet_rows_are_exact_without_misses(model):
    model = model.with_noise(Noise(model.noise.false_alarm))
    expected = QuietRows.of(model, watched(np.zeros((10, model.n_sensors)))).expected
    assert expected == pytest.approx(10 * SlowLossy.of(model).row([False] * model.n_sensors), abs=1e-12)


@settings(max_examples=30)
@given(lossy_models(min_sensors=2, max_sensors=4, max_sources=3, chances=clear_probabilities, rates=clear_rates))
def test_what_is_projected_out_are_the_derivatives_by_probability_and_reach(model):
    block = _Block.of(model, np.arange(model.n_sensors))
    assert block.probability == pytest.approx(np.array(SlowLossy.of(model).table()), abs=1e-12)
    if not model.has_lossy_edges:
        assert block.lossy.shape[1] == 0
        return
    sources = [j for j in np.flatnonzero(model.mixing.sum(axis=0) > 1) if model.probability[j] > 0]
    columns = iter(block.lossy.T)
    for j in sources:
        p = model.probability[j]
        step = -STEP if p == 1 else STEP
        moved = model.with_probability(np.where(np.arange(model.n_sources) == j, p + step, model.probability))
        slope = (moved.pattern_probability() - model.pattern_probability()) / step
        assert next(columns) == pytest.approx(slope, abs=ALLOWED)
        for sensor in np.flatnonzero(model.mixing[:, j]):
            moved = with_reach(model, sensor, j, model.reach[sensor, j] - STEP)
            slope = (model.pattern_probability() - moved.pattern_probability()) / STEP
            assert p * next(columns) == pytest.approx(slope, abs=ALLOWED)
    assert next(columns, None) is None


def test_slopes_are_derivatives_of_the_log_chance():
    model = lossy_network(5, 3, np.random.default_rng(0))
    data = PatternCounts.of(model.sample(500, np.random.default_rng(1)))
    found = _slopes(model, data, np.arange(3), model.pattern_probability(), noise=False)
    for j in range(3):
        rate = model.rate.copy()
        rate[j] += STEP
        moved = model.with_probability(-np.expm1(-rate))
        expected = (moved.log_probability(data) - model.log_probability(data)) / STEP
        assert found[j] == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_parts_of_others_are_no_splinters_where_edges_may_fail():
    subsets = np.array([[s >> i & 1 for s in range(1, 16)] for i in range(4)])
    assert Splinters.of(OrMixture(subsets, np.full(15, 0.1))) is not None
    assert Splinters.of(OrMixture(subsets, np.full(15, 0.1), reach=0.9 * subsets)) is None


@pytest.mark.parametrize(("n_sensors", "n_sources", "n_tables"), [(10, 6, 40), (30, 20, 12)])
def test_true_models_are_rarely_called_a_misfit(n_sensors, n_sources, n_tables):
    """At the level of 0.5 %, none of 40 tables is expected; more than two are a chance of one in a thousand."""
    verdicts = []
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        truth = lossy_network(n_sensors, n_sources, rng)
        verdicts.append(Diagnosis.of(PatternCounts.of(truth.sample(2000, rng)), Fit(truth)).verdict)
    assert verdicts.count("misfit") <= 2
    assert verdicts.count("fits") + verdicts.count("too few rows") >= 0.8 * n_tables


class TestWrongModels:
    """Differences that change some per cent of the rows."""

    @pytest.fixture(params=[(10, 6), (30, 20)], ids=["patterns", "blocks"])
    def truth(self, request):
        return lossy_network(*request.param, np.random.default_rng(3))

    def verdict(self, model, rows):
        return Diagnosis.of(PatternCounts.of(rows), Fit(model))

    def test_a_lost_source_is_a_misfit(self, truth):
        rows = truth.sample(4000, np.random.default_rng(4))
        for lost in range(0, truth.n_sources, 4):
            kept = truth.pick(np.delete(np.arange(truth.n_sources), lost))
            assert self.verdict(kept, rows).fit.p_value <= LEVEL

    def test_sure_edges_are_a_misfit(self, truth):
        sure = OrMixture(truth.mixing, truth.probability, Noise.flips(0.02))
        assert self.verdict(sure, truth.sample(4000, np.random.default_rng(5))).verdict == "misfit"

    def test_sources_that_exclude_each_other_are_a_misfit(self, truth):
        rng = np.random.default_rng(6)
        activity = truth.draw_activity(6000, rng)
        activity[:, 1::2] &= ~activity[:, ::2]
        assert self.verdict(truth, truth.draw_rows(activity, rng)).verdict == "misfit"


class TestSureEdgesThatWereAskedFor:
    """Rates of each sensor can hide that edges fail, so both kinds of edges are compared."""

    @staticmethod
    def diagnosis(model, edges):
        data = PatternCounts.of(model.sample(4000, np.random.default_rng(5)))
        return Diagnosis.of(data, Likelihood(edges=edges).fit(data, np.random.default_rng(0)))

    def test_they_are_in_doubt_where_edges_that_fail_are_clearly_better(self):
        network = OrMixture([[1, 0], [1, 0], [1, 1], [1, 1], [0, 1], [0, 1]], [0.2, 0.15])
        model = with_lossy_edges(network, (0.5, 0.95), rng=np.random.default_rng(2))
        asked, left_open = self.diagnosis(model, "sure"), self.diagnosis(model, "auto")
        assert asked.verdict in ("doubtful", "misfit")
        assert asked.fit.lead_of_lossy > 10
        assert any("edges that fail at times explain the rows better" in reason for reason in asked.reasons)
        assert any("--edges lossy" in step for step in asked.next_steps())
        assert left_open.verdict == "fits"

    def test_they_are_not_where_misses_belong_to_the_sensors(self):
        noise = Noise(0.02, [0.3, 0.0, 0.2, 0.1, 0.0, 0.25])
        model = OrMixture([[1, 0], [1, 0], [1, 1], [1, 1], [0, 1], [0, 1]], [0.2, 0.15], noise)
        asked = self.diagnosis(model, "sure")
        assert asked.fit.lead_of_lossy <= 10
        assert asked.verdict == "fits"
