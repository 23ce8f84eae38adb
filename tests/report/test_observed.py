"""What a table shows beside what a model expects, compared with sums over all activities."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica import Noise, OrMixture
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.errors import DataError
from bica.model.fit import Fit
from bica.report.observed import ActivityView, PairView, PatternView, counts_for, decoded

MODEL = OrMixture(
    [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], [0.2, 0.3, 0.1], Noise(0.01, 0.05), sensors=["a", "b", "c", "d"]
)


def chances(model: OrMixture) -> dict[tuple[int, ...], float]:
    """The probability of every row, from the definition."""
    false_alarm, miss = model.noise.rates(model.n_sensors)
    total: dict[tuple[int, ...], float] = {}
    for activity in product((0, 1), repeat=model.n_sources):
        weight = np.prod([p if on else 1 - p for p, on in zip(model.probability, activity, strict=True)])
        for row in product((0, 1), repeat=model.n_sensors):
            chance = weight
            for i, shown in enumerate(row):
                there = any(model.mixing[i, j] and activity[j] for j in range(model.n_sources))
                one = 1 - miss[i] if there else false_alarm[i]
                chance *= one if shown else 1 - one
            total[row] = total.get(row, 0.0) + chance
    return total


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return MODEL.sample(3000, np.random.default_rng(3))


class TestPatterns:
    def test_observed_and_expected_are_those_of_the_definition(self, rows):
        view = PatternView.of(MODEL, PatternCounts.of(rows, sensors=MODEL.sensors), small=1)
        truth = chances(MODEL)
        assert len(view.on) == len({tuple(row) for row in view.on.astype(int)})
        for on, observed, expected in zip(view.on.astype(int), view.observed, view.expected, strict=True):
            assert observed == (rows == on).all(axis=1).sum()
            assert expected == pytest.approx(3000 * truth[tuple(on)], rel=1e-9)
        assert view.n_draws == 0

    @pytest.mark.parametrize("small", [1, 5])
    def test_the_others_account_for_every_row(self, rows, small):
        counts = PatternCounts.of(rows, sensors=MODEL.sensors)
        view = PatternView.of(MODEL, counts, top=5, small=small)
        assert len(view.on) == 5
        assert view.observed.sum() + view.other_observed == 3000
        assert view.expected.sum() + view.other_expected == pytest.approx(3000)
        assert view.n_others == len(counts.weights) - (view.observed > 0).sum()

    def test_patterns_of_a_few_rows_are_not_told_apart(self):
        table = [[0, 0]] * 50 + [[1, 1]] * 4 + [[1, 0]] * 30
        model = OrMixture([[1, 1], [0, 1]], [0.3, 0.1])
        view = PatternView.of(model, PatternCounts.of(table))
        assert 4 not in view.observed
        assert view.masked
        assert view.other_observed == 4
        assert 4 in PatternView.of(model, PatternCounts.of(table), small=1).observed

    def test_a_pattern_that_nobody_observed_is_listed_where_the_model_expects_it_often(self):
        view = PatternView.of(OrMixture([[1]], [0.5]), PatternCounts.of([[0]] * 100))
        assert view.observed.tolist() == [0, 100] or view.observed.tolist() == [100, 0]
        assert sorted(view.expected) == pytest.approx([50, 50])

    def test_rows_with_gaps_are_left_out(self):
        table = [[0, 0]] * 20 + [[1, None]] * 7
        assert PatternView.of(OrMixture([[1], [1]], [0.2]), PatternCounts.of(table)).n_rows == 20

    def test_a_wide_model_has_patterns_too(self):
        mixing = np.eye(40, dtype=bool)
        model = OrMixture(mixing, np.full(40, 0.01))
        rows = model.sample(2000, np.random.default_rng(0))
        view = PatternView.of(model, PatternCounts.of(rows))
        quiet = ~view.on.any(axis=1)
        assert view.expected[quiet] == pytest.approx(2000 * 0.99**40)
        assert view.observed[quiet] == (~rows.any(axis=1)).sum()

    def test_where_sums_take_long_rows_are_simulated(self):
        rng = np.random.default_rng(0)
        model = OrMixture(rng.random((60, 60)) < 0.3, np.full(60, 0.01), Noise.flips(0.001))
        view = PatternView.of(model, PatternCounts.of(model.sample(500, rng)))
        assert view.n_draws > 0
        (quiet,) = np.flatnonzero(~view.on.any(axis=1))
        silent = model.with_noise(Noise())
        low = 500 * np.prod(1 - silent.probability) * 0.999**60  # nothing on, nothing flipped
        spread = 500 * np.sqrt(0.25 / view.n_draws)
        assert view.expected[quiet] > low - 4 * spread
        assert view.expected.sum() + view.other_expected == pytest.approx(500)


class TestPairs:
    def test_counts_are_those_of_the_definition(self, rows):
        skewed = rows.copy()
        skewed[:600, 3] = skewed[:600, 0]
        view = PairView.of(Fit(MODEL), PatternCounts.of(skewed, sensors=MODEL.sensors))
        truth = chances(MODEL)
        assert view.n_tests == 10
        assert view.n_odd == view.odd.sum() > 0
        for i, k, observed, expected, z in zip(
            view.first, view.second, view.observed, view.expected, view.z, strict=True
        ):
            assert observed == (skewed[:, i] & skewed[:, k]).sum()
            assert expected == pytest.approx(3000 * sum(p for row, p in truth.items() if row[i] and row[k]))
            assert np.sign(z) == np.sign(observed - expected)

    def test_a_true_model_has_no_odd_pair(self, rows):
        view = PairView.of(Fit(MODEL), PatternCounts.of(rows, sensors=MODEL.sensors))
        assert view.n_odd == 0
        np.testing.assert_allclose(view.on, rows.mean(axis=0))

    def test_too_many_sensors_have_no_pairs_but_their_own_rates(self):
        model = OrMixture(np.ones((2100, 1), bool), [0.5])
        view = PairView.of(Fit(model), PatternCounts.of(np.ones((3, 2100), bool)))
        assert view.n_tests == 0
        assert (view.on == 1).all()


def test_columns_are_matched_by_name():
    table = PatternCounts.of([[1, 0, 0, 0]], sensors=["d", "c", "b", "a"])
    assert counts_for(MODEL, table).rows().astype(int).tolist() == [[0, 0, 0, 1]]


class TestActivity:
    @given(st.integers(1, 400), st.integers(1, 9))
    def test_every_row_is_in_one_bin_or_hidden(self, n_rows, small):
        activity = np.arange(n_rows)[:, None] % 3 == 0
        view = ActivityView.of(activity, small=small)
        assert ((view.n_rows == 0) | (view.n_rows >= min(small, n_rows))).all()
        assert view.n_rows.sum() <= n_rows
        if (view.n_rows > 0).all():
            assert view.share[0] @ view.n_rows == pytest.approx(activity.sum())

    def test_dates_of_many_kinds_are_read(self):
        activity = np.array([[True]] * 50 + [[False]] * 50)
        days = np.datetime64("2026-01-01") + np.arange(100)
        views = [ActivityView.of(activity, times) for times in (days, [str(day) for day in days], list(days))]
        assert views[0].labels[0] == "2026-01-01"
        for view in views[1:]:
            assert view.labels == views[0].labels
            np.testing.assert_array_equal(view.share, views[0].share)
        assert views[0].share[0, 0] == 1
        assert views[0].share[0, -1] == 0

    def test_numbers_are_times_as_well(self):
        view = ActivityView.of(np.ones((10, 1), bool), ["5", "6.5", *"0123478", "9"])
        assert view.labels[0] == "0"
        assert view.in_time

    @pytest.mark.parametrize("times", [["monday"] * 4, [1.0, 2.0], ["2026-01-01", "NaT", "2026-01-02", "2026-01-03"]])
    def test_times_that_are_none_are_refused(self, times):
        with pytest.raises(DataError, match="time"):
            ActivityView.of(np.ones((4, 1), bool), times)

    def test_all_rows_at_one_moment_are_one_bin(self):
        view = ActivityView.of(np.ones((40, 1), bool), [7.0] * 40)
        assert view.n_rows.max() == 40

    def test_the_sources_that_change_most_come_first(self):
        activity = np.zeros((100, 3), bool)
        activity[:, 0] = True
        activity[50:, 2] = True
        assert ActivityView.of(activity).order() == [2, 0, 1]


def test_decoding_uses_the_order_where_sources_persist():
    fit = Fit(OrMixture([[1], [1]], [0.5], Noise.flips(0.2)), diagnostics={"persistence": [50]})
    rows = Rows.of([[1, 1]] * 20 + [[1, 0]] + [[1, 1]] * 20)
    assert decoded(fit, rows)[0].all()
