"""OR mixtures in exact fractions: distributions, marginals and covariances from the definition."""

from fractions import Fraction
from itertools import product


def distribution(columns, probability):
    """Chance of every pattern (a tuple of 0/1) when source j switches on the sensors where columns[j] is 1."""
    chance = {}
    for activity in product([0, 1], repeat=len(columns)):
        weight = Fraction(1)
        for on, p in zip(activity, probability, strict=True):
            weight *= p if on else 1 - p
        reached = [column for on, column in zip(activity, columns, strict=True) if on]
        pattern = tuple(int(any(column[i] for column in reached)) for i in range(len(columns[0])))
        chance[pattern] = chance.get(pattern, Fraction(0)) + weight
    return chance


def chance(distribution, event):
    """The chance that ``event(pattern)`` holds."""
    return sum((weight for pattern, weight in distribution.items() if event(pattern)), Fraction(0))


def covariance(distribution, i, k):
    both = chance(distribution, lambda x: x[i] and x[k])
    return both - chance(distribution, lambda x: x[i]) * chance(distribution, lambda x: x[k])


def given_quiet(distribution, sensor):
    """The distribution of the other sensors where ``sensor`` is quiet."""
    total = chance(distribution, lambda x: not x[sensor])
    found = {}
    for pattern, weight in distribution.items():
        if not pattern[sensor]:
            rest = pattern[:sensor] + pattern[sensor + 1 :]
            found[rest] = found.get(rest, Fraction(0)) + weight / total
    return found


def independent(distribution):
    """Whether the chance of every pattern is the product of its sensors' chances."""
    n_sensors = len(next(iter(distribution)))
    on = [chance(distribution, lambda x, i=i: x[i]) for i in range(n_sensors)]
    for pattern in product([0, 1], repeat=n_sensors):
        expected = Fraction(1)
        for value, p in zip(pattern, on, strict=True):
            expected *= p if value else 1 - p
        if distribution.get(pattern, Fraction(0)) != expected:
            return False
    return True
