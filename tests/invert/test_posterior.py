import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.columns import MISSING
from bica.errors import BicaWarning, DataError
from bica.invert.elimination import Elimination
from bica.invert.groups import groups_of
from bica.invert.posterior import group_sums, log_probability, posterior
from bica.kernels.bits import packed, unpacked
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network
from tests.reference import slow_posterior
from tests.strategies import clear_probabilities, clear_rates, models

sums_module = import_module("bica.invert.posterior")

pytestmark = pytest.mark.filterwarnings("ignore::bica.errors.BicaWarning")


def words_of(cells):
    return packed(cells == 1), packed(cells != MISSING)


def slow(model, row):
    """The problem of one row as the slow twin takes it."""
    shown = [None if cell == MISSING else bool(cell) for cell in row]
    return (model.mixing.tolist(), model.probability.tolist(), *model.noise.rates(model.n_sensors), shown)


@st.composite
def problems(draw, chances=clear_probabilities, rates=clear_rates):
    model = draw(models(min_sensors=1, max_sensors=5, max_sources=6, chances=chances, rates=rates))
    cells = draw(st.lists(st.lists(st.integers(0, 2), min_size=model.n_sensors, max_size=model.n_sensors), max_size=4))
    return model, np.array(cells, dtype=np.uint8).reshape(-1, model.n_sensors)


def check_against_the_definition(model, cells):
    found, chances = posterior(model, *words_of(cells)), log_probability(model, *words_of(cells))
    assert found.exact.all()
    assert chances.exact.all()
    assert not found.error.any()
    for row, shares, chance in zip(cells.tolist(), found.probability, chances.value, strict=True):
        np.testing.assert_allclose(np.exp(chance), slow_posterior.chance(*slow(model, row)), rtol=1e-9, atol=0)
        expected = slow_posterior.posterior(*slow(model, row))
        expected = [math.nan] * model.n_sources if expected is None else expected
        np.testing.assert_allclose(shares, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=100)
@given(problems())
def test_posteriors_match_the_definition(problem):
    check_against_the_definition(*problem)


@settings(max_examples=60)
@given(problems())
def test_elimination_alone_matches_the_definition(problem):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums_module, "LATTICE_SENSORS", -1)
        check_against_the_definition(*problem)


@settings(max_examples=60)
@given(problems(), st.integers(1, 4))
def test_a_narrow_elimination_is_a_lower_bound_and_knows_when_it_left_nothing_out(problem, width):
    model, cells = problem
    for group in groups_of(model):
        if not group.mixing.any():
            continue
        shown = np.ascontiguousarray(cells[:, group.sensors])
        elimination = Elimination(group)
        wide, narrow = elimination.sums(shown), elimination.sums(shown, width)
        assert wide.whole.all()
        assert (narrow.log_total <= wide.log_total + 1e-9).all()
        np.testing.assert_allclose(narrow.log_total[narrow.whole], wide.log_total[narrow.whole], rtol=1e-12)


class TestWideModels:
    rng = np.random.default_rng(3)
    model = random_network(40, 40, probability=(0.02, 0.2), noise=Noise(0.03, 0.05), rng=rng)
    rows = model.sample(30, rng)

    def test_elimination_agrees_with_the_lattice(self):
        small = random_network(14, 18, probability=(0.05, 0.4), noise=Noise(0.03, 0.05), rng=np.random.default_rng(5))
        rows = packed(small.sample(40, np.random.default_rng(6)))
        by_lattice = posterior(small, rows)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sums_module, "LATTICE_SENSORS", 2)
            by_elimination = posterior(small, rows)
        assert by_elimination.exact.all()
        np.testing.assert_allclose(by_elimination.probability, by_lattice.probability, rtol=1e-9)

    def test_forty_connected_sensors_are_summed_exactly(self):
        found = posterior(self.model, packed(self.rows))
        assert max(group.sensors.size for group in groups_of(self.model)) > 24
        assert found.exact.all()

    def test_what_is_out_of_reach_is_approximated_within_its_error(self, monkeypatch):
        exact, chance = posterior(self.model, packed(self.rows)), log_probability(self.model, packed(self.rows))
        monkeypatch.setattr(sums_module, "EXACT_STATES", 1000)
        monkeypatch.setattr(sums_module, "WIDTH", 128)
        found, bound = posterior(self.model, packed(self.rows)), log_probability(self.model, packed(self.rows))
        assert not found.exact.all()
        assert not bound.exact.any()
        off = np.abs(found.probability - exact.probability)
        assert (off <= found.error + 1e-12).all()
        assert off.max() < 1e-2
        assert ((bound.value <= chance.value + 1e-12) & (bound.value > chance.value - 1e-2)).all()

    @pytest.mark.slow
    def test_without_noise_hundreds_of_connected_sensors_are_exact(self):
        rng = np.random.default_rng(8)
        model = random_network(200, 200, probability=(0.01, 0.05), rng=rng)
        activity = model.draw_activity(20, rng)
        found = posterior(model, packed(model.observe(activity)))
        assert max(group.sensors.size for group in groups_of(model)) > 100
        assert found.exact.all()
        assert (found.probability[activity] > 0).all()  # what was on cannot be ruled out
        quiet = ~model.observe(activity)
        ruled_out = quiet @ model.mixing
        assert not found.probability[ruled_out].any()


def test_the_sums_of_a_table_survive_chances_that_no_float_can_hold():
    model = OrMixture(np.eye(20, dtype=bool) | np.eye(20, k=1, dtype=bool), np.full(20, 0.01), Noise.flips(1e-60))
    row = np.array([[1, 0] * 10], dtype=np.uint8)
    found, chance = posterior(model, packed(row)), log_probability(model, packed(row))
    assert found.exact.all()
    assert -math.inf < chance.value[0] < -700
    assert np.isfinite(found.probability).all()


def test_posteriors_average_to_the_probabilities():
    """Over the distribution of the rows, the mean posterior is the prior: exactly, by the law of total probability."""
    model = random_network(6, 9, probability=(0.1, 0.6), noise=Noise(0.1, 0.2), rng=np.random.default_rng(4))
    every_row = np.arange(64, dtype=np.uint64)[:, None]
    average = model.pattern_probability() @ posterior(model, every_row).probability
    np.testing.assert_allclose(average, model.probability, rtol=1e-12)
    np.testing.assert_allclose(np.exp(log_probability(model, every_row).value), model.pattern_probability(), rtol=1e-12)


def test_a_row_without_any_cell_tells_nothing():
    model = random_network(30, 30, noise=Noise.flips(0.1), rng=np.random.default_rng(4))
    nothing = np.zeros((1, 1), np.uint64)
    np.testing.assert_allclose(posterior(model, nothing, nothing).probability[0], model.probability, rtol=1e-9)
    np.testing.assert_allclose(log_probability(model, nothing, nothing).value, 0.0, atol=1e-9)


def test_impossible_rows_are_nan_and_counted_in_a_warning():
    model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    with pytest.warns(BicaWarning, match="cannot produce 2 rows of 3"):
        found = posterior(model, np.array([[2], [1], [2]], dtype=np.uint64))
    assert np.isnan(found.probability).all(axis=1).tolist() == [True, False, True]


def test_sources_that_never_change_keep_their_probability():
    model = OrMixture([[1, 1, 0], [1, 0, 0], [0, 0, 1]], [1.0, 0.6, 0.0])
    found = posterior(model, packed(np.array([[True, True, False]])))
    assert found.probability.tolist() == [[1.0, 0.6, 0.0]]  # the second is hidden behind the first


def test_no_rows_and_no_sources_give_nothing():
    model = OrMixture(np.empty((2, 0)), [], Noise.flips(0.1))
    assert posterior(model, np.empty((0, 1), np.uint64)).probability.shape == (0, 0)
    assert posterior(model, np.zeros((3, 1), np.uint64)).probability.shape == (3, 0)
    np.testing.assert_allclose(np.exp(log_probability(model, np.array([[1]], np.uint64)).value), 0.09)


def test_words_of_another_width_are_refused():
    with pytest.raises(DataError, match="a row of 2 sensors takes 1 words"):
        posterior(OrMixture(np.ones((2, 1)), [0.2]), np.zeros((3, 2), np.uint64))


def test_equal_rows_and_their_order_change_nothing():
    model = random_network(9, 7, noise=Noise.flips(0.1), rng=np.random.default_rng(6))
    rows = packed(unpacked(np.random.default_rng(1).integers(0, 512, (50, 1)).astype(np.uint64), 9))
    whole = posterior(model, rows).probability
    np.testing.assert_array_equal(whole[::-1], posterior(model, rows[::-1]).probability)
    np.testing.assert_allclose(whole[3:5], posterior(model, rows[3:5]).probability, rtol=1e-12)


def test_every_row_of_a_group_is_known_exactly():
    model = random_network(8, 8, noise=Noise.flips(0.1), rng=np.random.default_rng(6))
    for group in groups_of(model):
        cells = np.zeros((1, group.sensors.size), np.uint8)
        assert group_sums(group, cells, shares=True).exact.all()
