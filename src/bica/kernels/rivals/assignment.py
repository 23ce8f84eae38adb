"""Multi-assignment clustering: every row belongs to a set of sources, the softer the higher the temperature.

Sets of sources are numbered, smaller ones first. ``quiet_one[k, j]`` is the probability that source k leaves sensor j
quiet, ``quiet[j, s]`` that all sources of set s do. The sensor then shows 1 with probability ``false_alarm + clear (1 -
quiet)`` and 0 with probability ``miss + clear quiet``, where ``clear = 1 - false_alarm - miss``.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells
from bica.kernels.compiled import compiled

Floats = NDArray[np.float64]
Sets = NDArray[np.int64]
TINY = 1e-300  # keeps logarithms and quotients finite where something is impossible
NEGLIGIBLE = -40.0  # exp of less than this changes no sum
ROOT_STEPS = 40  # of Newton's method or halving, at most
ROOT_TOLERANCE = 1e-7  # change of a probability that ends them
CLEARLY_BETTER = 1e-9  # nats: less is a tie, which the smaller set wins


@compiled
def quiet_probabilities(quiet_one: Floats, without: Sets, quiet: Floats) -> None:
    """Fill ``quiet``; ``without[k, s]`` is the number of the set s without source k, or -1 where k is not in it."""
    quiet[:, 0] = 1.0
    for s in range(1, quiet.shape[1]):
        k = 0
        while without[k, s] < 0:
            k += 1
        for j in range(quiet.shape[0]):
            quiet[j, s] = quiet[j, without[k, s]] * quiet_one[k, j]


@compiled
def assign(
    cells: Cells,
    weights: Floats,
    quiet: Floats,
    noise: tuple[float, float],
    temperature: float,
    ones: Floats,
    total: Floats,
) -> float:
    """Spread every row over the sets, with shares ``probability^(1 / temperature)``; return the free energy.

    ``total[s]`` becomes the weight of the rows in set s, ``ones[j, s]`` of those in which sensor j is on. Time: rows
    times sets times sensors; memory: that of one row.
    """
    n_sensors, n_sets = quiet.shape
    clear = 1.0 - noise[0] - noise[1]
    base, extra = np.zeros(n_sets), np.empty((n_sensors, n_sets))
    for j in range(n_sensors):
        for s in range(n_sets):
            log_off = np.log(max(noise[1] + clear * quiet[j, s], TINY))
            base[s] += log_off
            extra[j, s] = np.log(max(noise[0] + clear * (1.0 - quiet[j, s]), TINY)) - log_off
    ones[:] = 0.0
    total[:] = 0.0
    energy = 0.0
    share = np.empty(n_sets)
    for row in range(cells.shape[0]):
        share[:] = base
        for j in range(n_sensors):
            if cells[row, j]:
                share += extra[j]
        best, mass = share.max(), 0.0
        for s in range(n_sets):
            power = (share[s] - best) / temperature
            share[s] = np.exp(power) if power > NEGLIGIBLE else 0.0
            mass += share[s]
        energy -= weights[row] * (best + temperature * np.log(mass))
        share *= weights[row] / mass
        total += share
        for j in range(n_sensors):
            if cells[row, j]:
                ones[j] += share
    return energy


@compiled
def _slope(others: Floats, ones: Floats, zeros: Floats, noise: tuple[float, float], x: float) -> tuple[float, float]:
    """First and second derivative of the expected log-likelihood by one quiet probability ``x``."""
    clear = 1.0 - noise[0] - noise[1]
    first, second = 0.0, 0.0
    for s in range(others.size):
        moved = clear * others[s]
        on = ones[s] / max(noise[0] + clear - moved * x, TINY)
        off = zeros[s] / max(noise[1] + moved * x, TINY)
        first += moved * (off - on)
        second -= moved * moved * (off / max(noise[1] + moved * x, TINY) + on / max(noise[0] + clear - moved * x, TINY))
    return first, second


@compiled
def best_quiet_probability(
    others: Floats, ones: Floats, zeros: Floats, noise: tuple[float, float], start: float
) -> float:
    """Where the expected log-likelihood, which is concave in one quiet probability, is highest within [0, 1].

    Newton's method, with halving where a step leaves the bracket.
    """
    if _slope(others, ones, zeros, noise, 0.0)[0] <= 0.0:
        return 0.0
    if _slope(others, ones, zeros, noise, 1.0)[0] >= 0.0:
        return 1.0
    low, high, x = 0.0, 1.0, start
    for _ in range(ROOT_STEPS):
        first, second = _slope(others, ones, zeros, noise, x)
        if first > 0.0:
            low = x
        else:
            high = x
        new = x - first / second if second < 0.0 else low
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - x) < ROOT_TOLERANCE:
            return new
        x = new
    return x


@compiled
def improve_quiet(
    quiet_one: Floats, without: Sets, ones: Floats, total: Floats, noise: tuple[float, float], quiet: Floats
) -> None:
    """One sweep over the sources: each quiet probability at its best, given all others; ``quiet`` is updated."""
    n_sources, n_sensors = quiet_one.shape
    for k in range(n_sources):
        members = np.flatnonzero(without[k] >= 0)
        smaller = without[k][members]
        for j in range(n_sensors):
            others, on = quiet[j][smaller], ones[j][members]
            off = np.maximum(total[members] - on, 0.0)
            quiet_one[k, j] = best_quiet_probability(others, on, off, noise, quiet_one[k, j])
            for i in range(members.size):
                quiet[j, members[i]] = others[i] * quiet_one[k, j]


@compiled
def noise_weights(quiet: Floats, ones: Floats, total: Floats, noise: tuple[float, float]) -> tuple[float, float]:
    """The expected weight of cells that noise alone decided: those showing 1 and those showing 0."""
    clear = 1.0 - noise[0] - noise[1]
    alarms, misses = 0.0, 0.0
    for j in range(quiet.shape[0]):
        for s in range(quiet.shape[1]):
            on = max(noise[0] + clear * (1.0 - quiet[j, s]), TINY)
            off = max(noise[1] + clear * quiet[j, s], TINY)
            alarms += ones[j, s] * noise[0] / on
            misses += max(total[s] - ones[j, s], 0.0) * noise[1] / off
    return alarms, misses


@compiled
def best_sets(cells: Cells, quiet: Floats, noise: tuple[float, float], chosen: Sets) -> None:
    """Choose the set that explains each row best; of equally good ones the first, which has the fewest sources."""
    n_sensors, n_sets = quiet.shape
    clear = 1.0 - noise[0] - noise[1]
    value = np.empty(n_sets)
    for row in range(cells.shape[0]):
        value[:] = 0.0
        for j in range(n_sensors):
            for s in range(n_sets):
                on = noise[0] + clear * (1.0 - quiet[j, s])
                value[s] += np.log(max(on if cells[row, j] else 1.0 - on, TINY))
        best = 0
        for s in range(1, n_sets):
            if value[s] > value[best] + CLEARLY_BETTER:
                best = s
        chosen[row] = best
