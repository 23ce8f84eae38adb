"""Who may share a source with whom: all pairs tested at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, hypergeom

from bica.data.pairs import PairCounts
from bica.data.patterns import PatternCounts
from bica.estimate.blocks.learner import FALSE_LINKS, Links
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture


def edges(links):
    return {(i, k) for i, near in enumerate(links.neighbours) for k in near.tolist()}


def related_rows(seed, n_sensors, n_rows):
    """Some columns share a source, most do not."""
    rng = np.random.default_rng(seed)
    shared = rng.random((n_rows, n_sensors // 3)) < 0.3
    rows = rng.random((n_rows, n_sensors)) < rng.uniform(0.05, 0.6, n_sensors)
    rows[:, : shared.shape[1]] |= shared
    rows[:, shared.shape[1] : 2 * shared.shape[1]] |= shared & (rng.random(shared.shape) < 0.6)
    return rows


@given(
    st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([2, 20, 60, 300]), st.sampled_from([0.05, 0.2, 0.001])
)
@settings(max_examples=40)
def test_links_are_those_of_benjamini_and_hochberg(seed, n_sensors, n_rows, level):
    rows = related_rows(seed, n_sensors, n_rows)
    on, both = rows.sum(axis=0), rows.T.astype(int) @ rows
    pairs = [(i, k) for i in range(n_sensors) for k in range(i)]
    tails = [hypergeom.sf(both[i, k] - 1, n_rows, on[i], on[k]) for i, k in pairs]
    adjusted = false_discovery_control(np.minimum(tails, 1.0)) if pairs else []
    wanted = {pair for pair, p in zip(pairs, adjusted, strict=True) if p <= level}
    found = edges(Links.of(PairCounts.of(PatternCounts.of(rows)), level))
    assert found == wanted | {(k, i) for i, k in wanted}


def test_neighbours_stand_by_falling_strength():
    rng = np.random.default_rng(0)
    source = rng.random(2000) < 0.3
    kept = [source & (rng.random(2000) < share) for share in (1.0, 0.4, 0.9, 0.6)]
    links = Links.of(PairCounts.of(PatternCounts.of(np.column_stack(kept))))
    assert links.neighbours[0].tolist() == [2, 3, 1]


def test_the_share_of_false_links_is_what_was_said():
    """Seven groups of three linked sensors, each pair surely found: 21 true links, the rest of 210 pairs unrelated."""
    truth = OrMixture(np.kron(np.eye(7), np.ones((3, 1))), np.full(7, 0.3), Noise.flips(0.05))
    true_links = {(i, k) for i in range(21) for k in range(21) if i != k and i // 3 == k // 3}
    false, n_tables = [], 40
    for seed in range(n_tables):
        found = edges(Links.of(PairCounts.of(PatternCounts.of(truth.sample(400, np.random.default_rng(seed))))))
        assert found >= true_links
        false.append(len(found - true_links) / len(found))
    assert np.mean(false) < FALSE_LINKS + 4 * np.std(false, ddof=1) / np.sqrt(n_tables)
    assert np.mean(false) > 0.005  # a level at which no link is false would miss weak ones


@pytest.mark.parametrize("rows", [np.zeros((3, 0)), np.eye(2), np.array([[0, 1, 0]])], ids=["none", "two", "one row"])
def test_tables_too_small_for_links(rows):
    data = PatternCounts(np.zeros((1, 1), np.uint64), np.ones(1), ()) if not rows.size else PatternCounts.of(rows)
    assert edges(Links.of(PairCounts.of(data))) == set()


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(tuple), max_size=4))
def test_joining_links_all_sensors_of_a_column(columns):
    before = Links((np.array([3]), *(np.empty(0, np.int64) for _ in range(2)), np.array([0]), *[np.empty(0, int)] * 2))
    after = before.joined(columns)
    assert edges(after) == edges(before) | {(i, k) for c in columns for i in c for k in c if i != k}
    assert all(
        np.array_equal(near[: old.size], old) for near, old in zip(after.neighbours, before.neighbours, strict=True)
    )
    assert all(len(set(near.tolist())) == near.size for near in after.neighbours)
    assert after.sets() == [frozenset(near.tolist()) for near in after.neighbours]
    assert (after is before) == (edges(after) == edges(before))
