"""The learner people use: exact likelihood, unknown noise, the number of sources found by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import DataError, LimitError, SettingError
from bica.estimate.lattice import Cells, Sets, Surface
from bica.estimate.noise_report import noise_report
from bica.estimate.noise_shape import NoiseShape
from bica.estimate.prior_knowledge import KnownSource, allowed_sets, bit_set
from bica.estimate.refit import BetaPrior, Refit, refit
from bica.estimate.search import Search, Start
from bica.estimate.standard_errors import StandardErrors, standard_errors
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

LATTICE_SENSORS = 20
LATTICE_CELLS = 2**26  # kinds of gaps in the rows, times the size of the lattice
FIRST_FLIP_RATE = 0.2
FIRST_PROBABILITY = 0.1
CLEAR_NOISE = 1e-3  # below this, known noise explains too little to start a search from


@dataclass(frozen=True, kw_only=True)
class Likelihood:
    """Learn sources and noise by the penalised likelihood, exact for up to 20 sensors that vary.

    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], Noise.flips(0.05))
    >>> data = PatternCounts.of(truth.sample(4000, np.random.default_rng(1)))
    >>> found = Likelihood().fit(data, np.random.default_rng(0)).model
    >>> found.mixing.astype(int).tolist(), found.probability.round(1).tolist()
    ([[1, 1], [1, 0]], [0.5, 0.2])
    """

    noise: Noise | Literal["estimate", "per-sensor"] = "estimate"  # one flip rate for all, or one a sensor
    min_probability: float | None = None  # rarer sources are dropped; None leaves the choice to the likelihood
    known: Sequence[KnownSource] = ()
    forbidden: Sequence[Sequence[str]] = ()  # sensors that are never all driven by one unknown source
    prior: tuple[float, float] | None = None  # a Beta prior on every probability

    def __post_init__(self) -> None:
        if self.min_probability is not None and not 0 <= self.min_probability < 1:
            raise SettingError(f"min_probability must lie in [0, 1), but {self.min_probability:g} was given")
        if self.prior is not None and min(self.prior) <= 0:
            raise SettingError(f"both numbers of a Beta prior must be positive, but {self.prior} was given")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; nothing here is random, so ``rng`` is not used. Ctrl-C keeps the best so far."""
        task = Task.of(data, self)
        search, converged = task.first_search(), True
        try:
            search.run()
            search = task.second_search(search)
            search.run()
        except KeyboardInterrupt:
            converged = False
        return task.result(search, converged)


def source_cost(n_sensors: int, n_samples: float) -> Callable[[Sets], NDArray[np.float64]]:
    """What one more source must gain in log-likelihood.

    Half a log of the rows is the price of its rate. The price of its column grows with the sensors and, more slowly,
    with the rows; it was measured on simulated networks, where less lets spurious sources in at many rows and more
    loses true ones at few.
    """
    cost = 0.75 * math.log(max(n_samples, 2.0)) + 0.5 * math.log(max(n_sensors, 2))
    return lambda sources: np.full(sources.size, cost)


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The table of the sensors that vary, and what the user said about it."""

    whole: PatternCounts
    data: PatternCounts  # the sensors that vary
    places: NDArray[np.int64]  # where they stand in the whole table
    cells: Cells
    allowed: NDArray[np.bool_]
    settings: Likelihood

    @classmethod
    def of(cls, whole: PatternCounts, settings: Likelihood) -> Task:
        """Leave out sensors that never change: their sources are plain, and logarithms of 0 help nobody."""
        ones, seen = whole.ones(), whole.times_seen()
        places = np.flatnonzero((ones > 0) & (ones < seen))
        _check_size(whole, places.size)
        data = whole.project(places.tolist())
        forbidden = [[names] if isinstance(names, str) else list(names) for names in settings.forbidden]
        for names in forbidden:
            bit_set(names, whole.sensors, "forbidden")
        varying = [names for names in forbidden if set(names) <= set(data.sensors)]
        return cls(whole, data, places, Cells.of(data), allowed_sets(varying, data.sensors), settings)

    @property
    def prior(self) -> BetaPrior:
        """The Beta prior on every free probability."""
        return BetaPrior(*(self.settings.prior or (1.0, 1.0)))

    def first_search(self) -> Search:
        """With the known noise where it is large enough to explain odd rows, else with one unknown flip rate."""
        sources, rate, free = self._known_sources()
        if self._known_noise_is_clear():
            return self._search(self._known_shape(), Start(sources, rate, free, np.empty(0), sources.size))
        shape = NoiseShape.shared_flips(self.data.n_sensors, self._lowest_rate())
        if self.data.n_sensors < 2:  # a single sensor cannot tell noise from a source
            shape = NoiseShape.known(Noise.flips(self._lowest_rate()), self.data.n_sensors)
            return self._search(shape, Start(sources, rate, free, np.empty(0), sources.size))
        return self._search(shape, Start(sources, rate, free, np.array([FIRST_FLIP_RATE]), sources.size))

    def second_search(self, first: Search) -> Search:
        """Go on from there with the noise that the user asked for."""
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
        cost = source_cost(self.data.n_sensors, self.data.n_samples)
        return Search(Surface(self.cells, shape), cost, self.allowed, self.prior, start)

    def _known_noise_is_clear(self) -> bool:
        noise = self.settings.noise
        return isinstance(noise, Noise) and min(np.min(noise.false_alarm), np.min(noise.miss)) >= CLEAR_NOISE

    def _known_shape(self) -> NoiseShape:
        assert isinstance(self.settings.noise, Noise)
        self.settings.noise.rates(self.whole.n_sensors)  # one value a sensor, or an error
        return NoiseShape.known(self.settings.noise.of_sensors(self.places), self.data.n_sensors)

    def _lowest_rate(self) -> float:
        """Low enough to change no estimate, and never 0: every row must stay possible."""
        return 0.01 / max(1.0, self.data.n_samples * self.data.n_sensors)

    def _known_sources(self) -> tuple[Sets, NDArray[np.float64], NDArray[np.bool_]]:
        """Known sources on the sensors that vary; one that touches a sensor which is never on cannot be active."""
        varying = []
        for source in self.settings.known:
            bit_set(source.sensors, self.whole.sensors, "known")
            if set(source.sensors) <= set(self.data.sensors):
                varying.append(source)
        sources = np.array([bit_set(source.sensors, self.data.sensors, "known") for source in varying], np.int64)
        rate = np.array(
            [-math.log1p(-(FIRST_PROBABILITY if s.probability is None else s.probability)) for s in varying]
        )
        return sources, rate, np.array([source.probability is None for source in varying], dtype=bool)

    def result(self, search: Search, converged: bool) -> Fit:
        """The best that was found, refitted to the last digit, on the whole table."""
        surface = search.surface
        fit = refit(surface, search.best.fit.point, search.best.fit.free, self.prior, tolerance=1e-9, exact=True)
        fit = without_rare(surface, fit, search.n_known, self.settings.min_probability or 0.0, self.prior)
        errors = standard_errors(surface, fit)
        model, error = self._model(fit, errors, surface)
        order = model.order()
        return Fit(
            model.pick(order),
            method="likelihood",
            n_samples=self.whole.n_samples,
            log_likelihood=fit.point.log_likelihood,
            probability_error=error[order],
            n_iter=len(search.visited),
            converged=converged,
            diagnostics={"score": search.best.score, "noise": noise_report(search, fit, errors)},
        )

    def _model(self, fit: Refit, errors: StandardErrors, surface: Surface) -> tuple[OrMixture, NDArray[np.float64]]:
        """The model of all sensors: constant ones have a source of their own, always on."""
        always = np.flatnonzero((self.whole.ones() >= self.whole.times_seen()) & (self.whole.ones() > 0))
        mixing = np.zeros((self.whole.n_sensors, fit.point.sources.size + always.size), dtype=bool)
        varying = (fit.point.sources >> np.arange(self.data.n_sensors)[:, None]) & 1
        mixing[self.places, : fit.point.sources.size] = varying
        mixing[always, np.arange(fit.point.sources.size, mixing.shape[1])] = True
        probability = np.concatenate([fit.point.probability, np.ones(always.size)])
        names = [*self._names(fit.point.sources), *[None] * always.size]
        model = OrMixture(mixing, probability, self._noise(fit, surface), sensors=self.whole.sensors, names=names)
        return model, np.concatenate([errors.probability, np.zeros(always.size)])

    def _names(self, sources: Sets) -> list[str | None]:
        named = {frozenset(source.sensors): source.name for source in self.settings.known}
        members = [frozenset(s for i, s in enumerate(self.data.sensors) if source >> i & 1) for source in sources]
        return [named.get(sensors) for sensors in members]

    def _noise(self, fit: Refit, surface: Surface) -> Noise:
        """As it was given, or as it was found; a sensor that never changes is given the mean of the others."""
        if isinstance(self.settings.noise, Noise):
            return self.settings.noise
        false_alarm, _ = surface.noise.rates(fit.point.noise)
        if self.settings.noise == "estimate":
            return Noise.flips(float(false_alarm[0]) if false_alarm.size else self._lowest_rate())
        rates = np.full(self.whole.n_sensors, false_alarm.mean() if false_alarm.size else 0.0)
        rates[self.places] = false_alarm
        return Noise(rates, rates)


def without_rare(surface: Surface, fit: Refit, n_known: int, min_probability: float, prior: BetaPrior) -> Refit:
    """Drop sources below the floor, the rarest first, refitting after each."""
    while True:
        probability = fit.point.probability
        probability[:n_known] = np.inf
        if not probability.size or probability.min() >= min_probability:
            return fit
        kept = np.arange(probability.size) != probability.argmin()
        start = surface.at(fit.point.sources[kept], fit.point.rate[kept], fit.point.noise)
        fit = refit(surface, start, fit.free[kept], prior, tolerance=1e-9, exact=True)


def explaining(surface: Surface, start: Start, allowed: NDArray[np.bool_]) -> Start:
    """Add sources until every observed row is possible: without noise an unexplained row has a source of its own."""
    while True:
        chance = surface.at(start.sources, start.rate, start.noise).chance
        impossible = np.flatnonzero(chance <= 0)
        if not impossible.size:
            return start
        row = int(surface.cells.cells[impossible[np.argmax(surface.cells.weights[impossible])]])
        inside = start.sources[start.sources & ~row == 0]
        rest = row & ~int(np.bitwise_or.reduce(inside, initial=0))
        source = rest if allowed[rest] else row
        if not allowed[source]:
            raise DataError("a row cannot be explained without noise by the sources that are allowed; allow some noise")
        start = replace(
            start,
            sources=np.append(start.sources, source),
            rate=np.append(start.rate, 1.0 / surface.cells.n_samples),
            free=np.append(start.free, True),
        )


def _check_size(data: PatternCounts, n_varying: int) -> None:
    if n_varying > LATTICE_SENSORS:
        raise LimitError(
            f"{n_varying} sensors vary, but the exact likelihood ends at {LATTICE_SENSORS}; "
            'watch fewer sensors, or use method "findbica"'
        )
    n_gaps = 1 if data.observed is None else len(np.unique(data.observed, axis=0))
    if n_gaps * 2**n_varying > LATTICE_CELLS:
        raise LimitError(
            f"the rows have {n_gaps} different sets of missing cells, too many for {n_varying} sensors; "
            "drop the rarest, or the sensors with most gaps"
        )
