"""Binary sources in sums; the acceptance figures are derived where two sums nearly collide."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from bica.data.patterns import PatternCounts
from bica.errors import DataError, LimitError, MisfitWarning, SettingError
from bica.rivals.linear import LinearSums, deconvolve, peeled


def all_sums(amplitude, offset):
    """Every sum from the definition."""
    return np.array([sum(a for a, bit in zip(amplitude, bits, strict=True) if bit) + offset
                     for bits in product((0, 1), repeat=len(amplitude))])  # fmt: skip


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_exact_sums_are_peeled(seed, n_sources):
    rng = np.random.default_rng(seed)
    amplitude = rng.normal(size=n_sources)
    sums = all_sums(amplitude, 0.7)
    gaps = np.diff(np.sort(sums))
    if gaps.min() < 1e-3 * np.ptp(sums):
        return  # sums that nearly collide may pair otherwise
    found = peeled(sums[:, None], n_sources)
    assert found is not None
    assert found.amplitude[0] == pytest.approx(np.sort(np.abs(amplitude))[::-1], abs=1e-9)
    assert found.activity @ found.amplitude[0] + found.offset[0] == pytest.approx(sums, abs=1e-9)


def test_six_sources_in_one_channel_without_noise():
    rng = np.random.default_rng(1)
    amplitude = np.array([1.0, 0.62, 0.41, 0.23, 0.13, 0.071])
    activity = rng.random((5000, 6)) < 0.5
    found = LinearSums(n_sources=6).unmix(activity @ amplitude, rng)
    assert found.amplitude[0] == pytest.approx(amplitude, abs=1e-6)
    assert (found.activity == activity).all()


@pytest.mark.slow
def test_four_sources_with_noise_are_decoded_about_as_well_as_can_be():
    """The sums 1 and .3 + .17 + .55 lie .02 apart, which no decoder can tell at this noise."""
    amplitude, deviation = np.array([1.0, 0.55, 0.3, 0.17]), 0.17 / 2 / 10  # a bit has half its tap as deviation: 20 dB
    rng = np.random.default_rng(2)
    activity = rng.random((2000, 4)) < 0.5
    found = LinearSums(n_sources=4, n_init=8).unmix(activity @ amplitude + deviation * rng.normal(size=2000), rng)
    assert found.amplitude[0] == pytest.approx(amplitude, abs=4 * 2 * deviation / np.sqrt(2000))
    confused = norm.sf(0.01 / deviation) * 2 / 16  # two of 16 states, all four bits wrong
    error = (found.activity != activity).mean()
    assert error < confused + 4 * np.sqrt(confused / 2000)
    clear = np.abs(activity @ amplitude - 1.01) > 0.02
    assert (found.activity == activity)[clear].mean() > 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("n_sources", "n_channels", "deviation", "most"), [(4, 2, 0.05, 0.01), (5, 3, 0.1, 0.02)])
def test_several_channels(n_sources, n_channels, deviation, most):
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        amplitude = rng.normal(size=(n_channels, n_sources))
        activity = rng.random((1000, n_sources)) < 0.5
        noise = deviation * rng.normal(size=(1000, n_channels))
        found = LinearSums(n_sources=n_sources, n_init=8).unmix(activity @ amplitude.T + noise, rng)
        turned = np.abs((2 * activity - 1.0).T @ (2 * found.activity - 1.0)) / 1000
        errors.append((1 - turned.max(axis=1).mean()) / 2)
    assert np.median(errors) < most


@pytest.mark.parametrize("seed", [7, 8])
def test_sums_that_lie_apart_are_found_under_noise(seed):
    """The nearest sums are .25 apart, 12 standard deviations; random starts alone are stuck on the second table."""
    amplitude, deviation = np.array([3, 1.1, 0.55, 0.3]), 0.02
    rng = np.random.default_rng(seed)
    activity = rng.random((800, 4)) < 0.4
    measured = activity @ amplitude + rng.normal(0, deviation, 800)
    found = LinearSums(n_sources=4).unmix(measured, np.random.default_rng(0))
    assert found.amplitude[0] == pytest.approx(amplitude, abs=4 * deviation / np.sqrt(800 * 0.4 * 0.6))
    assert (found.activity == activity).all()


def test_more_states_than_memory_holds_are_refused():
    with pytest.raises(LimitError, match="up to 16384 rows"):
        LinearSums(n_sources=12).unmix(np.random.default_rng(0).normal(size=20_000), np.random.default_rng(0))


def test_one_source_over_three_delays():
    tap = np.array([1.0, 0.6, -0.35])
    rng = np.random.default_rng(3)
    source = rng.random(1000) < 0.5
    clean = np.convolve(source, tap)[:1000]
    found = deconvolve(clean + clean.std() * 10 ** (-25 / 20) * rng.normal(size=1000), 3, rng)
    straight, turned = (found.source != source).mean(), (found.source == source).mean()
    assert min(straight, turned) < 0.01
    assert found.tap * (1 if straight < turned else -1) == pytest.approx(tap, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("tap", [[1.0], [1.0, 0.6], [1.0, 0.6, -0.35]])
def test_the_number_of_delays_is_found(tap):
    rng = np.random.default_rng(4)
    clean = np.convolve(rng.random(1000) < 0.5, tap)[:1000]
    found = deconvolve(clean + clean.std() * 10 ** (-25 / 20) * rng.normal(size=1000), None, rng)
    assert len(found.tap) == len(tap)
    assert np.abs(found.tap) == pytest.approx(np.abs(tap), abs=0.02)


def test_zeros_and_ones_are_no_sums_and_it_says_so():
    rng = np.random.default_rng(0)
    rows = (rng.random((300, 2)) < 0.4) @ np.array([[1, 1, 0], [0, 1, 1]])
    with pytest.warns(MisfitWarning, match="variance is left over"):
        fit = LinearSums(n_sources=2, n_init=3).fit(PatternCounts.of(rows > 0), rng)
    assert 0 < fit.diagnostics["unexplained"] < 1


def test_settings_and_measurements_are_checked():
    rng = np.random.default_rng(0)
    with pytest.raises(SettingError, match="give n_sources"):
        LinearSums().unmix([1.0, 2.0], rng)
    with pytest.raises(LimitError, match="at most 12"):
        LinearSums(n_sources=13).unmix([1.0, 2.0], rng)
    with pytest.raises(DataError, match="finite"):
        LinearSums(n_sources=1).unmix([1.0, np.nan], rng)
    with pytest.raises(SettingError, match="fewer taps"):
        deconvolve([1.0, 2.0], 2, rng)
    with pytest.raises(SettingError, match="count from 1"):
        LinearSums(n_sources=1, n_init=0)
