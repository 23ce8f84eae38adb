"""One row: which sources could explain it, and what switching each of them on would gain.

A covered sensor that shows 1 speaks for the active sources by ``one[sensor]``, one that shows 0 against them by
``zero[sensor]`` (which is negative), and one that was not observed says nothing. The gain of a source is its log odds
plus the evidence of its sensors that nothing covers yet. Gains and counts of coverage are kept current while sources
are switched on and off, through the list of sources that reach each sensor: nothing else is touched, and every switch
can be undone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.rows_lists import Lists

USEFUL = 1e-9  # a gain below this is none
N_CANDIDATES, N_HOT, N_MOVED, STAMP = range(4)  # places in ``Work.count``


class Cells(NamedTuple):
    """The rows: what each shows. Without gaps ``gaps`` holds empty lists."""

    ones: Lists  # the sensors that are on
    gaps: Lists  # the sensors that were not observed
    weights: NDArray[np.float64]


class Sources(NamedTuple):
    """The sources, and what the sensors say for and against them."""

    columns: Lists  # the sensors of each source
    reaching: Lists  # the sources of each sensor
    log_odds: NDArray[np.float64]  # of being on; -inf: never
    silent: NDArray[np.float64]  # the gain in a row without ones: log odds plus all of ``zero``
    frequent: NDArray[np.int32]  # sources that are on more often than not
    one: NDArray[np.float64]  # (n_sensors,)
    zero: NDArray[np.float64]  # (n_sensors,)


class Work(NamedTuple):
    """Scratch space, clean between rows: zeros, except for ``place``, which is -1."""

    cell: NDArray[np.uint8]  # (n_sensors,): 0 and 1 as shown, 2 not observed
    cover: NDArray[np.int32]  # (n_sensors,): by how many active sources
    place: NDArray[np.int32]  # (n_sources,): where a source stands among the candidates
    candidate: NDArray[np.int32]  # the sources that could be on in this row; the arrays below go with it
    gain: NDArray[np.float64]
    on: NDArray[np.int8]
    hot: NDArray[np.int32]  # candidates whose gain became positive
    is_hot: NDArray[np.uint8]
    moved: NDArray[np.int32]  # candidates whose gain changed since the last stamp
    stamp: NDArray[np.int64]
    log: NDArray[np.int32]  # switches that may have to be undone
    count: NDArray[np.int64]


@compiled
def work_space(n_sources: int, n_sensors: int) -> Work:
    """Clean scratch space for so many sources and sensors."""
    return Work(
        np.zeros(n_sensors, np.uint8),
        np.zeros(n_sensors, np.int32),
        np.full(n_sources, -1, np.int32),
        np.zeros(n_sources, np.int32),
        np.zeros(n_sources),
        np.zeros(n_sources, np.int8),
        np.zeros(n_sources, np.int32),
        np.zeros(n_sources, np.uint8),
        np.zeros(n_sources, np.int32),
        np.zeros(n_sources, np.int64),
        np.zeros(2 * n_sources + 2, np.int32),
        np.zeros(4, np.int64),
    )


@compiled
def _nominate(source: int, sources: Sources, work: Work) -> None:
    if work.place[source] < 0 and sources.log_odds[source] > -np.inf:
        b = work.count[N_CANDIDATES]
        work.place[source], work.candidate[b] = b, source
        work.gain[b], work.on[b], work.is_hot[b], work.stamp[b] = sources.silent[source], 0, 0, -1
        work.count[N_CANDIDATES] += 1


@compiled
def _read_row(row: int, cells: Cells, sources: Sources, work: Work) -> None:
    ones, gaps, reaching = cells.ones, cells.gaps, sources.reaching
    for at in range(ones.start[row], ones.start[row + 1]):
        sensor = ones.items[at]
        work.cell[sensor] = 1
        for q in range(reaching.start[sensor], reaching.start[sensor + 1]):
            source = reaching.items[q]
            _nominate(source, sources, work)
            if work.place[source] >= 0:
                work.gain[work.place[source]] += sources.one[sensor] - sources.zero[sensor]
    for source in sources.frequent:
        _nominate(source, sources, work)
    for at in range(gaps.start[row], gaps.start[row + 1]):
        sensor = gaps.items[at]
        work.cell[sensor] = 2
        for q in range(reaching.start[sensor], reaching.start[sensor + 1]):
            if work.place[reaching.items[q]] >= 0:
                work.gain[work.place[reaching.items[q]]] -= sources.zero[sensor]


@compiled
def gather(row: int, cells: Cells, sources: Sources, hopeless: float, kept: NDArray[np.int32], work: Work) -> None:
    """Make candidates of the sources with a sensor that shows 1 and a gain above ``hopeless``, and of those ``kept``.

    Sources that are on more often than not need no such sensor.
    """
    work.count[:] = 0
    for source in kept:
        _nominate(source, sources, work)
        if work.place[source] >= 0:
            work.on[work.place[source]] = 1
    _read_row(row, cells, sources, work)
    n_left = 0
    for b in range(work.count[N_CANDIDATES]):
        source = work.candidate[b]
        if work.on[b] == 0 and work.gain[b] <= hopeless:
            work.place[source] = -1
            continue
        work.place[source], work.candidate[n_left], work.gain[n_left] = n_left, source, work.gain[b]
        work.on[n_left] = 0
        n_left += 1
    work.count[N_CANDIDATES] = n_left
    for b in range(n_left):
        _warm(b, work)


@compiled
def _warm(b: int, work: Work) -> None:
    if work.gain[b] > USEFUL and work.on[b] == 0 and work.is_hot[b] == 0:
        work.is_hot[b] = 1
        work.hot[work.count[N_HOT]] = b
        work.count[N_HOT] += 1


@compiled
def evidence(sensor: int, sources: Sources, work: Work) -> float:
    """What a covered sensor says for the active sources."""
    if work.cell[sensor] == 2:
        return 0.0
    return sources.one[sensor] if work.cell[sensor] else sources.zero[sensor]


@compiled
def switch(b: int, sources: Sources, work: Work) -> None:
    """Switch candidate ``b`` on if it is off, and off if it is on."""
    step = 1 - 2 * work.on[b]
    work.on[b] = 1 - work.on[b]
    columns, reaching, source = sources.columns, sources.reaching, work.candidate[b]
    for at in range(columns.start[source], columns.start[source + 1]):
        sensor = columns.items[at]
        before = work.cover[sensor]
        work.cover[sensor] = before + step
        if before + min(step, 0) != 0:
            continue
        change = step * evidence(sensor, sources, work)
        for q in range(reaching.start[sensor], reaching.start[sensor + 1]):
            other = work.place[reaching.items[q]]
            if other >= 0:
                work.gain[other] -= change
                if work.stamp[other] != work.count[STAMP]:
                    work.stamp[other] = work.count[STAMP]
                    work.moved[work.count[N_MOVED]] = other
                    work.count[N_MOVED] += 1
                _warm(other, work)


@compiled
def worth(b: int, sources: Sources, work: Work) -> float:
    """What the row would lose if the active candidate ``b`` were switched off and nothing else changed."""
    value, source = work.gain[b], work.candidate[b]
    for at in range(sources.columns.start[source], sources.columns.start[source + 1]):
        if work.cover[sources.columns.items[at]] == 1:
            value += evidence(sources.columns.items[at], sources, work)
    return value


@compiled
def leave(row: int, cells: Cells, sources: Sources, work: Work) -> None:
    """Clean the scratch space for the next row."""
    for b in range(work.count[N_CANDIDATES]):
        source = work.candidate[b]
        work.place[source] = -1
        if work.on[b]:
            for at in range(sources.columns.start[source], sources.columns.start[source + 1]):
                work.cover[sources.columns.items[at]] = 0
    for at in range(cells.ones.start[row], cells.ones.start[row + 1]):
        work.cell[cells.ones.items[at]] = 0
    for at in range(cells.gaps.start[row], cells.gaps.start[row + 1]):
        work.cell[cells.gaps.items[at]] = 0
