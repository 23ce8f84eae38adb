"""Exact probabilities against all activities, all noise and all that a missing cell may be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.errors import DataError, LimitError
from bica.model import noise as distribution
from bica.model.noise import Noise, connected_groups
from bica.model.or_mixture import OrMixture
from tests.reference import slow_mixture
from tests.strategies import clear_probabilities, clear_rates, models, sources_of

ROUNDING = 1e-13  # 2^6 activities times 2^5 states, each a product of a dozen factors below 1


def slow_table(model):
    false_alarm, miss = (rates.tolist() for rates in model.noise.rates(model.n_sensors))
    return slow_mixture.shown_probability(sources_of(model), false_alarm, miss)


def slow_log(chance):
    return math.log(chance) if chance > 0 else -math.inf


@given(models())
def test_pattern_probability_matches_every_activity(model):
    np.testing.assert_allclose(model.pattern_probability(), slow_table(model), rtol=0, atol=ROUNDING)


@given(models())
def test_pattern_probability_adds_up_to_one(model):
    assert model.pattern_probability().sum() == pytest.approx(1, rel=0, abs=ROUNDING)


def test_the_papers_two_sensors():
    assert OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).pattern_probability().tolist() == [0.4, 0.1, 0.0, 0.5]


def test_probabilities_of_0_and_1_are_exact():
    model = OrMixture([[1, 1, 0], [0, 1, 1], [0, 0, 1]], [0.0, 1.0, 0.0])
    assert model.pattern_probability().tolist() == [0, 0, 0, 1, 0, 0, 0, 0]


@st.composite
def models_with_rows(draw):
    """A model, and rows that may have gaps: 2 is a cell that was not observed."""
    model = draw(models(min_sensors=1, chances=clear_probabilities, rates=clear_rates))
    cells = st.lists(st.sampled_from([0, 1, 2]), min_size=model.n_sensors, max_size=model.n_sensors)
    return model, draw(st.lists(cells, min_size=1, max_size=8))


def counts_of(model, rows):
    values = np.array(rows, dtype=float)
    values[values == 2] = np.nan
    return PatternCounts.of(values, sensors=model.sensors)


def slow_chance(table, row):
    return slow_mixture.row_probability(table, [None if cell == 2 or np.isnan(cell) else bool(cell) for cell in row])


@given(models_with_rows())
def test_log_likelihood_sums_over_what_missing_cells_may_be(problem):
    model, rows = problem
    table = slow_table(model)
    expected = sum(slow_log(slow_chance(table, row)) for row in rows)
    # sums of positive terms only, so each chance is right to some fifty roundings, whatever its size
    assert model.log_likelihood(counts_of(model, rows)) == pytest.approx(expected, rel=0, abs=8 * 1e-13)


@given(models_with_rows())
def test_each_distinct_row_has_the_log_of_its_chance(problem):
    model, rows = problem
    counts = counts_of(model, [[cell % 2 for cell in row] for row in rows])
    expected = [slow_log(slow_chance(slow_table(model), row)) for row in counts.rows().astype(int).tolist()]
    assert model.log_probability(counts) == pytest.approx(expected, rel=0, abs=1e-13)


def test_weights_count_as_rows():
    model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    assert model.log_likelihood([[0, 0], [1, 1], [1, 1]]) == pytest.approx(math.log(0.4) + 2 * math.log(0.5))


def test_a_row_without_any_observed_cell_is_certain():
    model = OrMixture([[1, 1], [0, 1]], [0.25, 0.5], Noise(0.125, 0.25))
    assert model.log_likelihood([[np.nan, np.nan]]) == pytest.approx(0, abs=1e-15)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("model", "row"),
    [
        (OrMixture([[1, 1], [0, 1]], [0.2, 0.5]), [0, 1]),  # the second sensor is never on alone
        (OrMixture([[1, 1], [0, 1]], [0.2, 0.5], Noise([0.1, 0], 0)), [0, 1]),  # not with such noise either
        (OrMixture([[1], [0]], [1.0]), [0, np.nan]),  # always on
        (OrMixture([[1], [0]], [0.0]), [1, 0]),  # never on
        (OrMixture(np.zeros((2, 0)), []), [np.nan, 1]),  # no source at all
    ],
)
def test_an_impossible_row_has_exactly_no_chance_and_no_warning(model, row):
    assert model.log_likelihood([row, [np.nan, np.nan]]) == -np.inf


class TestManySensors:
    def test_independent_groups_together_have_any_number_of_sensors(self):
        rng = np.random.default_rng(4)
        parts = [OrMixture([[1, 1], [0, 1], [1, 0]], rng.uniform(0.1, 0.9, 2), Noise(0.05, 0.1)) for _ in range(30)]
        whole = np.zeros((90, 60))
        places = rng.permutation(90).reshape(30, 3)  # the sensors of a group are scattered
        for k, part in enumerate(parts):
            whole[places[k], 2 * k : 2 * k + 2] = part.mixing
        model = OrMixture(whole, np.concatenate([part.probability for part in parts]), Noise(0.05, 0.1))
        rows = model.sample(20, rng).astype(float)
        rows[rng.random(rows.shape) < 0.2] = np.nan
        tables = [slow_table(part) for part in parts]
        expected = sum(
            slow_log(slow_chance(table, row[place]))
            for row in rows
            for table, place in zip(tables, places, strict=True)
        )
        assert model.log_likelihood(rows) == pytest.approx(expected, rel=1e-9)

    def test_24_connected_sensors_are_exact(self):
        model = OrMixture(np.ones((24, 1)), [0.25])
        counts = PatternCounts.of(np.array([[0] * 24, [1] * 24, [1] * 23 + [0]]))
        assert np.exp(np.sort(model.log_probability(counts))).tolist() == pytest.approx([0, 0.25, 0.75], rel=1e-15)

    def test_25_connected_sensors_are_refused_in_one_sentence(self):
        model = OrMixture(np.ones((25, 1)), [0.25])
        for call in (model.pattern_probability, lambda: model.log_likelihood(np.zeros((1, 25)))):
            with pytest.raises(LimitError, match=r"25 sensors needs 2\^25 cells.*limited to 24"):
                call()

    def test_25_sensors_have_no_table_even_if_they_are_not_connected(self):
        model = OrMixture(np.eye(25), [0.5] * 25)
        assert model.log_likelihood(np.zeros((2, 25))) == pytest.approx(50 * math.log(0.5))
        with pytest.raises(LimitError):
            model.pattern_probability()

    def test_too_many_kinds_of_gaps_are_refused_in_one_sentence(self, monkeypatch):
        monkeypatch.setattr(distribution, "GAP_LIMIT", 3 * 2**2)
        model = OrMixture(np.ones((2, 1)), [0.5])
        rows = np.array([[0, 0], [np.nan, 0], [0, np.nan], [np.nan, np.nan]])
        model.log_likelihood(rows[:3])
        with pytest.raises(LimitError, match="4 different sets of 2 connected sensors"):
            model.log_likelihood(rows)


class TestSensorNames:
    MODEL = OrMixture([[1], [0]], [0.5], sensors=["a", "b"])

    @pytest.mark.parametrize("sensors", [["a", "b"], None])
    def test_the_same_names_or_none_will_do(self, sensors):
        assert self.MODEL.log_likelihood(PatternCounts.of([[1, 0]], sensors=sensors)) == math.log(0.5)

    def test_a_model_without_names_takes_any(self):
        model = OrMixture([[1], [0]], [0.5])
        assert model.log_likelihood(PatternCounts.of([[1, 0]], sensors=["p", "q"])) == math.log(0.5)

    def test_columns_are_matched_by_name(self):
        rows = [[1, 0], [0, 0], [0, 1]]
        swapped = PatternCounts.of(np.array(rows)[:, ::-1], sensors=["b", "a"])
        assert self.MODEL.log_likelihood(swapped) == self.MODEL.log_likelihood(rows) == -math.inf
        np.testing.assert_array_equal(np.exp(self.MODEL.log_probability(swapped)), [0.5, 0, 0.5])  # nothing, b, a

    @pytest.mark.parametrize(
        ("sensors", "sentence"),
        [(["a", "c"], "no column 'b', which the model"), (["b", "a", "c"], "a column 'c' that the model does not")],
    )
    def test_other_names_are_refused(self, sensors, sentence):
        with pytest.raises(DataError, match=sentence):
            self.MODEL.log_likelihood(PatternCounts.of([[1] * len(sensors)], sensors=sensors))

    def test_another_number_of_sensors_is_refused(self):
        with pytest.raises(DataError, match="2 sensors, but the table has 3 columns"):
            self.MODEL.log_likelihood([[1, 0, 0]])


class TestConnectedGroups:
    @given(models(max_sensors=6))
    def test_groups_share_no_source_and_cannot_be_split(self, model):
        groups = [(set(a.tolist()), set(b.tolist())) for a, b in connected_groups(model.mixing)]
        assert sorted(i for sensors, _ in groups for i in sensors) == list(range(model.n_sensors))
        assert sorted(j for _, sources in groups for j in sources) == list(range(model.n_sources))
        for sensors, sources in groups:
            reached = {min(sensors)}
            for _ in range(model.n_sensors):
                reached |= {
                    k
                    for j in sources
                    for k in np.flatnonzero(model.mixing[:, j]).tolist()
                    if reached & set(np.flatnonzero(model.mixing[:, j]).tolist())
                }
            assert reached == sensors

    def test_256_shared_sources_still_connect(self):
        columns = ((np.arange(256) >> np.arange(8)[:, None]) & 1).astype(bool)
        mixing = np.vstack([np.ones((2, 256), dtype=bool), columns])
        assert [len(sensors) for sensors, _ in connected_groups(mixing)] == [10]
        assert [len(sensors) for sensors, _ in connected_groups(mixing[:2])] == [2]

    def test_a_source_that_reaches_nothing_belongs_nowhere(self):
        groups = [(a.tolist(), b.tolist()) for a, b in connected_groups(np.array([[False, False], [False, True]]))]
        assert groups == [([0], []), ([1], [1])]
