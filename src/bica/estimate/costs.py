"""What one more source must gain in log-likelihood, and the evidence of a set of sources.

Half a log of the rows for every rate is the cost in large tables. It is too high for sources that overlap much or are
hidden by much noise: the rows say little about their rates, so less must be paid for knowing them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

NARROW = 3  # sensors of a narrow source, which gets a discount
NARROW_SHARE = 0.3  # of the log of the number of sets that a narrow source pays, found on simulated networks
LARGEST_DISCOUNT = 4.0  # nats
LEAST_ROWS = 2.0  # so that the log of the rows is positive
MOST_SENSORS = 64  # of a bit set


def cost_by_size(n_sensors: int, n_samples: float, largest: int) -> NDArray[np.float64]:
    """The cost of a source of 0, 1, ... ``largest`` sensors.

    A source pays half a log of the rows for its rate. By chance alone, some set of its size gains the log of the number
    of such sets. A wide source pays that in full: the usual mistake is a spurious source that explains a few crowded
    rows, and a true one gains far more. There are fewer sets of more than half of the sensors, but rows in which nearly
    all are on come about too easily, so these sets cost no less. A source of up to three sensors pays the share that
    did best on simulated networks of ten sensors, where a missed source counts as much as a spurious one. Among
    thousands of sensors no share is enough, so the discount is limited.
    """
    size = np.arange(largest + 1)
    chosen = np.minimum(size, n_sensors // 2)
    choices = gammaln(n_sensors + 1) - gammaln(chosen + 1) - gammaln(n_sensors - chosen + 1)
    share = np.minimum(1.0, NARROW_SHARE * (1 + np.maximum(0, size - NARROW)))
    discount = np.minimum((1 - share) * choices, LARGEST_DISCOUNT)
    cost: NDArray[np.float64] = 0.5 * math.log(max(n_samples, LEAST_ROWS)) + choices - discount
    return cost


def source_cost(n_sensors: int, n_samples: float) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    """A function that gives the cost of sources, which are bit sets of up to 64 sensors."""
    cost = cost_by_size(n_sensors, n_samples, min(n_sensors, MOST_SENSORS))
    return lambda sources: cost[np.bitwise_count(sources)]


TYPICAL_RATE = 0.3  # the median of a half-Cauchy prior on source rates, whose long tail forbids none
SOURCE_ODDS = 0.4  # of one more source, before any row is observed


def evidence_correction(
    information: NDArray[np.float64], rate: NDArray[np.float64], n_samples: float, *, given_prior: bool = False
) -> float:
    """By how much the log evidence exceeds the log-likelihood minus half a log of the rows for every rate.

    ``information`` is that of the rates; the prior adds its own, so no rate is less certain than before. If the user
    gave a prior, which is counted elsewhere, the log density of the usual prior is left out.

    >>> evidence_correction(np.diag([1000.0]), np.array([0.1]), 1000) > 0  # as precise as a thousand rows allow
    True
    """
    n_rates = len(rate)
    log_determinant = float(np.linalg.slogdet(information + np.eye(n_rates) / TYPICAL_RATE**2)[1])
    log_volume = 0.5 * (n_rates * math.log(2 * math.pi * max(n_samples, LEAST_ROWS)) - log_determinant)
    return log_volume + (0.0 if given_prior else log_prior(rate))


def log_prior(rate: NDArray[np.float64]) -> float:
    """The prior log density of these rates and of their number.

    >>> log_prior(np.array([0.1])) > log_prior(np.array([1.0]))
    True
    """
    highest = math.log(2 * SOURCE_ODDS / (math.pi * TYPICAL_RATE))
    return float((highest - np.log1p((rate / TYPICAL_RATE) ** 2)).sum())
