import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import DataError, SettingError
from bica.metrics import structure_error
from bica.model.noise import Noise
from bica.rivals.buffet import BuffetChain, IndianBuffet, log_buffet_prior

KNOWN = {"noise": Noise(0.01, 0.1), "probability": 0.1}


def causes(seed):
    rng = np.random.default_rng(seed)
    mixing, activity = rng.random((10, 4)) < 0.35, rng.random((250, 4)) < 0.1
    quiet = 0.99 * 0.1 ** (activity.astype(int) @ mixing.T.astype(int))
    return mixing[:, mixing.any(axis=0)], rng.random(quiet.shape) >= quiet


def fit(rows, **settings):
    return IndianBuffet(**settings).fit(PatternCounts.of(rows), np.random.default_rng(0))


@pytest.mark.slow
def test_the_best_of_six_chains_finds_the_causes():
    found = [(fit(rows, **KNOWN).model.mixing, mixing) for mixing, rows in map(causes, range(6))]
    assert sum(links.shape[1] == truth.shape[1] for links, truth in found) >= 4
    assert np.median([structure_error(links, truth) for links, truth in found]) <= 1


@pytest.mark.slow
def test_unknown_rates_are_found_too():
    mixing, rows = causes(1)
    found = fit(rows)
    assert structure_error(found.model.mixing, mixing) == 0
    noise = found.model.noise
    # about 250 x 10 cells, of which some 250 are covered
    assert abs(noise.false_alarm - 0.01) < 4 * np.sqrt(0.01 / 2200)
    assert abs(noise.miss - 0.1) < 4 * np.sqrt(0.09 / 250)


def walk(settings, cells, n_sweeps, seed=0):
    chain = BuffetChain(settings, cells, np.random.default_rng(seed))
    for _ in range(n_sweeps):
        chain.sweep()
        yield chain


@pytest.mark.parametrize(("sampler", "mean"), [("gibbs", 1.5 * (1 + 1 / 2 + 1 / 3 + 1 / 4)), ("rj", 1.5)])
def test_without_rows_the_number_of_sources_follows_its_prior(sampler, mean):
    settings = IndianBuffet(alpha=1.5, sampler=sampler, **KNOWN)
    chain = walk(settings, np.zeros((0, 4), np.uint8), 20_000)
    numbers = np.array([state.n_sources for state in chain], dtype=float)
    blocks = numbers.reshape(20, -1).mean(axis=1)  # long enough to be independent
    assert abs(blocks.mean() - mean) < 3 * blocks.std(ddof=1) / np.sqrt(len(blocks))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["gibbs", "rj"])
def test_drawing_data_and_state_in_turn_leaves_the_prior_as_it_is(sampler):
    """Geweke's test: the joint law of both is that of the prior and the data it predicts."""
    settings = IndianBuffet(alpha=1.0, sampler=sampler, noise=Noise(0.1, 0.3), probability=0.3)
    rng = np.random.default_rng(1)
    chain = BuffetChain(settings, np.zeros((5, 3), np.uint8), np.random.default_rng(0))
    seen = []
    for _ in range(20_000):
        chain.sweep()
        quiet = np.exp(chain.log_shown[0, chain.cover])
        chain.cells[:] = rng.random(quiet.shape) >= quiet
        seen.append((chain.n_sources, chain.links.sum(), chain.activity.sum(), chain.cells.sum()))
    forwards = np.array([_forwards(sampler, np.random.default_rng([2, k])) for k in range(4000)])
    blocks = np.array(seen, dtype=float).reshape(20, -1, 4).mean(axis=1)
    error = np.sqrt(blocks.var(axis=0, ddof=1) / 20 + forwards.var(axis=0) / len(forwards))
    assert (np.abs(blocks.mean(axis=0) - forwards.mean(axis=0)) < 4 * error).all()


def _forwards(sampler, rng):
    """Sources, links, active sources and ones of one draw from prior and model: three sensors, five rows."""
    if sampler == "rj":
        n_sources = rng.poisson(1.0)
        links = rng.random((3, n_sources)) < rng.random(n_sources)
    else:
        links = np.zeros((3, 0), dtype=bool)
        for sensor in range(3):
            links[sensor] = rng.random(links.shape[1]) < links.sum(axis=0) / (sensor + 1)
            links = np.hstack([links, np.zeros((3, rng.poisson(1.0 / (sensor + 1))), dtype=bool)])
            links[sensor, links.sum(axis=0) == 0] = True
    activity = rng.random((5, links.shape[1])) < 0.3
    quiet = 0.9 * 0.3 ** (activity.astype(int) @ links.T.astype(int))
    return links.shape[1], links.sum(), activity.sum(), (rng.random((5, 3)) >= quiet).sum()


def test_cover_and_cost_are_kept_in_step():
    _, rows = causes(0)
    settings = IndianBuffet()
    for chain in walk(settings, rows[:40].view(np.uint8), 30):
        used = slice(chain.n_sources)
        assert (chain.cover == chain.activity.astype(int) @ chain.links.T).all()
        assert not chain.links[:, chain.n_sources :].any()
        quiet = (1 - chain.leak) * (1 - chain.reach) ** chain.cover
        value = np.log(np.where(rows[:40], 1 - quiet, quiet)).sum() + log_buffet_prior(chain.links[:, used], 2.0)
        on = chain.activity[:, used]
        value += np.log(np.where(on, chain.probability, 1 - chain.probability)).sum()
        assert chain.cost() == pytest.approx(-value)


def test_the_prior_adds_up_to_one():
    """Over all links of two sensors with up to ten sources of each kind."""
    total = 0.0
    for first in range(11):
        for second in range(11):
            for both in range(11):
                columns = [[1, 0]] * first + [[0, 1]] * second + [[1, 1]] * both
                total += np.exp(log_buffet_prior(np.array(columns, np.uint8).reshape(-1, 2).T, 0.7))
    assert total == pytest.approx(1.0, abs=1e-9)


def test_shared_sources_are_those_of_the_links_on_average():
    _, rows = causes(1)
    found = fit(rows, n_init=2, n_sweeps=60, **KNOWN)
    shared = np.array(found.diagnostics["shared_sources"])
    links = found.model.mixing.astype(int)
    assert np.abs(shared - links @ links.T).max() < 1.5
    assert len(found.diagnostics["scores"]) == 2


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.0},
        {"n_sweeps": 1},
        {"probability": 1.0},
        {"sampler": "magic"},
        {"noise": Noise([0.1, 0.2], 0.0)},
        {"noise": "per-sensor"},
    ],
)
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        IndianBuffet(**settings)


def test_weights_have_to_be_whole_numbers():
    with pytest.raises(DataError, match="cannot weigh rows"):
        IndianBuffet().fit(PatternCounts.of([[1, 0]], sample_weight=[0.5]), np.random.default_rng(0))
