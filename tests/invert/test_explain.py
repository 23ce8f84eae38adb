import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from bica.data.columns import MISSING
from bica.errors import InfeasibleError, SettingError
from bica.invert.decode import decode
from bica.invert.explain import _changed, explain
from bica.invert.posterior import posterior
from bica.kernels.bits import packed
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network
from tests.reference import slow_posterior
from tests.strategies import models

explain_module, sums_module = (import_module(f"bica.invert.{name}") for name in ("explain", "posterior"))

CHANCES = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0])  # few values, so that ties are common
RATES = st.sampled_from([0.0, 0.05, 0.2, 0.4])


@st.composite
def problems(draw):
    model = draw(models(min_sensors=1, max_sensors=4, max_sources=6, chances=CHANCES, rates=RATES))
    cells = draw(st.lists(st.integers(0, 2), min_size=model.n_sensors, max_size=model.n_sensors))
    return model, np.array([cells], dtype=np.uint8)


def words_of(cells):
    return packed(cells == 1), packed(cells != MISSING)


def slow(model, cells):
    shown = [None if cell == MISSING else bool(cell) for cell in cells[0].tolist()]
    return (model.mixing.tolist(), model.probability.tolist(), *model.noise.rates(model.n_sensors), shown)


def check_against_the_definition(model, cells, k):
    expected = slow_posterior.explanations(*slow(model, cells))
    if not expected:
        with pytest.raises(InfeasibleError):
            explain(model, *words_of(cells), k=k)
        return
    found = explain(model, *words_of(cells), k=k)
    assert found.exact
    assert found.activity.tolist() == [list(activity) for _, activity in expected[:k]]
    chance = slow_posterior.chance(*slow(model, cells))
    np.testing.assert_allclose(found.probability, [math.exp(-cost) / chance for cost, _ in expected[:k]], rtol=1e-8)
    assert found.more_ties == (len(expected) > k and math.isclose(expected[k - 1][0], expected[k][0], abs_tol=1e-9))


@settings(max_examples=100)
@given(problems(), st.integers(1, 9))
def test_the_best_explanations_match_the_definition(problem, k):
    check_against_the_definition(*problem, k)


@settings(max_examples=40, deadline=None)
@given(problems(), st.integers(1, 5))
def test_splitting_and_decoding_finds_the_same(problem, k):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explain_module, "ELIMINATION_STATES", 0)
        check_against_the_definition(*problem, k)


def test_all_explanations_together_are_certain():
    model = OrMixture([[1, 1, 0], [0, 1, 1]], [0.2, 0.1, 0.2], Noise.flips(0.1))
    found = explain(model, np.array([[3]], np.uint64), k=50)
    assert len(found.activity) == 8
    assert not found.more_ties
    np.testing.assert_allclose(found.probability.sum(), 1.0)
    np.testing.assert_allclose(found.probability @ found.activity, found.source_probability)


def test_ties_share_a_rank_and_a_cut_through_them_is_told():
    model = OrMixture(np.eye(3), [0.3, 0.3, 0.3])
    nothing = np.zeros((1, 1), np.uint64)
    found = explain(model, nothing, nothing, k=6)
    assert found.rank.tolist() == [1, 2, 2, 2, 5, 5]
    assert found.more_ties
    assert found.activity[1:4].tolist() == np.eye(3, dtype=bool).tolist()


def test_the_sensors_that_erred_are_named():
    model = OrMixture([[1], [1], [0]], [0.6], Noise.flips(0.1))
    found = explain(model, packed(np.array([[True, False, True]])), k=1)
    assert found.activity.tolist() == [[True]]
    assert found.missed.tolist() == [[False, True, False]]
    assert found.false_alarm.tolist() == [[False, False, True]]


def test_a_cell_that_was_not_observed_cannot_have_erred():
    model = OrMixture([[1], [1], [1]], [0.4], Noise.flips(0.1))
    found = explain(model, *words_of(np.array([[1, 1, MISSING]])), k=1)
    assert not found.missed.any()


@pytest.mark.slow
def test_the_first_explanation_of_a_wide_row_is_the_decoded_one():
    rng = np.random.default_rng(2)
    model = random_network(90, 80, probability=(0.01, 0.1), rng=rng)
    row = packed(model.sample(1, rng))
    found = explain(model, row, k=4)
    assert (np.diff(found.probability) <= 0).all()
    np.testing.assert_array_equal(found.activity[0], decode(model, row).activity[0])
    np.testing.assert_array_equal(found.source_probability, posterior(model, row).probability[0])
    assert (found.probability @ found.activity <= found.source_probability + 1e-12).all()


def test_more_than_64_sources_in_one_group():
    rng = np.random.default_rng(9)
    columns = np.unique(rng.random((200, 8)) < 0.4, axis=0)[1:80].T
    model = OrMixture(columns, rng.uniform(0.01, 0.3, columns.shape[1]), Noise(0.02, 0.05))
    row = packed(model.sample(1, rng))
    found = explain(model, row, k=3)
    assert model.n_sources > 64
    np.testing.assert_array_equal(found.activity[0], decode(model, row).activity[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explain_module, "ELIMINATION_STATES", 0)
        np.testing.assert_array_equal(explain(model, row, k=3).activity, found.activity)


def test_probabilities_behind_a_lower_bound_are_marked(monkeypatch):
    monkeypatch.setattr(sums_module, "EXACT_STATES", 100)
    monkeypatch.setattr(sums_module, "WIDTH", 16)
    rng = np.random.default_rng(3)
    model = random_network(40, 40, probability=(0.02, 0.2), noise=Noise(0.03, 0.05), rng=rng)
    found = explain(model, packed(model.sample(1, rng)), k=2)
    assert not found.exact
    assert (found.probability <= 1).all()


@pytest.mark.parametrize("k", [0, -1, 10_001])
def test_a_strange_number_of_explanations_is_refused(k):
    with pytest.raises(SettingError, match=f"k is {k}"):
        explain(OrMixture([[1]], [0.5]), np.zeros((1, 1), np.uint64), k=k)


def test_several_rows_are_refused():
    with pytest.raises(SettingError, match="2 were given"):
        explain(OrMixture([[1]], [0.5]), np.zeros((2, 1), np.uint64))


class TestManyConnectedSources:
    """Where splitting would take minutes, explanations are looked for near the likeliest one."""

    def test_nearby_explanations_are_the_best_ones_here_and_marked(self, monkeypatch):
        rng = np.random.default_rng(9)
        model = random_network(40, 40, probability=(0.02, 0.1), noise=Noise.flips(0.02), rng=rng)
        monkeypatch.setattr(explain_module, "ELIMINATION_STATES", 0)
        for row in packed(model.sample(3, rng)):
            exact = explain(model, row[None], k=4)
            with monkeypatch.context() as patched:
                patched.setattr(explain_module, "SPLIT_WORK", 0)
                nearby = explain(model, row[None], k=4)
            assert exact.proven
            assert not nearby.proven
            np.testing.assert_allclose(nearby.probability, exact.probability, rtol=1e-6)

    def test_changes_are_switches_and_exchanges_of_neighbours(self):
        shared = csr_array(np.array([[1, 1, 0], [0, 0, 1]]))
        changed = _changed(np.array([True, False, False]), shared).astype(int).tolist()
        assert sorted(changed) == [[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 0]]
