"""Parities of bit sets from their definition, and the least sum of entropies by trying every basis."""

from itertools import combinations
from math import log


def balances(counts):
    """For every set w: rows with an even number of its bits on, less those with an odd one."""
    return [sum(count * (-1) ** (w & x).bit_count() for x, count in enumerate(counts)) for w in range(len(counts))]


def spanned(words):
    """All XORs of these words, the empty one included."""
    found = {0}
    for word in words:
        found |= {other ^ word for other in found}
    return found


def first_independent(order, size):
    chosen = []
    for word in order:
        if word not in spanned(chosen) and len(chosen) < size:
            chosen.append(word)
    return chosen


def entropy(probability):
    return -sum(p * log(p) for p in (probability, 1 - probability) if p > 0)


def least_entropy(counts, n_sensors):
    """The least sum of entropies over all linearly independent sets of as many words as there are sensors."""
    total = sum(counts)
    each = [entropy((1 - balance / total) / 2) for balance in balances(counts)]
    bases = (words for words in combinations(range(1, 2**n_sensors), n_sensors))
    return min(sum(each[w] for w in words) for words in bases if len(spanned(words)) == 2**n_sensors)
