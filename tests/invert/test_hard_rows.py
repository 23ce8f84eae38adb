"""Rows that a short search leaves open: stronger bounds, then the integer program."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.errors import SettingError
from bica.invert import solvers
from bica.invert.decode import decode
from bica.invert.groups import groups_of
from bica.invert.solvers import GroupSolver, _grain, _network, solve_by_program, solve_by_search
from bica.kernels.bits import packed, unpacked
from bica.kernels.decoding.relaxation import solve_hard_rows
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import pooling_design
from tests.reference import slow_decoding


def largest_group(model):
    return max(groups_of(model), key=lambda group: group.sources.size)


def solved_hard(group, cells, grain=None, n_nodes=20_000):
    """What the strong search finds, asked directly."""
    active = np.zeros((len(cells), -(-group.sources.size // 64)), np.uint64)
    cost, gap = np.empty(len(cells)), np.empty(len(cells))
    grain = _grain(group) if grain is None else grain
    solve_hard_rows(_network(group), group.penalty, np.ascontiguousarray(cells), grain, n_nodes, active, cost, gap)
    return active, cost, gap


@st.composite
def small_models(draw):
    """Up to five sensors and seven sources; costs are often equal, so that there is a grain, and rates often zero."""
    n_sensors, n_sources = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    cells = st.lists(st.booleans(), min_size=n_sensors, max_size=n_sensors)
    columns = draw(st.lists(cells.filter(any), min_size=n_sources, max_size=n_sources))
    rates = st.sampled_from([0.0, 0.01, 0.05, 0.2])
    equal = draw(st.booleans())
    probability = (
        [0.01] * n_sources if equal else draw(st.lists(st.floats(0.02, 0.9), min_size=n_sources, max_size=n_sources))
    )
    noise = Noise(*(draw(st.just(0.01) if equal else rates) for _ in range(2)))
    rows = draw(
        st.lists(st.lists(st.sampled_from([0, 1, 2]), min_size=n_sensors, max_size=n_sensors), min_size=1, max_size=4)
    )
    return OrMixture(np.array(columns).T, probability, noise), np.array(rows, np.uint8)


@settings(max_examples=60)
@given(small_models())
def test_the_strong_search_finds_the_least_cost(given_model):
    model, rows = given_model
    false_alarm, miss = (rates.tolist() for rates in model.noise.rates(model.n_sensors))
    for shown in rows:
        row = [None if cell == 2 else bool(cell) for cell in shown.tolist()]
        least, _ = slow_decoding.best(model.mixing.tolist(), model.probability.tolist(), false_alarm, miss, row)
        total = -np.log1p(-model.probability).sum()
        for group in groups_of(model):
            active, cost, gap = solved_hard(group, shown[None, group.sensors])
            assert gap[0] == 0
            np.testing.assert_allclose(group.solution(active, shown[None, group.sensors]).cost, cost, atol=1e-9)
            total += cost[0]
        assert total == pytest.approx(least, abs=1e-8)


def test_a_strong_search_that_is_cut_short_brackets_the_optimum():
    rng = np.random.default_rng(3)
    model = pooling_design(24, 96, 4, probability=(0.03, 0.06), noise=Noise.flips(0.03), rng=rng)
    group, cells = largest_group(model), model.sample(40, rng).view(np.uint8)
    _, exact, _ = solved_hard(group, cells)
    _, cost, gap = solved_hard(group, cells, n_nodes=2)
    assert (gap > 1e-6).any()
    assert (cost >= exact - 1e-8).all()
    assert (cost - gap <= exact + 1e-8).all()


@pytest.mark.parametrize("flip_rate", [0.0, 0.01, 0.02])
def test_pooling_designs_are_decoded_as_by_the_integer_program(flip_rate):
    rng = np.random.default_rng([14, int(100 * flip_rate)])
    size = (48, 384, 6) if flip_rate == 0 else (36, 180, 6)  # with noise, HiGHS takes a minute for the larger one
    model = pooling_design(*size, noise=Noise.flips(flip_rate) if flip_rate else None, rng=rng)
    rows = model.sample(60, rng)
    rows = packed(rows[np.argsort(-rows.sum(axis=1))[:6]])  # the hardest ones have many positive pools
    found, program = decode(model, rows), decode(model, rows, solver="program")
    assert found.proven.all()
    np.testing.assert_allclose(found.cost, program.cost, rtol=0, atol=1e-6)


class TestGrain:
    def test_equal_costs_are_their_own_grain(self):
        group = largest_group(pooling_design(noise=Noise.flips(0.01), rng=np.random.default_rng(0)))
        assert _grain(group) == pytest.approx(np.log(99))

    def test_without_noise_only_the_sources_count(self):
        group = largest_group(pooling_design(rng=np.random.default_rng(0)))
        assert _grain(group) == pytest.approx(np.log(99))

    def test_costs_without_a_common_measure_have_none(self):
        assert _grain(largest_group(pooling_design(noise=Noise.flips(0.02), rng=np.random.default_rng(0)))) == 0
        assert _grain(largest_group(pooling_design(probability=(0.01, 0.02), rng=np.random.default_rng(0)))) == 0


class TestProgram:
    """What the search leaves open is tried by the integer program, within a time."""

    def left_open(self):
        rng = np.random.default_rng(4)
        model = pooling_design(30, 120, 5, probability=(0.03, 0.03), noise=Noise.flips(0.02), rng=rng)
        rows = model.sample(80, rng)
        rows = rows[np.argsort(-rows.sum(axis=1))[16:24]]
        return largest_group(model), np.ascontiguousarray(rows.view(np.uint8))

    def test_it_settles_rows_that_were_cut_short(self, monkeypatch):
        group, cells = self.left_open()
        short = solve_by_search(group, cells, n_nodes=1)
        monkeypatch.setattr(solvers, "solve_by_search", lambda *_: solve_by_search(group, cells, n_nodes=1))
        found = GroupSolver(group, "auto").solve(cells)
        assert (short.gap > 0).any()
        assert (found.gap == 0).all()
        np.testing.assert_allclose(found.cost, solve_by_search(group, cells).cost, atol=1e-6)

    def test_without_time_the_search_stands_and_is_marked(self, monkeypatch):
        group, cells = self.left_open()
        short = solve_by_search(group, cells, n_nodes=1)
        monkeypatch.setattr(solvers, "solve_by_search", lambda *_: solve_by_search(group, cells, n_nodes=1))
        monkeypatch.setattr(solvers, "PROGRAMS_IN_ALL", 0.0)
        found = GroupSolver(group, "auto").solve(cells)
        np.testing.assert_array_equal(found.active, short.active)
        np.testing.assert_array_equal(found.gap, short.gap)

    def test_a_program_that_is_not_finished_leaves_a_gap_around_the_optimum(self):
        group, cells = self.left_open()
        exact, hasty = solve_by_search(group, cells), solve_by_program(group, cells, seconds=0.02)
        assert (hasty.gap > 0).any()
        known = np.isfinite(hasty.gap)
        assert (hasty.cost >= exact.cost - 1e-6).all()
        assert (hasty.cost[known] - hasty.gap[known] <= exact.cost[known] + 1e-6).all()


def test_a_pooling_design_is_balanced():
    model = pooling_design(32, 30, 4, probability=(0.1, 0.2), rng=np.random.default_rng(0))
    assert model.n_sources == 30
    assert (model.mixing.sum(axis=0) == 4).all()
    assert set(model.mixing.sum(axis=1).tolist()) == {3, 4}
    assert (model.mixing.reshape(4, 8, 30).sum(axis=1) == 1).all()
    assert ((model.probability >= 0.1) & (model.probability <= 0.2)).all()
    with pytest.raises(SettingError, match="cannot be split into 5 equal groups"):
        pooling_design(12, 30, 5, rng=np.random.default_rng(0))


def test_carriers_are_found_where_pools_never_err():
    rng = np.random.default_rng(8)
    model = pooling_design(rng=rng)
    activity = model.draw_activity(200, rng)
    few = activity[activity.sum(axis=1) <= 3]
    found = decode(model, packed(model.observe(few)))
    same = (unpacked(found.active, model.n_sources) == few).all(axis=1)
    assert same.mean() > 0.9  # nearly every set of at most three carriers has pools of its own
