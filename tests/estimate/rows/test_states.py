"""The surface on rows: the heights, slopes and gains of the lattice, which is exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.estimate.lattice import BetaPrior, NoiseShape, Pace, refit
from bica.estimate.rows.states import CAREFUL, PROBED, QUICK, RowSurface, StateCells, first_shape, row_task
from bica.estimate.search import Start
from bica.estimate.settings import Settings, Varying
from bica.kernels.rows.states import Limits, StateRows
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.estimate.surfaces import problems, slope_by_differences, surface_of

EXACT = Limits(0.0, 1.0, 1 << 12, 1 << 20)


def on_rows(problem, limits=EXACT):
    """The same rows and noise, without the lattice."""
    table = np.array([[np.nan if cell is None else cell for cell in row] for row in problem.rows], float)
    data = PatternCounts.of(table, sample_weight=np.array(problem.weights, float))
    return RowSurface(StateCells.of(data), problem.surface.noise, limits)


def same_point(problem, surface):
    return surface.at(problem.point.sources, problem.point.rate, problem.point.noise)


@given(problems())
def test_heights_and_slopes_are_those_of_the_lattice(problem):
    surface = on_rows(problem)
    point = same_point(problem, surface)
    assert point.log_likelihood == pytest.approx(problem.point.log_likelihood)
    assert surface.gradient(point) == pytest.approx(problem.surface.gradient(problem.point), abs=1e-2, rel=1e-6)
    assert surface.cells.times_observed() == pytest.approx(problem.surface.cells.times_observed())


@given(problems(min_sources=1))
@settings(max_examples=30)
def test_slopes_by_differences(problem):
    surface = on_rows(problem)
    n = problem.point.rate.size

    def height(numbers):
        return surface.at(problem.point.sources, numbers[:n], numbers[n:]).log_likelihood

    start = np.concatenate([problem.point.rate, problem.point.noise])
    slope = surface.gradient(same_point(problem, surface))
    assert slope == pytest.approx(slope_by_differences(height, start), abs=1e-2, rel=1e-4)


@given(problems(), st.data())
def test_gains_are_those_of_the_lattice(problem, data):
    candidates = np.array(data.draw(st.lists(st.integers(1, 2**problem.surface.cells.n_sensors - 1), min_size=1)))
    surface = on_rows(problem)
    gain, _ = surface.additions(same_point(problem, surface), candidates)
    exact, _ = problem.surface.additions(problem.point, candidates)
    assert gain == pytest.approx(np.maximum(exact, 0.0), abs=2e-3 * sum(problem.weights))


def overlapping():
    """Eight sources on nine sensors, unions among them."""
    sets = [(0, 1, 2), (2, 3, 4), (4, 5, 6), (6, 7, 8), (0, 1, 2, 3, 4), (4, 5, 6, 7, 8), (1, 4, 7), (3,)]
    mixing = np.zeros((9, len(sets)), dtype=bool)
    for number, sensors in enumerate(sets):
        mixing[list(sensors), number] = True
    return OrMixture(mixing, np.linspace(0.03, 0.15, len(sets)), Noise.flips(0.03))


@pytest.mark.parametrize(("limits", "allowance"), [(QUICK, 10.0), (CAREFUL, 0.5)], ids=["quick", "careful"])
def test_limits_cost_little(limits, allowance):
    truth = overlapping()
    exact = surface_of(truth, 4000, NoiseShape.shared_flips(9, 1e-6))
    rows = RowSurface(
        StateCells.of(PatternCounts.of(truth.sample(4000, np.random.default_rng(1)))), exact.noise, limits
    )
    sources, start = (1 << np.arange(9)) @ truth.mixing, (truth.rate, np.array([0.03]))
    here, there = exact.at(sources, *start), rows.at(sources, *start)
    assert -allowance < there.log_likelihood - here.log_likelihood < 0
    free, pace = np.ones(sources.size, dtype=bool), Pace(tolerance=0.01, tries=4)
    best, found = (refit(s, p, free, BetaPrior(), pace=pace).point for s, p in ((exact, here), (rows, there)))
    error = np.sqrt(truth.probability / 4000)
    assert (np.abs(best.probability - found.probability) < 0.2 * error).all()
    assert abs(best.noise[0] - found.noise[0]) < 0.03 * best.noise[0]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 5))
def test_a_thinned_table_has_every_so_many_th_row(weights, every):
    patterns = np.arange(1, len(weights) + 1, dtype=np.uint64)
    rows = np.repeat(patterns, weights)
    table = StateCells(
        StateRows(patterns, np.full(patterns.size, 31, np.uint64)), np.array(weights, float), 5, rows.size
    )
    thinned = table.thinned(every)
    assert np.repeat(thinned.rows.patterns, thinned.weights.astype(int)).tolist() == rows[every - 1 :: every].tolist()
    assert thinned.n_samples == rows.size // every


def test_a_part_of_the_rows_shows_that_all_have_far_too_many_states():
    rng = np.random.default_rng(3)
    truth = OrMixture(rng.random((20, 20)) < 0.2, np.full(20, 0.3), Noise.flips(0.05))
    data = PatternCounts.of(truth.sample(2000, rng))
    table, settings = Varying.of(data, (), ()), Settings()
    assert data.weights.size > PROBED**2  # with fewer, all are looked at
    sources = (np.int64(1) << np.arange(20)) @ truth.mixing.astype(np.int64)
    start = Start(sources, -np.log1p(-truth.probability), np.ones(20, dtype=bool), np.array([0.05]))
    shape = first_shape(table, settings)
    all_rows = RowSurface(StateCells.of(data), shape, QUICK)
    all_states = all_rows.at(start.sources, start.rate, start.noise).states.starts[-1]
    for share, is_possible in ((0.25, False), (1.5, True)):
        found = row_task(table, settings, start, shape, QUICK, most_states=share * all_states)
        assert (found is not None) == is_possible
