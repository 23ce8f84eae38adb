"""Max-sum messages of Boolean factorisation by maximising over every configuration of a cell."""

from itertools import product


def answers(from_activity, from_mixing, evidence):
    """What one cell tells the activity and mixing bits of each source, given what they tell the cell.

    The answer to a bit is the best value of all else with the bit on, less that with the bit off; its own message is
    left out.
    """
    n_sources = len(from_activity)
    states = list(product((0, 1), repeat=2 * n_sources))

    def value(state, skipped):
        incoming = [*from_activity, *from_mixing]
        on = any(state[k] and state[n_sources + k] for k in range(n_sources))
        return evidence * on + sum(incoming[b] * state[b] for b in range(2 * n_sources) if b != skipped)

    told = []
    for bit in range(2 * n_sources):
        best = [max(value(state, bit) for state in states if state[bit] == side) for side in (0, 1)]
        told.append(best[1] - best[0])
    return told[:n_sources], told[n_sources:]
