"""What a set of sources is worth: the evidence of its best rates, and what its sources must gain.

The score is the log-likelihood at the best rates and noise minus the cost of the sources. Half a log of the rows for
every rate is the cost in large tables; it is too high for sources that overlap much or are hidden by much noise, since
the rows say little about their rates, so less must be paid for knowing them: that is the correction. Standard
errors come from the same curvature of the likelihood.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bica.estimate.lattice import AT_BOUND, NO_PRIOR, BetaPrior, Refit, Surface, Vector, height_of, refit

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


@dataclass(frozen=True, eq=False)
class Scale:
    """What sets of sources are compared by: a likelihood, a prior, and what a source of 0, 1, ... sensors must gain.

    A source that is the union of two others, or one sensor more or less than another, need not be told sensor by
    sensor: there are only so many pairs of sources, and neighbours of sources. It pays the log of their number where
    that is less, as do the links of a network, which often carry the paths of two others.

    But a source must not pay for itself by making others cheaper. So where two sets of sources are compared, only
    the sources in both of them count as the relatives of a source.
    """

    surface: Any
    n_samples: float  # rows of the table
    prior: BetaPrior = NO_PRIOR
    of_larger_table: Vector | None = None  # the cost of sources, where they belong to a table of more sensors
    _compared: dict[tuple[bytes, bytes], float] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def cost(self) -> Vector:
        """What a source of 0, 1, ... sensors must gain."""
        if self.of_larger_table is not None:
            return self.of_larger_table
        n_sensors: int = self.surface.cells.n_sensors
        return cost_by_size(n_sensors, self.n_samples + self.prior.n_rows, n_sensors)

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
        return one.worth - self.worth_of_equal(one.fit.point.sources, other)

    def worth_of_equal(self, sources: NDArray[np.int64], other: Found) -> float:
        """What these sources must be worth to be as good as the other ones."""
        return other.worth + self._dearer(sources, other.fit.point.sources)

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
        height = height_of(self.surface, point, free, self.prior)
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
