"""One flip rate for given sources, for decoding: the likelihood over blocks of sensors small enough to be exact."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from bica.data.patterns import PatternCounts
from bica.kernels.channel import apply_channel
from bica.model.distribution import pattern_table, tabled_groups
from bica.model.or_mixture import OrMixture

BLOCK_SENSORS = 12
FIRST_LOOK = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4)


def fitted_flip_rate(model: OrMixture, data: PatternCounts) -> float:
    """The flip rate under which ``model`` explains ``data`` best: exact for groups of up to 12 sensors, else composite.

    Never exactly 0: that no flip was seen in so many cells leaves half a flip possible, and decoding then always has
    an answer.

    >>> rows = OrMixture([[1], [1]], [0.3]).sample(500, np.random.default_rng(0))
    >>> fitted_flip_rate(OrMixture([[1], [1]], [0.3]), PatternCounts.of(rows))
    0.0005
    """
    least = 0.5 / (data.n_samples * data.n_sensors)
    blocks = [_block_likelihood(model, data, sensors) for sensors in _blocks(model)]

    def misfit(rate: float) -> float:
        return -sum(block(rate) for block in blocks)

    rates = [least, *(rate for rate in FIRST_LOOK if rate > least)]
    best = int(np.argmin([misfit(rate) for rate in rates]))
    bounds = rates[max(0, best - 1)], rates[min(best + 1, len(rates) - 1)]
    refined = minimize_scalar(misfit, bounds=bounds, method="bounded", options={"xatol": 1e-3 * rates[best]})
    return float(refined.x) if refined.fun < misfit(rates[best]) else rates[best]


def _blocks(model: OrMixture) -> list[NDArray[np.int64]]:
    """Groups of sensors that share sources, cut where they are too large."""
    groups = [sensors for sensors, _ in tabled_groups(model.mixing)]
    return [sensors[i : i + BLOCK_SENSORS] for sensors in groups for i in range(0, len(sensors), BLOCK_SENSORS)]


def _block_likelihood(model: OrMixture, data: PatternCounts, sensors: NDArray[np.int64]) -> Callable[[float], float]:
    histogram, none = data.project(sensors.tolist()).histogram(), np.zeros(len(sensors))
    mixing = model.mixing[sensors]
    heard = mixing.any(axis=0)
    clean = pattern_table(mixing[:, heard], model.probability[heard], none, none)
    seen = np.flatnonzero(histogram)

    def log_likelihood(rate: float) -> float:
        shown = clean.copy()
        apply_channel(shown, none + rate, none + rate)
        return float(histogram[seen] @ np.log(shown[seen]))

    return log_likelihood
