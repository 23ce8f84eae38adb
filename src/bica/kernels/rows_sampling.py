"""One Gibbs sweep over the activity of rows: every candidate is drawn anew, given the others."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.rows_gains import N_CANDIDATES, Cells, Sources, Work, gather, leave, switch, work_space, worth
from bica.kernels.rows_lists import Lists


class Sweep(NamedTuple):
    """The new activity, and what it adds up to, by weight."""

    active: Lists
    expected: NDArray[np.float64]  # (n_sources,), chances of being on, added up over the rows
    covered_ones: NDArray[np.float64]  # (n_sensors,)
    covered_zeros: NDArray[np.float64]  # (n_sensors,)


@compiled
def _mixed(state: np.uint64) -> np.uint64:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@compiled
def uniform(stream: np.uint64, step: int) -> float:
    """Number ``step`` of a stream of chance in [0, 1): any row can be drawn at any time, in any thread."""
    return np.float64(_mixed(stream + np.uint64(step) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)) / 2.0**53


@compiled
def _draw(weight: float, stream: np.uint64, sources: Sources, work: Work, expected: NDArray[np.float64]) -> None:
    for b in range(work.count[N_CANDIDATES]):
        value = worth(b, sources, work) if work.on[b] else work.gain[b]
        chance = 1.0 / (1.0 + np.exp(-value))
        expected[work.candidate[b]] += weight * chance
        if (uniform(stream, b) < chance) != (work.on[b] == 1):
            switch(b, sources, work)


@compiled
def _count_covered(weight: float, sources: Sources, work: Work, ones: NDArray[np.float64], zeros: NDArray[np.float64]):
    columns = sources.columns
    for b in range(work.count[N_CANDIDATES]):
        if work.on[b]:
            source = work.candidate[b]
            for at in range(columns.start[source], columns.start[source + 1]):
                sensor = columns.items[at]
                if work.cover[sensor] > 0:
                    work.cover[sensor] = 0
                    if work.cell[sensor] == 1:
                        ones[sensor] += weight
                    elif work.cell[sensor] == 0:
                        zeros[sensor] += weight


@compiled
def sweep_rows(
    rows: NDArray[np.int64], cells: Cells, sources: Sources, hopeless: float, before: Lists, seed: np.uint64
) -> Sweep:
    """Sweep once over the given rows, from the activity ``before`` of all rows."""
    n_sources, n_sensors = sources.log_odds.size, sources.one.size
    work, expected = work_space(n_sources, n_sensors), np.zeros(n_sources)
    ones, zeros, start = np.zeros(n_sensors), np.zeros(n_sensors), np.zeros(rows.size + 1, np.int64)
    active = np.empty(8 * rows.size + 8, np.int32)
    size = 0
    for k in range(rows.size):
        row = rows[k]
        kept = before.items[before.start[row] : before.start[row + 1]]
        gather(row, cells, sources, hopeless, kept, work)
        for source in kept:
            if work.place[source] >= 0:
                switch(work.place[source], sources, work)
        _draw(cells.weights[row], _mixed(seed + np.uint64(row)), sources, work, expected)
        while size + work.count[N_CANDIDATES] > active.size:
            active = np.append(active, np.empty_like(active))
        for b in range(work.count[N_CANDIDATES]):
            if work.on[b]:
                active[size] = work.candidate[b]
                size += 1
        start[k + 1] = size
        _count_covered(cells.weights[row], sources, work, ones, zeros)
        leave(row, cells, sources, work)
    return Sweep(Lists(start, active[:size].copy()), expected, ones, zeros)
