"""Which sources were on in each row: the best choice (greedy, then dropping each in turn), or one drawn at random."""

from typing import NamedTuple

import numpy as np

from bica.kernels.compiled import compiled
from bica.kernels.rows.gains import (
    CELL,
    COVER,
    HOT,
    IS_HOT,
    MOVED,
    N_CANDIDATES,
    N_HOT,
    N_MOVED,
    ON,
    ONE,
    PLACE,
    SOURCE,
    STAMP,
    USEFUL,
    ZERO,
    Ints,
    Lists,
    Numbers,
    Places,
    RowCells,
    Sources,
    gather,
    leave,
    switch,
    work_space,
    worth,
)

MOST_PASSES = 3  # of dropping each active source in turn
ROOM_PER_ROW = 8  # active sources; more room is made when it is full


class Activity(NamedTuple):
    """Which sources are on in each row, and what that gains."""

    active: Lists  # the sources of each row
    loss: Numbers  # for each entry of ``active``, what the row loses without it, once others have stepped in
    gain: Numbers  # (n_rows,), what the active sources gain against none


@compiled
def _best(skipped: int, slot: Ints, gain: Numbers, count: Places) -> int:
    """The candidate with the largest positive gain, or -1; takes those that no longer gain off the hot list."""
    best, top, k = -1, USEFUL, 0
    while k < count[N_HOT]:
        b = slot[HOT, k]
        if slot[ON, b] or gain[b] <= USEFUL:
            count[N_HOT] -= 1
            slot[IS_HOT, b], slot[HOT, k] = 0, slot[HOT, count[N_HOT]]
            continue
        if b != skipped and gain[b] > top:
            best, top = b, gain[b]
        k += 1
    return best


@compiled
def _complete(
    skipped: int, n_logged: int, log: Ints, starts: Places, sensors: Ints, reach_starts: Places, reach: Ints,
    says: Numbers, cell: Ints, slot: Ints, gain: Numbers, count: Places,
) -> tuple[float, int]:  # fmt: skip
    """Add the best candidate until none helps; return what was gained, and the new length of the log of switches."""
    gained = 0.0
    b = _best(skipped, slot, gain, count)
    while b >= 0 and n_logged < log.size:
        gained += gain[b]
        switch(b, starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
        log[n_logged] = b
        n_logged += 1
        b = _best(skipped, slot, gain, count)
    return gained, n_logged


@compiled
def _remove_useless(
    n_logged: int, log: Ints, starts: Places, sensors: Ints, reach_starts: Places, reach: Ints, says: Numbers,
    cell: Ints, slot: Ints, gain: Numbers, count: Places,
) -> tuple[float, int]:  # fmt: skip
    """Switch off what became useless since the last stamp; return what was gained, and the new length of the log."""
    gained = 0.0
    k = 0
    while k < count[N_MOVED]:
        b = slot[MOVED, k]
        if slot[ON, b] and n_logged < log.size:
            value = worth(b, starts, sensors, says, cell, slot, gain)
            if value < -USEFUL:
                gained -= value
                switch(b, starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
                log[n_logged] = b
                n_logged += 1
        k += 1
    return gained, n_logged


@compiled
def _without(
    b: int, log: Ints, starts: Places, sensors: Ints, reach_starts: Places, reach: Ints, says: Numbers,
    cell: Ints, slot: Ints, gain: Numbers, count: Places,
) -> float:  # fmt: skip
    """Drop ``b`` and let others step in; undo that unless the row gains. Returns the gain, which may be negative."""
    count[STAMP] += 1
    count[N_MOVED] = 0
    gained = -worth(b, starts, sensors, says, cell, slot, gain)
    switch(b, starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
    log[0] = b
    added, n_logged = _complete(b, 1, log, starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
    gained += added
    if n_logged > 1:
        removed, n_logged = _remove_useless(
            n_logged, log, starts, sensors, reach_starts, reach, says, cell, slot, gain, count
        )
        gained += removed
    if gained <= USEFUL:
        for k in range(n_logged - 1, -1, -1):
            switch(log[k], starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
    return gained


@compiled
def _search(
    loss: Numbers, log: Ints, starts: Places, sensors: Ints, reach_starts: Places, reach: Ints, says: Numbers,
    cell: Ints, slot: Ints, gain: Numbers, count: Places,
) -> float:  # fmt: skip
    """Decode one row from where it stands; returns what was gained, and the loss of each active candidate."""
    loss[: count[N_CANDIDATES]] = np.nan
    gained, _ = _complete(-1, 0, log, starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
    for _ in range(MOST_PASSES):
        improved = False
        for b in range(count[N_CANDIDATES]):
            if slot[ON, b]:
                change = _without(b, log, starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
                loss[b] = -change
                if change > USEFUL:
                    gained += change
                    improved = True
        if not improved:
            break
    for b in range(count[N_CANDIDATES]):
        if slot[ON, b] and np.isnan(loss[b]):  # switched on after its turn in the last pass
            loss[b] = worth(b, starts, sensors, says, cell, slot, gain)
    return gained


@compiled
def decode_rows(
    rows: Places, cells: RowCells, sources: Sources, hopeless: float, before: Lists, warm: bool
) -> Activity:
    """Decode the given rows, starting from the sources in ``before`` (of all rows) if ``warm``, otherwise from none.

    A source with log odds of -inf is never on. Time grows with the candidates of a row and the sources that
    share sensors with them, not with the number of sources.
    """
    (starts, sensors), (reach_starts, reach), says = sources.columns, sources.reaching, sources.says
    log_odds, silent, frequent = sources.log_odds, sources.silent, sources.frequent
    cell, slot, gain, count = work_space(log_odds.size, says.shape[1])
    log, losses = np.zeros(2 * log_odds.size + 2, np.int32), np.zeros(log_odds.size)
    start, gains, size = np.zeros(rows.size + 1, np.int64), np.zeros(rows.size), 0
    room = ROOM_PER_ROW * (rows.size + 1)
    active, loss = np.empty(room, np.int32), np.empty(room)
    for k in range(rows.size):
        row = rows[k]
        ones = cells.ones.items[cells.ones.start[row] : cells.ones.start[row + 1]]
        gaps = cells.gaps.items[cells.gaps.start[row] : cells.gaps.start[row + 1]]
        kept = before.items[before.start[row] : before.start[row + 1]] if warm else before.items[:0]
        gather(
            ones, gaps, kept, hopeless, reach_starts, reach, says, log_odds, silent, frequent, cell, slot, gain, count
        )
        for source in kept:
            b = slot[PLACE, source]
            if b >= 0:
                gains[k] += gain[b]
                switch(b, starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
        gains[k] += _search(losses, log, starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
        while size + count[N_CANDIDATES] > active.size:
            active, loss = np.append(active, np.empty_like(active)), np.append(loss, np.empty_like(loss))
        for b in range(count[N_CANDIDATES]):
            if slot[ON, b]:
                active[size], loss[size] = slot[SOURCE, b], losses[b]
                size += 1
        start[k + 1] = size
        leave(ones, gaps, starts, sensors, cell, slot, count)
    return Activity(Lists(start, active[:size].copy()), loss[:size].copy(), gains)


# One Gibbs sweep over the activity of rows: every candidate is drawn anew, given the others.

LEAST_LOG_ODDS = -18.0  # a source below is not drawn: one in 66 million rows


class Sweep(NamedTuple):
    """The new activity, and sums over its rows, by weight."""

    active: Lists
    expected: Numbers  # (n_sources,), probabilities of being on, summed over the rows
    covered_ones: Numbers  # (n_sensors,), covered cells that show 1
    covered_zeros: Numbers  # (n_sensors,), covered cells that show 0


@compiled
def mixed(state: np.uint64) -> np.uint64:
    """The output function of the SplitMix64 generator."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@compiled
def uniform(stream: np.uint64, step: int) -> float:
    """Number ``step`` of a random stream, in [0, 1): any row can be drawn at any time, in any thread."""
    return np.float64(mixed(stream + np.uint64(step) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)) / 2.0**53


@compiled
def _count_covered(
    weight: float, starts: Places, sensors: Ints, cell: Ints, slot: Ints, count: Places, ones: Numbers, zeros: Numbers
) -> None:
    """Add the weight of a row to the covered cells that show 1, and to those that show 0."""
    for b in range(count[N_CANDIDATES]):
        if slot[ON, b]:
            for at in range(starts[slot[SOURCE, b]], starts[slot[SOURCE, b] + 1]):
                sensor = sensors[at]
                if cell[COVER, sensor] > 0:
                    cell[COVER, sensor] = 0
                    if cell[CELL, sensor] == ONE:
                        ones[sensor] += weight
                    elif cell[CELL, sensor] == ZERO:
                        zeros[sensor] += weight


@compiled
def sweep_rows(
    rows: Places, cells: RowCells, sources: Sources, hopeless: float, before: Lists, seed: np.uint64
) -> Sweep:
    """One Gibbs sweep over the given rows, starting from the activity ``before`` of all rows."""
    (starts, sensors), (reach_starts, reach), says = sources.columns, sources.reaching, sources.says
    log_odds, silent, frequent = sources.log_odds, sources.silent, sources.frequent
    cell, slot, gain, count = work_space(log_odds.size, says.shape[1])
    expected, ones_covered, zeros_covered = np.zeros(log_odds.size), np.zeros(says.shape[1]), np.zeros(says.shape[1])
    start, active, size = np.zeros(rows.size + 1, np.int64), np.empty(ROOM_PER_ROW * (rows.size + 1), np.int32), 0
    for k in range(rows.size):
        row = rows[k]
        ones = cells.ones.items[cells.ones.start[row] : cells.ones.start[row + 1]]
        gaps = cells.gaps.items[cells.gaps.start[row] : cells.gaps.start[row + 1]]
        kept = before.items[before.start[row] : before.start[row + 1]]
        gather(
            ones, gaps, kept, hopeless, reach_starts, reach, says, log_odds, silent, frequent, cell, slot, gain, count
        )
        for source in kept:
            if slot[PLACE, source] >= 0:
                switch(slot[PLACE, source], starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
        stream = mixed(seed + np.uint64(row))
        for b in range(count[N_CANDIDATES]):
            if slot[ON, b] == 0 and gain[b] < LEAST_LOG_ODDS:
                continue
            value = worth(b, starts, sensors, says, cell, slot, gain) if slot[ON, b] else gain[b]
            probability = 1.0 / (1.0 + np.exp(-value))
            expected[slot[SOURCE, b]] += cells.weights[row] * probability
            if (uniform(stream, b) < probability) != (slot[ON, b] == 1):
                switch(b, starts, sensors, reach_starts, reach, says, cell, slot, gain, count)
        while size + count[N_CANDIDATES] > active.size:
            active = np.append(active, np.empty_like(active))
        for b in range(count[N_CANDIDATES]):
            if slot[ON, b]:
                active[size] = slot[SOURCE, b]
                size += 1
        start[k + 1] = size
        _count_covered(cells.weights[row], starts, sensors, cell, slot, count, ones_covered, zeros_covered)
        leave(ones, gaps, starts, sensors, cell, slot, count)
    return Sweep(Lists(start, active[:size].copy()), expected, ones_covered, zeros_covered)
