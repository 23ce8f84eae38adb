"""Which sources were on in each row: greedy, then dropping each in turn and completing again."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bica.kernels.compiled import compiled
from bica.kernels.rows_gains import (
    N_CANDIDATES,
    N_HOT,
    N_MOVED,
    STAMP,
    USEFUL,
    Cells,
    Sources,
    Work,
    gather,
    leave,
    switch,
    work_space,
    worth,
)
from bica.kernels.rows_lists import Lists

PASSES = 3


class Activity(NamedTuple):
    """Which sources are on in each row, and what that is worth."""

    active: Lists  # the sources of each row
    loss: NDArray[np.float64]  # one for each entry of ``active``: what the row loses without it, others stepping in
    gain: NDArray[np.float64]  # (n_rows,), what the active sources gain against none


@compiled
def _best(skipped: int, work: Work) -> int:
    """The candidate with the largest positive gain, or -1; forgets those that are no longer hot."""
    best, top, k = -1, USEFUL, 0
    while k < work.count[N_HOT]:
        b = work.hot[k]
        if work.on[b] or work.gain[b] <= USEFUL:
            work.is_hot[b] = 0
            work.count[N_HOT] -= 1
            work.hot[k] = work.hot[work.count[N_HOT]]
            continue
        if b != skipped and work.gain[b] > top:
            best, top = b, work.gain[b]
        k += 1
    return best


@compiled
def _complete(skipped: int, n_logged: int, sources: Sources, work: Work) -> tuple[float, int]:
    """Add the best candidate until none helps; return what was gained, and the length of the log."""
    gained = 0.0
    b = _best(skipped, work)
    while b >= 0 and n_logged < work.log.size:
        gained += work.gain[b]
        switch(b, sources, work)
        work.log[n_logged] = b
        n_logged += 1
        b = _best(skipped, work)
    return gained, n_logged


@compiled
def _remove_useless(n_logged: int, sources: Sources, work: Work) -> tuple[float, int]:
    """Switch off what became useless since the last stamp; return what was gained, and the length of the log."""
    gained = 0.0
    k = 0
    while k < work.count[N_MOVED]:
        b = work.moved[k]
        if work.on[b] and n_logged < work.log.size:
            value = worth(b, sources, work)
            if value < -USEFUL:
                gained -= value
                switch(b, sources, work)
                work.log[n_logged] = b
                n_logged += 1
        k += 1
    return gained, n_logged


@compiled
def _without(b: int, sources: Sources, work: Work) -> float:
    """Drop ``b`` and let others step in; undo it, unless the row gains. Return the gain, which may be negative."""
    work.count[STAMP] += 1
    work.count[N_MOVED] = 0
    gained = -worth(b, sources, work)
    switch(b, sources, work)
    work.log[0] = b
    added, n_logged = _complete(b, 1, sources, work)
    gained += added
    if n_logged > 1:
        removed, n_logged = _remove_useless(n_logged, sources, work)
        gained += removed
    if gained <= USEFUL:
        for k in range(n_logged - 1, -1, -1):
            switch(work.log[k], sources, work)
    return gained


@compiled
def _search(sources: Sources, work: Work, loss: NDArray[np.float64]) -> float:
    gained, _ = _complete(-1, 0, sources, work)
    for _ in range(PASSES):
        improved = False
        for b in range(work.count[N_CANDIDATES]):
            if work.on[b]:
                change = _without(b, sources, work)
                loss[b] = -change
                if change > USEFUL:
                    gained += change
                    improved = True
        if not improved:
            break
    return gained


@compiled
def decode_rows(
    rows: NDArray[np.int64], cells: Cells, sources: Sources, hopeless: float, before: Lists, warm: bool
) -> Activity:
    """Decode the given rows. ``before`` holds the sources of all rows to start from if ``warm``.

    A source with log odds of -inf is never on. Time goes with the candidates of a row and the sources that share
    sensors with them, not with the number of sources.
    """
    n_sources, n_sensors = sources.log_odds.size, sources.one.size
    work, losses = work_space(n_sources, n_sensors), np.zeros(n_sources)
    start, gain = np.zeros(rows.size + 1, np.int64), np.zeros(rows.size)
    active, loss = np.empty(8 * rows.size + 8, np.int32), np.empty(8 * rows.size + 8)
    nothing = before.items[:0]
    size = 0
    for k in range(rows.size):
        row = rows[k]
        kept = before.items[before.start[row] : before.start[row + 1]] if warm else nothing
        gather(row, cells, sources, hopeless, kept, work)
        for source in kept:
            b = work.place[source]
            if b >= 0:
                gain[k] += work.gain[b]
                switch(b, sources, work)
        gain[k] += _search(sources, work, losses)
        while size + work.count[N_CANDIDATES] > active.size:
            active, loss = np.append(active, np.empty_like(active)), np.append(loss, np.empty_like(loss))
        for b in range(work.count[N_CANDIDATES]):
            if work.on[b]:
                active[size], loss[size] = work.candidate[b], losses[b]
                size += 1
        start[k + 1] = size
        leave(row, cells, sources, work)
    return Activity(Lists(start, active[:size].copy()), loss[:size].copy(), gain)
