"""Learning all sensors of a table at once: where to start, which noise, the search, and the fit that comes of it.

How the likelihood of all sensors is computed is left to a route: exactly on the lattice of all their sets
(``lattice.py``), or from lists of hidden states of every row (``rows/states.py``). Standard errors come from the
curvature of the likelihood at its maximum.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.errors import BicaWarning
from bica.estimate.lattice import HIGHEST, NoiseShape, Surface, lowest_rate
from bica.estimate.noise import FLIPS, LEAST_SENSORS, PER_SENSOR, NoiseKind, Rival, with_best_noise
from bica.estimate.score import AT_BOUND, BetaPrior, Refit, Scale, cost_by_size, refit
from bica.estimate.search import Move, SearchTask, SourceSearch, Start
from bica.estimate.settings import Settings, Varying
from bica.model.files import LEVEL, probability_interval
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

FIRST_FLIP_RATE = 0.2  # high, so that at first noise explains every row
FIRST_PROBABILITY = 0.1  # of a known source whose probability is not known
IN_DOUBT = 4.0  # nats: a smaller lead over all other sets of sources leaves them in doubt


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """How the likelihood of all sensors is computed, and how it is searched."""

    first_surface: Any  # the likelihood with the noise to begin with
    surface: Callable[[NoiseShape], Any]  # the same with other noise
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

    @property
    def prior(self) -> BetaPrior:
        """The user's prior on every probability; by default, all are alike."""
        return BetaPrior(*(self.settings.prior or (1.0, 1.0)))

    def start(self) -> Start:
        """The known sources, and noise that explains every row."""
        known = self.table.known
        probability = [FIRST_PROBABILITY if source.probability is None else source.probability for source in known]
        free = np.array([source.probability is None for source in known], dtype=bool)
        rate = -np.log1p(-np.array(probability, dtype=float))
        return Start(self.table.known_sets, rate, free, np.array([FIRST_FLIP_RATE]), len(known))

    def search(
        self, start: Start | None = None, shape: NoiseShape | None = None, *, another: bool = False
    ) -> SourceSearch:
        """A search from the known sources or as told, with the first noise or with ``another`` kind."""
        route, data, prior, start = self.route, self.table.data, self.prior, start or self.start()
        surface = route.first_surface if shape is None else route.surface(shape)
        task = SearchTask(
            Scale(surface, cost_by_size(data.n_sensors, data.n_samples + prior.n_rows, data.n_sensors), prior),
            route.moves,
            route.pool,
            self.table.forbidden_sets.tolist(),
            route.better,
            route.exact,
            route.noise_work if another else route.most_work,
        )
        return SourceSearch(task, start)

    def learned(self, search: SourceSearch, rival: Rival | None = None) -> Fit:
        """Run the search, let the rows choose their noise, and refit; Ctrl-C keeps the best so far.

        A search in doubt may start again from a ``rival``, an answer of another kind, or stop where that leads.
        """
        kind, interrupted = FLIPS, False
        try:
            if isinstance(self.settings.noise, Noise):
                search.run()
            else:
                search, kind = with_best_noise(self, search, self.settings.noise, rival)
            if self.settings.n_sources is not None:
                search.run_for(self.settings.n_sources - self.table.always.size)
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
        self._warn_of_another_number(fit.point.sources.size + self.table.always.size)
        lead, noise = lead_of(search), self._noise(fit, surface, kind)
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
            diagnostics={"score": search.best.score, "noise": report}
            | ({"lead": lead} if self.route.exact and np.isfinite(lead) else {})
            | ({"interrupted": True} if interrupted else self._averaging(search, model, lead)),
        )

    def _averaging(self, search: SourceSearch, model: OrMixture, lead: float) -> dict[str, Any]:
        """The support of sources that are hardly in doubt, from the scores of all sets of sources refitted."""
        if not self.route.exact or lead <= IN_DOUBT or self.settings.prior is not None:
            return {}
        weights = {sources: math.exp(score - search.best.score) for sources, score in search.scores.items()}
        total, support = sum(weights.values()), dict.fromkeys(set().union(*weights), 0.0)
        for sources, weight in weights.items():
            for source in sources:
                support[source] += weight / total
        shares = support_of_columns(self.table, model, support)
        edges = [[share] * int(n) for share, n in zip(shares, model.mixing.sum(axis=0), strict=True)]
        return {"averaging": {"support": shares, "edge_support": edges}}

    def _warn_of_another_number(self, n_sources: int) -> None:
        if self.settings.n_sources not in (None, n_sources):
            warnings.warn(
                f"the rows tell of {n_sources} sources, not of the {self.settings.n_sources} that were asked for",
                BicaWarning,
                stacklevel=4,
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


def lead_of(search: SourceSearch) -> float:
    """By how much the best scores above all other sets of sources that were refitted."""
    best = frozenset(search.best.fit.point.sources.tolist())
    return search.best.score - max((s for sources, s in search.scores.items() if sources != best), default=-np.inf)


def support_of_columns(table: Varying, model: OrMixture, support: Mapping[int, float]) -> list[float]:
    """The support of every source of the model, from that of sets of sensors that vary; others are there for sure."""
    sets = (1 << np.arange(table.places.size)) @ model.mixing[table.places].astype(np.int64)
    return [min(1.0, support.get(s, 0.0)) if s else 1.0 for s in sets.tolist()]


def last_refit(surface: Any, search: SourceSearch, min_probability: float, prior: BetaPrior) -> Refit:
    """The best found, refitted to the last digit, without sources that are rarer than asked for.

    All of them go at once: the rest is refitted without them, and a rare source must not rise by what others leave.
    """
    found = search.best.fit
    fit = _to_the_last_digit(surface, found.point, found.free, prior, search.n_known)
    while True:
        probability = np.append(np.full(search.n_known, np.inf), fit.point.probability[search.n_known :])
        if not probability.size or probability.min() >= min_probability:
            return fit
        kept = probability >= min_probability
        point = surface.at(fit.point.sources[kept], fit.point.rate[kept], fit.point.noise)
        if np.isfinite(point.log_likelihood):
            fit = _to_the_last_digit(surface, point, fit.free[kept], prior, search.n_known)
        else:  # without noise some rows are now impossible, whatever the rates
            fit = Refit(point, fit.free[kept], -np.inf, fit.information[np.ix_(kept, kept)])


def _to_the_last_digit(surface: Any, point: Any, free: NDArray[np.bool_], prior: BetaPrior, n_known: int) -> Refit:
    start = surface.at(point.sources, point.rate, point.noise)
    return refit(surface, start, free, prior, n_known=n_known, exact=True, pace=surface.last_pace)


FLAT = 1e-9  # a curvature this small, relative to those of single parameters, counts as none


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """Standard errors: 0 where a value was given or lies on its bound, infinite where the rows say nothing about it."""

    probability: NDArray[np.float64]  # (n_sources,)
    noise: NDArray[np.float64]  # (n_unknown,), of the unknown noise rates


def standard_errors(surface: Surface, fit: Refit) -> StandardErrors:
    """The standard errors, from the inverse of the information on all parameters that could move.

    The information adds up the outer products of the slopes of single rows, which ``fit`` has anyway. If the model is
    right, that is minus the matrix of second derivatives, apart from random error.
    """
    n_sources, noise = fit.point.rate.size, fit.point.noise
    inside = (noise > surface.noise.lowest + AT_BOUND) & (noise < surface.noise.highest - AT_BOUND)
    moving = np.concatenate([fit.free, inside])
    covariance = np.zeros((moving.size, moving.size))
    covariance[np.ix_(moving, moving)] = covariance_of(fit.information[np.ix_(moving, moving)])
    error = np.sqrt(np.diag(covariance))
    # a probability 1 - exp(-rate) moves by (1 - probability) where its rate moves by 1
    return StandardErrors(error[:n_sources] * np.exp(-fit.point.rate), error[n_sources:])


def covariance_of(information: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of an information matrix; infinite for parameters that lie in a direction without information.

    >>> covariance_of(np.array([[4.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    array([[0.25, 0.  , 0.  ],
           [0.  ,  inf,  inf],
           [0.  ,  inf,  inf]])
    """
    scale = np.sqrt(np.diag(information))
    scale[scale == 0] = 1.0
    curvature, directions = np.linalg.eigh(information / np.outer(scale, scale))
    flat = curvature <= FLAT
    spread = directions[:, ~flat] / np.sqrt(curvature[~flat])
    covariance: NDArray[np.float64] = spread @ spread.T / np.outer(scale, scale)
    lost = np.flatnonzero((directions[:, flat] ** 2).sum(axis=1) > FLAT)
    covariance[np.ix_(lost, lost)] = np.inf
    return covariance


VAGUE = 0.1  # a standard error that leaves a rate open
SURE = 4.0  # nats: a fall of the log-likelihood that rules a rate out
WITHIN = math.log(1 / (1 - LEVEL))  # nats: sets of sources whose score falls this short are twenty times less credible


def noise_report(
    search: SourceSearch, surface: Any, fit: Refit, errors: StandardErrors, kind: NoiseKind
) -> dict[str, Any]:
    """The estimate as plain values: one flip rate, or false alarms and misses, shared or one per sensor.

    Which sources there are decides how much is left for the noise to explain. So the interval of a flip rate covers
    those of every set of sources visited by the search whose score is within log 20 = 3.0 of the best, each with the
    same margins below and above as the best.
    """
    noise = fit.point.noise
    if not noise.size:
        return {"estimated": False}
    if kind is not FLIPS:
        return _report_of_two(surface, fit, errors, kind)
    rate, error = float(noise[0]), float(errors.noise[0])
    low, high = _interval(surface, fit, rate, error)
    others = [rate, *(rate for score, rate in search.visited if score >= search.best.score - WITHIN)]
    interval = [max(0.0, low + min(others) - rate), min(1.0, high + max(others) - rate)]
    return {"estimated": True, "flip_rate": rate, "error": error, "interval": interval}


def _report_of_two(surface: Any, fit: Refit, errors: StandardErrors, kind: NoiseKind) -> dict[str, Any]:
    noise = fit.point.noise
    half = noise.size // 2
    report: dict[str, Any] = {"estimated": True, "kind": kind.name, "n_unknown": noise.size}
    for name, part in (("false_alarm", slice(half)), ("miss", slice(half, None))):
        rates, error = noise[part].tolist(), errors.noise[part].tolist()
        intervals = [probability_interval(*pair) for pair in zip(rates, error, strict=True)]
        report[name] = {"rate": rates, "error": error, "interval": intervals}
    if half > 1:
        slope = surface.gradient(fit.point)[fit.point.rate.size :]
        at_bound = noise <= surface.noise.lowest + AT_BOUND
        is_open = np.where(at_bound, -VAGUE * slope < SURE, errors.noise > VAGUE)
        report["vague"] = np.flatnonzero(is_open.reshape(2, half).any(axis=0)).tolist()
    return report


def _interval(surface: Any, fit: Refit, rate: float, error: float) -> tuple[float, float]:
    """The interval of the flip rate with the best sources; at its floor, from 0 to what would hardly go unnoticed."""
    if rate > surface.noise.lowest + AT_BOUND:
        return probability_interval(rate, error)
    # the likelihood falls like exp(slope * flip rate) from here: with n sure cells that is the rule of three, 3 / n
    slope = float(surface.gradient(fit.point)[fit.point.rate.size :].sum())
    return 0.0, min(HIGHEST, rate + WITHIN / max(-slope, 1.0))
