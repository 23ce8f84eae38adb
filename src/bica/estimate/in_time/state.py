"""Where the search stands: the sources, their course through the slots so far, and the noise of the sensors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import MISSING
from bica.estimate.in_time.sources import ChainedSources
from bica.estimate.in_time.trial import Trial
from bica.invert.chains import Block
from bica.invert.courses import Course
from bica.invert.groups import Group, penalties
from bica.model.noise import Noise

AT_ONCE = 6  # sources whose course is found exactly; of more, a few neighbours at a time
ROUNDS = 3  # of expectation and maximisation after each change
NEVER_ZERO = 1e-6  # of a rate: a cell that nothing explains must not rule out all sources


class State:
    """Sources with their likeliest course through the slots; every change settles both anew."""

    def __init__(self, cells: NDArray[np.uint8], sources: ChainedSources, noise: Noise, *, known_noise: bool) -> None:
        self.cells, self.sources, self.noise, self._known_noise = cells, sources, noise, known_noise
        self.activity = np.zeros((len(cells), sources.n_sources), bool)

    def settle(self) -> None:
        """Improve the course, then the chances of the sources and of the noise, in turns."""
        for _ in range(ROUNDS):
            course = self._course()
            course.improve(self.sources.chains)
            self.activity = course.activity
            self.sources = self.sources.moving(course.moves(self.sources.chains))
            self._update_noise()

    def add(self, source: ChainedSources, near: int) -> None:
        """Take in a new source, with the course that is best for it and its neighbours together.

        Two neighbours who did its work until now would not both step back by themselves.
        """
        trial = self.trial(source, near)
        self.activity = np.pad(self.activity, ((0, 0), (0, 1)))
        self.activity[:, trial.block.sources] = trial.course()
        self.sources = self.sources.plus(source)
        self.settle()

    def drop(self, place: int) -> None:
        """Leave one source out."""
        kept = np.flatnonzero(np.arange(self.sources.n_sources) != place)
        self.activity, self.sources = self.activity[:, kept], self.sources.pick(kept)
        self.settle()

    def trial(self, source: ChainedSources, near: int, instead_of: int | None = None) -> Trial:
        """One source beside those of the state, of which up to ``near`` are its neighbours.

        ``instead_of`` is the place of a present source that is left out, usually because it is the one on trial.
        """
        places = np.arange(self.sources.n_sources)
        places = places if instead_of is None else places[places != instead_of]
        everyone = self.sources.pick(places).plus(source)
        neighbours = self.sources.pick(places).nearest(source.mixing[:, 0], near)
        members = np.append(neighbours, places.size)
        block = Block(_group(everyone.mixing, self.noise), members)
        return Trial(block, block.cells(self.cells, self.activity[:, places]), everyone.pick(members))

    def _course(self) -> Course:
        return Course(_group(self.sources.mixing, self.noise), self.cells, self.activity, AT_ONCE)

    def _update_noise(self) -> None:
        """One flip rate for all sensors: the share of cells that the course does not explain."""
        if not self._known_noise:
            seen = self.cells != MISSING
            wrong = seen & ((self.activity @ self.sources.mixing.T) != (self.cells == 1))
            self.noise = Noise.flips(max(wrong.sum() / max(seen.sum(), 1), NEVER_ZERO))


def _group(mixing: NDArray[np.bool_], noise: Noise) -> Group:
    n_sensors, n_sources = mixing.shape
    rates = (np.maximum(rate, NEVER_ZERO) for rate in noise.rates(n_sensors))
    return Group(np.arange(n_sensors), np.arange(n_sources), mixing, np.zeros(n_sources), penalties(*rates))
