"""Learning a table of up to 64 sensors from the hidden states of its rows, from a first answer on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bica.estimate.lattice.surface import NoiseShape, lowest_rate
from bica.estimate.rows.states import CAREFUL, QUICK, RowSurface, StateCells
from bica.estimate.search import BY_GAIN, Start, add_several, drop, from_rows
from bica.estimate.settings import Settings, Varying
from bica.estimate.whole import Route, WholeTask
from bica.kernels.rows.states import Limits
from bica.model.fit import Fit
from bica.model.noise import Noise

BRIEF = QUICK._replace(most_in_all=1 << 18)  # for answers on which all blocks agree, which are seldom wrong
MOST_WORK = 4e9  # some ten to twenty seconds; a real table that nothing fits would be bettered for hours
BRIEF_WORK = 5e8  # one or two seconds
NOISE_WORK = 2e9  # five to ten seconds for every other kind of noise
BETTER = 1e-3  # nats: lists leave states out, so a smaller rise of the score means nothing
MOST_CUT = 0.05  # share of the rows with too many states: without more of them a search would go astray
LEAST_FLIPS = 1e-4  # a flip rate to begin with: rows that no present source explains cost too many states with less


def fit_on_rows(table: Varying, settings: Settings, start: Start, *, briefly: bool = False) -> Fit | None:
    """Search from ``start`` on; None if the rows have too many hidden states, or if a brief search finds no end.

    ``start.noise`` is one flip rate, or empty where the noise is known. Ctrl-C keeps the best so far.
    """
    if settings.noise == "auto":  # other kinds of noise multiply the hidden states: only on request
        settings = replace(settings, noise="estimate")
    start = replace(start, noise=np.maximum(start.noise, LEAST_FLIPS))
    shape, limits = first_shape(table, settings), BRIEF if briefly else QUICK
    task = row_task(table, settings, start, shape, limits, BRIEF_WORK if briefly else MOST_WORK)
    if task is None:
        return None
    fit = task.learned(task.search(shape, start))
    return None if briefly and not fit.converged and "interrupted" not in fit.diagnostics else fit


def first_shape(table: Varying, settings: Settings) -> NoiseShape:
    """The noise as it is known, or one flip rate."""
    n_sensors, lowest = table.data.n_sensors, lowest_rate(table.data)
    if isinstance(settings.noise, Noise):
        return NoiseShape.known(settings.noise.of_sensors(table.places).at_least(lowest), n_sensors)
    return NoiseShape.shared_flips(n_sensors, lowest)


def row_task(
    table: Varying, settings: Settings, start: Start, shape: NoiseShape, limits: Limits, most_work: float = MOST_WORK
) -> WholeTask | None:
    """A task on all rows but a few that have too many states; None if they are not few."""
    every = StateCells.of(table.data)
    states = RowSurface(every, shape, limits).at(start.sources, start.rate, start.noise).states
    cells = every.without(states.cut)
    if not states.chance.all() or cells.n_samples < (1 - MOST_CUT) * every.n_samples:
        return None

    surface = partial(RowSurface, cells, limits=limits)

    def last_surface(shape: NoiseShape, point: Any) -> RowSurface:
        """With longer lists and all rows where there is room for them, else that of the search."""
        longer = RowSurface(every, shape, CAREFUL)
        there = longer.at(point.sources, point.rate, point.noise)
        return longer if np.isfinite(there.log_likelihood) else surface(shape)

    pool = from_rows(cells.rows.patterns.view(np.int64), cells.weights, cells.n_sensors)
    first, noise_work = (add_several, drop), min(most_work, NOISE_WORK)
    route = Route(surface, BY_GAIN, first, pool, BETTER, False, most_work, noise_work, last_surface)
    return WholeTask.of(table, settings, route)
