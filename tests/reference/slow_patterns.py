"""Counting rows from the definition: a row is a tuple of 0, 1 and None for a missing cell."""

from collections import Counter
from fractions import Fraction


def count(rows, weights=None):
    """How much each distinct row weighs; rows of no weight are left out."""
    totals = Counter()
    for i, row in enumerate(rows):
        totals[tuple(row)] += Fraction(1 if weights is None else weights[i])
    return {row: total for row, total in totals.items() if total}


def table_of(counts):
    """The same from pattern counts, each word taken apart bit by bit."""
    rows = {}
    seen = counts.patterns if counts.observed is None else counts.observed
    for i, weight in enumerate(counts.weights):
        row = []
        for sensor in range(len(counts.sensors)):
            word, bit = divmod(sensor, 64)
            on = int(counts.patterns[i, word]) >> bit & 1
            known = counts.observed is None or int(seen[i, word]) >> bit & 1
            row.append(on if known else None)
        assert tuple(row) not in rows, "a distinct row stands there twice"
        rows[tuple(row)] = Fraction(float(weight))
    return rows


def projected(rows, columns):
    return [tuple(row[column] for column in columns) for row in rows]
