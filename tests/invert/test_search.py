import numpy as np
import pytest

from bica.invert.decode import decode
from bica.invert.groups import groups_of
from bica.invert.solvers import GroupSolver, LatticeTable, solve_by_search
from bica.kernels.bits import packed
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import random_network


@pytest.mark.parametrize("seed", range(60))
def test_the_search_answers_like_the_table_where_ties_abound(seed):
    rng = np.random.default_rng([21, seed])
    n_sensors, n_sources = rng.integers(6, 13), rng.integers(5, 90 if seed % 4 == 0 else 25)
    mixing = rng.random((n_sensors, n_sources)) < rng.uniform(0.1, 0.5)
    probability = rng.choice([0.05, 0.2, 0.5, 0.6, 1.0], n_sources, p=[0.4, 0.4, 0.1, 0.05, 0.05])
    noise = Noise(rng.choice([0.0, 0.05, 0.1], n_sensors), rng.choice([0.0, 0.05, 0.1], n_sensors))
    model = OrMixture(mixing, probability, noise)
    rows = packed(np.vstack([model.sample(30, rng), rng.random((10, n_sensors)) < 0.5]))
    seen = packed(rng.random((40, n_sensors)) < 0.9)
    table, search = (decode(model, rows, seen, solver=solver) for solver in ("table", "search"))
    np.testing.assert_allclose(search.cost, table.cost, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(search.activity, table.activity)
    np.testing.assert_array_equal(search.n_wrong, table.n_wrong)


def test_wide_models_are_proven_and_agree_with_the_integer_program():
    rng = np.random.default_rng(5)
    model = random_network(200, 200, probability=(0.01, 0.1), noise=Noise.flips(0.02), rng=rng)
    rows = packed(model.sample(40, rng))
    found, program = decode(model, rows), decode(model, rows, solver="program")
    assert found.proven.all()
    np.testing.assert_allclose(found.cost, program.cost, rtol=0, atol=1e-7)


def hard_group():
    """Twenty sensors with so much noise and so many sources that no row is settled without branching."""
    rng = np.random.default_rng(6)
    model = random_network(16, 60, probability=(0.05, 0.3), noise=Noise.flips(0.1), rng=rng)
    group = max(groups_of(model), key=lambda group: group.sources.size)
    return group, model.sample(60, rng)[:, group.sensors].view(np.uint8)


def test_a_search_that_is_cut_short_brackets_the_optimum():
    group, cells = hard_group()
    exact = LatticeTable.of(group).solve(cells)
    found = solve_by_search(group, cells, n_nodes=3)
    assert (found.gap > 1e-6).any()
    assert (found.cost >= exact.cost - 1e-8).all()
    assert (found.cost - found.gap <= exact.cost + 1e-8).all()
    done = found.gap == 0
    np.testing.assert_allclose(found.cost[done], exact.cost[done], rtol=0, atol=1e-8)


def test_what_a_short_search_leaves_open_the_table_settles(monkeypatch):
    group, cells = hard_group()
    monkeypatch.setattr("bica.invert.solvers.solve_by_search", lambda g, c: solve_by_search(g, c, n_nodes=3))
    monkeypatch.setattr(GroupSolver, "_table_is_cheaper", lambda *_: False)
    found, exact = GroupSolver(group, "auto").solve(cells), LatticeTable.of(group).solve(cells)
    assert (found.gap == 0).all()
    np.testing.assert_array_equal(found.active, exact.active)


@pytest.mark.slow
def test_more_rows_than_a_thread_takes_at_once_stay_in_order():
    group, cells = hard_group()
    many = np.tile(cells, (12, 1))
    once, often = solve_by_search(group, cells), solve_by_search(group, many)
    np.testing.assert_array_equal(often.active, np.tile(once.active, (12, 1)))


def test_an_impossible_row_is_found_so_without_trying_everything():
    chain = (np.eye(40, dtype=bool) | np.eye(40, k=1, dtype=bool))[:, 1:]
    model = OrMixture(chain, np.full(39, 0.3))
    rows = np.zeros((2, 40), dtype=bool)
    rows[0, 7] = True  # every source switches on two neighbours
    rows[1, [7, 8, 20]] = True
    found = decode(model, packed(rows), nearest=True)
    assert not found.feasible.any()
    assert found.proven.all()
    assert found.n_wrong.tolist() == [1, 1]
    assert [np.flatnonzero(row).tolist() for row in found.activity] == [[], [7]]
