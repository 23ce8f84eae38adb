"""FastICA on zeros and ones, thresholded: what linear independent component analysis makes of an OR mixture."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import FastICA as LinearFastICA
from sklearn.exceptions import ConvergenceWarning

from bica.data.patterns import PatternCounts
from bica.errors import DataError
from bica.model.fit import Fit
from bica.rivals.counted import Attempt, NoiseSetting, check_noise, counted_fit, fit_best_start, required_n_sources

MOST_SEED = 2**31  # of scikit-learn's random states
GAUSSIAN = 0.374567  # mean of log cosh under the standard normal law


@dataclass(frozen=True, kw_only=True)
class FastICA:
    """Unmix linearly with scikit-learn, then cut components and activities at half their maximum.

    There are at most as many components as the rank of the table: silent and duplicate sensors add none. It shows how
    far a linear method gets on an OR mixture. Starts are ranked by how far from Gaussian their components are.

    >>> from bica.model.or_mixture import OrMixture
    >>> rows = OrMixture([[1, 0], [1, 0], [0, 1]], [0.4, 0.3]).sample(300, np.random.default_rng(0))
    >>> FastICA(n_sources=2).fit(PatternCounts.of(rows), np.random.default_rng(0)).model.mixing.astype(int)
    array([[1, 0],
           [1, 0],
           [0, 1]])
    """

    n_sources: int | None = None  # must be given
    n_init: int = 5
    max_iter: int = 200
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "FastICA")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; their weights have to be whole numbers."""
        data = data.complete("FastICA")
        n_sources = required_n_sources(self.n_sources, "FastICA")
        if (data.weights % 1 != 0).any():
            raise DataError("FastICA cannot weigh rows; give whole numbers as sample weights")
        repeats = data.weights.astype(np.int64)
        rows = np.repeat(data.rows(), repeats, axis=0).astype(float)
        rank = int(np.linalg.matrix_rank(rows - rows.mean(axis=0)))
        if rank == 0:
            return counted_fit(
                "fastica", data, *_constant_source(data), self.noise, diagnostics={"scores": [], "objective": []}
            )
        firsts = np.cumsum(repeats) - 1

        def start(number: int, stream: np.random.Generator) -> Attempt:
            return self._unmix(rows, firsts, min(n_sources, rank), int(stream.integers(MOST_SEED)))

        return fit_best_start("fastica", data, start, self.n_init, rng)

    def _unmix(self, rows: NDArray[np.float64], firsts: NDArray[np.int64], n_components: int, seed: int) -> Attempt:
        ica = LinearFastICA(n_components, whiten="unit-variance", max_iter=self.max_iter, random_state=seed)
        with (
            warnings.catch_warnings(),
            np.errstate(divide="ignore", invalid="ignore"),
        ):  # from components that are left out
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported by ``Attempt.converged``
            sources = ica.fit_transform(rows)
        sign = np.sign(ica.mixing_[np.abs(ica.mixing_).argmax(axis=0), np.arange(n_components)])
        mixing, sources = ica.mixing_ * sign, sources * sign
        score = -float(((np.log(np.cosh(sources)).mean(axis=0) - GAUSSIAN) ** 2).sum())
        middle = (sources.max(axis=0) + sources.min(axis=0)) / 2
        links = mixing >= mixing.max(axis=0) / 2
        trace = {"objective": [score]}
        return Attempt(links, sources[firsts] > middle, self.noise, score, trace, ica.n_iter_ < self.max_iter)


def _constant_source(data: PatternCounts) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mixing and activity for sensors that never change: one source, always on, behind those that are on."""
    on = data.ones() > 0
    return on[:, None], np.full((len(data.weights), 1), bool(on.any()))
