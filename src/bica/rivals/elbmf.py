"""ELBMF: Boolean factors from a relaxation that pulls every entry to 0 or 1 (Dalleiger and Vreeken 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.model.fit import Fit
from bica.rivals.counted import (
    Attempt,
    NoiseSetting,
    check_noise,
    fit_best_start,
    nothing_found,
    required_n_sources,
    wrong_cells,
)

Floats = NDArray[np.float64]
STEP_SHARE = 1 / 1.1  # of the longest step at which the squared error surely falls
BINARY = 1e-6  # entries this close to 0 or 1 count as such


@dataclass(frozen=True, kw_only=True)
class ELBMF:
    """Lower the squared error of a product of real factors, while an elastic pull makes both factors binary.

    The pull is towards the nearer of 0 and 1: ``l1`` times the distance plus ``l2`` / 2 times its square, where ``l2``
    grows by the factor ``growth`` at every step until all entries are 0 or 1. Since 1 + 1 counts as 2, it suits tables
    in which sources seldom overlap; it scales to large tables, as a step is a few matrix products. The start with the
    fewest wrong cells wins, of these the one that switches on least. Time of one step: distinct rows times sensors
    times sources.

    S. Dalleiger, J. Vreeken: Efficiently Factorizing Boolean Matrices using Proximal Gradient Descent, NeurIPS 2022.

    >>> from bica.model.or_mixture import OrMixture
    >>> rows = OrMixture([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1]], [0.4, 0.3]).sample(300, np.random.default_rng(0))
    >>> ELBMF(n_sources=2).fit(PatternCounts.of(rows), np.random.default_rng(0)).model.mixing.astype(int).T
    array([[1, 1, 1, 0, 0],
           [0, 0, 1, 1, 1]])
    """

    n_sources: int | None = None  # must be given
    l1: float = 0.01
    l2: float = 0.02
    growth: float = 1.01  # the paper's 1.02 takes half as many steps, and leaves more cells wrong
    inertia: float = 1e-4  # how far a step goes on in the direction of the last one
    max_iter: int = 5000
    tolerance: float = 1e-8  # rest is where no entry changes by more or is farther from 0 and 1
    n_init: int = 10
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "ELBMF")
        if min(self.l1, self.l2, self.inertia) < 0 or self.growth < 1:
            raise SettingError("l1, l2 and inertia must not be negative, and growth must be at least 1")
        if self.max_iter < 1:
            raise SettingError(f"max_iter counts from 1 up, but {self.max_iter} was given")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold every start's wrong cells and the best start's squared errors."""
        data = data.complete("ELBMF")
        n_sources = required_n_sources(self.n_sources, "ELBMF")
        if not data.ones().any():
            return nothing_found("elbmf", data, self.noise)
        task = RelaxedTable(self, data, data.rows().astype(np.float64), n_sources)
        return fit_best_start("elbmf", data, task.run, self.n_init, rng)


@dataclass(frozen=True, slots=True, eq=False)
class RelaxedTable:
    """One table to be factorised; equal rows share their activity."""

    settings: ELBMF
    data: PatternCounts
    rows: Floats
    n_sources: int

    def run(self, number: int, rng: np.random.Generator) -> Attempt:
        """Descend from a random start, then round."""
        return self._attempt(*self.descend(rng))

    def descend(self, rng: np.random.Generator) -> tuple[Floats, Floats, list[float], bool]:
        """Both factors before rounding, half the squared error step by step, and whether they came to rest."""
        settings, weights = self.settings, self.data.weights
        activity = rng.random((len(self.rows), self.n_sources))
        mixing = rng.random((self.n_sources, self.data.n_sensors))
        last_activity, last_mixing = activity, mixing
        errors: list[float] = []
        l2, change = settings.l2, np.inf
        while len(errors) < settings.max_iter and change > settings.tolerance:
            ahead = activity + settings.inertia * (activity - last_activity)
            gram = mixing @ mixing.T
            new_activity = self._moved(ahead, ahead @ gram - self.rows @ mixing.T, gram, l2)
            ahead = mixing + settings.inertia * (mixing - last_mixing)
            weighted = (new_activity * weights[:, None]).T
            gram, seen = weighted @ new_activity, weighted @ self.rows
            new_mixing = self._moved(ahead, gram @ ahead - seen, gram, l2)
            change = max(
                float(np.abs(new_activity - activity).max()),
                float(np.abs(new_mixing - mixing).max()),
                *(float(np.abs(factor - (factor > 0.5)).max()) for factor in (new_activity, new_mixing)),
            )
            last_activity, last_mixing, activity, mixing = activity, mixing, new_activity, new_mixing
            errors.append(self._squared_error(mixing, gram, seen))
            l2 *= settings.growth
        return activity, mixing, errors, change <= settings.tolerance

    def _squared_error(self, mixing: Floats, gram: Floats, seen: Floats) -> float:
        """Half the squared error of the product, from the products of the activity with itself and with the rows."""
        total = float(self.data.weights @ self.rows.sum(axis=1))
        return 0.5 * total - float((mixing * seen).sum()) + 0.5 * float((mixing * (gram @ mixing)).sum())

    def _moved(self, place: Floats, slope: Floats, gram: Floats, l2: float) -> Floats:
        """One step down the slope, then the pull to 0 or 1; ``gram`` bounds how the slope changes."""
        step = STEP_SHARE / max(float(np.linalg.norm(gram)), BINARY)
        return pulled(place - step * slope, step * self.settings.l1, step * l2)

    def _attempt(self, activity: Floats, mixing: Floats, errors: list[float], converged: bool) -> Attempt:
        on, links = activity > 0.5, np.ascontiguousarray(mixing.T > 0.5)
        wrong = wrong_cells(self.data, links, on)
        bits = float(self.data.weights @ on.sum(axis=1)) + float(links.sum())
        score = wrong + bits / (self.n_sources * (self.data.n_samples + self.data.n_sensors) + 1)
        return Attempt(links, on, self.settings.noise, score, {"objective": errors}, converged)


def pulled(place: Floats, l1: float, l2: float) -> Floats:
    """Where ``(z - place)^2 / 2 + l1 d + l2 d^2 / 2`` is least, d being the distance of z from the nearer of 0 and 1.

    >>> pulled(np.array([-0.3, 0.05, 0.4, 0.7, 1.05]), 0.1, 1.0)
    array([0.  , 0.  , 0.15, 0.9 , 1.  ])
    """
    end = place > 0.5
    beyond = place - end
    nearer = np.sign(beyond) * np.maximum(np.abs(beyond) - l1, 0.0) / (1.0 + l2)
    return np.maximum(end + nearer, 0.0)
