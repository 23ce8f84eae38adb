"""Graded sources with linear mixing: beta-distributed sources (Kabán and Bingham 2008)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, polygamma

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.model.fit import Fit
from bica.rivals.counted import Attempt, NoiseSetting, check_noise, fit_best_start, nothing_found, required_n_sources

# A sensor shows 1 with probability sum_k A_ik b_tk: it copies one of the sources, k with probability A_ik, and each
# source b_tk ~ Beta(alpha_k, beta_k) is a probability itself. Mean field: which source a cell copies is independent of
# q(b_tk) = Beta(c_tk, d_tk). With L1 = E[log b], L0 = E[log(1 - b)] under q, summing out what is copied leaves
#
#     bound = sum_ti x log S1_ti + (1 - x) log S0_ti - sum_tk KL(q(b_tk) || prior),   S1 = e^L1 A', S0 = e^L0 A'
#
# whose updates are products of matrices (rows times sensors, rows times sources, sensors times sources).

Floats = NDArray[np.float64]
FIRST_SHAPE = 0.5  # alpha and beta in the beginning: sources near 0 or 1
DIRICHLET = 2.0  # of the first mixing
INNER_STEPS = 5  # of the sources for each of the mixing
SHAPES_AFTER = 5  # outer steps, so that the mixing takes form first
LEAST_SHAPE, MOST_SHAPE = 0.02, 50.0
LARGEST_FACTOR = 3.0  # by which a shape changes at once
SHAPE_STEPS, HALVINGS = 5, 10  # of Newton's method, and of each step
TINY = 1e-300  # keeps logarithms and quotients finite


@dataclass(frozen=True, kw_only=True)
class BetaSources:
    """Explain rows by sources between 0 and 1, of which every sensor copies one at random, each with its own weight.

    Zeros and ones are treated alike, so that one factor can stand for false absences (it is next to 0 in every row) or
    false presences (next to 1); factors of a mean below ``noise_mean``, or as near to 1, and those that are never
    above one half make no source of the model. Sources add up instead of saturating: two on the same sensor do not
    make it likelier to be on than the stronger one. Use it where a trait comes in degrees and cells went missing at
    random; OR mixtures are beyond it. The model is a binary reading: a source is on where its mean exceeds one half,
    and reaches a sensor that copies it with more than an equal share of ``n_sources`` factors.
    ``diagnostics["reach"]`` holds these shares (n_sensors, n_sources), ``"shape"`` alpha and beta of every factor. The
    start with the highest bound wins. Time of a step: rows times sensors times sources.

    A. Kabán, E. Bingham: Factorisation and denoising of 0-1 data: a variational approach, Neurocomputing 71, 2008.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.random((300, 12)) < np.repeat(rng.beta(0.3, 0.5, (300, 2)), 6, axis=1)
    >>> found = BetaSources(n_sources=2, n_init=2).fit(PatternCounts.of(rows), rng)
    >>> sorted("".join(map(str, column)) for column in found.model.mixing.T.astype(int))
    ['000000111111', '111111000000']
    """

    n_sources: int | None = None  # must be given: factors, those of noise included
    n_init: int = 3
    max_iter: int = 200
    tolerance: float = 1e-6  # relative change of the bound that ends a start
    noise_mean: float = 0.05  # factors whose mean is nearer to 0 or 1 than this are noise
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "beta sources")
        if self.max_iter < 1 or not 0 <= self.noise_mean < 0.5:
            raise SettingError("max_iter counts from 1 up, and noise_mean lies in [0, 0.5)")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold every start's score and minus the bound step by step."""
        data = data.complete("beta sources")
        n_sources = required_n_sources(self.n_sources, "beta sources")
        if not data.ones().any():
            return nothing_found("beta", data, self.noise)

        def start(_: int, stream: np.random.Generator) -> Attempt:
            return self._settled(BetaState(data, n_sources, stream))

        return fit_best_start("beta", data, start, self.n_init, rng)

    def _settled(self, state: BetaState) -> Attempt:
        costs = [np.inf]
        converged = False
        while len(costs) <= self.max_iter and not converged:
            state.improve()
            if len(costs) > SHAPES_AFTER:
                state.improve_shapes()
            costs.append(-state.bound())
            converged = len(costs) > SHAPES_AFTER + 2 and costs[-2] - costs[-1] <= self.tolerance * abs(costs[-1])
        mean = state.shape[:, 0] / state.shape.sum(axis=1)
        content = np.minimum(mean, 1 - mean) >= self.noise_mean
        activity = (state.posterior[0] > state.posterior[1]) & content
        mixing = (state.mixing > 1 / len(mean)) if len(mean) > 1 else np.ones_like(state.mixing, dtype=bool)
        trace = {"objective": costs[1:], "shape": state.shape.tolist()}
        return Attempt(mixing & content, activity, self.noise, costs[-1], trace, converged, reach=state.mixing)


class BetaState:
    """Mixing, shapes of the sources and what is known of every source in every row."""

    def __init__(self, data: PatternCounts, n_sources: int, rng: np.random.Generator) -> None:
        self.weights = data.weights
        self.rows = data.rows().astype(float)
        self.mixing = rng.dirichlet(np.full(n_sources, DIRICHLET), data.n_sensors)  # (n_sensors, n_sources)
        self.shape = np.full((n_sources, 2), FIRST_SHAPE)  # alpha and beta of every source
        self.posterior = FIRST_SHAPE + rng.random((2, len(self.rows), n_sources))  # c and d of every row and source

    def log_means(self) -> Floats:
        """The mean of log b and of log(1 - b): (2, n_rows, n_sources)."""
        means: Floats = digamma(self.posterior) - digamma(self.posterior.sum(axis=0))
        return means

    def improve(self) -> None:
        """Let the posteriors of the sources settle, then improve the mixing."""
        for _ in range(INNER_STEPS):
            weight = np.exp(self.log_means())
            quotient = self._quotients(weight)
            for side in (0, 1):
                self.posterior[side] = self.shape[:, side] + weight[side] * (quotient[side] @ self.mixing)
        weight = np.exp(self.log_means())
        quotient = self._quotients(weight) * self.weights[:, None]
        copied = self.mixing * (quotient[0].T @ weight[0] + quotient[1].T @ weight[1])
        self.mixing = copied / copied.sum(axis=1, keepdims=True)

    def _quotients(self, weight: Floats) -> Floats:
        """Ones and zeros of the table over the sums of what could explain them: (2, n_rows, n_sensors)."""
        total = np.maximum(weight @ self.mixing.T, TINY)
        quotients: Floats = np.stack([self.rows, 1 - self.rows]) / total
        return quotients

    def improve_shapes(self) -> None:
        """Newton steps for alpha and beta of every source, each taken only as far as it helps."""
        mean = np.tensordot(self.log_means(), self.weights, axes=(1, 0)).T / self.weights.sum()  # (n_sources, 2)
        for k in range(len(self.shape)):
            for _ in range(SHAPE_STEPS):
                self.shape[k] = _better_shape(self.shape[k], mean[k])

    def bound(self) -> float:
        """A lower bound of the log-likelihood."""
        means = self.log_means()
        total = np.maximum(np.exp(means) @ self.mixing.T, TINY)
        value = self.weights @ (self.rows * np.log(total[0]) + (1 - self.rows) * np.log(total[1])).sum(axis=1)
        change = ((self.shape.T[:, None, :] - self.posterior) * means).sum(axis=0)
        change += betaln(*self.posterior) - betaln(*self.shape.T)
        return float(value + self.weights @ change.sum(axis=1))


def _better_shape(shape: Floats, mean: Floats) -> Floats:
    """One Newton step up ``shape @ mean - log B(shape)``, halved until that does not fall."""
    slope = mean - digamma(shape) + digamma(shape.sum())
    curve = -np.diag(polygamma(1, shape)) + polygamma(1, shape.sum())
    step = np.linalg.solve(curve, -slope)
    value = float(shape @ mean - betaln(*shape))
    for _ in range(HALVINGS):
        new = np.clip(shape + step, shape / LARGEST_FACTOR, shape * LARGEST_FACTOR)
        new = np.clip(new, LEAST_SHAPE, MOST_SHAPE)
        if float(new @ mean - betaln(*new)) >= value:
            return new
        step = step / 2
    return shape
