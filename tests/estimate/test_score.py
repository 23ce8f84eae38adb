"""Refitting rates and noise for given sources: as high as EM, at rest at the top, inside the bounds."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bica.estimate.lattice import HIGHEST_RATE, BetaPrior, NoiseShape, Pace, Refit, Surface, em_step, refit
from bica.estimate.score import Found, Scale, cost_by_size, is_neighbour, is_union
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.estimate.surfaces import cells_of, problems, slope_by_differences, surface_of
from tests.estimate.test_em import SHAPES, SOURCES, TRUTH

FLAT = BetaPrior()
EXACT = {"pace": Pace(tolerance=1e-9), "exact": True}


def all_free(point):
    return np.ones(point.rate.size, dtype=bool)


def start_on(surface, sources, noise):
    return surface.at(np.array(sources), np.full(len(sources), 0.2), noise)


@pytest.mark.parametrize("prior", [FLAT, BetaPrior(3, 30)], ids=["flat", "beta"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_it_is_as_high_as_a_long_run_of_em(shape, prior, seed):
    surface = surface_of(TRUTH, 300, SHAPES[shape][0], seed)
    start = point = start_on(surface, [*SOURCES, 0b0001, 0b1111], SHAPES[shape][1])
    for _ in range(500):
        point = em_step(surface, point, all_free(start), prior.alpha, prior.beta)
    found = refit(surface, start, all_free(start), prior, **EXACT)
    kept = np.isin(start.sources, found.point.sources)
    height = point.log_likelihood + prior.log_density(point.rate[kept])
    assert found.objective >= height - 1e-6
    assert found.objective == pytest.approx(found.point.log_likelihood + prior.log_density(found.point.rate))


@settings(max_examples=60)
@given(problems(noise=st.floats(0.001, 0.39)), st.floats(1, 9), st.data())
def test_it_never_ends_below_its_start_and_stays_inside_the_bounds(problem, beta, data):
    point, prior = problem.point, BetaPrior(2.0, beta)  # no source leaves: the prior rules out a probability of 0
    free = np.array([data.draw(st.booleans()) for _ in point.rate], dtype=bool)
    needed = data.draw(st.sampled_from([-np.inf, point.log_likelihood, np.inf]))
    found = refit(problem.surface, point, free, prior, needed=needed)
    pull = problem.surface.noise.pull * np.log1p(-point.noise).sum()
    assert found.objective >= point.log_likelihood + pull + prior.log_density(point.rate[free]) - 1e-9
    assert found.point.rate[~free].tolist() == point.rate[~free].tolist()
    assert ((found.point.rate > 0) & (found.point.rate <= HIGHEST_RATE)).all()
    noise, shape = found.point.noise, problem.surface.noise
    assert ((noise >= shape.lowest) & (noise <= shape.highest)).all()


@settings(max_examples=60, phases=[Phase.generate])
@given(problems(noise=st.floats(0.01, 0.39), min_sources=1))
def test_at_the_end_no_rate_wants_to_move_into_its_bounds(problem):
    """Karush, Kuhn and Tucker: slope 0 inside, not positive at the lower bound or for those that left."""
    surface, start = problem.surface, problem.point
    found = refit(surface, start, all_free(start), FLAT, pace=Pace(tolerance=1e-10, most_steps=1000))
    point = found.point
    slope = surface.gradient(point)
    slope[point.rate.size :] -= surface.noise.pull / (1 - point.noise)
    value = np.concatenate([point.rate, point.noise])
    lowest = np.concatenate([np.zeros(point.rate.size), np.full(point.noise.size, surface.noise.lowest)])
    highest = np.concatenate([np.full(point.rate.size, HIGHEST_RATE), surface.noise.highest])
    # a climb ends where a step promises less than 1e-10 = slope^2 / curvature; the curvature is at most some 1e4 rows
    assert (slope[value < highest - 1e-6] < 1e-2).all()
    assert (slope[value > lowest + 1e-6] > -1e-2).all()
    left = ~np.isin(start.sources, point.sources)
    assert (surface.candidate_gradient(point)[start.sources[left]] < 1e-2).all()
    assert found.objective >= start.log_likelihood + surface.noise.pull * np.log1p(-start.noise).sum() - 1e-9


def test_a_source_that_is_not_there_leaves():
    surface = surface_of(TRUTH, 2000, SHAPES["shared"][0])
    start = start_on(surface, [*SOURCES, 0b0110], np.array([0.1]))
    found = refit(surface, start, all_free(start), FLAT)
    assert found.point.sources.tolist() == SOURCES.tolist()
    assert found.free.all()
    assert len(found.information) == 4


def test_a_source_overshot_to_zero_on_the_way_comes_back():
    surface = surface_of(TRUTH, 300, SHAPES["shared"][0], seed=2)  # the first long step sends a true source to 0
    start = start_on(surface, [*SOURCES, 0b0001, 0b1111], np.array([0.2]))
    assert 0b1100 in refit(surface, start, all_free(start), FLAT).point.sources


def test_given_rates_stay_and_the_others_adapt():
    surface = surface_of(TRUTH, 2000, SHAPES["known"][0])
    start = surface.at(SOURCES, np.array([0.2, 0.0, 0.5]), np.empty(0))
    found = refit(surface, start, np.array([True, False, False]), FLAT, **EXACT)
    assert found.point.rate[1:].tolist() == [0.0, 0.5]  # also one that is never on: it was said to be there
    assert found.point.rate[0] != 0.2
    assert surface.gradient(found.point)[0] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (3, 1), (1, 5), (2.5, 40)])
def test_a_prior_counts_as_rows_seen_before(alpha, beta):
    surface = Surface(cells_of([(1,), (0,)], [7, 13]), NoiseShape.known(Noise(), 1))
    start = surface.at(np.array([1]), np.array([0.2]), np.empty(0))
    found = refit(surface, start, np.array([True]), BetaPrior(alpha, beta), **EXACT)
    # a climb ends where a step promises less than 1e-9, the curvature (at least 20 rows) times the step squared
    assert found.point.probability[0] == pytest.approx((7 + alpha - 1) / (20 + alpha + beta - 2), abs=1e-5)


@pytest.mark.parametrize("prior", [BetaPrior(3, 1), BetaPrior(1, 7), BetaPrior(2.5, 40)], ids=str)
def test_the_prior_is_a_distribution_and_its_derivatives_are_right(prior):
    rate = np.linspace(1e-4, 12, 20_001)
    density = np.exp([prior.log_density(np.array([w])) for w in rate]) * np.exp(-rate)  # dp = exp(-rate) drate
    assert np.trapezoid(density, rate) == pytest.approx(1, abs=1e-2)
    some = np.array([0.1, 0.7])
    np.testing.assert_allclose(prior.slope(some), slope_by_differences(prior.log_density, some), rtol=1e-6)
    bend = -np.diag(slope_by_differences(prior.slope, some))
    np.testing.assert_allclose(prior.curvature(some), bend, rtol=1e-6)


def test_a_hopeless_climb_is_given_up_where_it_started():
    surface = surface_of(TRUTH, 500, SHAPES["shared"][0])
    start = start_on(surface, SOURCES, np.array([0.2]))
    top = refit(surface, start, all_free(start), FLAT).objective
    given_up = refit(surface, start, all_free(start), FLAT, needed=top + 1e6)
    assert given_up.point.log_likelihood == start.log_likelihood < top
    assert refit(surface, start, all_free(start), FLAT, needed=top - 1).objective == top


def test_the_information_tells_the_spread_of_estimates():
    truth = OrMixture([[1, 0], [1, 1], [0, 1]], [0.3, 0.2], Noise.flips(0.05))
    sources, errors, found = np.array([0b011, 0b110]), [], []
    for seed in range(60):
        surface = surface_of(truth, 500, NoiseShape.shared_flips(3, 1e-6), seed)
        start = start_on(surface, sources, np.array([0.1]))
        fit = refit(surface, start, all_free(start), FLAT, **EXACT)
        errors.append(np.sqrt(np.diag(np.linalg.inv(fit.information))))
        found.append(np.append(fit.point.rate, fit.point.noise))
    # the spread of 60 normal numbers is known within 4 / sqrt(2 * 60) = 37 %
    np.testing.assert_allclose(np.std(found, axis=0, ddof=1) / np.mean(errors, axis=0), 1, atol=0.37)


sets = st.lists(st.integers(1, 63), max_size=6, unique=True)


@given(sets, sets)
def test_unions_and_neighbours_are_what_they_say(sources, others):
    pairs = {a | b for a in others for b in others if a | b not in (a, b)}
    given_sources, given_others = np.array(sources, np.int64), np.array(others, np.int64)
    assert is_union(given_sources, given_others).tolist() == [source in pairs for source in sources]
    apart = [any((source ^ other).bit_count() == 1 for other in others) for source in sources]
    assert is_neighbour(given_sources, given_others).tolist() == apart


class TestRelatives:
    """Thirty sensors, so that a source of eight is dear."""

    scale = Scale(None, 1000, of_larger_table=cost_by_size(30, 1000, 30))
    narrow, wide = 0b1111, 0b11110000
    union = narrow | wide

    def found(self, *sources, objective=0.0):
        point = SimpleNamespace(sources=np.array(sources, np.int64))
        return Found(Refit(point, None, objective, None), 0.0, 0.0)

    def test_they_cost_the_log_of_how_many_there_are(self):
        rate, others = self.scale.cost[0], np.array([self.narrow, self.wide, 1 << 20])
        union, more, stranger = self.scale.cost_of(np.array([self.union, self.union << 1, self.union << 9]), others)
        assert union == pytest.approx(rate + np.log(3))
        assert more == stranger == self.scale.cost[8]
        (neighbour,) = self.scale.cost_of(np.array([self.union | 1 << 25]), np.array([self.union]))
        assert neighbour == pytest.approx(rate + np.log(30))
        assert self.scale.cost_of(np.array([0b11]), np.array([0b01, 0b10]))[0] <= self.scale.cost[2]

    def test_an_added_source_pays_beside_those_that_are_there(self):
        before = self.found(self.narrow, self.wide)
        after = self.found(self.narrow, self.wide, self.union, objective=10.0)
        assert self.scale.advantage(after, before) == pytest.approx(10 - self.scale.cost[0] - np.log(1))
        assert self.scale.advantage(before, after) == -self.scale.advantage(after, before)

    def test_no_source_pays_for_itself_by_making_others_cheaper(self):
        before, after = self.found(self.union, self.wide), self.found(self.union, self.wide, self.narrow)
        assert self.scale.advantage(after, before) == -self.scale.cost[4]
