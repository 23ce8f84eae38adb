"""Learning all sensors of a table at once: where to start, which noise, the search, and the fit that comes of it.

How the likelihood of all sensors is computed is left to a route: exactly on the lattice of all their sets
(``lattice/learn.py``), or from lists of hidden states of every row (``rows/learn.py``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.errors import BicaWarning
from bica.estimate.errors import noise_report, standard_errors
from bica.estimate.lattice.surface import NoiseShape, lowest_rate
from bica.estimate.noise import FLIPS, LEAST_SENSORS, PER_SENSOR, NoiseKind, with_best_noise
from bica.estimate.score import BetaPrior, Refit, Scale, cost_by_size, refit
from bica.estimate.search import Move, SearchTask, SourceSearch, Start
from bica.estimate.settings import Settings, Varying
from bica.model.fit import Fit
from bica.model.noise import Noise

FIRST_FLIP_RATE = 0.2  # high, so that at first noise explains every row
FIRST_PROBABILITY = 0.1  # of a known source whose probability is not known


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """How the likelihood of all sensors is computed, and how it is searched."""

    surface: Callable[[NoiseShape], Any]  # for searching
    moves: Sequence[Move]
    first_moves: Sequence[Move]  # those that soon show whether another kind of noise is worth a search
    pool: NDArray[np.int64]
    better: float
    exact: bool
    most_work: float = np.inf
    noise_work: float = np.inf  # for every other kind of noise
    last_surface: Callable[[NoiseShape, Any], Any] | None = None  # for the numbers that are reported, near a point


@dataclass(frozen=True, slots=True, eq=False)
class WholeTask:
    """The sensors of a table that vary, the user's settings, and a route."""

    table: Varying
    settings: Settings
    route: Route
    prior: BetaPrior
    cost: NDArray[np.float64]  # of a source of 0, 1, ... sensors

    @classmethod
    def of(cls, table: Varying, settings: Settings, route: Route) -> WholeTask:
        """The task, with what a source must gain."""
        prior, n_sensors = BetaPrior(*(settings.prior or (1.0, 1.0))), table.data.n_sensors
        cost = cost_by_size(n_sensors, table.data.n_samples + prior.n_rows, n_sensors)
        return cls(table, settings, route, prior, cost)

    def start(self) -> Start:
        """The known sources, and noise that explains every row."""
        known = self.table.known
        probability = [FIRST_PROBABILITY if source.probability is None else source.probability for source in known]
        free = np.array([source.probability is None for source in known], dtype=bool)
        rate = -np.log1p(-np.array(probability, dtype=float))
        return Start(self.table.known_sets, rate, free, np.array([FIRST_FLIP_RATE]), len(known))

    def known_shape(self, noise: Noise) -> NoiseShape:
        """The noise that the user gave, of the sensors that vary."""
        noise.rates(self.table.whole.n_sensors)  # an error unless there is one value per sensor
        return NoiseShape.known(noise.of_sensors(self.table.places), self.table.data.n_sensors)

    def search(self, shape: NoiseShape, start: Start, *, another: bool = False) -> SourceSearch:
        """A search with this noise, which may be another kind than the first."""
        route = self.route
        task = SearchTask(
            Scale(route.surface(shape), self.cost, self.prior),
            route.moves,
            route.pool,
            self.table.forbidden_sets.tolist(),
            route.better,
            route.exact,
            route.noise_work if another else route.most_work,
        )
        return SourceSearch(task, start)

    def learned(self, search: SourceSearch) -> Fit:
        """Run the search, let the rows choose their noise, and refit; Ctrl-C keeps the best so far."""
        kind, interrupted = FLIPS, False
        try:
            if isinstance(self.settings.noise, Noise):
                search.run()
            else:
                search, kind = with_best_noise(self, search, self.settings.noise)
        except KeyboardInterrupt:
            interrupted = True
        return self.result(search, kind, interrupted=interrupted)

    def result(self, search: SourceSearch, kind: NoiseKind, *, interrupted: bool) -> Fit:
        """The best found, refitted to the last digit, for all sensors of the table."""
        surface, last_surface = search.task.scale.surface, self.route.last_surface
        if last_surface is not None:
            surface = last_surface(surface.noise, search.best.fit.point)
        fit = last_refit(surface, search, self.settings.min_probability or 0.0, self.prior)
        errors = standard_errors(surface, fit)
        report = noise_report(search, surface, fit, errors, kind)
        self._warn_of_vague_noise(report)
        noise = self._noise(fit, surface, kind)
        sensors = np.arange(self.table.data.n_sensors, dtype=np.uint64)[:, None]
        mixing = (fit.point.sources.view(np.uint64) >> sensors) & 1 == 1
        model, error = self.table.model(mixing, fit.point.probability, errors.probability, noise)
        return Fit(
            model,
            method="likelihood",
            n_samples=self.table.data.n_samples,
            log_likelihood=fit.point.log_likelihood if self.route.exact else None,
            probability_error=error,
            n_iter=len(search.visited),
            converged=not (interrupted or search.is_spent),
            diagnostics={"score": search.best.score, "noise": report} | ({"interrupted": True} if interrupted else {}),
        )

    def _warn_of_vague_noise(self, report: dict[str, Any]) -> None:
        if self.settings.noise != PER_SENSOR.name:
            return
        too_few = range(self.table.data.n_sensors) if self.table.data.n_sensors < LEAST_SENSORS else ()
        names = ", ".join(repr(self.table.data.sensors[i]) for i in report.get("vague", too_few))
        if not names:
            return
        warnings.warn(
            f"the rows leave the error rates of {names} open, since too little else tells when they err; "
            "give the rates if they are known, or estimate one rate for all",
            BicaWarning,
            stacklevel=4,
        )

    def _noise(self, fit: Refit, surface: Any, kind: NoiseKind) -> Noise:
        """The noise as it was given, or as it was found; a sensor that never changes gets the mean of the others."""
        if isinstance(self.settings.noise, Noise):
            return self.settings.noise
        found = surface.noise.rates(fit.point.noise)
        if kind is not PER_SENSOR:
            false_alarm, miss = (float(rates[0]) if rates.size else lowest_rate(self.table.data) for rates in found)
            return Noise(false_alarm, miss)
        every = [np.full(self.table.whole.n_sensors, rates.mean()) for rates in found]
        for rates, varying in zip(every, found, strict=True):
            rates[self.table.places] = varying
        return Noise(*every)


def last_refit(surface: Any, search: SourceSearch, min_probability: float, prior: BetaPrior) -> Refit:
    """The best found, refitted to the last digit, without sources that are rarer than asked for.

    The rarest is dropped first, and the rest refitted after each.
    """
    found = search.best.fit
    fit = _to_the_last_digit(surface, found.point, found.free, prior, search.n_known)
    while True:
        probability = np.append(np.full(search.n_known, np.inf), fit.point.probability[search.n_known :])
        if not probability.size or probability.min() >= min_probability:
            return fit
        kept = np.arange(probability.size) != probability.argmin()
        point = surface.at(fit.point.sources[kept], fit.point.rate[kept], fit.point.noise)
        if np.isfinite(point.log_likelihood):
            fit = _to_the_last_digit(surface, point, fit.free[kept], prior, search.n_known)
        else:  # without noise some rows are now impossible, whatever the rates
            fit = Refit(point, fit.free[kept], -np.inf, fit.information[np.ix_(kept, kept)])


def _to_the_last_digit(surface: Any, point: Any, free: NDArray[np.bool_], prior: BetaPrior, n_known: int) -> Refit:
    start = surface.at(point.sources, point.rate, point.noise)
    return refit(surface, start, free, prior, n_known=n_known, exact=True, pace=surface.last_pace)
