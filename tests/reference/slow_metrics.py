"""The measures from their definitions: plain lists, every permutation tried, nothing shared with the package.

A mixing is a list of columns, each a list of 0 and 1.
"""

from itertools import permutations
from math import inf, log


def hamming(left, right):
    return sum(a != b for a, b in zip(left, right, strict=True))


def shared_sources(columns, i, k):
    return sum(column[i] and column[k] for column in columns)


def in_degree_error(found, truth, n_sensors):
    return sum(abs(shared_sources(found, i, i) - shared_sources(truth, i, i)) for i in range(n_sensors))


def structure_error(found, truth, n_sensors, diagonal):
    pairs = [(i, k) for i in range(n_sensors) for k in range(n_sensors) if i < k or (diagonal and i == k)]
    return sum(abs(shared_sources(found, i, k) - shared_sources(truth, i, k)) for i, k in pairs)


def matchings(found, truth, n_sensors):
    """Every way to match, as (cost, partners of the true columns); None where a true column gets no partner."""
    size = max(len(found), len(truth))
    zero = [0] * n_sensors
    wide_found = found + [zero] * (size - len(found))
    wide_truth = truth + [zero] * (size - len(truth))
    for permutation in permutations(range(size)):
        cost = 0
        for column, j in zip(wide_truth, permutation, strict=True):
            cost += hamming(column, wide_found[j]) * (1 if any(column) else n_sensors)
        yield cost, [j if j < len(found) else None for j in permutation[: len(truth)]]


def best_matchings(found, truth, n_sensors):
    """The least cost, and the matchings that have it."""
    tried = list(matchings(found, truth, n_sensors))
    least = min(cost for cost, _ in tried)
    return least, [partners for cost, partners in tried if cost == least]


def wrong_cells(found, truth, partners, n_sensors):
    """The number of wrong cells in each true column; one without a partner is compared with zeros."""
    zero = [0] * n_sensors
    return [hamming(column, zero if j is None else found[j]) for column, j in zip(truth, partners, strict=True)]


def transmission_probability_error(found, truth, n_samples, literal):
    floored = [1 / n_samples if n_samples and p == 0 else p for p in found]
    total_found, total_truth = sum(floored), sum(truth)
    error = 0.0
    for p, p_found in zip(truth, floored, strict=True):
        if p > 0:
            share, share_found = p / total_truth, p_found / total_found if p_found else 0
            error += (p if literal else share) * (log(share / share_found) if share_found else inf)
    return error


def activity_error_ratio(found, truth, partners):
    """Activities are lists of rows."""
    wrong = 0
    for row_found, row in zip(found, truth, strict=True):
        for y, j in zip(row, partners, strict=True):
            wrong += y != (0 if j is None else row_found[j])
    return wrong / (len(truth) * len(partners))
