"""What the hidden states of all rows say about any source, present or not.

With R = P(x | S on) / P(x) for every row x (see ``states.py``) and w how often the row was observed,

    sum w (R - 1)                  is the slope of the log-likelihood by the rate of S,
    sum w log(1 + q (R - 1))       is the gain of a source S of probability q beside the present ones, concave in q,
    sum w (R_j - 1)(R_k - 1)       is the information of the rates of two sources.

One ratio takes one step for every state of its row.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.rows.states import (
    NOTHING,
    ONE,
    Errors,
    Row,
    StateRows,
    States,
    Vector,
    Words,
    cost_of,
    n_bits,
    row_of,
)

Matrix = NDArray[np.float64]

NEGLIGIBLE = 1e-3  # a ratio that cannot exceed this is 0: the row says that the source was off
FIRST_GUESS, HIGHEST = 0.02, 0.98  # probabilities
MOST_STEPS = 40
SETTLED = 1e-3  # the last step of a probability, relative to it: a gain is flat at its top


@compiled
def _total(number: int, row: Row, states: States) -> float:
    """P(x) / B(x), by the states that were kept, so that ratios average to 1."""
    total = 0.0
    for i in range(states.starts[number], states.starts[number + 1]):
        total += states.weights[i] * cost_of(row.pattern & ~states.sets[i], row.powers, row.products)
    return total


@compiled
def _ratio(source: np.uint64, number: int, row: Row, states: States, total: float) -> float:
    """P(x | source on) / P(x)."""
    wrong = (source & row.observed) ^ row.pattern  # if nothing else is on
    sets, weights, powers, products = states.sets, states.weights, row.powers, row.products
    on = 0.0
    for i in range(states.starts[number], states.starts[number + 1]):
        on += weights[i] * cost_of(wrong & ~sets[i], powers, products)
    return on / total


@compiled
def ratios(sources: Words, rows: StateRows, states: States, errors: Errors, out: Matrix) -> None:
    """Make ``out[j, x]`` the ratio of source ``j`` in row ``x``."""
    for number in range(rows.patterns.size):
        row = row_of(rows, number, errors)
        total, weight, outside = _total(number, row, states), 0.0, NOTHING
        for i in range(states.starts[number], states.starts[number + 1]):
            weight += states.weights[i]
            outside |= states.sets[i] & ~row.pattern
        for j in range(sources.size):
            alone = sources[j] & row.observed & ~row.pattern & ~outside  # wrong in every state
            if weight * cost_of(alone, row.powers, row.products) < NEGLIGIBLE * total:
                out[j, number] = 0.0
            else:
                out[j, number] = _ratio(sources[j], number, row, states, total)


@compiled
def _moving(ratio: Vector, weights: Vector, excess: Vector, weight: Vector) -> int:
    """Ratios minus 1 with their weights, those of ratio 0 together in the first place; return how many."""
    n = 1
    excess[0], weight[0] = -1.0, 0.0
    for x in range(ratio.size):
        if ratio[x] == 0.0:
            weight[0] += weights[x]
        else:
            excess[n], weight[n] = ratio[x] - 1.0, weights[x]
            n += 1
    return n


@compiled
def _best_probability(excess: Vector, weight: Vector) -> float:
    """Where the sum of weight log(1 + q excess) is highest: Newton's method, kept inside a bracket."""
    low, high, q = 0.0, HIGHEST, FIRST_GUESS
    for _ in range(MOST_STEPS):
        slope, curvature = 0.0, 0.0
        for x in range(excess.size):
            step = excess[x] / (1.0 + q * excess[x])
            slope += weight[x] * step
            curvature += weight[x] * step * step
        if slope > 0.0:
            low = q
        else:
            high = q
        new = q + slope / curvature if curvature > 0.0 else q
        if new <= low or new >= high:
            new = 0.5 * (low + high)
        settled = abs(new - q) < SETTLED * q
        q = new
        if settled:
            break
    return q


@compiled
def best_gains(ratio: Matrix, weights: Vector, gain: Vector, probability: Vector) -> None:
    """How much each source alone would raise the log-likelihood, and at which probability."""
    excess, weight = np.empty(weights.size + 1), np.empty(weights.size + 1)
    for j in range(ratio.shape[0]):
        n = _moving(ratio[j], weights, excess, weight)
        gain[j] = probability[j] = slope = 0.0
        for x in range(n):
            slope += excess[x] * weight[x]
        if slope > 0.0:
            probability[j] = _best_probability(excess[:n], weight[:n])
            for x in range(n):
                gain[j] += weight[x] * np.log1p(probability[j] * excess[x])


@compiled
def wrong_cells(rows: StateRows, states: States, errors: Errors, out: Matrix) -> None:
    """Make ``out[x, i]`` the probability, given row ``x``, that its cell ``i`` is wrong."""
    out[:] = 0.0
    for number in range(rows.patterns.size):
        row = row_of(rows, number, errors)
        total = _total(number, row, states)
        for i in range(states.starts[number], states.starts[number + 1]):
            share = states.weights[i] * cost_of(row.pattern & ~states.sets[i], row.powers, row.products) / total
            wrong = states.sets[i] ^ row.pattern
            while wrong != NOTHING:
                out[number, n_bits((wrong & ~(wrong - ONE)) - ONE)] += share
                wrong &= wrong - ONE
