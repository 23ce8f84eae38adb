"""How far a user is heard: power, path loss and the threshold of the monitors make one radius."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log10

import numpy as np
from numpy.typing import NDArray

from bica.errors import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Propagation:
    """Log-distance path loss without fading; the defaults are the paper's, and the loss at 1 m that it leaves open.

    40 dB at 1 m is free space at 2.4 GHz. With 0 dB every user would be heard all over the field.

    >>> round(Propagation().radius, 1), round(Propagation(reference_loss_db=0).radius)
    (126.0, 2714)
    """

    power_mw: float = 20.0
    noise_dbm: float = -95.0
    threshold_db: float = 5.0  # how far above the noise a signal must be
    exponent: float = 3.0
    reference_loss_db: float = 40.0  # at 1 m

    def __post_init__(self) -> None:
        values = (self.power_mw, self.noise_dbm, self.threshold_db, self.exponent, self.reference_loss_db)
        if not (all(map(isfinite, values)) and self.power_mw > 0 and self.exponent > 0):
            raise SettingError("propagation needs finite numbers, with a power and an exponent above 0")

    @property
    def radius(self) -> float:
        """Metres within which a user is heard: where the loss has eaten all that the signal has above the threshold."""
        margin = 10 * log10(self.power_mw) - (self.noise_dbm + self.threshold_db) - self.reference_loss_db
        return float(10 ** (margin / (10 * self.exponent)))


def within(left: NDArray[np.float64], right: NDArray[np.float64], radius: float) -> NDArray[np.bool_]:
    """Which points of ``left`` (n, 2) are within ``radius`` of which of ``right`` (k, 2): (n, k)."""
    apart = left[:, None] - right[None]
    near: NDArray[np.bool_] = (apart**2).sum(axis=2) <= radius**2
    return near
