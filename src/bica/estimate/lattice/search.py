"""Which sources there are: a search over sets of sources for the best score.

The score of a set is its log-likelihood minus the cost of its sources, corrected by how precisely the rows determine
their rates (see ``evidence_correction``). That takes a refit; until then the correction of the best set so far serves
as a forecast.

The search starts with no source at all, where noise alone explains every row, so the noise comes down from the high
side as sources are added. A start with almost no noise would explain every odd row by a source of its own and never
drop it again. Then sources are added, dropped and exchanged until nothing helps. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.estimate.costs import evidence_correction
from bica.estimate.lattice.refit import BetaPrior, Refit, refit
from bica.estimate.lattice.surface import Point, Sets, Surface
from bica.progress import report

SMALL_SETS, FEW, FEWER = 5, 10, 5  # candidates looked at closely: 10 of each size up to 5 sensors, 5 of each above
TRIED = 3  # candidates refitted, of those that promise most
HOPELESS = 10.0  # nats: a forecast this far below the present score is not tried
IN_DOUBT = 30.0  # nats: a source whose loss would cost more log-likelihood is there
SMALL_LATTICE, FEW_SOURCES = 12, 24  # sensors and sources up to which exchanging two sources at once is cheap
FEW_FOUND = 2  # unknown sources up to which more are added even if one alone does not pay
BETTER = 1e-6  # nats: a smaller rise of the score is rounding
SURPRISE = 1.0  # nats by which one move may change the correction
RIDGE, LEAST_RIDGE = 1e-9, 1e-12  # added to the information, as a share of its trace and at least: it can be inverted


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where to start: known sources first, which always stay."""

    sources: Sets
    rate: NDArray[np.float64]
    free: NDArray[np.bool_]  # whether each rate is to be estimated
    noise: NDArray[np.float64]  # the unknown noise rates
    n_known: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A set of sources with its best rates, and its score."""

    fit: Refit
    score: float  # log-likelihood plus log prior minus the cost of the sources, corrected
    correction: float


class Search:
    """A search for the set of sources with the highest score."""

    def __init__(
        self,
        surface: Surface,
        cost: Callable[[Sets], NDArray[np.float64]],
        allowed: NDArray[np.bool_],
        prior: BetaPrior,
        start: Start,
    ) -> None:
        self.surface = surface
        self.cost = cost
        self.allowed = allowed  # (2^n_sensors,), which sets may be sources
        self.prior = prior
        self.n_known = start.n_known
        self.sizes = _sets_by_size(allowed)
        self.turn = 0  # the place of the source that is exchanged first
        self.visited: list[tuple[float, float]] = []  # score and mean flip rate of every set of sources refitted
        first = surface.at(start.sources, start.rate, start.noise)
        fit = refit(surface, first, start.free, prior, n_known=start.n_known, exact=True)
        self.best = self._noted(self._judged(fit))

    def run(self) -> Found:
        """The best set of sources: add, drop and exchange until nothing helps; ``best`` is the best so far."""
        moves = (self._add, self._drop, self._exchange, self._exchange_two, self._add_regardless)
        while any(move() for move in moves):
            report("sources", self.best.fit.point.sources.size, None)
        return self.best

    def _refitted(self, start: Point, free: NDArray[np.bool_], needed: float = -np.inf) -> Found:
        """The set with its best rates; a new best is refitted to the last digit: the way to it does not matter."""
        needed += float(self.cost(start.sources[self.n_known :]).sum()) - self.best.correction - SURPRISE
        fit = refit(self.surface, start, free, self.prior, needed=needed, n_known=self.n_known)
        found = self._judged(fit)
        if found.score > self.best.score:
            fit = refit(self.surface, fit.point, fit.free, self.prior, n_known=self.n_known, exact=True)
            found = self._judged(fit)
        return self._noted(found)

    def _noted(self, found: Found) -> Found:
        noise = found.fit.point.noise
        self.visited.append((found.score, float(np.mean(noise)) if noise.size else 0.0))
        return found

    def _judged(self, fit: Refit) -> Found:
        rates = np.flatnonzero(fit.free)
        correction = evidence_correction(
            fit.information[np.ix_(rates, rates)],
            fit.point.rate[rates],
            self.surface.cells.n_samples + self.prior.n_rows,
            given_prior=bool(self.prior.n_rows),
        )
        return Found(fit, self._plain_score(fit.point, fit.free) + correction, correction)

    def _improves(self, found: Found) -> bool:
        if found.score <= self.best.score + BETTER:
            return False
        self.best = found
        return True

    def _add(self) -> bool:
        """Add the most promising source that pays for itself."""
        return self._added_to(self.best.fit.point, self.best.fit.free, self._worth_a_look(self.best.fit.point))

    def _added_to(self, point: Point, free: NDArray[np.bool_], candidates: Sets) -> bool:
        """Try the candidates that promise most; stop at the first that makes a new best."""
        for start, kept in self._promising(point, free, candidates, self.best.score - HOPELESS):
            if self._improves(self._refitted(start, kept, self.best.score)):
                return True
        return False

    def _promising(
        self, point: Point, free: NDArray[np.bool_], candidates: Sets, bar: float
    ) -> Iterator[tuple[Point, NDArray[np.bool_]]]:
        """The point with one more source, for the best few candidates whose forecast score is above ``bar``."""
        if not candidates.size:
            return
        gain, probability = self.surface.additions(point, candidates)
        forecast = self._plain_score(point, free) + self.best.correction + gain - self.cost(candidates)
        for place in np.argsort(-forecast, kind="stable")[:TRIED]:
            if forecast[place] < bar:
                return
            sources = np.append(point.sources, candidates[place])
            rate = np.append(point.rate, -np.log1p(-probability[place]))
            yield self.surface.at(sources, rate, point.noise), np.append(free, True)

    def _plain_score(self, point: Point, free: NDArray[np.bool_]) -> float:
        objective = point.log_likelihood + self.prior.log_density(point.rate[free])
        return objective - float(self.cost(point.sources[self.n_known :]).sum())

    def _add_regardless(self) -> bool:
        """With few sources, add more even if one alone does not pay: high noise falls only when most are there."""
        found = self.best
        if found.fit.point.sources.size > self.n_known + FEW_FOUND:
            return False
        for _ in range(self.surface.cells.n_sensors):
            point, free = found.fit.point, found.fit.free
            best_one = next(self._promising(point, free, self._worth_a_look(point), -np.inf), None)
            if best_one is None:
                return False
            found = self._refitted(*best_one)
            if self._improves(found):
                return True
        return False

    def _worth_a_look(self, point: Point) -> Sets:
        """Sets whose rate should grow, the steepest of every size: large sets are steep but soon gain nothing more."""
        slope = self.surface.candidate_gradient(point)
        slope[point.sources] = -np.inf
        chosen = [_steepest(slope, sets, FEW if size < SMALL_SETS else FEWER) for size, sets in enumerate(self.sizes)]
        return np.concatenate([np.empty(0, np.int64), *chosen])

    def _drop(self) -> bool:
        """Drop one source, among those whose loss by the curvature is least; the rest is refitted, then compared."""
        point, free = self.best.fit.point, self.best.fit.free
        forecast = self._loss() - np.append(np.zeros(self.n_known), self.cost(point.sources[self.n_known :]))
        for place in np.argsort(forecast, kind="stable")[: TRIED + self.n_known]:
            if place >= self.n_known and forecast[place] < HOPELESS:
                start, kept = self._without(point, free, [place])
                if np.isfinite(start.log_likelihood) and self._improves(self._refitted(start, kept, self.best.score)):
                    return True
        return False

    def _loss(self) -> NDArray[np.float64]:
        """What dropping each source would cost in log-likelihood, by Wald's approximation.

        A prior may hold a rate far from what the rows suggest; then the loss without refitting is the better guess.
        """
        fit = self.best.fit
        ridge = RIDGE * np.trace(fit.information) + LEAST_RIDGE
        spread = np.diag(np.linalg.inv(fit.information + ridge * np.eye(len(fit.information))))
        loss: NDArray[np.float64] = 0.5 * fit.point.rate**2 / spread[: fit.point.rate.size]
        return np.minimum(loss, self._loss_at_once()) if self.prior.n_rows else loss

    def _loss_at_once(self) -> NDArray[np.float64]:
        point, free = self.best.fit.point, self.best.fit.free
        rest = [self._without(point, free, [place]) for place in range(point.sources.size)]
        without = [start.log_likelihood + self.prior.log_density(start.rate[kept]) for start, kept in rest]
        return self.best.fit.objective - np.array(without)

    def _without(self, point: Point, free: NDArray[np.bool_], places: list[int]) -> tuple[Point, NDArray[np.bool_]]:
        kept = np.ones(point.sources.size, dtype=bool)
        kept[places] = False
        return self.surface.at(point.sources[kept], point.rate[kept], point.noise), free[kept]

    def _exchange(self) -> bool:
        """Replace a source by a similar set or, if it is in doubt, by what the rows suggest without it."""
        point, free, doubtful = self.best.fit.point, self.best.fit.free, self._loss() < IN_DOUBT
        places = np.arange(self.n_known, point.sources.size)
        for place in np.roll(places, -self.turn).tolist():  # those that have waited longest first
            rest, kept = self._without(point, free, [place])
            if not np.isfinite(rest.log_likelihood):
                continue
            candidates = self._similar(int(point.sources[place]), rest.sources)
            if doubtful[place]:
                candidates = np.union1d(candidates, self._worth_a_look(rest))
            if self._added_to(rest, kept, candidates):
                self.turn = place - self.n_known
                return True
        return False

    def _similar(self, source: int, others: Sets) -> Sets:
        """Sets with one sensor more or less; union, intersection and difference with the other sources."""
        flipped = source ^ (1 << np.arange(self.surface.cells.n_sensors))
        related = np.unique(np.concatenate([flipped, source | others, source & others, source & ~others]))
        related = related[self.allowed[related]]
        return np.setdiff1d(related, np.append(others, source))

    def _exchange_two(self) -> bool:
        """Replace two overlapping sources, one of them in doubt, by another one, then add what still pays."""
        if self.surface.cells.n_sensors > SMALL_LATTICE or self.best.fit.point.sources.size > FEW_SOURCES:
            return False
        point, free, loss = self.best.fit.point, self.best.fit.free, self._loss()
        for pair in _overlapping(point.sources, self.n_known):
            if loss[pair].min() < IN_DOUBT:
                rest, kept = self._without(point, free, pair)
                if not np.isfinite(rest.log_likelihood):
                    continue
                others = np.setdiff1d(self._worth_a_look(rest), point.sources[pair])
                for start, grown in self._promising(rest, kept, others, self.best.score - loss[pair].max() - HOPELESS):
                    if self._refilled(self._refitted(start, grown)):
                        return True
        return False

    def _refilled(self, found: Found) -> bool:
        """Add sources greedily to ``found``; keep the result if it is the best so far."""
        inner = Search.__new__(Search)
        inner.__dict__.update(self.__dict__, best=found)
        while inner._add():
            pass
        return self._improves(inner.best)


def _sets_by_size(allowed: NDArray[np.bool_]) -> list[Sets]:
    """The allowed sets of 1, 2, ... sensors."""
    sets = np.flatnonzero(allowed)
    size = np.bitwise_count(sets)
    return [sets[size == k] for k in range(1, int(size.max(initial=0)) + 1)]


def _steepest(slope: NDArray[np.float64], sets: Sets, how_many: int) -> Sets:
    if sets.size > how_many:
        sets = np.sort(sets[np.argpartition(-slope[sets], how_many - 1)[:how_many]])
    return sets[slope[sets] > 0]


def _overlapping(sources: Sets, first: int) -> Iterator[list[int]]:
    for one in range(first, sources.size):
        for other in range(first, one):
            if sources[one] & sources[other]:
                yield [one, other]
