"""The evidence of given sources: Laplace's approximation against the integral over all rates."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from bica.estimate.lattice import NoiseShape, Pace
from bica.estimate.score import TYPICAL_RATE, BetaPrior, evidence_correction, log_prior, refit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.estimate.surfaces import surface_of

NONE = np.empty(0)


def log_evidence(surface, sources):
    """The log-likelihood at its top, with the correction, without half a log of the rows for each rate."""
    start = surface.at(sources, np.full(sources.size, 0.3), NONE)
    fit = refit(surface, start, np.ones(sources.size, dtype=bool), BetaPrior(), pace=Pace(tolerance=1e-9), exact=True)
    rows = surface.cells.n_samples
    correction = evidence_correction(fit.information, fit.point.rate, rows)
    return fit.point.log_likelihood + correction - 0.5 * sources.size * math.log(rows)


def integrated(surface, sources):
    """The slow way: likelihood times prior on a fine grid of rates, added up."""
    steps = np.linspace(0.0, 2.0, 161)[1:]
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


def test_nothing_is_known_less_well_than_before():
    """Without any information the volume is that of the prior, so that no source is ever free."""
    rate = np.array([0.2])
    ignorant = evidence_correction(np.zeros((1, 1)), rate, 1000) - 0.5 * math.log(1000)
    assert ignorant == pytest.approx(log_prior(rate) + math.log(TYPICAL_RATE * math.sqrt(2 * math.pi)))
    assert ignorant < 0


def test_no_source_needs_no_correction():
    assert evidence_correction(np.empty((0, 0)), NONE, 100) == 0.0


def test_a_prior_of_the_users_own_takes_the_place_of_ours():
    information, rate = np.diag([500.0]), np.array([0.4])
    with_ours, without = (evidence_correction(information, rate, 1000, given_prior=given) for given in (False, True))
    assert with_ours - without == pytest.approx(log_prior(rate))
