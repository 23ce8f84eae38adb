import numpy as np
import pytest
from hypothesis import given, settings

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.model.noise import Noise
from bica.rivals.grecond import Concepts, Cover, GreConD, GreConDEssential, GreConDPlus, essential_cells
from tests.reference import slow_concepts
from tests.rivals.planted import factors, zoo_rows
from tests.strategies import binary_tables


def fit(data, method=GreConD, **told):
    return method(**told).fit(data, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("table", "n_sources", "n_essential"),
    [
        ("zoo/X.csv", 28, 25),
        ("hp_roles/healthcare_X.csv", 17, 14),
        ("hp_roles/domino_X.csv", 21, 20),
        ("hp_roles/emea_X.csv", 43, 34),
    ],
)
def test_known_tables_take_as_many_concepts_as_measured_before(shared_data, table, n_sources, n_essential):
    data = PatternCounts.of(shared_data / table)
    assert fit(data).model.n_sources == n_sources
    assert fit(data, GreConDEssential).model.n_sources == n_essential


@given(binary_tables())
@settings(max_examples=60)
def test_the_cover_is_the_greedy_one_of_the_definition(table):
    data = PatternCounts.of(np.array(table))
    rows = data.rows().tolist()
    everywhere = [(i, j) for i in range(len(rows)) for j in range(len(rows[0]))]
    expected = slow_concepts.greedy_cover(rows, everywhere, data.weights)
    found = fit(data)
    assert found.n_iter == len(expected)
    columns = {frozenset(np.flatnonzero(column).tolist()) for column in found.model.mixing.T}
    assert columns == {column for _, column in expected}


@pytest.mark.parametrize("method", [GreConD, GreConDEssential])
@given(table=binary_tables())
@settings(max_examples=60)
def test_every_source_is_a_concept_and_all_together_rebuild_the_table(method, table):
    data = PatternCounts.of(np.array(table))
    rows = data.rows()
    model = fit(data, method).model
    activity = np.array([[not (c & ~r).any() for c in model.mixing.T] for r in rows]).reshape(len(rows), -1)
    assert (activity @ model.mixing.T == rows).all()
    for column, on in zip(model.mixing.T, activity.T, strict=True):
        concept = frozenset(np.flatnonzero(on).tolist()), frozenset(np.flatnonzero(column).tolist())
        assert slow_concepts.is_concept(rows.tolist(), *concept)


@given(binary_tables())
@settings(max_examples=60)
def test_essential_cells_are_those_of_the_definition(table):
    found = essential_cells(np.array(table, dtype=bool))
    assert {(int(i), int(j)) for i, j in np.argwhere(found)} == slow_concepts.essential(table)


@given(binary_tables(max_rows=4, max_columns=4))
@settings(max_examples=40)
def test_no_cover_is_smaller_than_the_boolean_rank(table):
    data = PatternCounts.of(np.array(table))
    rank = slow_concepts.boolean_rank(data.rows().tolist())
    assert fit(data).model.n_sources >= rank
    assert fit(data, GreConDEssential).model.n_sources >= rank


def test_the_objective_is_what_is_left_and_falls_to_nothing():
    data = PatternCounts.of(np.random.default_rng(0).random((30, 8)) < 0.4)
    left = fit(data).diagnostics["objective"]
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0


def test_it_can_stop_early():
    data = PatternCounts.of(np.random.default_rng(0).random((30, 8)) < 0.4)
    assert fit(data, max_sources=3).n_iter == 3
    half = fit(data, coverage=0.5).diagnostics["objective"]
    assert half[-1] <= 0.5 * data.ones().sum() < half[-2]


def test_more_starts_never_need_more_sources():
    data = PatternCounts.of(np.random.default_rng(4).random((40, 10)) < 0.5)
    one, many = fit(data), fit(data, n_init=10)
    assert len(many.diagnostics["scores"]) == 10
    assert many.n_iter <= one.n_iter


def test_weights_count_as_rows():
    rows = np.random.default_rng(5).random((20, 6)) < 0.4
    repeated = PatternCounts.of(np.repeat(rows, 3, axis=0))
    weighted = PatternCounts.of(rows, sample_weight=np.full(20, 3.0))
    assert fit(repeated).model == fit(weighted).model


@given(binary_tables())
@settings(max_examples=60)
def test_turned_round_it_is_the_cover_of_the_turned_table(table):
    rows = PatternCounts.of(np.array(table)).rows()
    found = fit(PatternCounts.of(rows), orientation="rows")
    expected = slow_concepts.greedy_cover(
        rows.T.tolist(), [(i, j) for j, i in np.ndindex(rows.shape)], [1] * rows.shape[1]
    )
    columns = {frozenset(np.flatnonzero(column).tolist()) for column in found.model.mixing.T}
    assert columns == {sensors for sensors, _ in expected}
    assert found.diagnostics["wrong_cells"] == 0


@pytest.mark.parametrize("table", ["zoo/X.csv", "hp_roles/healthcare_X.csv", "hp_roles/domino_X.csv"])
def test_the_best_orientation_needs_the_fewer_sources_of_both(shared_data, table):
    data = PatternCounts.of(shared_data / table)
    both = [fit(data, orientation=orientation).model.n_sources for orientation in ("sensors", "rows")]
    assert fit(data, orientation="best").model.n_sources == min(both)


@given(binary_tables())
@settings(max_examples=60)
def test_where_zeros_are_too_dear_the_extended_cover_is_exact(table):
    data = PatternCounts.of(np.array(table))
    found = fit(data, GreConDPlus, cost_of_zero=1e6)
    assert found.diagnostics["wrong_cells"] == 0
    assert found.model.n_sources <= fit(data).model.n_sources


@given(binary_tables())
@settings(max_examples=60)
def test_the_extended_cover_leaves_no_one_uncovered(table):
    assert fit(PatternCounts.of(np.array(table)), GreConDPlus).diagnostics["objective"][-1:] in ([], [0.0])


def test_no_row_or_sensor_would_improve_an_extended_concept():
    _, data, _ = factors(3, 4, 60, 15, 0.4, 0.1)
    method = GreConDPlus(cost_of_zero=0.7)
    cover = Cover(data)
    members, column = method._improved(cover, *Concepts.of(data, by_rows=False).grow(data.rows(), np.arange(15)))
    worth = np.where(data.rows(), 1.0, -0.7) * data.weights[:, None]
    value = worth[np.ix_(members, column)].sum()
    for place in np.flatnonzero(~column):
        assert worth[np.ix_(members, column | (np.arange(15) == place))].sum() <= value
    for place in np.flatnonzero(~members):
        assert worth[np.ix_(members | (np.arange(members.size) == place), column)].sum() <= value


def test_sources_that_others_cover_are_dropped():
    cover = Cover(PatternCounts.of([[1, 1, 0], [0, 1, 1], [1, 1, 1]]))  # distinct rows: 110, 011, 111
    for members, column in (([1, 0, 1], [1, 1, 0]), ([1, 1, 1], [0, 1, 0]), ([0, 1, 1], [0, 1, 1])):
        cover.add(np.array(members, dtype=bool), np.array(column, dtype=bool))
    cover.drop_redundant()
    assert [column.astype(int).tolist() for column in cover.columns] == [[1, 1, 0], [0, 1, 1]]
    assert (cover.times > 0).tolist() == cover.rows.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_where_cells_were_missed_the_extended_cover_needs_far_fewer_sources(seed):
    _, data, _ = factors(seed, 5, 300, 40, 0.3, 0.0)
    rows = np.repeat(data.rows(), data.weights.astype(int), axis=0)
    missed = PatternCounts.of(Noise(0.0, 0.05).apply(rows, np.random.default_rng(seed)))
    exact, extended = fit(missed), fit(missed, GreConDPlus, cost_of_zero=1.0)
    assert extended.model.n_sources < exact.model.n_sources / 3
    five = fit(missed, GreConDPlus, cost_of_zero=2.0, max_sources=5).diagnostics["wrong_cells"]
    assert five < fit(missed, max_sources=5).diagnostics["wrong_cells"]


@pytest.mark.parametrize(("n_sources", "measured"), [(2, 413), (5, 195), (10, 69)])
def test_cut_at_a_number_of_sources_the_zoo_has_the_wrong_cells_measured_before(shared_data, n_sources, measured):
    data = PatternCounts.of(zoo_rows(shared_data))
    exact, extended = (fit(data, method, max_sources=n_sources) for method in (GreConD, GreConDPlus))
    assert exact.diagnostics["wrong_cells"] == measured
    assert extended.diagnostics["wrong_cells"] < measured


@pytest.mark.parametrize(
    "settings", [{"coverage": 0.0}, {"max_sources": 0}, {"noise": "per-sensor"}, {"orientation": "both"}]
)
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        GreConD(**settings)


def test_zeros_must_cost_something():
    with pytest.raises(SettingError, match="cost_of_zero must be above 0"):
        GreConDPlus(cost_of_zero=0.0)


def test_noise_is_half_a_flip_where_all_is_explained_or_what_was_given():
    data = PatternCounts.of([[1, 0], [0, 1]] * 5)
    assert fit(data).model.noise == Noise.flips(0.5 / 20)
    assert fit(data, noise=Noise.flips(0.1)).model.noise == Noise.flips(0.1)
