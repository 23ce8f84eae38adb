"""Which noise rates are known, and how the unknown ones hang together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.kernels.channel import channel_matrices
from bica.model.noise import Noise

HIGHEST = 0.45  # at one half a sensor tells nothing


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """Rates of all sensors as a known part plus a linear map of a few unknown numbers."""

    false_alarm: NDArray[np.float64]  # (n_sensors,), the known part
    miss: NDArray[np.float64]  # (n_sensors,), the known part
    false_alarm_of: NDArray[np.float64]  # (n_sensors, n_unknown)
    miss_of: NDArray[np.float64]  # (n_sensors, n_unknown)
    lowest: float = 0.0  # of every unknown: never exactly 0, so that every pattern stays possible

    @classmethod
    def known(cls, noise: Noise, n_sensors: int) -> NoiseShape:
        """Nothing to estimate."""
        none = np.zeros((n_sensors, 0))
        return cls(*noise.rates(n_sensors), none, none)

    @classmethod
    def shared_flips(cls, n_sensors: int, lowest: float) -> NoiseShape:
        """One unknown flip rate for all sensors."""
        zeros, ones = np.zeros(n_sensors), np.ones((n_sensors, 1))
        return cls(zeros, zeros, ones, ones, lowest)

    @classmethod
    def own_flips(cls, n_sensors: int, lowest: float) -> NoiseShape:
        """An unknown flip rate for every sensor."""
        zeros, each = np.zeros(n_sensors), np.eye(n_sensors)
        return cls(zeros, zeros, each, each, lowest)

    @property
    def n_unknown(self) -> int:
        """How many numbers are to be estimated."""
        return int(self.false_alarm_of.shape[1])

    def rates(self, unknown: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """False-alarm and miss rates, one value a sensor."""
        return self.false_alarm + self.false_alarm_of @ unknown, self.miss + self.miss_of @ unknown

    def matrices(self, unknown: NDArray[np.float64]) -> NDArray[np.float64]:
        """The channel of every sensor: (n_sensors, 2, 2)."""
        return channel_matrices(*self.rates(unknown))
