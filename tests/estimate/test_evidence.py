"""The evidence of given sources: Laplace's approximation against the integral over all rates."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import invgamma, norm

from bica.estimate.lattice import BetaPrior, NoiseShape, Pace, refit
from bica.estimate.score import SOURCE_ODDS, TYPICAL_RATE, RatePrior, evidence_correction
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.estimate.surfaces import slope_by_differences, surface_of

NONE = np.empty(0)


def log_evidence(surface, sources):
    """The log-likelihood at its top, with the correction, without half a log of the rows for each rate."""
    start = surface.at(sources, np.full(sources.size, 0.3), NONE)
    fit = refit(surface, start, np.ones(sources.size, dtype=bool), BetaPrior(), pace=Pace(tolerance=1e-9), exact=True)
    rows = surface.cells.n_samples
    correction = evidence_correction(fit.information, fit.point.rate, rows)
    return fit.point.log_likelihood + correction - 0.5 * sources.size * math.log(rows)


def log_prior(rate):
    """The prior log density of these rates, no longer of their logs, and of their number."""
    return RatePrior(rate.size).log_density(np.log(rate)) - np.log(rate).sum() + rate.size * math.log(SOURCE_ODDS)


def integrated(surface, sources):
    """The slow way: likelihood times prior on a fine grid of rates, added up."""
    steps = np.linspace(0.0, 1.0, 161)[1:]
    grids = np.meshgrid(*[steps] * sources.size, indexing="ij")
    points = np.stack([grid.ravel() for grid in grids], axis=1)
    heights = [surface.at(sources, rate, NONE).log_likelihood + log_prior(rate) for rate in points]
    return logsumexp(heights) + sources.size * math.log(steps[1] - steps[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("flips", [0.01, 0.1])
@pytest.mark.parametrize("sources", [[0b11], [0b011, 0b110]], ids=["one source", "two sources"])
def test_it_is_the_integral_over_the_rates(sources, flips, seed):
    """The estimated information errs by a few times 1 / sqrt(2000), so half its log does by less than 0.1 a source."""
    mixing = (np.array(sources) >> np.arange(3)[:, None]) & 1 == 1
    truth = OrMixture(mixing, [0.3, 0.2][: len(sources)], Noise.flips(flips))
    surface = surface_of(truth, 2000, NoiseShape.known(truth.noise, 3), seed)
    sources = np.array(sources)
    assert log_evidence(surface, sources) == pytest.approx(integrated(surface, sources), abs=0.1 * sources.size)


def test_rates_that_the_rows_do_not_tell_cost_less():
    rate = np.array([0.2, 0.2])
    told, vague = np.diag([800.0, 800.0]), np.array([[800.0, 780.0], [780.0, 800.0]])
    assert evidence_correction(vague, rate, 1000) > evidence_correction(told, rate, 1000)


def test_without_information_a_source_costs_its_odds():
    """The prior adds up to 1, so nothing but the odds is left; Laplace takes Student's distribution for normal."""
    ignorant = evidence_correction(np.zeros((1, 1)), np.array([0.2]), 1000) - 0.5 * math.log(1000)
    degrees = RatePrior.VARIANCE_COUNT
    student = math.gamma((degrees + 1) / 2) / math.gamma(degrees / 2) * math.sqrt(2 / (degrees + 1))
    assert ignorant == pytest.approx(math.log(SOURCE_ODDS) + math.log(student), abs=1e-3)


@pytest.mark.parametrize("log_rate", [[-3.0], [-2.0, -2.5], [0.5, -6.0, -1.0]], ids=len)
def test_the_prior_is_the_integral_over_mean_and_variance(log_rate):
    """Normal log rates, a normal mean as uncertain as that of half a source, an inverse gamma variance."""
    own = RatePrior(len(log_rate))
    variances = invgamma(own.VARIANCE_COUNT / 2, scale=own.VARIANCE_COUNT * own.VARIANCE / 2)

    mean, variance = np.meshgrid(np.linspace(-30.0, 25.0, 1501), np.exp(np.linspace(-6.0, 6.0, 801)), indexing="ij")
    log_density = norm.logpdf(mean, own.MEAN, np.sqrt(variance / own.MEAN_COUNT)) + variances.logpdf(variance)
    log_density += np.log(variance)  # the grid has equal steps of its log
    log_density += sum(norm.logpdf(one, mean, np.sqrt(variance)) for one in log_rate)
    slow = logsumexp(log_density) + math.log(55 / 1500 * 12 / 800)
    assert own.log_density(np.array(log_rate)) == pytest.approx(slow, abs=1e-3)


@given(st.lists(st.floats(-9.0, 2.0), min_size=1, max_size=6))
def test_the_slope_of_the_prior(log_rate):
    own, log_rate = RatePrior(len(log_rate)), np.array(log_rate)
    np.testing.assert_allclose(
        own.slope(log_rate), slope_by_differences(own.log_density, log_rate), rtol=1e-4, atol=1e-6
    )


def test_a_rate_unlike_the_others_must_be_seen_more_clearly():
    alike, rare = np.full(9, 0.05), np.append(np.full(8, 0.05), 0.0005)
    information = np.diag(1000 / alike)
    of_rare = np.diag(1000 / rare)
    assert evidence_correction(information, alike, 1000) > evidence_correction(of_rare, rare, 1000) + 1


def test_no_source_needs_no_correction():
    assert evidence_correction(np.empty((0, 0)), NONE, 100) == 0.0


def test_a_prior_of_the_users_own_takes_the_place_of_ours():
    """It is counted elsewhere; only the volume is left, and no rate is less certain than before."""
    information, rate = np.diag([500.0]), np.array([0.4])
    volume = 0.5 * math.log(2 * math.pi * 1000 / (500 + TYPICAL_RATE**-2))
    assert evidence_correction(information, rate, 1000, given_prior=True) == pytest.approx(volume)
