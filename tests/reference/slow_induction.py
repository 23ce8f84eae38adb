"""The identifiability proof of the paper as it is carried out by hand, in its corrected form."""

from itertools import chain, combinations, product

import numpy as np


def distribution(n_sensors, probability):
    """The chance of every pattern when the source behind the set k (a bit mask, 1, 2, ...) has probability[k - 1]."""
    chance = np.zeros(2**n_sensors)
    chance[0] = 1.0
    for mask, p in enumerate(probability, 1):  # one source after the other, by its two cases
        after = np.zeros_like(chance)
        for pattern, value in enumerate(chance):
            after[pattern] += (1 - p) * value
            after[pattern | mask] += p * value
        chance = after
    return chance


def distribution_by_enumeration(masks, probability, n_sensors):
    """The same by all 2^n activities."""
    chance = np.zeros(2**n_sensors)
    for activity in product([0, 1], repeat=len(masks)):
        pattern, weight = 0, 1.0
        for on, mask, p in zip(activity, masks, probability, strict=True):
            pattern |= mask if on else 0
            weight *= p if on else 1 - p
        chance[pattern] += weight
    return chance


def probabilities(frequencies):
    """Sets by growing degree: p_k from F_k, F_0 and the probabilities of the proper subsets of k."""
    found = np.zeros(len(frequencies))
    for k in sorted(range(1, len(frequencies)), key=lambda k: (k.bit_count(), k)):
        below = [i for i in range(1, k) if i | k == k]
        quiet = np.prod([1 - found[i] for i in below])
        covered = _covering_chance(k, below, found)
        numerator = frequencies[k] * quiet - frequencies[0] * covered
        found[k] = numerator / (frequencies[0] + numerator)
    return found


def _covering_chance(k, below, found):
    """L_k: the chance that sources among the proper subsets of k together show exactly k."""
    total = 0.0
    for active in chain.from_iterable(combinations(below, size) for size in range(len(below) + 1)):
        union = 0
        for i in active:
            union |= i
        if union == k:
            total += np.prod([found[i] if i in active else 1 - found[i] for i in below])
    return total
