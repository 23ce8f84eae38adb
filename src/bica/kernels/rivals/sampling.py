"""Random walks through Boolean factors, one bit after another.

``says[t, j]`` are the log odds that cell (t, j) is truly on, given what it shows; 0 where it was not observed.
``cover[t, j]`` is the number of sources k that explain the cell: ``activity[t, k]`` and ``mixing[k, j]`` are both on.
A bit is flipped with probability min(1, p(flipped) / p(as it is)), which leaves the posterior unchanged and moves more
often than drawing the bit anew ("Metropolised" Gibbs sampling). ``draws`` are uniform numbers, one per bit.
"""

import numpy as np
from numpy.typing import NDArray

from bica.kernels.bits import Cells
from bica.kernels.compiled import compiled
from bica.kernels.rows.decoding import uniform

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]
MOST_NEW = 8  # sources of one sensor that may appear at once


@compiled
def flip_activity(
    says: Floats, mixing: Cells, prior_odds: float, draws: Floats, activity: Cells, cover: Counts
) -> None:
    """One sweep over the activity bits; ``prior_odds`` are the log odds that such a bit is on."""
    n_rows, n_sensors = says.shape
    for t in range(n_rows):
        for k in range(mixing.shape[0]):
            odds = prior_odds
            for j in range(n_sensors):
                if mixing[k, j] and cover[t, j] == activity[t, k]:  # no other source explains the cell
                    odds += says[t, j]
            if draws[t, k] < np.exp(-odds if activity[t, k] else odds):
                change = 1 - 2 * np.int32(activity[t, k])
                activity[t, k] = 1 - activity[t, k]
                for j in range(n_sensors):
                    cover[t, j] += change * mixing[k, j]


@compiled
def flip_mixing(says: Floats, activity: Cells, prior_odds: float, draws: Floats, mixing: Cells, cover: Counts) -> None:
    """One sweep over the mixing bits, those of one source at once: given the activity they are independent."""
    n_rows, n_sensors = says.shape
    odds, change = np.empty(n_sensors), np.empty(n_sensors, np.int32)
    for k in range(mixing.shape[0]):
        for j in range(n_sensors):
            odds[j] = prior_odds
        for t in range(n_rows):
            if activity[t, k]:
                for j in range(n_sensors):
                    odds[j] += says[t, j] if cover[t, j] == mixing[k, j] else 0.0
        for j in range(n_sensors):
            flipped = draws[k, j] < np.exp(-odds[j] if mixing[k, j] else odds[j])
            change[j] = (1 - 2 * np.int32(mixing[k, j])) * flipped
            mixing[k, j] += change[j]
        for t in range(n_rows):
            if activity[t, k]:
                for j in range(n_sensors):
                    cover[t, j] += change[j]


@compiled
def explained_wrongly(cells: Cells, cover: Counts) -> int:
    """How many cells show 0 although they are covered, or 1 although they are not; other cells do not count."""
    wrong = 0
    for t in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            wrong += (cells[t, j] == 0 and cover[t, j] > 0) or (cells[t, j] == 1 and cover[t, j] == 0)
    return wrong


# Hidden causes with an Indian buffet prior. ``links`` is (n_sensors, room) and ``activity`` (n_rows, room); their first
# ``n_sources`` columns are in use. ``cover[t, i]`` counts the sources that are on in row t and reach sensor i.
# ``log_shown[x, c]`` is the log of the probability that a cell shows x if c sources cover it. Random numbers are those
# of one ``stream``, by a counter.


@compiled
def _remove_source(source: int, n_sources: int, links: Cells, activity: Cells) -> None:
    """Put the last source in the place of this one."""
    last = n_sources - 1
    for i in range(links.shape[0]):
        links[i, source] = links[i, last]
        links[i, last] = 0
    for t in range(activity.shape[0]):
        activity[t, source] = activity[t, last]
        activity[t, last] = 0


@compiled
def draw_links_of(
    sensor: int,
    cells: Cells,
    log_shown: Floats,
    flat: float,
    n_sources: int,
    links: Cells,
    activity: Cells,
    cover: Counts,
    stream: np.uint64,
) -> None:
    """Draw which of the present sources reach a sensor, given how many other sensors each of them reaches.

    The prior odds of a link are (others + ``flat``) to (sensors - others): ``flat`` is 0 for the buffet, where a source
    that reaches no other sensor is left alone, and 1 for links of unknown frequency.
    """
    n_sensors = links.shape[0]
    for k in range(n_sources):
        others = 0
        for i in range(n_sensors):
            others += links[i, k]
        others -= links[sensor, k]
        if others + flat == 0.0:
            continue
        odds = np.log((others + flat) / (n_sensors - others))
        for t in range(cells.shape[0]):
            if activity[t, k]:
                without = cover[t, sensor] - links[sensor, k]
                odds += log_shown[cells[t, sensor], without + 1] - log_shown[cells[t, sensor], without]
        on = np.uint8(uniform(stream, k) * (1.0 + np.exp(-odds)) < 1.0)
        if on != links[sensor, k]:
            change = np.int32(on) - np.int32(links[sensor, k])
            links[sensor, k] = on
            for t in range(cells.shape[0]):
                cover[t, sensor] += change * activity[t, k]


@compiled
def _forget_own_sources(sensor: int, n_sources: int, links: Cells, activity: Cells, cover: Counts) -> int:
    """Remove the sources that reach this sensor alone; return how many are left."""
    for k in range(n_sources - 1, -1, -1):
        reached = 0
        for i in range(links.shape[0]):
            reached += links[i, k]
        if links[sensor, k] and reached == 1:
            for t in range(activity.shape[0]):
                cover[t, sensor] -= activity[t, k]
            _remove_source(k, n_sources, links, activity)
            n_sources -= 1
    return n_sources


@compiled
def _draw_number(weight: Floats, random: float) -> int:
    """A number with a probability in proportion to its weight."""
    total = 0.0
    for value in weight:
        total += value
    chosen, rest = 0, random * total - weight[0]
    while rest >= 0.0 and chosen < weight.size - 1:
        chosen += 1
        rest -= weight[chosen]
    return chosen


@compiled
def _log_weight(new: int, log_mean: float, tally: Floats, log_shown: Floats, log_missed: float) -> float:
    """The log of prior times likelihood of so many new sources, each quiet with the log probability ``log_missed``.

    ``tally[x, c]`` counts the cells of the sensor that show x and are covered by c sources.
    """
    value = new * log_mean
    for step in range(new):
        value -= np.log(step + 1.0)
    for c in range(tally.shape[1]):
        log_quiet = log_shown[0, c] + new * log_missed
        value += tally[0, c] * log_quiet
        if tally[1, c] > 0.0:
            value += tally[1, c] * np.log(-np.expm1(log_quiet))
    return value


@compiled
def draw_new_sources(
    sensor: int,
    cells: Cells,
    log_shown: Floats,
    log_mean: float,
    probability: float,
    n_sources: int,
    links: Cells,
    activity: Cells,
    cover: Counts,
    stream: np.uint64,
) -> int:
    """Draw anew the sources that reach this sensor alone; return how many sources there are then.

    Their number has a Poisson prior with the log mean ``log_mean``; their activity is summed out, then drawn.
    """
    n_sources = _forget_own_sources(sensor, n_sources, links, activity, cover)
    tally = np.zeros((2, n_sources + 1))
    for t in range(cells.shape[0]):
        tally[cells[t, sensor], cover[t, sensor]] += 1.0
    log_missed = np.log1p(probability * np.expm1(log_shown[0, 1] - log_shown[0, 0]))  # off, or on and not reaching
    weight = np.empty(min(MOST_NEW, links.shape[1] - n_sources) + 1)
    best = -np.inf
    for new in range(weight.size):
        weight[new] = _log_weight(new, log_mean, tally, log_shown, log_missed)
        best = max(best, weight[new])
    for new in range(weight.size):
        weight[new] = np.exp(weight[new] - best)
    chosen = _draw_number(weight, uniform(stream, 0))
    if chosen == 0:
        return n_sources
    for t in range(cells.shape[0]):
        _draw_new_activity(t, sensor, chosen, cells, log_shown, probability, n_sources, activity, cover, stream)
    for k in range(n_sources, n_sources + chosen):
        links[sensor, k] = 1
    return n_sources + chosen


@compiled
def _draw_new_activity(
    t: int,
    sensor: int,
    n_new: int,
    cells: Cells,
    log_shown: Floats,
    probability: float,
    n_sources: int,
    activity: Cells,
    cover: Counts,
    stream: np.uint64,
) -> None:
    """Draw which of the new sources of a sensor are on in row t, given its cell: first how many, then which."""
    weight, ways = np.empty(n_new + 1), 1.0
    for on in range(n_new + 1):
        shown = np.exp(log_shown[cells[t, sensor], cover[t, sensor] + on])
        weight[on] = ways * probability**on * (1.0 - probability) ** (n_new - on) * shown
        ways *= (n_new - on) / (on + 1.0)
    step = 1 + t * (MOST_NEW + 1)
    left = _draw_number(weight, uniform(stream, step))
    cover[t, sensor] += left
    for k in range(n_new):
        on_now = uniform(stream, step + 1 + k) * (n_new - k) < left
        activity[t, n_sources + k] = on_now
        left -= on_now


@compiled
def draw_activity(
    cells: Cells,
    log_shown: Floats,
    prior_odds: float,
    n_sources: int,
    links: Cells,
    activity: Cells,
    cover: Counts,
    stream: np.uint64,
) -> None:
    """One Gibbs sweep over the activity; ``prior_odds`` are the log odds that a source is on."""
    for t in range(cells.shape[0]):
        for k in range(n_sources):
            odds = prior_odds
            for i in range(links.shape[0]):
                if links[i, k]:
                    without = cover[t, i] - activity[t, k]
                    odds += log_shown[cells[t, i], without + 1] - log_shown[cells[t, i], without]
            on = np.uint8(uniform(stream, t * n_sources + k) * (1.0 + np.exp(-odds)) < 1.0)
            if on != activity[t, k]:
                change = np.int32(on) - np.int32(activity[t, k])
                activity[t, k] = on
                for i in range(links.shape[0]):
                    cover[t, i] += change * links[i, k]
