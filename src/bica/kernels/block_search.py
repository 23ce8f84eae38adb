"""The sources of a few sensors in one compiled piece, noise known: a wide table is learned from thousands of blocks.

The moves are those of ``estimate/search.py`` – add, drop, exchange – on the same penalised likelihood. A block is
``(unobserved, starts, cells, weights)``, rows as cells of the lattice grouped by what was not observed. The first
sources of every list may be known: they stay, and those marked as fixed keep their rate.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.channel import apply_matrices
from bica.kernels.compiled import compiled
from bica.kernels.likelihood import (
    best_additions,
    candidate_gradient,
    log_chance_derivatives,
    mix_sources,
    read_cells,
    spread_cells,
    with_source_on,
)

Vector = NDArray[np.float64]
Table = NDArray[np.float64]
Matrix = NDArray[np.float64]
Sets = NDArray[np.int64]
Flags = NDArray[np.bool_]
Block = tuple[Sets, Sets, Sets, Vector]

HIGHEST_RATE = 14.0
TOLERANCE = 1e-3
TRIED = 3
HOPELESS = 10.0  # a forecast this far below the present score is not tried
IN_DOUBT = 30.0  # a source whose loss costs more log-likelihood than this is there
FEW = 8  # candidates of each size that are looked at closely
BETTER = 1e-6


@compiled
def set_sizes(n_sets: int) -> Sets:
    """How many sensors each bit set has."""
    size = np.zeros(n_sets, np.int64)
    for s in range(1, n_sets):
        size[s] = size[s >> 1] + (s & 1)
    return size


@compiled
def chances(sources: Sets, rate: Vector, block: Block, matrices: Matrix, hidden: Table, chance: Vector) -> float:
    """Fill in what is there and the chance of what was observed; return the log-likelihood."""
    mix_sources(sources, -np.expm1(-rate), hidden)
    shown = hidden.copy()
    apply_matrices(shown, matrices)
    read_cells(shown, block[0], block[1], block[2], chance)
    total = 0.0
    for k in range(chance.size):
        total += block[3][k] * np.log(chance[k])
    return total


@compiled
def log_derivatives(hidden: Table, sources: Sets, block: Block, matrices: Matrix, chance: Vector) -> Matrix:
    """Derivatives of the log chance of each cell by the rate of each source: (n_sources, n_cells)."""
    derivatives = np.empty((sources.size, chance.size))
    table = np.empty(hidden.size)
    for j in range(sources.size):
        with_source_on(hidden, sources[j], table)
        table -= hidden
        apply_matrices(table, matrices)
        read_cells(table, block[0], block[1], block[2], derivatives[j])
        derivatives[j] /= chance
    return derivatives


@compiled
def weighted_products(derivatives: Matrix, weights: Vector) -> Matrix:
    """The information matrix: weighted inner products of the rows."""
    n, size = derivatives.shape
    products = np.empty((n, n))
    scaled = np.empty(size)
    for a in range(n):
        for k in range(size):
            scaled[k] = weights[k] * derivatives[a, k]
        for b in range(a + 1):
            one, two, three, four = 0.0, 0.0, 0.0, 0.0
            other = derivatives[b]
            k = 0
            while k + 4 <= size:
                one += scaled[k] * other[k]
                two += scaled[k + 1] * other[k + 1]
                three += scaled[k + 2] * other[k + 2]
                four += scaled[k + 3] * other[k + 3]
                k += 4
            while k < size:
                one += scaled[k] * other[k]
                k += 1
            products[a, b] = products[b, a] = one + two + three + four
    return products


@compiled
def _scoring_step(rate: Vector, fixed: Flags, slope: Vector, information: Matrix) -> Vector:
    """The scoring step of the rates that can move; those that press against 0 stay."""
    moving = np.ones(rate.size, np.bool_)
    moving[: fixed.size] = ~fixed
    for j in range(rate.size):
        if (rate[j] <= 0.0 and slope[j] <= 0.0) or (rate[j] >= HIGHEST_RATE and slope[j] >= 0.0):
            moving[j] = False
    step = np.zeros(rate.size)
    while moving.any():
        places = np.flatnonzero(moving)
        part = np.empty((places.size, places.size))
        for a in range(places.size):
            for b in range(places.size):
                part[a, b] = information[places[a], places[b]]
        ridge = 1e-10 * np.trace(part) / places.size + 1e-12
        for a in range(places.size):
            part[a, a] += ridge
        step[:] = 0.0
        step[places] = np.linalg.solve(part, slope[places])
        pressed = moving & (rate <= 0.0) & (step < 0.0)
        if not pressed.any():
            return step
        moving &= ~pressed
    return step


@compiled
def climb(
    sources: Sets, start: Vector, fixed: Flags, block: Block, matrices: Matrix, needed: float
) -> tuple[Vector, float, Matrix]:
    """The best rates: scoring steps, shortened until they gain. Given up where ``needed`` is out of reach.

    Returns the rates, the log-likelihood and the information there or shortly before.
    """
    hidden, chance = np.empty(1 << matrices.shape[0]), np.empty(block[2].size)
    rate, height = start.copy(), chances(sources, start, block, matrices, hidden, chance)
    information = np.zeros((rate.size, rate.size))
    for _ in range(60):
        derivatives = log_derivatives(hidden, sources, block, matrices, chance)
        information = weighted_products(derivatives, block[3])
        slope = np.zeros(rate.size)
        for j in range(rate.size):
            slope[j] = np.sum(derivatives[j] * block[3])
        step = _scoring_step(rate, fixed, slope, information)
        promised = np.sum(slope * step)
        if promised < TOLERANCE or height + promised < needed:
            break
        gained = 0.0
        for _ in range(12):
            tried = np.minimum(np.maximum(rate + step, 0.0), HIGHEST_RATE)
            new = chances(sources, tried, block, matrices, hidden, chance)
            if new >= height + 1e-4 * np.sum(slope * (tried - rate)) and new > height:
                gained = new - height
                rate, height = tried, new
                break
            step *= 0.4
        if gained < 0.1 * TOLERANCE:
            break
    return rate, height, information


@compiled
def _fitted(
    sources: Sets, start: Vector, fixed: Flags, block: Block, matrices: Matrix, needed: float
) -> tuple[Sets, Vector, float, Matrix]:
    """The best rates; sources whose rate ends at 0 leave, the known ones excepted."""
    rate, height, information = climb(sources, start, fixed, block, matrices, needed)
    alive = rate > 0.0
    alive[: fixed.size] = True
    if alive.all():
        return sources, rate, height, information
    places = np.flatnonzero(alive)
    part = np.empty((places.size, places.size))
    for a in range(places.size):
        for b in range(places.size):
            part[a, b] = information[places[a], places[b]]
    return sources[alive], rate[alive], height, part


@compiled
def _price(sources: Sets, n_known: int, size: Sets, cost: Vector) -> float:
    price = 0.0
    for j in range(n_known, sources.size):
        price += cost[size[sources[j]]]
    return price


@compiled
def worth_a_look(
    sources: Sets,
    n_known: int,
    block: Block,
    channel: tuple[Matrix, Matrix],
    tables: tuple[Table, Vector],
    allowed: Flags,
    size: Sets,
) -> Sets:
    """Sets whose rate wants to grow, the steepest of every size."""
    hidden, chance = tables
    by_hidden, slope = np.empty(hidden.size), np.empty(hidden.size)
    spread_cells(block[3] / chance, block[0], block[1], block[2], by_hidden)
    apply_matrices(by_hidden, channel[1])
    candidate_gradient(hidden, by_hidden, slope)
    for j in range(n_known, sources.size):
        slope[sources[j]] = -1.0
    n_sensors = channel[0].shape[0]
    steepest = np.zeros((n_sensors + 1, FEW), np.int64)
    filled = np.zeros(n_sensors + 1, np.int64)
    for s in range(1, hidden.size):
        if allowed[s] and slope[s] > 0.0:
            _insert(steepest[size[s]], filled, size[s], s, slope)
    chosen = np.empty(filled.sum(), np.int64)
    n = 0
    for k in range(1, n_sensors + 1):
        for place in range(filled[k]):
            chosen[n] = steepest[k, place]
            n += 1
    return chosen


@compiled
def _insert(row: Sets, filled: Sets, k: int, s: int, slope: Vector) -> None:
    """Keep the steepest few in ``row``, falling."""
    if filled[k] == row.size and slope[s] <= slope[row[row.size - 1]]:
        return
    place = min(filled[k], row.size - 1)
    while place > 0 and slope[row[place - 1]] < slope[s]:
        row[place] = row[place - 1]
        place -= 1
    row[place] = s
    filled[k] = min(filled[k] + 1, row.size)


@compiled
def _relatives(source: int, others: Sets, n_known: int, n_sensors: int, allowed: Flags) -> Sets:
    """One sensor more or less; union, intersection and difference with other sources; none that is there already."""
    taken = np.zeros(1 << n_sensors, np.bool_)
    taken[0] = taken[source] = True
    for j in range(n_known, others.size):
        taken[others[j]] = True
    found = np.empty(n_sensors + 3 * others.size, np.int64)
    n = 0
    for k in range(found.size):
        if k < n_sensors:
            s = source ^ (1 << k)
        else:
            other = others[(k - n_sensors) // 3]
            kind = (k - n_sensors) % 3
            s = source | other if kind == 0 else (source & other if kind == 1 else source & ~other)
        if allowed[s] and not taken[s]:
            taken[s] = True
            found[n] = s
            n += 1
    return found[:n]


@compiled
def _best_grown(
    sources: Sets,
    rate: Vector,
    candidates: Sets,
    best_score: float,
    fixed: Flags,
    block: Block,
    matrices: Matrix,
    tables: tuple[Table, Vector, float],
    size: Sets,
    cost: Vector,
) -> tuple[bool, Sets, Vector, float, Matrix]:
    """Add the candidate that promises most, refit, and stop at the first that beats ``best_score``."""
    hidden, chance, height = tables
    gain, probability = np.empty(candidates.size), np.empty(candidates.size)
    groups = (block[0], block[1], block[2])
    best_additions(hidden, matrices, candidates, groups, chance, block[3], gain, probability)
    here = height - _price(sources, fixed.size, size, cost)
    for _ in range(min(TRIED, candidates.size)):
        place, forecast = -1, best_score - HOPELESS
        for c in range(candidates.size):
            if here + gain[c] - cost[size[candidates[c]]] > forecast:
                place, forecast = c, here + gain[c] - cost[size[candidates[c]]]
        if place < 0:
            break
        gain[place] = -np.inf
        grown = np.append(sources, candidates[place])
        start = np.append(rate, -np.log1p(-probability[place]))
        needed = best_score + _price(grown, fixed.size, size, cost)
        fit = _fitted(grown, start, fixed, block, matrices, needed)
        if fit[2] - _price(fit[0], fixed.size, size, cost) > best_score + BETTER:
            return True, fit[0], fit[1], fit[2], fit[3]
    return False, sources, rate, height, np.zeros((0, 0))


@compiled
def losses(rate: Vector, information: Matrix) -> Vector:
    """What dropping each source would cost in log-likelihood, by Wald's approximation."""
    if not rate.size:
        return np.empty(0)
    ridge = 1e-9 * np.trace(information) + 1e-12
    spread = np.linalg.inv(information + ridge * np.eye(rate.size))
    loss = np.empty(rate.size)
    for j in range(rate.size):
        loss[j] = 0.5 * rate[j] ** 2 / spread[j, j]
    return loss


@compiled
def _without(values: Vector, place: int) -> Vector:
    return np.concatenate((values[:place], values[place + 1 :]))


@compiled
def _dropped(
    sources: Sets,
    rate: Vector,
    height: float,
    information: Matrix,
    fixed: Flags,
    block: Block,
    matrices: Matrix,
    size: Sets,
    cost: Vector,
) -> tuple[bool, Sets, Vector, float, Matrix]:
    """Drop one source: the one that loses least, refitted before it is compared."""
    score = height - _price(sources, fixed.size, size, cost)
    loss = losses(rate, information)
    for j in range(sources.size):
        loss[j] = loss[j] - cost[size[sources[j]]] if j >= fixed.size else np.inf
    for _ in range(min(TRIED, sources.size)):
        place = int(np.argmin(loss))
        if loss[place] > HOPELESS:
            break
        loss[place] = np.inf
        rest = np.concatenate((sources[:place], sources[place + 1 :]))
        needed = score + _price(rest, fixed.size, size, cost)
        fit = _fitted(rest, _without(rate, place), fixed, block, matrices, needed)
        if fit[2] - _price(fit[0], fixed.size, size, cost) > score + BETTER:
            return True, fit[0], fit[1], fit[2], fit[3]
    return False, sources, rate, height, information


@compiled
def search_block(
    sources: Sets,
    rate: Vector,
    fixed: Flags,
    block: Block,
    channel: tuple[Matrix, Matrix],
    allowed: Flags,
    cost: Vector,
) -> tuple[Sets, Vector, float, Matrix]:
    """Add, drop and exchange until the penalised likelihood rises no more, from the given sources on.

    ``channel`` is the noise, forwards and transposed; ``allowed`` says which sets may be sources, ``cost`` what one of
    each size must gain. Returns sources, rates, score and the information matrix of the rates.
    """
    matrices = channel[0]
    n_sensors, n_known = matrices.shape[0], fixed.size
    size = set_sizes(1 << n_sensors)
    hidden, chance = np.empty(1 << n_sensors), np.empty(block[2].size)
    sources, rate, height, information = _fitted(sources, rate, fixed, block, matrices, -np.inf)
    turn = 0
    while True:
        score = height - _price(sources, n_known, size, cost)
        height = chances(sources, rate, block, matrices, hidden, chance)
        candidates = worth_a_look(sources, n_known, block, channel, (hidden, chance), allowed, size)
        moved = _best_grown(
            sources, rate, candidates, score, fixed, block, matrices, (hidden, chance, height), size, cost
        )
        if not moved[0]:
            moved = _dropped(sources, rate, height, information, fixed, block, matrices, size, cost)
        if not moved[0]:
            loss = losses(rate, information)
            for k in range(sources.size - n_known):
                place = n_known + (turn + k) % (sources.size - n_known)
                rest = np.concatenate((sources[:place], sources[place + 1 :]))
                kept = _without(rate, place)
                height_of_rest = chances(rest, kept, block, matrices, hidden, chance)
                if not np.isfinite(height_of_rest):
                    continue
                candidates = _relatives(sources[place], rest, n_known, n_sensors, allowed)
                if loss[place] < IN_DOUBT:
                    more = worth_a_look(sources, n_known, block, channel, (hidden, chance), allowed, size)
                    candidates = np.unique(np.concatenate((candidates, more)))
                moved = _best_grown(
                    rest, kept, candidates, score, fixed, block, matrices, (hidden, chance, height_of_rest), size, cost
                )
                if moved[0]:
                    turn = place - n_known
                    break
        if not moved[0]:
            return sources, rate, score, information
        sources, rate, height, information = moved[1], moved[2], moved[3], moved[4]


@compiled
def profiled_flip_rate(
    sources: Sets, rate: Vector, fixed: Flags, block: Block, flip_rate: float, matrices: Matrix
) -> tuple[float, float]:
    """Slope and information of one flip rate that all sensors share; rates that are not fixed follow along."""
    n_sensors = matrices.shape[0]
    hidden, chance = np.empty(1 << n_sensors), np.empty(block[2].size)
    chances(sources, rate, block, matrices, hidden, chance)
    shown = hidden.copy()
    apply_matrices(shown, matrices)
    rates, one_for_all = np.full(n_sensors, flip_rate), np.ones((n_sensors, 1))
    derivatives = np.empty((sources.size + 1, chance.size))
    groups = (block[0], block[1], block[2])
    log_chance_derivatives(
        hidden, shown, sources, (rates, rates), (one_for_all, one_for_all), matrices, groups, derivatives
    )
    for j in range(sources.size + 1):
        derivatives[j] /= chance
    slope = np.sum(derivatives[sources.size] * block[3])
    information = weighted_products(derivatives, block[3])
    for j in range(fixed.size):
        if fixed[j]:
            information[j] = 0.0
            information[:, j] = 0.0
    own = information[sources.size, sources.size]
    if not sources.size:
        return slope, own
    part = information[: sources.size, : sources.size].copy()
    ridge = 1e-10 * np.trace(part) / sources.size + 1e-12
    for j in range(sources.size):
        part[j, j] += ridge
    shared = information[: sources.size, sources.size].copy()
    return slope, max(0.0, own - np.sum(shared * np.linalg.solve(part, shared)))
