"""Which sources there are: one search over sets of sources, whatever the likelihood stands on.

The score of a set of sources is its log-likelihood minus the cost of its sources, corrected by how well the rows tell
their rates (see ``evidence``). That takes a refit; until then the correction of the best so far serves as a forecast.

The search goes through a list of moves, each a function that tries to better the best, and starts over after each
success. A move needs three things of a likelihood: what candidates would gain (``additions``), the best rates
(``refit``), and their information. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.estimate.candidates import relatives, relatives_of
from bica.estimate.evidence import evidence_correction
from bica.estimate.refit import BetaPrior, Refit, refit
from bica.estimate.search import Found, Start
from bica.progress import report

Sets = NDArray[np.int64]
Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]

TRIED = 3  # candidates that are refitted in one move
SHORTLIST = 150  # candidates that are looked at again after each addition
HOPELESS = 10.0  # a forecast this far below the best score is not tried
IN_DOUBT = 30.0  # a source whose loss costs more log-likelihood than this is there
SURPRISE = 1.0  # by how much one move may change the correction
BETTER = 1e-3  # a smaller rise of the score is none


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What is searched: the likelihood, what a source must gain, and which sets may be one."""

    surface: Any
    cost: Callable[[Sets], Vector]
    allowed: Callable[[Sets], Flags]
    pool: Sets  # candidates for every addition
    prior: BetaPrior = BetaPrior()
    pace: dict[str, Any] = field(default_factory=dict)  # of a refit


class RowSearch:
    """The best set of sources so far, and what every move needs."""

    def __init__(self, task: Task, start: Start, moves: Sequence[Move] | None = None) -> None:
        self.task = task
        self.moves = MOVES if moves is None else moves
        self.n_known = start.n_known
        self.turn = 0  # whose turn it is to be exchanged
        self.visited: list[tuple[float, float]] = []  # score and mean noise of every set of sources refitted
        self.best = self.refitted(task.surface.at(start.sources, start.rate, start.noise), start.free)

    def run(self) -> Found:
        """Move until nothing helps; ``best`` holds the best so far at any time."""
        while any(move(self) for move in self.moves):
            report("sources", self.best.fit.point.sources.size, None)
        return self.best

    def refitted(self, start: Any, free: Flags, needed: float = -np.inf) -> Found:
        """With its best rates, given up early where it cannot reach the score ``needed``."""
        needed += self.cost_of(start) - (self.best.correction + SURPRISE if np.isfinite(needed) else 0.0)
        fit = refit(
            self.task.surface,
            start,
            free,
            self.task.prior,
            n_known=self.n_known,
            needed=needed,
            **self.task.pace,
        )
        found = self._judged(fit)
        noise = found.fit.point.noise
        self.visited.append((found.score, float(np.mean(noise)) if noise.size else 0.0))
        return found

    def _judged(self, fit: Refit) -> Found:
        rates = np.flatnonzero(fit.free)
        correction = evidence_correction(
            fit.information[np.ix_(rates, rates)],
            fit.point.rate[rates],
            self.task.surface.cells.n_samples + self.task.prior.n_rows,
            given_prior=bool(self.task.prior.n_rows),
        )
        return Found(fit, fit.objective - self.cost_of(fit.point) + correction, correction)

    def cost_of(self, point: Any) -> float:
        """The cost of all unknown sources."""
        return float(self.task.cost(point.sources[self.n_known :]).sum())

    def improves(self, found: Found) -> bool:
        """Whether this is the best so far; if so, it is kept."""
        if not found.score > self.best.score + BETTER:
            return False
        self.best = found
        return True

    def forecast(self, point: Any, free: Flags, candidates: Sets) -> tuple[Vector, Vector]:
        """The score with each candidate added, before a refit, and its probability."""
        gain, probability = self.task.surface.additions(point, candidates)
        here = point.log_likelihood + self.task.prior.log_density(point.rate[free]) - self.cost_of(point)
        return here + self.best.correction + gain - self.task.cost(candidates), probability

    def added(self, point: Any, free: Flags, candidates: Sets) -> Iterator[Found]:
        """The point with one more source: the few candidates that promise most, refitted."""
        if candidates.size:
            forecast, probability = self.forecast(point, free, candidates)
            yield from self.refits(point, free, candidates, forecast, probability)

    def refits(self, point: Any, free: Flags, candidates: Sets, forecast: Vector, probability: Vector) -> Iterator[Found]:
        for place in np.argsort(-forecast, kind="stable")[:TRIED]:
            if forecast[place] < self.best.score - HOPELESS or not probability[place]:
                return
            sources = np.append(point.sources, candidates[place])
            rate = np.append(point.rate, -np.log1p(-probability[place]))
            yield self.refitted(
                self.task.surface.at(sources, rate, point.noise), np.append(free, True), self.best.score
            )

    def without(self, place: int) -> tuple[Any, Flags]:
        """The best so far without one source, other rates unchanged."""
        point = self.best.fit.point
        kept = np.arange(point.sources.size) != place
        rest = self.task.surface.at(point.sources[kept], point.rate[kept], point.noise)
        return rest, self.best.fit.free[kept]

    def new(self, candidates: Sets) -> Sets:
        """Those that may be a source and are none yet."""
        candidates = np.setdiff1d(candidates, self.best.fit.point.sources)
        return candidates[(candidates != 0) & self.task.allowed(candidates)]

    def loss(self) -> Vector:
        """What dropping each source would cost in log-likelihood, by Wald's approximation."""
        fit = self.best.fit
        ridge = 1e-9 * np.trace(fit.information) + 1e-12
        spread = np.diag(np.linalg.inv(fit.information + ridge * np.eye(len(fit.information))))
        loss: Vector = 0.5 * fit.point.rate**2 / spread[: fit.point.rate.size]
        return loss


Move = Callable[[RowSearch], bool]


def add(search: RowSearch) -> bool:
    """Add the sources that pay best, one after another, from the pool and from the relatives of present sources."""
    point, n_sensors = search.best.fit.point, search.task.surface.cells.n_sensors
    candidates = search.new(np.concatenate([search.task.pool, relatives(point.sources, n_sensors)]))
    if not candidates.size:
        return False
    forecast, probability = search.forecast(point, search.best.fit.free, candidates)
    order = np.argsort(-forecast, kind="stable")[:SHORTLIST]
    shortlist, forecast, probability = candidates[order], forecast[order], probability[order]
    improved = False
    while any(
        search.improves(found)
        for found in search.refits(
            search.best.fit.point, search.best.fit.free, shortlist, forecast, probability
        )
    ):
        improved = True
        while drop(search):
            pass
        report("sources", search.best.fit.point.sources.size, None)
        shortlist = search.new(shortlist)
        forecast, probability = search.forecast(search.best.fit.point, search.best.fit.free, shortlist)
    return improved


def drop(search: RowSearch) -> bool:
    """Drop one source: the one that loses least by the curvature, refitted before it is compared."""
    point = search.best.fit.point
    forecast = search.loss()
    forecast[search.n_known :] -= search.task.cost(point.sources[search.n_known :])
    forecast[: search.n_known] = np.inf
    for place in np.argsort(forecast, kind="stable")[:TRIED]:
        if forecast[place] > HOPELESS:
            return False
        if search.improves(search.refitted(*search.without(int(place)), search.best.score)):
            return True
    return False


def exchange(search: RowSearch) -> bool:
    """Replace a source by a relative of it or, where it is in doubt, by what its absence suggests."""
    point, doubtful = search.best.fit.point, search.loss() < IN_DOUBT
    for place in np.roll(np.arange(search.n_known, point.sources.size), -search.turn).tolist():
        rest, free = search.without(place)
        candidates = relatives_of(point.sources[place], rest.sources, search.task.surface.cells.n_sensors)
        if doubtful[place]:
            candidates = np.concatenate([candidates, search.task.pool])
        if any(search.improves(found) for found in search.added(rest, free, search.new(candidates))):
            search.turn = place - search.n_known
            return True
    return False


MOVES: tuple[Move, ...] = (add, drop, exchange)
