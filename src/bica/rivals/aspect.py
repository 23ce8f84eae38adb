"""Aspect Bernoulli: every row mixes a few patterns of probabilities (Bingham, Kabán and Fortelius 2009)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.model.fit import Fit
from bica.rivals.counted import Attempt, NoiseSetting, check_noise, fit_best_start, nothing_found, required_n_sources

# A cell of row t and sensor i shows 1 with probability mu_ti = sum_k s_tk a_ki: it takes aspect k with probability
# s_tk, which then shows 1 with probability a_ki. Which aspect a cell took is hidden; expectation and maximisation over
# it, with the ones and zeros of the table over what explains them, r = x / mu and z = (1 - x) / (1 - mu), give
#
#     s_tk <- s_tk / m  sum_i (r_ti a_ki + z_ti (1 - a_ki)),      a_ki <- a N1 / (a N1 + (1 - a) N0),
#     N1_ki = sum_t s_tk r_ti,  N0_ki = sum_t s_tk z_ti
#
# and the likelihood never falls. Time of a step: rows times sensors times aspects.

Floats = NDArray[np.float64]
TINY = 1e-12  # keeps quotients finite


@dataclass(frozen=True, kw_only=True)
class AspectBernoulli:
    """Explain every row by shares of a few aspects, each a probability for every sensor.

    Aspects are point estimates without a prior, and zeros are explained just as ones are, so that one aspect may stand
    for cells that went missing. Within a row the shares add up to one: two aspects never switch on more sensors than
    one of them alone would, so OR mixtures are beyond it. Use it as the simplest model of graded traits. The model is a
    binary reading: a source is on where its aspect has more than an equal share of the row, and reaches a sensor that
    the aspect shows more often than not. ``diagnostics["reach"]`` holds the aspects (n_sensors, n_sources). The start
    with the highest likelihood wins.

    E. Bingham, A. Kabán, M. Fortelius: The aspect Bernoulli model: multiple causes of presences and absences, Pattern
    Analysis and Applications 12, 2009.

    >>> rng = np.random.default_rng(0)
    >>> either = np.repeat(np.eye(2)[rng.integers(0, 2, 300)], 6, axis=1)
    >>> found = AspectBernoulli(n_sources=2).fit(PatternCounts.of(rng.random((300, 12)) < 0.9 * either), rng)
    >>> sorted("".join(map(str, column)) for column in found.model.mixing.T.astype(int))
    ['000000111111', '111111000000']
    """

    n_sources: int | None = None  # must be given: aspects, those of noise included
    n_init: int = 3
    max_iter: int = 300
    tolerance: float = 1e-6  # relative change of the likelihood that ends a start
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "aspect Bernoulli")
        if self.max_iter < 1 or not self.tolerance >= 0:
            raise SettingError("max_iter counts from 1 up, and tolerance is not negative")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold every start's score and minus the log-likelihood step by step."""
        data = data.complete("aspect Bernoulli")
        n_sources = required_n_sources(self.n_sources, "aspect Bernoulli")
        if not data.ones().any():
            return nothing_found("aspect", data, self.noise)
        return fit_best_start(
            "aspect", data, lambda _, stream: self._settled(Aspects(data, n_sources, stream)), self.n_init, rng
        )

    def _settled(self, aspects: Aspects) -> Attempt:
        costs = [-aspects.log_likelihood()]
        converged = False
        while len(costs) <= self.max_iter and not converged:
            aspects.improve()
            costs.append(-aspects.log_likelihood())
            converged = costs[-2] - costs[-1] <= self.tolerance * abs(costs[-1])
        shown, n_sources = aspects.shown.T, aspects.shares.shape[1]
        activity = aspects.shares > 1 / n_sources if n_sources > 1 else np.ones_like(aspects.shares, dtype=bool)
        trace = {"objective": costs[1:]}
        return Attempt(shown > 0.5, activity, self.noise, costs[-1], trace, converged, reach=shown)


class Aspects:
    """The aspects, and their shares in every distinct row."""

    def __init__(self, data: PatternCounts, n_sources: int, rng: np.random.Generator) -> None:
        self.weights, self.rows = data.weights, data.rows().astype(float)
        self.shares = rng.dirichlet(np.ones(n_sources), len(self.rows))  # (n_rows, n_sources)
        self.shown = rng.uniform(0.25, 0.75, (n_sources, data.n_sensors))

    def _probabilities(self) -> Floats:
        """The probability that each cell shows 1."""
        probabilities: Floats = np.clip(self.shares @ self.shown, TINY, 1 - TINY)
        return probabilities

    def log_likelihood(self) -> float:
        """Of all rows, at these shares."""
        probabilities = self._probabilities()
        return float(
            self.weights @ (self.rows * np.log(probabilities) + (1 - self.rows) * np.log1p(-probabilities)).sum(axis=1)
        )

    def improve(self) -> None:
        """One step of expectation and maximisation, of shares and aspects together."""
        probabilities = self._probabilities()
        ones, zeros = self.rows / probabilities, (1 - self.rows) / (1 - probabilities)
        weighted = self.shares * self.weights[:, None]
        on, off = self.shown * (weighted.T @ ones), (1 - self.shown) * (weighted.T @ zeros)
        shares = self.shares * (ones @ self.shown.T + zeros @ (1 - self.shown).T)
        self.shares = shares / shares.sum(axis=1, keepdims=True)  # they add up to the number of sensors already
        self.shown = np.clip(on / np.maximum(on + off, TINY), 0.0, 1.0)
