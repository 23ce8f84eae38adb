import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from bica.kernels.rivals.factors import (
    assign,
    best_quiet_probability,
    best_sets,
    improve_quiet,
    noise_weights,
    quiet_probabilities,
)
from bica.rivals.mac import assignment_sets
from tests.reference import slow_assignment


class Case:
    """A small random problem in the shapes of the kernels."""

    def __init__(self, seed, n_rows=4, n_sensors=3, n_sources=3, max_assign=2):
        rng = np.random.default_rng(seed)
        self.cells = rng.integers(0, 2, (n_rows, n_sensors)).astype(np.uint8)
        self.weights = rng.uniform(0.5, 3, n_rows)
        self.quiet_one = rng.uniform(0.05, 0.95, (n_sources, n_sensors))
        self.noise = (float(rng.uniform(0.01, 0.3)), float(rng.uniform(0.01, 0.3)))
        self.temperature = float(rng.uniform(0.3, 3))
        self.sets = slow_assignment.sets_of(n_sources, max_assign)
        self.without = assignment_sets(n_sources, max_assign)
        self.quiet = np.empty((n_sensors, len(self.sets)))
        quiet_probabilities(self.quiet_one, self.without, self.quiet)
        self.ones, self.total = np.empty(self.quiet.shape), np.empty(len(self.sets))

    def assign(self):
        return assign(self.cells, self.weights, self.quiet, self.noise, self.temperature, self.ones, self.total)

    def expected(self, quiet_one=None, noise=None):
        quiet_one = self.quiet_one if quiet_one is None else quiet_one
        return slow_assignment.expected_log_chance(quiet_one, self.sets, self.ones, self.total, noise or self.noise)


cases = st.builds(
    Case, st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)
)


@given(cases)
@settings(max_examples=50)
def test_quiet_chances_are_products(case):
    expected = [[slow_assignment.quiet(case.quiet_one, s, j) for s in case.sets] for j in range(case.cells.shape[1])]
    np.testing.assert_allclose(case.quiet, expected, rtol=1e-12)


@given(cases)
@settings(max_examples=50)
def test_rows_are_spread_as_the_definition_says(case):
    energy = case.assign()
    slow = slow_assignment.free_energy(
        case.cells, case.weights, case.quiet_one, case.sets, case.noise, case.temperature
    )
    np.testing.assert_allclose(energy, slow, rtol=1e-9, atol=1e-12)
    share = np.array(
        [
            slow_assignment.shares(row, case.quiet_one, case.sets, case.noise, case.temperature)
            for row in case.cells.tolist()
        ]
    )
    np.testing.assert_allclose(case.total, case.weights @ share, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(case.ones, (case.cells * case.weights[:, None]).T @ share, rtol=1e-9, atol=1e-14)


@given(cases)
@settings(max_examples=40)
def test_every_quiet_chance_stands_where_the_slope_is_zero_or_at_an_end(case):
    case.assign()
    k, j = case.quiet_one.shape[0] - 1, 0
    members = np.flatnonzero(case.without[k] >= 0)
    others, on = case.quiet[j, case.without[k, members]], case.ones[j, members]
    best = best_quiet_probability(others, on, case.total[members] - on, case.noise, 0.5)

    def value(x):
        changed = case.quiet_one.copy()
        changed[k, j] = x[0]
        return case.expected(changed)

    slope = approx_fprime([best], value, 1e-7)[0]
    scale = case.weights.sum() / min(case.noise) ** 2  # bounds the second derivative, so rounding times it is nothing
    if best == 0:
        assert slope <= 1e-5 * scale
    elif best == 1:
        assert approx_fprime([1 - 1e-7], value, 1e-7)[0] >= -1e-5 * scale
    else:
        assert abs(slope) < 1e-5 * scale


@given(cases)
@settings(max_examples=40)
def test_the_free_energy_never_rises_at_one_temperature(case):
    energy = case.assign()
    for _ in range(6):
        improve_quiet(case.quiet_one, case.without, case.ones, case.total, case.noise, case.quiet)
        weights = noise_weights(case.quiet, case.ones, case.total, case.noise)
        case.noise = tuple(w / (case.weights.sum() * case.cells.shape[1]) for w in weights)
        after = case.assign()
        assert after <= energy + 1e-8 * abs(energy) + 1e-9
        energy = after


@given(cases)
@settings(max_examples=40)
def test_the_noise_step_never_lowers_the_expected_log_chance(case):
    case.assign()
    alarms, misses = noise_weights(case.quiet, case.ones, case.total, case.noise)
    n_cells = case.weights.sum() * case.cells.shape[1]
    assert case.expected(noise=(alarms / n_cells, misses / n_cells)) >= case.expected() - 1e-9


@given(cases)
@settings(max_examples=40)
def test_the_best_set_has_the_lowest_risk(case):
    chosen = np.empty(len(case.cells), np.int64)
    best_sets(case.cells, case.quiet, case.noise, chosen)
    for row, number in zip(case.cells.tolist(), chosen, strict=True):
        risks = [slow_assignment.risk(row, case.quiet_one, s, case.noise) for s in case.sets]
        assert risks[number] <= min(risks) + 1e-6
