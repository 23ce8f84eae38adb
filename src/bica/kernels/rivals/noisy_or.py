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
LEAST_SHARE = 1e-12
MOST_RATE = 50.0  # beyond, a source is certain to reach the sensor
LOWEST_RATE, HIGHEST_RATE = 1e-4, 10.0
HALVINGS = 14  # of the range between these, in logarithms: to one part in a thousand
NEGLIGIBLE = 1e-6  # probability of a source whose row does not count


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


# The bound of Jaakkola and Jordan. With f(u) = log(1 - exp(-u)), concave, and shares w_k >= 0 that add up to 1,
#
#     f(leak + sum_k rate_k y_k) >= sum_k w_k [ y_k f(leak + rate_k / w_k) + (1 - y_k) f(leak) ],
#
# which is linear in y, so that sources are independent given a row: E_k is the probability that source k is on. Cells
# that are 0 need no bound. All shares of a row are ``share[t, k, j]``.


@compiled
def _f(u: float) -> float:
    return float(np.log(-np.expm1(-u)))


@compiled
def _slope_of_f(u: float) -> float:
    return float(1.0 / np.expm1(u))


@compiled
def _update_shares(cells: Cells, t: int, rate: Floats, leak: Floats, expected: Floats, share: Floats) -> None:
    """One step of the fixed point that the best shares of row t satisfy."""
    n_sources = rate.shape[0]
    for j in range(leak.size):
        if not cells[t, j]:
            continue
        total = 0.0
        for k in range(n_sources):
            moved = min(rate[k, j] / max(share[t, k, j], LEAST_SHARE), MOST_RATE)
            gain = _f(leak[j] + moved) - _f(leak[j]) - moved * _slope_of_f(leak[j] + moved)
            share[t, k, j] *= expected[t, k] * max(gain, 0.0)
            total += share[t, k, j]
        for k in range(n_sources):
            share[t, k, j] = share[t, k, j] / total if total > 0.0 else 1.0 / n_sources


@compiled
def _update_expected(
    cells: Cells, t: int, rate: Floats, leak: Floats, log_odds: Floats, share: Floats, expected: Floats
) -> float:
    """The best probabilities of the sources of row t, given its shares; returns the bound of the row."""
    bound = 0.0
    for j in range(leak.size):
        bound += _f(leak[j]) if cells[t, j] else -leak[j]
    for k in range(rate.shape[0]):
        odds = log_odds[k]
        for j in range(leak.size):
            if cells[t, j]:
                moved = min(rate[k, j] / max(share[t, k, j], LEAST_SHARE), MOST_RATE)
                odds += share[t, k, j] * (_f(leak[j] + moved) - _f(leak[j]))
            else:
                odds -= rate[k, j]
        expected[t, k] = 1.0 / (1.0 + np.exp(-odds))
        # the sum over both states of the source: its probability off times 1 + exp(odds)
        bound += max(odds, 0.0) + np.log1p(np.exp(-abs(odds))) - max(log_odds[k], 0.0)
        bound -= np.log1p(np.exp(-abs(log_odds[k])))
    return bound


@compiled
def bound_rows(
    cells: Cells,
    weights: Floats,
    rate: Floats,
    leak: Floats,
    log_odds: Floats,
    first: float,
    n_steps: int,
    share: Floats,
    expected: Floats,
) -> float:
    """Fill shares and probabilities of all rows, starting from equal shares and the probability ``first``.

    Returns the weighted sum of the bounds: at most the log-likelihood.
    """
    bound = 0.0
    for t in range(cells.shape[0]):
        for k in range(rate.shape[0]):
            expected[t, k] = first
            for j in range(leak.size):
                share[t, k, j] = 1.0 / rate.shape[0]
        of_row = 0.0
        for _ in range(n_steps):
            _update_shares(cells, t, rate, leak, expected, share)
            of_row = _update_expected(cells, t, rate, leak, log_odds, share, expected)
        bound += weights[t] * of_row
    return bound


@compiled
def _add_slopes(
    cells: Cells, weights: Floats, leak: Floats, share: Floats, expected: Floats, rate: Floats, slope: Floats
) -> None:
    """Make ``slope`` the derivative of the bound by every rate."""
    for k in range(rate.shape[0]):
        for j in range(rate.shape[1]):
            slope[k, j] = 0.0
    for t in range(cells.shape[0]):
        for k in range(rate.shape[0]):
            weight = weights[t] * expected[t, k]
            if expected[t, k] < NEGLIGIBLE:
                continue
            for j in range(rate.shape[1]):
                if cells[t, j]:
                    moved = rate[k, j] / max(share[t, k, j], LEAST_SHARE)
                    if moved < MOST_RATE:
                        slope[k, j] += weight * _slope_of_f(leak[j] + moved)
                else:
                    slope[k, j] -= weight


@compiled
def improve_rates(cells: Cells, weights: Floats, leak: Floats, share: Floats, expected: Floats, rate: Floats) -> None:
    """Every rate where the bound, concave in it, is highest, given shares and probabilities.

    The range of each rate is halved, in logarithms, on the side to which the bound rises.
    """
    low, high, slope = np.empty(rate.shape), np.empty(rate.shape), np.empty(rate.shape)
    for k in range(rate.shape[0]):
        for j in range(rate.shape[1]):
            low[k, j], high[k, j], rate[k, j] = LOWEST_RATE, HIGHEST_RATE, np.sqrt(LOWEST_RATE * HIGHEST_RATE)
    for _ in range(HALVINGS):
        _add_slopes(cells, weights, leak, share, expected, rate, slope)
        for k in range(rate.shape[0]):
            for j in range(rate.shape[1]):
                if slope[k, j] > 0.0:
                    low[k, j] = rate[k, j]
                else:
                    high[k, j] = rate[k, j]
                rate[k, j] = np.sqrt(low[k, j] * high[k, j])
