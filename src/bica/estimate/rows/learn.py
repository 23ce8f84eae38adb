"""Learning a table of up to 64 sensors from the hidden states of its rows, from a first answer on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.estimate.costs import cost_by_size
from bica.estimate.lattice.errors import noise_report, standard_errors
from bica.estimate.lattice.learn import LOWEST_FLIPS
from bica.estimate.lattice.refit import BetaPrior, Refit, refit
from bica.estimate.lattice.search import Start
from bica.estimate.lattice.surface import NoiseShape
from bica.estimate.row_search import SearchTask, Sets, SourceSearch, from_rows
from bica.estimate.rows.states import CAREFUL, QUICK, WORD, RowSurface, StateCells
from bica.estimate.settings import Settings, Varying, bit_set
from bica.kernels.rows.states import Limits
from bica.model.fit import Fit
from bica.model.noise import Noise

PACE: dict[str, Any] = {"tolerance": 0.05, "fresh": 1, "tries": 4}  # of refits: lists make the likelihood a bit rough
FINAL: dict[str, Any] = {"tolerance": 1e-3, "fresh": 1, "tries": 4, "exact": True}  # of one that is reported
BRIEF = QUICK._replace(most_in_all=1 << 18)  # for answers on which all blocks agree, which are seldom wrong
MOST_WORK = 4e9  # some ten to twenty seconds; a real table that nothing fits would be bettered for hours
BRIEF_WORK = 5e8  # one or two seconds
MOST_CUT = 0.05  # share of the rows with too many states: without more of them a search would go astray
LEAST_FLIPS = 1e-4  # a flip rate to begin with: rows that no present source explains cost too many states with less


def sets_of(columns: list[tuple[int, ...]]) -> Sets:
    """Columns, each the numbers of its sensors, as bit sets; that of sensor 63 is negative.

    >>> sets_of([(0, 2), (63,)]).tolist()
    [5, -9223372036854775808]
    """
    return np.array([sum(1 << sensor for sensor in column) for column in columns], np.uint64).view(np.int64)


def fit_on_rows(table: Varying, settings: Settings, start: Start, *, briefly: bool = False) -> Fit | None:
    """Search from ``start`` on; None if the rows have too many hidden states, or if a brief search finds no end.

    ``start.noise`` is one flip rate, or empty where the noise is known. Ctrl-C keeps the best so far.
    """
    if table.data.n_sensors > WORD:
        return None
    task = RowTask(table, settings, StateCells.of(table.data))
    search = task.search(start, BRIEF, BRIEF_WORK) if briefly else task.search(start)
    if search is None:
        return None
    try:
        search.run()
    except KeyboardInterrupt:
        return task.result(search, interrupted=True)
    return None if briefly and search.is_spent else task.result(search)


@dataclass(frozen=True, slots=True, eq=False)
class RowTask:
    """The distinct rows of the table, and what the user said about it."""

    table: Varying
    settings: Settings
    cells: StateCells

    def search(self, start: Start, limits: Limits = QUICK, most_work: float = MOST_WORK) -> SourceSearch | None:
        """A search on all rows but a few that have too many states; None if they are not few."""
        start = Start(start.sources, start.rate, start.free, np.maximum(start.noise, LEAST_FLIPS), start.n_known)
        states = self.surface(limits).at(start.sources, start.rate, start.noise).states
        cells = self.cells.without(states.cut)
        if not states.chance.all() or cells.n_samples < (1 - MOST_CUT) * self.cells.n_samples:
            return None
        pool = from_rows(cells.rows.patterns.view(np.int64), cells.weights, cells.n_sensors)
        surface = RowSurface(cells, self._shape(), limits)
        return SourceSearch(
            SearchTask(surface, self.cost(), self._allowed, lambda _: pool, PACE, most_work=most_work), start
        )

    def surface(self, limits: Limits) -> RowSurface:
        """The likelihood of all rows."""
        return RowSurface(self.cells, self._shape(), limits)

    def _shape(self) -> NoiseShape:
        n_sensors, given = self.cells.n_sensors, self.settings.noise
        lowest = LOWEST_FLIPS / max(1.0, self.cells.n_samples * n_sensors)
        if isinstance(given, Noise):
            return NoiseShape.known(given.of_sensors(self.table.places).at_least(lowest), n_sensors)
        return NoiseShape.shared_flips(n_sensors, lowest)

    def cost(self) -> Any:
        """What sources must gain."""
        cost = cost_by_size(self.cells.n_sensors, self.cells.n_samples, self.cells.n_sensors)
        return lambda sources: cost[np.bitwise_count(sources.view(np.uint64))]

    def _allowed(self, sources: Sets) -> NDArray[np.bool_]:
        """None that contains a forbidden set."""
        allowed = np.ones(sources.size, dtype=bool)
        for names in self.table.forbidden:
            together = np.array([bit_set(names, self.table.data.sensors, "forbidden")], np.uint64).view(np.int64)
            allowed &= sources & together != together
        return allowed

    def result(self, search: SourceSearch, *, interrupted: bool = False) -> Fit:
        """The best that was found, refitted with longer lists of states, on the whole table."""
        surface, fit = self._careful(search)
        errors = standard_errors(surface, fit)
        mixing = (fit.point.sources.view(np.uint64) >> np.arange(self.cells.n_sensors, dtype=np.uint64)[:, None]) & 1
        given = self.settings.noise
        noise = given if isinstance(given, Noise) else Noise.flips(float(fit.point.noise[0]))
        model, error = self.table.model(mixing == 1, fit.point.probability, errors.probability, noise)
        return Fit(
            model,
            method="likelihood",
            n_samples=self.cells.n_samples,
            probability_error=error,
            n_iter=len(search.visited),
            converged=not (interrupted or search.is_spent),
            diagnostics={"score": search.best.score, "noise": noise_report(search, surface, fit, errors)}
            | ({"interrupted": True} if interrupted else {}),
        )

    def _careful(self, search: SourceSearch) -> tuple[Any, Refit]:
        """The last refit, without sources that are rarer than asked for."""
        surface, point, free = self._last_surface(search), search.best.fit.point, search.best.fit.free
        while True:
            start = surface.at(point.sources, point.rate, point.noise)
            fit = refit(surface, start, free, BetaPrior(), n_known=search.n_known, **FINAL)
            probability = fit.point.probability
            probability[: search.n_known] = np.inf
            if not (probability < (self.settings.min_probability or 0.0)).any():
                return surface, fit
            kept = np.arange(probability.size) != probability.argmin()
            point, free = surface.at(fit.point.sources[kept], fit.point.rate[kept], fit.point.noise), fit.free[kept]

    def _last_surface(self, search: SourceSearch) -> Any:
        """With longer lists where there is room for them, else that of the search."""
        surface, point = self.surface(CAREFUL), search.best.fit.point
        there = surface.at(point.sources, point.rate, point.noise)
        return surface if np.isfinite(there.log_likelihood) else search.surface
