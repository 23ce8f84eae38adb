import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.columns import MISSING
from bica.errors import DataError, SettingError
from bica.invert.decode import decode
from bica.kernels.bits import packed, unpacked
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.reference import slow_decoding

RATES = (0.0, 0.05, 0.2, 0.4)  # few values, so that ties are common
CHANCES = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)


def words_of(cells):
    return packed(cells == 1), packed(cells != MISSING)


def slow(model, cells):
    """The costs by trying everything, and the activities: all off where the row is impossible."""
    rates = model.noise.rates(model.n_sensors)
    rows = [[None if cell == MISSING else bool(cell) for cell in row] for row in cells.tolist()]
    found = [slow_decoding.best(model.mixing, model.probability, *rates, row) for row in rows]
    activity = [[False] * model.n_sources if active is None else active for _, active in found]
    return np.array([cost for cost, _ in found]), np.array(activity, dtype=bool).reshape(len(rows), model.n_sources)


def random_problem(rng):
    """A small model and rows for it: often n > m, likely sources, ties, silent noise, gaps, impossible rows."""
    n_sensors, n_sources = rng.integers(1, 6), rng.integers(0, 9)
    rates = rng.choice(RATES, (2, n_sensors)) * rng.choice([0.0, 1.0])
    probability = rng.random(n_sources)
    if rng.random() < 0.7:  # equal sources behind equal sensors: ties
        rates, probability = rates[:, :1].repeat(n_sensors, 1), np.full(n_sources, rng.choice(CHANCES))
    mixing = rng.random((n_sensors, n_sources)) < rng.uniform(0.2, 0.7)
    cells = rng.choice(3, (4, n_sensors), p=[0.45, 0.45, 0.1]).astype(np.uint8)
    return OrMixture(mixing, probability, Noise(*rates)), cells


PROBLEMS = [random_problem(np.random.default_rng([11, seed])) for seed in range(500)]


@cache
def solved():
    """The costs and activities of the problems, once for all tests."""
    return [slow(model, cells) for model, cells in PROBLEMS]


def has_ties(model, cells, activity):
    """Whether preferring the last sources in place of the first ones gives other activities."""
    backwards = model.pick(np.arange(model.n_sources)[::-1])
    return (slow(backwards, cells)[1][:, ::-1] != activity).any()


def test_the_random_problems_cover_the_hard_cases():
    costs = [cost for cost, _ in solved()]
    assert sum(np.isinf(cost).any() for cost in costs) > 50
    assert sum(has_ties(*problem, activity) for problem, (_, activity) in zip(PROBLEMS, solved(), strict=True)) > 15
    assert sum(model.n_sources > model.n_sensors for model, _ in PROBLEMS) > 50
    assert sum((model.probability > 0.5).any() for model, _ in PROBLEMS) > 50
    assert sum((cells == MISSING).any() for _, cells in PROBLEMS) > 50
    assert sum(isinstance(model.noise.miss, tuple) and len(set(model.noise.miss)) > 1 for model, _ in PROBLEMS) > 50


@pytest.mark.parametrize("solver", ["table", "search"])
def test_table_and_search_find_what_trying_everything_finds(solver):
    for (model, cells), (cost, activity) in zip(PROBLEMS, solved(), strict=True):
        found = decode(model, *words_of(cells), solver=solver)
        assert found.proven.all()
        np.testing.assert_allclose(found.cost, cost, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(found.activity, activity)
        np.testing.assert_array_equal(found.feasible, np.isfinite(cost))


@pytest.mark.slow
def test_the_integer_program_finds_the_same_cost():
    for (model, cells), (cost, _) in zip(PROBLEMS, solved(), strict=True):
        found = decode(model, *words_of(cells), solver="program")
        np.testing.assert_allclose(found.cost, cost, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(found.activity[~found.feasible], False)


def test_the_cost_is_that_of_the_activity():
    for model, cells in PROBLEMS[::10]:
        found = decode(model, *words_of(cells))
        rates = model.noise.rates(model.n_sensors)
        for row, active, cost in zip(cells.tolist(), found.activity.tolist(), found.cost, strict=True):
            shown = [None if cell == MISSING else bool(cell) for cell in row]
            told = slow_decoding.cost(model.mixing, model.probability, *rates, shown, active)
            assert math.isclose(told, cost, abs_tol=1e-9) or math.isinf(cost)


@st.composite
def problems(draw):
    n_sensors, n_sources = draw(st.integers(1, 4)), draw(st.integers(0, 6))
    mixing = draw(st.lists(st.lists(st.booleans(), min_size=n_sources, max_size=n_sources), min_size=n_sensors,
                           max_size=n_sensors))  # fmt: skip
    probability = draw(st.lists(st.sampled_from(CHANCES), min_size=n_sources, max_size=n_sources))
    rates = [draw(st.lists(st.sampled_from(RATES), min_size=n_sensors, max_size=n_sensors)) for _ in range(2)]
    cells = draw(st.lists(st.integers(0, 2), min_size=n_sensors, max_size=n_sensors))
    model = OrMixture(np.array(mixing).reshape(n_sensors, n_sources), probability, Noise(*rates))
    return model, np.array([cells], dtype=np.uint8)


@settings(max_examples=100)
@given(problems())
def test_table_and_search_match_the_definition(problem):
    model, cells = problem
    cost, activity = slow(model, cells)
    for solver in ("table", "search"):
        found = decode(model, *words_of(cells), solver=solver)
        np.testing.assert_allclose(found.cost, cost, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(found.activity, activity)


def every_row(n_sensors):
    return unpacked(np.arange(2**n_sensors, dtype=np.uint64)[:, None], n_sensors)


class TestTies:
    def test_fewest_active_sources_win(self):
        model = OrMixture([[1, 0, 1], [0, 1, 1]], [0.5, 0.5, 0.5])
        found = decode(model, packed(np.array([[True, True]])))
        assert found.activity.tolist() == [[False, False, True]]

    def test_then_the_smallest_number_that_the_sources_spell(self):
        model = OrMixture([[0, 1, 1], [1, 0, 1], [1, 1, 0]], [0.3, 0.3, 0.3])
        found = decode(model, packed(np.array([[True, True, True]])))
        assert found.activity.tolist() == [[True, True, False]]

    def test_a_source_that_no_cell_tells_of_is_on_only_if_that_is_likelier(self):
        model = OrMixture([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0.5, 0.6, 0.4])
        found = decode(model, np.zeros((1, 1), np.uint64), np.zeros((1, 1), np.uint64))
        assert found.activity.tolist() == [[False, True, False]]


class TestSourcesThatNeverChange:
    model = OrMixture([[1, 1, 0], [1, 0, 0], [0, 0, 1]], [1.0, 0.6, 0.0])

    def test_they_are_always_on_or_always_off(self):
        found = decode(self.model, packed(np.array([[True, True, False]])))
        assert found.activity.tolist() == [[True, True, False]]  # 0.6 is hidden by the first, and likelier on than off
        np.testing.assert_allclose(found.cost, -math.log(0.6))

    def test_a_row_that_contradicts_them_is_impossible(self):
        rows = np.array([[False, True, False], [True, True, True]])
        found = decode(self.model, packed(rows))
        assert found.feasible.tolist() == [False, False]
        assert not found.activity.any()


def test_without_noise_each_row_that_the_model_can_produce_is_explained_exactly():
    rng = np.random.default_rng(5)
    model = OrMixture(rng.random((8, 6)) < 0.4, rng.uniform(0.1, 0.9, 6))
    rows = every_row(8)
    found = decode(model, packed(rows))
    possible = model.pattern_probability() > 0
    np.testing.assert_array_equal(found.feasible, possible)
    np.testing.assert_array_equal(model.observe(found.activity)[possible], rows[possible])


def test_a_sensor_that_never_errs_is_believed_among_noisy_ones():
    model = OrMixture([[1, 0], [1, 1]], [0.01, 0.4], Noise([0.0, 0.1], [0.0, 0.1]))
    found = decode(model, packed(every_row(2)))
    assert found.activity[:, 0].tolist() == [False, True, False, True]
    assert found.feasible.all()


def test_a_sensor_that_never_errs_and_that_no_source_reaches_must_be_off():
    model = OrMixture([[0], [1]], [0.4], Noise([0.0, 0.1], 0.1))
    assert decode(model, packed(every_row(2))).feasible.tolist() == [True, False, True, False]


def wide_model(rng, n_blocks, n_sensors=6, n_sources=5):
    """Blocks that share no source, their sensors shuffled."""
    mixing = np.kron(np.eye(n_blocks, dtype=bool), np.ones((n_sensors, n_sources), dtype=bool))
    mixing &= rng.random(mixing.shape) < 0.5
    probability = rng.uniform(0.05, 0.8, mixing.shape[1])
    return OrMixture(rng.permutation(mixing), probability, Noise.flips(0.05))


@pytest.mark.slow
def test_groups_of_a_wide_model_are_decoded_alone():
    rng = np.random.default_rng(3)
    model = wide_model(rng, n_blocks=15)  # 90 sensors, two words a row
    rows = model.sample(50, rng)
    whole = decode(model, packed(rows), solver="table")
    by_program = decode(model, packed(rows), solver="program")
    np.testing.assert_allclose(whole.cost, by_program.cost, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(whole.activity, by_program.activity)  # no two sources cost the same here


@pytest.mark.slow
def test_table_and_search_hold_more_than_64_sources():
    rng = np.random.default_rng(9)
    mixing = np.unique(every_row(7)[1:], axis=0).T  # all 127 columns
    model = OrMixture(mixing, rng.uniform(0.01, 0.3, 127), Noise(0.02, 0.05))
    rows = packed(every_row(7))
    table, search, program = (decode(model, rows, solver=solver) for solver in ("table", "search", "program"))
    np.testing.assert_allclose(table.cost, program.cost, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(table.activity, program.activity)
    np.testing.assert_array_equal(table.activity, search.activity)


def test_both_solvers_agree_without_noise_on_twenty_sensors():
    rng = np.random.default_rng(8)
    model = OrMixture(rng.random((20, 40)) < 0.15, rng.uniform(0.05, 0.6, 40))
    rows = packed(np.vstack([model.sample(30, rng), rng.random((5, 20)) < 0.5]))
    table, program = (decode(model, rows, solver=solver) for solver in ("table", "program"))
    np.testing.assert_allclose(table.cost, program.cost, rtol=0, atol=1e-8)
    assert table.feasible[:30].all()


def chain(n_sensors):
    """Each source reaches two neighbouring sensors."""
    return (np.eye(n_sensors, dtype=bool) | np.eye(n_sensors, k=1, dtype=bool))[:, 1:]


def test_a_source_that_is_always_on_cuts_the_network_where_it_covers_it():
    rng = np.random.default_rng(2)
    always = np.arange(24)[:, None] == 12
    model = OrMixture(np.hstack([chain(24), always]), np.append(rng.uniform(0.1, 0.6, 23), 1.0), Noise.flips(0.05))
    rows = packed(model.sample(20, rng))
    table, program = (decode(model, rows, solver=solver) for solver in ("table", "program"))
    np.testing.assert_allclose(table.cost, program.cost, rtol=0, atol=1e-8)


def test_a_group_past_24_sensors_goes_to_the_search():
    rng = np.random.default_rng(4)
    model = OrMixture(chain(26), rng.uniform(0.1, 0.3, 25), Noise.flips(0.01))
    rows = packed(model.sample(20, rng))
    found = decode(model, rows)
    assert found.proven.all()
    np.testing.assert_array_equal(found.activity, decode(model, rows, solver="program").activity)
    with pytest.raises(SettingError, match="26 connected sensors"):
        decode(model, rows, solver="table")


def test_equal_rows_and_their_order_change_nothing():
    rng = np.random.default_rng(6)
    model = OrMixture(rng.random((9, 7)) < 0.4, rng.uniform(0.1, 0.5, 7), Noise.flips(0.1))
    rows = model.sample(200, rng)
    shuffled = rng.permutation(200)
    np.testing.assert_array_equal(
        decode(model, packed(rows)).activity[shuffled], decode(model, packed(rows[shuffled])).activity
    )


def test_no_rows_give_no_activities():
    model = OrMixture([[1, 0], [1, 1]], [0.2, 0.3])
    found = decode(model, np.empty((0, 1), np.uint64))
    assert found.activity.shape == (0, 2)
    assert found.cost.shape == (0,)


@pytest.mark.parametrize(("n_sensors", "n_words"), [(2, 2), (90, 1)])
def test_words_of_another_width_are_refused(n_sensors, n_words):
    with pytest.raises(DataError, match=f"a row of {n_sensors} sensors takes"):
        decode(OrMixture(np.ones((n_sensors, 1)), [0.2]), np.zeros((3, n_words), np.uint64))


def test_an_unknown_solver_is_refused():
    with pytest.raises(SettingError, match="'auto', 'table', 'search', 'program', 'zero-error'"):
        decode(OrMixture([[1], [1]], [0.2]), np.zeros((3, 1), np.uint64), solver="guess")
