import numpy as np
import pytest
from hypothesis import given, settings

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.model.noise import Noise
from bica.rivals.grecond import GreConD, GreConDEssential, essential_cells
from tests.reference import slow_concepts
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


@pytest.mark.parametrize("settings", [{"coverage": 0.0}, {"max_sources": 0}, {"noise": "per-sensor"}])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        GreConD(**settings)


def test_noise_is_half_a_flip_where_all_is_explained_or_what_was_given():
    data = PatternCounts.of([[1, 0], [0, 1]] * 5)
    assert fit(data).model.noise == Noise.flips(0.5 / 20)
    assert fit(data, noise=Noise.flips(0.1)).model.noise == Noise.flips(0.1)
