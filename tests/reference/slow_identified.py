"""What rows determine about lossy edges, by the rank of all derivatives at random numbers."""

from itertools import product

import numpy as np


def log_quiet(parameters, sources, n_sensors):
    """The log of the chance that all of a set of sensors is quiet, for every set but the empty one."""
    leaks, rest = parameters[:n_sensors], list(parameters[n_sensors:])
    numbers = []
    for sensors in sources:
        numbers.append((rest[0], dict(zip(sensors, rest[1 : 1 + len(sensors)], strict=True))))
        rest = rest[1 + len(sensors) :]
    values = []
    for chosen in product((False, True), repeat=n_sensors):
        inside = [i for i in range(n_sensors) if chosen[i]]
        value = sum(np.log(1 - leaks[i]) for i in inside)
        for p, reach in numbers:
            value = value + np.log(1 - p + p * np.prod([1 - reach.get(i, 0.0) for i in inside]))
        values.append(value)
    return np.array(values[1:])


def null_space(sources, n_sensors, rng):
    """The directions in which nothing changes: (n_directions, n_unknowns), leaks first."""
    n_unknowns = n_sensors + sum(1 + len(sensors) for sensors in sources)
    at = rng.uniform(0.2, 0.7, n_unknowns).astype(complex)
    step = 1e-30j
    columns = []
    for k in range(n_unknowns):
        moved = at.copy()
        moved[k] += step
        columns.append(log_quiet(moved, sources, n_sensors).imag / 1e-30)
    _, strength, directions = np.linalg.svd(np.stack(columns, axis=1))
    rank = int((strength > 1e-9 * strength[0]).sum())
    return directions[rank:]


def identified(sources, n_sensors, rng):
    """Whether each source stays where it is in all these directions, and how many there are."""
    free = null_space(sources, n_sensors, rng)
    found, place = [], n_sensors
    for sensors in sources:
        found.append(bool((np.abs(free[:, place : place + 1 + len(sensors)]) < 1e-6).all()))
        place += 1 + len(sensors)
    return found, len(free)
