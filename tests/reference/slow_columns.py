"""Columns of a table, counts of pairs and their tests, from the definitions: plain lists, exact fractions."""

from fractions import Fraction
from math import comb


def transposed(rows, n_columns):
    """The columns of rows given as integers: bit r of an integer is row r."""
    return [sum(1 << r for r, row in enumerate(rows) if row >> i & 1) for i in range(n_columns)]


def histogram(rows, columns, weights):
    """The weight of every pattern of a few columns; the first of them is the lowest bit."""
    table = [Fraction(0)] * 2 ** len(columns)
    for row, weight in zip(rows, weights, strict=True):
        table[sum(1 << k for k, column in enumerate(columns) if row[column])] += Fraction(weight)
    return table


def pair_counts(rows, weights, i, k):
    """Over the rows that saw both: the weight with both on, with the first on, and of all; None was not observed."""
    seen = [(row, Fraction(w)) for row, w in zip(rows, weights, strict=True) if None not in (row[i], row[k])]
    both = sum((w for row, w in seen if row[i] and row[k]), Fraction(0))
    return both, sum((w for row, w in seen if row[i]), Fraction(0)), sum((w for _, w in seen), Fraction(0))


def tail(both, first, second, total):
    """The chance that shuffled columns with so many ones are on together at least ``both`` times."""
    ways = sum(comb(first, k) * comb(total - first, second - k) for k in range(both, min(first, second) + 1))
    return Fraction(ways, comb(total, second))
