"""Which sources there are: one search over sets of sources, whatever the likelihood stands on.

The score of a set of sources is its log-likelihood minus the cost of its sources, corrected by how well the rows tell
their rates (``costs.py``). That takes a refit; until then the correction of the best so far serves as a forecast.

The search goes through a list of moves, each a function that tries to better the best, and starts over after every
success. A move asks three things of a likelihood: what candidates would gain (``additions``), the best rates of some
sources (``refit``) and their information. Slope would be a poor guide: a missed source was the 154th of 3300 candidates
by slope and the second by gain minus cost, in the median. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.estimate.costs import evidence_correction
from bica.estimate.lattice.refit import BetaPrior, Refit, refit
from bica.estimate.lattice.search import Found, Start
from bica.progress import report

Sets = NDArray[np.int64]  # bit sets of up to 64 sensors
Vector = NDArray[np.float64]

MOST_ROWS = 1000  # distinct rows that are candidates themselves
FREQUENT_ROWS = 250  # rows whose intersections are looked at
MOST_SHARED = 1000  # intersections that are candidates


def from_rows(patterns: Sets, weights: Vector, n_sensors: int) -> Sets:
    """The most frequent rows, what two of them share, and single sensors.

    >>> from_rows(np.array([0, 3, 6]), np.array([5.0, 2.0, 1.0]), 3).tolist()
    [1, 2, 3, 4, 6]
    """
    frequent = patterns[np.argsort(-weights, kind="stable")]
    frequent = frequent[frequent != 0]
    return np.unique(np.concatenate([frequent[:MOST_ROWS], _shared(frequent[:FREQUENT_ROWS]), single(n_sensors)]))


def _shared(rows: Sets) -> Sets:
    """The intersections of pairs of rows that come up most often."""
    both = (rows[:, None] & rows)[np.triu_indices(rows.size, 1)]
    shared, times = np.unique(both[both != 0], return_counts=True)
    return shared[np.argsort(-times, kind="stable")[:MOST_SHARED]]


def single(n_sensors: int) -> Sets:
    """Every sensor alone."""
    return np.int64(1) << np.arange(n_sensors)


def relatives_of(source: np.int64, others: Sets, n_sensors: int) -> Sets:
    """One sensor more or less; union, intersection and difference with the other sources.

    >>> relatives_of(np.int64(3), np.array([6]), 3).tolist()
    [2, 1, 7, 7, 2, 1]
    """
    return np.concatenate([source ^ single(n_sensors), source | others, source & others, source & ~others])


def relatives(sources: Sets, n_sensors: int) -> Sets:
    """The relatives of all sources."""
    related = [relatives_of(source, sources, n_sensors) for source in sources]
    return np.unique(np.concatenate([np.empty(0, np.int64), *related]))


Flags = NDArray[np.bool_]

TRIED = 3  # candidates that are refitted in one move
SHORTLIST = 150  # candidates that are looked at again after each addition
HOPELESS = 10.0  # a forecast this far below the best score is not tried
IN_DOUBT = 30.0  # a source whose loss costs more log-likelihood than this is there
SURPRISE = 1.0  # by how much one move may change the correction
RIDGE = 1e-9  # of the information, relative to its trace: what is singular becomes very uncertain
NO_PRIOR = BetaPrior()


class SearchSurface(Protocol):
    """A likelihood as a search sees it: ``lattice/surface.py`` and ``rows/states.py`` are two."""

    cells: Any  # with n_sensors, n_samples and weights
    noise: Any  # which noise rates are unknown
    work: float  # done so far, in nanoseconds or so; 0 where it is never too much

    def at(self, sources: Sets, rate: Vector, noise: Vector) -> Any:
        """A point with these sources, rates and noise, and its ``log_likelihood``."""

    def additions(self, point: Any, candidates: Sets) -> tuple[Vector, Vector]:
        """How much each candidate alone would raise the log-likelihood, and its best probability."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchTask:
    """What is searched: the likelihood, what a source must gain, and which sets may be one."""

    surface: Any  # a ``SearchSurface``
    cost: Callable[[Sets], Vector]
    allowed: Callable[[Sets], Flags]
    suggest: Callable[[Any], Sets]  # candidates for an addition to a point
    pace: Mapping[str, Any]  # of refits
    prior: BetaPrior = NO_PRIOR
    better: float = 1e-3  # a smaller rise of the score is none
    most_work: float = np.inf  # after which the best so far is the answer: counted, not timed, so that it is the same


class SourceSearch:
    """The best set of sources so far, and what every move needs."""

    def __init__(self, task: SearchTask, start: Start, moves: Sequence[Move] | None = None) -> None:
        self.task = task
        self.surface: SearchSurface = task.surface
        self.moves = MOVES if moves is None else moves
        self.n_known = start.n_known  # the first sources, which stay whatever happens
        self.turn = 0  # whose turn it is to be exchanged
        self.visited: list[tuple[float, float]] = []  # score and mean noise of every set of sources refitted
        self.best = self.refitted(self.surface.at(start.sources, start.rate, start.noise), start.free)

    def run(self) -> Found:
        """Move until nothing helps; ``best`` holds the best so far at any time."""
        while any(move(self) for move in self.moves) and not self.is_spent:
            self.report()
        return self.best

    @property
    def is_spent(self) -> bool:
        """Whether all the work that was allowed is done."""
        return self.surface.work >= self.task.most_work

    def report(self) -> None:
        """Tell whoever listens how many sources there are; this is where Ctrl-C in a listener arrives."""
        report("sources", self.best.fit.point.sources.size, None)

    def refitted(self, start: Any, free: Flags, needed: float = -np.inf) -> Found:
        """With its best rates; given up early where it cannot reach the score ``needed``."""
        if np.isfinite(needed):
            needed += self._cost_of(start) - self.best.correction - SURPRISE
        fit = refit(
            self.task.surface, start, free, self.task.prior, n_known=self.n_known, needed=needed, **self.task.pace
        )
        found = self._judged(fit)
        noise = found.fit.point.noise
        self.visited.append((found.score, float(np.mean(noise)) if noise.size else 0.0))
        return found

    def _judged(self, fit: Refit) -> Found:
        rates, prior = np.flatnonzero(fit.free), self.task.prior
        correction = evidence_correction(
            fit.information[np.ix_(rates, rates)],
            fit.point.rate[rates],
            self.surface.cells.n_samples + prior.n_rows,
            given_prior=bool(prior.n_rows),
        )
        return Found(fit, fit.objective - self._cost_of(fit.point) + correction, correction)

    def _cost_of(self, point: Any) -> float:
        return float(self.task.cost(point.sources[self.n_known :]).sum())

    def improves(self, found: Found) -> bool:
        """Whether this is the best so far; if so, it is kept."""
        if not found.score > self.best.score + self.task.better:
            return False
        self.best = found
        return True

    def forecast(self, point: Any, free: Flags, candidates: Sets) -> tuple[Vector, Vector]:
        """The score with each candidate added, before a refit, and the candidate's probability."""
        gain, probability = self.surface.additions(point, candidates)
        here = point.log_likelihood + self.task.prior.log_density(point.rate[free]) - self._cost_of(point)
        return here + self.best.correction + gain - self.task.cost(candidates), probability

    def with_one_of(self, point: Any, free: Flags, candidates: Sets) -> Iterator[Found]:
        """The point with one source more: the few candidates that promise most, refitted."""
        if not candidates.size:
            return
        forecast, probability = self.forecast(point, free, candidates)
        for place in np.argsort(-forecast, kind="stable")[:TRIED]:
            if forecast[place] < self.best.score - HOPELESS or not 0 < probability[place] < 1:
                return
            sources = np.append(point.sources, candidates[place])
            rate = np.append(point.rate, -np.log1p(-probability[place]))
            start = self.surface.at(sources, rate, point.noise)
            if np.isfinite(start.log_likelihood):
                yield self.refitted(start, np.append(free, True), self.best.score)

    def without(self, place: int) -> tuple[Any, Flags] | None:
        """The best so far without one source, other rates unchanged; None if some row is impossible then."""
        point = self.best.fit.point
        kept = np.arange(point.sources.size) != place
        rest = self.surface.at(point.sources[kept], point.rate[kept], point.noise)
        return (rest, self.best.fit.free[kept]) if np.isfinite(rest.log_likelihood) else None

    def new(self, candidates: Sets) -> Sets:
        """Those that may be a source and are none yet."""
        absent: Sets = np.setdiff1d(candidates, self.best.fit.point.sources)
        absent = absent[absent != 0]
        return absent[self.task.allowed(absent)]

    def loss(self) -> Vector:
        """What dropping each source would cost in log-likelihood, by Wald's approximation; never for known ones."""
        fit = self.best.fit
        ridge = (RIDGE * np.trace(fit.information) + np.finfo(float).tiny) * np.eye(len(fit.information))
        spread = np.diag(np.linalg.inv(fit.information + ridge))[: fit.point.rate.size]
        loss: Vector = 0.5 * fit.point.rate**2 / spread
        loss[: self.n_known] = np.inf
        return loss


Move = Callable[[SourceSearch], bool]


def add(search: SourceSearch) -> bool:
    """Add the sources that pay best, one after another, from what is suggested and the relatives of present sources.

    All candidates are looked at once, then a shortlist after each addition.
    """
    fit = search.best.fit
    related = relatives(fit.point.sources, search.surface.cells.n_sensors)
    shortlist = search.new(np.concatenate([search.task.suggest(fit.point), related]))
    if shortlist.size > SHORTLIST:
        forecast, _ = search.forecast(fit.point, fit.free, shortlist)
        shortlist = shortlist[np.argsort(-forecast, kind="stable")[:SHORTLIST]]
    improved = False
    while not search.is_spent and _add_one(search, shortlist):
        improved = True
        while drop(search):
            pass
        search.report()
        shortlist = search.new(shortlist)
    return improved


def _add_one(search: SourceSearch, candidates: Sets) -> bool:
    fit = search.best.fit
    return any(search.improves(found) for found in search.with_one_of(fit.point, fit.free, candidates))


def drop(search: SourceSearch) -> bool:
    """Drop one source: the one that loses least by the curvature, refitted before it is compared."""
    forecast = search.loss()
    forecast[search.n_known :] -= search.task.cost(search.best.fit.point.sources[search.n_known :])
    for place in np.argsort(forecast, kind="stable")[:TRIED].tolist():
        if forecast[place] > HOPELESS:
            return False
        rest = search.without(place)
        if rest is not None and search.improves(search.refitted(*rest, search.best.score)):
            return True
    return False


def exchange(search: SourceSearch) -> bool:
    """Replace a source by a relative of it or, where it is in doubt, by what its absence suggests."""
    point, doubtful = search.best.fit.point, search.loss() < IN_DOUBT
    for place in np.roll(np.arange(search.n_known, point.sources.size), -search.turn).tolist():  # who waits longest
        rest = None if search.is_spent else search.without(place)
        if rest is None:
            continue
        candidates = relatives_of(point.sources[place], rest[0].sources, search.surface.cells.n_sensors)
        if doubtful[place]:
            candidates = np.concatenate([candidates, search.task.suggest(rest[0])])
        if any(search.improves(found) for found in search.with_one_of(*rest, search.new(candidates))):
            search.turn = place - search.n_known
            return True
    return False


MOVES: tuple[Move, ...] = (add, drop, exchange)
