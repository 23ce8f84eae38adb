"""Factors as attractors of a Hopfield-like network (Frolov, Húsek, Muraviev, Polyakov 2007), and EMBFA (2016)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, SettingError
from bica.kernels.bits import Cells
from bica.kernels.rivals.noisy_or import expected_reach, flip_to_best
from bica.metrics import information_gain
from bica.model.fit import Fit
from bica.progress import report
from bica.rivals.counted import NoiseSetting, check_noise, counted_fit, nothing_found, repeated

Bits = NDArray[np.bool_]
Floats = NDArray[np.float64]
FIRST_UNITS = 2  # that are on when a recall begins
MOST_STEPS = 50  # of the network at one number of active units
N_SHUFFLES = 20  # of the table, which show how strong attractors are by chance
SHUFFLED_LEVEL = 0.95  # share of the shuffles that a factor must exceed
N_STARTS = 10  # of a recall, of which the strongest counts
REST = 1e-4  # relative change of the likelihood that ends the refinement
FIRST_LINK, FIRST_LEAK = 0.9, 0.01  # where the refinement begins; other links are as weak as leaks
LEAST_LINK, MOST_LINK, MOST_LEAK = 1e-6, 1 - 1e-6, 0.5  # bounds of their probabilities


@dataclass(frozen=True, kw_only=True)
class Attractor:
    """Recall factors one after another from a network that has learned the covariances of the sensors.

    The network starts from two random sensors and settles; then one more sensor becomes active, and so on. The factor
    is where the next sensor would receive much less than the last one. It is then unlearned. Recalls end when they are
    no stronger than in shuffled tables, so the number of sources is found. With ``refine``, noisy-OR links, leaks and
    activities are fitted to the factors, and factors that lower the information gain are dropped (EMBFA). Use it on
    wide, sparse tables (rows less than half on) with many factors of similar size: it needs no start near the truth,
    and one pass over the rows. Time: rows times sensors squared, then sensors squared for each step of a recall.

    A. A. Frolov, D. Húsek, I. P. Muraviev, P. Y. Polyakov: Boolean factor analysis by attractor neural network, IEEE
    TNN 18, 2007. A. A. Frolov, D. Húsek, P. Y. Polyakov: Comparison of seven methods for Boolean factor analysis and
    their evaluation by information gain, IEEE TNNLS 27, 2016.

    >>> from bica.model.or_mixture import OrMixture
    >>> truth = OrMixture(np.kron(np.eye(3), np.ones((5, 1))), [0.2, 0.15, 0.1])
    >>> found = Attractor().fit(PatternCounts.of(truth.sample(400, np.random.default_rng(0))), np.random.default_rng(0))
    >>> bool((found.model.mixing == truth.mixing).all())
    True
    """

    max_size: int | None = None  # of a factor, in sensors; None: half of all sensors
    max_recalls: int | None = None  # None: twice the number of sensors
    miss: float = 0.0  # share of a factor's sensors that may be off in a row that has it, before refinement
    refine: bool = True
    max_iter: int = 50  # of the refinement
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "the attractor network")
        if not 0 <= self.miss < 1:
            raise SettingError(f"miss must lie in [0, 1), but {self.miss:g} was given")
        if self.max_iter < 1 or any(limit is not None and limit < 1 for limit in (self.max_size, self.max_recalls)):
            raise SettingError("max_size, max_recalls and max_iter count from 1 up")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows, whose weights have to be whole numbers; diagnostics hold the strength of recalls."""
        data = data.complete("the attractor network")
        rows = data.rows()[repeated(data, "The attractor network")]
        if not data.varying().size:
            return nothing_found("attractor", data, self.noise)
        factors, strengths, interrupted = self._factors(data, rows, rng)
        activity = contained(data.rows(), factors, self.miss)
        reach, trace = factors.astype(float), [0.0]
        if self.refine and len(factors):
            refinement = Refinement(data, factors, activity)
            refinement.settle(self.max_iter)
            refinement.drop_ghosts()
            activity, reach, trace = refinement.activity.view(np.bool_), refinement.link, refinement.costs[1:]
        told = {"objective": trace, "strengths": strengths}
        return counted_fit(
            "attractor",
            data,
            np.ascontiguousarray(reach.T > 0.5),
            activity,
            self.noise,
            reach=np.ascontiguousarray(reach.T),
            diagnostics=told | ({"interrupted": True} if interrupted else {}),
            n_iter=len(trace),
            converged=not interrupted,
        )

    def _factors(self, data: PatternCounts, rows: Bits, rng: np.random.Generator) -> tuple[Bits, list[float], bool]:
        """The distinct factors (n_factors, n_sensors), the strength of every recall, and whether Ctrl-C ended them."""
        network = UnitNetwork(covariances(rows))
        most = self.max_recalls or 2 * data.n_sensors
        size = min(self.max_size or data.n_sensors // 2, data.n_sensors - 1)
        found: dict[bytes, Bits] = {}
        strengths: list[float] = []
        try:
            level = _level_by_chance(rows, size, rng)
            while len(strengths) < most:
                factor, strength = network.recall(size, rng)
                strengths.append(strength)
                if strength <= level:
                    break
                found.setdefault(factor.tobytes(), factor)
                network.unlearn(factor)
                report("recalls of the attractor network", len(strengths), None)
        except KeyboardInterrupt:
            warnings.warn("interrupted: these are the factors recalled so far", BicaWarning, stacklevel=3)
            return _stacked(found, data.n_sensors), strengths, True
        return _stacked(found, data.n_sensors), strengths, False


class UnitNetwork:
    """Units that excite each other as much as their sensors covary."""

    def __init__(self, weights: Floats) -> None:
        self.weights = weights  # (n_sensors, n_sensors), 0 on the diagonal

    def recall(self, max_size: int, rng: np.random.Generator) -> tuple[Bits, float]:
        """The strongest factor that random starts lead to, and its strength: the mean excitation of its units."""
        return max((self._recalled(max_size, rng) for _ in range(N_STARTS)), key=lambda found: found[1])

    def _recalled(self, max_size: int, rng: np.random.Generator) -> tuple[Bits, float]:
        n_sensors = len(self.weights)
        active = np.zeros(n_sensors, dtype=bool)
        active[rng.choice(n_sensors, min(FIRST_UNITS, n_sensors), replace=False)] = True
        best, best_gap, best_strength = active, -np.inf, 0.0
        for size in range(min(FIRST_UNITS, n_sensors), max(max_size, FIRST_UNITS) + 1):
            active = self._settled(active, size)
            received = self.weights @ active
            falling = -np.sort(-received)
            gap = falling[size - 1] - falling[size] if size < n_sensors else 0.0
            if gap > best_gap:
                best, best_gap, best_strength = active, gap, float(received[active].sum() / size)
        return best, best_strength

    def _settled(self, active: Bits, size: int) -> Bits:
        """Let the ``size`` units that receive most be active, until that changes no more or goes back and forth."""
        before = active
        for _ in range(MOST_STEPS):
            winners = np.argsort(-(self.weights @ active), kind="stable")[:size]
            new = np.zeros_like(active)
            new[winners] = True
            if (new == active).all() or (new == before).all():
                return new
            before, active = active, new
        return active

    def unlearn(self, factor: Bits) -> None:
        """Take out what this factor has put into the weights, so that it is not found again."""
        size = int(factor.sum())
        share = size / factor.size
        inside = self.weights[np.ix_(factor, factor)].sum() / max(size * (size - 1), 1)
        if share < 1:
            deviation = (factor - share) / (1 - share)
            self.weights = self.weights - inside * np.outer(deviation, deviation)
            np.fill_diagonal(self.weights, 0.0)


def covariances(rows: Bits) -> Floats:
    """The weights of the network: each row less its own mean, then covariances times rows; 0 on the diagonal.

    The mean over rows is what an inhibitory unit takes away, which else pulls everything on or off at once.
    """
    deviation = rows - rows.mean(axis=1, keepdims=True)
    total = deviation.sum(axis=0)
    weights: Floats = deviation.T @ deviation - np.outer(total, total) / len(rows)
    np.fill_diagonal(weights, 0.0)
    return weights


def _level_by_chance(rows: Bits, max_size: int, rng: np.random.Generator) -> float:
    """The strength that recalls seldom exceed if every sensor is on as often as in the table, but on its own."""
    strengths = [
        UnitNetwork(covariances(rng.permuted(rows, axis=0))).recall(max_size, rng)[1] for _ in range(N_SHUFFLES)
    ]
    return float(np.quantile(strengths, SHUFFLED_LEVEL))


def contained(rows: Bits, factors: Bits, miss: float) -> Bits:
    """Which factors a row contains, but for a share ``miss`` of their sensors: (n_rows, n_factors)."""
    shared = rows.astype(float) @ factors.T.astype(float)
    inside: Bits = shared >= (1 - miss) * factors.sum(axis=1) - 1e-9
    return inside


class Refinement:
    """Noisy-OR links and leaks by expectation and maximisation, each row with its best activity (EMBFA)."""

    def __init__(self, data: PatternCounts, factors: Bits, activity: Bits) -> None:
        self.data, self.cells = data, data.rows().view(np.uint8)
        self.activity: Cells = activity.astype(np.uint8)  # (n_patterns, n_factors)
        self.link = np.where(factors, FIRST_LINK, FIRST_LEAK)  # (n_factors, n_sensors)
        self.leak = np.full(data.n_sensors, FIRST_LEAK)
        self.costs = [np.inf]  # minus the log-likelihood of the cells, step by step

    def settle(self, max_iter: int) -> None:
        """Improve activities and links in turn until neither changes."""
        for _ in range(max_iter):
            n_flips = self._flip(np.ones(len(self.link), dtype=bool))
            self.costs.append(self._improve_links())
            if n_flips == 0 and abs(self.costs[-1] - self.costs[-2]) <= REST * abs(self.costs[-1]):
                return

    def drop_ghosts(self) -> None:
        """Leave out factors without which the information gain is higher, the rarest first."""
        for factor in np.argsort(self.data.weights @ self.activity, kind="stable"):
            kept = np.arange(len(self.link)) != factor
            before, gain = self.activity.copy(), self._gain()
            self.activity[:, factor] = 0
            self._flip(kept)
            if self._gain() < gain:
                self.activity = before

    def _flip(self, allowed: Bits) -> int:
        """Give every row its best activity; factors that are not allowed, or on in less than one row, stay off."""
        share = self.data.weights @ self.activity / self.data.n_samples
        allowed = allowed & (share * self.data.n_samples >= 1)
        self.activity[:, ~allowed] = 0
        share = np.clip(share, LEAST_LINK, MOST_LINK)
        odds = np.where(allowed, np.log(share / (1 - share)), -np.inf)
        return flip_to_best(self.cells, -np.log1p(-self.link), -np.log1p(-self.leak), odds, self.activity)

    def _improve_links(self) -> float:
        by_source, by_leak = np.empty(self.link.shape), np.empty(self.leak.shape)
        rates = -np.log1p(-self.link), -np.log1p(-self.leak)
        value = expected_reach(self.cells, self.data.weights, *rates, self.activity, by_source, by_leak)
        times = (self.data.weights @ self.activity)[:, None]
        link = np.where(times > 0, by_source / np.maximum(times, 1), self.link)
        self.link = np.clip(link, LEAST_LINK, MOST_LINK)
        self.leak = np.clip(by_leak / self.data.n_samples, LEAST_LINK, MOST_LEAK)
        return -value

    def _gain(self) -> float:
        on = self.activity.view(np.bool_)
        return information_gain(self.data.rows(), self.link.T > 0.5, on, sample_weight=self.data.weights)


def _stacked(found: dict[bytes, Bits], n_sensors: int) -> Bits:
    return np.array(list(found.values()), dtype=bool).reshape(-1, n_sensors)
