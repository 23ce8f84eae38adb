"""Boolean factorisation by message passing (Ravanbakhsh, Poczos and Greiner 2016)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import LimitError, SettingError
from bica.kernels.rivals.factors import answer_cells, gather_answers
from bica.model.fit import Fit
from bica.rivals.counted import Attempt, NoiseSetting, check_noise, fit_best_start, nothing_found, required_n_sources

MOST_MESSAGES = 1 << 27  # of each of the four kinds: one gigabyte
LEAST_NOISE = 1e-6  # rate of false alarms and of misses: keeps log odds finite


@dataclass(frozen=True, kw_only=True)
class MessagePassing:
    """Look for the most probable pair of binary factors, given a noisy channel and independent bits in both.

    Damped max-sum messages run between the cells and the bits until they rest. Starts are random; the one whose factors
    are the most probable wins. ``channel`` is the probability that a cell shows the true state, unless ``noise`` gives
    the rates; it is not estimated. Time per step, and memory: rows times sensors times sources.

    >>> from bica.model.or_mixture import OrMixture
    >>> rows = OrMixture([[1, 0], [1, 1], [0, 1]], [0.4, 0.3]).sample(300, np.random.default_rng(0))
    >>> MessagePassing(n_sources=2).fit(PatternCounts.of(rows), np.random.default_rng(0)).model.mixing.astype(int)
    array([[1, 0],
           [1, 1],
           [0, 1]])
    """

    n_sources: int | None = None  # must be given
    prior: tuple[float, float] = (0.5, 0.5)  # how often a bit of the activity and of the mixing is on
    channel: float = 0.99
    damping: float = 0.2  # the weight of the new message beside the old one
    max_iter: int = 500
    tolerance: float = 1e-4
    n_init: int = 5
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "message passing")
        if not all(0 < probability < 1 for probability in self.prior) or not 0.5 < self.channel < 1:
            raise SettingError("the priors must lie in (0, 1) and the channel in (0.5, 1)")
        if not 0 < self.damping <= 1 or self.max_iter < 1:
            raise SettingError("damping must lie in (0, 1] and max_iter from 1 up")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold every start's score and the best start's cost step by step."""
        data = data.complete("message passing")
        n_sources = required_n_sources(self.n_sources, "message passing")
        if not data.ones().any():
            return nothing_found("message-passing", data, self.noise)
        n_messages = len(data.weights) * data.n_sensors * n_sources
        if n_messages > MOST_MESSAGES:
            raise LimitError(f"message passing would send {n_messages} messages per step; take fewer rows or sources")
        task = Factorisation(self, data, n_sources)
        return fit_best_start("message-passing", data, task.run, self.n_init, rng)


@dataclass(frozen=True, slots=True, eq=False)
class Factorisation:
    """One table to be factorised."""

    settings: MessagePassing
    data: PatternCounts
    n_sources: int

    def run(self, number: int, rng: np.random.Generator) -> Attempt:
        """Pass messages from a random start until they rest."""
        shape = (len(self.data.weights), self.data.n_sensors, self.n_sources)
        from_activity, from_mixing = (np.log1p(-rng.random(shape)) for _ in range(2))
        to_activity, to_mixing = np.zeros(shape), np.zeros(shape)
        activity, mixing = np.zeros((shape[0], shape[2])), np.zeros((shape[1], shape[2]))
        cell_log_odds, damping = self._cell_log_odds(), self.settings.damping
        prior = self._prior_odds()
        costs: list[float] = []
        change = np.inf
        while len(costs) < self.settings.max_iter and change > self.settings.tolerance:
            change = answer_cells(from_activity, from_mixing, cell_log_odds, damping, to_activity, to_mixing)
            gather_answers(
                to_activity, to_mixing, self.data.weights, prior, activity, mixing, from_activity, from_mixing
            )
            costs.append(self._cost(activity > 0, mixing > 0, cell_log_odds))
        trace = {"objective": costs}
        return Attempt(
            mixing > 0, activity > 0, self.settings.noise, costs[-1], trace, change <= self.settings.tolerance
        )

    def _cell_log_odds(self) -> NDArray[np.float64]:
        """The log odds that each cell is truly on."""
        wrong = 1 - self.settings.channel
        rates = (np.full(self.data.n_sensors, wrong),) * 2
        if self.settings.noise != "estimate":
            rates = self.settings.noise.rates(self.data.n_sensors)
        false_alarm, miss = (np.clip(rate, LEAST_NOISE, 1 - LEAST_NOISE) for rate in rates)
        on, off = np.log((1 - miss) / false_alarm), np.log(miss / (1 - false_alarm))
        cell_log_odds: NDArray[np.float64] = np.where(self.data.rows(), on, off)
        return cell_log_odds

    def _prior_odds(self) -> tuple[float, float]:
        activity, mixing = (float(np.log(probability / (1 - probability))) for probability in self.settings.prior)
        return activity, mixing

    def _cost(
        self, activity: NDArray[np.bool_], mixing: NDArray[np.bool_], cell_log_odds: NDArray[np.float64]
    ) -> float:
        """Minus the log of the joint probability, up to a constant; every bit that is on contributes its log odds."""
        odds = self._prior_odds()
        gain = self.data.weights @ ((activity @ mixing.T) * cell_log_odds).sum(axis=1)
        gain += odds[0] * (self.data.weights @ activity.sum(axis=1)) + odds[1] * mixing.sum()
        return float(-gain)
