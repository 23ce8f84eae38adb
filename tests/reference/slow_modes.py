"""Sources with exclusive modes and lossy edges, by going through all modes and all firings; in plain lists.

Mode r is active with ``probability[r]``, at most one of those with the same ``owner``; it fires at sensor i with
``reach[r][i]``. Every sensor also fires by itself with ``leak[i]``, and is on if anything fires at it.
"""

from itertools import product
from math import prod


def activities(probability, owner):
    """All sets of active modes with their probabilities."""
    groups = [[r for r in range(len(owner)) if owner[r] == group] for group in sorted(set(owner))]
    for choice in product(*[[None, *group] for group in groups]):
        chance = 1.0
        for group, mode in zip(groups, choice, strict=True):
            chance *= 1 - sum(probability[r] for r in group) if mode is None else probability[mode]
        yield [mode for mode in choice if mode is not None], chance


def sensor_firings(sensor, active, reach, leak):
    """All sets of what may fire at one sensor (the active modes, and -1 for the leak) with their probabilities."""
    causes = [*active, -1]
    rates = [leak[sensor] if cause == -1 else reach[cause][sensor] for cause in causes]
    for fired in product((False, True), repeat=len(causes)):
        chance = prod(rate if on else 1 - rate for rate, on in zip(rates, fired, strict=True))
        yield {cause for cause, on in zip(causes, fired, strict=True) if on}, chance


def agreeing(sensor, value, active, reach, leak):
    """Those firings at a sensor that show this value; None is a cell that was not observed."""
    for fired, chance in sensor_firings(sensor, active, reach, leak):
        if value is None or bool(fired) == value:
            yield fired, chance


def row(cells, probability, reach, leak, owner):
    """The probability of one row of True, False and None."""
    return sum(
        chance * prod(sum(c for _, c in agreeing(i, value, active, reach, leak)) for i, value in enumerate(cells))
        for active, chance in activities(probability, owner)
    )


def expected_counts(cells, probability, reach, leak, owner):
    """How often each mode is active, fires at each sensor, and each sensor fires by itself, given one row."""
    total = row(cells, probability, reach, leak, owner)
    n_modes, n_sensors = len(probability), len(leak)
    n_active, n_leaks = [0.0] * n_modes, [0.0] * n_sensors
    n_fired = [[0.0] * n_sensors for _ in range(n_modes)]
    for active, chance in activities(probability, owner):
        by_sensor = [list(agreeing(i, value, active, reach, leak)) for i, value in enumerate(cells)]
        sums = [sum(c for _, c in firings) for firings in by_sensor]
        share = chance * prod(sums) / total
        for r in active:
            n_active[r] += share
        for i, firings in enumerate(by_sensor):
            for fired, c in firings:
                rest = prod(other for k, other in enumerate(sums) if k != i)
                for cause in fired:
                    if cause == -1:
                        n_leaks[i] += chance * c * rest / total
                    else:
                        n_fired[cause][i] += chance * c * rest / total
    return n_active, n_fired, n_leaks
