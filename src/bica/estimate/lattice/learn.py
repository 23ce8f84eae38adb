"""Learning a table of up to 20 sensors that vary from the exact likelihood of all of them together."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from bica.data.patterns import PatternCounts
from bica.errors import DataError, LimitError
from bica.estimate.lattice.surface import Cells, NoiseShape, Surface, lowest_rate
from bica.estimate.noise import FLIPS
from bica.estimate.search import BETTER, BY_SLOPE, SourceSearch, Start, add, drop, from_rows, look_closer
from bica.estimate.settings import Settings, Varying
from bica.estimate.whole import Route, WholeTask
from bica.model.fit import Fit
from bica.model.noise import Noise

LATTICE_SENSORS = 20  # that vary: a table over all their sets takes 8 MB
LATTICE_CELLS = 2**26  # patterns that rows with missing cells may stand for, all together
CLOSER_LOOK = 16  # sensors up to which the gain of thousands of sets is a matter of seconds
ALL_SETS = 10  # sensors up to which all sets are candidates
CLEAR_NOISE = 1e-3  # a flip rate below which known noise explains too little to start a search from


def fit_on_lattice(table: Varying, settings: Settings, start: Start | None = None) -> Fit:
    """The fit of a search that starts from no source or as told; Ctrl-C keeps the best so far."""
    task = lattice_task(table, settings)
    search = first_search(task, start)
    if not isinstance(settings.noise, Noise) or _is_clear(settings.noise):
        return task.learned(search)
    try:
        search.run()
    except KeyboardInterrupt:
        return task.result(_with_known_noise(task, search), FLIPS, interrupted=True)
    return task.learned(_with_known_noise(task, search))


def lattice_task(table: Varying, settings: Settings) -> WholeTask:
    """The task on the lattice: a search by slope and, up to 16 sensors, a closer look at what slope may have missed."""
    _check_size(table.whole, table.data.n_sensors)
    cells = Cells.of(table.data)
    pool = np.arange(1, 2**cells.n_sensors)
    if cells.n_sensors > ALL_SETS:
        pool = from_rows(cells.cells, cells.weights, cells.n_sensors)
    surface = partial(Surface, cells, forbidden=table.forbidden_sets)
    moves = (*BY_SLOPE, look_closer) if cells.n_sensors <= CLOSER_LOOK else BY_SLOPE
    return WholeTask.of(table, settings, Route(surface, moves, (add, drop), pool, BETTER, exact=True))


def first_search(task: WholeTask, start: Start | None = None) -> SourceSearch:
    """A search with the known noise if it is high enough to explain odd rows, else with one unknown flip rate."""
    start, data, noise = start or task.start(), task.table.data, task.settings.noise
    if isinstance(noise, Noise) and _is_clear(noise):
        return task.search(task.known_shape(noise), replace(start, noise=np.empty(0)))
    if data.n_sensors < 2:  # with a single sensor, noise looks like a source
        shape = NoiseShape.known(Noise.flips(lowest_rate(data)), data.n_sensors)
        return task.search(shape, replace(start, noise=np.empty(0)))
    return task.search(NoiseShape.shared_flips(data.n_sensors, lowest_rate(data)), start)


def _is_clear(noise: Noise) -> bool:
    return bool(min(np.min(noise.false_alarm), np.min(noise.miss)) >= CLEAR_NOISE)


def _with_known_noise(task: WholeTask, first: SourceSearch) -> SourceSearch:
    """A search from there on with the noise that the user gave, which may be none."""
    assert isinstance(task.settings.noise, Noise)
    fit, shape = first.best.fit, task.known_shape(task.settings.noise)
    start = Start(fit.point.sources, fit.point.rate, fit.free, np.empty(0), first.n_known)
    return task.search(shape, explaining(task.route.surface(shape), start))


def explaining(surface: Surface, start: Start) -> Start:
    """The start with sources added until every observed row is possible, as each must be without noise."""
    while True:
        probability = surface.at(start.sources, start.rate, start.noise).cell_probability
        impossible = np.flatnonzero(probability <= 0)
        if not impossible.size:
            return start
        row = int(surface.cells.cells[impossible[np.argmax(surface.cells.weights[impossible])]])
        inside = start.sources[start.sources & ~row == 0]
        rest = row & ~int(np.bitwise_or.reduce(inside, initial=0))
        source = rest if surface.allows(rest) else row
        if not surface.allows(source):
            raise DataError("without noise, the sources that are allowed cannot explain every row; allow some noise")
        start = replace(
            start,
            sources=np.append(start.sources, source),
            rate=np.append(start.rate, 1.0 / surface.cells.n_samples),
            free=np.append(start.free, True),
        )


def _check_size(data: PatternCounts, n_varying: int) -> None:
    if n_varying > LATTICE_SENSORS:
        raise LimitError(
            f"{n_varying} sensors vary, but the exact likelihood is limited to {LATTICE_SENSORS}; "
            'watch fewer sensors, or use method "findbica"'
        )
    n_fillings = _n_fillings(data, n_varying)
    if n_fillings > LATTICE_CELLS:
        raise LimitError(
            f"the missing cells of the distinct rows can be filled in {n_fillings:.2g} ways, more than the limit of "
            f"{LATTICE_CELLS:.2g}; drop the sensors or the rows with the most gaps"
        )


def _n_fillings(data: PatternCounts, n_varying: int) -> float:
    """How many patterns the rows stand for: 2^k for each distinct row with k missing cells."""
    if data.observed is None:
        return 2.0**n_varying
    n_missing = data.n_sensors - np.bitwise_count(data.observed).sum(axis=1)
    return float(np.exp2(np.minimum(n_missing, n_varying)).sum())
