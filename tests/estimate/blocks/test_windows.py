"""A last look through windows finds what blocks and rows missed among crowded sensors."""

import itertools

import networkx
import numpy as np
import pytest

from bica import BICA
from bica.data.patterns import PatternCounts
from bica.estimate.blocks import learn
from bica.estimate.blocks.learner import Links
from bica.estimate.blocks.rounds import LARGEST_WINDOW, looked_through, windows_of


def links_of(n_sensors, chance, seed):
    near = np.triu(np.random.default_rng(seed).random((n_sensors, n_sensors)) < chance, 1)
    near |= near.T
    return Links(tuple(np.flatnonzero(row) for row in near))


class TestWindows:
    @pytest.mark.parametrize("seed", range(10))
    def test_every_sensor_asked_for_is_inside_with_all_its_neighbours(self, seed):
        links = links_of(90, 0.05 + 0.05 * seed, seed)
        asked = range(0, 90, 2)
        windows = windows_of(links, asked)
        for sensor in asked:
            hood = {sensor, *links.neighbours[sensor].tolist()}
            holding = [window for window in windows if sensor in window.inner]
            assert bool(holding) == (len(hood) <= LARGEST_WINDOW)
            assert all(hood <= set(window.sensors.tolist()) for window in holding)
        assert all(window.sensors.size <= LARGEST_WINDOW for window in windows)

    def test_nobody_asked(self):
        assert windows_of(links_of(5, 0.5, 0), []) == []


def network(seed):
    """80 shortest paths between 16 nodes of a network that grew by preferring busy nodes: each link is a source."""
    rng = np.random.default_rng(500 + seed)
    graph = networkx.barabasi_albert_graph(64, 2, seed=seed)
    ends = rng.choice(64, 16, replace=False).tolist()
    pairs = [(one, other) for k, one in enumerate(ends) for other in ends[k + 1 :]]
    paths = [networkx.shortest_path(graph, *pairs[k]) for k in rng.permutation(len(pairs))[:80]]
    links = sorted({tuple(sorted(link)) for path in paths for link in itertools.pairwise(path)})
    reached = {tuple({*link} in [{*step} for step in itertools.pairwise(path)] for path in paths) for link in links}
    mixing = np.array(sorted(reached)).T
    on = rng.random((4000, mixing.shape[1])) < rng.uniform(0.02, 0.12, mixing.shape[1])
    return on @ mixing.T > 0, mixing


def n_wrong(rows, mixing):
    found = BICA(edges="sure", noise="estimate", random_state=0).fit(rows).model_.mixing
    return len({tuple(column) for column in found.T.tolist()} ^ {tuple(column) for column in mixing.T.tolist()})


@pytest.mark.slow
def test_they_find_what_blocks_and_rows_missed_in_a_network(monkeypatch):
    table = network(5)
    assert n_wrong(*table) == 0
    monkeypatch.setattr(learn, "looked_through", lambda _learner, _settings, now, _asked, _rng: now)
    assert n_wrong(*table) > 0


@pytest.mark.slow
def test_the_answer_does_not_depend_on_threads(monkeypatch):
    looked = []
    monkeypatch.setattr(learn, "looked_through", lambda *given: looked.append(1) or looked_through(*given))
    counts = PatternCounts.of(network(5)[0])
    one, two = (BICA(edges="sure", n_jobs=n, random_state=0).fit(counts).model_ for n in (1, 2))
    assert len(looked) == 2
    assert (one.mixing == two.mixing).all()
    assert (one.probability == two.probability).all()
