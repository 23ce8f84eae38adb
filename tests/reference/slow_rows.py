"""Rows explained by sources, from the definitions; columns and rows are sets of sensors, one row a set of sources."""

from itertools import combinations
from math import exp, log, sqrt


def says(sensor, ones, gaps, one, zero):
    if sensor in gaps:
        return 0.0
    return one[sensor] if sensor in ones else zero[sensor]


def gain(active, ones, gaps, columns, log_odds, one, zero):
    covered = set().union(*(columns[j] for j in active))
    return sum(log_odds[j] for j in active) + sum(says(i, ones, gaps, one, zero) for i in covered)


def activities(n_sources):
    return [set(chosen) for k in range(n_sources + 1) for chosen in combinations(range(n_sources), k)]


def best_gain(ones, gaps, columns, log_odds, one, zero, without=None):
    possible = [active for active in activities(len(columns)) if without not in active]
    return max(gain(active, ones, gaps, columns, log_odds, one, zero) for active in possible)


def chances(ones, gaps, columns, log_odds, one, zero):
    """The chance of every source given one row."""
    weight = [(a, exp(gain(a, ones, gaps, columns, log_odds, one, zero))) for a in activities(len(columns))]
    total = sum(w for _, w in weight)
    return [sum(w for a, w in weight if j in a) / total for j in range(len(columns))]


def turned(lists, n_items):
    return [[k for k, items in enumerate(lists) if i in items] for i in range(n_items)]


def left(ones, active, columns):
    return [o - set().union(*(columns[j] for j in a)) for o, a in zip(ones, active, strict=True)]


def covered_counts(cells, gaps, weights, active, columns, n_sensors, shown):
    """The weight of the covered cells of each sensor that show 1 (or 0)."""
    counts = [0.0] * n_sensors
    for o, g, w, a in zip(cells, gaps, weights, active, strict=True):
        for i in set().union(*(columns[j] for j in a)) - g:
            counts[i] += w * ((i in o) == shown)
    return counts


def voted(columns, active, ones, gaps, weights, fixed, one, zero, price, candidates):
    """One source after the other; ``candidates(j, columns)`` are the sensors outside that are put to the vote."""
    columns = [set(column) for column in columns]
    outside = [candidates(j, columns[j]) for j in range(len(columns))]
    for j in range(len(columns)):
        rows = [t for t, a in enumerate(active) if j in a]
        if fixed[j] or not rows:
            continue
        new = set()
        for i in columns[j] | outside[j]:
            free = [t for t in rows if not any(i in columns[k] for k in active[t] if k != j)]
            if sum(weights[t] * says(i, ones[t], gaps[t], one, zero) for t in free) > price:
                new.add(i)
        columns[j] = new
    return columns


def surprise(both, first, second, total):
    expected = first * second / total
    return (both - expected) / sqrt(expected + 0.25)


def together(sets, weights, i, k):
    return sum(w for s, w in zip(sets, weights, strict=True) if i in s and k in s)


def grown(seed, unexplained, ones, weights, least, longest):
    """The path from a seed and the weight of its rows from two sensors on, for tables so small that all may join."""
    rows = [t for t, u in enumerate(unexplained) if set(seed) <= u]
    path, total = list(seed), [sum(weights[t] for t in rows)]
    while len(path) < longest and total[-1] >= least:
        counts = {i: sum(weights[t] for t in rows if i in ones[t]) for t in rows for i in ones[t] - set(path)}
        best = max(counts, key=lambda i: (counts[i], -i), default=None)
        if best is None or counts[best] < least:
            break
        rows = [t for t in rows if best in ones[t]]
        path, total = [*path, best], [*total, counts[best]]
    return path, total


def cut(total, miss):
    """How many sensors of a path to keep, given the weights of its rows from two sensors on."""
    best, area = 0, 0.0
    for k in range(2, len(total) + 2):
        weight = total[k - 2]
        following = total[k - 1] / max(weight, 1.0) if k - 1 < len(total) else 0.0
        drop = (1 - miss) - 3 * sqrt(miss * (1 - miss) / max(weight, 1.0)) - 0.02
        if following < drop and weight * (k - 1) > area:
            best, area = k, weight * (k - 1)
    return best


def accepted(candidates, price, ones, unexplained, weights, one, least, share):
    """The weight of the rows that each candidate explains when its turn comes, and what is unexplained at the end."""
    unexplained = [set(u) for u in unexplained]
    explained = []
    for column, needed in zip(candidates, price, strict=True):
        column = set(column)
        rows = [t for t, o in enumerate(ones) if column <= o and len(column & unexplained[t]) >= min(2, len(column))]
        weight = sum(weights[t] for t in rows)
        value = sum(weights[t] * sum(one[i] for i in column & unexplained[t]) for t in rows)
        pays = weight >= least and weight > 0 and value + weight * log(weight / sum(weights)) > needed
        explained.append(weight if pays else 0.0)
        if pays:
            for t, o in enumerate(ones):
                if len(column & o) >= share * len(column):
                    unexplained[t] -= column
    return explained, unexplained


def area(column, ones, unexplained, weights):
    return sum(w * len(column & u) for o, u, w in zip(ones, unexplained, weights, strict=True) if column <= o)
