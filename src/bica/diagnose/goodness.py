"""How well a model fits a table: patterns and pairs against what the model expects, and sources to doubt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from bica.data.pairs import PairCounts
from bica.data.patterns import PatternCounts
from bica.diagnose.table import LISTED, Watched
from bica.kernels.lattice.subsets import apply_channel, mix_source
from bica.model.noise import Noise, pattern_table
from bica.model.or_mixture import OrMixture
from bica.text import counted, folded

Vector = NDArray[np.float64]
Square = NDArray[np.float64]

N_DRAWS = 999  # so the least possible p-value is 1/1000; four tests together at the level of 0.005 need 1/800
ENOUGH = 20  # draws as far from the model as the data after which no more are needed
SEED = 0  # fixed: a diagnosis is the same for the same table
ODD = 0.05  # level at which a single pattern is odd, corrected for all patterns
HIGHEST_SOURCE_RATE = 700.0  # of a source that is always on: exp(-700) is as good as 0
TINY_COUNT = 1e-9  # in place of 0, where the beta function is not defined


@dataclass(frozen=True, slots=True)
class PatternTest:
    """G², the likelihood ratio against the observed frequencies of all patterns, and what a true model would have."""

    g2: float  # infinite if an observed pattern is impossible
    expected: float  # of a true model, on average, after its numbers were fitted
    p_value: float
    n_draws: int

    def misplaced(self, n_samples: float) -> float:
        """A bound on the share of the rows that would have to change: Pinsker's, from the excess of G²."""
        return min(1.0, float(np.sqrt(max(0.0, self.g2 - self.expected) / (4 * n_samples))))


def pattern_test(probability: Vector, histogram: Vector, n_fitted: int) -> PatternTest:
    """G² with its parametric bootstrap; ``n_fitted`` numbers of the model were fitted to this very table.

    The draws are not fitted again, which would cost hundreds of fits. A refit of a true model lowers its G² by
    ``n_fitted`` on average, so that much is subtracted from every draw. The draws keep their larger spread, and the
    search for the sources is not repeated at all, so the p-value errs on the large side. Only observed patterns count
    in G², so a lattice that is mostly empty does no harm. The draws stop early once the p-value is clearly large.
    """
    n_samples = int(np.rint(histogram.sum()))
    g2 = likelihood_ratio(probability, histogram)
    order = np.argsort(-probability, kind="stable")  # frequent patterns first: a draw then ends early
    falling, rng = probability[order] / probability.sum(), np.random.default_rng(SEED)
    cumulated = np.cumsum(falling)
    draws: list[float] = []
    n_beyond = 0
    while len(draws) < N_DRAWS and n_beyond < ENOUGH:
        draws.append(likelihood_ratio(falling, _draw(falling, cumulated, n_samples, rng)) - n_fitted)
        n_beyond += draws[-1] >= g2
    p_value = n_beyond / len(draws) if n_beyond >= ENOUGH else (n_beyond + 1) / (len(draws) + 1)
    return PatternTest(g2, float(np.mean(draws)), p_value, len(draws))


def likelihood_ratio(probability: Vector, histogram: Vector) -> float:
    """Twice the log-likelihood lost compared with the observed frequencies.

    >>> round(likelihood_ratio(np.array([0.5, 0.5]), np.array([60.0, 40.0])), 2)
    4.03
    """
    observed = histogram > 0
    with np.errstate(divide="ignore"):
        lost = np.log(histogram[observed] / histogram.sum()) - np.log(probability[observed])
    return 2.0 * float(histogram[observed] @ lost)


def _draw(probability: Vector, cumulated: Vector, n_samples: int, rng: np.random.Generator) -> Vector:
    """Pattern counts of a random table of ``n_samples`` rows, drawn one by one if they are fewer than the patterns."""
    if n_samples >= probability.size:
        return rng.multinomial(n_samples, probability).astype(float)
    place = np.searchsorted(cumulated, rng.random(n_samples), side="right")
    return np.bincount(np.minimum(place, probability.size - 1), minlength=probability.size).astype(float)


def signed_deviance(observed: Vector, expected: Vector) -> Vector:
    """How far counts are from what is expected, in standard deviations; it also holds for rare patterns.

    >>> signed_deviance(np.array([10.0, 100.0, 0.0]), np.array([10.0, 80.0, 8.0])).round(1)
    array([ 0. ,  2.2, -4. ])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(observed > 0, observed * np.log(observed / expected), 0.0)
    deviance: Vector = np.sign(observed - expected) * np.sqrt(np.maximum(0.0, 2 * (ratio - observed + expected)))
    return deviance


def binomial_tails(observed: Vector, total: Vector, probability: Vector) -> Vector:
    """The two-sided exact p-value of each count: twice the smaller tail.

    >>> binomial_tails(np.array([0.0, 5.0, 10.0]), np.array([10.0] * 3), np.array([0.5] * 3)).round(4)
    array([0.002, 1.   , 0.002])
    """
    probability = np.clip(probability, 0.0, 1.0)
    with np.errstate(invalid="ignore"):
        above = betainc(np.maximum(observed, TINY_COUNT), total - observed + 1, probability)
        below = betainc(np.maximum(total - observed, TINY_COUNT), observed + 1, 1.0 - probability)
    above = np.where(observed > 0, above, 1.0)
    below = np.where(observed < total, below, 1.0)
    tails: Vector = np.minimum(1.0, 2 * np.minimum(above, below))
    return tails


def pair_tails(probability: Square, pairs: PairCounts) -> Square:
    """Exact p-values of how often every sensor (diagonal) and every pair is on: (n_sensors, n_sensors).

    The model's numbers count as given. If they were fitted to these rows, the p-values err on the large side.
    """
    first, second = np.triu_indices(len(probability))
    tails = np.empty_like(probability)
    tails[first, second] = binomial_tails(
        np.rint(pairs.both[first, second]), np.rint(pairs.observed[first, second]), probability[first, second]
    )
    tails[second, first] = tails[first, second]
    return tails


def both_on(model: OrMixture) -> Square:
    """The probability that two sensors show 1 together, and on the diagonal each alone: (n_sensors, n_sensors).

    >>> both_on(OrMixture([[1, 1], [0, 1]], [0.2, 0.5])).round(3)
    array([[0.6, 0.5],
           [0.5, 0.5]])
    """
    if model.lossy_reach is None:
        reach = model.mixing.astype(float)
        with np.errstate(divide="ignore"):
            rate = np.minimum(-np.log1p(-model.probability), HIGHEST_SOURCE_RATE)
        shared: Square = (reach * rate) @ reach.T
        alone = np.diag(shared)
    else:
        shared, alone = _shared_silence(model.lossy_reach, model.probability)
    quiet = np.exp(-alone)
    both_quiet = np.exp(shared - alone[:, None] - alone)
    false_alarm, miss = model.noise.rates(len(model.sensors))
    signal = 1 - miss - false_alarm  # by how much likelier a sensor shows 1 when it is on
    shown = false_alarm + signal * (1 - quiet)
    together: Square = np.outer(shown, shown) + np.outer(signal, signal) * (both_quiet - np.outer(quiet, quiet))
    np.fill_diagonal(together, shown)
    return together


def _shared_silence(reach: Square, probability: Vector) -> tuple[Square, Vector]:
    """How much silence two sensors share, and how seldom each alone is quiet, as rates, where edges are lossy.

    With f = 1 - reach, sensors i and k are both quiet under a source with probability 1 - p + p f_i f_k.
    """
    shared, alone = np.zeros((len(reach), len(reach))), np.zeros(len(reach))
    for column, p in zip(reach.T, probability.tolist(), strict=True):
        sensors = np.flatnonzero(column)
        lost = 1.0 - column[sensors]
        single = _capped_rate(1 - p + p * lost)
        alone[sensors] += single
        shared[np.ix_(sensors, sensors)] += single[:, None] + single - _capped_rate(1 - p + p * np.outer(lost, lost))
    return shared, alone


def _capped_rate(quiet: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.minimum(-np.log(quiet), HIGHEST_SOURCE_RATE)


@dataclass(frozen=True, slots=True)
class OddPattern:
    """A pattern that was observed much more or much less often than the model expects."""

    sensors: tuple[str, ...]  # those that are on
    observed: float
    expected: float
    z: float | None  # the signed root of its share in G²; None if the pattern is impossible under the model

    def words(self) -> str:
        """The pattern and its counts."""
        on = f"{folded(self.sensors, LISTED)} alone" if self.sensors else "all quiet"
        return f"{on} ({counted(self.observed, 'row')}, {self.expected:.{2 if self.expected < 10 else 5}g} expected)"


@dataclass(frozen=True, slots=True)
class OddPair:
    """The two sensors (or one, twice) whose number of rows with both on is furthest from what the model expects."""

    sensors: tuple[str, str]
    observed: float
    expected: float
    p_value: float  # corrected for all sensors and pairs

    def words(self) -> str:
        """The pair and its counts."""
        who = self.sensors[0] if self.sensors[0] == self.sensors[1] else " and ".join(self.sensors)
        return f"{who}: on in {self.observed:.5g} rows, not in {self.expected:.5g} as the model expects"


def find_odd_pair(model: OrMixture, watched: Watched) -> OddPair | None:
    """The oddest of all pairs and single sensors; None if there are too many to check."""
    if watched.pairs is None:
        return None
    pairs, probability = watched.pairs.counted, both_on(model)
    p_values = np.triu(pair_tails(probability, watched.pairs.thinned)) + np.tri(len(probability), k=-1)
    i, k = np.unravel_index(int(p_values.argmin()), p_values.shape)
    n_tests = len(probability) * (len(probability) + 1) // 2
    return OddPair(
        (watched.counts.sensors[i], watched.counts.sensors[k]),
        float(pairs.both[i, k]),
        float(pairs.observed[i, k] * probability[i, k]),
        min(1.0, n_tests * float(p_values[i, k])),
    )


@dataclass(frozen=True, slots=True)
class QuietRows:
    """How many rows show no sensor on, and at least how many the model expects."""

    observed: float
    expected: float  # rows with no source on and no false alarm; sources that are all missed come on top
    p_value: float  # of so few rows; any number above is fine

    @classmethod
    def of(cls, model: OrMixture, watched: Watched) -> QuietRows:
        """Count them among the complete rows: cheap at any size, and what is lost first when only events are logged.

        >>> data = PatternCounts.of([[1, 0], [0, 1]] * 10)
        >>> watched = Watched.of(data, np.arange(2), np.ones(2))
        >>> quiet = QuietRows.of(OrMixture(np.eye(2), [0.5, 0.5]), watched)
        >>> quiet.observed, quiet.expected, round(quiet.p_value, 4)
        (0.0, 5.0, 0.0032)
        """
        rows, stretch = watched.quiet, float(watched.stretch.max(initial=1.0))
        false_alarm, _ = model.noise.rates(len(model.sensors))
        silence = 1 - model.probability
        if model.lossy_reach is not None:  # a source may be on and reach nothing
            silence = silence + model.probability * np.prod(1 - model.lossy_reach, axis=0)
        probability = float(np.prod(silence) * np.prod(1 - false_alarm))
        observed, total = rows.quiet_and_complete, rows.complete
        few, many = np.rint(observed / stretch), np.rint(total / stretch)
        p_value = float(betainc(many - few, few + 1, 1 - probability)) if few < many else 1.0
        return cls(observed, total * probability, p_value)

    def words(self) -> str:
        """The counts, and what they suggest."""
        rows = counted(self.observed, "row")
        return f"{rows} all quiet, not {self.expected:.5g} as the model expects, as if quiet rows had been left out"


def find_odd_patterns(
    probability: Vector, histogram: Vector, sensors: tuple[str, ...], stretch: float
) -> list[OddPattern]:
    """Patterns whose own counts are significant, corrected for all patterns, the clearest first."""
    n_samples = histogram.sum()
    expected = n_samples * probability
    total = np.full(probability.size, np.rint(n_samples / stretch))
    tails = binomial_tails(np.rint(histogram / stretch), total, probability)
    z = signed_deviance(histogram / stretch, expected / stretch)
    odd = np.flatnonzero(tails <= ODD / probability.size)
    return [
        OddPattern(
            tuple(sensor for i, sensor in enumerate(sensors) if pattern >> i & 1),
            float(histogram[pattern]),
            float(expected[pattern]),
            float(z[pattern]) if np.isfinite(z[pattern]) else None,
        )
        for pattern in odd[np.argsort(-np.abs(z[odd]), kind="stable")]
    ]


CONFUSED = -0.9  # correlation of two estimates, at or below which one can stand for the other
NOISE_STEP = 1e-6  # of a flip rate, for a numerical derivative
TINY, RIDGE = 1e-300, 1e-9  # least information, and an addition to a correlation matrix: both keep it invertible


@dataclass(frozen=True, slots=True)
class Confusion:
    """Two sources, or a source and the noise, whose estimates can hardly be separated."""

    names: tuple[str, str]
    correlation: float  # of the two estimates, close to -1


def confusions(
    model: OrMixture, data: PatternCounts, sources: NDArray[np.int64], shown: Vector, *, noise: bool
) -> list[Confusion]:
    """Pairs among these ``sources``, and one shared flip rate if ``noise``, whose estimates are correlated below -0.9.

    The correlation is that of the empirical information; time n_sensors 2^n_sensors for each source. ``data`` has no
    missing cells; ``shown`` is the probability of every pattern of the model.
    """
    if sources.size + noise < 2:
        return []
    correlation = _correlation(_slopes(model, data, sources, shown, noise=noise), data.weights)
    found = np.argwhere(np.triu(correlation <= CONFUSED, 1))
    if not found.size:
        return []
    names = [*(model.source_names()[j] for j in sources), *(["the noise"] if noise else [])]
    order = np.argsort(correlation[*found.T], kind="stable")
    return [Confusion((names[i], names[k]), float(correlation[i, k])) for i, k in found[order]]


def _slopes(
    model: OrMixture, data: PatternCounts, sources: NDArray[np.int64], shown: Vector, *, noise: bool
) -> NDArray[np.float64]:
    """Derivatives of the log probability of every distinct row by the source rates, then by the flip rate."""
    places, silent = data.patterns[:, 0].astype(np.int64), np.zeros(len(model.sensors))
    given = model.mixing, model.probability, silent, silent
    hidden = pattern_table(*given) if model.lossy_reach is None else None
    tables = [_grown(hidden, model, int(j)) - shown for j in sources]
    if noise:  # a slightly higher flip rate is the same as flipping once more at a small rate
        blurred = shown.copy()
        apply_channel(blurred, *Noise.flips(NOISE_STEP).rates(len(model.sensors)))
        tables.append((blurred - shown) / NOISE_STEP)
    probability = shown[places]
    possible = np.where(probability > 0, probability, np.inf)
    return np.array([table[places] / possible for table in tables]).reshape(len(tables), places.size)


def _grown(hidden: NDArray[np.float64] | None, model: OrMixture, source: int) -> NDArray[np.float64]:
    """The pattern probabilities if the source is surely on; they move towards these as its rate grows.

    They follow from the ``hidden`` ones where edges are sure: then a source that is on twice changes nothing.
    """
    if hidden is None:
        return model.with_probability(
            np.where(np.arange(model.n_sources) == source, 1.0, model.probability)
        ).pattern_probability()
    table = hidden.copy()
    mix_source(table, int((1 << np.arange(len(model.sensors))) @ model.mixing[:, source]), 1.0)
    apply_channel(table, *model.noise.rates(len(model.sensors)))
    return table


def _correlation(slopes: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    information = (slopes * weights) @ slopes.T
    scale = np.sqrt(np.maximum(np.diag(information), TINY))
    spread = np.linalg.inv(information / np.outer(scale, scale) + RIDGE * np.eye(len(scale)))
    error = np.sqrt(np.diag(spread))
    correlation: NDArray[np.float64] = spread / np.outer(error, error)
    return correlation


# Pairs of siblings per source: 0.5 to 1.3 in what lossy edges leave behind, at most 0.13 in 164 backbone networks and
# 0.17 in random ones.
SIBLINGS_PER_SOURCE, FEWEST_SIBLINGS = 0.3, 4


@dataclass(frozen=True, slots=True)
class Splinters:
    """Many sources that are another source less one of its sensors, as edges that fail at times leave them behind.

    To first order in its probability, a source that fails to reach each of its sensors now and then has the rows of
    independent sources for all smaller sets, so that no test on rows can tell the two apart. But in networks of sure
    edges it is rare that a source is there several times, less a different sensor each time.
    """

    n_sources: int
    n_parts: int  # sources that drive only some of the sensors of another
    n_siblings: int  # pairs of sources that are the same wider source less one sensor each

    @classmethod
    def of(cls, model: OrMixture) -> Splinters | None:
        """How many sources are such parts; None unless they are many, or if the model says how often edges fail.

        Time grows with the pairs of sources.

        >>> subsets = np.array([[s >> i & 1 for s in range(1, 16)] for i in range(4)])
        >>> Splinters.of(OrMixture(subsets, np.full(15, 0.1)))
        Splinters(n_sources=15, n_parts=14, n_siblings=24)
        """
        if model.lossy_reach is not None:
            return None
        reach = model.mixing.astype(np.float32)  # counts up to 2^24 stay exact
        size = reach.sum(axis=0)
        inside = (reach.T @ reach == size[:, None]) & (size > size[:, None])
        of_parent = (inside & (size == size[:, None] + 1)).sum(axis=0)
        n_siblings = int((of_parent * (of_parent - 1) // 2).sum())
        if n_siblings < max(FEWEST_SIBLINGS, SIBLINGS_PER_SOURCE * size.size):
            return None
        return cls(size.size, int(inside.any(axis=1).sum()), n_siblings)

    def words(self) -> str:
        """What this suggests, and what helps."""
        return (
            f"{self.n_parts} of {self.n_sources} sources are parts of others, as if a few sources reached their "
            "sensors only at times; give the sensors' miss rates if they are known"
        )
