"""How well a model fits a table: patterns and pairs against what the model expects, and sources to doubt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from bica.data.pairs import PairCounts
from bica.data.patterns import PatternCounts
from bica.diagnose.table import LISTED, PAIR_LIMIT
from bica.kernels.bits import all_observed
from bica.kernels.lattice.channel import apply_channel, mix_source
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.text import counted, folded

Vector = NDArray[np.float64]
Square = NDArray[np.float64]

N_DRAWS = 299  # so the least possible p-value is 1/300
ENOUGH = 20  # draws as far from the model as the data after which no more are needed
SEED = 0  # fixed: a diagnosis is the same for the same table
ODD = 0.05  # level at which a single pattern is odd, corrected for all patterns
TINY_COUNT = 1e-9  # in place of 0, where the beta function is not defined
HIGHEST_SOURCE_RATE = 700.0  # of a source that is always on: exp(-700) is as good as 0


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
    draws: list[float] = []
    n_beyond = 0
    while len(draws) < N_DRAWS and n_beyond < ENOUGH:
        draws.append(likelihood_ratio(falling, _draw(falling, n_samples, rng)) - n_fitted)
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


def _draw(probability: Vector, n_samples: int, rng: np.random.Generator) -> Vector:
    """Pattern counts of a random table of ``n_samples`` rows, drawn one by one if they are fewer than the patterns."""
    if n_samples >= probability.size:
        return rng.multinomial(n_samples, probability).astype(float)
    place = np.searchsorted(np.cumsum(probability), rng.random(n_samples), side="right")
    return np.bincount(np.minimum(place, probability.size - 1), minlength=probability.size).astype(float)


def complete_rows(data: PatternCounts) -> PatternCounts:
    """The rows without missing cells."""
    if data.observed is None:
        return data
    whole = (data.observed == all_observed(data.n_sensors)).all(axis=1)
    return PatternCounts(data.patterns[whole], data.weights[whole], data.sensors)


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


def pair_tails(model: OrMixture, pairs: PairCounts) -> Square:
    """Exact p-values of how often every sensor (diagonal) and every pair is on: (n_sensors, n_sensors).

    The model's numbers count as given. If they were fitted to these rows, the p-values err on the large side.
    """
    first, second = np.triu_indices(model.n_sensors)
    probability = both_on(model)
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
    reach = model.mixing.astype(float)
    shared: Square = (reach * np.minimum(model.rate, HIGHEST_SOURCE_RATE)) @ reach.T
    alone = np.diag(shared)
    quiet = np.exp(-alone)
    both_quiet = np.exp(shared - alone[:, None] - alone)
    false_alarm, miss = model.noise.rates(model.n_sensors)
    signal = 1 - miss - false_alarm  # by how much likelier a sensor shows 1 when it is on
    shown = false_alarm + signal * (1 - quiet)
    together: Square = np.outer(shown, shown) + np.outer(signal, signal) * (both_quiet - np.outer(quiet, quiet))
    np.fill_diagonal(together, shown)
    return together


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
        return f"{on} ({counted(self.observed, 'row')}, {self.expected:.2g} expected)"


@dataclass(frozen=True, slots=True)
class OddPair:
    """The two sensors (or one, twice) whose number of rows with both on is furthest from what the model expects."""

    sensors: tuple[str, str]
    observed: float
    expected: float
    p_value: float  # corrected for all sensors and pairs


def stretch_of(fit: Fit) -> Vector:
    """How many consecutive rows count as one independent row, at most: (n_sensors,); 1 where the order was not used.

    A chain of probability p that stays on for L slots forgets its state by the factor d = 1 - 1 / (L (1 - p)) per slot.
    The autocovariance of anything that depends on several independent chains is a sum of positive parts that decay with
    products of their d, so none is slower than the slowest chain: a mean over slots varies at most (1 + d) / (1 - d) =
    2 L (1 - p) - 1 times as much as one over independent rows. Noise, which is independent, only lowers that.

    >>> fit = Fit(OrMixture([[1, 0], [0, 1]], [0.2, 0.5]), diagnostics={"persistence": [10, 2]})
    >>> stretch_of(fit)
    array([15.,  1.])
    """
    model, stays = fit.model, fit.persistence()
    if stays is None or not model.n_sources:
        return np.ones(model.n_sensors)
    moving = (model.probability > 0) & (model.probability < 1)
    of_source = np.ones(model.n_sources)
    of_source[moving] = np.maximum(1.0, 2 * stays[moving] * (1 - model.probability[moving]) - 1)
    longest: Vector = np.where(model.mixing, of_source, 1.0).max(axis=1)
    return longest


def find_odd_pair(model: OrMixture, data: PatternCounts, stretch: Vector) -> OddPair | None:
    """The oddest of all pairs and single sensors; None if there are too many to check."""
    if not 1 <= data.n_sensors <= PAIR_LIMIT:
        return None
    pairs = PairCounts.of(data)
    p_values = np.triu(pair_tails(model, pairs.thinned(stretch))) + np.tri(data.n_sensors, k=-1)
    i, k = np.unravel_index(int(p_values.argmin()), p_values.shape)
    n_tests = data.n_sensors * (data.n_sensors + 1) // 2
    return OddPair(
        (data.sensors[i], data.sensors[k]),
        float(pairs.both[i, k]),
        float(pairs.observed[i, k] * both_on(model)[i, k]),
        min(1.0, n_tests * float(p_values[i, k])),
    )


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


def confusions(model: OrMixture, data: PatternCounts, sources: NDArray[np.int64], *, noise: bool) -> list[Confusion]:
    """Pairs among these ``sources``, and one shared flip rate if ``noise``, whose estimates are correlated below -0.9.

    The correlation is that of the empirical information; time n_sensors 2^n_sensors for each source. ``data`` has no
    missing cells, and the model no more sensors than a table of all patterns may have.
    """
    names = [*(model.source_names()[j] for j in sources), *(["the noise"] if noise else [])]
    correlation = _correlation(_slopes(model, data, sources, noise=noise), data.weights)
    found = np.argwhere(np.triu(correlation <= CONFUSED, 1))
    order = np.argsort(correlation[*found.T], kind="stable")
    return [Confusion((names[i], names[k]), float(correlation[i, k])) for i, k in found[order]]


def _slopes(model: OrMixture, data: PatternCounts, sources: NDArray[np.int64], *, noise: bool) -> NDArray[np.float64]:
    """Derivatives of the log probability of every distinct row by the source rates, then by the flip rate."""
    places, shown = data.patterns[:, 0].astype(np.int64), model.pattern_probability()
    hidden = model.with_noise(Noise()).pattern_probability()
    tables = [_grown(hidden, model, int(j)) - shown for j in sources]
    if noise:  # a slightly higher flip rate is the same as flipping once more at a small rate
        blurred = shown.copy()
        apply_channel(blurred, *Noise.flips(NOISE_STEP).rates(model.n_sensors))
        tables.append((blurred - shown) / NOISE_STEP)
    probability = shown[places]
    possible = np.where(probability > 0, probability, np.inf)
    return np.array([table[places] / possible for table in tables]).reshape(len(tables), places.size)


def _grown(hidden: NDArray[np.float64], model: OrMixture, source: int) -> NDArray[np.float64]:
    """The pattern probabilities if the source is surely on; they move towards these as its rate grows."""
    table = hidden.copy()
    mix_source(table, int((1 << np.arange(model.n_sensors)) @ model.mixing[:, source]), 1.0)
    apply_channel(table, *model.noise.rates(model.n_sensors))
    return table


def _correlation(slopes: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    information = (slopes * weights) @ slopes.T
    scale = np.sqrt(np.maximum(np.diag(information), TINY))
    spread = np.linalg.inv(information / np.outer(scale, scale) + RIDGE * np.eye(len(scale)))
    error = np.sqrt(np.diag(spread))
    correlation: NDArray[np.float64] = spread / np.outer(error, error)
    return correlation


SOURCES_PER_SENSOR = 2  # more than this, most of them parts of others, is what lossy edges leave behind
# Share of parts: 0.79 to 0.97 in lossy tables, real and simulated; 0.35 to 0.55 in exact ones of 20 sources, 8 sensors.
MOST = 0.75


@dataclass(frozen=True, slots=True)
class Splinters:
    """Many sources, most of which drive only some of the sensors of another source."""

    n_sources: int
    n_parts: int

    @classmethod
    def of(cls, model: OrMixture) -> Splinters | None:
        """How many sources are parts of others; None unless most are. Time grows with the pairs of sources.

        >>> subsets = np.array([[s >> i & 1 for s in range(1, 16)] for i in range(4)])
        >>> Splinters.of(OrMixture(subsets, np.full(15, 0.1)))
        Splinters(n_sources=15, n_parts=14)
        """
        if model.n_sources <= SOURCES_PER_SENSOR * model.mixing.any(axis=1).sum():
            return None
        n_parts = int(_is_part(model.mixing).sum())
        return cls(model.n_sources, n_parts) if n_parts >= MOST * model.n_sources else None

    def words(self) -> str:
        """What this suggests, and what helps."""
        return (
            f"{self.n_parts} of {self.n_sources} sources are parts of others, as if a few sources reached their "
            "sensors only at times; give the sensors' miss rates if they are known"
        )


def _is_part(mixing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which columns have all their ones in another, wider column."""
    reach = mixing.astype(np.float32)  # counts up to 2^24 stay exact
    size = reach.sum(axis=0)
    inside: NDArray[np.bool_] = (reach.T @ reach == size[:, None]) & (size > size[:, None])
    return np.asarray(inside.any(axis=1))
