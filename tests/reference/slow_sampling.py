"""Metropolised Gibbs sampling of Boolean factors: every flip is judged by the whole joint probability."""

from math import exp


def log_joint(says, activity, mixing, odds):
    """Up to a constant; ``odds`` are the log odds of an activity and of a mixing bit."""
    value = odds[0] * sum(map(sum, activity)) + odds[1] * sum(map(sum, mixing))
    for t, line in enumerate(says):
        for j, cell in enumerate(line):
            value += cell * any(activity[t][k] and mixing[k][j] for k in range(len(mixing)))
    return value


def swept(says, activity, mixing, odds, draws, which):
    """Both factors after one sweep over the bits of ``which``: 0 for the activity, 1 for the mixing."""
    factors = [[list(line) for line in factor] for factor in (activity, mixing)]
    swept_factor = factors[which]
    for a in range(len(swept_factor)):
        for b in range(len(swept_factor[0])):
            before = log_joint(says, *factors, odds)
            swept_factor[a][b] = 1 - swept_factor[a][b]
            if draws[a][b] >= exp(log_joint(says, *factors, odds) - before):
                swept_factor[a][b] = 1 - swept_factor[a][b]
    return factors
