"""How probable every set of sources behind two sensors is, by adding up over a grid of log rates."""

from itertools import chain, combinations, product

import numpy as np

SETS = (1, 2, 3)


def posterior_of_sets(counts, flip_rate, log_prior_of_set, log_density, grid):
    """The posterior of every set of sources (a frozenset), given how often each of the four rows was seen."""
    weight = {}
    for sources in map(frozenset, chain.from_iterable(combinations(SETS, k) for k in range(4))):
        terms = []
        for log_rate in product(grid, repeat=len(sources)):
            chance = row_chances(dict(zip(sorted(sources), 1 - np.exp(-np.exp(log_rate)), strict=True)), flip_rate)
            likelihood = sum(count * np.log(chance[row]) for row, count in enumerate(counts))
            terms.append(likelihood + log_density(np.array(log_rate)))
        cell = len(sources) * np.log(grid[1] - grid[0])
        weight[sources] = np.logaddexp.reduce(terms) + cell + log_prior_of_set(sources)
    total = np.logaddexp.reduce(list(weight.values()))
    return {sources: float(np.exp(value - total)) for sources, value in weight.items()}


def row_chances(probability, flip_rate):
    """The chance of each of the four rows: every activity, then every pair of flips."""
    chance = np.zeros(4)
    for on in product((False, True), repeat=len(probability)):
        shown, share = 0, 1.0
        for (source, p), active in zip(probability.items(), on, strict=True):
            shown, share = (shown | source, share * p) if active else (shown, share * (1 - p))
        for flips in range(4):
            n_flips = bin(flips).count("1")
            chance[shown ^ flips] += share * flip_rate**n_flips * (1 - flip_rate) ** (2 - n_flips)
    return chance
