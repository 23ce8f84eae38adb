"""Asso: Boolean factors from association rules between columns (Miettinen, Mielikäinen, Gionis, Das, Mannila 2006)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.model.fit import Fit
from bica.rivals.counted import Attempt, NoiseSetting, check_noise, fit_best_start, required_n_sources


@dataclass(frozen=True, kw_only=True)
class Asso:
    """Take the columns that often accompany a column as a candidate source; choose the best candidates greedily.

    Sensor j belongs to the candidate of sensor i if j is on in at least the share ``threshold`` of the rows in which i
    is. A row gets a source if that covers more ones than zeros, not counting cells that are covered already. All
    thresholds are tried; the one with the fewest wrong cells wins. It is quick, needs no random start, and works where
    every source has a sensor of its own; a source without one is never a candidate. Time for each threshold and source:
    distinct rows times sensors squared.

    P. Miettinen, T. Mielikäinen, A. Gionis, G. Das, H. Mannila: The Discrete Basis Problem, PKDD 2006, TKDE 2008.

    >>> rows = [[1, 1, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1], [0, 1, 1], [0, 0, 0]]
    >>> found = Asso(n_sources=2).fit(PatternCounts.of(rows), np.random.default_rng(0))
    >>> found.model.mixing.astype(int)
    array([[1, 0],
           [1, 1],
           [0, 1]])
    >>> found.diagnostics["objective"]  # the weight of the wrong cells after each source
    [5.0, 0.0]
    """

    n_sources: int | None = None  # must be given
    thresholds: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    cost_of_one: float = 1.0  # what a 1 costs that is not covered
    cost_of_zero: float = 1.0  # what a 0 costs that is covered
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "Asso")
        if not self.thresholds or not all(0 < threshold <= 1 for threshold in self.thresholds):
            raise SettingError(f"Asso needs thresholds in (0, 1], but {self.thresholds} was given")
        if min(self.cost_of_one, self.cost_of_zero) <= 0:
            raise SettingError("the costs of ones and zeros must be above 0")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold the cost for every threshold, and after each source of the best."""
        data = data.complete("Asso")
        n_sources = required_n_sources(self.n_sources, "Asso")
        confidence = confidences(data)

        def start(number: int, _: np.random.Generator) -> Attempt:
            return self._cover(data, candidates(confidence, self.thresholds[number]), n_sources)

        return fit_best_start("asso", data, start, len(self.thresholds), rng)

    def _cover(self, data: PatternCounts, offered: NDArray[np.bool_], n_sources: int) -> Attempt:
        rows = data.rows()
        worth = np.where(rows, self.cost_of_one, -self.cost_of_zero)  # of covering a cell; 0 once it is covered
        cost = self.cost_of_one * float(data.weights @ rows.sum(axis=1))
        columns: list[NDArray[np.bool_]] = []
        members: list[NDArray[np.bool_]] = []
        trace: list[float] = []
        while len(columns) < n_sources and len(offered):
            gain = np.maximum(worth @ offered.T, 0.0)  # (n_patterns, n_candidates)
            total = data.weights @ gain
            best = int(total.argmax())
            if total[best] <= 0:
                break
            columns.append(offered[best])
            members.append(gain[:, best] > 0)
            worth[np.ix_(members[-1], columns[-1])] = 0.0
            cost -= float(total[best])
            trace.append(cost)
        mixing = np.array(columns, dtype=bool).reshape(-1, data.n_sensors).T
        activity = np.array(members, dtype=bool).reshape(-1, len(rows)).T
        return Attempt(mixing, activity, self.noise, cost, {"objective": trace}, True)


def confidences(data: PatternCounts) -> NDArray[np.float64]:
    """In which share of the rows that have sensor i (row) sensor j (column) is on, too; 0 where i is never on.

    >>> confidences(PatternCounts.of([[1, 1], [0, 1]]))
    array([[1. , 1. ],
           [0.5, 1. ]])
    """
    rows = data.rows().astype(np.float64)
    together = (rows * data.weights[:, None]).T @ rows
    ones = together.diagonal()[:, None]
    return np.divide(together, ones, out=np.zeros_like(together), where=ones > 0)


def candidates(confidence: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """The distinct sets of sensors that accompany some sensor at this confidence, the first sensor's first."""
    sets = dict.fromkeys(map(bytes, confidence >= threshold))
    offered = np.frombuffer(b"".join(sets), np.bool_).reshape(len(sets), -1)
    return offered[offered.any(axis=1)]
