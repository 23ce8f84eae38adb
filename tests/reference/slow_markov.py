"""Decoding in time from the definition: every course of all sources through all slots."""

import math
from itertools import pairwise, product

from tests.reference import slow_decoding


def _log(chance):
    return math.log(chance) if chance > 0 else -math.inf


def moves(p, stay):
    """The chances of a stationary chain that is on with chance p, for ``stay`` slots on average: [before][after]."""
    stop = 0.0 if p == 1 else 1 / stay
    start = 1.0 if p == 1 else p / ((1 - p) * stay)
    return [[1 - start, start], [stop, 1 - stop]]


def cost(mixing, probability, false_alarm, miss, rows, stays, course):
    """``-log P(course, rows)``; a course is one activity a row."""
    total = 0.0
    for row, activity in zip(rows, course, strict=True):
        sure = [float(on) for on in activity]  # its own price is 0, which leaves the price of the cells
        total += slow_decoding.cost(mixing, sure, false_alarm, miss, row, activity)
    for j, (p, stay) in enumerate(zip(probability, stays, strict=True)):
        states = [int(activity[j]) for activity in course]
        total -= sum(_log(p if state else 1 - p) for state in states[:1])
        total -= sum(_log(moves(p, stay)[a][b]) for a, b in pairwise(states))
    return total


def courses(n_sources, n_slots):
    return product(product([False, True], repeat=n_sources), repeat=n_slots)


def least_cost(mixing, probability, false_alarm, miss, rows, stays):
    problem = (mixing, probability, false_alarm, miss, rows, stays)
    return min(cost(*problem, course) for course in courses(len(probability), len(rows)))


def expected_moves(mixing, probability, false_alarm, miss, rows, stays):
    """How often source j moves from a to b, over all courses by their chance: [j][a][b]."""
    problem = (mixing, probability, false_alarm, miss, rows, stays)
    total, counts = 0.0, [[[0.0, 0.0], [0.0, 0.0]] for _ in probability]
    for course in courses(len(probability), len(rows)):
        weight = math.exp(-cost(*problem, course))
        total += weight
        for before, after in pairwise(course):
            for j, (a, b) in enumerate(zip(before, after, strict=True)):
                counts[j][a][b] += weight
    return [[[count / total for count in row] for row in table] for table in counts]


def log_chance(mixing, probability, false_alarm, miss, rows, stays):
    """``log P(rows)``, summed over all courses."""
    problem = (mixing, probability, false_alarm, miss, rows, stays)
    return math.log(sum(math.exp(-cost(*problem, course)) for course in courses(len(probability), len(rows))))
