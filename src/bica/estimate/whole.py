"""Learning all sensors of a table at once: where to start, which noise, the search, and the fit that comes of it.

How the likelihood of all sensors is computed is left to a route: exactly on the lattice of all their sets
(``lattice.py``), or from lists of hidden states of every row (``rows/states.py``).

One flip rate comes first. Where sensors err in other ways, it is refuted only after a fashion: rows that lack a sensor
become sources of their own, which contain each other like splinters. So every other kind of noise starts from the
sources that no other source contains, and the evidence decides. All unknown rates pay for themselves there.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.errors import BicaWarning
from bica.estimate.lattice import AT_BOUND, HIGHEST, BetaPrior, NoiseShape, Refit, Sets, lowest_rate, refit
from bica.estimate.score import TYPICAL_RATE, Scale, StandardErrors, standard_errors
from bica.estimate.search import Move, SearchTask, SourceSearch, Start, drop, has_splinters, largest, less_one
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
    cost: NDArray[np.float64] | None = None  # of sources by size, where they are those of a larger table


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
        route, start = self.route, start or self.start()
        surface = route.first_surface if shape is None else route.surface(shape)
        task = SearchTask(
            Scale(surface, self.table.data.n_samples, self.prior, route.cost),
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
        lead, noise = lead_of(search), self._noise(fit, surface, kind)
        errors = standard_errors(surface, fit)
        sensors = np.arange(self.table.data.n_sensors, dtype=np.uint64)[:, None]
        mixing = (fit.point.sources.view(np.uint64) >> sensors) & 1 == 1
        model, error = self.table.model(mixing, fit.point.probability, errors.probability, noise)
        report = noise_report(search, surface, fit, errors, kind)
        self._warn_of_vague_noise(report)
        self._warn_of_another_number(fit.point.sources.size + self.table.always.size)
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


def noise_in_order(report: Mapping[str, Any], order: NDArray[np.int64]) -> dict[str, Any]:
    """The report on rates of every sensor that varies, with these sensors in another order.

    >>> rates = {"rate": [0.1, 0.2], "error": [0.01, 0.02], "interval": [(0.08, 0.12), (0.16, 0.24)]}
    >>> found = noise_in_order({"false_alarm": rates, "miss": rates, "vague": [0]}, np.array([1, 0]))
    >>> found["miss"]["rate"], found["vague"]
    ([0.2, 0.1], [1])
    """
    moved = dict(report)
    if len(report.get("miss", {}).get("rate", ())) != order.size:  # one rate for all
        return moved
    for name in ("false_alarm", "miss"):
        moved[name] = {key: [values[place] for place in order.tolist()] for key, values in report[name].items()}
    if "vague" in report:
        moved["vague"] = np.flatnonzero(np.isin(order, report["vague"])).tolist()
    return moved


def _interval(surface: Any, fit: Refit, rate: float, error: float) -> tuple[float, float]:
    """The interval of the flip rate with the best sources; at its floor, from 0 to what would hardly go unnoticed."""
    if rate > surface.noise.lowest + AT_BOUND:
        return probability_interval(rate, error)
    # the likelihood falls like exp(slope * flip rate) from here: with n sure cells that is the rule of three, 3 / n
    slope = float(surface.gradient(fit.point)[fit.point.rate.size :].sum())
    return 0.0, min(HIGHEST, rate + WITHIN / max(-slope, 1.0))


MOST_FALSE_ALARMS, MOST_MISSES = 0.4, 0.55  # where both are estimated: together below 1, or on and off change roles
PULL = 1.0  # rows without an error that every such rate starts from: it decides only where the rows say nothing


@dataclass(frozen=True, slots=True)
class NoiseKind:
    """A kind of noise, by the name that users give it."""

    name: str
    shape: Callable[[int, float], NoiseShape]


def two_rates(n_sensors: int, lowest: float) -> NoiseShape:
    """A false-alarm rate and a miss rate for all sensors."""
    zeros, ones = np.zeros(n_sensors), np.ones((n_sensors, 1))
    highest = np.array([MOST_FALSE_ALARMS, MOST_MISSES])
    return NoiseShape(zeros, zeros, ones * [1, 0], ones * [0, 1], highest, lowest, PULL)


def own_rates(n_sensors: int, lowest: float) -> NoiseShape:
    """A false-alarm rate for every sensor, then a miss rate for every sensor."""
    zeros, each, none = np.zeros(n_sensors), np.eye(n_sensors), np.zeros((n_sensors, n_sensors))
    highest = np.repeat([MOST_FALSE_ALARMS, MOST_MISSES], n_sensors)
    return NoiseShape(zeros, zeros, np.hstack([each, none]), np.hstack([none, each]), highest, lowest, PULL, 2)


FLIPS = NoiseKind("estimate", NoiseShape.shared_flips)
TWO_RATES = NoiseKind("two-rates", two_rates)
PER_SENSOR = NoiseKind("per-sensor", own_rates)
KINDS = (FLIPS, TWO_RATES, PER_SENSOR)


TYPICAL_ERROR = 0.05  # the median of a half-Cauchy prior on rates of noise
FIRST_FALSE_ALARM, FIRST_MISS = 0.02, 0.1  # where the climb starts
LEAST_SENSORS = 3  # that tell misses from rare sources
PROMISING = 0.3  # of half a log of the rows per rate: without a reason for more rates, the slope promises a tenth
RIDGE = 1e-6  # of the information, relative to its mean: rates that nothing tells apart promise nothing
CONVINCING = 3.0  # nats, or twenty to one: more unknowns must be that much better
ALIKE = 0.01  # nats: searches that differ by less ended at the same sources, the first of them is taken
FAR = 50.0  # nats: a lead that no further move with one flip rate makes up for
SPLINTERS = 0.4  # of the sources: less one sensor than another
HOPELESS = 20.0  # nats: another kind of noise that starts this far behind is left alone


class Rival(Protocol):
    """An answer of another kind, from which a search in doubt may start again, and to which it may lose."""

    def start(self, shape: NoiseShape) -> Start:
        """The sources with sure edges that are nearest to it."""

    def is_dearer(self, search: SourceSearch) -> bool:
        """Whether the sources found so far cost so much that even a perfect fit of the rows would not catch up."""

    def is_within_reach(self, search: SourceSearch) -> bool:
        """Whether the search, after its first moves, may still catch up with it."""


def with_best_noise(
    task: WholeTask, search: SourceSearch, asked: str, rival: Rival | None = None
) -> tuple[SourceSearch, NoiseKind]:
    """Run the search, with the kind of noise that was asked for or with the one that the rows speak for.

    A search that splinters, or one flip rate that is not enough, tell of edges that fail, or of sources that contain
    each other. Then the search starts again from the ``rival``, which knows such edges, and stops where it is behind.
    """
    if asked == FLIPS.name or task.table.data.n_sensors < LEAST_SENSORS:
        search.run(task.route.first_moves)
        search.run()
        return search, FLIPS
    for moves in (task.route.first_moves, task.route.moves):
        if has_splinters(search):  # there may be hundreds, and each move with them is slow
            if rival is not None:
                return _against(rival, task, asked, search)
            other, kind = _best_of_kinds(task, search, asked)
            if log_evidence(other) > log_evidence(search) + FAR:
                return other, kind
        search.run(moves)
    found, kind = _best_of_kinds(task, search, asked)
    if rival is not None and looks_lossy(found.best.fit.point.sources, kind):
        return _against(rival, task, asked, found, kind)
    return found, kind


def _against(
    rival: Rival, task: WholeTask, asked: str, search: SourceSearch, finished: NoiseKind | None = None
) -> tuple[SourceSearch, NoiseKind]:
    """The best search after new ones with every kind of noise, which begin with the sources nearest to the rival.

    The first search is with one flip rate and goes on as well, unless it is ``finished``.
    """
    searches = [(search, finished or FLIPS)]
    kinds = [kind for kind in KINDS if kind is FLIPS or asked in ("auto", kind.name)]
    n_sensors, lowest = task.table.data.n_sensors, lowest_rate(task.table.data)
    shapes = {kind.name: kind.shape(n_sensors, lowest) for kind in kinds}
    searches += [(task.search(rival.start(shapes[kind.name]), shapes[kind.name]), kind) for kind in kinds]
    for each, _ in searches[1 if finished else 0 :]:
        _first_moves(task, each, rival)
    if finished is None and any(rival.is_within_reach(each) for each, _ in searches):
        for kind in kinds[1:]:
            shape = shapes[kind.name]
            searches.append((task.search(without_splinters(search, shape), shape, another=True), kind))
            _first_moves(task, searches[-1][0], rival)
    top = max(log_evidence(each) for each, _ in searches)
    for each, _ in searches[1 if finished else 0 :]:
        if rival.is_within_reach(each) and log_evidence(each) > top - FAR:
            each.run()
            top = max(top, log_evidence(each))
    allowed = [pair for pair in searches if asked in ("auto", pair[1].name)]
    merits = [log_evidence(each) - CONVINCING * KINDS.index(kind) for each, kind in allowed]
    return next(pair for pair, merit in zip(allowed, merits, strict=True) if merit > max(merits) - ALIKE)


def _first_moves(task: WholeTask, search: SourceSearch, rival: Rival) -> None:
    """Drop what is not needed and add what pays, while the sources may still be worth what they cost."""
    for moves in ((drop,), task.route.first_moves):
        search.run(moves, until=rival.is_dearer)


def _best_of_kinds(task: WholeTask, search: SourceSearch, asked: str) -> tuple[SourceSearch, NoiseKind]:
    """From a search with one flip rate on: the other kinds of noise, and whichever has the best evidence."""
    n_sensors, lowest = task.table.data.n_sensors, lowest_rate(task.table.data)
    others = [(kind, kind.shape(n_sensors, lowest)) for kind in (TWO_RATES, PER_SENSOR) if asked in ("auto", kind.name)]
    chosen, evidence = FLIPS, log_evidence(search)
    for kind, shape in others:
        if asked != kind.name and not _is_worth_a_try(task, search, shape):
            continue
        tried = task.search(without_splinters(search, shape), shape, another=True)
        tried.run(task.route.first_moves)
        if asked == kind.name or log_evidence(tried) > evidence - HOPELESS:
            tried.run()
        if asked == kind.name or log_evidence(tried) > evidence + CONVINCING:
            search, chosen, evidence = tried, kind, log_evidence(tried)
    return search, chosen


def _is_worth_a_try(task: WholeTask, search: SourceSearch, shape: NoiseShape) -> bool:
    """Whether sources look like splinters, or the slope promises much where one flip rate becomes several rates."""
    if has_splinters(search):
        return True
    n_more = shape.n_unknown - search.surface.noise.n_unknown
    return promised(search, task.route.surface(shape)) > float(
        PROMISING * 0.5 * n_more * math.log(task.table.data.n_samples)
    )


def looks_lossy(sources: Sets, kind: NoiseKind) -> bool:
    """Whether one flip rate is not enough, or many sources are others less one sensor.

    That is what lossy edges look like to sure ones: half and more of all sources then. Of ten sure sources behind ten
    sensors, three are such at most.

    >>> looks_lossy(np.array([7, 3, 6]), FLIPS), looks_lossy(np.array([3, 6]), FLIPS)
    (True, False)
    """
    return kind is not FLIPS or bool(less_one(sources).sum() >= SPLINTERS * sources.size > 0)


def promised(search: SourceSearch, surface: Any) -> float:
    """What the log-likelihood would gain by more unknown rates with the same sources: half of Rao's score statistic."""
    point = search.best.fit.point
    false_alarm, miss = (rates.mean() for rates in search.surface.noise.rates(point.noise))
    noise = np.repeat([false_alarm, miss], surface.noise.n_unknown // 2)
    here = surface.at(point.sources, point.rate, noise)
    derivatives, weights = surface.derivatives(here), surface.cells.weights
    slope = derivatives @ weights
    moving = (slope > 0) | (np.append(point.rate, noise) > surface.noise.lowest + AT_BOUND)
    slope, derivatives = slope[moving], derivatives[moving]
    information = (derivatives * weights) @ derivatives.T
    ridge = RIDGE * np.trace(information) / slope.size
    return 0.5 * float(slope @ np.linalg.solve(information + ridge * np.eye(slope.size), slope))


def without_splinters(search: SourceSearch, shape: NoiseShape) -> Start:
    """The known sources and those that no other source contains, with false alarms and misses to begin with.

    Sources of a single sensor are left out where false alarms at a rate of their own explain the same.
    """
    fit, n_known = search.best.fit, search.n_known
    kept = largest(fit.point.sources)
    kept &= np.bitwise_count(fit.point.sources.view(np.uint64)) >= shape.least_sensors
    kept |= fit.point.probability > MOST_FALSE_ALARMS
    kept[:n_known] = True
    noise = np.repeat([FIRST_FALSE_ALARM, FIRST_MISS], shape.n_unknown // 2)
    return Start(fit.point.sources[kept], fit.point.rate[kept], fit.free[kept], noise, n_known)


def log_evidence(search: SourceSearch) -> float:
    """The score of the best found with the unknown rates of the noise integrated out as well.

    Laplace's approximation; along a rate at its lower bound, the likelihood falls exponentially instead.
    """
    fit, surface = search.best.fit, search.task.scale.surface
    n_sources, noise = fit.point.rate.size, fit.point.noise
    at_bound = noise <= surface.noise.lowest + AT_BOUND
    rates, inside = np.flatnonzero(fit.free), n_sources + np.flatnonzero(~at_bound)
    both, typical = np.append(rates, inside), np.repeat([TYPICAL_RATE, TYPICAL_ERROR], [rates.size, inside.size])
    precise = fit.information[np.ix_(both, both)] + np.diag(typical**-2.0)
    joint, alone = (float(np.linalg.slogdet(part)[1]) for part in (precise, precise[: rates.size, : rates.size]))
    volume = 0.5 * (inside.size * math.log(2 * math.pi) - joint + alone)
    fall = np.maximum(-surface.gradient(fit.point)[n_sources:][at_bound], 1.0 / TYPICAL_ERROR)
    density = math.log(2 / (math.pi * TYPICAL_ERROR)) - np.log1p((noise / TYPICAL_ERROR) ** 2)
    return search.best.score + volume + float(density.sum() - np.log(fall).sum())
