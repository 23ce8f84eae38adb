import numpy as np
import pytest
from scipy.special import digamma

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.model.noise import Noise
from bica.rivals.beta import BetaSources, BetaState, _better_shape


def graded(seed, n_samples=600):
    """Forty sensors in three blocks that copy their own source with 0.8 and false absence with 0.2."""
    rng = np.random.default_rng(seed)
    block = np.arange(40) * 3 // 40
    mixing = 0.8 * (block[:, None] == np.arange(3))
    sources = rng.beta(0.3, 0.5, (n_samples, 3))
    chance = sources @ mixing.T + 0.2 * 0.005
    return block, sources, rng.random(chance.shape) < chance


def settled(data):
    """The better of two starts: its state, and minus the bound step by step."""
    states = [BetaState(data, 4, np.random.default_rng([0, start])) for start in range(2)]
    attempts = [BetaSources(n_sources=4)._settled(state) for state in states]
    best = int(np.argmin([attempt.score for attempt in attempts]))
    return states[best], np.array(attempts[best].trace["objective"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_graded_sources_and_false_absence_are_told_apart(seed):
    block, sources, rows = graded(seed)
    data = PatternCounts.of(rows)
    state, costs = settled(data)
    assert (np.diff(costs) <= 1e-8 * np.abs(costs[1:])).all()

    place = {row.tobytes(): t for t, row in enumerate(data.rows())}
    mean = (state.posterior[0] / state.posterior.sum(axis=0))[[place[row.tobytes()] for row in rows]]
    correlation = np.corrcoef(mean.T, sources.T)[:4, 4:]
    factor = correlation.argmax(axis=0)  # of each source
    assert len(set(factor.tolist())) == 3
    assert (correlation.max(axis=0) >= 0.9).all()

    assert (state.mixing[:, factor].argmax(axis=1) == block).mean() >= 0.95
    absence = ({0, 1, 2, 3} - set(factor.tolist())).pop()
    assert (state.shape[:, 0] / state.shape.sum(axis=1)).argmin() == absence


@pytest.mark.slow
def test_false_absence_makes_no_source():
    block, _, rows = graded(1, 300)
    found = BetaSources(n_sources=4, n_init=2).fit(PatternCounts.of(rows), np.random.default_rng(0))
    reach = np.array(found.diagnostics["reach"])
    assert reach.shape == (40, 3)
    assert (reach.argmax(axis=1)[:, None] == reach.argmax(axis=1)).tolist() == (block[:, None] == block).tolist()
    assert np.shape(found.diagnostics["shape"]) == (4, 2)


def test_the_bound_never_falls_and_is_below_the_likelihood_of_one_source():
    rng = np.random.default_rng(0)
    data = PatternCounts.of(rng.random((60, 5)) < 0.4)
    state = BetaState(data, 1, rng)
    bounds = []
    for _ in range(20):
        state.improve()
        state.improve_shapes()
        bounds.append(state.bound())
    assert (np.diff(bounds) >= -1e-9).all()
    grid = (np.arange(4000) + 0.5) / 4000  # one source: integrate it out
    density = grid ** (state.shape[0, 0] - 1) * (1 - grid) ** (state.shape[0, 1] - 1)
    density /= density.sum()
    ones = data.rows().sum(axis=1)[:, None]
    likelihood = data.weights @ np.log((density * grid**ones * (1 - grid) ** (5 - ones)).sum(axis=1))
    assert bounds[-1] == pytest.approx(likelihood, rel=1e-3)  # with one source the bound is exact


def test_shapes_solve_their_equations():
    truth = np.array([0.7, 2.5])
    mean = digamma(truth) - digamma(truth.sum())
    shape = np.array([0.5, 0.5])
    for _ in range(30):
        shape = _better_shape(shape, mean)
    np.testing.assert_allclose(shape, truth, rtol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"n_sources": 1, "max_iter": 0}, {"noise_mean": 0.5}])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        BetaSources(**settings).fit(PatternCounts.of([[1, 0]]), np.random.default_rng(0))


def test_given_noise_stays():
    data = PatternCounts.of(graded(0, 60)[2])
    found = BetaSources(n_sources=2, n_init=1, noise=Noise.flips(0.1)).fit(data, np.random.default_rng(0))
    assert found.model.noise == Noise.flips(0.1)
