"""What sensors add on top of the sources; rates and other numbers are checked at the door of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.errors import ModelError

Rate = float | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Noise:
    """Each sensor shows 1 in place of 0 at rate ``false_alarm`` and 0 in place of 1 at rate ``miss``.

    Either rate is one number for all sensors or one number per sensor.

    >>> Noise.flips(0.1)
    Noise(false_alarm=0.1, miss=0.1)
    >>> Noise([0.0, 0.1], 0.2).rates(2)
    (array([0. , 0.1]), array([0.2, 0.2]))
    """

    false_alarm: Rate
    miss: Rate

    def __init__(self, false_alarm: ArrayLike = 0.0, miss: ArrayLike = 0.0) -> None:
        object.__setattr__(self, "false_alarm", _checked_rate("false_alarm", false_alarm))
        object.__setattr__(self, "miss", _checked_rate("miss", miss))
        false_alarms, misses = self.rates(self.n_sensors if self.n_sensors is not None else 1)
        useless = np.flatnonzero(false_alarms + misses >= 1)
        if useless.size:
            raise ModelError(
                f"a sensor's false_alarm and miss rates add up to 1 or more, so it says nothing: place {useless[0]} "
                f"has {false_alarms[useless[0]]:g} and {misses[useless[0]]:g}; leave that sensor out"
            )

    @classmethod
    def flips(cls, rate: float) -> Noise:
        """The paper's noise: every cell is flipped with the same probability."""
        return cls(rate, rate)

    @property
    def n_sensors(self) -> int | None:
        """The number of sensors, if rates are given one by one; None if both rates hold for all sensors."""
        return next((len(rate) for rate in (self.false_alarm, self.miss) if isinstance(rate, tuple)), None)

    @property
    def is_absent(self) -> bool:
        """Whether the sensors never err."""
        return not np.any(self.false_alarm) and not np.any(self.miss)

    def at_least(self, rate: float) -> Noise:
        """The same noise with no rate below this one, unless a sensor would then say nothing.

        >>> Noise(0.0, 0.1).at_least(0.01)
        Noise(false_alarm=0.01, miss=0.1)
        """
        false_alarm, miss = np.asarray(self.false_alarm), np.asarray(self.miss)
        return Noise(
            np.maximum(false_alarm, np.minimum(rate, (1 - miss) / 2)),
            np.maximum(miss, np.minimum(rate, (1 - false_alarm) / 2)),
        )

    def rates(self, n_sensors: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """False-alarm and miss rates, one value per sensor."""
        for name, rate in (("false_alarm", self.false_alarm), ("miss", self.miss)):
            if isinstance(rate, tuple) and len(rate) != n_sensors:
                raise ModelError(f"noise gives {len(rate)} {name} rates for {n_sensors} sensors")
        return np.array(np.broadcast_to(self.false_alarm, n_sensors)), np.array(np.broadcast_to(self.miss, n_sensors))

    def of_sensors(self, sensors: Sequence[int] | NDArray[np.int64]) -> Noise:
        """The noise of these sensors only."""
        return Noise(*(_of_sensors(rate, sensors) for rate in (self.false_alarm, self.miss)))

    def apply(self, rows: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """What noisy sensors show of ``rows``."""
        if self.is_absent:
            return rows
        false_alarm, miss = self.rates(rows.shape[1])
        return rows ^ (rng.random(rows.shape) < np.where(rows, miss, false_alarm))


def _of_sensors(rate: Rate, sensors: Sequence[int] | NDArray[np.int64]) -> Rate:
    return tuple(rate[i] for i in sensors) if isinstance(rate, tuple) else rate


def _checked_rate(name: str, rate: ArrayLike) -> Rate:
    values = as_probabilities(rate, name)
    if values.ndim > 1:
        raise ModelError(f"{name} is one number or one number per sensor, not an array of {values.ndim} dimensions")
    return float(values) if values.ndim == 0 else tuple(values.tolist())


def as_numbers(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """A fresh array of float64.

    >>> as_numbers([0, "1"], "a list")
    Traceback (most recent call last):
    bica.errors.ModelError: a list must hold numbers
    """
    try:
        numbers = np.array(values)
    except ValueError:  # rows of different length
        raise ModelError(f"{what} must hold numbers in an even grid") from None
    if numbers.size and numbers.dtype.kind not in "biuf":
        raise ModelError(f"{what} must hold numbers")
    return numbers.astype(np.float64) + 0.0  # makes -0.0 an ordinary zero, so that equal models have equal bytes


def as_probabilities(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """A fresh array of numbers in [0, 1]."""
    numbers = as_numbers(values, what)
    outside = numbers[~((numbers >= 0) & (numbers <= 1))]
    if outside.size:
        raise ModelError(f"{what} must lie in [0, 1], but {outside.flat[0]:g} was given")
    return numbers
