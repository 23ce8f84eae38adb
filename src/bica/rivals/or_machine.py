"""OrMachine: Bayesian Boolean factorisation by sampling (Rukat, Holmes, Titsias and Yau 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from bica.data.columns import MISSING
from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.kernels.bits import Cells
from bica.kernels.rivals.sampling import explained_wrongly, flip_activity, flip_mixing
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.rivals.counted import (
    MOST_FLIPS,
    Attempt,
    NoiseSetting,
    as_cells,
    check_noise,
    fit_best_start,
    log_chances,
    nothing_found,
    repeated,
    required_n_sources,
)

FIRST_ON = ((0.9, 0.1), (0.1, 0.9))  # shares of activity and of mixing bits that are on at the start, in turn
FIRST_FLIPS = 0.18  # flip rate of the first sweeps: log odds of 1.5
FIRST_SWEEPS = 20  # before the flip rate is estimated


@dataclass(frozen=True, kw_only=True)
class OrMachine:
    """Draw both factors from their posterior; links are those that are on in more than half of the draws.

    Every cell of the OR is flipped with one rate, which is estimated; or ``noise`` gives the rates. Bits have
    independent priors. It suits dense, noisy tables with a known number of factors, missing cells included, and says
    how certain each link is: ``diagnostics["reach"]`` holds its posterior probability (n_sensors, n_sources). On sparse
    tables the default priors mislead it. The start whose links and activities have the highest joint probability with
    the table wins. Time of one sweep: rows times sensors times sources.

    T. Rukat, C. C. Holmes, M. K. Titsias, C. Yau: Bayesian Boolean Matrix Factorisation, ICML 2017.

    >>> from bica.model.or_mixture import OrMixture
    >>> rows = OrMixture([[1, 0], [1, 1], [0, 1]], [0.4, 0.3]).sample(300, np.random.default_rng(0))
    >>> OrMachine(n_sources=2).fit(PatternCounts.of(rows), np.random.default_rng(0)).model.mixing.astype(int)
    array([[1, 0],
           [1, 1],
           [0, 1]])
    """

    n_sources: int | None = None  # must be given
    prior: tuple[float, float] = (0.5, 0.5)  # how often a bit of the activity and of the mixing is on
    burn_in: int = 150  # sweeps that are not used
    n_draws: int = 50  # sweeps that are
    n_init: int = 5
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "OrMachine")
        if not all(0 < probability < 1 for probability in self.prior):
            raise SettingError(f"the priors must lie in (0, 1), but {self.prior} was given")
        if self.burn_in < 0 or self.n_draws < 1:
            raise SettingError("burn_in counts from 0 up and n_draws from 1 up")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows, whose weights have to be whole numbers; missing cells may be anything."""
        n_sources = required_n_sources(self.n_sources, "OrMachine")
        if not data.ones().any():
            return nothing_found("ormachine", data, self.noise)
        task = Sampling(self, data, repeated(data, "OrMachine"), n_sources)
        return fit_best_start("ormachine", data, task.run, self.n_init, rng)


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """One table to draw factors for; equal rows stand one by one, since each has its own activity."""

    settings: OrMachine
    data: PatternCounts
    pattern: NDArray[np.int64]  # (n_samples,), the distinct row that each row equals
    n_sources: int

    def run(self, number: int, rng: np.random.Generator) -> Attempt:
        """Walk from a random start, and average what is visited after the burn-in."""
        chain = Chain(self, FIRST_ON[number % len(FIRST_ON)], rng)
        sums = DrawSums(chain)
        costs: list[float] = []
        for sweep in range(self.settings.burn_in + self.settings.n_draws):
            chain.sweep(rng, adapt=sweep >= FIRST_SWEEPS)
            costs.append(chain.cost())
            if sweep >= self.settings.burn_in:
                sums.add(chain)
        return self._attempt(chain, sums, costs)

    def _attempt(self, chain: Chain, sums: DrawSums, costs: list[float]) -> Attempt:
        activity, reach = sums.activity / self.settings.n_draws, sums.mixing.T / self.settings.n_draws
        noise = self.settings.noise
        if noise == "estimate":
            noise = Noise.flips(float(sums.flip_rate / self.settings.n_draws))
        share = np.zeros((len(self.data.weights), self.n_sources))
        np.add.at(share, self.pattern, activity)
        chain.move_to(activity > 0.5, reach.T > 0.5)
        score = chain.cost() - _share_of_doubt(activity)
        drawn = np.array(costs[self.settings.burn_in :])
        trace = {"objective": costs}
        share /= self.data.weights[:, None]
        return Attempt(reach > 0.5, share, noise, score, trace, _settled(drawn), reach=reach)


class Chain:
    """The present bits and flip rate of one random walk."""

    def __init__(self, task: Sampling, first_on: tuple[float, float], rng: np.random.Generator) -> None:
        self.task = task
        self.cells = as_cells(task.data)[task.pattern]
        shape = self.cells.shape
        self.activity: Cells = (rng.random((shape[0], task.n_sources)) < first_on[0]).astype(np.uint8)
        self.mixing: Cells = (rng.random((task.n_sources, shape[1])) < first_on[1]).astype(np.uint8)
        self.cover = self.activity.astype(np.int32) @ self.mixing.astype(np.int32)
        self.prior_odds = [float(np.log(prior / (1 - prior))) for prior in task.settings.prior]
        self.sign = np.array([-1.0, 1.0, 0.0])[self.cells]  # of a cell that shows 0, 1 or nothing
        self.n_observed = int((self.cells != MISSING).sum())
        self.flip_rate = FIRST_FLIPS
        self._set_noise(task.settings.noise)

    def _set_noise(self, noise: NoiseSetting) -> None:
        """Find what every cell says; with one flip rate for all cells that is their sign times one number."""
        if noise == "estimate":
            self.says = self.sign * float(np.log((1 - self.flip_rate) / self.flip_rate))
            self.quiet = self.n_observed * float(np.log(1 - self.flip_rate)) - float(self.says[self.cells == 1].sum())
            return
        if_on, if_quiet = log_chances(noise, self.cells.shape[1])
        place = np.arange(self.cells.shape[1])
        self.says = (if_on - if_quiet)[self.cells, place]
        self.quiet = float(if_quiet[self.cells, place].sum())

    def sweep(self, rng: np.random.Generator, adapt: bool) -> None:
        """Propose to flip every bit once; then, with ``adapt``, estimate the flip rate."""
        draws = rng.random(self.activity.shape)
        flip_activity(self.says, self.mixing, self.prior_odds[0], draws, self.activity, self.cover)
        draws = rng.random(self.mixing.shape)
        flip_mixing(self.says, self.activity, self.prior_odds[1], draws, self.mixing, self.cover)
        if adapt:
            self._adapt()

    def move_to(self, activity: NDArray[np.bool_], mixing: NDArray[np.bool_]) -> None:
        """Go to these bits, with the flip rate that suits them."""
        self.activity, self.mixing = activity.astype(np.uint8), mixing.astype(np.uint8)
        self.cover = self.activity.astype(np.int32) @ self.mixing.astype(np.int32)
        self._adapt()

    def _adapt(self) -> None:
        if self.task.settings.noise == "estimate":
            wrong = explained_wrongly(self.cells, self.cover)
            self.flip_rate = min((wrong + 1) / (self.n_observed + 2), MOST_FLIPS)
            self._set_noise("estimate")

    def cost(self) -> float:
        """Minus the log of the joint probability of table and bits, up to a constant of the priors."""
        gain = self.quiet + float((self.says * (self.cover > 0)).sum())
        gain += self.prior_odds[0] * float(self.activity.sum()) + self.prior_odds[1] * float(self.mixing.sum())
        return -gain


class DrawSums:
    """What is added up over the draws."""

    def __init__(self, chain: Chain) -> None:
        self.activity, self.mixing = np.zeros(chain.activity.shape), np.zeros(chain.mixing.shape)
        self.flip_rate = 0.0

    def add(self, chain: Chain) -> None:
        """Take in the present state of the walk."""
        self.activity += chain.activity
        self.mixing += chain.mixing
        self.flip_rate += chain.flip_rate


def _share_of_doubt(probability: NDArray[np.float64]) -> float:
    """The entropy of these bits as a share of what it could be at most, below 1.

    Of two answers that explain the table equally well, the one with more doubt stands for more of the posterior.
    """
    return float((entr(probability) + entr(1 - probability)).sum() / (np.log(2) * (probability.size + 1)))


def _settled(costs: NDArray[np.float64]) -> bool:
    """Whether the costs of the draws go neither up nor down, as far as their spread shows."""
    first, second = np.array_split(costs, 2)
    return second.size == 0 or bool(abs(first.mean() - second.mean()) <= 2 * costs.std())
