"""The compiled search of a few sensors: its score by the slow likelihood, its tops, what it must leave alone."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.estimate import score
from bica.estimate.lattice import NoiseShape, Surface
from bica.estimate.score import Scale, cost_by_size
from bica.estimate.search import BY_SLOPE, SearchTask, SourceSearch, Start
from bica.kernels.lattice.block_climb import BlockRows, cell_probabilities, climb, empty_tables, profiled_flip_rate
from bica.kernels.lattice.block_search import BlockChannel, SetRules, search_block
from bica.kernels.lattice.likelihood import CellGroups
from bica.kernels.lattice.subsets import channel_matrices
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.estimate.surfaces import cells_of, problems, slope_by_differences, surface_of
from tests.reference import slow_likelihood

NOTHING = np.empty(0, np.int64), np.empty(0), np.zeros(0, dtype=bool)


@dataclass(frozen=True)
class Found:
    sources: np.ndarray
    rate: np.ndarray
    score: float
    information: np.ndarray

    @property
    def pairs(self):
        return list(zip(self.sources.tolist(), (-np.expm1(-self.rate)).tolist(), strict=True))


def block_of(surface):
    cells = surface.cells
    return BlockRows(CellGroups(cells.unobserved, cells.starts, cells.cells), cells.weights)


def searched(surface, noise=None, start=NOTHING, allowed=None):
    """Search with the usual cost; ``noise`` are rates for a surface on which they are unknown."""
    matrices = surface.noise.matrices(np.empty(0) if noise is None else noise)
    n_sensors = surface.cells.n_sensors
    allowed = np.arange(2**n_sensors) > 0 if allowed is None else allowed
    channel = BlockChannel(matrices, matrices.transpose(0, 2, 1).copy())
    size = np.bitwise_count(np.arange(allowed.size)).astype(np.int64)
    return Found(*search_block(*start, block_of(surface), channel, SetRules(allowed, size, usual_cost(surface)[size])))


def usual_cost(surface):
    return cost_by_size(surface.cells.n_sensors, surface.cells.n_samples, surface.cells.n_sensors)


def slow_score(problem, found, n_known=0):
    """From the definition; at most the four sensors and few sources of a small problem."""
    height = slow_likelihood.log_likelihood(problem.rows, problem.weights, found.pairs, *problem.rates)
    cost = usual_cost(problem.surface)
    return height - sum(cost[source.bit_count()] for source in found.sources[n_known:].tolist())


known_noise = problems(shapes=("known",))


@given(known_noise)
@settings(max_examples=50)
def test_the_height_is_the_log_likelihood(problem):
    matrices, point = problem.surface.noise.matrices(np.empty(0)), problem.point
    tables = empty_tables(len(matrices), point.cell_probability.size)
    height = cell_probabilities(point.sources, point.rate, block_of(problem.surface), matrices, tables)
    slow = slow_likelihood.log_likelihood(problem.rows, problem.weights, problem.sources, *problem.rates)
    np.testing.assert_allclose(height, slow, rtol=1e-9, atol=1e-9)


@given(known_noise)
@settings(max_examples=50)
def test_a_climb_never_ends_lower(problem):
    point, matrices = problem.point, problem.surface.noise.matrices(np.empty(0))
    free = np.zeros(point.sources.size, dtype=bool)
    rate, height, _ = climb(point.sources, point.rate, free, block_of(problem.surface), matrices, -np.inf)
    assert (rate >= 0).all()
    assert height >= point.log_likelihood - 1e-9
    np.testing.assert_allclose(height, problem.surface.at(point.sources, rate, np.empty(0)).log_likelihood, rtol=1e-9)


CHAIN = OrMixture(np.eye(5) + np.eye(5, k=1), [0.3, 0.2, 0.25, 0.1, 0.15], Noise.flips(0.05))


@pytest.mark.parametrize("seed", range(5))
def test_the_top_is_level(seed):
    """A climb ends where a scoring step would gain less than a thousandth: slope^2 <= 0.001 x information."""
    surface = surface_of(CHAIN, 5000, NoiseShape.known(CHAIN.noise, 5), seed)
    sources = CHAIN.mixing.T @ (1 << np.arange(5))
    rate, _, information = climb(
        sources, np.full(5, 0.5), np.zeros(5, bool), block_of(surface), surface.noise.matrices(np.empty(0)), -np.inf
    )
    slope = slope_by_differences(lambda r: surface.at(sources, r, np.empty(0)).log_likelihood, rate)
    assert (rate > 0.05).all()
    assert (slope**2 <= 1e-3 * np.diag(information)).all()


def test_a_rate_that_wants_to_be_negative_ends_at_zero():
    surface = surface_of(CHAIN, 5000, NoiseShape.known(CHAIN.noise, 5))
    sources = np.append(CHAIN.mixing.T @ (1 << np.arange(5)), 0b10001)
    start, free = np.full(6, 0.3), np.zeros(6, bool)
    rate, _, _ = climb(sources, start, free, block_of(surface), surface.noise.matrices(np.empty(0)), -np.inf)
    slope = slope_by_differences(lambda r: surface.at(sources, r, np.empty(0)).log_likelihood, rate + 1e-6)
    assert ((rate > 0) | (slope < 0)).all()
    assert (rate[:5] > 0.05).all()
    assert rate[5] < 0.01  # no such source: 0 up to chance, sqrt(1 / 5000) x 0.5


@given(known_noise)
@settings(max_examples=60)
def test_the_score_is_the_penalised_likelihood_and_no_worse_than_the_start(problem):
    point = problem.point
    start = point.sources, point.rate, np.zeros(0, dtype=bool)
    found = searched(problem.surface, start=start)
    np.testing.assert_allclose(found.score, slow_score(problem, found), rtol=1e-9, atol=1e-9)
    assert (
        found.score >= point.log_likelihood - usual_cost(problem.surface)[np.bitwise_count(point.sources)].sum() - 1e-9
    )
    assert len(set(found.sources.tolist())) == found.sources.size
    assert found.information.shape == (found.sources.size, found.sources.size)
    empty = problem.surface.at(np.empty(0, np.int64), np.empty(0), np.empty(0)).log_likelihood
    assert found.score >= empty - 1e-9


@given(problems(shapes=("known",), min_sources=1), st.data())
@settings(max_examples=60)
def test_known_sources_stay_and_fixed_rates_too(problem, data):
    """Also a known source of the same sensors as one that is found, or that the rows speak against."""
    point = problem.point
    n_known = data.draw(st.integers(1, point.sources.size))
    fixed = np.array(data.draw(st.lists(st.booleans(), min_size=n_known, max_size=n_known)))
    found = searched(problem.surface, start=(point.sources, point.rate, fixed))
    assert found.sources[:n_known].tolist() == point.sources[:n_known].tolist()
    assert found.rate[:n_known][fixed].tolist() == point.rate[:n_known][fixed].tolist()
    assert (found.rate[:n_known] >= 0).all()
    np.testing.assert_allclose(found.score, slow_score(problem, found, n_known), rtol=1e-9, atol=1e-9)


@given(known_noise, st.data())
@settings(max_examples=60)
def test_no_set_that_is_not_allowed_is_found(problem, data):
    n_sets = 2**problem.surface.cells.n_sensors
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=n_sets, max_size=n_sets)))
    allowed[0] = False
    found = searched(problem.surface, allowed=allowed)
    assert allowed[found.sources].all()


def test_nothing_allowed_is_no_source():
    surface = surface_of(CHAIN, 500, NoiseShape.known(CHAIN.noise, 5))
    assert searched(surface, allowed=np.zeros(32, dtype=bool)).sources.size == 0


def both_searches(seed, n_samples=2000):
    """A random small problem by both searches, noise known: sources and score of each."""
    rng = np.random.default_rng(seed)
    n_sensors, n_sources = int(rng.integers(3, 8)), int(rng.integers(1, 7))
    columns = rng.choice(np.arange(1, 2**n_sensors), n_sources, replace=False)
    mixing = (columns >> np.arange(n_sensors)[:, None]) & 1 == 1
    truth = OrMixture(mixing, rng.uniform(0.05, 0.3, n_sources), Noise.flips(rng.uniform(0.01, 0.1)))
    surface = surface_of(truth, n_samples, NoiseShape.known(truth.noise, n_sensors), seed)
    found = searched(surface)
    start = Start(*NOTHING, np.empty(0))
    no_pool = np.empty(0, np.int64)
    task = SearchTask(Scale(surface, surface.cells.n_samples), BY_SLOPE, no_pool, exact=True)
    best = SourceSearch(task, start).run()
    return (set(found.sources.tolist()), found.score), (set(best.fit.point.sources.tolist()), best.score)


@pytest.fixture
def one_price(monkeypatch):
    """Blocks pay half a log of the rows for every rate: so does the other search then."""
    monkeypatch.setattr(score, "evidence_correction", lambda *_, **__: 0.0)
    monkeypatch.setattr(score.Scale, "cost_of", lambda scale, sources, _: scale.cost[np.bitwise_count(sources)])


@pytest.mark.usefixtures("one_price")
def test_it_finds_what_the_search_without_blocks_finds():
    """The same sources; both end within half a thousandth of the top (seeds 1000 to 1149: all, to 0.0005)."""
    for seed in range(25):
        (found, score), (wanted, best) = both_searches(seed)
        assert found == wanted, seed
        assert abs(score - best) < 1e-3


@pytest.mark.usefixtures("one_price")
def test_with_few_rows_it_nearly_does():
    """Exchanging two sources at once is left out here (seeds 1000 to 1149: 4 sets differ, by 1.9 at most)."""
    results = [both_searches(seed, 60) for seed in range(25)]
    assert sum(found == wanted for (found, _), (wanted, _) in results) >= 22  # 24.3 expected
    assert all(score > best - 4 for (_, score), (_, best) in results)


@given(st.integers(1, 3), st.integers(0, 2**30))
@settings(max_examples=30)
def test_the_shared_flip_rate_against_differences(n_sources, seed):
    """Slope and information of the flip rate, from single rows and the slow likelihood."""
    rng = np.random.default_rng(seed)
    rows = [tuple(row) for row in (rng.random((6, 3)) < 0.4).astype(int).tolist()]
    rows[0] = (None, *rows[0][1:])
    weights = rng.integers(1, 9, 6).astype(float).tolist()
    sources = rng.choice(np.arange(1, 8), n_sources, replace=False)
    rate, flip, fixed = rng.uniform(0.1, 1, n_sources), rng.uniform(0.05, 0.3), rng.random(n_sources) < 0.4

    def log_chances(parameters):
        pairs = list(zip(sources.tolist(), (-np.expm1(-parameters[:-1])).tolist(), strict=True))
        rates = [parameters[-1]] * 3
        return np.array([np.log(slow_likelihood.chance(row, pairs, rates, rates)) for row in rows])

    derivatives = slope_by_differences(log_chances, np.append(rate, flip))
    derivatives = derivatives[np.append(~fixed, True)]
    information = derivatives * weights @ derivatives.T
    rest = information[-1, :-1] @ np.linalg.pinv(information[:-1, :-1], rcond=1e-9) @ information[:-1, -1]
    surface = Surface(cells_of(rows, weights), NoiseShape.shared_flips(3, 1e-4))
    found = profiled_flip_rate(
        sources, rate, fixed, block_of(surface), flip, channel_matrices(np.full(3, flip), np.full(3, flip))
    )
    # differences of 1e-6 are right to some 1e-9; the ridge changes the information by 1e-10 of it
    np.testing.assert_allclose(found, (derivatives[-1] @ weights, information[-1, -1] - rest), rtol=1e-5, atol=1e-5)
