"""One Gibbs sweep over the activity of rows: every candidate is drawn anew, given the others."""

from typing import NamedTuple

import numpy as np

from bica.kernels.compiled import compiled
from bica.kernels.rows.gains import (
    CELL,
    COVER,
    N_CANDIDATES,
    ON,
    ONE,
    PLACE,
    SOURCE,
    ZERO,
    Ints,
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
from bica.kernels.rows.lists import Lists

LEAST_LOG_ODDS = -18.0  # a source below is not drawn: one in 66 million rows
ROOM_PER_ROW = 8  # active sources; more room is made when it is full


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
