"""What it costs not to know the rates: the evidence of a set of sources, by Laplace's approximation.

Half a log of the rows for every rate is the price for large tables. It is too high for sources that overlap much or are
seen through much noise: the rows tell little about their rates, so little was to be known beforehand.
"""

import math

import numpy as np
from numpy.typing import NDArray

TYPICAL_RATE = 0.3  # half of the rates are below, by a half-Cauchy prior, whose long tail forbids none
SOURCE_ODDS = 0.4  # of one more source, before any row was seen


def evidence_correction(
    information: NDArray[np.float64], rate: NDArray[np.float64], n_samples: float, *, given_prior: bool = False
) -> float:
    """By how much the log evidence exceeds the log-likelihood minus half a log of the rows for every rate.

    ``information`` is that of the rates; no rate is less known afterwards than its prior says. With a prior of the
    user's own, which counts elsewhere, only the information does.

    >>> evidence_correction(np.diag([1000.0]), np.array([0.1]), 1000) > 0  # as clear as a thousand rows can tell
    True
    """
    n_rates = len(rate)
    log_determinant = float(np.linalg.slogdet(information + np.eye(n_rates) / TYPICAL_RATE**2)[1])
    log_volume = 0.5 * (n_rates * math.log(2 * math.pi * max(n_samples, 2.0)) - log_determinant)
    return log_volume + (0.0 if given_prior else log_prior(rate))


def log_prior(rate: NDArray[np.float64]) -> float:
    """The log density of rates, and of there being so many.

    >>> log_prior(np.array([0.1])) > log_prior(np.array([1.0]))
    True
    """
    highest = math.log(2 * SOURCE_ODDS / (math.pi * TYPICAL_RATE))
    return float((highest - np.log1p((rate / TYPICAL_RATE) ** 2)).sum())
