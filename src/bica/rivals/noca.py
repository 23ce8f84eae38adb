"""NOCA, noisy-OR component analysis (Šingliar and Hauskrecht 2006), and its exact sibling for few sources."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bica.data.patterns import PatternCounts
from bica.errors import LimitError, SettingError
from bica.kernels.bits import Cells
from bica.kernels.rivals.noisy_or import bound_rows, expected_reach, flip_to_best, improve_rates
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.rivals.counted import (
    MOST_FLIPS,
    Attempt,
    NoiseSetting,
    check_noise,
    fit_best_start,
    nothing_found,
    required_n_sources,
)

Floats = NDArray[np.float64]
FIRST_PROBABILITY = 0.1
WEAK, STRONG = 0.02, 0.52  # first links to sensors that are off and on in the row that a source starts from
HELD_LEAK = 0.05  # rate of the leak while links are learned: with less of it, the bound says nothing
INNER_STEPS = 5  # between shares and probabilities of a row
LEAK_STEPS = 20  # in the end
LEAST, MOST = 1e-4, 1 - 1e-4  # bounds of links and leaks
LEAST_ON, MOST_ON = 0.01, 0.5  # bounds of the probability of a source while it is learned
MOST_SHARES = 1 << 27  # one gigabyte
MOST_EXACT = 12  # sources whose states can be listed


@dataclass(frozen=True, kw_only=True)
class NOCA:
    """Fit sources that reach each sensor with a probability of its own, by a bound on the likelihood of each row.

    Each link and each sensor's leak has its own probability: ``diagnostics["reach"]`` (n_sensors, n_sources) holds the
    links, those above one half are the mixing. The leak is held fixed while links are learned, since the bound gets
    useless without one, and estimated in the end. ``exact`` sums over all states of up to 12 sources instead, slower
    and better. The start with the highest bound (or likelihood) wins; a start puts every source on the sensors of a
    random row. Use it where links fail now and then and their strength matters. Time of a step: rows times sensors
    times sources, or times 2^sources if exact.

    T. Šingliar, M. Hauskrecht: Noisy-OR component analysis and its application to link analysis, JMLR 7, 2006.

    >>> rng = np.random.default_rng(0)
    >>> sources = rng.random((300, 2)) < 0.25
    >>> reached = rng.random((300, 12)) < 0.9  # whom a source reaches when it is on
    >>> rows = np.repeat(sources, 6, axis=1) & reached
    >>> found = NOCA(n_sources=2, n_init=3).fit(PatternCounts.of(rows), rng)
    >>> sorted("".join(map(str, column)) for column in found.model.mixing.T.astype(int))
    ['000000111111', '111111000000']
    """

    n_sources: int | None = None  # must be given
    exact: bool = False
    n_init: int = 10
    max_iter: int = 100
    tolerance: float = 1e-5  # relative change of the bound that ends a start
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "NOCA")
        if self.max_iter < 1:
            raise SettingError(f"max_iter counts from 1 up, but {self.max_iter} was given")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold every start's score and minus the bound step by step."""
        data = data.complete("NOCA")
        n_sources = required_n_sources(self.n_sources, "NOCA")
        if not data.ones().any():
            return nothing_found("noca", data, self.noise)
        if self.exact and n_sources > MOST_EXACT:
            raise LimitError(f"exact NOCA lists all states of up to {MOST_EXACT} sources; leave exact out for more")
        if not self.exact and len(data.weights) * data.n_sensors * n_sources > MOST_SHARES:
            raise LimitError("NOCA would keep more than a gigabyte of shares; take fewer rows or sources")

        def start(_: int, stream: np.random.Generator) -> Attempt:
            learner = (ExactLearner if self.exact else BoundLearner)(data, n_sources, stream)
            return self._settled(learner)

        return fit_best_start("noca", data, start, self.n_init, rng)

    def _settled(self, learner: Learner) -> Attempt:
        costs = [np.inf]
        converged = False
        while len(costs) <= self.max_iter and not converged:
            costs.append(-learner.step())
            converged = abs(costs[-2] - costs[-1]) <= self.tolerance * abs(costs[-1])
        learner.finish()
        reach = np.ascontiguousarray(learner.link.T)
        noise = self.noise
        if noise == "estimate":
            linked = reach > 0.5
            miss = np.where(linked, 1 - reach, 0.0).sum(axis=1) / np.maximum(linked.sum(axis=1), 1)
            noise = Noise(np.clip(learner.leak, LEAST, MOST_FLIPS), np.clip(miss, LEAST, MOST_FLIPS))
        trace = {"objective": costs[1:]}
        return Attempt(reach > 0.5, learner.expected, noise, costs[-1], trace, converged, reach=reach)


class Learner:
    """Links, leaks and probabilities of sources, improved step by step."""

    def __init__(self, data: PatternCounts, n_sources: int, rng: np.random.Generator) -> None:
        self.weights, self.cells = data.weights, data.rows().view(np.uint8)
        lit = np.flatnonzero(self.cells.any(axis=1))
        rows = rng.choice(lit, n_sources, p=self.weights[lit] / self.weights[lit].sum())
        self.link = np.where(self.cells[rows] > 0, STRONG, WEAK)  # (n_sources, n_sensors)
        self.leak = np.full(data.n_sensors, -np.expm1(-HELD_LEAK))
        self.probability = np.full(n_sources, FIRST_PROBABILITY)
        self.expected = np.empty((len(self.cells), n_sources))  # that each source is on in each row

    def step(self) -> float:
        """Improve everything once; return the bound or the log-likelihood from before."""
        raise NotImplementedError

    def finish(self) -> None:
        """Bring to an end what the steps left open."""

    def log_odds(self) -> Floats:
        """Of each source being on."""
        odds: Floats = np.log(self.probability / (1 - self.probability))
        return odds

    def _count_sources(self) -> None:
        self.probability = np.clip(self.weights @ self.expected / self.weights.sum(), LEAST_ON, MOST_ON)


class BoundLearner(Learner):
    """By the bound, with the leak held."""

    def __init__(self, data: PatternCounts, n_sources: int, rng: np.random.Generator) -> None:
        super().__init__(data, n_sources, rng)
        self.share = np.empty((len(self.cells), n_sources, data.n_sensors))

    def step(self) -> float:
        """Bound every row anew, then improve links and probabilities."""
        rate, leak = -np.log1p(-self.link), -np.log1p(-self.leak)
        arrays = (self.share, self.expected)
        bound = bound_rows(
            self.cells, self.weights, rate, leak, self.log_odds(), FIRST_PROBABILITY, INNER_STEPS, *arrays
        )
        improve_rates(self.cells, self.weights, leak, *arrays, rate)
        self.link = np.clip(-np.expm1(-rate), LEAST, MOST)
        self._count_sources()
        return bound

    def finish(self) -> None:
        """Estimate the leak, with the best activity for every row."""
        on: Cells = (self.expected > 0.5).astype(np.uint8)
        rate = -np.log1p(-self.link)
        by_source, by_leak = np.empty(rate.shape), np.empty(self.leak.shape)
        for _ in range(LEAK_STEPS):
            leak = -np.log1p(-self.leak)
            flip_to_best(self.cells, rate, leak, self.log_odds(), on)
            expected_reach(self.cells, self.weights, rate, leak, on, by_source, by_leak)
            self.leak = np.clip(by_leak / self.weights.sum(), LEAST, MOST_FLIPS)


class ExactLearner(Learner):
    """By expectation and maximisation over all states of the sources; the likelihood never falls."""

    def __init__(self, data: PatternCounts, n_sources: int, rng: np.random.Generator) -> None:
        super().__init__(data, n_sources, rng)
        self.states = ((np.arange(2**n_sources)[:, None] >> np.arange(n_sources)) & 1).astype(float)

    def step(self) -> float:
        """One step for links, leaks and probabilities together."""
        quiet = self._quiet()
        joint = self.log_joint(quiet)
        total = logsumexp(joint, axis=1)
        posterior = np.exp(joint - total[:, None]) * self.weights[:, None]  # (n_rows, n_states)
        lit = (posterior.T @ self.cells) / (1 - quiet)  # (n_states, n_sensors)
        times = posterior.sum(axis=0) @ self.states
        self.link = np.clip(self.link * (self.states.T @ lit) / times[:, None], LEAST, MOST)
        self.leak = np.clip(self.leak * lit.sum(axis=0) / self.weights.sum(), LEAST, MOST)
        self.expected = posterior @ self.states / self.weights[:, None]
        self.probability = np.clip(self.weights @ self.expected / self.weights.sum(), LEAST, MOST)
        return float(self.weights @ total)

    def _quiet(self) -> Floats:
        """The probability that each sensor is quiet in each state: (n_states, n_sensors)."""
        quiet: Floats = np.exp(self.states @ np.log1p(-self.link) + np.log1p(-self.leak))
        return quiet

    def log_joint(self, quiet: Floats) -> Floats:
        """The log of the probability of each row with each state: (n_rows, n_states)."""
        prior = self.states @ self.log_odds() + np.log1p(-self.probability).sum()
        joint: Floats = self.cells @ np.log1p(-quiet).T + (1 - self.cells) @ np.log(quiet).T + prior
        return joint
