"""A cell that was not observed is an unknown, not a zero."""

import numpy as np
import pytest

from bica import BICA
from bica.data.patterns import PatternCounts
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.estimate.test_likelihood import columns, learned

TRUTH = OrMixture([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], [0.3, 0.2, 0.25], Noise.flips(0.03))
SEEDS = range(24)


def with_gaps(rows, seed):
    """A fifth of the cells removed, each on its own."""
    return np.where(np.random.default_rng([seed, 1]).random(rows.shape) < 0.2, np.nan, rows)


def differences(filled):
    """The probabilities from tables with gaps minus those from the complete tables, where the sources are right."""
    found = []
    for seed in SEEDS:
        rows = TRUTH.sample(1000, np.random.default_rng(seed))
        complete = learned(PatternCounts.of(rows)).model
        partial = learned(PatternCounts.of(filled(with_gaps(rows, seed)))).model
        if columns(partial) == columns(complete) == columns(TRUTH):
            found.append(by_columns(partial) - by_columns(complete))
    return np.array(found)


def by_columns(model):
    """The probabilities in the order of the truth's sources."""
    place = {tuple(column): j for j, column in enumerate(model.mixing.T.tolist())}
    return model.probability[[place[tuple(column)] for column in TRUTH.mixing.T.tolist()]]


def is_unbiased(found):
    """The same sources in nearly all tables, and mean differences within four standard errors of zero."""
    if len(found) < 0.9 * len(SEEDS):
        return False
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    return bool((np.abs(found.mean(axis=0)) < 4 * error).all())


def test_cells_missing_at_random_bias_nothing():
    assert is_unbiased(differences(lambda rows: rows))


def test_a_zero_in_their_place_would():
    assert not is_unbiased(differences(np.nan_to_num))


def test_noise_is_not_biased_either():
    rates = [learned(PatternCounts.of(with_gaps(TRUTH.sample(1000, np.random.default_rng(s)), s))) for s in SEEDS]
    found = np.array([fit.model.noise.miss for fit in rates])
    assert abs(found.mean() - 0.03) < 4 * found.std(ddof=1) / np.sqrt(len(found))


def test_a_row_of_gaps_tells_nothing():
    rows = TRUTH.sample(500, np.random.default_rng(0)).astype(float)
    more = np.vstack([rows, np.full((1, 4), np.nan)])
    one, other = (learned(PatternCounts.of(table)) for table in (rows, more))
    assert columns(one.model) == columns(other.model)
    np.testing.assert_allclose(one.model.probability, other.model.probability, atol=1e-5)
    assert one.log_likelihood == pytest.approx(other.log_likelihood)


def test_a_sensor_that_was_down_half_the_time():
    rows = TRUTH.sample(4000, np.random.default_rng(0)).astype(float)
    rows[:2000, 1] = np.nan
    fit = learned(PatternCounts.of(rows))
    assert columns(fit.model) == columns(TRUTH)
    assert (np.abs(by_columns(fit.model) - TRUTH.probability) < 4 * fit.probability_error.max()).all()
    assert fit.log_likelihood == pytest.approx(fit.model.log_likelihood(rows))


def test_without_noise_every_row_is_still_explained():
    rows = with_gaps(np.random.default_rng(3).random((60, 5)) < 0.3, 3)
    assert np.isfinite(learned(PatternCounts.of(rows), noise=Noise()).log_likelihood)


def test_bica_learns_decodes_and_scores_with_gaps():
    rows = with_gaps(TRUTH.sample(1500, np.random.default_rng(5)), 5)
    found = BICA().fit(rows)
    assert columns(found.model_) == columns(TRUTH)
    masked = BICA().fit(np.ma.masked_invalid(rows))
    assert masked.fit_.document() == found.fit_.document()
    assert found.transform(rows).shape == (1500, 3)
    assert found.score_samples(rows).sum() == pytest.approx(found.log_likelihood_)
    assert found.transform([[np.nan] * 4]).tolist() == [[0, 0, 0]]  # all are off more often than on
    assert found.score_samples([[np.nan] * 4]).tolist() == pytest.approx([0.0])
