"""FindBICA against the paper's recursion, and what its reductions must and must not change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.errors import DataError, LimitError, SettingError
from bica.estimate.findbica import FindBICA, probability_by_recursion
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.reference import slow_findbica

RNG = np.random.default_rng(0)
# thresholds that no ratio of small whole numbers hits: at equality, rounding would decide
THRESHOLDS = st.sampled_from([0.0, 0.0201357, 0.1001357, 0.3001357])


def histograms(max_sensors=5):
    counts = st.one_of(st.just(0), st.integers(1, 40))
    return st.integers(1, max_sensors).flatmap(
        lambda m: st.lists(counts, min_size=2**m, max_size=2**m).filter(any).map(lambda h: np.array(h, dtype=float))
    )


def rows_of(histogram):
    n_sensors = len(histogram).bit_length() - 1
    patterns = np.repeat(np.arange(len(histogram)), histogram.astype(int))
    return (patterns[:, None] >> np.arange(n_sensors)) & 1


def columns(model):
    return {tuple(np.flatnonzero(column).tolist()) for column in model.mixing.T}


def random_mixture(n_sensors, n_sources, rng, probability=(0.05, 0.3), noise=0.0):
    found = set()
    while len(found) < n_sources:
        found.add(tuple(sorted(rng.choice(n_sensors, rng.integers(2, 5), replace=False).tolist())))
    mixing = np.zeros((n_sensors, n_sources), dtype=bool)
    for source, members in enumerate(sorted(found)):
        mixing[list(members), source] = True
    return OrMixture(mixing, rng.uniform(*probability, n_sources), Noise.flips(noise))


@given(histograms(), THRESHOLDS)
@settings(max_examples=200)
def test_the_lattice_equals_the_recursion_of_the_paper(histogram, min_probability):
    expected = slow_findbica.find_bica(histogram, min_probability)
    np.testing.assert_allclose(probability_by_recursion(histogram, min_probability), expected, atol=1e-9)


@given(histograms(), THRESHOLDS.filter(bool))
@settings(max_examples=60)
def test_findbica_without_reductions_reports_what_the_recursion_finds(histogram, min_probability):
    varying = [s for s in range(len(histogram).bit_length() - 1) if 0 < rows_of(histogram)[:, s].mean() < 1]
    data = PatternCounts.of(rows_of(histogram))
    method = FindBICA(min_probability=min_probability, significance=None, split=False, prune=False, noise=Noise())
    found = method.fit(data, RNG).model
    # sensors are taken by falling number of ones, constant ones apart: the recursion is given the same table
    order = [varying[i] for i in np.argsort(-data.ones()[varying], kind="stable")]
    expected = set()
    if order:
        probability = slow_findbica.find_bica(data.project(order).histogram(), min_probability)
        for mask in np.flatnonzero(probability):
            expected.add(tuple(sorted(order[i] for i in range(len(order)) if mask >> i & 1)))
    always_on = {(s,) for s in np.flatnonzero(data.ones() == data.n_samples).tolist()}
    assert columns(found) == expected | always_on


@given(histograms(4), THRESHOLDS.filter(bool))
@settings(max_examples=60)
def test_pruning_alone_keeps_only_sources_that_the_recursion_finds_too(histogram, min_probability):
    data = PatternCounts.of(rows_of(histogram))
    settings_ = {"min_probability": min_probability, "significance": None, "split": False, "noise": Noise()}
    pruned = FindBICA(**settings_).fit(data, RNG).model
    full = FindBICA(**settings_, prune=False).fit(data, RNG).model
    chance = dict(zip(sorted(columns(full)), full.probability[_by_columns(full)], strict=True))
    for column, probability in zip(sorted(columns(pruned)), pruned.probability[_by_columns(pruned)], strict=True):
        assert chance[column] == pytest.approx(probability)


def _by_columns(model):
    keys = [tuple(np.flatnonzero(column).tolist()) for column in model.mixing.T]
    return sorted(range(len(keys)), key=keys.__getitem__)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_on_exact_frequencies_every_source_returns(seed):
    rng = np.random.default_rng(seed)
    truth = random_mixture(6, 7, rng)
    rows = (np.arange(64)[:, None] >> np.arange(6)) & 1
    data = PatternCounts.of(rows, sample_weight=truth.pattern_probability() * 1e6)
    for prune in (True, False):
        found = FindBICA(prune=prune, significance=None).fit(data, rng).model
        assert columns(found) == columns(truth)
        expected = truth.in_order().probability
        np.testing.assert_allclose(found.probability, expected, atol=1e-6)


@pytest.mark.parametrize("prune", [True, False])
def test_recovery_without_noise_in_nine_of_ten_seeds(prune):
    exact = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = random_mixture(10, 10, rng)
        exact += columns(FindBICA(prune=prune).fit(PatternCounts.of(truth.sample(10_000, rng)), rng).model) == columns(
            truth
        )
    assert exact >= 9


def test_sixty_sensors_with_sixty_sparse_sources():
    rng = np.random.default_rng(3)
    truth = random_mixture(60, 60, rng, probability=(0.01, 0.1))
    data = PatternCounts.of(truth.sample(20_000, rng))
    found = FindBICA(min_probability=0.005).fit(data, rng).model
    assert columns(found) == columns(truth)


def test_more_than_sixty_four_sensors_in_one_connected_group():
    rng = np.random.default_rng(4)
    chain = np.zeros((90, 89), dtype=bool)
    chain[np.arange(89), np.arange(89)] = chain[np.arange(1, 90), np.arange(89)] = True
    truth = OrMixture(chain, rng.uniform(0.05, 0.1, 89))
    found = FindBICA().fit(PatternCounts.of(truth.sample(20_000, rng)), rng).model
    assert columns(found) == columns(truth)


def test_a_wide_lone_source_is_found_whole():
    rng = np.random.default_rng(5)
    truth = OrMixture(np.ones((30, 1), dtype=bool), [0.2])
    assert columns(FindBICA().fit(PatternCounts.of(truth.sample(1000, rng)), rng).model) == {tuple(range(30))}


def test_column_order_only_permutes_the_answer():
    rng = np.random.default_rng(6)
    truth = random_mixture(8, 8, rng)
    rows = truth.sample(5000, rng)
    shuffle = rng.permutation(8)
    straight = FindBICA().fit(PatternCounts.of(rows), rng).model
    shuffled = FindBICA().fit(PatternCounts.of(rows[:, shuffle]), rng).model
    back = {tuple(sorted(int(shuffle[i]) for i in column)) for column in columns(shuffled)}
    assert back == columns(straight)


def test_constant_sensors():
    rows = np.array([[1, 0, 0], [1, 0, 1], [1, 0, 1], [1, 0, 0]])
    found = FindBICA().fit(PatternCounts.of(rows), RNG).model
    assert columns(found) == {(0,), (2,)}
    assert found.probability.tolist() == [1.0, 0.5]


def test_a_silent_table_has_no_sources():
    found = FindBICA().fit(PatternCounts.of(np.zeros((5, 3))), RNG)
    assert found.model.n_sources == 0
    assert np.isfinite(found.log_likelihood)


def test_duplicate_sensors_share_their_sources():
    rng = np.random.default_rng(7)
    rows = random_mixture(5, 4, rng).sample(5000, rng)
    single = FindBICA().fit(PatternCounts.of(rows), rng).model
    double = FindBICA().fit(PatternCounts.of(np.hstack([rows, rows[:, :1]])), rng).model
    assert columns(double) == {(*c, 5) if 0 in c else c for c in columns(single)}


def test_missing_cells_are_refused():
    with pytest.raises(DataError, match="1 of 2 rows have missing cells, which FindBICA cannot use"):
        FindBICA().fit(PatternCounts.of(np.array([[0.0, np.nan], [1.0, 0.0]])), RNG)


def test_the_full_lattice_has_a_limit():
    rows = np.eye(25, dtype=bool)
    with pytest.raises(LimitError, match="25 sensors"):
        FindBICA(significance=None, prune=False).fit(PatternCounts.of(rows), RNG)


@pytest.mark.parametrize("settings_", [{"min_probability": 1.5}, {"min_probability": -0.1}, {"significance": 0.0}])
def test_settings_that_mean_nothing_are_refused(settings_):
    with pytest.raises(SettingError):
        FindBICA(**settings_)


class TestNoiseForDecoding:
    def test_a_given_noise_is_kept(self):
        data = PatternCounts.of(random_mixture(5, 4, RNG).sample(500, RNG))
        assert FindBICA(noise=Noise(0.1, 0.2)).fit(data, RNG).model.noise == Noise(0.1, 0.2)

    def test_the_estimate_is_never_zero(self):
        data = PatternCounts.of(random_mixture(5, 4, np.random.default_rng(1)).sample(500, np.random.default_rng(1)))
        assert FindBICA().fit(data, RNG).model.noise == Noise.flips(0.5 / (500 * 5))


def test_weights_that_add_up_to_next_to_nothing_are_learned_from():
    rows = np.random.default_rng(0).random((40, 3)) < 0.4
    data = PatternCounts.of(rows, sample_weight=np.full(40, 1e-9))
    assert FindBICA().fit(data, np.random.default_rng(0)).model.noise.false_alarm <= 0.5
