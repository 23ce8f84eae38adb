"""Learning a table of up to 20 sensors that vary from the exact likelihood of all of them together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, DataError, LimitError
from bica.estimate.costs import source_cost
from bica.estimate.lattice.errors import noise_report, standard_errors, vague_sensors
from bica.estimate.lattice.refit import BetaPrior, Refit, refit
from bica.estimate.lattice.search import Search, Start
from bica.estimate.lattice.surface import Cells, NoiseShape, Point, Sets, Surface
from bica.estimate.row_search import SearchTask, SourceSearch, from_rows
from bica.estimate.settings import Settings, Varying, allowed_sets, bit_set
from bica.model.fit import Fit
from bica.model.noise import Noise

LATTICE_SENSORS = 20  # that vary: a table over all their sets takes 8 MB
LATTICE_CELLS = 2**26  # patterns that rows with missing cells may stand for, all together
CLOSER_LOOK = 16  # sensors up to which the gain of thousands of sets is a matter of seconds
NOTABLE = 2.5  # rise of the score that a closer look must find: some of a thousand more sets offer less by chance
ALL_SETS = 10  # sensors up to which all sets are candidates
FIRST_FLIP_RATE = 0.2  # high, so that at first noise explains every row
FIRST_PROBABILITY = 0.1  # of a known source whose probability is not known
LOWEST_FLIPS = 0.01  # flips in the whole table at the lowest flip rate: too few to change an estimate
FINAL: dict[str, Any] = {"tolerance": 1e-9, "exact": True}  # settings of a refit whose numbers are reported
CLEAR_NOISE = 1e-3  # a flip rate below which known noise explains too little to start a search from


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """Unknown sources to start from, with their rates, and the flip rate they were found with."""

    sources: Sets
    rate: NDArray[np.float64]
    flip_rate: float


def fit_on_lattice(table: Varying, settings: Settings, guess: Guess | None = None) -> Fit:
    """The fit of a search that starts from no source or from a guess; Ctrl-C keeps the best so far."""
    task = LatticeTask.of(table, settings)
    first = task.first_search(guess)
    converged = _finished(first)
    search: Search | SourceSearch = task.second_search(first)
    if converged and search is not first:
        converged = _finished(search)
    if converged and table.data.n_sensors <= CLOSER_LOOK:
        search = task.closer_look(search)
        converged = _finished(search)
    return task.result(search, converged)


def _finished(search: Search | SourceSearch) -> bool:
    try:
        search.run()
    except KeyboardInterrupt:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class LatticeTask:
    """The table on the lattice, and the user's settings."""

    table: Varying
    cells: Cells
    allowed: NDArray[np.bool_]
    settings: Settings

    @classmethod
    def of(cls, table: Varying, settings: Settings) -> LatticeTask:
        """The task for this table, its rows laid out on the lattice."""
        _check_size(table.whole, table.data.n_sensors)
        allowed = allowed_sets(table.forbidden, table.data.sensors)
        return cls(table, Cells.of(table.data), allowed, settings)

    @property
    def data(self) -> PatternCounts:
        """The rows of the sensors that vary."""
        return self.table.data

    @property
    def prior(self) -> BetaPrior:
        """The Beta prior on every free probability."""
        return BetaPrior(*(self.settings.prior or (1.0, 1.0)))

    def first_search(self, guess: Guess | None = None) -> Search:
        """A search with the known noise if it is high enough to explain odd rows, else with one unknown flip rate."""
        start = self._start(guess)
        if self._known_noise_is_clear():
            return self._search(self._known_shape(), replace(start, noise=np.empty(0)))
        shape = NoiseShape.shared_flips(self.data.n_sensors, self._lowest_rate())
        if self.data.n_sensors < 2:  # with a single sensor, noise looks like a source
            shape = NoiseShape.known(Noise.flips(self._lowest_rate()), self.data.n_sensors)
            return self._search(shape, replace(start, noise=np.empty(0)))
        return self._search(shape, start)

    def _start(self, guess: Guess | None) -> Start:
        """The known sources, then those guessed."""
        sources, rate, free = self._known_sources()
        if guess is None:
            return Start(sources, rate, free, np.array([FIRST_FLIP_RATE]), sources.size)
        new = ~np.isin(guess.sources, sources)
        return Start(
            np.concatenate([sources, guess.sources[new]]),
            np.concatenate([rate, guess.rate[new]]),
            np.concatenate([free, np.ones(new.sum(), dtype=bool)]),
            np.array([max(guess.flip_rate, self._lowest_rate())]),
            sources.size,
        )

    def second_search(self, first: Search) -> Search:
        """A search from there on with the noise that the user asked for; ``first`` itself if it has that noise."""
        noise, point = self.settings.noise, first.best.fit.point
        start = Start(point.sources, point.rate, first.best.fit.free, point.noise, first.n_known)
        if noise == "per-sensor" and point.noise.size:
            shape = NoiseShape.own_flips(self.data.n_sensors, self._lowest_rate())
            return self._search(shape, replace(start, noise=np.repeat(point.noise, self.data.n_sensors)))
        if not isinstance(noise, Noise) or self._known_noise_is_clear():
            return first
        shape = self._known_shape()
        return self._search(
            shape, explaining(Surface(self.cells, shape), replace(start, noise=np.empty(0)), self.allowed)
        )

    def _search(self, shape: NoiseShape, start: Start) -> Search:
        cost = source_cost(self.data.n_sensors, self.data.n_samples + self.prior.n_rows)
        return Search(Surface(self.cells, shape), cost, self.allowed, self.prior, start)

    def closer_look(self, search: Search | SourceSearch) -> SourceSearch:
        """Go on from there with candidates by gain instead of slope; without a rising slope there is no gain."""
        surface, found = Surface(self.cells, search.surface.noise), search.best.fit
        start = Start(found.point.sources, found.point.rate, found.free, found.point.noise, search.n_known)
        pool = np.flatnonzero(self.allowed)
        if self.data.n_sensors > ALL_SETS:
            pool = from_rows(self.cells.cells, self.cells.weights, self.data.n_sensors)
        cost = source_cost(self.data.n_sensors, self.data.n_samples + self.prior.n_rows)

        def rising(point: Point) -> Sets:
            return pool[surface.candidate_gradient(point)[pool] > 0]

        task = SearchTask(surface, cost, lambda sets: self.allowed[sets], rising, {}, self.prior, NOTABLE)
        closer = SourceSearch(task, start)
        closer.visited = search.visited + closer.visited
        return closer

    def _known_noise_is_clear(self) -> bool:
        noise = self.settings.noise
        return isinstance(noise, Noise) and min(np.min(noise.false_alarm), np.min(noise.miss)) >= CLEAR_NOISE

    def _known_shape(self) -> NoiseShape:
        assert isinstance(self.settings.noise, Noise)
        self.settings.noise.rates(self.table.whole.n_sensors)  # an error unless there is one value per sensor
        return NoiseShape.known(self.settings.noise.of_sensors(self.table.places), self.data.n_sensors)

    def _lowest_rate(self) -> float:
        """The lowest flip rate: too low to change an estimate, but not 0, since every row must stay possible."""
        return LOWEST_FLIPS / max(1.0, self.data.n_samples * self.data.n_sensors)

    def _known_sources(self) -> tuple[Sets, NDArray[np.float64], NDArray[np.bool_]]:
        """The known sources, cut down to sensors that vary, their rates, and which of these are free."""
        known, varying = self.settings.known, set(self.data.sensors)
        sources = [bit_set(varying.intersection(source.sensors), self.data.sensors, "known") for source in known]
        probability = [FIRST_PROBABILITY if source.probability is None else source.probability for source in known]
        free = np.array([source.probability is None for source in known], dtype=bool)
        return np.array(sources, np.int64), -np.log1p(-np.array(probability, dtype=float)), free

    def result(self, search: Search | SourceSearch, converged: bool) -> Fit:
        """The best fit found, refitted to the last digit, for all sensors of the table."""
        surface = Surface(self.cells, search.surface.noise)
        fit = refit(surface, search.best.fit.point, search.best.fit.free, self.prior, n_known=search.n_known, **FINAL)
        fit = without_rare(surface, fit, search.n_known, self.settings.min_probability or 0.0, self.prior)
        errors = standard_errors(surface, fit)
        self._warn_of_vague_noise(surface, fit)
        mixing = (fit.point.sources >> np.arange(self.data.n_sensors)[:, None]) & 1 == 1
        noise = self._noise(fit, surface)
        model, error = self.table.model(mixing, fit.point.probability, errors.probability, noise)
        return Fit(
            model,
            method="likelihood",
            n_samples=self.data.n_samples,
            log_likelihood=fit.point.log_likelihood,
            probability_error=error,
            n_iter=len(search.visited),
            converged=converged,
            diagnostics={"score": search.best.score, "noise": noise_report(search, surface, fit, errors)}
            | ({} if converged else {"interrupted": True}),
        )

    def _warn_of_vague_noise(self, surface: Surface, fit: Refit) -> None:
        if self.settings.noise != "per-sensor":
            return
        vague = vague_sensors(surface, fit.point) if fit.point.noise.size else range(self.data.n_sensors)
        names = ", ".join(repr(self.data.sensors[i]) for i in vague)
        if names:
            warnings.warn(
                f"the rows leave the error rates of {names} open, since their errors look like sources of their own; "
                "give the rates if they are known, or estimate one rate for all",
                BicaWarning,
                stacklevel=4,
            )

    def _noise(self, fit: Refit, surface: Surface) -> Noise:
        """The noise as it was given, or as it was found; a sensor that never changes gets the mean of the others."""
        if isinstance(self.settings.noise, Noise):
            return self.settings.noise
        false_alarm, _ = surface.noise.rates(fit.point.noise)
        if self.settings.noise == "estimate":
            return Noise.flips(float(false_alarm[0]) if false_alarm.size else self._lowest_rate())
        rates = np.full(self.table.whole.n_sensors, false_alarm.mean() if false_alarm.size else 0.0)
        rates[self.table.places] = false_alarm
        return Noise(rates, rates)


def without_rare(surface: Surface, fit: Refit, n_known: int, min_probability: float, prior: BetaPrior) -> Refit:
    """The fit without sources below the floor; the rarest is dropped first, and the rest refitted after each."""
    while True:
        probability = fit.point.probability
        probability[:n_known] = np.inf
        if not probability.size or probability.min() >= min_probability:
            return fit
        kept = np.arange(probability.size) != probability.argmin()
        start = surface.at(fit.point.sources[kept], fit.point.rate[kept], fit.point.noise)
        if np.isfinite(start.log_likelihood):
            fit = refit(surface, start, fit.free[kept], prior, n_known=n_known, **FINAL)
        else:  # without noise some rows are now impossible, whatever the rates
            fit = Refit(start, fit.free[kept], -np.inf, fit.information[np.ix_(kept, kept)])


def explaining(surface: Surface, start: Start, allowed: NDArray[np.bool_]) -> Start:
    """The start with sources added until every observed row is possible, as each must be without noise."""
    while True:
        probability = surface.at(start.sources, start.rate, start.noise).cell_probability
        impossible = np.flatnonzero(probability <= 0)
        if not impossible.size:
            return start
        row = int(surface.cells.cells[impossible[np.argmax(surface.cells.weights[impossible])]])
        inside = start.sources[start.sources & ~row == 0]
        rest = row & ~int(np.bitwise_or.reduce(inside, initial=0))
        source = rest if allowed[rest] else row
        if not allowed[source]:
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
