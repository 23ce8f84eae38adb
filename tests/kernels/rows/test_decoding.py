import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.kernels.rows.decoding import decode_rows, sweep_rows
from bica.kernels.rows.gains import Lists, cover_rows, gain_of_rows
from tests.kernels.rows.row_problems import RowProblem, as_sets, row_problems
from tests.reference import slow_rows

NOTHING = Lists(np.zeros(1, np.int64), np.empty(0, np.int32))


def decoded(problem, warm=False):
    before = problem.activity() if warm else NOTHING
    return decode_rows(problem.rows(), problem.cells(), problem.sources(), -np.inf, before, warm)


@given(row_problems(), st.booleans())
@settings(max_examples=100)
def test_decoding_ends_where_no_single_switch_helps(problem, warm):
    found = decoded(problem, warm)
    for t, active in enumerate(as_sets(found.active)):
        row = problem.of_row(t)
        value = slow_rows.gain(active, *row)
        assert found.gain[t] == pytest.approx(value, abs=1e-9)
        assert value <= slow_rows.best_gain(*row) + 1e-9
        touched = {j for j, c in enumerate(problem.columns) if c & problem.ones[t] or problem.log_odds[j] > 0}
        for j in touched | active:
            assert slow_rows.gain(active ^ {j}, *row) <= value + 1e-8


@given(row_problems())
@settings(max_examples=100)
def test_the_loss_of_a_source_is_reached_by_an_activity_without_it(problem):
    found = decoded(problem)
    for t, active in enumerate(as_sets(found.active)):
        losses = found.loss[found.active.start[t] : found.active.start[t + 1]]
        sources = found.active.items[found.active.start[t] : found.active.start[t + 1]]
        assert set(sources.tolist()) == active
        for j, loss in zip(sources.tolist(), losses.tolist(), strict=True):
            best = slow_rows.best_gain(*problem.of_row(t), without=j)
            assert loss >= -1e-8
            assert found.gain[t] - loss <= best + 1e-8


@given(row_problems(max_sources=2))
@settings(max_examples=100)
def test_decoding_two_sources_is_exact(problem):
    found = decoded(problem)
    for t in range(len(problem.ones)):
        assert found.gain[t] == pytest.approx(slow_rows.best_gain(*problem.of_row(t)), abs=1e-8)


@given(row_problems(), st.data())
def test_a_source_that_must_not_be_on_is_not(problem, data):
    j = data.draw(st.integers(0, len(problem.columns) - 1))
    sources = problem.sources()
    sources.log_odds[j] = -np.inf
    found = decode_rows(problem.rows(), problem.cells(), sources, -np.inf, problem.activity(), True)
    assert j not in found.active.items


@given(row_problems())
def test_coverage_follows_the_definition(problem):
    columns, active = problem.sources().columns, problem.activity()
    found = cover_rows(problem.rows(), problem.cells(), columns, active, problem.n_sensors)
    assert as_sets(found.unexplained) == slow_rows.left(problem.ones, problem.active, problem.columns)
    for shown, counts in ((True, found.ones), (False, found.zeros)):
        slow = slow_rows.covered_counts(
            problem.ones, problem.gaps, problem.weights, problem.active, problem.columns, problem.n_sensors, shown
        )
        assert counts.tolist() == slow
    gains = gain_of_rows(problem.rows(), problem.cells(), problem.sources(), active)
    for t, a in enumerate(problem.active):
        assert gains[t] == pytest.approx(slow_rows.gain(a, *problem.of_row(t)), abs=1e-9)


class TestSweeps:
    """Many copies of the same row are independent chains: their shares must be the exact chances."""

    ONES, GAPS, COPIES = {0, 1, 2}, {4}, 20_000
    COLUMNS = ({0, 1}, {1, 2, 3}, {0, 1, 2}, {2, 4})
    LOG_ODDS = (-1.0, -2.0, -1.5, -2.5)
    RATE = [float(np.log(0.8 / 0.2))] * 5

    def swept(self, start, n_sweeps):
        problem = RowProblem(
            5, [self.ONES] * self.COPIES, [self.GAPS] * self.COPIES, [1.0] * self.COPIES, self.COLUMNS,
            [start] * self.COPIES, self.LOG_ODDS, self.RATE, [-r for r in self.RATE],
        )  # fmt: skip
        rows, cells, sources, active = problem.rows(), problem.cells(), problem.sources(), problem.activity()
        for step in range(n_sweeps):
            sweep = sweep_rows(rows, cells, sources, -np.inf, active, np.uint64(step * 10**9))
            active = sweep.active
        return sweep

    @pytest.mark.parametrize("start", [set(), {0, 1}, {2, 3}], ids=str)
    def test_shares_are_the_exact_chances(self, start):
        exact = np.array(
            slow_rows.chances(self.ONES, self.GAPS, self.COLUMNS, self.LOG_ODDS, self.RATE, [-r for r in self.RATE])
        )
        sweep = self.swept(start, 40)  # neighbours stick together: far more than the chain remembers
        shares = np.bincount(sweep.active.items, minlength=4) / self.COPIES
        tolerance = 5 * np.sqrt(exact * (1 - exact) / self.COPIES)
        assert (np.abs(shares - exact) < tolerance).all()
        assert (np.abs(sweep.expected / self.COPIES - exact) < tolerance).all()  # averaged chances vary less than draws

    def test_covered_cells_are_those_of_the_new_activity(self):
        sweep = self.swept({0}, 2)
        active = as_sets(sweep.active)
        for shown, counts in ((True, sweep.covered_ones), (False, sweep.covered_zeros)):
            slow = slow_rows.covered_counts(
                [self.ONES] * self.COPIES,
                [self.GAPS] * self.COPIES,
                [1.0] * self.COPIES,
                active,
                self.COLUMNS,
                5,
                shown,
            )
            assert counts.tolist() == slow
