"""Multi-Assignment Clustering (Streich, Frank, Basin and Buhmann 2009; Frank et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import LimitError, SettingError
from bica.kernels.bits import Cells
from bica.kernels.rivals.factors import assign, best_sets, improve_quiet, noise_weights, quiet_probabilities
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.rivals.counted import (
    LEAST_FLIPS,
    MOST_FLIPS,
    Attempt,
    NoiseSetting,
    check_noise,
    fit_best_start,
    nothing_found,
    required_n_sources,
)

NoisePair = tuple[float, float]  # rates of false alarms and of misses
TABLE_CELLS = 1 << 25  # sets times sensors; three such tables of doubles are kept
FIRST_NOISE = (0.05, 0.05)
FIRST_SPREAD = 0.1  # standard deviation of the first quiet probabilities around the columns' means
FIRST_LEAST, FIRST_MOST = 0.05, 0.95  # bounds of the first quiet probabilities
LAST_STEPS = 100  # at the end temperature
NOISE_STEPS = 20  # after the quiet probabilities became links


@dataclass(frozen=True, kw_only=True)
class MAC:
    """Give every row a set of sources, at falling temperature; the sets are free parameters without a prior.

    Source k leaves sensor j quiet with a probability of its own, which ends below or above one half: that is the
    mixing. Noise decides a cell with probability e, and then shows 1 with probability r: false alarms e r and misses e
    (1 - r), both estimated; ``symmetric`` makes them equal. Temperatures are in nats per row. The starts take the first
    temperatures in turn, since no single one suits every table; the links with the lowest free energy win. Time: starts
    times steps times rows times sets times sensors.

    >>> from bica.model.or_mixture import OrMixture
    >>> rows = OrMixture([[1, 0], [1, 1], [0, 1]], [0.4, 0.3]).sample(300, np.random.default_rng(0))
    >>> MAC(n_sources=2).fit(PatternCounts.of(rows), np.random.default_rng(0)).model.mixing.astype(int)
    array([[1, 0],
           [1, 1],
           [0, 1]])
    """

    n_sources: int | None = None  # must be given
    max_assign: int = 3  # how many sources a row may have at once
    n_init: int = 48  # where sources overlap much, a dozen starts miss the best optimum
    first_temperatures: tuple[float, ...] = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
    end_temperature: float = 0.35
    cooling: float = 0.8  # from one temperature to the next
    steps: int = 10  # at each temperature
    tolerance: float = 1e-4  # a smaller relative change of the free energy ends a temperature
    symmetric: bool = False
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "MAC")
        if not 0 < self.cooling < 1:
            raise SettingError(f"cooling must lie between 0 and 1, but {self.cooling:g} was given")
        if not self.first_temperatures or min(*self.first_temperatures, self.end_temperature) <= 0:
            raise SettingError("MAC needs temperatures above 0, at least one to start from")
        if self.max_assign < 1 or self.steps < 1:
            raise SettingError("max_assign and steps count from 1 up")
        if self.noise != "estimate" and self.noise.n_sensors is not None:
            raise SettingError("MAC knows one false-alarm and one miss rate for all sensors; give single rates")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold every start's score, and the free energies of the best start."""
        data = data.complete("MAC")
        n_sources = required_n_sources(self.n_sources, "MAC")
        if not data.ones().any():
            return nothing_found("mac", data, self.noise)
        task = Annealing(self, data.rows().view(np.uint8), data.weights, assignment_sets(n_sources, self.max_assign))
        _check_size(task.without.shape[1] * data.n_sensors)
        return fit_best_start("mac", data, task.run, self.n_init, rng)


@dataclass(frozen=True, slots=True, eq=False)
class Annealing:
    """One table and the sets of sources that a row may be given."""

    settings: MAC
    cells: Cells  # (n_rows, n_sensors), 0 and 1
    weights: NDArray[np.float64]
    without: NDArray[np.int64]  # (n_sources, n_sets), see ``assignment_sets``

    @property
    def least_noise(self) -> float:
        """Half a flip in all cells: as long as noise is never exactly 0, every row has an answer."""
        return float(LEAST_FLIPS / (self.weights.sum() * self.cells.shape[1]))

    def run(self, number: int, rng: np.random.Generator) -> Attempt:
        """Cool down from the first temperature of this start to the last."""
        temperatures = self.settings.first_temperatures
        state = AnnealingState(self, self._first_quiet(rng), self._first_noise())
        trace: dict[str, list[float]] = {"objective": [], "temperature": []}
        temperature = max(temperatures[number % len(temperatures)], self.settings.end_temperature)
        while temperature > self.settings.end_temperature:
            state.settle(temperature, self.settings.steps, trace)
            temperature = max(self.settings.cooling * temperature, self.settings.end_temperature)
        converged = state.settle(temperature, LAST_STEPS, trace)
        return self._attempt(state, trace, converged)

    def _first_quiet(self, rng: np.random.Generator) -> NDArray[np.float64]:
        quiet = 1.0 - self.weights @ self.cells / self.weights.sum()
        noise = rng.normal(0.0, FIRST_SPREAD, (self.without.shape[0], quiet.size))
        first: NDArray[np.float64] = np.clip(quiet + noise, FIRST_LEAST, FIRST_MOST)
        return first

    def _first_noise(self) -> NoisePair:
        given = self.settings.noise
        if given == "estimate":
            return FIRST_NOISE
        false_alarm, miss = (float(rate[0]) for rate in given.rates(1))
        return max(false_alarm, self.least_noise), max(miss, self.least_noise)

    def next_noise(self, state: AnnealingState) -> NoisePair:
        """The noise that explains the present assignments best, after one step of expectation and maximisation."""
        if self.settings.noise != "estimate":
            return state.rates
        weights = noise_weights(state.quiet, state.ones, state.total, state.rates)
        rates = np.array(weights) / (self.weights.sum() * self.cells.shape[1])
        rates = np.clip(rates.mean() if self.settings.symmetric else rates, self.least_noise, MOST_FLIPS)
        false_alarm, miss = np.broadcast_to(rates, 2).tolist()
        return false_alarm, miss

    def _attempt(self, state: AnnealingState, trace: dict[str, list[float]], converged: bool) -> Attempt:
        """Quiet probabilities below one half become links, noise takes the rest, and every row gets its best set."""
        reached = state.quiet_one < 0.5
        quiet_probabilities(np.where(reached, 0.0, 1.0), self.without, state.quiet)
        score = state.settle_noise(self.settings.end_temperature)
        chosen = np.empty(len(self.cells), np.int64)
        best_sets(self.cells, state.quiet, state.rates, chosen)
        noise = Noise(*state.rates) if self.settings.noise == "estimate" else self.settings.noise
        activity = self.without.T[chosen] >= 0
        return Attempt(np.ascontiguousarray(reached.T), activity, noise, score, trace, converged)


class AnnealingState:
    """The present quiet probabilities, noise and shares of a start, improved step by step."""

    def __init__(self, task: Annealing, quiet_one: NDArray[np.float64], rates: NoisePair) -> None:
        shape = task.cells.shape[1], task.without.shape[1]
        self.task, self.quiet_one, self.rates = task, quiet_one, rates
        self.quiet, self.ones, self.total = np.empty(shape), np.empty(shape), np.empty(shape[1])
        quiet_probabilities(quiet_one, task.without, self.quiet)

    def settle(self, temperature: float, n_steps: int, trace: dict[str, list[float]]) -> bool:
        """Take up to ``n_steps`` steps at one temperature; return whether the free energy came to rest."""
        task, before = self.task, np.inf
        for _ in range(n_steps):
            energy = assign(task.cells, task.weights, self.quiet, self.rates, temperature, self.ones, self.total)
            trace["objective"].append(energy)
            trace["temperature"].append(temperature)
            if before - energy < task.settings.tolerance * abs(energy):
                return True
            before = energy
            improve_quiet(self.quiet_one, task.without, self.ones, self.total, self.rates, self.quiet)
            self.rates = task.next_noise(self)
        return False

    def settle_noise(self, temperature: float) -> float:
        """Fit the noise again, now that links are all or nothing and explain none of it; return the free energy."""
        task = self.task
        for _ in range(NOISE_STEPS):
            assign(task.cells, task.weights, self.quiet, self.rates, temperature, self.ones, self.total)
            self.rates = task.next_noise(self)
        return assign(task.cells, task.weights, self.quiet, self.rates, temperature, self.ones, self.total)


def assignment_sets(n_sources: int, max_assign: int) -> NDArray[np.int64]:
    """For all sets of up to ``max_assign`` sources, smaller ones first, the sets with one source less.

    Entry [k, s] is the number of the set s without source k, or -1 if k is not in s: (n_sources, n_sets).

    >>> assignment_sets(2, 2)
    array([[-1,  0, -1,  2],
           [-1, -1,  0,  1]])
    """
    sizes = range(min(max_assign, n_sources) + 1)
    _check_size(sum(comb(n_sources, size) for size in sizes))
    sets = [members for size in sizes for members in combinations(range(n_sources), size)]
    place = {members: number for number, members in enumerate(sets)}
    without = np.full((n_sources, len(sets)), -1, np.int64)
    for number, members in enumerate(sets):
        for source in members:
            without[source, number] = place[tuple(other for other in members if other != source)]
    return without


def _check_size(n_cells: int) -> None:
    if n_cells > TABLE_CELLS:
        raise LimitError(f"MAC would need tables of {n_cells} cells for all sets of sources; lower max_assign")
