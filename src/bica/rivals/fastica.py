"""FastICA on zeros and ones, thresholded: what linear independent component analysis makes of an OR mixture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.model.fit import Fit
from bica.rivals.counted import Attempt, NoiseSetting, check_noise, counted_fit, fit_best_start, required_n_sources

# Whitened rows z with weights w that sum to 1, and an orthogonal W whose rows are the directions of the components:
#
#     W  <-  decorrelated( sum_t w_t tanh(W z_t) z_t' - diag(sum_t w_t (1 - tanh(W z_t)^2)) W )
#
# where "decorrelated" is the nearest orthogonal matrix. Distinct rows are visited once, however often they occur.

Floats = NDArray[np.float64]
GAUSSIAN = 0.374567  # mean of log cosh under the standard normal law
TOLERANCE = 1e-4  # how far the cosine between a direction and the one before may be from 1 at the end


@dataclass(frozen=True, kw_only=True)
class FastICA:
    """Unmix linearly, then cut components and activities at half their maximum.

    There are at most as many components as the rank of the table: silent and duplicate sensors add none. It shows how
    far a linear method gets on an OR mixture. Starts are ranked by how far from Gaussian their components are.

    A. Hyvärinen: Fast and robust fixed-point algorithms for independent component analysis, IEEE Trans. Neural
    Networks 1999.

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
        """Learn from counted rows."""
        data = data.complete("FastICA")
        table = WhiteRows.of(data, required_n_sources(self.n_sources, "FastICA"))
        if table is None:
            return counted_fit(
                "fastica", data, *_constant_source(data), self.noise, diagnostics={"scores": [], "objective": []}
            )

        def start(_: int, stream: np.random.Generator) -> Attempt:
            size = table.white.shape[1]
            unmixing, converged = table.unmixed(stream.normal(size=(size, size)), self.max_iter)
            return table.thresholded(unmixing, converged, self.noise)

        return fit_best_start("fastica", data, start, self.n_init, rng)


@dataclass(frozen=True, slots=True)
class WhiteRows:
    """The distinct rows, projected on their largest principal axes and scaled to unit variance."""

    white: Floats  # (n_patterns, n_components)
    weighted: Floats  # the same, times the weights
    weights: Floats  # (n_patterns,), sum to 1
    back: Floats  # (n_sensors, n_components): white rows times its transpose are the centred rows, projected

    @classmethod
    def of(cls, data: PatternCounts, most: int) -> WhiteRows | None:
        """Up to ``most`` axes, no more than the rank of the table; None if all rows are equal."""
        rows, weights = data.rows().astype(float), data.weights / data.n_samples
        root = np.sqrt(weights)[:, None]
        left, scale, axes = np.linalg.svd(root * (rows - weights @ rows), full_matrices=False)
        rank = int((scale > scale[0] * max(rows.shape) * np.finfo(float).eps).sum()) if scale[0] > 0 else 0
        if rank == 0:
            return None
        kept = min(rank, most)
        white = left[:, :kept] / root
        return cls(white, weights[:, None] * white, weights, axes[:kept].T * scale[:kept])

    def unmixed(self, unmixing: Floats, max_iter: int) -> tuple[Floats, bool]:
        """The directions, (n_components, n_components), from a start, and whether they settled."""
        unmixing = _decorrelated(unmixing)
        for _ in range(max_iter):
            bent = np.tanh(self.white @ unmixing.T)
            slope = 1 - self.weights @ bent**2
            before, unmixing = unmixing, _decorrelated(bent.T @ self.weighted - slope[:, None] * unmixing)
            if np.abs(np.abs((unmixing * before).sum(axis=1)) - 1).max() < TOLERANCE:
                return unmixing, True
        return unmixing, False

    def thresholded(self, unmixing: Floats, converged: bool, noise: NoiseSetting) -> Attempt:
        """Links from half of a component's largest effect up, positive; activities above the middle of their range."""
        mixing, sources = self.back @ unmixing.T, self.white @ unmixing.T
        sign = np.sign(mixing[np.abs(mixing).argmax(axis=0), np.arange(mixing.shape[1])])
        mixing, sources = mixing * sign, sources * sign
        score = -float(((self.weights @ np.log(np.cosh(sources)) - GAUSSIAN) ** 2).sum())
        middle = (sources.max(axis=0) + sources.min(axis=0)) / 2
        links = mixing >= mixing.max(axis=0) / 2
        return Attempt(links, sources > middle, noise, score, {"objective": [score]}, converged)


def _decorrelated(directions: Floats) -> Floats:
    """The nearest orthogonal matrix."""
    values, axes = np.linalg.eigh(directions @ directions.T)
    nearest: Floats = (axes / np.sqrt(np.maximum(values, np.finfo(float).tiny))) @ axes.T @ directions
    return nearest


def _constant_source(data: PatternCounts) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mixing and activity for sensors that never change: one source, always on, behind those that are on."""
    on = data.ones() > 0
    return on[:, None], np.full((len(data.weights), 1), bool(on.any()))
