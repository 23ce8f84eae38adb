"""Votes, births and partners: the kernels that propose columns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.estimate.rows.pool import as_columns, as_lists
from bica.kernels.rows.births import accept_columns, closure_areas, find_seeds, grow_columns
from bica.kernels.rows.gains import turned
from bica.kernels.rows.votes import HEARD_SHARE, count_overlaps, count_together, vote_columns
from tests.kernels.rows.row_problems import as_sets, row_problems
from tests.reference import slow_rows


@given(row_problems(max_rows=6), st.data())
@settings(max_examples=100)
def test_votes_follow_the_definition(problem, data):
    n, m = len(problem.columns), problem.n_sensors
    fixed = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    free = data.draw(st.lists(st.floats(0, 1), min_size=m, max_size=m))
    price = 0.5
    left = slow_rows.left(problem.ones, problem.active, problem.columns)
    sources, active = problem.sources(), problem.activity()
    seen = problem.words([set(range(m)) - g for g in problem.gaps])
    found = vote_columns(
        sources.columns, sources.reaching, turned(active, n), np.array(fixed), problem.cells(),
        problem.words(problem.ones), seen, as_lists([tuple(u) for u in left]), np.array(free), np.array(problem.one),
        np.array(problem.zero), price,
    )  # fmt: skip

    def candidates(j, column):
        rows = [t for t, a in enumerate(problem.active) if j in a]
        weight = sum(problem.weights[t] for t in rows)
        hopeful = set()
        for i in set(range(m)) - column:
            count = sum(problem.weights[t] for t in rows if i in left[t])
            zeros = max(0.0, HEARD_SHARE * free[i] * weight - count)
            if count and count * problem.one[i] + zeros * problem.zero[i] > price:
                hopeful.add(i)
        return hopeful

    slow = slow_rows.voted(
        problem.columns, problem.active, problem.ones, problem.gaps, problem.weights, fixed, problem.one, problem.zero,
        price, candidates,
    )  # fmt: skip
    assert as_sets(found) == slow


@given(row_problems(max_sensors=6, max_rows=8), st.integers(1, 3), st.sampled_from([-np.inf, 0.0, 0.5]))
@settings(max_examples=100)
def test_seeds_are_the_most_surprising_partners(problem, n_best, least_surprise):
    m, weights = problem.n_sensors, problem.weights
    left = slow_rows.left(problem.ones, problem.active, problem.columns)
    lists = as_lists([tuple(u) for u in left])
    each = np.array([slow_rows.together(left, weights, k, k) for k in range(m)], float)
    partners, together = find_seeds(
        np.arange(m), lists, turned(lists, m), each, problem.cells(), n_best, least_surprise, 1.0
    )
    for i in range(m):
        both = {k: slow_rows.together(left, weights, i, k) for k in range(m) if k != i}
        scores = {k: slow_rows.surprise(c, each[i], each[k], sum(weights)) for k, c in both.items() if c >= 1}
        best = sorted((z for z in scores.values() if z > least_surprise), reverse=True)[:n_best]
        found = [k for k in partners[i].tolist() if k >= 0]
        assert [scores[k] for k in found] == pytest.approx(best)
        assert together[i, : len(found)].tolist() == [both[k] for k in found]


@given(row_problems(max_sensors=6, max_sources=2, max_rows=8, gaps=False), st.floats(0, 0.3), st.integers(1, 2))
@settings(max_examples=100)
def test_columns_grow_along_the_most_frequent_sensor(problem, miss, least):
    m = problem.n_sensors
    left = slow_rows.left(problem.ones, problem.active, problem.columns)
    lists = as_lists([tuple(u) for u in left])
    seeds = np.array([(i, k) for i in range(m) for k in range(i)], np.int64).reshape(-1, 2)
    columns, areas = grow_columns(
        seeds, problem.words(left), turned(lists, m), problem.cells(), problem.words(problem.ones),
        np.zeros(m), miss, float(least), max(2, m),
    )  # fmt: skip
    for seed, column, area in zip(seeds.tolist(), as_columns(columns), areas.tolist(), strict=True):
        path, total = slow_rows.grown(seed, left, problem.ones, problem.weights, least, max(2, m))
        size = slow_rows.cut(total, miss)
        assert list(column) == path[:size]
        assert area == (total[size - 2] * (size - 1) if size else 0.0)


@given(row_problems(max_rows=8, max_sources=6), st.floats(-5, 5), st.sampled_from([0.5, 0.8, 1.0]))
@settings(max_examples=100)
def test_candidates_are_taken_while_they_pay(problem, price, share):
    left = slow_rows.left(problem.ones, problem.active, problem.columns)
    words, candidates = problem.words(left), problem.columns
    ones_of = turned(as_lists(problem.ones_lists()), problem.n_sensors)
    found = accept_columns(
        as_lists([tuple(c) for c in candidates]), np.full(len(candidates), price), ones_of, problem.cells(),
        problem.words(problem.ones), words, np.array(problem.one), 1.0, share,
    )  # fmt: skip
    explained, unexplained = slow_rows.accepted(
        candidates, [price] * len(candidates), problem.ones, left, problem.weights, problem.one, 1.0, share
    )
    assert found.tolist() == explained
    assert words.tolist() == problem.words(unexplained).tolist()


@given(row_problems(max_rows=6))
def test_areas_of_sets_follow_the_definition(problem):
    left = slow_rows.left(problem.ones, problem.active, problem.columns)
    areas = closure_areas(
        problem.words(problem.columns), problem.words(problem.ones), problem.words(left), np.array(problem.weights)
    )
    assert areas.tolist() == [slow_rows.area(c, problem.ones, left, problem.weights) for c in problem.columns]


@given(row_problems(max_rows=8, max_sources=6), st.floats(-1, 2), st.sampled_from([0.0, 0.3, 0.7]))
@settings(max_examples=100)
def test_sources_that_are_on_together_too_often_are_found(problem, surprise, share):
    n, weights, active = len(problem.columns), problem.weights, problem.activity()
    n_on = [slow_rows.together(problem.active, weights, j, j) for j in range(n)]
    pairs, counts = count_together(
        np.arange(n), active, turned(active, n), np.array(weights), np.array(n_on, float), surprise, 1.0, share
    )
    expected = {}
    for j in range(n):
        for k in set(range(n)) - {j}:
            both = slow_rows.together(problem.active, weights, j, k)
            if (
                both >= max(1.0, share * n_on[j])
                and slow_rows.surprise(both, n_on[j], n_on[k], sum(weights)) > surprise
            ):
                expected[j, k] = both
    assert dict(zip(map(tuple, pairs.tolist()), counts.tolist(), strict=True)) == expected


@given(row_problems(max_sources=6), st.sampled_from([0.0, 0.5, 0.9]))
def test_overlapping_columns_are_found(problem, share):
    sources = problem.sources()
    pairs, shares = count_overlaps(sources.columns, sources.reaching, share)
    columns = [set(c) for c in as_columns(sources.columns)]
    expected = {
        (j, k): len(columns[j] & columns[k]) / min(len(columns[j]), len(columns[k]))
        for k in range(len(columns))
        for j in range(k)
    }
    found = dict(zip(map(tuple, pairs.tolist()), shares.tolist(), strict=True))
    assert found == {pair: part for pair, part in expected.items() if part > share and part > 0}
