"""The hidden states of every distinct row: what may have been there behind what was seen, with its weight.

Let h be the union of the sources that are on, and x what a row shows on its observed sensors. Sensor i shows 1 where h
has 0 at rate a_i, and 0 where h has 1 at rate b_i. Against a row without errors each wrong cell costs a factor

    f_i = a_i / (1 - b_i)  where x shows 1,      f_i = b_i / (1 - a_i)  where x shows 0,

which depends on the row alone, so f(D), the product of f_i over a set D of sensors, is all that the noise does:

    P(x) = B(x) sum_h P(h) f(h ^ x),      B(x) = the probability that no observed cell is wrong if h = x.

A list holds (h, v) with v = P(h) f(h - x): the errors that no further source can take back. With a source S on,

    P(x | S on) = B(x) sum_h v f((S - x) - h) f(x - S - h),

for every set S, present or not (``ratios.py`` says what follows from it). Cells that were not observed count nowhere:
every h is cut down to the observed sensors, and states that become equal are one.

The lists are built source after source: h becomes h | s, and v is multiplied by the odds of s and by f of the sensors
that are new and outside x. Sources inside x come first, wide ones before narrow ones, so that the likeliest state is
known early and unlikely ones are dropped soon.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled

Words = NDArray[np.uint64]
Vector = NDArray[np.float64]
Places = NDArray[np.int64]

NOTHING, ONE = np.uint64(0), np.uint64(1)
BYTE, LOW_BYTE = np.uint64(8), np.uint64(255)
HASH_FACTOR, HASH_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(20)  # Fibonacci hashing, by its well-mixed middle
SLOTS_PER_STATE = 4  # a hash table this empty seldom has two states after the same slot
FIRST_SLOTS = 256
UNLIKELY = 1e-4  # states do not wait for a source that is less likely in their row than this share of the reserve
FIRST_ROOM = 1 << 16  # states


class StateRows(NamedTuple):
    """Distinct rows of up to 64 sensors."""

    patterns: Words  # (n_rows,), 0 where a cell was not observed
    observed: Words  # (n_rows,)


class StateSources(NamedTuple):
    """Sources, and how likely each is."""

    sets: Words  # (n_sources,)
    odds: Vector  # (n_sources,), probability / (1 - probability)
    silence: float  # the probability that all are off


class Errors(NamedTuple):
    """What a wrong cell costs."""

    powers: Vector  # (65,), of the one factor that holds for all sensors and both kinds of error
    factors: Vector | None = None  # (64, 2), f_i by sensor and by what it shows, if there is no such factor


class Limits(NamedTuple):
    """Which states are kept."""

    share: float  # a state below this share of the row's likeliest term is dropped
    reserve: float  # what a state short of x is worth at least: a source yet to be found may complete it
    most_states: int  # in a row; where there are more, the share is doubled until half as many are left
    most_in_all: int  # where all rows together have more, the others get none and the chance 0


class States(NamedTuple):
    """The hidden states of all rows, one row after the other."""

    starts: Places  # (n_rows + 1,)
    sets: Words  # (n_states,)
    weights: Vector  # (n_states,), v above
    chance: Vector  # (n_rows,), P(x) / B(x)
    cut: NDArray[np.bool_]  # (n_rows,), where there were too many states


class Row(NamedTuple):
    """One row, and what its wrong cells cost."""

    pattern: np.uint64
    observed: np.uint64
    powers: Vector
    products: Vector | None  # (8, 256), of factors, for every byte of a set of wrong cells


class _Visible(NamedTuple):
    """What one row sees of the sources, in the order in which they are taken."""

    sets: Words
    odds: Vector
    later: Words  # (n_sources + 1,), the sensors of this source and of all later ones


class _List(NamedTuple):
    """The states of one row while they grow, and a hash table that says where each stands.

    Arrays of one number are numbers that change.
    """

    sets: Words
    weights: Vector
    added: Vector
    n_states: Places  # (1,), how many states there are
    best: Vector  # (1,), the likeliest term of P(x) so far
    share: Vector  # (1,), as in ``Limits``, raised where there are too many states
    slots: Places  # the hash table: place of a state plus generation
    generation: Places  # (1,), above all that was written before the table was last cleared
    n_slots: Places  # (1,), how many slots are in use: few for few states, so that they stay near the processor


@compiled
def n_bits(word: np.uint64) -> np.int64:
    """How many bits are set; the compiler recognises it and makes one instruction of it."""
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _products_of(pattern: np.uint64, factors: Vector | None) -> Vector | None:
    """For every byte of a set of wrong cells of this row, and each of its values, the product of their factors."""
    if factors is None:
        return None
    products = np.ones((8, 256))
    for byte in range(8):
        for bit in range(8):
            sensor = 8 * byte + bit
            factor = factors[sensor, np.int64((pattern >> np.uint64(sensor)) & ONE)]
            for value in range(1 << bit):
                products[byte, value + (1 << bit)] = factor * products[byte, value]
    return products


@compiled
def row_of(rows: StateRows, number: int, errors: Errors) -> Row:
    """One row with its costs."""
    pattern = rows.patterns[number]
    return Row(pattern, rows.observed[number], errors.powers, _products_of(pattern, errors.factors))


@compiled
def cost_of(wrong: np.uint64, powers: Vector, products: Vector | None) -> float:
    """What these wrong cells of a row cost together, f(wrong)."""
    if products is None:  # decided when compiled
        power: float = powers[n_bits(wrong)]
        return power
    cost, byte = 1.0, 0
    while wrong != NOTHING:
        cost *= products[byte, np.int64(wrong & LOW_BYTE)]
        wrong >>= BYTE
        byte += 1
    return cost


@compiled
def _in_order(rank: Places) -> Places:
    """The places of rising ranks, equal ones as they stand: they are few, and NumPy's sorts take seconds to compile."""
    order = np.empty(rank.size, np.int64)
    for k in range(rank.size):
        place = k
        while place > 0 and rank[order[place - 1]] > rank[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
    return order


@compiled
def _visible(row: Row, sources: StateSources, limits: Limits) -> _Visible:
    """The sources as a row sees them: those inside it first, wide ones before narrow ones."""
    n_sources = sources.sets.size
    rank = np.empty(n_sources, np.int64)
    for j in range(n_sources):
        seen = sources.sets[j] & row.observed
        rank[j] = 128 * n_bits(seen & ~row.pattern) - n_bits(seen & row.pattern)
    order = _in_order(rank)
    sets, odds, later = np.empty(n_sources, np.uint64), np.empty(n_sources), np.empty(n_sources + 1, np.uint64)
    later[n_sources] = NOTHING
    for k in range(n_sources - 1, -1, -1):
        sets[k], odds[k] = sources.sets[order[k]] & row.observed, sources.odds[order[k]]
        later[k] = later[k + 1]
        if odds[k] * cost_of(sets[k] & ~row.pattern, row.powers, row.products) > UNLIKELY * limits.reserve:
            later[k] |= sets[k]
    return _Visible(sets, odds, later)


@compiled
def _empty_list(most_states: int) -> _List:
    n_slots = FIRST_SLOTS
    while n_slots < SLOTS_PER_STATE * most_states:
        n_slots *= 4
    return _List(
        np.empty(most_states, np.uint64),
        np.empty(most_states),
        np.empty(most_states),
        np.zeros(1, np.int64),
        np.zeros(1),
        np.zeros(1),
        np.zeros(n_slots, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
    )


@compiled
def _clear_table(states: _List, n_slots: int) -> None:
    """Begin a generation above all places that were written before."""
    states.generation[0] += states.sets.size
    states.n_slots[0] = n_slots


@compiled
def _file(place: int, states: _List) -> None:
    """Enter a state that is not in the hash table."""
    mask = np.uint64(states.n_slots[0] - 1)
    slot = ((states.sets[place] * HASH_FACTOR) >> HASH_SHIFT) & mask
    while states.slots[slot] >= states.generation[0]:
        slot = (slot + ONE) & mask
    states.slots[slot] = states.generation[0] + place


@compiled
def _file_anew(n: int, states: _List) -> None:
    """Enter the first ``n`` states into a larger table."""
    _clear_table(states, 4 * states.n_slots[0])
    for place in range(n):
        _file(place, states)


@compiled
def _thin(later: np.uint64, row: Row, limits: Limits, states: _List) -> None:
    """Drop the states that can no longer become a fair share of the best."""
    n, bar = states.n_states[0], states.share[0] * states.best[0]
    kept = 0
    _clear_table(states, states.n_slots[0])
    for i in range(n):
        state, weight = states.sets[i], states.weights[i]
        missing = cost_of(row.pattern & ~state & ~later, row.powers, row.products)
        if weight * max(limits.reserve, missing) >= bar:
            states.sets[kept], states.weights[kept] = state, weight
            _file(kept, states)
            kept += 1
    states.n_states[0] = kept


@compiled
def _take(k: int, visible: _Visible, row: Row, limits: Limits, states: _List) -> None:
    """Let source ``k`` be on beside every state of the list.

    Everything is a local variable and the hash table is walked in place: that is three times as fast as with calls.
    """
    source, odds, later, pattern = visible.sets[k], visible.odds[k], visible.later[k + 1], row.pattern
    sets, weights, added, slots = states.sets, states.weights, states.added, states.slots
    powers, products, reserve, share = row.powers, row.products, limits.reserve, states.share[0]
    best, generation, mask = states.best[0], states.generation[0], np.uint64(states.n_slots[0] - 1)
    n_before = n = states.n_states[0]
    added[:n_before] = 0.0
    for i in range(n_before):
        joined = sets[i] | source
        weight = weights[i] * odds * cost_of(source & ~pattern & ~sets[i], powers, products)
        if weight < share * best:
            continue
        if weight * max(reserve, cost_of(pattern & ~joined & ~later, powers, products)) < share * best:
            continue
        slot = ((joined * HASH_FACTOR) >> HASH_SHIFT) & mask
        place = slots[slot] - generation
        while place >= 0 and sets[place] != joined:
            slot = (slot + ONE) & mask
            place = slots[slot] - generation
        if place >= n_before:
            weights[place] += weight
        elif place >= 0:  # it has its own turn, with its old weight
            added[place] += weight
        else:
            sets[n], weights[n], slots[slot] = joined, weight, generation + n
            best = max(best, weight * cost_of(pattern & ~joined, powers, products))
            n += 1
            if SLOTS_PER_STATE * n > states.n_slots[0]:
                _file_anew(n, states)
                generation, mask = states.generation[0], np.uint64(states.n_slots[0] - 1)
    for i in range(n_before):
        if added[i] > 0.0:
            weights[i] += added[i]
            best = max(best, weights[i] * cost_of(pattern & ~sets[i], powers, products))
    states.best[0], states.n_states[0] = best, n


@compiled
def _can_matter(k: int, visible: _Visible, row: Row, states: _List) -> bool:
    """Whether source ``k`` can be on beside any state: sources far outside the row cannot."""
    outside = visible.sets[k] & ~row.pattern
    if outside == NOTHING:
        return True
    reached, heaviest = NOTHING, 0.0
    for i in range(states.n_states[0]):
        reached |= states.sets[i]
        heaviest = max(heaviest, states.weights[i])
    alone = cost_of(outside & ~reached, row.powers, row.products)
    return bool(heaviest * visible.odds[k] * alone >= states.share[0] * states.best[0])


@compiled
def _nothing_seen(visible: _Visible, silence: float) -> float:
    """The probability that all sources are off whose sensors the row observed."""
    for k in range(visible.sets.size):
        if visible.sets[k] == NOTHING:
            silence *= 1.0 + visible.odds[k]
    return silence


@compiled
def _walk(row: Row, sources: StateSources, limits: Limits, states: _List) -> bool:
    """Fill the list of one row; return whether there were too many states."""
    visible = _visible(row, sources, limits)
    _clear_table(states, FIRST_SLOTS)
    states.share[0] = limits.share
    quiet = _nothing_seen(visible, sources.silence)
    states.best[0] = quiet * cost_of(row.pattern, row.powers, row.products)
    states.sets[0], states.weights[0], states.n_states[0] = NOTHING, quiet, 1
    _file(0, states)
    cut = False
    for k in range(visible.sets.size):
        while states.n_states[0] > limits.most_states // 2:
            cut = True
            states.share[0] *= 2.0
            _thin(visible.later[k], row, limits, states)
        if visible.sets[k] != NOTHING and _can_matter(k, visible, row, states):
            _take(k, visible, row, limits, states)
    return cut


@compiled
def _close(row: Row, limits: Limits, states: _List) -> float:
    """Keep the states that are a fair share of P(x) / B(x), which is returned; the likeliest always stays."""
    total, likeliest = 0.0, 0.0
    for i in range(states.n_states[0]):
        term = states.weights[i] * cost_of(row.pattern & ~states.sets[i], row.powers, row.products)
        total += term
        likeliest = max(likeliest, term)
    states.share[0] = limits.share  # which a row with too many states had raised
    states.best[0] = min(total, likeliest / limits.share)
    _thin(NOTHING, row, limits, states)
    return total


@compiled
def hidden_states(
    rows: StateRows, sources: StateSources, errors: Errors, limits: Limits
) -> tuple[Places, Words, Vector, Vector, NDArray[np.bool_]]:
    """The likely states of every row, as far as the limits allow: the parts of ``States``, in its order.

    Not ``States`` itself: numba makes a NamedTuple by running Python, where a Ctrl-C that came during the loop would be
    raised, and crash the process.
    """
    n_rows = rows.patterns.size
    starts, chance, cut = np.empty(n_rows + 1, np.int64), np.empty(n_rows), np.empty(n_rows, np.bool_)
    starts[:], chance[:], cut[:] = 0, 0.0, False
    sets, weights = np.empty(FIRST_ROOM, np.uint64), np.empty(FIRST_ROOM)
    states = _empty_list(limits.most_states)
    for number in range(n_rows):
        if starts[number] > limits.most_in_all:
            starts[number + 1 :] = starts[number]
            break
        row = row_of(rows, number, errors)
        cut[number] = _walk(row, sources, limits, states)
        chance[number] = _close(row, limits, states)
        begin, n = starts[number], states.n_states[0]
        if begin + n > sets.size:
            sets, weights = _moved(begin, sets, weights, 2 * sets.size + n)
        for i in range(n):
            sets[begin + i], weights[begin + i] = states.sets[i], states.weights[i]
        starts[number + 1] = begin + n
    n_states = starts[n_rows]
    sets, weights = _moved(n_states, sets, weights, n_states)
    return starts, sets, weights, chance, cut


@compiled
def _moved(n: int, sets: Words, weights: Vector, room: int) -> tuple[Words, Vector]:
    """The first ``n`` states in arrays that have this much room."""
    all_sets, all_weights = np.empty(room, np.uint64), np.empty(room)
    for i in range(n):
        all_sets[i], all_weights[i] = sets[i], weights[i]
    return all_sets, all_weights
