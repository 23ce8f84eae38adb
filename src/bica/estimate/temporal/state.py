"""The state of the search in time: sources that stay on for a while, their course, the noise; and a source on trial."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import MISSING
from bica.invert.groups import Group, penalties
from bica.invert.temporal.chains import STRETCH, ChainBlock, Chains
from bica.invert.temporal.decode import Course
from bica.model.noise import Noise
from bica.progress import go_on

LEAST_START, LEAST_STOP, MOST = 1e-6, 1e-4, 0.999  # probabilities to start and to stop: no course is impossible
TINY = 1e-300  # moves: a source that never moved divides nothing by 0
MOST_ALIKE = 2  # neighbours chosen by similarity alone


@dataclass(frozen=True, slots=True, eq=False)
class ChainedSources:
    """Which sensors each source reaches, how often it is on, and for how many slots at a time."""

    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    probability: NDArray[np.float64]  # (n_sources,)
    stay: NDArray[np.float64]  # (n_sources,), mean number of slots

    @property
    def n_sources(self) -> int:
        """How many sources there are."""
        return self.probability.size

    @property
    def chains(self) -> Chains:
        """The sources as chains: the probabilities of starting and stopping."""
        return Chains.of(self.probability, self.stay)

    def pick(self, places: NDArray[np.int64]) -> ChainedSources:
        """Only these sources."""
        return ChainedSources(self.mixing[:, places], self.probability[places], self.stay[places])

    def plus(self, other: ChainedSources) -> ChainedSources:
        """These sources, then the others."""
        return ChainedSources(
            np.hstack([self.mixing, other.mixing]),
            np.concatenate([self.probability, other.probability]),
            np.concatenate([self.stay, other.stay]),
        )

    def moving(self, moves: NDArray[np.float64]) -> ChainedSources:
        """The same sources with the probabilities under which these moves, (n_sources, 2, 2), are likeliest."""
        start = np.clip(_share(moves[:, 0, 1], moves[:, 0, 0]), LEAST_START, MOST)
        stop = np.clip(_share(moves[:, 1, 0], moves[:, 1, 1]), LEAST_STOP, MOST)
        return ChainedSources(self.mixing, start / (start + stop), 1 / stop)

    def nearest(self, column: NDArray[np.bool_], most: int) -> NDArray[np.int64]:
        """Up to ``most`` sources that share sensors with ``column``.

        First the two that are most like it, then those that reach only sensors of it and so could step in for a part of
        it, then the rest; always the most similar first.
        """
        shared = column.astype(np.int64) @ self.mixing
        either = (column[:, None] | self.mixing).sum(axis=0)
        order = np.argsort(-shared / np.maximum(either, 1), kind="stable")
        order = order[shared[order] > 0]
        inside = either[order] == column.sum()
        inside[:MOST_ALIKE] = True
        return order[np.argsort(~inside, kind="stable")][:most]


def source_of(column: NDArray[np.bool_], probability: float, stay: float) -> ChainedSources:
    """One source of these sensors."""
    return ChainedSources(column[:, None], np.array([probability]), np.array([stay]))


def _share(moved: NDArray[np.float64], stayed: NDArray[np.float64]) -> NDArray[np.float64]:
    return moved / np.maximum(moved + stayed, TINY)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A source, the last of ``sources``, with its nearest neighbours; all others keep a given course."""

    block: ChainBlock
    cells: NDArray[np.uint8]  # what the block's sensors showed, and where others were on
    sources: ChainedSources

    @property
    def source(self) -> ChainedSources:
        """The source on trial."""
        return self.sources.pick(np.array([self.sources.n_sources - 1]))

    def gain(self) -> float:
        """By how much the source raises the log probability of all slots, summed over the neighbours' courses."""
        return self.block.gain_of_last(self.cells, self.sources.chains)

    def course(self) -> NDArray[np.bool_]:
        """The likeliest course of all sources of the block together: (n_slots, n_sources)."""
        return self.block.cheapest(self.cells, self.sources.chains)

    def refined(self, n_steps: int) -> Trial:
        """The same with the source's own numbers improved by ``n_steps`` of expectation and maximisation."""
        parts = [slice(first, first + STRETCH) for first in range(0, len(self.cells), STRETCH)]
        sources = self.sources
        for _ in range(n_steps):
            moved = sources.moving(self.block.moves(self.cells, sources.chains, parts))
            last = np.arange(sources.n_sources) == sources.n_sources - 1
            sources = replace(
                sources,
                probability=np.where(last, moved.probability, sources.probability),
                stay=np.where(last, moved.stay, sources.stay),
            )
        return replace(self, sources=sources)


AT_ONCE = 6  # sources whose course is found exactly; if there are more, a few neighbours at a time
ROUNDS = 3  # of expectation and maximisation after each change
NEVER_ZERO = 1e-6  # the lowest error rate: an unexplained cell must not rule out all sources


class TemporalState:
    """Sources with their likeliest course through the slots; after every change, both are settled again."""

    def __init__(self, cells: NDArray[np.uint8], sources: ChainedSources, noise: Noise, *, known_noise: bool) -> None:
        self.cells, self.sources, self.noise, self._known_noise = cells, sources, noise, known_noise
        self.activity = np.zeros((len(cells), sources.n_sources), bool)

    def settle(self) -> None:
        """Improve in turn the course, the probabilities and stays of the sources, and the noise."""
        for _ in range(ROUNDS):
            go_on()
            course = self._course()
            course.improve(self.sources.chains)
            self.activity = course.activity
            self.sources = self.sources.moving(course.moves(self.sources.chains))
            self._update_noise()

    def add(self, source: ChainedSources, near: int) -> None:
        """Add a new source, with the course that is best for it and its neighbours together.

        Two neighbours that explained its cells until now would not both give way by themselves.
        """
        trial = self.trial(source, near)
        self.activity = np.pad(self.activity, ((0, 0), (0, 1)))
        self.activity[:, trial.block.sources] = trial.course()
        self.sources = self.sources.plus(source)
        self.settle()

    def drop(self, place: int) -> None:
        """Drop one source."""
        kept = np.flatnonzero(np.arange(self.sources.n_sources) != place)
        self.activity, self.sources = self.activity[:, kept], self.sources.pick(kept)
        self.settle()

    def trial(self, source: ChainedSources, near: int, instead_of: int | None = None) -> Trial:
        """A trial of one source beside those of the state, of which up to ``near`` are its neighbours.

        ``instead_of`` is the place of a present source that is left out, usually because it is itself on trial.
        """
        places = np.arange(self.sources.n_sources)
        places = places if instead_of is None else places[places != instead_of]
        everyone = self.sources.pick(places).plus(source)
        neighbours = self.sources.pick(places).nearest(source.mixing[:, 0], near)
        members = np.append(neighbours, places.size)
        block = ChainBlock(_group(everyone.mixing, self.noise), members)
        return Trial(block, block.cells(self.cells, self.activity[:, places]), everyone.pick(members))

    def _course(self) -> Course:
        return Course(_group(self.sources.mixing, self.noise), self.cells, self.activity, AT_ONCE)

    def _update_noise(self) -> None:
        """Set one flip rate for all sensors: the share of cells that the course does not explain."""
        if not self._known_noise:
            observed = self.cells != MISSING
            wrong = observed & ((self.activity @ self.sources.mixing.T) != (self.cells == 1))
            self.noise = Noise.flips(max(wrong.sum() / max(observed.sum(), 1), NEVER_ZERO))


def _group(mixing: NDArray[np.bool_], noise: Noise) -> Group:
    n_sensors, n_sources = mixing.shape
    rates = (np.maximum(rate, NEVER_ZERO) for rate in noise.rates(n_sensors))
    return Group(np.arange(n_sensors), np.arange(n_sources), mixing, np.zeros(n_sources), penalties(*rates))
