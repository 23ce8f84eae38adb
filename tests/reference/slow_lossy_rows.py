"""Lossy sources row by row, from the definition: every way in which edges and leaks can work is written out."""

from itertools import product
from math import exp, log


def quiet(sensor, active, reach, leak):
    """The probability that the sensor is 0: neither its leak nor the edge of an active source works."""
    chance = 1 - leak[sensor]
    for j in active:
        chance *= 1 - reach[j][sensor]
    return chance


def log_row(row, active, reach, leak):
    """The log-probability of what a row shows (None: not observed), given its active sources."""
    value = 0.0
    for i, cell in enumerate(row):
        if cell is not None:
            value += log(1 - quiet(i, active, reach, leak)) if cell else log(quiet(i, active, reach, leak))
    return value


def log_joint(row, active, probability, reach, leak):
    """The log-probability of a row together with its activity."""
    chances = (p if j in active else 1 - p for j, p in enumerate(probability))
    return sum(map(log, chances)) + log_row(row, active, reach, leak)


def log_odds(source, row, active, probability, reach, leak):
    """Of the source being on, given all others."""
    others = set(active) - {source}
    on = log_joint(row, others | {source}, probability, reach, leak)
    return on - log_joint(row, others, probability, reach, leak)


def candidates(row, probability, reach, leak, least):
    """Sources with a cell that is not 0 and hopeful log odds while all others are off, by their first such cell."""
    found = []
    for i, cell in enumerate(row):
        for j in range(len(probability)):
            touches = cell != 0 and reach[j][i] > 0
            if touches and j not in found and log_odds(j, row, set(), probability, reach, leak) > least:
                found.append(j)
    return found


def sweep(row, active, probability, reach, leak, least, draw):
    """The new activity, and for each candidate the probability with which it was drawn; ``draw(k)`` is in [0, 1)."""
    order = candidates(row, probability, reach, leak, least)
    now, drawn = set(active) & set(order), {}
    for k, j in enumerate(order):
        drawn[j] = 1 / (1 + exp(-log_odds(j, row, now, probability, reach, leak)))
        now = now | {j} if draw(k) < drawn[j] else now - {j}
    return now, drawn


def worked(source, sensor, active, reach, leak):
    """The probability that an edge worked, given that its sensor is on, over all ways in which that comes about."""
    causes = [leak[sensor], *(reach[j][sensor] for j in sorted(active))]
    place, total, mine = 1 + sorted(active).index(source), 0.0, 0.0
    for ways in product((0, 1), repeat=len(causes)):
        if any(ways):
            weight = 1.0
            for chance, works in zip(causes, ways, strict=True):
                weight *= chance if works else 1 - chance
            total += weight
            mine += weight * ways[place]
    return mine / total


def by_itself(sensor, active, reach, leak):
    """The probability that the leak of a sensor worked, given that it is on."""
    return leak[sensor] / (1 - quiet(sensor, active, reach, leak))


def edge_worth(source, sensor, cell, active, reach, leak, with_reach):
    """The log ratio of a cell with the edge at this reach and without it."""
    rest = quiet(sensor, set(active) - {source}, reach, leak)
    before, after = (1 - rest, 1 - rest * (1 - with_reach)) if cell else (rest, rest * (1 - with_reach))
    return log(after / before)


def states(row, probability, reach):
    """The chance of every activity of sources over a background, relative to that of the row without them."""
    chance = {}
    for state in product((0, 1), repeat=len(probability)):
        value = 1.0
        for p, on in zip(probability, state, strict=True):
            value *= p if on else 1 - p
        for i, background in enumerate(row):
            fail = failing(i, state, reach)
            value *= fail if background is None else (1 - background * fail) / (1 - background)
        chance[state] = value
    return chance


def failing(sensor, state, reach, but=None):
    """The probability that no active source but one reaches the sensor."""
    fail = 1.0
    for j, on in enumerate(state):
        fail *= 1 - reach[j][sensor] if on and j != but else 1.0
    return fail


def em_step(cells, weights, total, probability, reach):
    """One EM step of sources over a background: new probabilities, new reach, the gain before it, posteriors, worth.

    ``cells[t][i]`` is None for a zero, else the probability that the cell would be 0 without these sources; rows that
    are not listed, of weight ``total`` minus the sum of ``weights``, show zeros only.
    """
    n, k = len(probability), len(reach[0])
    n_on, fired, worth = [0.0] * n, [[0.0] * k for _ in range(n)], [[0.0] * k for _ in range(n)]
    gain, posteriors = 0.0, []
    for row, weight in [*zip(cells, weights, strict=True), ([None] * k, total - sum(weights))]:
        chance = states(row, probability, reach)
        every = sum(chance.values())
        gain += weight * log(every)
        posteriors.append([sum(v for state, v in chance.items() if state[j]) / every for j in range(n)])
        for state, j, i in product(chance, range(n), range(k)):
            share = weight * chance[state] / every * state[j]
            n_on[j] += share / k
            if row[i] is None:
                worth[j][i] += share * log(1 - reach[j][i])
            else:
                before = 1 - row[i] * failing(i, state, reach, but=j)
                after = 1 - row[i] * failing(i, state, reach, but=j) * (1 - reach[j][i])
                fired[j][i] += share * reach[j][i] / after
                worth[j][i] += share * log(after / before)
    new_reach = [[fired[j][i] / n_on[j] for i in range(k)] for j in range(n)]
    return [v / total for v in n_on], new_reach, gain, posteriors[:-1], worth


def score(row, source, active, probability, reach, leak, step=1e-6):
    """Slopes of the log-probability of a row with its activity, by p, reach and leaks of a source, by differences."""
    support = [i for i in range(len(leak)) if reach[source][i] > 0]

    def slope(change):
        values = []
        for sign in (1, -1):
            p, q, leaks = list(probability), [list(r) for r in reach], list(leak)
            change(p, q, leaks, sign * step)
            values.append(log_joint(row, active, p, q, leaks))
        return (values[0] - values[1]) / (2 * step)

    def by_probability(p, q, leaks, by):
        p[source] += by

    def by_reach(sensor):
        return lambda p, q, leaks, by: q[source].__setitem__(sensor, q[source][sensor] + by)

    def by_leak(sensor):
        return lambda p, q, leaks, by: leaks.__setitem__(sensor, leaks[sensor] + by)

    changes = [by_probability, *map(by_reach, support), *map(by_leak, support)]
    return [slope(change) for change in changes]
