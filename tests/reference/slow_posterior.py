"""Posteriors and explanations from the definition: every activity, one after another."""

import math
from itertools import product

from tests.reference import slow_decoding

TIE = 1e-9


def weights(mixing, probability, false_alarm, miss, row):
    """``P(activity, row)`` of every activity; a cell of the row is 0, 1 or None where nothing was observed."""
    return {
        activity: math.exp(-slow_decoding.cost(mixing, probability, false_alarm, miss, row, activity))
        for activity in product([False, True], repeat=len(probability))
    }


def chance(*problem):
    return math.fsum(weights(*problem).values())


def posterior(*problem):
    """The chance of each source to be on; None where the row is impossible."""
    joint = weights(*problem)
    total = math.fsum(joint.values())
    if total == 0:
        return None
    n_sources = len(next(iter(joint)))
    return [math.fsum(weight for activity, weight in joint.items() if activity[j]) / total for j in range(n_sources)]


def explanations(*problem):
    """All possible activities, likeliest first; ties go to fewer active sources, then to the smaller binary number."""
    mixing, probability, false_alarm, miss, row = problem
    costs = [
        (slow_decoding.cost(mixing, probability, false_alarm, miss, row, activity), activity)
        for activity in product([False, True], repeat=len(probability))
    ]
    left = sorted((cost, activity) for cost, activity in costs if not math.isinf(cost))
    ordered = []
    while left:
        tied = [entry for entry in left if entry[0] <= left[0][0] + TIE]
        ordered += sorted(tied, key=lambda entry: (sum(entry[1]), entry[1][::-1]))
        left = left[len(tied) :]
    return ordered
