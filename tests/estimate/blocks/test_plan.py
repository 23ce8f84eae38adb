"""Blocks: every set of linked sensors is decided somewhere, or said to be open."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.estimate.blocks.learner import LARGEST, WHOLE, Block, Links, Plan


def links_of(n_sensors, pairs):
    near = [[] for _ in range(n_sensors)]
    for i, k in pairs:
        near[i].append(k)
        near[k].append(i)
    return Links(tuple(np.array(others, np.int64) for others in near))


@st.composite
def graphs(draw):
    """Sparse, dense, with hubs: sensors of any number of neighbours."""
    n_sensors = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    share = draw(st.sampled_from([0.05, 0.2, 0.4, 0.7, 1.0]))
    hubs = rng.random(n_sensors) < draw(st.sampled_from([0.0, 0.3]))
    pairs = [
        (i, k) for i, k in combinations(range(n_sensors), 2) if rng.random() < (0.9 if hubs[i] or hubs[k] else share)
    ]
    rng.shuffle(pairs)  # the order of the neighbours is that of their strength
    return links_of(n_sensors, [tuple(pair) for pair in pairs])


def cliques_of(links, rng):
    """Every sensor, every pair, and some larger sets of which all two are linked, grown at random."""
    near = links.sets()
    yield from ((i,) for i in range(len(near)))
    yield from ((i, k) for i in range(len(near)) for k in near[i] if i < k)
    for _ in range(60):
        clique, open_to = [int(rng.integers(len(near)))], None
        while rng.random() < 0.8:
            open_to = sorted(set.intersection(*(set(near[i]) for i in clique)))
            if not open_to:
                break
            clique.append(int(rng.choice(open_to)))
        yield tuple(sorted(clique))


@given(graphs())
@settings(max_examples=40)
def test_every_clique_is_decided_or_open(links):
    plan = Plan.of(links)
    by_sensor = {i: [block for block in plan.blocks if block.sensors[0] == i] for i in range(len(links.neighbours))}
    for clique in cliques_of(links, np.random.default_rng(0)):
        decided = any(block.decides(clique) for i in clique for block in by_sensor[i])
        is_open = any(set(some) <= set(clique) for some in plan.open_sets)
        alone = len(clique) == 1 and clique[0] in plan.crowded
        assert decided or is_open or alone, clique


@given(graphs())
@settings(max_examples=40)
def test_blocks_are_small_and_hold_what_can_join_their_anchor(links):
    plan, near = Plan.of(links), links.sets()
    anchors = [frozenset(block.sensors[: block.n_anchor].tolist()) for block in plan.blocks]
    assert len(set(anchors)) == len(anchors)
    for block, anchor in zip(plan.blocks, anchors, strict=True):
        sensors = block.sensors.tolist()
        assert len(set(sensors)) == len(sensors) <= LARGEST
        assert all(k in near[i] for i, k in combinations(anchor, 2))
        assert set.intersection(*(set(near[i]) for i in anchor)) <= set(sensors)
    assert plan.crowded == tuple(i for i, others in enumerate(links.neighbours) if others.size >= WHOLE)
    for some in plan.open_sets:
        common = set.intersection(*(set(near[i]) for i in some))
        assert len(some) + len(common) > LARGEST


@given(graphs())
@settings(max_examples=20)
def test_the_plan_is_the_same_every_time(links):
    def written(plan):
        return [(b.sensors.tolist(), b.n_anchor, b.lone) for b in plan.blocks], plan.crowded, plan.open_sets

    assert written(Plan.of(links)) == written(Plan.of(Links(tuple(near.copy() for near in links.neighbours))))


def test_a_block_around_a_pair_is_filled_up_with_the_strongest_others():
    """Two hubs without a common neighbour: a source of both is told from others by what else they reach."""
    pairs = [(0, 1), *((0, k) for k in range(2, 12)), *((1, k) for k in range(12, 22))]
    plan = Plan.of(links_of(22, pairs))
    (of_both,) = [block for block in plan.blocks if block.n_anchor == 2]
    assert of_both.sensors.tolist() == [0, 1, 2, 12, 3, 13, 4]


@pytest.mark.parametrize(
    ("n_anchor", "lone", "column", "decided"),
    [
        (1, False, (4,), True),
        (1, False, (2, 4, 9), True),
        (1, False, (2, 9), False),  # not the anchor
        (1, False, (4, 5), False),  # a sensor outside
        (2, False, (4, 9), True),
        (2, False, (4,), False),
        (1, True, (4,), True),
        (1, True, (4, 9), False),  # only a source of its own is looked for
    ],
)
def test_what_a_block_decides(n_anchor, lone, column, decided):
    assert Block(np.array([4, 9, 2]), n_anchor, lone).decides(column) is decided
