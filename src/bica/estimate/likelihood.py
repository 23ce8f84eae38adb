"""The learner people use: penalised likelihood, unknown noise, the number of sources found by itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning
from bica.estimate.lattice_task import LATTICE_SENSORS, fit_on_lattice
from bica.estimate.settings import Settings
from bica.estimate.varying import Varying
from bica.estimate.wide_task import WideTask
from bica.model.fit import Fit

AT_ONCE = 16  # sensors whose exact likelihood is a matter of seconds


@dataclass(frozen=True, kw_only=True)
class Likelihood(Settings):
    """Learn sources and noise by the penalised likelihood: exact for few sensors, from blocks and rows for many.

    >>> from bica import Noise, OrMixture
    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], Noise.flips(0.05))
    >>> data = PatternCounts.of(truth.sample(4000, np.random.default_rng(1)))
    >>> found = Likelihood().fit(data, np.random.default_rng(0)).model
    >>> found.mixing.astype(int).tolist(), found.probability.round(1).tolist()
    ([[1, 1], [1, 0]], [0.5, 0.2])
    """

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; Ctrl-C keeps the best so far. Chance is used for tables of many sensors only."""
        table = Varying.of(data, self.known, self.forbidden)
        fit = fit_on_lattice(table, self) if self._at_once(table) else self._fit_from_blocks(table, rng)
        if not fit.converged and fit.diagnostics.get("interrupted"):
            warnings.warn("interrupted: this is the best model so far, not the final one", BicaWarning, stacklevel=2)
        return fit

    def _at_once(self, table: Varying) -> bool:
        """A prior and rates of single sensors are for the lattice alone."""
        only_there = self.prior is not None or self.noise == "per-sensor"
        return table.data.n_sensors <= (LATTICE_SENSORS if only_there else AT_ONCE)

    def _fit_from_blocks(self, table: Varying, rng: np.random.Generator) -> Fit:
        """Where blocks contradict each other and all sensors at once are possible, they have the last word."""
        task = WideTask.of(table, self)
        learned = task.learn(rng)
        if table.data.n_sensors <= LATTICE_SENSORS and not (learned.unanimous or learned.interrupted):
            return fit_on_lattice(table, self, task.guess(learned))
        return task.result(learned)
