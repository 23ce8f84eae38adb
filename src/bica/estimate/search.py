"""Which sources there are: one search over sets of sources, whatever the likelihood stands on.

The score of a set is its log-likelihood minus the cost of its sources, corrected by how well the rows tell their rates
(``score.py``). That takes a refit; until then the correction of the best so far serves as a forecast.

The search goes through a list of moves, each a function that tries to better the best, and starts over after every
success. A move asks three things of a likelihood: what candidates would gain (``additions``), the best rates of some
sources (``refit``) and their information. Nothing is random.

Without a better start, the search begins with no source at all, where noise alone explains every row, so the noise
comes down from the high side as sources are added. A start with almost no noise would explain every odd row by a source
of its own and never drop it again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.estimate.score import Found, Scale
from bica.progress import go_on, report

Sets = NDArray[np.int64]  # bit sets of up to 64 sensors
Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]


TRIED = 3  # candidates that are refitted in one move
SHORTLIST = 150  # candidates that are looked at again after each addition
HOPELESS = 10.0  # nats: a forecast this far below the best score is not tried
IN_DOUBT = 30.0  # nats: a source whose loss costs more log-likelihood than this is there
RIDGE, LEAST_RIDGE = 1e-9, 1e-12  # added to the information, as a share of its trace and at least: it can be inverted
SMALL, FEW_SOURCES = 12, 24  # sensors and sources up to which exchanging two sources at once is cheap
FEW_FOUND = 2  # unknown sources up to which more are added even if one alone does not pay
BETTER = 1e-6  # nats: a smaller rise of the score is rounding
SAME_AGAIN = 1e-2  # nats: the same sources at rates that are better by less are where they were
ALL_SETS = 10  # sensors up to which every set is a candidate, and every relative is tried in place of a source
TEMPTING = 0.1  # nats that a set must gain beside all sources to be tried in place of one
LACKING_ONE = 0.3  # of all sources, where they are splinters; a quarter at most while wide sources explain noise
NOTABLE = 2.5  # nats that a closer look must find: some of a thousand more sets offer less by chance


class SearchSurface(Protocol):
    """A likelihood as a search sees it: ``lattice.py`` and ``rows/states.py`` are two."""

    cells: Any  # with n_sensors, n_samples and weights
    noise: Any  # which noise rates are unknown
    work: float  # done so far, in nanoseconds or so; 0 where it is never too much

    def at(self, sources: Sets, rate: Vector, noise: Vector) -> Any:
        """A point with these sources, rates and noise, and its ``log_likelihood``."""

    def additions(self, point: Any, candidates: Sets) -> tuple[Vector, Vector]:
        """How much each candidate alone would raise the log-likelihood, and its best probability."""

    def rising(self, point: Any, pool: Sets) -> Sets:
        """Those of the pool that may gain something."""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where to start: known sources first, which always stay."""

    sources: Sets
    rate: Vector
    free: Flags  # whether each rate is to be estimated
    noise: Vector  # the unknown noise rates
    n_known: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SearchTask:
    """What is searched, and how."""

    scale: Scale  # by which sets of sources are compared; its surface is a ``SearchSurface``
    moves: Sequence[Move]
    pool: Sets  # candidates for moves that look at many
    forbidden: Sequence[int] = ()  # bit sets that no unknown source may contain
    better: float = BETTER  # nats: a smaller rise of the score is none
    exact: bool = False  # whether a new best is refitted to the last digit, so that the way to it does not matter
    most_work: float = np.inf  # after which the best so far is the answer: counted, not timed, so that it is the same


class Scan(NamedTuple):
    """What candidates would gain at a point, each alone."""

    point: Any
    candidates: Sets
    gain: Vector
    probability: Vector


class SourceSearch:
    """The best set of sources so far, and what every move needs."""

    def __init__(self, task: SearchTask, start: Start) -> None:
        self.task = task
        self.surface: SearchSurface = task.scale.surface
        self.better = task.better
        self.n_known = start.n_known  # the first sources, which stay whatever happens
        self.until: Callable[[SourceSearch], bool] | None = None  # when the present run is to end early
        self.turn = 0  # whose turn it is to be exchanged
        self.wanted: int | None = None  # how many sources there are, the known ones among them, where that is known
        noise = start.noise if self.surface.noise.n_unknown else np.empty(0)
        first = self.surface.at(start.sources, start.rate, noise)
        self.best = task.scale.best(first, start.free, start.n_known, exact=task.exact)
        self.left: frozenset[frozenset[int]] = frozenset()  # sets of sources that were the best before
        self.visited: list[tuple[float, float]] = []  # score and mean noise of every set of sources refitted
        self.scores: dict[frozenset[int], float] = {}  # the best score of each of them
        self.at_most: dict[frozenset[int], float] = {}  # what each of them is worth, or less
        self._note(self.best)
        self.looked_at: Scan | None = None  # the last long look at candidates

    def run(self, moves: Sequence[Move] | None = None, until: Callable[[SourceSearch], bool] | None = None) -> Found:
        """Move until nothing helps, with all moves or only these; ``best`` holds the best so far at any time."""
        moves, self.until = self.task.moves if moves is None else moves, until
        while not self.is_over and any(self._tries(move) for move in moves) and not self.is_spent:
            pass
        return self.best

    @property
    def is_over(self) -> bool:
        """Whether the last run was to end here."""
        return self.until is not None and self.until(self)

    def _tries(self, move: Move) -> bool:
        self.report(DOING.get(move, "searching"))
        return move(self)

    def run_for(self, wanted: int) -> Found:
        """Move on to the best set of so many sources; fewer if no other would ever be on."""
        self.wanted, self.left = wanted, frozenset()
        return self.run()

    def off(self, n_sources: int) -> int:
        """How far this number of sources is from the one that is wanted."""
        return 0 if self.wanted is None else abs(n_sources - self.wanted)

    @property
    def n_sources(self) -> int:
        """The number of sources of the best."""
        return int(self.best.fit.point.sources.size)

    def branch(self, best: Found | None = None, better: float | None = None) -> SourceSearch:
        """The same search from another set of sources on, or with another idea of what is better."""
        other = copy.copy(self)
        other.best = self.best if best is None else best
        other.better = self.better if better is None else better
        return other

    @property
    def is_spent(self) -> bool:
        """Whether all the work that was allowed is done."""
        return self.surface.work >= self.task.most_work

    def report(self, doing: str) -> None:
        """Tell whoever listens what is tried and what was found; this is where Ctrl-C in a listener arrives."""
        report(f"{doing}; score {self.best.score:.1f}, sources", self.best.fit.point.sources.size, None)

    def refitted(self, start: Any, free: Flags, *, promptly: bool = True) -> Found:
        """With its best rates; promptly given up where it cannot better the best."""
        go_on()
        scale = self.task.scale
        promptly = promptly and self.off(start.sources.size) >= self.off(self.n_sources)
        found = scale.best(start, free, self.n_known, above=self.best if promptly else None)
        if self.task.exact:
            enough = scale.worth_of_equal(start.sources, self.best) if promptly else -np.inf
            self.at_most[frozenset(start.sources.tolist())] = max(found.worth, enough)
        if self.task.exact and scale.advantage(found, self.best) > 0:
            found = scale.best(found.fit.point, found.fit.free, self.n_known, exact=True)
        self._note(found)
        return found

    def is_settled(self, sources: Sets) -> bool:
        """Whether this set was refitted before and would not be the best: the way to its best rates does not matter."""
        key = frozenset(sources.tolist())
        if self.off(len(key)) != self.off(self.n_sources) or key not in self.at_most:
            return False
        enough = self.task.scale.worth_of_equal(sources, self.best)
        return key in self.left or self.at_most[key] <= enough + self.better

    def _note(self, found: Found) -> None:
        noise = found.fit.point.noise
        self.visited.append((found.score, float(noise.sum()) / noise.size if noise.size else 0.0))
        sources = frozenset(found.fit.point.sources.tolist())
        self.scores[sources] = max(found.score, self.scores.get(sources, -np.inf))

    def improves(self, found: Found) -> bool:
        """Whether this is the best so far; if so, it is kept. No set of sources that was left comes back."""
        present = frozenset(self.best.fit.point.sources.tolist())
        sources = frozenset(found.fit.point.sources.tolist())
        closer = self.off(len(present)) - self.off(len(sources))
        if closer < 0 or sources in self.left:
            return False
        needed = max(self.better, SAME_AGAIN) if sources == present else self.better
        if closer == 0 and not self.task.scale.advantage(found, self.best) > needed:
            return False
        if sources != present:
            self.left = self.left | {present}
        self.best = found
        return True

    def forecast(self, point: Any, free: Flags, candidates: Sets) -> tuple[Vector, Vector]:
        """The score with each candidate added, before a refit, and the candidate's probability."""
        go_on()
        gain, probability = self.surface.additions(point, candidates)
        return self.task.scale.forecast(self.best, point, free, candidates) + gain, probability

    def scan(self) -> Scan:
        """What the pool and the relatives of present sources would gain beside the best so far; kept until it moves."""
        point = self.best.fit.point
        if self.looked_at is None or self.looked_at.point is not point:
            related = relatives(point.sources, self.surface.cells.n_sensors)
            candidates = self.new(np.concatenate([wide(self, point), related]))
            self.looked_at = Scan(point, candidates, *self.surface.additions(point, candidates))
        return self.looked_at

    def promising(
        self, point: Any, free: Flags, candidates: Sets, bar: float, *, again: bool = True
    ) -> Iterator[tuple[Any, Flags]]:
        """The point with one source more: the few candidates that promise most, if their forecast is above ``bar``.

        Those that are settled are left out, unless they are tried ``again``.
        """
        if not candidates.size:
            return
        forecast, probability = self.forecast(point, free, candidates)
        for place in np.argsort(-forecast, kind="stable")[:TRIED]:
            if forecast[place] < bar:
                return
            if not 0 < probability[place] < 1:
                continue
            sources = np.append(point.sources, candidates[place])
            if not again and self.is_settled(sources):
                continue
            rate = np.append(point.rate, -np.log1p(-probability[place]))
            start = self.surface.at(sources, rate, point.noise)
            if np.isfinite(start.log_likelihood):
                yield start, np.append(free, True)

    def add_one_of(self, point: Any, free: Flags, candidates: Sets) -> bool:
        """Try the candidates that promise most; the first that makes a new best is kept."""
        closer = self.off(self.n_sources) - self.off(point.sources.size + 1)
        if closer < 0:
            return False
        bar = -np.inf if closer > 0 else self.best.score - HOPELESS
        tried = self.promising(point, free, candidates, bar, again=False)
        return any(self.improves(self.refitted(*start)) for start in tried)

    def without(self, places: Sequence[int]) -> tuple[Any, Flags] | None:
        """The best so far without some sources, other rates unchanged; None if some row is impossible then."""
        point = self.best.fit.point
        kept = np.ones(point.sources.size, dtype=bool)
        kept[places] = False
        rest = self.surface.at(point.sources[kept], point.rate[kept], point.noise)
        return (rest, self.best.fit.free[kept]) if np.isfinite(rest.log_likelihood) else None

    def new(self, candidates: Sets, present: Sets | None = None) -> Sets:
        """Those that may be a source and are none yet, in the best so far or among these."""
        absent: Sets = np.setdiff1d(candidates, self.best.fit.point.sources if present is None else present)
        absent = absent[np.bitwise_count(absent.view(np.uint64)) >= self.surface.noise.least_sensors]
        for together in self.task.forbidden:
            absent = absent[absent & together != together]
        return absent

    def loss(self) -> Vector:
        """What dropping each source would cost in log-likelihood, by Wald's approximation; never for known ones.

        A prior may hold a rate far from what the rows suggest; then the loss without refitting is the better guess.
        """
        fit = self.best.fit
        ridge = (RIDGE * np.trace(fit.information) + LEAST_RIDGE) * np.eye(len(fit.information))
        spread = np.diag(np.linalg.inv(fit.information + ridge))[: fit.point.rate.size]
        loss: Vector = 0.5 * fit.point.rate**2 / spread
        if self.task.scale.prior.n_rows:
            loss = np.minimum(loss, self._loss_at_once())
        loss[: self.n_known] = np.inf
        return loss

    def _loss_at_once(self) -> Vector:
        prior, loss = self.task.scale.prior, np.full(self.best.fit.point.rate.size, np.inf)
        for place in range(loss.size):
            rest = self.without([place])
            if rest is not None:
                left = rest[0].log_likelihood + prior.log_density(rest[0].rate[rest[1]])
                loss[place] = self.best.fit.objective - left
        return loss


Move = Callable[[SourceSearch], bool]
Look = Callable[[SourceSearch, Any], Sets]  # where to look for candidates for an addition to a point


def steep(search: SourceSearch, point: Any) -> Sets:
    """The sets with the steepest slope: cheap on a lattice, but a poor guide where sources overlap much."""
    candidates: Sets = search.task.scale.surface.steepest(point)
    return candidates


def wide(search: SourceSearch, point: Any) -> Sets:
    """The whole pool, to be compared by gain: a missed source was 154th of 3300 by slope and second by gain."""
    return search.surface.rising(point, search.task.pool)


def add(search: SourceSearch) -> bool:
    """Add the steepest source that pays for itself."""
    fit = search.best.fit
    return search.add_one_of(fit.point, fit.free, search.new(steep(search, fit.point)))


def add_several(search: SourceSearch) -> bool:
    """Add the sources that pay best, one after another, from the pool and the relatives of present sources.

    All candidates are looked at once, then a shortlist after each addition.
    """
    fit, scan = search.best.fit, search.scan()
    forecast = search.task.scale.forecast(search.best, fit.point, fit.free, scan.candidates) + scan.gain
    shortlist = scan.candidates[np.argsort(-forecast, kind="stable")[:SHORTLIST]]
    improved = False
    while not (search.is_spent or search.is_over) and search.add_one_of(
        search.best.fit.point, search.best.fit.free, shortlist
    ):
        improved = True
        while drop(search):
            pass
        search.report(DOING[add_several])
        shortlist = search.new(shortlist)
    return improved


def add_regardless(search: SourceSearch) -> bool:
    """With few sources, add more even if one alone does not pay: high noise falls only when most are there."""
    found = search.best
    if found.fit.point.sources.size > search.n_known + FEW_FOUND:
        return False
    for _ in range(search.surface.cells.n_sensors):
        point, free = found.fit.point, found.fit.free
        candidates = search.branch(found).new(steep(search, point))
        best_one = next(search.promising(point, free, candidates, -np.inf), None)
        if best_one is None:
            return False
        found = search.refitted(*best_one, promptly=False)
        if search.improves(found):
            return True
    return False


def drop(search: SourceSearch) -> bool:
    """Drop one source: the one that loses least by the curvature, refitted before it is compared."""
    closer = search.off(search.n_sources) - search.off(search.n_sources - 1)
    if closer < 0:
        return False
    forecast, sources = search.loss(), search.best.fit.point.sources
    forecast[search.n_known :] -= search.task.scale.cost_of(sources[search.n_known :], sources)
    for place in np.argsort(forecast, kind="stable")[:TRIED].tolist():
        if forecast[place] > (np.inf if closer > 0 else HOPELESS) or place < search.n_known:
            return False
        rest = None if search.is_settled(np.delete(sources, place)) else search.without([place])
        if rest is not None and search.improves(search.refitted(*rest)):
            return True
    return False


def exchange(search: SourceSearch, look: Look = wide) -> bool:
    """Replace a source by a relative of it or, where it is in doubt, by what its absence suggests."""
    point, doubtful = search.best.fit.point, search.loss() < IN_DOUBT
    tempting = _tempting(search, look)
    for place in np.roll(np.arange(search.n_known, point.sources.size), -search.turn).tolist():  # who waits longest
        if search.is_spent:
            break
        source, others = point.sources[place], np.delete(point.sources, place)
        candidates = relatives_of(source, others, search.surface.cells.n_sensors)
        if tempting is not None:
            shared = tempting[tempting & source != 0]
            candidates = shared if doubtful[place] else np.intersect1d(shared, candidates)
        rest = search.without([place]) if candidates.size else None
        if rest is None:
            continue
        if tempting is None and doubtful[place]:
            candidates = np.concatenate([candidates, look(search, rest[0])])
        present = rest[0].sources if look is steep else None  # it may come back itself, to end at better rates
        if search.add_one_of(*rest, search.new(candidates, present)):
            search.turn = place - search.n_known
            return True
    return False


def _tempting(search: SourceSearch, look: Look) -> Sets | None:
    """The candidates that would gain something beside all present sources; None where looking at all is quick.

    What would do better in place of a source nearly always gains something beside it, too: at the best rates no slope
    is left, so a part of the source's rate can be handed over without a loss.
    """
    point, n_sensors = search.best.fit.point, search.surface.cells.n_sensors
    if n_sensors <= ALL_SETS:
        return None
    if look is steep:
        related = search.surface.rising(point, relatives(point.sources, n_sensors))
        return search.new(np.concatenate([steep(search, point), related]))
    scan = search.scan()
    return scan.candidates[scan.gain > TEMPTING]


def exchange_for_steep(search: SourceSearch) -> bool:
    """The same, where only steep sets are candidates beside the relatives."""
    return exchange(search, steep)


def exchange_two(search: SourceSearch) -> bool:
    """Replace two overlapping sources, one of them in doubt, by another one, then add what still pays.

    Once one of the two is back, only one was replaced, and the other would mostly follow.
    """
    point, loss = search.best.fit.point, search.loss()
    if search.surface.cells.n_sensors > SMALL or point.sources.size > FEW_SOURCES:
        return False
    for pair in _overlapping(point.sources, search.n_known):
        rest = search.without(pair) if loss[pair].min() < IN_DOUBT else None
        if rest is None:
            continue
        bar, gone = search.best.score - loss[pair].max() - HOPELESS, point.sources[pair]
        for start in search.promising(*rest, search.new(steep(search, rest[0])), bar):
            other = search.branch(search.refitted(*start, promptly=False))
            while not np.isin(gone, other.best.fit.point.sources).any() and add(other):
                pass
            if search.improves(other.best):
                return True
    return False


def _overlapping(sources: Sets, first: int) -> Iterator[list[int]]:
    for one in range(first, sources.size):
        for other in range(first, one):
            if sources[one] & sources[other]:
                yield [one, other]


def look_closer(search: SourceSearch) -> bool:
    """Add or exchange by gain instead of slope; what is found among so many sets must be notable."""
    closer = search.branch(better=NOTABLE)
    return (add_several(closer) or exchange(closer)) and search.improves(closer.best)


def drowns_in_splinters(search: SourceSearch) -> bool:
    """Whether there are more sources than sensors, and they are splinters."""
    return search.n_sources > search.surface.cells.n_sensors and has_splinters(search)


def has_splinters(search: SourceSearch) -> bool:
    """Whether most sources are contained in others, many of them in one that has a single sensor more.

    In noisy rows a few wide sources contain most others for a while; splinters of one source lack a sensor each.
    """
    sources = search.best.fit.point.sources
    n_outermost, n_lacking_one = largest(sources).sum(), less_one(sources, least=1).sum()
    return bool(2 * n_outermost < sources.size and n_lacking_one >= LACKING_ONE * sources.size)


DOING: dict[Move, str] = {
    add: "adding sources",
    add_several: "adding sources by gain",
    add_regardless: "adding sources against noise",
    drop: "dropping sources",
    exchange: "exchanging sources",
    exchange_for_steep: "exchanging sources",
    exchange_two: "exchanging pairs of sources",
    look_closer: "looking closer",
}
BY_SLOPE: tuple[Move, ...] = (add, drop, exchange_for_steep, exchange_two, add_regardless)
BY_GAIN: tuple[Move, ...] = (add_several, drop, exchange)


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


def largest(sources: Sets) -> Flags:
    """Which sets are not contained in another one.

    >>> largest(np.array([3, 1, 6])).tolist()
    [True, False, True]
    """
    inside = (sources[:, None] & sources == sources[:, None]) & (sources[:, None] != sources)
    outermost: Flags = ~inside.any(axis=1)
    return outermost


def less_one(sources: Sets, least: int = 2) -> Flags:
    """Which sets of so many sensors or more are another one less one sensor.

    >>> less_one(np.array([7, 3, 1])).tolist()
    [False, True, False]
    """
    sizes = np.bitwise_count(sources.view(np.uint64))
    inside = sources[:, None] & sources == sources
    lacking: Flags = (inside & (sizes >= least) & (sizes[:, None] == sizes + 1)).any(axis=0)
    return lacking
