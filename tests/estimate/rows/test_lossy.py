"""Lossy sources behind many sensors, learned from rows."""

from dataclasses import replace

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, LimitError
from bica.estimate import likelihood
from bica.estimate.edges import spread_of_reach
from bica.estimate.likelihood import Likelihood
from bica.estimate.rows import lossy, lossy_state
from bica.estimate.rows.lossy import canonical, learn_lossy_rows
from bica.estimate.rows.lossy_state import LossyState, LossyTable
from bica.estimate.rows.pool import RowTable
from bica.estimate.settings import KnownSource, Settings, Varying
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.progress import listening
from tests.reference import slow_lossy_rows as slow

N_SENSORS, N_SAMPLES = 30, 5000


def network(seed, n_sources=8, widths=(4, 10)):
    """Columns, probabilities, reach (n_sources, n_sensors) and leaks."""
    rng = np.random.default_rng(seed)
    columns = set()
    while len(columns) < n_sources:
        columns.add(tuple(sorted(rng.choice(N_SENSORS, rng.integers(*widths), replace=False).tolist())))
    reach = np.zeros((n_sources, N_SENSORS))
    for source, column in enumerate(sorted(columns)):
        reach[source, list(column)] = rng.uniform(0.5, 0.95, len(column))
    return rng.uniform(0.03, 0.12, n_sources), reach, rng.uniform(0.0, 0.01, N_SENSORS)


def drawn(probability, reach, leak, seed, n_samples=N_SAMPLES):
    rng = np.random.default_rng(seed)
    rows = rng.random((n_samples, leak.size)) < leak
    for p, edges in zip(probability, reach, strict=True):
        rows |= (rng.random(n_samples) < p)[:, None] & (rng.random(rows.shape) < edges)
    return rows


def learned(rows, seed=0, sample_weight=None, forbidden=(), **settings):
    data = rows if isinstance(rows, PatternCounts) else PatternCounts.of(rows, sample_weight=sample_weight)
    settings = Settings(forbidden=forbidden, **settings)
    return learn_lossy_rows(Varying.of(data, settings.known, settings.forbidden), settings, np.random.default_rng(seed))


def columns_of(mixing):
    return {tuple(np.flatnonzero(column).tolist()) for column in mixing.T}


def same(left, right):
    numbers = ("probability", "reach", "leak", "probability_error", "reach_error", "leak_error")
    return all(np.array_equal(getattr(left, name), getattr(right, name), equal_nan=True) for name in numbers)


TRUTH = network(1)
ROWS = drawn(*TRUTH, 2)
FOUND = learned(ROWS)


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_every_source_is_found_with_its_numbers(seed):
    probability, reach, leak = network(seed)
    found = learned(drawn(probability, reach, leak, seed))
    assert columns_of(found.mixing) == columns_of(reach.T > 0)
    order = [columns_of(found.mixing[:, [k]]).pop() for k in range(len(probability))]
    match = [order.index(tuple(np.flatnonzero(row).tolist())) for row in reach]
    edges = reach > 0
    z = [
        (found.probability[match] - probability) / found.probability_error[match],
        (found.reach.T[match] - reach)[edges] / found.reach_error.T[match][edges],
        (found.leak - leak) / found.leak_error,
    ]
    z = np.concatenate(z)
    assert np.abs(z).max() < 5  # some hundred numbers: one in a million fits has a larger one
    # with k = z.size numbers of variance 1, the mean square has a standard deviation of sqrt(2 / k)
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / z.size)
    assert np.isnan(found.reach_error[~found.mixing]).all()
    assert not found.interrupted


def test_threads_and_the_order_of_the_rows_change_nothing():
    assert same(FOUND, learned(ROWS, n_jobs=3))
    assert same(FOUND, learned(ROWS[::-1]))
    assert not same(FOUND, learned(ROWS, seed=1))
    assert columns_of(learned(ROWS, seed=1).mixing) == columns_of(FOUND.mixing)


def test_weights_stand_for_repeated_rows():
    twice = learned(np.concatenate([ROWS, ROWS]))
    assert same(twice, learned(ROWS, sample_weight=np.full(len(ROWS), 2.0)))


def test_many_rows_are_learned_from_some_of_them_first(monkeypatch):
    monkeypatch.setattr(lossy, "FIRST_ROWS", 1500)
    assert columns_of(learned(ROWS).mixing) == columns_of(TRUTH[1].T > 0)


def test_missing_cells_say_nothing():
    rng = np.random.default_rng(8)
    gaps = rng.random(ROWS.shape) < 0.1
    rows = np.where(gaps, np.nan, ROWS.astype(float))
    found = learned(rows)
    assert columns_of(found.mixing) == columns_of(TRUTH[1].T > 0)
    # a tenth less is seen: numbers move by a share of their own error (0.5 standard errors on average over all edges)
    both = found.mixing & FOUND.mixing
    order = [[tuple(c) for c in f.mixing.T.astype(int)] for f in (found, FOUND)]
    match = [order[0].index(column) for column in order[1]]
    moved = (found.reach[:, match] - FOUND.reach)[FOUND.mixing] / FOUND.reach_error[FOUND.mixing]
    assert both.any()
    assert np.mean(moved**2) < 1


def test_a_forbidden_set_is_never_driven_by_one_source():
    widest = max(columns_of(FOUND.mixing), key=len)
    names = [f"x{i}" for i in widest[:2]]
    data = PatternCounts.of(ROWS, sensors=[f"x{i}" for i in range(N_SENSORS)])
    found = learned(data, forbidden=[tuple(names)])
    assert not any(set(widest[:2]) <= set(column) for column in columns_of(found.mixing))


def test_rare_sources_can_be_left_out():
    least = float(np.median(FOUND.probability))
    assert learned(ROWS, min_probability=least).probability.min() >= 0.8 * least
    assert learned(ROWS, min_probability=0.9).probability.size == 0


def test_a_table_of_independent_sensors_has_no_source():
    rows = np.random.default_rng(0).random((3000, 20)) < 0.1
    found = learned(rows)
    assert found.probability.size == 0
    assert found.reach.shape == (20, 0)
    z = (found.leak - 0.1) / found.leak_error
    assert np.abs(z).max() < 4.5


def test_progress_is_reported_and_an_interrupted_search_keeps_its_best(monkeypatch):
    steps = []
    with listening(lambda what, done, total: steps.append((what, done))):
        learned(ROWS)
    assert steps[-1] == ("sources", len(TRUTH[0]))
    calls = iter(range(100))

    def interrupt(state, rng):
        if next(calls) >= 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(lossy, "errors_of", interrupt)
    found = learned(ROWS)
    assert found.interrupted
    assert columns_of(found.mixing) == columns_of(FOUND.mixing)
    assert np.isnan(found.probability_error).all()


def test_an_interrupt_before_the_first_answer_is_passed_on(monkeypatch):
    def interrupt(state, *, first):
        raise KeyboardInterrupt

    monkeypatch.setattr(lossy, "births", interrupt)
    with pytest.raises(KeyboardInterrupt):
        learned(ROWS)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"prior": (2.0, 2.0)}, "prior"),
        ({"noise": Noise.flips(0.1)}, "leaks"),
    ],
)
def test_what_cannot_be_used_is_refused(settings, word):
    data = PatternCounts.of(ROWS, sensors=[f"x{i}" for i in range(N_SENSORS)])
    with pytest.raises(LimitError, match=word):
        learned(data, **settings)


def named(rows):
    return PatternCounts.of(rows, sensors=[f"x{i}" for i in range(N_SENSORS)])


class TestKnownSources:
    """Some of the sources are known; the rows tell the others, and what was left open of the known ones."""

    def known(self, k, **given):
        return KnownSource([f"x{i}" for i in np.flatnonzero(TRUTH[1][k])], **given)

    def test_they_come_first_and_keep_their_edges(self):
        found = learned(named(ROWS), known=[self.known(5), self.known(2)])
        for place, k in enumerate((5, 2)):
            assert (found.mixing[:, place] == (TRUTH[1][k] > 0)).all()
            z = (found.probability[place] - TRUTH[0][k]) / found.probability_error[place]
            assert abs(z) < 4.5  # of two numbers: once in 70 000 tables
        assert columns_of(found.mixing) == columns_of(TRUTH[1].T > 0)

    def test_what_was_given_stays(self):
        edges = TRUTH[1][3] > 0
        reach = np.round(TRUTH[1][3][edges], 2)
        found = learned(named(ROWS), known=[self.known(3, probability=0.07, reach=reach.tolist())])
        assert found.probability[0] == 0.07
        assert (found.reach[edges, 0] == reach).all()
        assert found.probability_error[0] == 0.0
        assert (found.reach_error[edges, 0] == 0.0).all()
        assert columns_of(found.mixing) == columns_of(TRUTH[1].T > 0)

    def test_one_that_is_too_rare_to_be_found_is_kept(self):
        """Three rows in 5000 are not worth a source of four sensors: each edge must be worth some six units."""
        rare = KnownSource(["x0", "x9", "x17", "x28"], probability=0.0006, reach=0.5)
        assert (0, 9, 17, 28) not in columns_of(FOUND.mixing)
        found = learned(named(ROWS), known=[rare])
        assert np.flatnonzero(found.mixing[:, 0]).tolist() == [0, 9, 17, 28]
        assert columns_of(found.mixing[:, 1:]) == columns_of(FOUND.mixing)

    def test_the_seed_decides_whatever_the_threads(self):
        known = [self.known(1)]
        assert same(learned(named(ROWS), known=known), learned(named(ROWS), known=known, n_jobs=3))

    def test_they_reach_the_fit_with_their_names(self):
        known = [self.known(4, reach=0.7, name="burglar")]
        fit = Likelihood(known=known).fit(named(ROWS), np.random.default_rng(0))
        place = fit.model.names.index("burglar")
        assert fit.model.has_lossy_edges  # which a reach asks for
        assert set(fit.model.reach[:, place]) == {0.0, 0.7}


def test_a_pair_in_canonical_form_has_the_same_distribution():
    """All 16 rows of 4 sensors, before and after, over both sources."""
    probability, leak = np.array([0.2, 0.3]), np.array([0.05, 0.1, 0.02, 0.2])
    reach = np.array([[0.6, 0.3, 0.0, 0.0], [0.0, 0.5, 0.7, 0.8]])
    rows = np.random.default_rng(0).random((50, 4)) < 0.5
    state = LossyState.asleep(LossyTable.of(RowTable.of(PatternCounts.of(rows))), probability, reach, leak)
    pair = canonical(state)
    assert pair.reach[0, :2] == pytest.approx([1, 1], abs=2e-6)
    assert (pair.reach[1] == reach[1]).all()
    for k in range(16):
        row = [k >> i & 1 for i in range(4)]
        chances = [
            sum(
                np.exp(slow.log_joint(row, on, one.probability, one.reach, one.leak))
                for on in (set(), {0}, {1}, {0, 1})
            )
            for one in (state, pair)
        ]
        assert chances[0] == pytest.approx(chances[1], abs=2e-6)


def test_the_score_of_the_truth_is_not_beaten_by_a_source_less(monkeypatch):
    """The estimate of the log-likelihood tells whole models apart."""
    table = LossyTable.of(RowTable.of(PatternCounts.of(ROWS)))
    scores = []
    for kept in (np.arange(len(TRUTH[0])), np.arange(1, len(TRUTH[0]))):
        rng = np.random.default_rng(0)
        state = LossyState.asleep(table, TRUTH[0][kept], TRUTH[1][kept], np.maximum(TRUTH[2], 1e-4))
        state = lossy_state.burnt_in(state, 3, rng)
        scores.append(lossy_state.sweeps(state, 5, rng, opens=False).score)
    assert scores[0] > scores[1]


BREN = (  # the links of a backbone network, by the paths that share them
    (8, 12, 15, 18, 19),
    (5, 10, 14, 17, 19, 20),
    (4, 9, 13, 16, 18, 20),
    (3,),
    (3, 8, 12, 15, 18, 19),
    (2, 7, 11, 15, 16, 17),
    (1, 6, 11, 12, 13, 14),
    (1, 6, 8, 11, 13, 14, 15, 18, 19),
    (0, 6, 7, 8, 9, 10),
    (0, 1, 2, 4, 5),
    (0, 1, 2, 3, 4, 5),
)


class TestTheChoice:
    """``Likelihood`` of more than 16 sensors: sure edges unless the rows refute them."""

    def fitted(self, rows, **settings):
        return Likelihood(**settings).fit(PatternCounts.of(rows), np.random.default_rng(0))

    def plain_rows(self, flip_rate):
        rng = np.random.default_rng(9)
        probability, reach, _ = network(1)
        return drawn(probability, (reach > 0) * 1.0, np.zeros(N_SENSORS), 3) ^ (
            rng.random((N_SAMPLES, N_SENSORS)) < flip_rate
        )

    def test_lossy_edges_can_be_asked_for(self):
        fit = self.fitted(ROWS, edges="lossy")
        assert columns_of(fit.model.mixing) == columns_of(TRUTH[1].T > 0)
        assert fit.model.has_lossy_edges
        assert fit.diagnostics["edges"] == "lossy"
        assert (np.isfinite(fit.reach_error) == fit.model.mixing).all()
        assert np.abs((fit.model.noise.rates(N_SENSORS)[0] - TRUTH[2]) / fit.leak_error).max() < 5
        # a common reach within 0.05 to 0.95 of edges drawn from U(.5, .95) is refuted by thousands of activations
        assert fit.diagnostics["spread_of_reach"] > 4

    def test_the_rows_choose_lossy_edges(self):
        fit = self.fitted(ROWS)
        assert columns_of(fit.model.mixing) == columns_of(TRUTH[1].T > 0)
        assert fit.diagnostics["edges"] == "lossy"
        assert fit.diagnostics["other_edges"]["edges"] == "sure"
        assert fit.diagnostics["other_edges"]["score_behind"] > 0
        assert fit.diagnostics["other_edges"]["sentence"].startswith("with sure edges: ")

    @pytest.mark.parametrize("flip_rate", [0.0, 0.02, 0.1])
    def test_plain_rows_keep_the_answer_of_sure_edges(self, flip_rate):
        rows = self.plain_rows(flip_rate)
        assert self.fitted(rows).model == self.fitted(rows, edges="sure").model

    def test_a_search_with_sure_edges_is_finished_before_lossy_ones_win(self):
        """Of this real network, blocks find too few sources, and lossy edges explain its rows better than these."""
        rng = np.random.default_rng([1, *b"Bren"])
        mixing = np.zeros((21, len(BREN)), dtype=bool)
        for source, sensors in enumerate(BREN):
            mixing[list(sensors), source] = True
        truth = OrMixture(mixing, rng.uniform(0.01, 0.12, len(BREN)), Noise.flips(0.02))
        fit = self.fitted(truth.sample(5000, rng))
        assert columns_of(fit.model.mixing) == columns_of(mixing)
        assert not fit.model.has_lossy_edges

    def test_sure_edges_are_compared_where_they_are_in_doubt(self, monkeypatch):
        """On plain rows, even when lossy edges are learned, the rows choose sure ones, and the answer is the same."""
        monkeypatch.setattr(likelihood, "refutes_sure_edges", lambda table, fit: True)
        rows = self.plain_rows(0.05)
        fit = self.fitted(rows)
        assert fit.model == self.fitted(rows, edges="sure").model
        assert fit.diagnostics["edges"] == "sure"
        assert fit.diagnostics["other_edges"]["score_behind"] > 0

    def test_an_interrupt_while_lossy_edges_are_learned_keeps_sure_ones(self, monkeypatch):
        def interrupt(table, settings, rng):
            raise KeyboardInterrupt

        monkeypatch.setattr(likelihood, "learn_lossy_rows", interrupt)
        with pytest.warns(BicaWarning, match="interrupted"):
            fit = self.fitted(ROWS)
        assert fit.diagnostics["interrupted"]
        assert not fit.model.has_lossy_edges

    def test_the_spread_of_the_reach_is_a_chi_square(self):
        """Equal reach up to its own errors: the mean over k edges is 1 within 5 standard deviations sqrt(2 / k)."""
        rng, n_sensors, n_sources = np.random.default_rng(0), 20, 15
        error = np.full((n_sensors, n_sources), 0.02)
        reach = 0.7 + 0.02 * rng.standard_normal(error.shape)
        found = replace(FOUND, mixing=reach > 0, probability=np.full(n_sources, 0.1), reach=reach, reach_error=error)
        assert abs(spread_of_reach(found, 5000.0) - 1) < 5 * np.sqrt(2 / reach.size)
        assert spread_of_reach(replace(found, reach_error=np.full_like(error, np.nan)), 5000.0) == 0.0
        unlike = replace(found, reach=reach - np.linspace(0.0, 0.4, n_sensors)[:, None])  # one value for every sensor
        assert spread_of_reach(unlike, 5000.0) > 20
        assert abs(spread_of_reach(unlike, 5000.0, by_sensor=True) - 1) < 5 * np.sqrt(2 / (reach.size - n_sensors))
