"""The likelihood surface against brute force and finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from bica.estimate.lattice import NoiseShape, Surface
from bica.kernels.lattice.likelihood import SETTLED, SETTLED_FLOOR
from bica.model.noise import Noise
from tests.estimate.surfaces import cells_of, problems, slope_by_differences
from tests.reference import slow_likelihood

# Central differences of step 1e-6 where every chance is at least 1e-4: the step changes a chance by 1 %, so that the
# third derivative of its log adds (1e-2)^2 / 3 at the very worst; heights below 1e3 add 1e3 * 1e-16 / 1e-6.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@settings(max_examples=60)
@given(problems(noise=st.one_of(st.just(0.0), st.floats(0.001, 0.45)), shapes=["known"]))
def test_the_height_is_the_sum_over_all_that_can_happen(problem):
    expected = slow_likelihood.log_likelihood(problem.rows, problem.weights, problem.sources, *problem.rates)
    assert problem.point.log_likelihood == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=40)
@given(problems(shapes=["shared", "own"]))
def test_unknown_noise_is_noise_like_any_other(problem):
    expected = slow_likelihood.log_likelihood(problem.rows, problem.weights, problem.sources, *problem.rates)
    assert problem.point.log_likelihood == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=50)
@given(problems())
def test_the_slope_towards_every_set_of_sensors_present_or_not(problem):
    surface, point = problem.surface, problem.point

    def height(rate):
        everything = np.append(point.sources, np.arange(rate.size))
        return surface.at(everything, np.append(point.rate, rate), point.noise).log_likelihood

    expected = slope_by_differences(height, np.zeros(2**surface.cells.n_sensors))
    np.testing.assert_allclose(surface.candidate_gradient(point), expected, **CLOSE)
    slope = surface.gradient(point)[: point.sources.size]
    np.testing.assert_allclose(slope, surface.candidate_gradient(point)[point.sources], rtol=1e-8, atol=1e-8)


@settings(max_examples=60)
@given(problems())
def test_the_slope_by_rates_and_noise(problem):
    surface, point = problem.surface, problem.point

    def height(values):
        return surface.at(point.sources, values[: point.rate.size], values[point.rate.size :]).log_likelihood

    expected = slope_by_differences(height, np.concatenate([point.rate, point.noise]))
    np.testing.assert_allclose(surface.gradient(point), expected, **CLOSE)


@settings(max_examples=60)
@given(problems())
def test_the_derivatives_of_every_cell_and_their_sum(problem):
    surface, point = problem.surface, problem.point

    def log_chances(values):
        return np.log(surface.at(point.sources, values[: point.rate.size], values[point.rate.size :]).cell_probability)

    start = np.concatenate([point.rate, point.noise])
    derivatives = surface.derivatives(point)
    expected = slope_by_differences(log_chances, start).reshape(derivatives.shape)
    np.testing.assert_allclose(derivatives, expected, **CLOSE)
    np.testing.assert_allclose(derivatives @ surface.cells.weights, surface.gradient(point), rtol=1e-8, atol=1e-6)


@settings(max_examples=60)
@given(problems(), st.data())
def test_the_gain_of_one_more_source_is_that_of_its_best_probability(problem, data):
    surface, point = problem.surface, problem.point
    candidate = data.draw(st.integers(1, 2**surface.cells.n_sensors - 1))

    def loss(probability):
        sources, rate = np.append(point.sources, candidate), np.append(point.rate, -np.log1p(-probability))
        return point.log_likelihood - surface.at(sources, rate, point.noise).log_likelihood

    (gain,), (probability,) = surface.additions(point, np.array([candidate]))
    best = minimize_scalar(loss, bounds=(0, 0.98), method="bounded", options={"xatol": 1e-9})
    assert gain == pytest.approx(-loss(probability), abs=1e-8)
    # Newton's steps end on a flat top; steps halfway to the cap end as far from it as the last one was long, and there
    # a row gains at most 1 / 0.97 per unit of probability
    off = 1e-5 if probability < 0.97 else (SETTLED + SETTLED_FLOOR) / 0.97 * sum(problem.weights)
    assert gain == pytest.approx(-min(best.fun, loss(0.0)), abs=off)


def test_gaps_are_grouped_and_counted():
    cells = cells_of([(1, None, 0), (0, None, 0), (1, 1, 0), (None, None, None)], [1, 2, 3, 4])
    assert cells.unobserved.tolist() == [0b000, 0b010, 0b111]
    assert cells.starts.tolist() == [0, 1, 3, 4]
    assert cells.n_samples == 10
    assert cells.times_observed().tolist() == [6, 3, 6]


def test_an_impossible_row_is_infinitely_unlikely():
    surface = Surface(cells_of([(1, 0)], [1]), NoiseShape.known(Noise(), 2))
    assert surface.at(np.array([0b11]), np.array([0.5]), np.empty(0)).log_likelihood == -np.inf


@given(problems(noise=st.just(0.1), shapes=["known"], gaps=False))
def test_all_patterns_together_are_certain(problem):
    m = problem.surface.cells.n_sensors
    every = cells_of([tuple(s >> i & 1 for i in range(m)) for s in range(2**m)], [1] * 2**m)
    point = Surface(every, problem.surface.noise).at(problem.point.sources, problem.point.rate, np.empty(0))
    assert point.cell_probability.sum() == pytest.approx(1, abs=1e-12)
