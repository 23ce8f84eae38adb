"""Learning sources with lossy edges behind up to 16 sensors: from too many dense sources to those that pay."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from bica.estimate.edges import LEAST_SENSORS, LossyFit
from bica.estimate.lattice import Cells
from bica.estimate.lossy.search import (
    BETTER,
    LossyTask,
    add_edges,
    give_birth,
    prune,
    shrink,
    without_faint,
)
from bica.estimate.lossy.surface import LAST_PACE, LossyPoint, LossySurface, Matrix, Vector
from bica.estimate.score import covariance_of
from bica.estimate.settings import Settings, Varying
from bica.estimate.whole import FIRST_PROBABILITY
from bica.kernels.lattice.lossy import NEARLY_NONE, NEARLY_SURE
from bica.model.files import LEVEL
from bica.model.identified import identified
from bica.progress import report

MORE_SOURCES = 2  # than sensors: too many at first find more of the true ones
SPECTRUM_STEPS, FIRST_RATE = 100, 0.01
LEAST_RATE = 2e-6  # of the spectrum: smaller ones are left out
MIXTURE_STEPS, DENSE_STEPS, DENSE_TOLERANCE = 40, 120, 1e-2
OTHER_REACH, SEED_REACH, FIRST_LEAK = 0.1, 0.7, 0.01  # where the mixture starts; what a seed reaches has both
REACHES, LEAKS = (0.02, 0.97), (1e-4, 0.9)  # at least and at most, so that every one can still move
LEAST_MASS, LEAST_LEAK_RATE = 1e-9, 1e-6
RAREST_START, MOST_FREQUENT_START = 2e-3, 0.9  # probabilities
FIRST_REACH = 0.8  # of a known source
LEAST_LEFT, TINY = 1e-6, 1e-300  # of the information on a leak that other numbers take
ROUNDS = 6  # of births and what they make superfluous


def learn_lossy(table: Varying, settings: Settings) -> LossyFit:
    """The sources with lossy edges behind the sensors that vary; Ctrl-C keeps the best so far."""
    task = lossy_task(table, settings)
    search = LossySearch(task)
    interrupted = False
    try:
        search.run()
    except KeyboardInterrupt:
        interrupted = True
    return fit_of(task, _frequent(task, search.best, settings.min_probability or 0.0), interrupted=interrupted)


def lossy_task(table: Varying, settings: Settings) -> LossyTask:
    """The likelihood, the costs, the known sources and what is forbidden."""
    cells = Cells.of(table.data.counts())
    cost = lossy_cost(cells.n_sensors, cells.n_samples)
    return LossyTask(LossySurface(cells), cost, _known_sources(table), table.forbidden_sets)


def lossy_cost(n_sensors: int, n_samples: float) -> Vector:
    """What a source of 0, 1, ... sensors must gain: half a log of the rows for each of its sensors.

    Half a log more, for its probability, leaves every fourth table of a thousand rows without a source of three sensors
    inside a wider one, and nothing less brings a source that is not there. Three sensors are what makes a source; each
    one more is the best of many and pays half a log of the sensors besides, as with many sensors. Without that, every
    tenth table of fourteen sensors has an edge too many (``benchmarks/results/lossy.md``).
    """
    sizes = np.arange(n_sensors + 1.0)
    beyond = 0.5 * math.log(max(n_sensors, 1)) * np.maximum(sizes - LEAST_SENSORS, 0.0)
    cost: Vector = 0.5 * math.log(max(n_samples, 2.0)) * sizes + beyond
    return cost


def _known_sources(table: Varying) -> LossyPoint:
    """The known sources, with what was given of their numbers, and hardly any leaks."""
    n_known, n_sensors = len(table.known), table.data.n_sensors
    reach, given = np.zeros((n_known, n_sensors)), np.zeros((n_known, n_sensors), dtype=bool)
    for mode, source in enumerate(table.known):
        for place, name in enumerate(source.sensors):
            if name in table.data.sensors:
                sensor = table.data.sensors.index(name)
                reach[mode, sensor] = FIRST_REACH if source.reach is None else min(source.reach[place], NEARLY_SURE)
                given[mode, sensor] = source.reach is not None
    probability = [FIRST_PROBABILITY if source.probability is None else source.probability for source in table.known]
    fixed = np.array([source.probability is not None for source in table.known], dtype=bool)
    return LossyPoint(np.array(probability, dtype=float), reach, np.full(n_sensors, NEARLY_NONE), fixed, given)


class LossySearch:
    """A search that can be interrupted: ``best`` is the best point so far."""

    def __init__(self, task: LossyTask) -> None:
        self.task = task
        leaks = np.clip(task.surface.cells.ones_share(), NEARLY_NONE, 0.9)
        self.best = task.surface.refit(replace(task.known, leak=leaks))

    def run(self) -> None:
        """From too many sources with all edges down to what pays; then births, until the score rises no more."""
        self._report()
        if self.task.surface.cells.n_sensors < 2:
            return
        spectrum = self.task.surface.spectrum(self.task.known, FIRST_RATE, SPECTRUM_STEPS)
        found = self.task.surface.refit(without_faint(self.task, dense_start(self.task, spectrum)))
        self._keep(found)
        self._keep(shrink(self.task, prune(self.task, found)))
        for _ in range(ROUNDS):
            born = give_birth(self.task, self.best)
            more = add_edges(self.task, self.best if born is None else born)
            if not self._keep(shrink(self.task, prune(self.task, more))):
                return

    def _keep(self, found: LossyPoint) -> bool:
        better = self.task.score(found) > self.task.score(self.best) + BETTER
        self.best = found if better else self.best
        self._report()
        return better

    def _report(self) -> None:
        report("sources with lossy edges", self.best.n_modes, None)


def dense_start(task: LossyTask, spectrum: Vector) -> LossyPoint:
    """More sources than there will be, each with all sensors: a mixture of products of Bernoullis on the spectrum.

    For rare sources the rate of a sure source behind a set is the rate of the lossy ones, times the
    probability that they reach exactly that set.
    """
    n_sensors = task.surface.cells.n_sensors
    sets = np.flatnonzero(spectrum > LEAST_RATE)
    inside, rate = ((sets[:, None] >> np.arange(n_sensors)) & 1).astype(float), spectrum[sets]
    reach, mass, leak = _mixture(inside, rate, _seeds(inside, rate, n_sensors + MORE_SOURCES))
    start = replace(task.known, leak=leak)
    for row, weight in zip(reach, mass, strict=True):
        start = start.plus(float(np.clip(-np.expm1(-weight), RAREST_START, MOST_FREQUENT_START)), row)
    return task.surface.em(task.obeying(start), DENSE_STEPS, DENSE_TOLERANCE)


def _seeds(inside: Matrix, rate: Vector, n_seeds: int) -> Matrix:
    """Sets of two sensors or more that are heavy and far from each other, one after the other."""
    weight = rate * (inside.sum(axis=1) > 1)
    n_seeds = min(n_seeds, int(np.count_nonzero(weight)))
    chosen: list[int] = []
    distance = np.full(weight.size, np.inf)
    for _ in range(n_seeds):
        chosen.append(int(np.argmax(weight if not chosen else distance * weight)))
        distance = np.minimum(distance, np.abs(inside - inside[chosen[-1]]).sum(axis=1))
    return inside[chosen]


def _mixture(inside: Matrix, rate: Vector, seeds: Matrix) -> tuple[Matrix, Vector, Vector]:
    """Reach and mass of every source, and the leaks, after some steps of expectation and maximisation."""
    reach = OTHER_REACH + SEED_REACH * seeds
    mass = np.full(len(seeds), rate.sum() / max(1, len(seeds)))
    single = inside.sum(axis=1) == 1
    leak_rate = np.full(inside.shape[1], FIRST_LEAK)
    for _ in range(MIXTURE_STEPS):
        share = np.exp(inside @ np.log(reach).T + (1.0 - inside) @ np.log1p(-reach).T) * mass
        by_leak = np.where(single, inside @ leak_rate, 0.0)
        portion = rate / (share.sum(axis=1) + by_leak + 1e-300)
        share *= portion[:, None]
        mass = share.sum(axis=0) + LEAST_MASS
        reach = np.clip(share.T @ inside / mass[:, None], *REACHES)
        leak_rate = (by_leak * portion) @ inside + LEAST_LEAK_RATE
    return reach, mass, np.clip(-np.expm1(-leak_rate), *LEAKS)


def _frequent(task: LossyTask, point: LossyPoint, min_probability: float) -> LossyPoint:
    """Refitted to the last digit, without sources that are rarer than asked for, the rarest dropped first."""
    while True:
        point = task.surface.refit(point, LAST_PACE)
        probability = np.append(np.full(task.known.n_modes, np.inf), point.probability[task.known.n_modes :])
        if not probability.size or probability.min() >= min_probability:
            return point
        point = point.pick(np.arange(point.n_modes) != probability.argmin())


def fit_of(task: LossyTask, point: LossyPoint, *, interrupted: bool) -> LossyFit:
    """The point as a value: a reach that touches its bound is 1, and the rest has standard errors where it can."""
    probability_error, reach_error, leak_error = standard_errors(point)
    leak_error = _with_errors_at_bound(task, point, leak_error)
    reach = np.where(point.reach >= NEARLY_SURE, 1.0, point.reach)
    height = task.surface.height(replace(point, reach=reach))
    return LossyFit(
        (point.reach > 0).T,
        point.probability,
        reach.T,
        point.leak,
        height,
        height - task.cost_of(point),
        probability_error,
        reach_error.T,
        leak_error,
        interrupted,
    )


def standard_errors(point: LossyPoint) -> tuple[Vector, Matrix, Vector]:
    """The standard errors of probabilities, reaches and leaks: 0 where given, NaN where the rows tell nothing.

    Of a source of two sensors the rows tell only how often both are on beyond chance: that is its probability with sure
    edges, whose error it has; the reach has none.
    """
    assert point.information is not None
    loose = point.loose()
    error = np.zeros(loose.size)
    error[loose] = np.sqrt(np.diag(covariance_of(point.information[np.ix_(loose, loose)])))
    error[~np.isfinite(error)] = np.nan
    n_modes, n_sensors = point.reach.shape
    reach = np.full(point.reach.shape, np.nan)
    reach[point.reach > 0] = error[n_modes:-n_sensors]
    open_ones = ~np.array(identified([np.flatnonzero(row).tolist() for row in point.reach]).sources, dtype=bool)
    reach[open_ones[:, None] & ~point.fixed_reach] = np.nan
    probability = np.where(open_ones & (point.sizes != 2) & ~point.fixed_probability, np.nan, error[:n_modes])
    return probability, reach, error[-n_sensors:]


def _with_errors_at_bound(task: LossyTask, point: LossyPoint, error: Vector) -> Vector:
    """The errors of the leaks, also of those that the rows would have below 0, which stay at their lower bound.

    There the log-likelihood falls by g u + I u^2 / 2 on the way to u, with the slope -g and the information I that all
    other numbers leave. The error is the share of u that makes [0, u] the interval of probability ``LEVEL``, where it
    falls by half the square of the normal quantile z: u = z e with I e^2 + 2 g e / z = 1. Without a slope, that is the
    usual error.
    """
    _, slope, information = task.surface.slopes(point)
    loose, first = point.loose(), point.numbers().size - point.leak.size
    at_bound = first + np.flatnonzero(~loose[first:])
    covariance = covariance_of(information[np.ix_(loose, loose)])
    covariance[~np.isfinite(covariance)] = 0.0
    with_others = information[np.ix_(at_bound, loose)]
    left = information[at_bound, at_bound] - np.einsum("ij,jk,ik->i", with_others, covariance, with_others)
    left = np.maximum(left, LEAST_LEFT * information[at_bound, at_bound])
    per_z = np.maximum(-slope[at_bound], 0.0) / NormalDist().inv_cdf(0.5 + LEVEL / 2)
    error = error.copy()
    error[at_bound - first] = (np.sqrt(per_z**2 + left) - per_z) / np.maximum(left, TINY)
    return error
