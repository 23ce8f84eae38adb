import numpy as np
import pytest

import bica.rivals.attractor as module
from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, DataError, SettingError
from bica.model.noise import Noise
from bica.progress import listening
from bica.rivals.attractor import Attractor, contained, covariances
from tests.rivals.planted import bars


def fit(rows, **settings):
    return Attractor(**settings).fit(PatternCounts.of(rows), np.random.default_rng(0))


def n_exact(found, mixing):
    columns = [{tuple(column) for column in matrix.T.tolist()} for matrix in (found.model.mixing, mixing)]
    return len(columns[0] & columns[1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_all_bars_are_found_and_nothing_else(seed):
    mixing, rows, _ = bars(seed, 8, 0.1)
    found = fit(rows)
    assert (n_exact(found, mixing), found.model.n_sources) == (16, 16)
    assert found.diagnostics["wrong_cells"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_of_bars_as_rare_or_frequent_as_they_come_most_are_found(seed):
    mixing, rows, _ = bars(seed, 8, (0.03, 0.3))
    assert n_exact(fit(rows, refine=False), mixing) >= 12


def test_bars_with_lossy_links_keep_their_strength():
    mixing, _, activity = bars(0, 6, 0.12)
    rng = np.random.default_rng(0)
    reached = rng.random((*activity.shape, 36)) < 0.85
    rows = (activity[:, :, None] & mixing.T & reached).any(axis=1)
    found = fit(rows)
    assert n_exact(found, mixing) == 12
    reach = np.array(found.diagnostics["reach"])
    # a bar is on in about 120 rows: four standard errors of 0.85
    np.testing.assert_allclose(reach[found.model.mixing], 0.85, atol=4 * np.sqrt(0.85 * 0.15 / 120) + 0.02)


def test_the_weights_are_covariances_of_rows_less_their_means():
    _, rows, _ = bars(1, 4, 0.2, n_samples=100)
    deviation = rows - rows.mean(axis=1, keepdims=True)
    expected = 100 * np.cov(deviation, rowvar=False, ddof=0)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(covariances(rows), expected, atol=1e-10)


def test_an_unlearned_factor_is_no_attractor_any_more():
    mixing, rows, _ = bars(2, 6, 0.15)
    network = module.UnitNetwork(covariances(rows))
    factor, strength = network.recall(18, np.random.default_rng(0))
    assert strength > 0
    assert tuple(factor) in {tuple(column) for column in mixing.T}
    network.unlearn(factor)
    assert network.weights[np.ix_(factor, factor)].sum() == pytest.approx(0.0, abs=1e-6 * strength)


def test_shuffled_tables_have_no_factors():
    _, rows, _ = bars(3, 6, 0.15)
    shuffled = np.random.default_rng(0).permuted(rows, axis=0)
    assert fit(shuffled).model.n_sources <= 1  # one in twenty exceeds the level by chance


def test_rows_contain_a_factor_but_for_the_misses():
    rows = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], dtype=bool)
    factors = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], dtype=bool)
    assert contained(rows, factors, 0.0).tolist() == [[True, True], [False, True]]
    assert contained(rows, factors, 0.4).tolist() == [[True, True], [True, True]]


def test_recalls_are_reported_and_ctrl_c_keeps_their_factors(monkeypatch):
    mixing, rows, _ = bars(0, 6, 0.12)
    data = PatternCounts.of(rows)
    seen = []
    recall = module.UnitNetwork.recall

    def interrupted(self, *arguments):
        if len(seen) == 3:
            raise KeyboardInterrupt
        return recall(self, *arguments)

    monkeypatch.setattr(module.UnitNetwork, "recall", interrupted)
    with (
        listening(lambda what, done, total: seen.append((what, done))),
        pytest.warns(BicaWarning, match="the factors recalled so far"),
    ):
        found = Attractor().fit(data, np.random.default_rng(0))
    assert seen == [("recalls of the attractor network", done) for done in (1, 2, 3)]
    assert 1 <= found.model.n_sources <= 3
    assert not found.converged
    assert n_exact(found, mixing) == found.model.n_sources


@pytest.mark.parametrize("settings", [{"miss": 1.0}, {"max_iter": 0}, {"max_size": 0}, {"noise": "per-sensor"}])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        Attractor(**settings)


def test_weights_have_to_be_whole_numbers():
    with pytest.raises(DataError, match="cannot weigh rows"):
        Attractor().fit(PatternCounts.of([[1, 0]], sample_weight=[0.5]), np.random.default_rng(0))


def test_given_noise_stays():
    _, rows, _ = bars(0, 4, 0.15)
    assert fit(rows, noise=Noise.flips(0.1)).model.noise == Noise.flips(0.1)
