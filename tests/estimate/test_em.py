"""EM: never downhill, zeros stay, it rests where the slope is zero; accelerated, it is faster."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.estimate.lattice import BetaPrior, NoiseShape, em_step
from bica.estimate.whole import own_rates, two_rates
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.estimate.surfaces import problems, surface_of

ROUNDING = 1e-9  # of a height below 1e3
any_noise = st.floats(0.001, 0.4)
TRUTH = OrMixture([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]], [0.3, 0.2, 0.1], Noise.flips(0.05))
SOURCES = np.array([0b0011, 0b0101, 0b1100])
ALL_FREE = np.ones(3, dtype=bool)
SHAPES = {
    "known": (NoiseShape.known(Noise.flips(0.05), 4), np.empty(0)),
    "shared": (NoiseShape.shared_flips(4, 1e-6), np.array([0.2])),
    "two": (replace(two_rates(4, 1e-6), pull=0.0), np.full(2, 0.2)),
    "own": (replace(own_rates(4, 1e-6), pull=0.0), np.full(8, 0.2)),
}


@settings(max_examples=100)
@given(problems(noise=any_noise), st.floats(1, 9), st.floats(1, 9), st.data())
def test_a_step_never_goes_down_and_leaves_given_rates_alone(problem, alpha, beta, data):
    point, prior = problem.point, BetaPrior(alpha, beta)
    free = np.array([data.draw(st.booleans()) for _ in point.rate], dtype=bool)
    better = em_step(problem.surface, point, free, alpha, beta)
    before, after = (p.log_likelihood + prior.log_density(p.rate[free]) for p in (point, better))
    assert after >= before - ROUNDING
    assert better.rate[~free].tolist() == point.rate[~free].tolist()


@given(problems(noise=any_noise, min_sources=1))
def test_zeros_stay_zero(problem):
    rate = problem.point.rate.copy()
    rate[0] = 0.0
    point = problem.surface.at(problem.point.sources, rate, problem.point.noise)
    assert em_step(problem.surface, point, np.ones(rate.size, dtype=bool)).rate[0] == 0.0


@settings(max_examples=60)
@given(problems(min_sources=1))
def test_a_step_rests_exactly_where_the_slope_is_zero(problem):
    """It moves every probability by p slope / T, and a flip rate e by e (1 - e) slope / cells."""
    point, surface = problem.point, problem.surface
    slope = surface.gradient(point)[: point.rate.size]
    moved = em_step(surface, point, np.ones(point.rate.size, dtype=bool)).probability - point.probability
    expected = point.probability * slope / surface.cells.n_samples
    np.testing.assert_allclose(moved, np.clip(expected, -1, 1 - 1e-7 - point.probability), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_many_steps_end_where_the_slope_is_zero(shape):
    surface = surface_of(TRUTH, 500, SHAPES[shape][0])
    point = surface.at(SOURCES, np.full(3, 0.2), SHAPES[shape][1])
    for _ in range(20_000 if shape in ("two", "own") else 3000):  # the steps are shorter there
        point = em_step(surface, point, ALL_FREE)
    inside = np.append(ALL_FREE, point.noise > 1e-3)  # a flip rate may creep towards 0 for ever
    assert np.abs(surface.gradient(point)[inside]).max() < 1e-3  # of slopes of some hundred at the start
