"""How well a model fits a table: all patterns against a parametric bootstrap, and all pairs by exact tails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from bica.data.chunks import all_observed
from bica.data.pairs import PairCounts
from bica.data.patterns import PatternCounts
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
