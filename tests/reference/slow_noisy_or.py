"""Noisy-OR sources with a leak, row by row and by all ways in which sources and leak reach a sensor."""

from itertools import product
from math import exp, log


def log_probability(row, rate, leak, log_odds, activity):
    """Of a row and the activity behind it, up to a constant."""
    value = sum(odds for odds, on in zip(log_odds, activity, strict=True) if on)
    for j, cell in enumerate(row):
        quiet = exp(-leak[j] - sum(rate[k][j] for k, on in enumerate(activity) if on))
        value += log(1 - quiet) if cell else log(quiet)
    return value


def expected_reach(row, rate, leak, activity):
    """For every sensor: the probabilities that each source reached it, and the leak, given what it shows."""
    by_source, by_leak = [], []
    for j, cell in enumerate(row):
        chances = [1 - exp(-rate[k][j]) if on else 0.0 for k, on in enumerate(activity)] + [1 - exp(-leak[j])]
        total, sums = 0.0, [0.0] * len(chances)
        for reached in product((0, 1), repeat=len(chances)):
            if any(reached) != bool(cell):
                continue
            weight = 1.0
            for chance, one in zip(chances, reached, strict=True):
                weight *= chance if one else 1 - chance
            total += weight
            sums = [s + weight * one for s, one in zip(sums, reached, strict=True)]
        by_source.append([s / total for s in sums[:-1]])
        by_leak.append(sums[-1] / total)
    return by_source, by_leak


def bound(row, rate, leak, log_odds, share, expected):
    """Jaakkola and Jordan's lower bound of the log of the probability of a row, from its definition."""

    def f(u):
        return log(1 - exp(-u))

    value = 0.0
    for k, (odds, on) in enumerate(zip(log_odds, expected, strict=True)):
        prior = 1 / (1 + exp(-odds))
        value += sum(q * log(p / q) for q, p in ((on, prior), (1 - on, 1 - prior)) if q > 0)
        for j, cell in enumerate(row):
            if cell:
                value += share[k][j] * (on * f(leak[j] + rate[k][j] / share[k][j]) + (1 - on) * f(leak[j]))
            else:
                value -= on * rate[k][j]
    return value - sum(amount for amount, cell in zip(leak, row, strict=True) if not cell)


def log_likelihood(row, rate, leak, log_odds):
    """Summed over all states of the sources."""
    silent = sum(-log(1 + exp(odds)) for odds in log_odds)
    states = product((0, 1), repeat=len(rate))
    return log(sum(exp(log_probability(row, rate, leak, log_odds, state)) for state in states)) + silent
