"""What a set of sources is worth: the best rates for the rows, their evidence, and what the sources must gain.

``refit`` climbs to the best rates and noise by Fisher scoring, with expectation-maximisation where that fails. The
score is the log-likelihood there minus the cost of the sources. Half a log of the rows for every rate is the cost in
large tables; it is too high for sources that overlap much or are hidden by much noise, since the rows say little about
their rates, so less must be paid for knowing them: that is the correction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, xlogy

from bica.estimate.lattice import Pace, Point, Surface, Vector

NARROW = 3  # sensors of a narrow source, which gets a discount
NARROW_SHARE = 0.3  # of the log of the number of sets that a narrow source pays, found on simulated networks
LARGEST_DISCOUNT = 4.0  # nats
LEAST_ROWS = 2.0  # so that the log of the rows is positive


def cost_by_size(n_sensors: int, n_samples: float, largest: int) -> NDArray[np.float64]:
    """The cost of a source of 0, 1, ... ``largest`` sensors.

    A source pays half a log of the rows for its rate. By chance alone, some set of its size gains the log of the number
    of such sets. A wide source pays that in full: the usual mistake is a spurious source that explains a few crowded
    rows, and a true one gains far more. There are fewer sets of more than half of the sensors, but rows in which nearly
    all are on come about too easily, so these sets cost no less. A source of up to three sensors pays the share that
    did best on simulated networks of ten sensors, where a missed source counts as much as a spurious one. Among
    thousands of sensors no share is enough, so the discount is limited.
    """
    size = np.arange(largest + 1)
    chosen = np.minimum(size, n_sensors // 2)
    choices = gammaln(n_sensors + 1) - gammaln(chosen + 1) - gammaln(n_sensors - chosen + 1)
    share = np.minimum(1.0, NARROW_SHARE * (1 + np.maximum(0, size - NARROW)))
    discount = np.minimum((1 - share) * choices, LARGEST_DISCOUNT)
    cost: NDArray[np.float64] = 0.5 * math.log(max(n_samples, LEAST_ROWS)) + choices - discount
    return cost


TYPICAL_RATE = 0.3  # how uncertain a rate is before any row is observed, where the user gave a prior
SOURCE_ODDS = 0.2  # of one more source, before any row is observed
LOWEST_LOG_RATE = math.log(1e-9)  # a refit may end just above 0
SHIFTS, LONGEST_SHIFT, SETTLED = 8, 1.0, 1e-3  # steps to the top of the posterior, in log rates, and nats


def evidence_correction(
    information: NDArray[np.float64], rate: NDArray[np.float64], n_samples: float, *, given_prior: bool = False
) -> float:
    """By how much the log evidence exceeds the log-likelihood minus half a log of the rows for every rate.

    ``information`` is that of the rates at the top of the likelihood, which is taken for a normal hill there. It is
    multiplied by the prior and integrated by Laplace's approximation over the log rates, so that a rate about which the
    rows say little goes where the others are. If the user gave a prior, which is counted elsewhere, ours is left out.

    >>> evidence_correction(np.diag([1000.0]), np.array([0.1]), 1000) > 0  # as precise as a thousand rows allow
    True
    """
    n_rates = len(rate)
    full_volume = 0.5 * n_rates * math.log(2 * math.pi * max(n_samples, LEAST_ROWS))
    if given_prior:
        return full_volume - 0.5 * _log_determinant(information + np.eye(n_rates) / TYPICAL_RATE**2)
    hill = _RateHill(information, rate, RatePrior(n_rates))
    top = hill.top()
    return hill.height(top) + full_volume - 0.5 * _log_determinant(hill.curvature(top)) + n_rates * LOG_SOURCE_ODDS


LOG_SOURCE_ODDS = math.log(SOURCE_ODDS)


def _log_determinant(matrix: NDArray[np.float64]) -> float:
    return float(np.linalg.slogdet(matrix)[1])


@dataclass(frozen=True, slots=True)
class RatePrior:
    """How probable the rates of one table are together: their logs are normal, with unknown mean and variance.

    So rates of the same table resemble each other: among sources of some five percent, one of a thousandth must be seen
    clearly to be believed, and one of three percent need not. Mean and variance are integrated out (conjugate, the
    variance inverse gamma), which leaves a multivariate Student distribution of the log rates.

    >>> alike, apart = np.log([[0.05, 0.04, 0.06], [0.05, 0.001, 0.9]])
    >>> RatePrior(3).log_density(alike) > RatePrior(3).log_density(apart)
    True
    """

    n_rates: int

    MEAN: ClassVar[float] = math.log(0.15)  # what to expect of log rates without any source, and of their variance
    VARIANCE: ClassVar[float] = 0.5
    MEAN_COUNT: ClassVar[float] = 0.5  # sources that this expectation of the mean is worth, and that of the variance
    VARIANCE_COUNT: ClassVar[float] = 4.0

    @property
    def degrees(self) -> float:
        """Half the degrees of freedom of the variance."""
        return 0.5 * (self.VARIANCE_COUNT + self.n_rates)

    @property
    def constant(self) -> float:
        """The part of the log density that does not depend on the rates."""
        return _constant_of(self)

    def log_density(self, log_rate: Vector) -> float:
        """Of these log rates together."""
        return self.constant - self.degrees * math.log(self._scatter(log_rate))

    def slope(self, log_rate: Vector) -> Vector:
        """The derivative by each log rate."""
        slope: Vector = -self.degrees / self._scatter(log_rate) * self._from_mean(log_rate)
        return slope

    def curvature(self, log_rate: Vector) -> NDArray[np.float64]:
        """Minus the second derivatives with the variance as it is estimated there, so that it is never negative."""
        among = np.eye(self.n_rates) - 1.0 / (self.MEAN_COUNT + self.n_rates)
        curvature: NDArray[np.float64] = self.degrees / self._scatter(log_rate) * among
        return curvature

    def _scatter(self, log_rate: Vector) -> float:
        apart = log_rate - self.MEAN
        return 0.5 * (self.VARIANCE_COUNT * self.VARIANCE + float(apart @ self._from_mean(log_rate)))

    def _from_mean(self, log_rate: Vector) -> Vector:
        apart = log_rate - self.MEAN
        from_mean: Vector = apart - apart.sum() / (self.MEAN_COUNT + self.n_rates)
        return from_mean


@cache
def _constant_of(prior: RatePrior) -> float:
    expected = 0.5 * prior.VARIANCE_COUNT
    variance = gammaln(prior.degrees) - gammaln(expected) + expected * math.log(expected * prior.VARIANCE)
    mean = 0.5 * math.log(prior.MEAN_COUNT / (prior.MEAN_COUNT + prior.n_rates))
    return float(variance + mean - 0.5 * prior.n_rates * math.log(2 * math.pi))


@dataclass(frozen=True, slots=True, eq=False)
class _RateHill:
    """The posterior of log rates near the top of the likelihood, relative to the likelihood there."""

    information: NDArray[np.float64]
    rate: Vector
    prior: RatePrior

    def height(self, log_rate: Vector) -> float:
        apart = np.exp(log_rate) - self.rate
        return self.prior.log_density(log_rate) - 0.5 * float(apart @ self.information @ apart)

    def slope(self, log_rate: Vector) -> Vector:
        rate = np.exp(log_rate)
        return self.prior.slope(log_rate) - rate * (self.information @ (rate - self.rate))

    def curvature(self, log_rate: Vector) -> NDArray[np.float64]:
        rate = np.exp(log_rate)
        return self.prior.curvature(log_rate) + rate[:, None] * self.information * rate

    def top(self) -> Vector:
        """Where it is highest, by a few scoring steps, each of which must lead up."""
        log_rate = np.maximum(np.log(np.maximum(self.rate, 1e-300)), LOWEST_LOG_RATE)
        height = self.height(log_rate)
        for _ in range(SHIFTS if self.rate.size else 0):
            step = np.linalg.solve(self.curvature(log_rate), self.slope(log_rate))
            tried = log_rate + step * min(1.0, LONGEST_SHIFT / float(np.abs(step).max() + 1e-300))
            gained = self.height(tried) - height
            if gained > 0:
                log_rate, height = tried, height + gained
            if gained < SETTLED:
                break
        return log_rate


ALMOST_SURE = 1.0 - 1e-7


def em_step(surface: Surface, point: Point, free: NDArray[np.bool_], alpha: float = 1.0, beta: float = 1.0) -> Point:
    """One step: never downhill, keeps zeros at zero. The Beta prior counts as alpha - 1 rows on, beta - 1 off.

    Unknown flip rates move too.
    """
    n_samples = surface.cells.n_samples
    slope = surface.gradient(point)
    activations = point.probability * (n_samples + slope[: point.rate.size]) + alpha - 1.0
    probability = np.clip(activations / (n_samples + alpha + beta - 2.0), 0.0, ALMOST_SURE)
    rate = np.where(free, -np.log1p(-probability), point.rate)
    return surface.at(point.sources, rate, _noise_step(surface, point, slope[point.rate.size :]))


def _noise_step(surface: Surface, point: Point, slope: Vector) -> Vector:
    """The expected share of wrong cells among those that each unknown rate governs.

    For misses and false alarms apart it is a shorter step in the same direction, as if all cells were on, or all off.
    """
    if not point.noise.size:
        return point.noise
    shape = surface.noise
    governed = np.maximum(shape.false_alarm_of, shape.miss_of)
    n_cells = np.maximum(surface.cells.times_observed() @ governed, 1e-300)  # none: the slope is 0
    n_wrong = point.noise * n_cells + point.noise * (1 - point.noise) * slope
    return np.clip(n_wrong / (n_cells + shape.pull), shape.lowest, shape.highest)


HIGHEST_RATE = 14.0  # a probability of 1 - 1e-6: beyond that nothing changes any more
AT_BOUND = 1e-12
ENOUGH = 1e-4  # a step must gain this share of what the slope at its start promises


@dataclass(frozen=True, slots=True)
class BetaPrior:
    """A Beta distribution for every free probability: as if alpha - 1 rows on and beta - 1 off had been seen before."""

    alpha: float = 1.0
    beta: float = 1.0

    @property
    def n_rows(self) -> float:
        """How many rows it counts as."""
        return self.alpha + self.beta - 2.0

    def log_density(self, rate: Vector) -> float:
        """Of these probabilities together; with its constant, so that more sources can be compared with fewer."""
        if not self.n_rows or not rate.size:
            return 0.0
        on = xlogy(self.alpha - 1, -np.expm1(-rate))
        return float((on - (self.beta - 1) * rate - betaln(self.alpha, self.beta)).sum())

    def slope(self, rate: Vector) -> Vector:
        """The derivative by each rate."""
        slope = np.full(rate.size, 1.0 - self.beta)
        if self.alpha > 1:
            slope += (self.alpha - 1) / np.expm1(rate)
        return slope

    def curvature(self, rate: Vector) -> Vector:
        """Minus the second derivative by each rate."""
        if self.alpha == 1:
            return np.zeros(rate.size)
        curvature: Vector = (self.alpha - 1) * np.exp(rate) / np.expm1(rate) ** 2
        return curvature


NO_PRIOR = BetaPrior()


@dataclass(frozen=True, slots=True, eq=False)
class Refit:
    """The top of the hill for given sources, and its curvature there."""

    point: Point
    free: NDArray[np.bool_]  # (n_sources,), whose rate was estimated
    objective: float  # log-likelihood plus log prior
    information: NDArray[np.float64]  # (n_parameters, n_parameters), rates, then unknown noise


def refit(
    surface: Surface,
    start: Point,
    free: NDArray[np.bool_],
    prior: BetaPrior,
    *,
    n_known: int = 0,
    needed: float = -np.inf,
    exact: bool = False,
    pace: Pace | None = None,
) -> Refit:
    """Climb from ``start`` until a step promises too little; free sources whose rate ends at 0 leave.

    The first ``n_known`` sources stay even then. A climb that cannot reach the height ``needed`` is given up early.
    The information belongs to a recent step, with ``exact`` to the top itself. The surface knows its own pace.
    """
    pace = pace or surface.pace
    climb = _Climb(surface, free, prior, pace.tries)
    point, objective, information, here = start, climb.objective(start), np.empty((0, 0)), start
    for _ in range(pace.most_steps):
        (slope, information), here = climb.ground(point), point
        step = climb.bounded_step(point, slope, information)
        promised = float(slope @ step)  # twice what a quadratic hill would still give
        if promised < pace.tolerance or objective + promised < needed:
            break
        better = climb.uphill(point, slope, step)
        if better is None:
            better = climb.slowly_uphill(point, slope, information)
        point, gained = better, climb.objective(better) - objective
        objective += gained
        if gained < 0.1 * pace.tolerance:
            break
    point, free = climb.without_dead(point, n_known)  # not before: a long step may send a source to 0 for a while
    climb = _Climb(surface, free, prior, pace.tries)
    if (exact and point is not here) or len(information) != point.rate.size + point.noise.size:
        information = climb.information(point)
    return Refit(point, free, climb.objective(point), information)


@dataclass(frozen=True, slots=True, eq=False)
class _Climb:
    """The hill of likelihood and prior, and the ways up it."""

    surface: Surface
    free: NDArray[np.bool_]
    prior: BetaPrior
    tries: int

    def objective(self, point: Point) -> float:
        height = point.log_likelihood
        if self.surface.noise.pull:
            height += self.surface.noise.pull * float(np.log1p(-point.noise).sum())
        return height + self.prior.log_density(point.rate[self.free]) if self.prior.n_rows else height

    def ground(self, point: Point) -> tuple[Vector, NDArray[np.float64]]:
        """The slope by rates, then by unknown noise, and their information."""
        slope = self.surface.gradient(point)
        if self.prior.n_rows:
            slope[np.flatnonzero(self.free)] += self.prior.slope(point.rate[self.free])
        if self.surface.noise.pull:
            slope[point.rate.size :] -= self.surface.noise.pull / (1.0 - point.noise)
        return slope, self.information(point)

    def information(self, point: Point) -> NDArray[np.float64]:
        """The empirical Fisher information of rates, then unknown noise."""
        derivatives = self.surface.derivatives(point)
        information = (derivatives * self.surface.cells.weights) @ derivatives.T
        if self.prior.n_rows:
            places = np.flatnonzero(self.free)
            information[places, places] += self.prior.curvature(point.rate[self.free])
        if self.surface.noise.pull:
            unknown = np.arange(point.rate.size, len(information))
            information[unknown, unknown] += self.surface.noise.pull / (1.0 - point.noise) ** 2
        return information

    def bounded_step(self, point: Point, slope: Vector, information: NDArray[np.float64]) -> Vector:
        """The scoring step for parameters that can move; those that press against a bound stay."""
        room_below, room_above = self._room(point)
        moving = np.concatenate([self.free, np.ones(point.noise.size, dtype=bool)])
        step, wanted = np.zeros(slope.size), slope
        while True:
            moving &= np.where(wanted > 0, room_above, room_below) > AT_BOUND
            step[:] = 0.0
            if not moving.any():
                return step
            part = information if moving.all() else information[np.ix_(moving, moving)]
            ridge = 1e-10 * np.trace(part) / len(part) + 1e-12
            step[moving] = np.linalg.solve(part + ridge * np.eye(len(part)), slope[moving])
            if (np.where(step > 0, room_above, room_below)[moving] > AT_BOUND).all():
                return step
            wanted = step

    def _room(self, point: Point) -> tuple[Vector, Vector]:
        """How far every rate, then every unknown of the noise, may fall and may rise."""
        below = np.concatenate([point.rate, point.noise - self.surface.noise.lowest])
        return below, np.concatenate([HIGHEST_RATE - point.rate, self.surface.noise.highest - point.noise])

    def uphill(self, point: Point, slope: Vector, step: Vector) -> Point | None:
        """The first of ever shorter steps, cut off at the bounds, that gains a little of what its slope promises."""
        objective, n_sources = self.objective(point), point.rate.size
        for _ in range(self.tries):
            rate = np.where(self.free, np.clip(point.rate + step[:n_sources], 0.0, HIGHEST_RATE), point.rate)
            noise = np.clip(point.noise + step[n_sources:], self.surface.noise.lowest, self.surface.noise.highest)
            promised = slope @ np.concatenate([rate - point.rate, noise - point.noise])
            if promised > 0:
                tried = self.surface.at(point.sources, rate, noise)
                if self.objective(tried) >= objective + ENOUGH * promised:
                    return tried
            step = 0.4 * step
        return None

    def slowly_uphill(self, point: Point, slope: Vector, information: NDArray[np.float64]) -> Point:
        """Each parameter goes its own way, which never leads down at a bound as a scoring step may; then EM."""
        step = self.bounded_step(point, slope, np.diag(np.diag(information)))
        better = self.uphill(point, slope, step) or em_step(
            self.surface, point, self.free, self.prior.alpha, self.prior.beta
        )
        return better if self.objective(better) > self.objective(point) else point

    def without_dead(self, point: Point, n_known: int) -> tuple[Point, NDArray[np.bool_]]:
        """Free sources at rate 0 leave, the known ones excepted."""
        alive = ~self.free | (point.rate > 0)
        alive[:n_known] = True
        if alive.all():
            return point, self.free
        return self.surface.at(point.sources[alive], point.rate[alive], point.noise), self.free[alive]


SURPRISE = 1.0  # nats by which one move may change the correction
FEW_COMPARISONS = 20_000  # of sets with unions; up to so many are quicker than sorting them first


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A set of sources with its best rates, and its score."""

    fit: Refit
    score: float  # log-likelihood plus log prior minus the cost of the sources, corrected
    correction: float

    @property
    def worth(self) -> float:
        """What the rows say for it, before its sources are paid for."""
        return self.fit.objective + self.correction


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """What sets of sources are compared by: a likelihood, a prior, and what a source of 0, 1, ... sensors must gain.

    A source that is the union of two others, or one sensor more or less than another, need not be told sensor by
    sensor: there are only so many pairs of sources, and neighbours of sources. It pays the log of their number where
    that is less, as do the links of a network, which often carry the paths of two others.

    But a source must not pay for itself by making others cheaper. So where two sets of sources are compared, only
    the sources in both of them count as the relatives of a source.
    """

    surface: Any
    cost: Vector
    prior: BetaPrior = NO_PRIOR
    _compared: dict[tuple[bytes, bytes], float] = field(default_factory=dict, init=False, repr=False)

    def cost_of(self, sources: NDArray[np.int64], beside: NDArray[np.int64]) -> Vector:
        """What each source, a bit set, must gain beside these others."""
        by_size: Vector = self.cost[np.bitwise_count(sources.view(np.uint64))]
        if not beside.size or not sources.size:
            return by_size
        n_pairs, n_neighbours = beside.size * (beside.size - 1) / 2, beside.size * (self.cost.size - 1)
        union = np.where(is_union(sources, beside), self.cost[0] + math.log(max(n_pairs, 1.0)), np.inf)
        neighbour = np.where(is_neighbour(sources, beside), self.cost[0] + math.log(n_neighbours), np.inf)
        return np.minimum(by_size, np.minimum(union, neighbour))

    def advantage(self, one: Found, other: Found) -> float:
        """By how much the score of one exceeds that of the other, both with the relatives that they share."""
        ours, theirs = one.fit.point.sources, other.fit.point.sources
        return one.worth - other.worth - self._dearer(ours, theirs)

    def _dearer(self, ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float:
        """By how much more our sources cost than theirs, remembered: a set is compared several times on its way."""
        key = ours.tobytes(), theirs.tobytes()
        if key not in self._compared:
            self._compared[key] = self._difference(ours, theirs)
        return self._compared[key]

    def _difference(self, ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float:
        equal = ours[:, None] == theirs
        in_both, in_ours = equal.any(axis=1), equal.any(axis=0)
        shared = ours[in_both]
        more, less = self.cost_of(np.sort(ours[~in_both]), shared), self.cost_of(np.sort(theirs[~in_ours]), shared)
        return float(more.sum() - less.sum())

    def forecast(self, best: Found, point: Any, free: NDArray[np.bool_], more: NDArray[np.int64]) -> Vector:
        """The score of the point with each of these sources more, but for what they gain, as seen from the best."""
        pull = self.surface.noise.pull * float(np.log1p(-point.noise).sum())
        height = point.log_likelihood + pull + self.prior.log_density(point.rate[free])
        paid = self._dearer(point.sources, best.fit.point.sources)
        forecast: Vector = best.score + height - best.fit.objective - paid - self.cost_of(more, point.sources)
        return forecast

    def best(
        self, start: Any, free: NDArray[np.bool_], n_known: int, *, exact: bool = False, above: Found | None = None
    ) -> Found:
        """The sources of ``start`` with their best rates; given up early where these cannot score ``above`` another."""
        needed = -np.inf
        if above is not None:
            needed = above.fit.objective + self._dearer(start.sources, above.fit.point.sources) - SURPRISE
        fit = refit(self.surface, start, free, self.prior, n_known=n_known, needed=needed, exact=exact)
        rates = np.flatnonzero(fit.free)
        correction = evidence_correction(
            fit.information[np.ix_(rates, rates)],
            fit.point.rate[rates],
            self.surface.cells.n_samples + self.prior.n_rows,
            given_prior=bool(self.prior.n_rows),
        )
        cost = float(self.cost_of(fit.point.sources[n_known:], fit.point.sources).sum())
        return Found(fit, fit.objective - cost + correction, correction)


def is_union(sources: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each set is the union of two others that are not the set itself.

    >>> is_union(np.array([3, 2]), np.array([1, 2, 3])).tolist()
    [True, False]
    """
    both = others[:, None] | others
    unions = both[(both != others) & (both != others[:, None])]
    if sources.size * unions.size > FEW_COMPARISONS:
        return np.isin(sources, unions)
    found: NDArray[np.bool_] = (sources[:, None] == unions).any(axis=1)
    return found


def is_neighbour(sources: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each set has one sensor more or less than one of the others.

    >>> is_neighbour(np.array([3, 4]), np.array([1])).tolist()
    [True, False]
    """
    apart = np.bitwise_count((sources[:, None] ^ others).view(np.uint64))
    neighbours: NDArray[np.bool_] = (apart == 1).any(axis=1)
    return neighbours
