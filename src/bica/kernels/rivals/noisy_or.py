"""Noisy-OR sources with a leak.

Sensor j stays quiet with probability ``exp(-(leak[j] + sum_k rate[k, j] y_k))``: ``rate[k, j]`` is -log(1 - p) for the
probability p that source k, when it is on, reaches sensor j.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells
from bica.kernels.compiled import compiled

Floats = NDArray[np.float64]
MOST_SWEEPS = 50  # over the sources of a row; flips end long before
CLEARLY_BETTER = 1e-9  # nats: less is no reason to flip


@compiled
def _log_shown(cell: np.uint8, total: float) -> float:
    """The log of the probability that a sensor shows this cell, given the sum of the rates on it."""
    return np.log(-np.expm1(-total)) if cell else -total


@compiled
def _flip_gain(cells: Cells, t: int, rate: Floats, leak: Floats, total: Floats, sign: float) -> float:
    """By how much row t gets likelier if a source with these rates is switched on (``sign`` 1) or off (-1)."""
    gain = 0.0
    for j in range(leak.size):
        if rate[j] > 0.0:
            moved = max(total[j] + sign * rate[j], leak[j])  # rounding may take it below the leak
            gain += _log_shown(cells[t, j], moved) - _log_shown(cells[t, j], total[j])
    return gain


@compiled
def flip_to_best(cells: Cells, rate: Floats, leak: Floats, log_odds: Floats, activity: Cells) -> int:
    """Flip the sources of each row, one by one, as long as that makes row and sources likelier; return how often.

    ``log_odds`` are the log odds that each source is on.
    """
    n_rows, n_sensors = cells.shape
    total = np.empty(n_sensors)
    n_flips = 0
    for t in range(n_rows):
        for j in range(n_sensors):
            total[j] = leak[j]
            for k in range(rate.shape[0]):
                total[j] += rate[k, j] * activity[t, k]
        for _ in range(MOST_SWEEPS):
            before = n_flips
            for k in range(rate.shape[0]):
                sign = 1.0 - 2.0 * activity[t, k]
                if sign * log_odds[k] + _flip_gain(cells, t, rate[k], leak, total, sign) > CLEARLY_BETTER:
                    for j in range(n_sensors):
                        total[j] = max(total[j] + sign * rate[k, j], leak[j])
                    activity[t, k] = 1 - activity[t, k]
                    n_flips += 1
            if n_flips == before:
                break
    return n_flips


@compiled
def expected_reach(
    cells: Cells, weights: Floats, rate: Floats, leak: Floats, activity: Cells, by_source: Floats, by_leak: Floats
) -> float:
    """Who switched the sensors on, given which sources are: returns the log-likelihood of the cells.

    ``by_source[k, j]`` becomes the weight of the rows in which source k reached sensor j, as far as can be expected;
    ``by_leak[j]`` that of the leak. Several may have done so at once.
    """
    n_rows, n_sensors = cells.shape
    by_source[:] = 0.0
    by_leak[:] = 0.0
    value = 0.0
    for t in range(n_rows):
        for j in range(n_sensors):
            total = leak[j]
            for k in range(rate.shape[0]):
                total += rate[k, j] * activity[t, k]
            value += weights[t] * _log_shown(cells[t, j], total)
            if cells[t, j]:
                share = weights[t] / -np.expm1(-total)  # over the probability that anything did
                by_leak[j] -= np.expm1(-leak[j]) * share
                for k in range(rate.shape[0]):
                    if activity[t, k]:
                        by_source[k, j] -= np.expm1(-rate[k, j]) * share
    return value
