"""All candidate sources at once, without recursion: the paper's identifiability proof as one formula."""

import numpy as np
from numpy.typing import NDArray

from bica.errors import DataError
from bica.kernels.subsets import subset_sums


def probability_by_subset(frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of the source behind every set of sensors, from the frequency of every pattern.

    Inside a set, the rates ``-log(1 - probability)`` of its subsets add up to the log of "all else is silent" over
    "all is silent", so one Moebius inversion finds them all: time m 2^m, memory 2^m for m sensors. Sampling noise
    can make a value negative. Where no row is all-quiet the logarithm does not exist.

    >>> probability_by_subset(np.array([0.4, 0.1, 0.0, 0.5])).round(3)  # the paper's two sensors
    array([0. , 0.2, 0. , 0.5])
    """
    rate = np.array(frequencies, dtype=float)
    if not rate[0] > 0:
        raise DataError("no row is all-quiet, so the closed form does not exist; use the likelihood or FindBICA")
    subset_sums(rate, 1.0)  # chance that everything outside the set is silent
    np.log(rate, out=rate)
    subset_sums(rate, -1.0)
    rate[0] = 0.0
    probability: NDArray[np.float64] = -np.expm1(-rate)
    return probability
