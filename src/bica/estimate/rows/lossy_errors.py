"""Standard errors of lossy sources, from the information on each of them, and the form in which pairs are reported."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.estimate.rows.lossy_state import LEAST_LEAK, MOST_LEAK, SOURCES_PER_PART, LossyState, swept
from bica.estimate.rows.pool import Numbers, ranges
from bica.kernels.rows.lists import Lists
from bica.kernels.rows.lossy_scores import source_information
from bica.progress import in_threads

PAIR = 2  # sensors: of such a source only how often they come on together can be told
SURE = 1.0 - 1e-6  # the reach of a pair; a failure of exactly 0 would bring logarithms of 0
AT_BOUND = 1e-3  # a reach this close to 1 has no slope
LEAST_CHANCE = 1e-9


def canonical(state: LossyState) -> LossyState:
    """The same distribution with pairs in the one form that their rows determine: sure edges, rarer, larger leaks.

    Two sensors a, b of one source of reach q depend on each other through a single number,
    kappa = log[(1 - p + p (1 - q_a)(1 - q_b)) / ((1 - p q_a)(1 - p q_b))]. A source with sure edges and probability
    p' = 1 - exp(-kappa) has the same, and leaks with (1 - leak'_a)(1 - p') = (1 - leak_a)(1 - p q_a) leave every sensor
    as frequent as it was.
    """
    probability, reach, leak = state.probability.copy(), state.reach.copy(), state.leak.copy()
    for source in np.flatnonzero((reach > 0).sum(axis=1) == PAIR).tolist():
        sensors = np.flatnonzero(reach[source])
        p, q = probability[source], reach[source, sensors]
        kappa = np.log1p(-p + p * np.prod(1.0 - q)) - np.log1p(-p * q).sum()
        rare = max(-np.expm1(-kappa), LEAST_CHANCE)
        leak[sensors] = 1.0 - (1.0 - leak[sensors]) * (1.0 - p * q) / (1.0 - rare)
        probability[source], reach[source, sensors] = rare, SURE
    leak = np.clip(leak, LEAST_LEAK, MOST_LEAK)
    return replace(state, probability=probability, reach=reach, leak=leak).refreshed()


@dataclass(frozen=True, slots=True, eq=False)
class LossyErrors:
    """Standard errors; NaN where there is no edge, or where the rows do not determine the number."""

    probability: Numbers  # (n_sources,)
    reach: Numbers  # (n_sources, n_sensors)
    leak: Numbers  # (n_sensors,)

    @classmethod
    def unknown(cls, state: LossyState) -> LossyErrors:
        """No errors at all."""
        return cls(*(np.full(shape, np.nan) for shape in (state.size, state.reach.shape, state.leak.size)))


N_DRAWS, APART = 6, 2  # draws of the activity, and how many sweeps they are apart
MOST_LOST = 0.99  # share of the information that hidden activity can take


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Several draws of the activity."""

    rows_of: tuple[Lists, ...]
    quiet: Numbers  # (n_draws, n_cells)


def errors_of(state: LossyState, rng: np.random.Generator) -> LossyErrors:
    """The standard errors of all numbers, from the information on each source with its edges and their leaks.

    The other sources count as certain, so the errors of sources that can replace each other come out too small.
    """
    drawn = []
    for _ in range(N_DRAWS):
        for _ in range(APART):
            state, _ = swept(state, np.uint64(rng.integers(2**63)))
        drawn.append(state)
    draws = Draws(tuple(one.rows_of() for one in drawn), np.stack([one.quiet for one in drawn]))
    known_leak = _leak_information(state, draws)

    def variances(sources: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Numbers]]:
        return [_variances(state, int(source), draws, known_leak) for source in sources]

    errors, leak = LossyErrors.unknown(state), 1.0 / known_leak
    parts = in_threads(variances, ranges(np.arange(state.size), SOURCES_PER_PART), state.table.n_jobs)
    for source, (support, variance) in enumerate(found for part in parts for found in part):
        k = support.size
        errors.probability[source] = np.sqrt(variance[0])
        errors.reach[source, support] = np.sqrt(variance[1 : 1 + k])
        leak[support] = np.fmax(leak[support], variance[1 + k :])  # NaN where the leak is at its bound
    return replace(errors, leak=np.sqrt(leak))


def _leak_information(state: LossyState, draws: Draws) -> Numbers:
    """The information on each leak if the sources were certain, from the zeros and ones of its sensor."""
    table = state.table
    zeros = table.observed - table.by_sensor(table.cells.heard)
    odds = table.cells.heard * draws.quiet / (1.0 - draws.quiet)
    products = (odds.sum(axis=0) ** 2 - (odds**2).sum(axis=0)) / (N_DRAWS * (N_DRAWS - 1))
    return np.maximum(zeros + table.by_sensor(products), 1.0) / (1.0 - state.leak) ** 2


def _variances(state: LossyState, source: int, draws: Draws, known_leak: Numbers) -> tuple[NDArray[np.int64], Numbers]:
    """The support of a source, and the variances of its probability, its reach and the leaks there: (1 + 2k,).

    NaN are the reach of a pair, which its rows do not determine, and a leak at its bound.
    """
    support = np.flatnonzero(state.reach[source])
    k, is_bound = support.size, state.reach[source, support] > 1.0 - AT_BOUND
    moves = np.concatenate([[True], ~is_bound, state.leak[support] > 2 * LEAST_LEAK])
    known, information = (
        matrix[np.ix_(moves, moves)] for matrix in _information(state, source, support, draws, known_leak)
    )
    variance = np.full(1 + 2 * k, np.nan)
    variance[moves] = np.diag(_inverse(known, information))
    if k > PAIR:
        variance[1 + np.flatnonzero(is_bound)] = 1.0 / max(state.n_on[source], 1.0) ** 2
    return support, variance


def _inverse(known: Numbers, information: Numbers) -> Numbers:
    """The inverse of the information; of that on known activity, at most a share of ``MOST_LOST`` counts as lost.

    The information is estimated from few draws, so that it may come out negative in a direction of which the rows say
    little. With known = L L', the eigenvalues of L^-1 information L'^-1 are the shares that are not lost.
    """
    root = np.linalg.inv(np.linalg.cholesky(known + np.diag(np.diag(known)) * TINY))
    left, directions = np.linalg.eigh(root @ information @ root.T)
    spread = root.T @ directions / np.sqrt(np.clip(left, 1.0 - MOST_LOST, 1.0))
    inverse: Numbers = spread @ spread.T
    return inverse


TINY = 1e-9  # keeps the information on known activity positive definite


def _information(
    state: LossyState, source: int, support: NDArray[np.int64], draws: Draws, known_leak: Numbers
) -> tuple[Numbers, Numbers]:
    """The information with known and with hidden activity, on one source with its edges and their leaks.

    It comes from the rows in which the source is on in any draw. In all others the score by p is -1/(1 - p), and the
    scores by a leak add up to minus what they add up to here; products of different leaks average out.
    """
    table, p, k = state.table, state.probability[source], support.size
    on = [lists.items[lists.start[source] : lists.start[source + 1]] for lists in draws.rows_of]
    rows = np.unique(np.concatenate(on)).astype(np.int64)
    is_on = np.stack([np.isin(rows, one) for one in on])
    place = np.full(table.n_sensors, -1, np.int32)
    place[support] = np.arange(k)
    squares, products, slope = np.zeros((1 + 2 * k, 1 + 2 * k)), np.zeros((1 + 2 * k, 1 + 2 * k)), np.zeros(1 + 2 * k)
    fail, leak = 1.0 - state.reach[source, support], state.leak[support]
    source_information(rows, is_on, draws.quiet, table.cells, place, p, fail, leak, squares, products, slope)
    known, information = squares / N_DRAWS, (products - squares) / (N_DRAWS * (N_DRAWS - 1))
    n_off, leaks = table.n_samples - table.cells.weights[rows].sum(), np.arange(1 + k, 1 + 2 * k)
    for matrix in (known, information):
        matrix[0, 0] += n_off / (1.0 - p) ** 2
        matrix[0, leaks] += slope[leaks] / N_DRAWS / (1.0 - p)
        matrix[leaks, 0] = matrix[0, leaks]
        matrix[leaks, leaks] = np.maximum(matrix[leaks, leaks], known_leak[support])
    return known, information
