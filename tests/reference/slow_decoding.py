"""Decoding from the definition: try every activity, compare the chances."""

import math
from itertools import product

TIE = 1e-9


def _log(chance):
    return math.log(chance) if chance > 0 else -math.inf


def cost(mixing, probability, false_alarm, miss, row, activity):
    """``-log P(activity, row)``; a cell of the row is 0, 1 or None where nothing was observed."""
    total = 0.0
    for p, on in zip(probability, activity, strict=True):
        total -= _log(p if on else 1 - p)
    for reach, a, b, shown in zip(mixing, false_alarm, miss, row, strict=True):
        if shown is not None:
            is_on = any(g and on for g, on in zip(reach, activity, strict=True))
            wrong = b if is_on else a
            total -= _log(1 - wrong if shown == is_on else wrong)
    return total


def best(mixing, probability, false_alarm, miss, row):
    """The least cost and, unless it is infinite, the activity: fewest sources, then the smallest number in binary."""
    tried = [
        (cost(mixing, probability, false_alarm, miss, row, activity), sum(activity), activity[::-1], activity)
        for activity in product([False, True], repeat=len(probability))
    ]
    least = min(value for value, *_ in tried)
    if math.isinf(least):
        return least, None
    return least, min(entry[1:] for entry in tried if entry[0] <= least + TIE)[-1]


def nearest(mixing, probability, false_alarm, miss, row):
    """The least number of cells that the model cannot produce, and the cheapest activity that leaves so many."""
    tried = []
    for activity in product([False, True], repeat=len(probability)):
        n_wrong, kept = 0, []
        for reach, a, b, shown in zip(mixing, false_alarm, miss, row, strict=True):
            is_on = any(g and on for g, on in zip(reach, activity, strict=True))
            impossible = shown is not None and shown != is_on and (b if is_on else a) == 0
            n_wrong += impossible
            kept.append(None if impossible else shown)
        value = cost(mixing, probability, false_alarm, miss, kept, activity)
        if not math.isinf(value):
            tried.append((n_wrong, value, sum(activity), activity[::-1], activity))
    fewest = min(n_wrong for n_wrong, *_ in tried)
    least = min(value for n_wrong, value, *_ in tried if n_wrong == fewest)
    best = min(entry[2:] for entry in tried if entry[0] == fewest and entry[1] <= least + TIE)
    return fewest, best[-1]
