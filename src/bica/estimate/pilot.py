"""A first guess of the flip rate that all sensors share, from a few blocks learned with the rate unknown."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.estimate.blocks import WHOLE
from bica.estimate.costs import source_cost
from bica.estimate.lattice import Cells, Surface
from bica.estimate.lattice_task import FIRST_FLIP_RATE
from bica.estimate.links import Links
from bica.estimate.noise_shape import NoiseShape
from bica.estimate.refit import BetaPrior
from bica.estimate.search import Search, Start
from bica.estimate.standard_errors import standard_errors
from bica.progress import tracked

N_BLOCKS = 4
SENSORS = 8  # of a block; fewer say little about the noise


def first_flip_rate(data: PatternCounts, links: Links, lowest: float) -> float:
    """The median over the blocks, each counted as far as it is sure."""
    blocks = pilot_blocks(links)
    guesses = np.array([_guess(data, sensors, lowest) for sensors in tracked(blocks, "noise", len(blocks))])
    order = np.argsort(guesses[:, 0])
    share = np.cumsum(guesses[order, 1])
    return float(guesses[order[np.searchsorted(share, 0.5 * share[-1])], 0])


def pilot_blocks(links: Links) -> list[NDArray[np.int64]]:
    """Disjoint blocks of sensors with many links, but not too many for one block: those come last.

    >>> [block.tolist() for block in pilot_blocks(Links((np.array([1]), np.array([0]), np.array([], np.int64))))]
    [[0, 1, 2]]
    """
    degree = [near.size for near in links.neighbours]
    by_degree = sorted(range(len(degree)), key=lambda i: -degree[i] if degree[i] < WHOLE else 0)
    taken: set[int] = set()
    blocks: list[NDArray[np.int64]] = []
    block: list[int] = []
    for sensor in by_degree:
        more = [i for i in (sensor, *links.neighbours[sensor].tolist()) if i not in taken]
        block += more[: max(0, WHOLE - len(block))]
        taken.update(block)
        if len(block) >= SENSORS:
            blocks.append(np.array(block, np.int64))
            block = []
        if len(blocks) == N_BLOCKS:
            return blocks
    return blocks or [np.array(block, np.int64)]


def _guess(data: PatternCounts, sensors: NDArray[np.int64], lowest: float) -> tuple[float, float]:
    """The flip rate of one block, and how firm it is: the inverse of its variance."""
    shape = NoiseShape.shared_flips(sensors.size, lowest)
    surface = Surface(Cells.of(data.project(sensors.tolist())), shape)
    allowed = np.arange(2**sensors.size) > 0
    nothing = np.empty(0)
    start = Start(np.empty(0, np.int64), nothing, nothing.astype(bool), np.array([FIRST_FLIP_RATE]))
    search = Search(surface, source_cost(data.n_sensors, data.n_samples), allowed, BetaPrior(), start)
    fit = search.run().fit
    rate, error = float(fit.point.noise[0]), standard_errors(surface, fit).mean_noise
    smallest = 1.0 / data.n_samples  # at its lowest a rate has no error
    return rate, 1.0 / max(error if np.isfinite(error) else 1.0, smallest) ** 2
