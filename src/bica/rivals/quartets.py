"""Noisy-OR sources from quartets of sensors, by moments (Halpern and Sontag 2013; Jernite, Halpern and Sontag 2013)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, SettingError
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.progress import report
from bica.rivals.counted import MOST_FLIPS, NoiseSetting, check_noise, finished_fit

# The moments are those of silence. For a set S of sensors, with sources k of probability p_k that leave sensor i quiet
# with probability q_ik when they are on, and leaks that leave it quiet with probability l_i,
#
#     N_S = P(all of S quiet) = prod_{i in S} l_i * prod_k (1 - p_k + p_k prod_{i in S} q_ik).
#
# Sources are factors of N_S, so that a source, once it is learned, is divided out of all moments. If a, b, c share one
# source only, their quiet indicators z depend on each other through its state alone, and E[z_i | off] - E[z_i | on] =:
# d_i gives cov(z_a, z_b) = p (1 - p) d_a d_b and the third central moment p (1 - p) (2p - 1) d_a d_b d_c with the sign
# of "on lowers z". Both together determine p, then d, then q. Four sensors that share one source only have joint tables
# of rank 2, whichever two are taken as rows.

Floats = NDArray[np.float64]
Quartet = tuple[int, int, int, int]
SPLITS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))  # two sensors as rows of the table, two as columns
TO_MOMENTS = np.array([[1.0, 1.0], [1.0, 0.0]])  # from (quiet, on) to (either, quiet)
TO_TABLE = np.array([[0.0, 1.0], [1.0, -1.0]])  # and back
ROUNDING = 1e-12  # singular values and covariances below are 0
NEIGHBOURS = 10  # of a sensor that are tried together, the most dependent ones


@dataclass(frozen=True, kw_only=True)
class Quartets:
    """Find four sensors that share exactly one source, learn it in closed form, divide it out, and go on.

    Each source reaches each of its sensors with a probability of its own (``diagnostics["reach"]``, n_sensors by
    n_sources), and every sensor has a leak, which becomes its false-alarm rate; its miss rate is the mean over its
    links. The number of sources is found. A source needs four sensors no two of which share a second source that is
    not yet known; ``diagnostics["not_learnable"]`` lists groups of sensors that remain dependent on each other. Use it
    on long tables (tens of thousands of rows) with strong, lossy links: it has no local optima, but its moments need
    many rows. Time: sensors squared times rows, then about a millisecond for each quartet tried.

    Y. Halpern, D. Sontag: Unsupervised learning of noisy-or Bayesian networks, UAI 2013. Y. Jernite, Y. Halpern, D.
    Sontag: Discovering hidden variables in noisy-or networks using quartet tests, NIPS 2013.

    >>> rng = np.random.default_rng(0)
    >>> rows = (rng.random((20_000, 1)) < 0.3) & (rng.random((20_000, 5)) < 0.8)  # one source reaches each with 0.8
    >>> found = Quartets().fit(PatternCounts.of(rows), rng)
    >>> found.model.mixing.T.astype(int), found.model.probability.round(1)
    (array([[1, 1, 1, 1, 1]]), array([0.3]))
    >>> np.round(found.diagnostics["reach"], 1).T
    array([[0.8, 0.8, 0.8, 0.8, 0.8]])
    """

    standard_errors: float = 4.0  # by which two sensors must depend on each other
    n_resamples: int = 200  # of a quartet's table, for the test of its rank
    level: float = 0.99  # share of the resamples of a true quartet that pass the test
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "quartets")
        if self.standard_errors <= 0 or self.n_resamples < 1 or not 0 < self.level < 1:
            raise SettingError("standard_errors must be above 0, n_resamples from 1 up and level in (0, 1)")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold the quartet of every source in the order of their discovery."""
        moments = Moments(data.complete("quartets"))
        found: list[list[str]] = []
        interrupted = False
        report("sources from quartets", 0, None)
        try:
            for quartet, source in self._sources(moments, rng):
                moments.divide_by(source)
                found.append([data.sensors[i] for i in quartet])
                report("sources from quartets", len(found), None)
        except KeyboardInterrupt:
            warnings.warn("interrupted: these are the sources so far", BicaWarning, stacklevel=2)
            interrupted = True
        told = {"quartets": found, "not_learnable": self._dependent_groups(moments)}
        return _fit_of(moments, self.noise, told | ({"interrupted": True} if interrupted else {}), not interrupted)

    def _sources(self, moments: Moments, rng: np.random.Generator) -> Iterator[tuple[Quartet, Source]]:
        """Source after source; the moments are expected to be divided by each before the next is asked for."""
        tried: set[Quartet] = set()
        while True:
            dependent = moments.dependence() > self.standard_errors
            for quartet in candidates(moments.dependence(), dependent):
                if quartet in tried:
                    continue
                tried.add(quartet)
                source = self._learned(moments, quartet, dependent, rng)
                if source is not None:
                    yield quartet, source
                    tried.clear()
                    break
            else:
                return

    def _learned(
        self, moments: Moments, quartet: Quartet, dependent: NDArray[np.bool_], rng: np.random.Generator
    ) -> Source | None:
        """The source of a quartet with all its sensors; None if the four share more than one source."""
        if self._misfit(moments, quartet, rng) > 1:
            return None
        core = core_of(moments.of_quartet(quartet))
        if core is None:
            return None
        probability, drop = core
        reached = np.zeros(moments.n_sensors)
        reached[list(quartet)] = drop
        for sensor in np.flatnonzero(dependent[list(quartet)].all(axis=0)):
            if sensor not in quartet:
                reached[sensor] = self._drop_of(moments, int(sensor), quartet, core, rng)
        silence = moments.single()
        quiet = (silence - (1 - probability) * reached) / (silence + probability * reached)
        return Source(probability, np.clip(quiet, 0.0, 1.0))

    def _drop_of(
        self,
        moments: Moments,
        sensor: int,
        quartet: Quartet,
        core: tuple[float, Floats],
        rng: np.random.Generator,
    ) -> float:
        """By how much the source lowers the silence of one more sensor.

        Each member of the quartet says so by its covariance with the sensor, unless the two share another source, which
        only adds to the covariance. So the three members that make a quartet with the sensor are asked, or else the one
        that says least.
        """
        probability, drop = core
        together = moments.covariance()[sensor, list(quartet)]
        says = together / (probability * (1 - probability) * drop)
        trios = list(combinations(range(4), 3))
        misfits = [self._misfit(moments, (*(quartet[i] for i in trio), sensor), rng) for trio in trios]
        best = int(np.argmin(misfits))
        return float(says[list(trios[best])].mean() if misfits[best] <= 1 else says.min())

    def _misfit(self, moments: Moments, quartet: tuple[int, ...], rng: np.random.Generator) -> float:
        """By how much the tables of four sensors exceed rank 2, in units of what chance makes of rank 2."""
        table = moments.tables(moments.counts(quartet), quartet)
        drawn = rng.multinomial(round(moments.n_samples), moments.counts(quartet).ravel(), self.n_resamples)
        resampled = moments.tables(drawn.reshape(-1, 2, 2, 2, 2) / moments.n_samples, quartet)
        worst = 0.0
        for split in SPLITS:
            square = table.transpose(split).reshape(4, 4)
            left, values, right = np.linalg.svd(square)
            noise = resampled.transpose(0, *(1 + place for place in split)).reshape(-1, 4, 4) - square
            rest = np.linalg.norm(left[:, 2:].T @ noise @ right[2:].T, ord=2, axis=(1, 2))
            worst = max(worst, values[2] / max(float(np.quantile(rest, self.level)), ROUNDING))
        return worst

    def _dependent_groups(self, moments: Moments) -> list[list[str]]:
        """Sensors that still depend on each other, directly or through others."""
        linked = moments.dependence() > self.standard_errors
        np.fill_diagonal(linked, True)
        for _ in range(moments.n_sensors.bit_length()):
            linked = linked @ linked  # whoever is connected by twice as many steps
        groups = {tuple(np.flatnonzero(row).tolist()) for row in linked}
        return [[moments.data.sensors[i] for i in group] for group in sorted(groups) if len(group) > 1]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A learned source."""

    probability: float
    quiet: Floats  # (n_sensors,), the probability that it leaves each sensor quiet when it is on


class Moments:
    """Probabilities of silence, divided by the sources that are known."""

    def __init__(self, data: PatternCounts) -> None:
        self.data, self.n_sensors, self.n_samples = data, data.n_sensors, data.n_samples
        self.rows = data.rows()
        quiet = (~self.rows).astype(float)
        self.raw_pair = (quiet * data.weights[:, None]).T @ quiet / self.n_samples
        self.pair = self.raw_pair.copy()
        self.sources: list[Source] = []

    def divide_by(self, source: Source) -> None:
        """Take one more source as known."""
        self.sources.append(source)
        p, quiet = source.probability, source.quiet
        both = np.outer(quiet, quiet)
        np.fill_diagonal(both, quiet)
        self.pair /= 1 - p + p * both

    def single(self) -> Floats:
        """The probability that each sensor is quiet but for known sources."""
        silence: Floats = self.pair.diagonal().copy()
        return silence

    def covariance(self) -> Floats:
        """Of the silence of every two sensors."""
        covariance: Floats = self.pair - np.outer(self.single(), self.single())
        return covariance

    def dependence(self) -> Floats:
        """The log of P(both quiet) over its value for independent sensors, in standard errors; 0 on the diagonal.

        The error is that of the counts; each known source behind both sensors adds about as much again.
        """
        one = self.raw_pair.diagonal()
        product = np.outer(one, one)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(self.pair / np.outer(self.single(), self.single()))
            spread = 1 / self.raw_pair - 1 / one[:, None] - 1 / one + 2 * self.raw_pair / product - 1
            shared = sum((np.outer(source.quiet < 1, source.quiet < 1) for source in self.sources), np.zeros((1, 1)))
            value = ratio / np.sqrt(np.maximum(spread, ROUNDING) * (1 + shared) / self.n_samples)
        np.fill_diagonal(value, 0.0)
        known: Floats = np.nan_to_num(value, nan=0.0)
        return known

    def counts(self, quartet: tuple[int, ...]) -> Floats:
        """The shares of the rows by the states of four sensors: (2, 2, 2, 2)."""
        code = self.rows[:, list(quartet)] @ np.array([8, 4, 2, 1])
        counted: Floats = np.bincount(code, self.data.weights, 16).reshape(2, 2, 2, 2) / self.n_samples
        return counted

    def of_quartet(self, quartet: tuple[int, ...]) -> Floats:
        """The probability that all sensors of a part of the quartet are quiet; index 1 says that a sensor is in it."""
        return _along_axes(TO_MOMENTS, self.counts(quartet)) / self._known(quartet)

    def tables(self, counts: Floats, quartet: tuple[int, ...]) -> Floats:
        """Shares of states (..., 2, 2, 2, 2) as they would be without the known sources."""
        return _along_axes(TO_TABLE, _along_axes(TO_MOMENTS, counts) / self._known(quartet))

    def _known(self, quartet: tuple[int, ...]) -> Floats:
        known = np.ones((2, 2, 2, 2))
        for source in self.sources:
            pairs = np.stack([np.ones(4), source.quiet[list(quartet)]], axis=1)
            known *= 1 - source.probability + source.probability * np.einsum("i,j,k,l->ijkl", *pairs)
        return known


def _along_axes(matrix: Floats, table: Floats) -> Floats:
    """Apply a 2 x 2 matrix to each of the last four axes."""
    changed: Floats = np.einsum("ai,bj,ck,dl,...ijkl->...abcd", *(matrix,) * 4, table, optimize=True)
    return changed


def candidates(dependence: Floats, dependent: NDArray[np.bool_]) -> list[Quartet]:
    """Sets of four sensors that all depend on each other, those with the strongest weakest pair first."""
    found: dict[Quartet, float] = {}
    for sensor in range(len(dependence)):
        near = [i for i in np.argsort(-dependence[sensor], kind="stable")[:NEIGHBOURS] if dependent[sensor, i]]
        for trio in combinations(near, 3):
            a, b, c, d = sorted((sensor, *map(int, trio)))
            pairs = list(combinations((a, b, c, d), 2))
            if all(dependent[i, j] for i, j in pairs):
                found[a, b, c, d] = min(float(dependence[i, j]) for i, j in pairs)
    return sorted(found, key=lambda quartet: (-found[quartet], quartet))


def core_of(moments: Floats) -> tuple[float, Floats] | None:
    """The probability of the one source behind four sensors, and by how much it lowers the silence of each.

    ``moments`` are those of ``Moments.of_quartet``. Every three of the four give an estimate; their mean is taken. None
    where the moments contradict a single source.
    """
    single = np.array([moments[tuple(int(i == j) for j in range(4))] for i in range(4)])
    together = np.array([[moments[tuple(int(k in (i, j)) for k in range(4))] for j in range(4)] for i in range(4)])
    covariance = together - np.outer(single, single)
    if (covariance[~np.eye(4, dtype=bool)] <= ROUNDING).any():
        return None
    skews, drops = [], np.zeros((4, 4))
    for trio in combinations(range(4), 3):
        a, b, c = trio
        all_three = moments[tuple(int(k in trio) for k in range(4))]
        third = all_three - (together[a, b] * single[c] + together[a, c] * single[b] + together[b, c] * single[a])
        third += 2 * single[a] * single[b] * single[c]
        scale = np.sqrt(covariance[a, b] * covariance[a, c] * covariance[b, c])
        skews.append(third / scale)
        for i, j, k in ((a, b, c), (b, a, c), (c, a, b)):
            drops[i, 6 - i - j - k] = np.sqrt(covariance[i, j] * covariance[i, k] / covariance[j, k])
    skew = float(np.mean(skews))
    probability = 0.5 * (1 + skew / np.sqrt(4 + skew * skew))
    return probability, drops.sum(axis=1) / 3 / np.sqrt(probability * (1 - probability))


def _fit_of(moments: Moments, noise: NoiseSetting, told: dict[str, object], converged: bool) -> Fit:
    """The model of the learned sources; what is left of the silence of each sensor is its leak."""
    quiet = np.array([source.quiet for source in moments.sources]).reshape(-1, moments.n_sensors).T
    probability = np.array([source.probability for source in moments.sources])
    mixing = quiet < 1
    if noise == "estimate":
        leak = np.clip(1 - moments.single(), 0.0, MOST_FLIPS)
        n_links = mixing.sum(axis=1)
        miss = np.where(n_links > 0, np.where(mixing, quiet, 0.0).sum(axis=1) / np.maximum(n_links, 1), 0.0)
        least = 0.5 / moments.n_samples
        noise = Noise(np.maximum(leak, least), np.clip(miss, least, MOST_FLIPS))
    return finished_fit(
        "quartets",
        moments.data,
        mixing,
        probability,
        noise,
        reach=1 - quiet,
        diagnostics=told,
        n_iter=len(probability),
        converged=converged,
    )
