import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bica.data.columns import MISSING
from bica.errors import InfeasibleError, SettingError
from bica.invert.decode import decode
from bica.invert.groups import Group, groups_of, penalties, shown_cost
from bica.invert.temporal import chains as chains_module
from bica.invert.temporal import decode as courses_module
from bica.invert.temporal.chains import ChainBlock, Chains
from bica.invert.temporal.decode import decode_in_time, learn_persistence, likeliest_stay
from bica.kernels.bits import packed
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network, simulate
from tests.reference import slow_markov
from tests.strategies import models

CHANCES = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.05, 0.6))
RATES = st.one_of(st.just(0.0), st.floats(0.02, 0.3))


@st.composite
def problems(draw, rates=RATES, max_slots=4):
    model = draw(models(min_sensors=1, max_sensors=3, max_sources=3, chances=CHANCES, rates=rates))
    n_slots = draw(st.integers(1, max_slots if model.n_sources < 3 else max_slots - 1))
    cells = draw(st.lists(st.lists(st.integers(0, 2), min_size=model.n_sensors, max_size=model.n_sensors),
                          min_size=n_slots, max_size=n_slots))  # fmt: skip
    stays = draw(st.lists(st.floats(2, 20), min_size=model.n_sources, max_size=model.n_sources))
    p = model.probability  # two sources with the same sensors are one, on so often that it must stay for long
    return model, np.array(cells, dtype=np.uint8), np.maximum(stays, p / np.where(p < 1, 1 - p, 1.0))


def words_of(cells):
    return packed(cells == 1), packed(cells != MISSING)


def slow(model, cells, stays):
    rows = [[None if cell == MISSING else bool(cell) for cell in row] for row in cells.tolist()]
    rates = model.noise.rates(model.n_sensors)
    return model.mixing.tolist(), model.probability.tolist(), *rates, rows, stays.tolist()


def check_against_all_courses(model, cells, stays):
    found = decode_in_time(model, *words_of(cells), persistence=stays)
    assume(found.feasible.all())
    problem = slow(model, cells, stays)
    assert math.isclose(found.cost, slow_markov.least_cost(*problem), abs_tol=1e-9)
    course = tuple(map(tuple, found.activity.tolist()))
    assert math.isclose(found.cost, slow_markov.cost(*problem, course), abs_tol=1e-9)
    return found


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_course_is_the_best_of_all(problem):
    assert check_against_all_courses(*problem).exact.all()


@settings(max_examples=30, deadline=None)
@given(problems())
def test_stretches_of_slots_change_nothing(problem):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains_module, "STRETCH", 2)
        check_against_all_courses(*problem)


@settings(max_examples=30, deadline=None)
@given(problems(rates=st.floats(0.02, 0.3), max_slots=3))
def test_expected_moves_match_the_definition(problem):
    model, cells, stays = problem
    assume(decode(model, *words_of(cells)).feasible.all())
    expected = np.array(slow_markov.expected_moves(*slow(model, cells, stays))).reshape(-1, 2, 2)
    chains = Chains.of(model.probability, stays)
    for group in groups_of(model):
        if group.sources.size:
            shown, each = np.ascontiguousarray(cells[:, group.sensors]), np.arange(group.sources.size)
            block = ChainBlock(group, each)
            codes = block.cells(shown, np.zeros((len(cells), group.sources.size), dtype=bool))
            found = block.moves(codes, chains.pick(group.sources))
            np.testing.assert_allclose(found, expected[group.sources], atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(problems(rates=st.floats(0.02, 0.3), max_slots=3))
def test_the_gain_of_a_source_matches_the_definition(problem):
    model, cells, stays = problem
    assume(model.n_sources)
    noise = model.noise.at_least(0.01)  # every row is possible then, also without the source
    model = OrMixture(model.mixing, np.clip(model.probability, 0.05, 0.6), noise)
    rates = model.noise.rates(model.n_sensors)
    group = Group(np.arange(model.n_sensors), np.arange(model.n_sources), model.mixing, stays, penalties(*rates))
    block = ChainBlock(group, np.arange(model.n_sources))
    codes = block.cells(cells, np.zeros((len(cells), model.n_sources), dtype=bool))
    found = block.gain_of_last(codes, Chains.of(model.probability, stays))
    fewer = model.pick(np.arange(model.n_sources - 1))
    expected = slow_markov.log_chance(*slow(model, cells, stays))
    expected -= slow_markov.log_chance(*slow(fewer, cells, stays[:-1]))
    assert math.isclose(found, expected, abs_tol=1e-9)


@settings(max_examples=60)
@given(st.lists(st.floats(0, 100), min_size=4, max_size=4), st.floats(0.01, 0.7))
def test_the_likeliest_stay_is_at_the_top(counts, p):
    assume(counts[1] + counts[2] > 0.1)
    moves = np.array(counts).reshape(1, 2, 2)

    def log_likelihood(stay):
        return (moves * np.log(Chains.of(np.array([p]), np.array([stay])).move)).sum()

    stay = likeliest_stay(moves, np.array([p]))[0]
    for other in (stay * 1.05, stay / 1.05):
        if other >= 1.002 * max(1.0, p / (1 - p)):
            assert log_likelihood(stay) >= log_likelihood(other) - 1e-9


def persistent(n_sensors, n_sources, n_slots, seed, stay=10):
    rng = np.random.default_rng(seed)
    model = random_network(n_sensors, n_sources, probability=(0.1, 0.1), noise=Noise.flips(0.1), rng=rng)
    return simulate(model, n_slots, rng, persistence=stay)


class TestLargeGroups:
    problem = persistent(18, 18, 400, 1001)

    def test_the_course_is_never_less_likely_than_the_row_wise_answer(self):
        words = packed(self.problem.rows)
        found = decode_in_time(self.problem.model, words, persistence=10)
        assert not found.exact.all()
        alone = decode(self.problem.model, words).activity
        chains = Chains.of(self.problem.model.probability, found.persistence)
        cells = self.problem.rows.astype(np.uint8)
        cost = chains.cost(alone) + sum(
            shown_cost(group.penalty, group.mixing, alone[:, group.sources], cells[:, group.sensors]).sum()
            for group in groups_of(self.problem.model)
        )
        assert found.cost < cost

    def test_sweeps_come_close_to_the_best_course(self, monkeypatch):
        problem = persistent(10, 10, 300, 1002)
        best = decode_in_time(problem.model, packed(problem.rows), persistence=10)
        assert best.exact.all()
        monkeypatch.setattr(courses_module, "EXACT_SOURCES", 4)
        found = decode_in_time(problem.model, packed(problem.rows), persistence=10)
        assert not found.exact.any()
        assert best.cost - 1e-9 <= found.cost < best.cost + 5
        assert (found.activity != best.activity).mean() < 0.02


class TestPersistence:
    def test_the_mean_stay_is_found(self):
        problem = persistent(8, 6, 4000, 1003)
        stay = learn_persistence(problem.model, packed(problem.rows))
        # about 40 stays a source, each with the spread of its mean: four standard errors are 4 / sqrt(40) = 63 %,
        # and what noise hides takes a little more
        assert ((stay > 10 / 1.8) & (stay < 10 * 1.8)).all()
        assert 0.8 < stay.mean() / 10 < 1.25

    def test_independent_rows_are_decoded_as_such(self):
        rng = np.random.default_rng(1004)
        model = random_network(8, 6, probability=(0.1, 0.3), noise=Noise.flips(0.05), rng=rng)
        rows = packed(model.sample(3000, rng))
        found = decode_in_time(model, rows)
        np.testing.assert_allclose(found.persistence, 1 / (1 - model.probability), rtol=0.25)
        assert (found.activity != decode(model, rows).activity).mean() < 0.01

    def test_independent_slots_need_the_stay_of_independent_slots(self):
        rng = np.random.default_rng(1005)
        model = random_network(6, 5, probability=(0.1, 0.3), noise=Noise.flips(0.05), rng=rng)
        rows = packed(model.sample(200, rng))
        alone = decode(model, rows)
        found = decode_in_time(model, rows, persistence=1 / (1 - model.probability))
        np.testing.assert_allclose(found.cost, alone.cost.sum(), rtol=1e-9)

    @pytest.mark.parametrize("strange", [0.5, -1, np.nan, [3, 3], "often", 1.2])
    def test_what_is_no_stay_is_refused(self, strange):
        model = OrMixture([[1]], [0.6])
        with pytest.raises(SettingError, match="persistence"):
            decode_in_time(model, np.zeros((2, 1), np.uint64), persistence=strange)


@pytest.mark.filterwarnings("error")
def test_a_source_that_is_always_on_may_stay_for_ever():
    model = OrMixture([[1, 0], [0, 1]], [1.0, 0.3], Noise.flips(0.2))
    rows = np.array([[1], [1], [3], [1], [1], [3], [3], [1], [3], [3]], dtype=np.uint64)
    found = decode_in_time(model, rows, persistence=[np.inf, 5])
    assert found.activity.T.astype(int).tolist() == [[1] * 10, [0] * 5 + [1] * 5]
    assert found.persistence.tolist() == [np.inf, 5]
    assert found.cost == decode_in_time(model, rows, persistence=5).cost
    with pytest.raises(SettingError, match="persistence"):
        decode_in_time(model, rows, persistence=[5, np.inf])  # this one is off most of the time
    with pytest.raises(SettingError, match="persistence"):
        decode_in_time(model, rows, persistence=np.inf)


def test_rows_that_are_impossible_are_passed_over_and_named():
    model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    found = decode_in_time(model, np.array([[3], [2], [3]], dtype=np.uint64), persistence=5)
    assert found.feasible.tolist() == [True, False, True]
    assert found.activity[:, 1].tolist() == [True, True, True]


def test_a_persistence_that_forbids_the_rows_is_refused():
    model = OrMixture([[1]], [0.5])
    with pytest.raises(InfeasibleError, match="with this persistence"):
        decode_in_time(model, np.array([[1], [1]], dtype=np.uint64), persistence=1)


def test_sources_that_never_change_do_not_move():
    model = OrMixture([[1, 0, 1], [0, 1, 1]], [1.0, 0.0, 0.3], Noise.flips(0.1))
    found = decode_in_time(model, np.array([[1], [3], [3]], dtype=np.uint64))
    assert found.activity[:, 0].all()
    assert not found.activity[:, 1].any()


def test_no_rows_give_no_course():
    found = decode_in_time(OrMixture([[1]], [0.5], Noise.flips(0.1)), np.empty((0, 1), np.uint64))
    assert found.activity.shape == (0, 1)
    assert found.cost == 0
