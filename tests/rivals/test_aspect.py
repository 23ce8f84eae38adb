import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.rivals.aspect import AspectBernoulli, Aspects


def planted(seed, n_samples=400):
    """The aspects and rows that mix them: ten sensors each, one or two aspects in every row."""
    rng = np.random.default_rng(seed)
    shown = np.where(np.arange(30) // 10 == np.arange(3)[:, None], 0.9, 0.03)
    shares = rng.dirichlet(np.full(3, 0.15), n_samples)
    return shown, rng.random((n_samples, 30)) < shares @ shown


@pytest.mark.parametrize("seed", range(3))
def test_aspects_and_shares_are_found(seed):
    shown, rows = planted(seed)
    data = PatternCounts.of(rows)
    found = AspectBernoulli(n_sources=3).fit(data, np.random.default_rng(seed))
    assert {tuple(column) for column in found.model.mixing.T} == {tuple(row > 0.5) for row in shown}
    reach = np.array(found.diagnostics["reach"])
    order = [int(np.abs(reach.T - row).sum(axis=1).argmin()) for row in shown]
    # a rate of 0.9 seen in about n / 3 rows has a standard error of 0.026; shares are estimated from 30 cells each
    assert np.abs(reach[:, order].T - shown).mean() < 0.06


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), n_sources=st.integers(1, 4))
def test_the_likelihood_never_falls_and_shares_stay_on_the_simplex(seed, n_sources):
    rng = np.random.default_rng(seed)
    data = PatternCounts.of(rng.random((20, 5)) < rng.random())
    aspects = Aspects(data, n_sources, rng)
    heights = [aspects.log_likelihood()]
    for _ in range(15):
        aspects.improve()
        heights.append(aspects.log_likelihood())
        assert aspects.shares.sum(axis=1) == pytest.approx(np.ones(len(aspects.shares)))
        assert ((aspects.shown >= 0) & (aspects.shown <= 1)).all()
    assert (np.diff(heights) >= -1e-8 * np.abs(heights[1:])).all()


def test_a_step_is_that_of_the_definition():
    """Cell by cell: which aspect it took, given what it shows."""
    rng = np.random.default_rng(5)
    data = PatternCounts.of(rng.random((6, 4)) < 0.5, sample_weight=[1, 2, 1, 3, 1, 1])
    aspects = Aspects(data, 2, rng)
    shares, shown, rows = aspects.shares.copy(), aspects.shown.copy(), aspects.rows
    taken = np.zeros((len(rows), 4, 2))
    for t, row in enumerate(rows):
        for i, cell in enumerate(row):
            joint = shares[t] * (shown[:, i] if cell else 1 - shown[:, i])
            taken[t, i] = joint / joint.sum()
    aspects.improve()
    assert aspects.shares == pytest.approx(taken.mean(axis=1))
    by_aspect = np.einsum("t,tik->ki", data.weights, taken)
    assert aspects.shown == pytest.approx(np.einsum("t,ti,tik->ki", data.weights, rows, taken) / by_aspect)


@pytest.mark.parametrize("given_settings", [{}, {"n_sources": 0}, {"n_sources": 2, "max_iter": 0}, {"tolerance": -1}])
def test_settings_that_mean_nothing_are_refused(given_settings):
    with pytest.raises(SettingError):
        AspectBernoulli(**given_settings).fit(PatternCounts.of([[1, 0]]), np.random.default_rng(0))
