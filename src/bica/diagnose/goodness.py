"""How well a model fits a table: patterns and pairs against what the model expects, and sources to be wary of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from bica.data.chunks import all_observed
from bica.data.pairs import PairCounts
from bica.data.patterns import PatternCounts
from bica.kernels.lattice.channel import apply_channel, mix_source
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

Vector = NDArray[np.float64]
Square = NDArray[np.float64]

N_DRAWS = 299  # a p-value of 1/300 is the least that can come out
ENOUGH = 20  # draws as far from the model as the data after which no more are needed
SEED = 0  # the answer is part of the diagnosis: the same for the same table
LONGEST_RATE = 700.0  # of a source that is always on: exp(-700) is as good as 0


@dataclass(frozen=True, slots=True)
class PatternTest:
    """The likelihood ratio against all possible tables of patterns, G², beside what chance alone gives."""

    g2: float  # infinite if an observed pattern is impossible
    expected: float  # what a true model would reach on average, after its numbers were fitted
    p_value: float
    n_draws: int

    def misplaced(self, n_samples: float) -> float:
        """At most this share of the rows would have to change: Pinsker's bound, from the excess of G²."""
        return min(1.0, float(np.sqrt(max(0.0, self.g2 - self.expected) / (4 * n_samples))))


def pattern_test(chance: Vector, histogram: Vector, n_fitted: int) -> PatternTest:
    """G² with its parametric bootstrap; ``n_fitted`` numbers of the model were fitted to this very table.

    The draws are not fitted again, which would cost hundreds of fits. A refit of a true model lowers its G² by
    ``n_fitted`` on average, so that much is taken from every draw; what is left keeps the larger spread, and the
    search for the sources is not repeated at all, so the p-value errs on the large side. G² counts patterns that were
    seen only, so a lattice that is mostly empty does no harm. The draws stop early once the p-value is clearly large.
    """
    n_samples = int(np.rint(histogram.sum()))
    g2 = likelihood_ratio(chance, histogram)
    order = np.argsort(-chance, kind="stable")  # frequent patterns first: a draw then ends early
    falling, rng = chance[order] / chance.sum(), np.random.default_rng(SEED)
    draws: list[float] = []
    n_beyond = 0
    while len(draws) < N_DRAWS and n_beyond < ENOUGH:
        draws.append(likelihood_ratio(falling, _draw(falling, n_samples, rng)) - n_fitted)
        n_beyond += draws[-1] >= g2
    p_value = n_beyond / len(draws) if n_beyond >= ENOUGH else (n_beyond + 1) / (len(draws) + 1)
    return PatternTest(g2, float(np.mean(draws)), p_value, len(draws))


def likelihood_ratio(chance: Vector, histogram: Vector) -> float:
    """Twice the log-likelihood that is lost against the observed frequencies.

    >>> round(likelihood_ratio(np.array([0.5, 0.5]), np.array([60.0, 40.0])), 2)
    4.03
    """
    seen = histogram > 0
    with np.errstate(divide="ignore"):
        lost = np.log(histogram[seen] / histogram.sum()) - np.log(chance[seen])
    return 2.0 * float(histogram[seen] @ lost)


def _draw(chance: Vector, n_samples: int, rng: np.random.Generator) -> Vector:
    """Counts of a table of so many rows; by single rows if there are fewer of them than patterns."""
    if n_samples >= chance.size:
        return rng.multinomial(n_samples, chance).astype(float)
    place = np.searchsorted(np.cumsum(chance), rng.random(n_samples), side="right")
    return np.bincount(np.minimum(place, chance.size - 1), minlength=chance.size).astype(float)


def complete_rows(data: PatternCounts) -> PatternCounts:
    """The rows without missing cells."""
    if data.observed is None:
        return data
    whole = (data.observed == all_observed(data.n_sensors)).all(axis=1)
    return PatternCounts(data.patterns[whole], data.weights[whole], data.sensors)


def signed_deviance(observed: Vector, expected: Vector) -> Vector:
    """How far counts are from what is expected, in standard deviations, and honest for rare patterns, too.

    >>> signed_deviance(np.array([10.0, 100.0, 0.0]), np.array([10.0, 80.0, 8.0])).round(1)
    array([ 0. ,  2.2, -4. ])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(observed > 0, observed * np.log(observed / expected), 0.0)
    deviance: Vector = np.sign(observed - expected) * np.sqrt(np.maximum(0.0, 2 * (ratio - observed + expected)))
    return deviance


def binomial_tails(observed: Vector, total: Vector, chance: Vector) -> Vector:
    """The two-sided exact p-value of each count: twice the smaller tail.

    >>> binomial_tails(np.array([0.0, 5.0, 10.0]), np.array([10.0] * 3), np.array([0.5] * 3)).round(4)
    array([0.002, 1.   , 0.002])
    """
    chance = np.clip(chance, 0.0, 1.0)
    with np.errstate(invalid="ignore"):
        above = np.where(observed > 0, betainc(np.maximum(observed, 1e-9), total - observed + 1, chance), 1.0)
        below = betainc(np.maximum(total - observed, 1e-9), observed + 1, 1.0 - chance)
    below = np.where(observed < total, below, 1.0)
    tails: Vector = np.minimum(1.0, 2 * np.minimum(above, below))
    return tails


def pair_tails(model: OrMixture, pairs: PairCounts) -> Square:
    """Exact p-values of every sensor (diagonal) and every pair being on so often: (n_sensors, n_sensors).

    The model's numbers count as given. Where they were fitted, the data are nearer to them: the values err on the
    large side.
    """
    first, second = np.triu_indices(model.n_sensors)
    chance = both_on(model)
    tails = np.empty_like(chance)
    tails[first, second] = binomial_tails(
        np.rint(pairs.both[first, second]), np.rint(pairs.seen[first, second]), chance[first, second]
    )
    tails[second, first] = tails[first, second]
    return tails


def both_on(model: OrMixture) -> Square:
    """The chance that two sensors show on together, and of each alone on the diagonal: (n_sensors, n_sensors).

    >>> both_on(OrMixture([[1, 1], [0, 1]], [0.2, 0.5])).round(3)
    array([[0.6, 0.5],
           [0.5, 0.5]])
    """
    reach = model.mixing.astype(float)
    shared: Square = (reach * np.minimum(model.rate, LONGEST_RATE)) @ reach.T
    alone = np.diag(shared)
    quiet = np.exp(-alone)
    both_quiet = np.exp(shared - alone[:, None] - alone)
    false_alarm, miss = model.noise.rates(model.n_sensors)
    seen = 1 - miss - false_alarm  # by how much a sensor is likelier to show on when it is
    shown = false_alarm + seen * (1 - quiet)
    together: Square = np.outer(shown, shown) + np.outer(seen, seen) * (both_quiet - np.outer(quiet, quiet))
    np.fill_diagonal(together, shown)
    return together


CONFUSED = -0.9  # correlation of two estimates from which on they stand for each other
NOISE_STEP = 1e-6


@dataclass(frozen=True, slots=True)
class Confusion:
    """Two sources, or a source and the noise, whose estimates can hardly be separated."""

    names: tuple[str, str]
    correlation: float  # of the two estimates, close to -1


def confusions(model: OrMixture, data: PatternCounts, sources: NDArray[np.int64], *, noise: bool) -> list[Confusion]:
    """Pairs among these ``sources``, and one shared flip rate if ``noise``, whose estimates are correlated below -0.9.

    From the empirical information of the likelihood: time (n_sensors 2^n_sensors) for each source. ``data`` has no
    missing cells, and the model no more sensors than a table of all patterns may have.
    """
    names = [*(model.source_names()[j] for j in sources), *(["the noise"] if noise else [])]
    correlation = _correlation(_slopes(model, data, sources, noise=noise), data.weights)
    found = np.argwhere(np.triu(correlation <= CONFUSED, 1))
    order = np.argsort(correlation[*found.T], kind="stable")
    return [Confusion((names[i], names[k]), float(correlation[i, k])) for i, k in found[order]]


def _slopes(model: OrMixture, data: PatternCounts, sources: NDArray[np.int64], *, noise: bool) -> NDArray[np.float64]:
    """Derivatives of the log chance of every distinct row by the rates, then by the flip rate."""
    places, shown = data.patterns[:, 0].astype(np.int64), model.pattern_probability()
    hidden = model.with_noise(Noise()).pattern_probability()
    tables = [_grown(hidden, model, int(j)) - shown for j in sources]
    if noise:  # flips only ever blur, so a small step more of them is the same as blurring once more
        blurred = shown.copy()
        apply_channel(blurred, *Noise.flips(NOISE_STEP).rates(model.n_sensors))
        tables.append((blurred - shown) / NOISE_STEP)
    chance = shown[places]
    possible = np.where(chance > 0, chance, np.inf)
    return np.array([table[places] / possible for table in tables]).reshape(len(tables), places.size)


def _grown(hidden: NDArray[np.float64], model: OrMixture, source: int) -> NDArray[np.float64]:
    """What is shown if the source is on for certain: the chances move towards that as its rate grows."""
    table = hidden.copy()
    mix_source(table, int((1 << np.arange(model.n_sensors)) @ model.mixing[:, source]), 1.0)
    apply_channel(table, *model.noise.rates(model.n_sensors))
    return table


def _correlation(slopes: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    information = (slopes * weights) @ slopes.T
    scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
    spread = np.linalg.inv(information / np.outer(scale, scale) + 1e-9 * np.eye(len(scale)))
    error = np.sqrt(np.diag(spread))
    correlation: NDArray[np.float64] = spread / np.outer(error, error)
    return correlation


SOURCES_A_SENSOR = 2  # more than this, and most of them parts of others, is what lossy edges leave behind
MOST = 0.75  # 0.79 to 0.97 in lossy tables, real and simulated; 0.35 to 0.55 in exact ones of 20 sources and 8 sensors


@dataclass(frozen=True, slots=True)
class Splinters:
    """Many sources, most of which drive some of the sensors of another one and no others."""

    n_sources: int
    n_parts: int

    @classmethod
    def of(cls, model: OrMixture) -> Splinters | None:
        """The count of parts, or None if they are few; time goes with the pairs of sources.

        >>> subsets = np.array([[s >> i & 1 for s in range(1, 16)] for i in range(4)])
        >>> Splinters.of(OrMixture(subsets, np.full(15, 0.1)))
        Splinters(n_sources=15, n_parts=14)
        """
        if model.n_sources <= SOURCES_A_SENSOR * model.mixing.any(axis=1).sum():
            return None
        n_parts = int(_is_part(model.mixing).sum())
        return cls(model.n_sources, n_parts) if n_parts >= MOST * model.n_sources else None

    def words(self) -> str:
        """What this points to, and what helps."""
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
