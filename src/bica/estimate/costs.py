"""What one more source must gain in log-likelihood, and the evidence of a set of sources.

Half a log of the rows for every rate is the price for large tables. It is too high for sources that overlap much or are
seen through much noise: the rows tell little about their rates, so little was to be known beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

NARROW_SHARE, NARROW = 0.3, 3
LARGEST_DISCOUNT = 4.0


def cost_by_size(n_sensors: int, n_samples: float, largest: int) -> NDArray[np.float64]:
    """The price of a source of 0, 1, ... ``largest`` sensors.

    Half a log of the rows is the price of its rate. Among so many sets of its size chance alone would offer one that
    gains the log of their number. A wide source pays that in full: a spurious one that explains a few crowded rows is
    the usual mistake, and a true one is worth far more. Beyond half of the sensors there are fewer sets, but rows in
    which nearly all are on come about too easily to be cheaper. Up to three sensors it pays the share that did best on
    simulated networks of ten sensors, since a missed source costs as much as a spurious one. Among thousands of sensors
    no share is enough, so the discount has an end.
    """
    size = np.arange(largest + 1)
    chosen = np.minimum(size, n_sensors // 2)
    choices = gammaln(n_sensors + 1) - gammaln(chosen + 1) - gammaln(n_sensors - chosen + 1)
    share = np.minimum(1.0, NARROW_SHARE * (1 + np.maximum(0, size - NARROW)))
    discount = np.minimum((1 - share) * choices, LARGEST_DISCOUNT)
    cost: NDArray[np.float64] = 0.5 * math.log(max(n_samples, 2.0)) + choices - discount
    return cost


def source_cost(n_sensors: int, n_samples: float) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    """The price of sources given as bit sets of up to 64 sensors."""
    cost = cost_by_size(n_sensors, n_samples, min(n_sensors, 64))
    return lambda sources: cost[np.bitwise_count(sources)]


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
