"""The sources of a few sensors in one compiled piece, noise known: a wide table is learned from thousands of blocks.

The moves are those of ``estimate/search.py`` – add, drop, exchange – on the same penalised likelihood, with blocks and
known sources as in ``block_climb.py``. ``price`` is what a source must gain, for every set of sensors.
"""

import numpy as np

from bica.kernels.compiled import compiled
from bica.kernels.lattice.block_climb import Block, Flags, Matrix, Sets, Table, Vector, chances, climb
from bica.kernels.lattice.channel import apply_matrices
from bica.kernels.lattice.likelihood import best_additions, candidate_gradient, spread_cells

TRIED = 3
HOPELESS = 10.0  # a forecast this far below the present score is not tried
IN_DOUBT = 30.0  # a source whose loss costs more log-likelihood than this is there
FEW = 8  # candidates of each size that are looked at closely
BETTER = 1e-6

Fitted = tuple[Sets, Vector, float, Matrix]  # sources, rates, log-likelihood, information
Moved = tuple[bool, Fitted]  # whether it is better than before


@compiled
def _fitted(sources: Sets, start: Vector, fixed: Flags, block: Block, matrices: Matrix, needed: float) -> Fitted:
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
def _prices(sources: Sets, n_known: int, price: Vector) -> float:
    total = 0.0
    for j in range(n_known, sources.size):
        total += price[sources[j]]
    return total


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
    price: Vector,
) -> Moved:
    """Add the candidate that promises most, refit, and stop at the first that beats ``best_score``."""
    hidden, chance, height = tables
    gain, probability = np.empty(candidates.size), np.empty(candidates.size)
    groups = (block[0], block[1], block[2])
    best_additions(hidden, matrices, candidates, groups, chance, block[3], gain, probability)
    here = height - _prices(sources, fixed.size, price)
    for _ in range(min(TRIED, candidates.size)):
        place, forecast = -1, best_score - HOPELESS
        for c in range(candidates.size):
            if here + gain[c] - price[candidates[c]] > forecast:
                place, forecast = c, here + gain[c] - price[candidates[c]]
        if place < 0:
            break
        gain[place] = -np.inf
        grown = np.append(sources, candidates[place])
        start = np.append(rate, -np.log1p(-probability[place]))
        needed = best_score + _prices(grown, fixed.size, price)
        fit = _fitted(grown, start, fixed, block, matrices, needed)
        if fit[2] - _prices(fit[0], fixed.size, price) > best_score + BETTER:
            return True, fit
    return False, (sources, rate, height, np.zeros((0, 0)))


@compiled
def _grown(
    now: Fitted, fixed: Flags, block: Block, channel: tuple[Matrix, Matrix], rules: tuple[Flags, Sets, Vector]
) -> Moved:
    """Add one source: the likeliest that pays for itself."""
    sources, rate, _, _ = now
    hidden, chance = np.empty(1 << channel[0].shape[0]), np.empty(block[2].size)
    height = chances(sources, rate, block, channel[0], hidden, chance)
    candidates = worth_a_look(sources, fixed.size, block, channel, (hidden, chance), rules[0], rules[1])
    score = height - _prices(sources, fixed.size, rules[2])
    tables = (hidden, chance, height)
    return _best_grown(sources, rate, candidates, score, fixed, block, channel[0], tables, rules[2])


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
def _dropped(now: Fitted, fixed: Flags, block: Block, matrices: Matrix, price: Vector) -> Moved:
    """Drop one source: the one that loses least, refitted before it is compared."""
    sources, rate, height, information = now
    score = height - _prices(sources, fixed.size, price)
    loss = losses(rate, information)
    for j in range(sources.size):
        loss[j] = loss[j] - price[sources[j]] if j >= fixed.size else np.inf
    for _ in range(min(TRIED, sources.size)):
        place = int(np.argmin(loss))
        if loss[place] > HOPELESS:
            break
        loss[place] = np.inf
        rest = np.concatenate((sources[:place], sources[place + 1 :]))
        needed = score + _prices(rest, fixed.size, price)
        fit = _fitted(rest, _without(rate, place), fixed, block, matrices, needed)
        if fit[2] - _prices(fit[0], fixed.size, price) > score + BETTER:
            return True, fit
    return False, now


@compiled
def _exchanged(
    now: Fitted,
    turn: int,
    fixed: Flags,
    block: Block,
    channel: tuple[Matrix, Matrix],
    rules: tuple[Flags, Sets, Vector],
) -> tuple[Moved, int]:
    """Replace a source by a relative or, where it is in doubt, by what its absence suggests; and whose turn is next."""
    sources, rate, height, information = now
    n_sensors, n_unknown = channel[0].shape[0], sources.size - fixed.size
    hidden, chance = np.empty(1 << n_sensors), np.empty(block[2].size)
    score, loss = height - _prices(sources, fixed.size, rules[2]), losses(rate, information)
    for k in range(n_unknown):
        place = fixed.size + (turn + k) % n_unknown
        rest, kept = np.concatenate((sources[:place], sources[place + 1 :])), _without(rate, place)
        without = chances(rest, kept, block, channel[0], hidden, chance)
        if not np.isfinite(without):
            continue
        candidates = _relatives(sources[place], rest, fixed.size, n_sensors, rules[0])
        if loss[place] < IN_DOUBT:
            more = worth_a_look(sources, fixed.size, block, channel, (hidden, chance), rules[0], rules[1])
            candidates = np.unique(np.concatenate((candidates, more)))
        tables = (hidden, chance, without)
        moved = _best_grown(rest, kept, candidates, score, fixed, block, channel[0], tables, rules[2])
        if moved[0]:
            return moved, place - fixed.size
    return (False, now), turn


@compiled
def search_block(
    sources: Sets,
    rate: Vector,
    fixed: Flags,
    block: Block,
    channel: tuple[Matrix, Matrix],
    rules: tuple[Flags, Sets, Vector],
) -> Fitted:
    """Add, drop and exchange until the penalised likelihood rises no more, from the given sources on.

    ``channel`` is the noise, forwards and transposed. ``rules`` say of every set of sensors whether it may be a source,
    how many sensors it has, and what it must gain. Returns sources, rates, score and information of the rates.
    """
    now, turn = _fitted(sources, rate, fixed, block, channel[0], -np.inf), 0
    while True:
        moved = _grown(now, fixed, block, channel, rules)
        if not moved[0]:
            moved = _dropped(now, fixed, block, channel[0], rules[2])
        if not moved[0]:
            moved, turn = _exchanged(now, turn, fixed, block, channel, rules)
        if not moved[0]:
            return now[0], now[1], now[2] - _prices(now[0], fixed.size, rules[2]), now[3]
        now = moved[1]
