"""A random walk over sets of sources with their rates and noise, which is where it is as often as that is probable.

One step takes a source out, or none, and asks what the others leave: the source may come, go, change its rate or its
sensors. Then two sources may exchange sensors, and the noise may change. Each change is accepted by the rule of
Metropolis and Hastings, so the share of steps at a set of sources tends to the posterior probability of the set. The
random numbers are given, a row for each step.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.lattice.likelihood import CellGroups, read_cells
from bica.kernels.lattice.subsets import GROUP, Lattice, apply_matrices, mix_source

Sets = NDArray[np.int64]
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SET_CHANGES = 4  # tried at one source before the next is taken out
UNIFORMS, NORMALS = 13 + 3 * SET_CHANGES, 5 + SET_CHANGES  # random numbers of one step
RATE_STEP, SET_STEP, PAIR_STEP = 0.4, 0.3, 0.2  # standard deviation of a log rate's change, alone and with sensors
NEW_STEP = 0.5  # the same for a new source, around the rate that was proposed
NOISE_STEPS = (0.1, 0.7)  # the same for log rates of noise: small and large
ONE_SENSOR, TWO_SENSORS = 0.45, 0.7  # up to which uniform number one sensor changes, or one for another; else the set
CLEAR = 0.003  # rates of noise from which on rounding of differences does not show in what is observed
TOGETHER = 4  # cells of one weight whose probabilities are multiplied before their logarithm is taken
LEAST_PRODUCT = 1e-250  # of so many


class NoisyRows(NamedTuple):
    """What was observed, and how sensors err: known rates plus a linear map of unknown ones, as in ``NoiseShape``."""

    groups: CellGroups
    weights: Vector  # (n_cells,)
    false_alarm: Vector  # (n_sensors,)
    miss: Vector  # (n_sensors,)
    false_alarm_of: Matrix  # (n_sensors, n_unknown)
    miss_of: Matrix  # (n_sensors, n_unknown)
    lowest: float
    highest: Vector  # (n_unknown,)


class Beliefs(NamedTuple):
    """The prior: of how many sources of each size there are, and of log rates, a multivariate Student distribution."""

    size: Sets  # (2^n_sensors,), of each set; -1 where it may be no source
    by_size: Matrix  # (n_sensors + 1, most + 1), the log prior of certain 0, 1, ... sets of each size
    by_number: Vector  # (most + 1,), the log prior of 0, 1, ... sources, apart from their sizes
    constant: Vector  # (most + 1,), the log density of 0, 1, ... log rates is constant - degrees log(scatter)
    degrees: Vector  # (most + 1,)
    mean: float
    mean_count: float
    scatter: float


class Suggestions(NamedTuple):
    """Where new sources are looked for."""

    share: Vector  # (2^n_sensors,), the probability that a set is suggested
    cumulative: Vector  # (2^n_sensors,)
    log_rate: Vector  # (2^n_sensors,), around which its log rate is drawn


class Place(NamedTuple):
    """Where the walk is; arrays change in place."""

    sources: Sets  # (most,), known ones first
    log_rate: Vector  # (most,)
    free: NDArray[np.bool_]  # (most,), whether the rate may change
    noise: Vector  # (n_unknown,)
    number: Sets  # (2,), how many sources, and how many of them are known
    height: Vector  # (1,), the log-likelihood
    moves: Sets  # (1,), how often the walk has moved


class CellsWithout(NamedTuple):
    """What was observed, seen from one source that was taken out, or from none."""

    shown: Lattice  # (2^n_sensors,), the distribution of what sensors show of the other sources
    matrices: NDArray[np.float64]  # (n_sensors, 2, 2), the channel of every sensor
    off: Vector  # (n_cells,), the probability of every cell given that the source is off
    on: Vector  # (n_cells,), given that it is on
    room: Lattice  # (2^n_sensors,), for sums


class Around(NamedTuple):
    """Where the walk is, as long as it stays there."""

    cells: CellsWithout  # none is taken out
    since: Sets  # (1,), the number of moves until there


@compiled
def _set_matrices(rows: NoisyRows, noise: Vector, matrices: NDArray[np.float64]) -> float:
    """The channel of every sensor; returns the lowest of all rates of noise."""
    lowest = 1.0
    for sensor in range(rows.miss.size):
        false_alarm, miss = rows.false_alarm[sensor], rows.miss[sensor]
        for k in range(noise.size):
            false_alarm += rows.false_alarm_of[sensor, k] * noise[k]
            miss += rows.miss_of[sensor, k] * noise[k]
        matrices[sensor, 0, 0], matrices[sensor, 0, 1] = 1.0 - false_alarm, miss
        matrices[sensor, 1, 0], matrices[sensor, 1, 1] = false_alarm, 1.0 - miss
        lowest = min(lowest, false_alarm, miss)
    return lowest


@compiled
def _room_for(rows: NoisyRows, n_sets: int) -> CellsWithout:
    n_cells, n_sensors = rows.weights.size, rows.miss.size
    matrices = np.empty((n_sensors, 2, 2))
    return CellsWithout(np.empty(n_sets), matrices, np.empty(n_cells), np.empty(n_cells), np.empty(n_sets))


# The probability that nothing outside a set of sensors is on is the product of (1 - p) over all sources that reach
# beyond the set: one multiplication per set and source, while a distribution takes sums that wait for each other. What
# sensors show follows by one pass per sensor, its matrix after differences. These round to 1e-16 of the whole, so where
# there is next to no noise, and some rows are that rare, all is done by sums of positive numbers instead.


@compiled
def _take_out(place: Place, left_out: int, rows: NoisyRows, cells: CellsWithout) -> None:
    """What is shown with one source left out, or none for -1, and how probable it makes what was observed."""
    shown = cells.shown
    lowest = _set_matrices(rows, place.noise, cells.matrices)
    if lowest < CLEAR:
        _mix(place, left_out, shown)
        apply_matrices(shown, cells.matrices)
    else:
        _be_silent(place, left_out, shown)
        after_differences = np.empty(cells.matrices.shape)
        for sensor in range(rows.miss.size):
            for state in range(2):
                quiet, on = cells.matrices[sensor, state, 0], cells.matrices[sensor, state, 1]
                after_differences[sensor, state, 0], after_differences[sensor, state, 1] = quiet - on, on
        apply_matrices(shown, after_differences)
    read_cells(shown, rows.groups.unobserved, rows.groups.starts, rows.groups.cells, cells.off)


@compiled
def _mix(place: Place, left_out: int, hidden: Lattice) -> None:
    """The distribution of what the sources switch on."""
    hidden[:] = 0.0
    hidden[0] = 1.0
    for j in range(place.number[0]):
        if j != left_out:
            mix_source(hidden, place.sources[j], -math.expm1(-math.exp(place.log_rate[j])))


@compiled
def _silence_source(silence: Lattice, source: int, off: float) -> None:
    for s in range(silence.size):
        silence[s] *= off + (1.0 - off) * (s & source == source)  # without a branch, many sets are done at once


@compiled
def _be_silent(place: Place, left_out: int, silence: Lattice) -> None:
    """The probability of every set of sensors that the sources switch on nothing outside it."""
    silence[:] = 1.0
    for j in range(place.number[0]):
        if j != left_out:
            _silence_source(silence, place.sources[j], math.exp(-math.exp(place.log_rate[j])))


@compiled
def _switch_on(cells: CellsWithout, source: int, groups: CellGroups) -> None:
    """The probability of every cell given that the source is on.

    A sensor that is on errs by itself, whatever else is there: both of its states are summed and shared out anew.
    """
    table, matrices = cells.room, cells.matrices
    for s in range(table.size):
        table[s] = cells.shown[s]
    bit = 1
    for sensor in range(matrices.shape[0]):
        if source & bit:
            quiet, on = matrices[sensor, 0, 1], matrices[sensor, 1, 1]
            if bit < GROUP:
                for s in range(table.size):
                    if s & bit == 0:
                        both = table[s] + table[s | bit]
                        table[s], table[s | bit] = quiet * both, on * both
            else:
                for start in range(0, table.size, 2 * bit):
                    low, high = table[start : start + bit], table[start + bit : start + 2 * bit]
                    for s in range(bit):
                        both = low[s] + high[s]
                        low[s], high[s] = quiet * both, on * both
        bit <<= 1
    read_cells(table, groups.unobserved, groups.starts, groups.cells, cells.on)


@compiled
def _height(off: Vector, on: Vector, log_rate: float, weights: Vector) -> float:
    """The log-likelihood, from the cells given that a source is off and on; quickest if equal weights follow."""
    probability, height, k = -math.expm1(-math.exp(log_rate)), 0.0, 0
    while k < weights.size:
        n_equal = 1
        if k + TOGETHER <= weights.size:
            while n_equal < TOGETHER and weights[k + n_equal] == weights[k]:
                n_equal += 1
        if n_equal == TOGETHER:
            product, least = 1.0, 1.0
            for i in range(k, k + TOGETHER):
                value = off[i] + probability * (on[i] - off[i])
                product *= value
                least = min(least, value)
            if least > 0.0 and product > LEAST_PRODUCT:
                height += weights[k] * math.log(product)
                k += TOGETHER
                continue
        value = off[k] + probability * (on[k] - off[k])
        if value <= 0.0:
            return -np.inf
        height += weights[k] * math.log(value)
        k += 1
    return height


@compiled
def _log_prior(place: Place, number: int, beliefs: Beliefs) -> float:
    """Of the first so many sources and their rates; minus infinity where a set may be no source or is there twice."""
    counts = np.zeros(beliefs.by_size.shape[0], np.int64)
    total, squares = 0.0, 0.0
    for j in range(number):
        apart = place.log_rate[j] - beliefs.mean
        total += apart
        squares += apart * apart
        if j >= place.number[1]:
            size = beliefs.size[place.sources[j]]
            if size < 0:
                return -np.inf
            counts[size] += 1
            for other in range(j):
                if place.sources[other] == place.sources[j]:
                    return -np.inf
    scatter = beliefs.scatter + 0.5 * (squares - total * total / (beliefs.mean_count + number))
    prior = beliefs.constant[number] - beliefs.degrees[number] * math.log(scatter) + beliefs.by_number[number]
    for size in range(counts.size):
        prior += beliefs.by_size[size, counts[size]]
    return float(prior)


@compiled
def _log_suggested(source: int, log_rate: float, suggestions: Suggestions) -> float:
    """The log density of this suggestion."""
    apart = (log_rate - suggestions.log_rate[source]) / NEW_STEP
    density = -0.5 * apart * apart - math.log(NEW_STEP * math.sqrt(2.0 * math.pi))
    return math.log(suggestions.share[source]) + float(density)


@compiled
def _move(place: Place, height: float) -> None:
    """Note that the walk is somewhere else now, where the log-likelihood is this."""
    place.height[0] = height
    place.moves[0] += 1


@compiled
def _come(
    place: Place,
    rows: NoisyRows,
    beliefs: Beliefs,
    suggestions: Suggestions,
    around: Around,
    uniform: Vector,
    normal: Vector,
) -> None:
    """A new source may come."""
    number, cells = place.number[0], around.cells
    if number + 1 >= place.sources.size:
        return
    source = np.searchsorted(suggestions.cumulative, uniform[0] * suggestions.cumulative[-1], "right")
    before = _log_prior(place, number, beliefs)
    place.sources[number], place.free[number] = source, True
    place.log_rate[number] = suggestions.log_rate[source] + NEW_STEP * normal[0]
    change = _log_prior(place, number + 1, beliefs) - before
    if change == -np.inf:
        return
    if around.since[0] != place.moves[0]:
        _take_out(place, -1, rows, cells)
        around.since[0] = place.moves[0]
    _switch_on(cells, source, rows.groups)
    height = _height(cells.off, cells.on, place.log_rate[number], rows.weights)
    change += height - place.height[0] - _log_suggested(source, place.log_rate[number], suggestions)
    if math.log(uniform[1]) < change - math.log(number + 1.0):
        place.number[0] = number + 1
        _move(place, height)


@compiled
def _swap(place: Place, one: int, other: int) -> None:
    source, log_rate = place.sources[one], place.log_rate[one]
    place.sources[one], place.log_rate[one] = place.sources[other], place.log_rate[other]
    place.sources[other], place.log_rate[other] = source, log_rate


@compiled
def _other_sensors(source: int, n_sensors: int, uniform: Vector, suggestions: Suggestions) -> int:
    """The source with one sensor more or less, with one for another, or a suggestion instead."""
    if uniform[0] < ONE_SENSOR:
        return source ^ (1 << int(uniform[1] * n_sensors))
    if uniform[0] < TWO_SENSORS:
        pair = int(uniform[1] * n_sensors * n_sensors)
        bits = (1 << pair // n_sensors) | (1 << pair % n_sensors)
        return source if source & bits in (0, bits) else source ^ bits
    return int(np.searchsorted(suggestions.cumulative, uniform[1] * suggestions.cumulative[-1], "right"))


@compiled
def _change_rate(
    place: Place, chosen: int, rows: NoisyRows, beliefs: Beliefs, cells: CellsWithout, uniform: float, normal: float
) -> None:
    before, prior = place.log_rate[chosen], _log_prior(place, place.number[0], beliefs)
    place.log_rate[chosen] = before + RATE_STEP * normal
    change = _log_prior(place, place.number[0], beliefs) - prior
    height = _height(cells.off, cells.on, place.log_rate[chosen], rows.weights)
    if math.log(uniform) < height + change - place.height[0]:
        _move(place, height)
    else:
        place.log_rate[chosen] = before


@compiled
def _change_sensors(
    place: Place,
    chosen: int,
    rows: NoisyRows,
    beliefs: Beliefs,
    suggestions: Suggestions,
    cells: CellsWithout,
    uniform: Vector,
    normal: float,
) -> None:
    """The source that was taken out may have other sensors, and a rate nearby."""
    before, log_rate, n_sensors = place.sources[chosen], place.log_rate[chosen], rows.miss.size
    changed = _other_sensors(before, n_sensors, uniform, suggestions)
    if changed == before:
        return
    change = -_log_prior(place, place.number[0], beliefs)
    if uniform[0] >= TWO_SENSORS:
        change += math.log(suggestions.share[before]) - math.log(suggestions.share[changed])
    place.sources[chosen], place.log_rate[chosen] = changed, log_rate + SET_STEP * normal
    change += _log_prior(place, place.number[0], beliefs)
    height = 0.0
    if change > -np.inf:
        _switch_on(cells, changed, rows.groups)
        height = _height(cells.off, cells.on, place.log_rate[chosen], rows.weights)
    if math.log(uniform[2]) < height + change - place.height[0]:
        _move(place, height)
    else:
        place.sources[chosen], place.log_rate[chosen] = before, log_rate


@compiled
def _go_or_change(
    place: Place,
    rows: NoisyRows,
    beliefs: Beliefs,
    suggestions: Suggestions,
    cells: CellsWithout,
    uniform: Vector,
    normal: Vector,
) -> None:
    """One source may go; else its rate and its sensors may change."""
    number, n_known = place.number[0], place.number[1]
    if number == 0:
        return
    chosen = int(uniform[0] * number)
    _take_out(place, chosen, rows, cells)
    _switch_on(cells, place.sources[chosen], rows.groups)
    if chosen >= n_known:
        prior = _log_prior(place, number, beliefs)
        _swap(place, chosen, number - 1)
        chosen = number - 1
        height = _height(cells.off, cells.on, -np.inf, rows.weights)
        change = height - place.height[0] + _log_prior(place, number - 1, beliefs) - prior
        change += _log_suggested(place.sources[chosen], place.log_rate[chosen], suggestions)
        if math.log(uniform[1]) < change + math.log(float(number)):
            place.number[0] = number - 1
            _move(place, height)
            return
    if place.free[chosen]:
        for k in range(2):
            _change_rate(place, chosen, rows, beliefs, cells, uniform[2 + k], normal[k])
    if chosen >= n_known:
        for k in range(SET_CHANGES):
            _change_sensors(place, chosen, rows, beliefs, suggestions, cells, uniform[4 + 3 * k :], normal[2 + k])


@compiled
def _height_here(place: Place, rows: NoisyRows, cells: CellsWithout) -> float:
    """The log-likelihood where the walk is."""
    _take_out(place, -1, rows, cells)
    return _height(cells.off, cells.off, -np.inf, rows.weights)


@compiled
def _change_two(
    place: Place, rows: NoisyRows, beliefs: Beliefs, cells: CellsWithout, uniform: Vector, normal: Vector
) -> None:
    """Two sources may change in the same sensor, or one of them in all sensors of the other."""
    number, n_known = place.number[0], place.number[1]
    if number - n_known < 2:
        return
    one = n_known + int(uniform[0] * (number - n_known))
    other = n_known + int(uniform[1] * (number - n_known))
    if one == other:
        return
    before, first, second = _log_prior(place, number, beliefs), place.sources[one], place.sources[other]
    first_rate, second_rate = place.log_rate[one], place.log_rate[other]
    bit = 1 << int(uniform[2] * rows.miss.size)
    if uniform[3] < 0.5:
        place.sources[one], place.sources[other] = first ^ bit, second ^ bit
    else:
        place.sources[other] = second ^ first
    place.log_rate[one] += PAIR_STEP * normal[0]
    place.log_rate[other] += PAIR_STEP * normal[1]
    change, height = _log_prior(place, number, beliefs) - before, 0.0
    if change > -np.inf:
        height = _height_here(place, rows, cells)
    if math.log(uniform[4]) < change + height - place.height[0]:
        _move(place, height)
    else:
        place.sources[one], place.sources[other] = first, second
        place.log_rate[one], place.log_rate[other] = first_rate, second_rate


@compiled
def _change_noise(place: Place, rows: NoisyRows, cells: CellsWithout, uniform: Vector, normal: Vector) -> None:
    """One unknown rate of the noise may change; all values between its bounds are equally probable beforehand."""
    if place.noise.size == 0:
        return
    k = int(uniform[0] * place.noise.size)
    before = place.noise[k]
    step = normal[0] * (NOISE_STEPS[0] if uniform[1] < 0.8 else NOISE_STEPS[1])
    place.noise[k] = before * math.exp(step)
    if rows.lowest < place.noise[k] < rows.highest[k]:
        height = _height_here(place, rows, cells)
        if math.log(uniform[2]) < height - place.height[0] + step:
            _move(place, height)
            return
    place.noise[k] = before


@compiled
def walk(
    place: Place,
    rows: NoisyRows,
    beliefs: Beliefs,
    suggestions: Suggestions,
    uniforms: Matrix,
    normals: Matrix,
    visited: NDArray[np.int64],
    log_rates: Matrix,
    noises: Matrix,
) -> None:
    """Walk, a step for each row of random numbers; evenly spaced places go to ``visited``, with 0 for no source."""
    every = uniforms.shape[0] // visited.shape[0]
    cells, around = _room_for(rows, beliefs.size.size), Around(_room_for(rows, beliefs.size.size), np.full(1, -1))
    place.height[0] = _height_here(place, rows, cells)
    for step in range(every * visited.shape[0]):
        uniform, normal = uniforms[step], normals[step]
        if uniform[0] < 0.5:
            _come(place, rows, beliefs, suggestions, around, uniform[1:], normal)
        else:
            _go_or_change(place, rows, beliefs, suggestions, cells, uniform[1:], normal)
        _change_two(place, rows, beliefs, cells, uniform[5 + 3 * SET_CHANGES :], normal[2 + SET_CHANGES :])
        if step % 4 == 0:
            _change_noise(place, rows, cells, uniform[10 + 3 * SET_CHANGES :], normal[4 + SET_CHANGES :])
        if (step + 1) % every == 0:
            kept = step // every
            for j in range(place.number[0]):
                visited[kept, j], log_rates[kept, j] = place.sources[j], place.log_rate[j]
            for k in range(place.noise.size):
                noises[kept, k] = place.noise[k]
