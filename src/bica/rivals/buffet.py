"""Hidden causes, as many as needed, with an Indian buffet prior (Wood, Griffiths and Ghahramani 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.kernels.bits import Cells
from bica.kernels.rivals.sampling import draw_activity, draw_links_of, draw_new_sources
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.rivals.counted import Attempt, NoiseSetting, check_noise, fit_best_start, nothing_found, repeated

Floats = NDArray[np.float64]
FIRST_LEAK, FIRST_REACH, FIRST_PROBABILITY = 0.01, 0.9, 0.1
STEP = 0.1  # standard deviation of proposed changes of log odds
LEAST, MOST = 1e-6, 1 - 1e-6  # bounds of all probabilities
MOST_WORD = 2**63  # random streams


@dataclass(frozen=True, kw_only=True)
class IndianBuffet:
    """Draw sources, their links and their activity from the posterior of a model without a limit to their number.

    A sensor shows 1 with probability 1 - (1 - leak) (1 - reach)^c if c sources that reach it are on. Leak, reach and
    the probability of a source are the same for all, and are drawn as well unless ``noise`` (leak as the false-alarm
    rate, 1 - reach as the miss rate) and ``probability`` give them. The number of sources is found: sensors choose
    sources as guests of a buffet choose dishes, with ``alpha`` new ones for the first. Chains disagree, so several are
    run; the most probable state that any of them visits is the answer. ``sampler="rj"`` adds and removes empty sources
    instead (reversible jumps), which mixes far more slowly. ``diagnostics["shared_sources"]`` holds the mean number of
    sources that two sensors share, over the second half of the winning chain. Use it for small tables (tens of
    sensors, hundreds of rows) with an unknown number of sources. Time of a sweep: rows times sensors times sources.

    F. Wood, T. L. Griffiths, Z. Ghahramani: A non-parametric Bayesian method for inferring hidden causes, UAI 2006.

    >>> from bica.model.or_mixture import OrMixture
    >>> truth = OrMixture(np.kron(np.eye(2), np.ones((4, 1))), [0.2, 0.15])
    >>> data = PatternCounts.of(truth.sample(200, np.random.default_rng(0)))
    >>> bool((IndianBuffet(n_init=3).fit(data, np.random.default_rng(0)).model.mixing == truth.mixing).all())
    True
    """

    alpha: float = 2.0
    probability: float | None = None  # that a source is on; None: drawn
    sampler: Literal["gibbs", "rj"] = "gibbs"
    n_sweeps: int = 300
    n_init: int = 6
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "the Indian buffet")
        if self.noise != "estimate" and self.noise.n_sensors is not None:
            raise SettingError("the Indian buffet knows one leak and one reach for all sensors; give single rates")
        if self.alpha <= 0 or self.n_sweeps < 2:
            raise SettingError("alpha must be above 0 and n_sweeps from 2 up")
        if self.probability is not None and not 0 < self.probability < 1:
            raise SettingError(f"a probability must lie in (0, 1), but {self.probability:g} was given")
        if self.sampler not in ("gibbs", "rj"):
            raise SettingError(f"sampler is 'gibbs' or 'rj', not {self.sampler!r}")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows, whose weights have to be whole numbers; diagnostics hold every chain's score."""
        data = data.complete("the Indian buffet")
        pattern = repeated(data, "The Indian buffet")
        if not data.ones().any():
            return nothing_found("buffet", data, self.noise)

        def start(_: int, stream: np.random.Generator) -> Attempt:
            return self._run(data, pattern, stream)

        return fit_best_start("buffet", data, start, self.n_init, rng)

    def _run(self, data: PatternCounts, pattern: NDArray[np.int64], rng: np.random.Generator) -> Attempt:
        chain = BuffetChain(self, data.rows()[pattern].view(np.uint8), rng)
        best, costs = chain.state(), [chain.cost()]
        shared = np.zeros((data.n_sensors, data.n_sensors))
        numbers = []
        for sweep in range(self.n_sweeps):
            chain.sweep()
            costs.append(chain.cost())
            numbers.append(float(chain.n_sources))
            if costs[-1] <= min(costs):
                best = chain.state()
            if sweep >= self.n_sweeps // 2:
                shared += chain.links.astype(float) @ chain.links.T
        shared /= self.n_sweeps - self.n_sweeps // 2
        share = np.zeros((len(data.weights), best.links.shape[1]))
        np.add.at(share, pattern, best.activity)
        trace = {"objective": costs[1:], "n_sources": numbers, "shared_sources": shared.tolist()}
        noise = Noise(best.leak, 1 - best.reach) if self.noise == "estimate" else self.noise
        return Attempt(best.links > 0, share / data.weights[:, None], noise, min(costs), trace, True)


@dataclass(frozen=True, slots=True, eq=False)
class BuffetState:
    """A point that a chain visits."""

    links: Cells  # (n_sensors, n_sources)
    activity: Cells  # (n_rows, n_sources)
    leak: float
    reach: float


class BuffetChain:
    """One random walk through links, activities and rates."""

    def __init__(self, settings: IndianBuffet, cells: Cells, rng: np.random.Generator) -> None:
        n_rows, n_sensors = cells.shape
        room = 4 * n_sensors + 8  # sources; far more than are ever needed
        self.settings, self.cells, self.rng = settings, cells, rng
        self.links, self.activity = np.zeros((n_sensors, room), np.uint8), np.zeros((n_rows, room), np.uint8)
        self.cover = np.zeros((n_rows, n_sensors), np.int32)
        self.n_sources = 0
        self.alpha, self.probability = settings.alpha, settings.probability or FIRST_PROBABILITY
        self.leak, self.reach = FIRST_LEAK, FIRST_REACH
        if settings.noise != "estimate":
            false_alarm, miss = settings.noise.rates(1)
            self.leak = float(np.clip(false_alarm[0], LEAST, MOST))
            self.reach = float(np.clip(1 - miss[0], LEAST, MOST))
        self.log_shown = self._log_shown(self.leak, self.reach)

    def state(self) -> BuffetState:
        """A copy of where the walk is."""
        used = slice(self.n_sources)
        return BuffetState(self.links[:, used].copy(), self.activity[:, used].copy(), self.leak, self.reach)

    def sweep(self) -> None:
        """Draw links, new sources, activities and rates once."""
        by_jumps = self.settings.sampler == "rj"
        log_mean = float(np.log(self.alpha / len(self.links)))
        arrays = (self.links, self.activity, self.cover)
        for sensor in range(len(self.links)):
            shown = (sensor, self.cells, self.log_shown)
            draw_links_of(*shown, 1.0 if by_jumps else 0.0, self.n_sources, *arrays, self._stream())
            if not by_jumps:
                self.n_sources = draw_new_sources(
                    *shown, log_mean, self.probability, self.n_sources, *arrays, self._stream()
                )
        if by_jumps:
            self._jump()
        odds = float(np.log(self.probability / (1 - self.probability)))
        draw_activity(self.cells, self.log_shown, odds, self.n_sources, *arrays, self._stream())
        self._draw_rates()

    def _stream(self) -> np.uint64:
        return np.uint64(self.rng.integers(MOST_WORD))

    def _jump(self) -> None:
        """Propose an empty source more or one less; their number has a Poisson prior of mean ``alpha``."""
        used = self.links[:, : self.n_sources].any(axis=0)
        empty = np.flatnonzero(~used)
        # a source whose links have an unknown frequency is empty with probability 1 / (n_sensors + 1)
        if self.rng.random() < 0.5:
            accept = self.alpha / ((len(self.links) + 1) * (empty.size + 1))
            if self.n_sources < self.links.shape[1] and self.rng.random() < accept:
                self.activity[:, self.n_sources] = self.rng.random(len(self.activity)) < self.probability
                self.n_sources += 1
        elif empty.size and self.rng.random() < (len(self.links) + 1) * empty.size / self.alpha:
            gone, last = int(self.rng.choice(empty)), self.n_sources - 1
            for table in (self.links, self.activity):
                table[:, gone] = table[:, last]
                table[:, last] = 0
            self.n_sources = last

    def _draw_rates(self) -> None:
        """Draw the probability of sources, then leak and reach by a step in their log odds; all priors are flat."""
        if self.settings.probability is None:
            on = int(self.activity[:, : self.n_sources].sum())
            off = self.n_sources * len(self.activity) - on
            self.probability = float(np.clip(self.rng.beta(1 + on, 1 + off), LEAST, MOST))
        if self.settings.noise == "estimate":
            tally = self._tally()
            for name in ("leak", "reach"):
                self._step(name, tally)

    def _step(self, name: Literal["leak", "reach"], tally: Floats) -> None:
        rates = {"leak": self.leak, "reach": self.reach}
        before = rates[name]
        odds = np.log(before / (1 - before)) + STEP * self.rng.normal()
        after = float(np.clip(1 / (1 + np.exp(-odds)), LEAST, MOST))
        log_shown = self._log_shown(**(rates | {name: after}))
        gain = float((tally * (log_shown - self.log_shown)).sum())
        gain += float(np.log(after * (1 - after)) - np.log(before * (1 - before)))  # flat in the rate, not in its odds
        if self.rng.random() < np.exp(min(gain, 0.0)):
            setattr(self, name, after)
            self.log_shown = log_shown

    def _tally(self) -> Floats:
        """How many cells show 0 and 1, by how many sources cover them."""
        n_kinds = self.log_shown.shape[1]
        kind = self.cells * np.int64(n_kinds) + self.cover
        return np.bincount(kind.ravel(), minlength=2 * n_kinds).reshape(2, n_kinds).astype(float)

    def _log_shown(self, leak: float, reach: float) -> Floats:
        """The log of the probability that a cell shows 0 and 1 if so many sources cover it."""
        quiet = np.log1p(-leak) + np.arange(self.links.shape[1] + 2) * np.log1p(-reach)
        return np.array([quiet, np.log(-np.expm1(quiet))])

    def cost(self) -> float:
        """Minus the log of the joint probability of table, links and activities, given the rates."""
        on = float(self.activity[:, : self.n_sources].sum())
        value = on * np.log(self.probability)
        value += (self.n_sources * len(self.activity) - on) * np.log1p(-self.probability)
        value += float((self._tally() * self.log_shown).sum())
        prior = _flat_prior if self.settings.sampler == "rj" else log_buffet_prior
        return -float(value + prior(self.links[:, : self.n_sources], self.alpha))


def log_buffet_prior(links: Cells, alpha: float) -> float:
    """The log of the probability of links (n_sensors, n_sources) in no particular order of the sources.

    >>> round(log_buffet_prior(np.array([[1]], dtype=np.uint8), 2.0), 3)  # one guest takes a Poisson number of dishes
    -1.307
    """
    n_sensors, n_sources = links.shape
    reached = links.sum(axis=0, dtype=np.int64)
    value = n_sources * np.log(alpha) - alpha * (1 / np.arange(1, n_sensors + 1)).sum()
    value += (gammaln(reached) + gammaln(n_sensors - reached + 1) - gammaln(n_sensors + 1)).sum()
    equal = np.array(list(_multiplicities(links).values()), dtype=float)
    return float(value - gammaln(equal + 1).sum())


def _flat_prior(links: Cells, alpha: float) -> float:
    """The same for a Poisson number of sources whose links have a frequency of their own, uniform in [0, 1]."""
    n_sensors, n_sources = links.shape
    reached = links.sum(axis=0, dtype=np.int64)
    value = n_sources * np.log(alpha) - alpha - gammaln(n_sources + 1)
    return float(value + (gammaln(reached + 1) + gammaln(n_sensors - reached + 1) - gammaln(n_sensors + 2)).sum())


def _multiplicities(links: Cells) -> dict[bytes, int]:
    counted: dict[bytes, int] = {}
    for column in np.ascontiguousarray(links.T):
        counted[column.tobytes()] = counted.get(column.tobytes(), 0) + 1
    return counted
