"""Sweeps, counts and small fits of lossy sources against their definition."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.estimate.rows.lossy_state import LossyState, LossyTable, counted, swept
from bica.estimate.rows.pool import RowTable, as_columns, as_lists
from bica.kernels.bits import packed
from bica.kernels.rows.decoding import mixed, uniform
from bica.kernels.rows.gains import RowCells, turned
from bica.kernels.rows.lossy import LEAST_LOG_ODDS, source_information
from bica.kernels.rows.lossy_local import (
    LEAST_REACH,
    LITTLE,
    MOST_REACH,
    NEGLIGIBLE,
    Local,
    count_absent,
    fit_one,
    fit_two,
    left_together,
    local_rows,
    profile_of,
    put_in,
    take_out,
)
from tests.reference import slow_lossy_rows as slow

SEED = np.uint64(12345)
rates, weights = st.floats(0.05, 0.9), st.floats(0.5, 3)


@dataclass(frozen=True)
class LossyProblem:
    rows: list  # of cells 0, 1 or None
    weights: list
    active: list
    probability: list
    reach: list
    leak: list

    @property
    def numbers(self):
        return self.probability, self.reach, self.leak

    def state(self):
        """Only rows with a cell to list are in the table, so the strategy draws no others."""
        ones = as_lists([[i for i, cell in enumerate(row) if cell] for row in self.rows])
        gaps = as_lists([[i for i, cell in enumerate(row) if cell is None] for row in self.rows])
        m = len(self.leak)
        words = packed(np.array([[cell == 1 for cell in row] for row in self.rows], np.uint8))
        table = RowTable(m, RowCells(ones, gaps, np.array(self.weights)), words, words, turned(ones, m))
        lossy = LossyTable.of(table)
        state = LossyState.asleep(lossy, np.array(self.probability), np.array(self.reach), np.array(self.leak))
        active = as_lists([sorted(on) for on in self.active])
        return LossyState(
            lossy, state.probability, state.reach, state.leak, active, state.quiet, state.n_on, state.worth
        ).refreshed()

    def places(self):
        """Row and sensor of every listed cell."""
        return [(t, i) for t, row in enumerate(self.rows) for i, cell in enumerate(row) if cell != 0]

    def quiet(self, active):
        """Of every listed cell under an activity; 0 where it was not observed."""
        return [
            0.0 if self.rows[t][i] is None else slow.quiet(i, active[t], self.reach, self.leak)
            for t, i in self.places()
        ]


@st.composite
def lossy_problems(draw, max_sensors=4, max_sources=3, max_rows=4, gaps=True):
    m, n = draw(st.integers(1, max_sensors)), draw(st.integers(1, max_sources))
    cells = st.sampled_from([0, 1, None] if gaps else [0, 1])
    row = st.lists(cells, min_size=m, max_size=m).filter(lambda row: any(cell != 0 for cell in row))
    rows = draw(st.lists(row, min_size=1, max_size=max_rows))
    edge = st.one_of(st.just(0.0), rates)
    return LossyProblem(
        rows,
        [draw(weights) for _ in rows],
        [draw(st.sets(st.integers(0, n - 1))) for _ in rows],
        [draw(st.floats(0.02, 0.8)) for _ in range(n)],
        [draw(st.lists(edge, min_size=m, max_size=m)) for _ in range(n)],
        [draw(st.floats(0.01, 0.5)) for _ in range(m)],
    )


class TestSweep:
    @given(lossy_problems())
    @settings(max_examples=200, deadline=None)
    def test_draws_follow_the_conditional_probabilities(self, problem):
        state, sums = swept(problem.state(), SEED)
        n = len(problem.probability)
        expected, looked_at, log_joint, entropy = np.zeros(n), np.zeros(n), 0.0, 0.0
        for t, (row, weight) in enumerate(zip(problem.rows, problem.weights, strict=True)):
            stream = np.uint64(mixed(SEED + np.uint64(t)))
            now, drawn = slow.sweep(
                row, problem.active[t], *problem.numbers, LEAST_LOG_ODDS, lambda k, stream=stream: uniform(stream, k)
            )
            assert set(as_columns(state.active)[t]) == now
            for j, p in drawn.items():
                expected[j] += weight * p
                looked_at[j] += weight
                entropy -= weight * (p * np.log(p) + (1 - p) * np.log1p(-p))
            log_joint += weight * slow.log_joint(row, now, *problem.numbers)
        np.testing.assert_allclose(sums.expected, expected, rtol=1e-9)
        np.testing.assert_allclose(sums.looked_at, looked_at)
        assert sums.entropy == pytest.approx(entropy, rel=1e-6, abs=1e-3)  # sure draws are left out
        np.testing.assert_allclose(state.quiet, problem.quiet(as_columns(state.active)), rtol=1e-9)
        # what the sweep leaves to its caller: the zeros under the leaks alone, and that every source is off
        off = np.log1p(-np.array(problem.probability)).sum() * sum(problem.weights)
        zeros = sum(
            weight * np.log1p(-problem.leak[i])
            for row, weight in zip(problem.rows, problem.weights, strict=True)
            for i, cell in enumerate(row)
            if cell == 0
        )
        assert sums.log_joint + off + zeros == pytest.approx(log_joint, rel=1e-9, abs=1e-9)

    @given(lossy_problems())
    @settings(max_examples=200, deadline=None)
    def test_counts_of_the_m_step_follow_the_definition(self, problem):
        state, sums = swept(problem.state(), SEED)
        counts, _ = counted(state, sums)
        active, n, m = as_columns(state.active), len(problem.probability), len(problem.leak)
        log_likelihood = sums.entropy
        n_on, fired, worth, alone = np.zeros(n), np.zeros((n, m)), np.zeros((n, m)), np.zeros(m)
        for row, weight, on in zip(problem.rows, problem.weights, active, strict=True):
            log_likelihood += weight * slow.log_joint(row, on, *problem.numbers)
            for j in range(n):
                missed = 0.0
                if j not in slow.candidates(row, *problem.numbers, LEAST_LOG_ODDS):  # as in a row of zeros
                    missed = 1 / (1 + np.exp(-slow.log_odds(j, [0] * m, set(), *problem.numbers)))
                log_likelihood -= weight * np.log1p(-missed)  # log(1 - p + p prod f) in place of log(1 - p)
                n_on[j] += weight * ((j in on) + missed)
                for i in (i for i in range(m) if problem.reach[j][i] > 0):
                    worth[j, i] += weight * missed * np.log(1 - problem.reach[j][i])
                    if j in on and row[i] is not None:
                        worth[j, i] += weight * slow.edge_worth(
                            j, i, row[i], on, problem.reach, problem.leak, problem.reach[j][i]
                        )
                        fired[j, i] += weight * (slow.worked(j, i, on, problem.reach, problem.leak) if row[i] else 0.0)
                    elif j in on:  # not observed: as likely to have worked as ever
                        fired[j, i] += weight * problem.reach[j][i]
            for i, cell in enumerate(row):
                alone[i] += weight * slow.by_itself(i, on, problem.reach, problem.leak) if cell else 0.0
        np.testing.assert_allclose(counts.n_on, n_on, rtol=1e-9)
        np.testing.assert_allclose(counts.worked, fired, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(counts.worth, worth, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(counts.by_itself, alone, rtol=1e-9)
        assert counts.log_likelihood == pytest.approx(log_likelihood, rel=1e-9, abs=1e-9)


@st.composite
def local_problems(draw, n_sources):
    """Rows over a background, with at least one cell that is not 0, and sources to begin with."""
    k = draw(st.integers(2, 4))
    cell = st.one_of(st.none(), st.floats(0.0, 0.95))
    row = st.lists(cell, min_size=k, max_size=k).filter(lambda row: any(c is not None for c in row))
    cells = draw(st.lists(row, min_size=1, max_size=5))
    row_weights = [draw(weights) for _ in cells]
    probability = [draw(st.floats(0.05, 0.6)) for _ in range(n_sources)]
    reach = [draw(st.lists(st.floats(0.1, 0.9), min_size=k, max_size=k)) for _ in range(n_sources)]
    return cells, row_weights, sum(row_weights) + draw(st.floats(1.0, 20.0)), probability, reach


def local_of(cells, row_weights):
    """The rows as the kernels take them."""
    lengths = [sum(c is not None for c in row) for row in cells]
    sensor = [i for row in cells for i, c in enumerate(row) if c is not None]
    quiet = [c for row in cells for c in row if c is not None]
    start = np.concatenate([[0], np.cumsum(lengths)])
    places = np.arange(len(quiet))
    return Local(
        np.arange(len(cells)), np.array(row_weights), start, places, np.array(sensor, np.int32), np.array(quiet, float)
    )


def slow_fit(problem, n_steps, bar=-np.inf):
    """EM steps from the definition, with the bounds of the kernels; None where a posterior is too small to compare."""
    cells, row_weights, total, probability, reach = problem
    for step in range(n_steps + 1):
        new_p, new_reach, gain, posterior, worth = slow.em_step(cells, row_weights, total, probability, reach)
        if any(0 < p < 2 * NEGLIGIBLE for row in posterior for p in row):
            return None
        if step < n_steps:
            lowest = bar if step >= n_steps // 2 else -np.inf
            probability = [min(p, 0.9) for p in new_p]
            reach = [
                [0.0 if q < LEAST_REACH or w < lowest else min(q, MOST_REACH) for q, w in zip(*pair, strict=True)]
                for pair in zip(new_reach, worth, strict=True)
            ]
    return gain, probability, reach, np.array(posterior).T, worth


class TestLocalFits:
    @given(local_problems(1), st.integers(0, 3))
    @settings(max_examples=150, deadline=None)
    def test_one_source_takes_the_steps_of_the_definition(self, problem, n_steps):
        found = slow_fit(problem, n_steps)
        if found is None:
            return
        cells, row_weights, total, probability, reach = problem
        values, posterior, worth = np.array(reach[0]), np.empty(len(cells)), np.empty(len(reach[0]))
        gain, p, n_on = fit_one(local_of(cells, row_weights), total, probability[0], values, n_steps, posterior, worth)
        assert (gain, p) == pytest.approx((found[0], found[1][0]), rel=1e-7, abs=1e-9)
        np.testing.assert_allclose(values, found[2][0], rtol=1e-7)
        np.testing.assert_allclose(posterior, found[3][0], rtol=1e-7)
        kept = values > 0
        np.testing.assert_allclose(worth[kept], np.array(found[4][0])[kept], rtol=1e-6, atol=1e-9)
        silent = p * np.prod(1 - values) / (1 - p + p * np.prod(1 - values))
        assert n_on == pytest.approx(posterior @ row_weights + (total - sum(row_weights)) * silent)

    @given(local_problems(2), st.integers(0, 3), st.sampled_from([-np.inf, 0.0, 0.3]))
    @settings(max_examples=150, deadline=None)
    def test_two_sources_take_the_steps_of_the_definition(self, problem, n_steps, bar):
        found = slow_fit(problem, n_steps, bar)
        if found is None:
            return
        cells, row_weights, total, probability, reach = problem
        p, values, posterior = np.array(probability), np.array(reach), np.empty((2, len(cells)))
        gain = fit_two(local_of(cells, row_weights), total, p, values, n_steps, bar, posterior)
        # a configuration below NEGLIGIBLE does not count for the edges, so each step may be that far off; of a source
        # that is hardly ever on, that is much of its probability, but as little of the rows
        off = 4 * NEGLIGIBLE * n_steps * len(cells)
        assert gain == pytest.approx(found[0], rel=1e-7 + off, abs=1e-9 + off * sum(row_weights))
        np.testing.assert_allclose(p, found[1], atol=1e-7 + off)
        np.testing.assert_allclose(posterior, found[3], atol=1e-7 + off)


class TestPlacing:
    @given(lossy_problems(), st.data())
    @settings(max_examples=100, deadline=None)
    def test_a_source_taken_out_and_put_in_leaves_what_the_definition_says(self, problem, data):
        state, n, m = problem.state(), len(problem.probability), len(problem.leak)
        support = np.array(sorted(data.draw(st.sets(st.integers(0, m - 1), min_size=1))))
        source = data.draw(st.integers(0, n - 1))
        table, count = state.table, np.zeros(len(problem.rows), np.int32)
        local = local_rows(support, table.rows_of, table.place_of, table.cells.weights, state.quiet, count)
        assert not count.any()
        touched = [t for t, row in enumerate(problem.rows) if any(row[i] != 0 for i in support)]
        assert sorted(local.rows.tolist()) == touched
        take_out(local, np.array([source in on for on in problem.active]), np.array(problem.reach)[source, support])
        without = problem.quiet([set(on) - {source} for on in problem.active])
        np.testing.assert_allclose(local.quiet, np.array(without)[local.cell], rtol=1e-9)
        places = problem.places()
        rows_of_cells = np.repeat(local.rows, np.diff(local.start))
        assert [places[at] for at in local.cell] == list(zip(rows_of_cells, support[local.sensor], strict=True))
        is_on = np.array([data.draw(st.booleans()) for _ in local.rows])
        quiet = state.quiet.copy()
        put_in(local, is_on[None], np.array(problem.reach)[source, support][None], quiet)
        on = dict(zip(local.rows.tolist(), is_on.tolist(), strict=True))
        for at, (t, i) in enumerate(places):
            if i in support:
                now = set(problem.active[t]) - {source} | ({source} if on[t] else set())
                expected = 0.0 if problem.rows[t][i] is None else slow.quiet(i, now, problem.reach, problem.leak)
            else:
                expected = state.quiet[at]
            assert quiet[at] == pytest.approx(expected, rel=1e-9)


class TestSeeds:
    @given(lossy_problems(max_rows=6))
    @settings(max_examples=100, deadline=None)
    def test_pairs_and_profiles_add_up_what_is_left_to_the_leaks(self, problem):
        state, m = problem.state(), len(problem.leak)
        table, cells = state.table, state.table.cells
        left = cells.heard * state.leak[cells.ones.items] / (1 - state.quiet)
        both = left_together(np.arange(m), table.rows_of, table.place_of, cells, left)
        rows = list(zip(problem.rows, problem.weights, problem.active, strict=True))

        def alone(row, i, on):
            return slow.by_itself(i, on, problem.reach, problem.leak) if row[i] else 0.0

        for i in range(m):
            for k in range(m):
                pairs = [(w, alone(row, i, on), alone(row, k, on)) for row, w, on in rows]
                expected = sum(w * a * b for w, a, b in pairs if a >= LITTLE) if i != k else 0.0
                assert both[i, k] == pytest.approx(expected)
                if i == k:
                    continue
                profile, usual = np.empty(m), np.linspace(0.1, 0.3, m)
                total = profile_of(i, k, table.rows_of, table.place_of, cells, state.quiet, state.leak, usual, profile)
                assert total == pytest.approx(sum(w * a * b for w, a, b in pairs))
                for s in range(m):
                    share = [usual[s] if row[s] is None else row[s] for row, _, _ in rows]
                    expected = sum(w * a * b * x for (w, a, b), x in zip(pairs, share, strict=True))
                    assert profile[s] == pytest.approx(expected, abs=1e-12)

    @given(lossy_problems(max_rows=5), st.data())
    @settings(max_examples=100, deadline=None)
    def test_absent_edges_are_valued_where_the_source_is_on(self, problem, data):
        state, m = problem.state(), len(problem.leak)
        table, count = state.table, np.zeros(len(problem.rows), np.int32)
        local = local_rows(np.arange(m), table.rows_of, table.place_of, table.cells.weights, state.quiet, count)
        posterior = np.array([data.draw(st.floats(0.01, 1)) for _ in local.rows])
        n_ones, worth = np.zeros(m), np.zeros(m)
        count_absent(local, posterior, table.cells, state.quiet, n_ones, worth)
        for i in range(m):
            ones = [
                (p * problem.weights[t], problem.rows[t][i], problem.active[t])
                for p, t in zip(posterior, local.rows.tolist(), strict=True)
                if problem.rows[t][i] != 0
            ]
            assert n_ones[i] == pytest.approx(sum(w for w, _, _ in ones))
            gain = 0.0
            for w, cell, on in ones:
                quiet = 0.0 if cell is None else slow.quiet(i, on, problem.reach, problem.leak)
                gain += w * np.log((1 - 0.75 * quiet) / (1 - quiet))
            assert worth[i] == pytest.approx(gain, abs=1e-12)


class TestInformation:
    @given(lossy_problems(max_sensors=3, max_rows=3), st.data())
    @settings(max_examples=100, deadline=None)
    def test_products_of_scores_match_differences_of_the_log_probability(self, problem, data):
        state, n = problem.state(), len(problem.probability)
        source = data.draw(st.integers(0, n - 1))
        support = np.flatnonzero(state.reach[source])
        draws = [[data.draw(st.sets(st.integers(0, n - 1))) for _ in problem.rows] for _ in range(2)]
        scores = np.array(
            [
                [slow.score(row, source, on, *problem.numbers) for row, on in zip(problem.rows, draw, strict=True)]
                for draw in draws
            ]
        )
        size = 1 + 2 * support.size
        squares, products, slope = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
        place = np.full(len(problem.leak), -1, np.int32)
        place[support] = np.arange(support.size)
        is_on = np.array([[source in on for on in draw] for draw in draws])
        source_information(
            np.arange(len(problem.rows)), is_on, np.array([problem.quiet(draw) for draw in draws]), state.table.cells,
            place, problem.probability[source], 1 - state.reach[source, support], state.leak[support], squares,
            products, slope,
        )  # fmt: skip
        w = np.array(problem.weights)
        np.testing.assert_allclose(slope, np.einsum("t,dta->a", w, scores), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(squares, np.einsum("t,dta,dtb->ab", w, scores, scores), rtol=1e-4, atol=1e-3)
        every = scores.sum(axis=0)
        np.testing.assert_allclose(products, np.einsum("t,ta,tb->ab", w, every, every), rtol=1e-4, atol=1e-3)
