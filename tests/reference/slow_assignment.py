"""Multi-assignment clustering from its definition: sets of sources as tuples, one cell at a time."""

from itertools import combinations
from math import exp, log, prod


def sets_of(n_sources, max_assign):
    return [s for size in range(min(max_assign, n_sources) + 1) for s in combinations(range(n_sources), size)]


def quiet(quiet_one, members, sensor):
    return prod(quiet_one[k][sensor] for k in members)


def chance_on(quiet_one, members, sensor, noise):
    """The cell is decided by noise with chance e, then 1 with chance r; else it shows the OR."""
    e = noise[0] + noise[1]
    r = noise[0] / e if e else 0.0
    return e * r + (1 - e) * (1 - quiet(quiet_one, members, sensor))


def risk(row, quiet_one, members, noise):
    on = [chance_on(quiet_one, members, j, noise) for j in range(len(row))]
    return -sum(log(p if cell else 1 - p) for cell, p in zip(row, on, strict=True))


def shares(row, quiet_one, sets, noise, temperature):
    weight = [exp(-risk(row, quiet_one, s, noise) / temperature) for s in sets]
    return [w / sum(weight) for w in weight]


def free_energy(rows, weights, quiet_one, sets, noise, temperature):
    total = 0.0
    for row, weight in zip(rows, weights, strict=True):
        total -= weight * temperature * log(sum(exp(-risk(row, quiet_one, s, noise) / temperature) for s in sets))
    return total


def expected_log_chance(quiet_one, sets, ones, total, noise):
    """What the steps for the quiet chances and the noise raise: ones[j][s] of total[s] rows show sensor j on."""
    value = 0.0
    for s, members in enumerate(sets):
        for j in range(len(ones)):
            p = chance_on(quiet_one, members, j, noise)
            value += _times_log(ones[j][s], p) + _times_log(total[s] - ones[j][s], 1 - p)
    return value


def _times_log(weight, chance):
    return weight * log(chance) if weight > 0 else 0.0
