"""What a covered sensor says by showing 1 or 0, given the rates of false alarms and misses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.model.noise import Noise

LEAST, MOST = 1e-5, 0.3  # rates are taken to lie in between: a cell that must not err would forbid every neighbour


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Rates of each sensor, known or one unknown flip rate for all.

    >>> Evidence.of(0.1, 2).one.round(2)
    array([2.2, 2.2])
    """

    false_alarm: NDArray[np.float64]  # (n_sensors,)
    miss: NDArray[np.float64]  # (n_sensors,)
    known: bool

    @classmethod
    def of(cls, noise: Noise | float, n_sensors: int) -> Evidence:
        """From known noise, or from a first guess of one flip rate."""
        known = isinstance(noise, Noise)
        false_alarm, miss = noise.rates(n_sensors) if isinstance(noise, Noise) else Noise.flips(noise).rates(n_sensors)
        return cls(np.maximum(false_alarm, LEAST), np.maximum(miss, LEAST), known)

    @property
    def one(self) -> NDArray[np.float64]:
        """How much a covered sensor that shows 1 speaks for the sources that are on."""
        return np.log1p(-self.miss) - np.log(self.false_alarm)

    @property
    def zero(self) -> NDArray[np.float64]:
        """The same for one that shows 0: negative."""
        return np.log(self.miss) - np.log1p(-self.false_alarm)

    @property
    def flip_rate(self) -> float:
        """Both rates averaged over the sensors."""
        return float(np.mean(self.false_alarm) + np.mean(self.miss)) / 2

    @property
    def hopeless(self) -> float:
        """A gain from which a source does not become useful, whatever else is switched on."""
        return 2.5 * float(np.mean(self.zero)) - 3.0

    def with_rate(self, rate: float) -> Evidence:
        """With this flip rate, unless the noise is known."""
        if self.known:
            return self
        return Evidence.of(float(np.clip(rate, LEAST, MOST)), self.miss.size)
