"""What one more source must gain in log-likelihood."""

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
