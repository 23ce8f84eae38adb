"""The learner people use: exact likelihood, unknown noise, the number of sources found by itself."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, DataError, LimitError, SettingError
from bica.estimate.costs import source_cost
from bica.estimate.identifiability import vague_sensors
from bica.estimate.lattice import Cells, Sets, Surface
from bica.estimate.noise_report import noise_report
from bica.estimate.noise_shape import NoiseShape
from bica.estimate.prior_knowledge import KnownSource, allowed_sets, bit_set, forbidden_sets, known_sources
from bica.estimate.refit import BetaPrior, Refit, refit
from bica.estimate.search import Search, Start
from bica.estimate.standard_errors import StandardErrors, standard_errors
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

LATTICE_SENSORS = 20
LATTICE_CELLS = 2**26  # patterns that rows with missing cells may stand for, all together
FIRST_FLIP_RATE = 0.2
FIRST_PROBABILITY = 0.1
FINAL: dict[str, Any] = {"tolerance": 1e-9, "exact": True}  # of a refit whose numbers are reported
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
    known: Sequence[KnownSource] = ()  # also as tuples or mappings
    forbidden: Sequence[str | Sequence[str]] = ()  # sensors that are never all driven by one unknown source
    prior: tuple[float, float] | None = None  # a Beta prior on every probability

    def __post_init__(self) -> None:
        if self.min_probability is not None and not 0 <= self.min_probability < 1:
            raise SettingError(f"min_probability must lie in [0, 1), but {self.min_probability:g} was given")
        if self.prior is not None and not (len(self.prior) == 2 and min(self.prior) >= 1):
            raise SettingError(
                f"a Beta prior is two numbers of at least 1 (they count rows), but {self.prior} was given"
            )
        object.__setattr__(self, "known", known_sources(self.known))
        object.__setattr__(self, "forbidden", forbidden_sets(self.forbidden))

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; nothing here is random, so ``rng`` is not used. Ctrl-C keeps the best so far."""
        task = Task.of(data, self)
        first = task.first_search()
        converged = _finished(first)
        search = task.second_search(first)
        if converged and search is not first:
            converged = _finished(search)
        if not converged:
            warnings.warn("interrupted: this is the best model so far, not the final one", BicaWarning, stacklevel=2)
        return task.result(search, converged)


def _finished(search: Search) -> bool:
    try:
        search.run()
    except KeyboardInterrupt:
        return False
    return True


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
        for names in settings.forbidden:
            bit_set(names, whole.sensors, "forbidden")
        _check_known(settings.known, whole, data.sensors)
        varying = [names for names in settings.forbidden if set(names) <= set(data.sensors)]
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
        cost = source_cost(self.data.n_sensors, self.data.n_samples + self.prior.n_rows)
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
        """Known sources as far as they reach sensors that vary."""
        known, varying = self.settings.known, set(self.data.sensors)
        sources = [bit_set(varying.intersection(source.sensors), self.data.sensors, "known") for source in known]
        chances = [FIRST_PROBABILITY if source.probability is None else source.probability for source in known]
        free = np.array([source.probability is None for source in known], dtype=bool)
        return np.array(sources, np.int64), -np.log1p(-np.array(chances, dtype=float)), free

    def result(self, search: Search, converged: bool) -> Fit:
        """The best that was found, refitted to the last digit, on the whole table."""
        surface = search.surface
        fit = refit(surface, search.best.fit.point, search.best.fit.free, self.prior, n_known=search.n_known, **FINAL)
        fit = without_rare(surface, fit, search.n_known, self.settings.min_probability or 0.0, self.prior)
        errors = standard_errors(surface, fit)
        self._warn_of_vague_noise(surface, fit)
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
            diagnostics={"score": search.best.score, "noise": noise_report(search, fit, errors)}
            | ({} if converged else {"interrupted": True}),
        )

    def _warn_of_vague_noise(self, surface: Surface, fit: Refit) -> None:
        if self.settings.noise != "per-sensor":
            return
        vague = vague_sensors(surface, fit.point) if fit.point.noise.size else range(self.data.n_sensors)
        names = ", ".join(repr(self.data.sensors[i]) for i in vague)
        if names:
            warnings.warn(
                f"the data do not tell how often {names} err: their errors look like sources of their own; "
                "give their rates if they are known, or estimate one rate for all",
                BicaWarning,
                stacklevel=4,
            )

    def _model(self, fit: Refit, errors: StandardErrors, surface: Surface) -> tuple[OrMixture, NDArray[np.float64]]:
        """The model of all sensors: constant ones have a source of their own, always on."""
        always = np.flatnonzero((self.whole.ones() >= self.whole.times_seen()) & (self.whole.ones() > 0))
        mixing = np.zeros((self.whole.n_sensors, fit.point.sources.size + always.size), dtype=bool)
        varying = (fit.point.sources >> np.arange(self.data.n_sensors)[:, None]) & 1
        mixing[self.places, : fit.point.sources.size] = varying
        for column, source in enumerate(self.settings.known):  # they come first, and may reach constant sensors
            mixing[:, column] = np.isin(self.whole.sensors, source.sensors)
        mixing[always, np.arange(fit.point.sources.size, mixing.shape[1])] = True
        probability = np.concatenate([fit.point.probability, np.ones(always.size)])
        names = [source.name for source in self.settings.known]
        names += [None] * (probability.size - len(names))
        model = OrMixture(mixing, probability, self._noise(fit, surface), sensors=self.whole.sensors, names=names)
        return model, np.concatenate([errors.probability, np.zeros(always.size)])

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
        if np.isfinite(start.log_likelihood):
            fit = refit(surface, start, fit.free[kept], prior, n_known=n_known, **FINAL)
        else:  # without noise some rows are now impossible, and no rates make them less so
            fit = Refit(start, fit.free[kept], -np.inf, fit.information[np.ix_(kept, kept)])


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
    n_fillings = _n_fillings(data, n_varying)
    if n_fillings > LATTICE_CELLS:
        raise LimitError(
            f"the missing cells of the distinct rows can be filled in {n_fillings:.2g} ways, more than the limit of "
            f"{LATTICE_CELLS:.2g}; drop the sensors or the rows with most gaps"
        )


def _n_fillings(data: PatternCounts, n_varying: int) -> float:
    """The work of one look at the likelihood: a row with k missing cells stands for 2^k patterns."""
    if data.observed is None:
        return 2.0**n_varying
    n_missing = data.n_sensors - np.bitwise_count(data.observed).sum(axis=1)
    return float(np.exp2(np.minimum(n_missing, n_varying)).sum())


def _check_known(known: Sequence[KnownSource], whole: PatternCounts, varying: tuple[str, ...]) -> None:
    silent = {sensor for sensor, ones in zip(whole.sensors, whole.ones(), strict=True) if not ones}
    for source in known:
        bit_set(source.sensors, whole.sensors, "known")
        for sensor in source.sensors:
            if sensor in silent:
                raise SettingError(
                    f"a known source switches on {sensor!r}, which is never on in the table; leave it out"
                )
        if not set(source.sensors) & set(varying):
            raise SettingError(
                f"the known source of {', '.join(map(repr, source.sensors))} reaches only sensors that are always on, "
                "so nothing can be learned about it; leave it out"
            )
