"""A field with monitors and users at known places, and how far a user is heard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log10

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.errors import SettingError
from bica.model.noise import as_numbers
from bica.text import as_distinct_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Propagation:
    """Log-distance path loss without fading; the defaults are the paper's, which leaves the loss at 1 m open.

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
        """Metres within which a user is heard: at this distance the signal falls to the threshold above the noise."""
        margin = 10 * log10(self.power_mw) - (self.noise_dbm + self.threshold_db) - self.reference_loss_db
        return float(10 ** (margin / (10 * self.exponent)))


def within(left: NDArray[np.float64], right: NDArray[np.float64], radius: float) -> NDArray[np.bool_]:
    """Which points of ``left`` (n, 2) are within ``radius`` of which of ``right`` (k, 2): (n, k)."""
    apart = left[:, None] - right[None]
    near: NDArray[np.bool_] = (apart**2).sum(axis=2) <= radius**2
    return near


SIDE = 500.0  # metres


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Where monitors and users are on a square, in metres, and how far users are heard."""

    monitors: NDArray[np.float64]  # (n_monitors, 2)
    users: NDArray[np.float64]  # (n_users, 2); none where they are not known
    side: float
    propagation: Propagation
    monitor_names: tuple[str, ...]
    corner: tuple[float, float]  # where x and y are least

    def __init__(
        self,
        monitors: ArrayLike,
        users: ArrayLike = (),
        *,
        side: float = SIDE,
        propagation: Propagation | None = None,
        monitor_names: Sequence[str] | None = None,
        corner: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        places = (_places(monitors, "monitors"), _places(users, "users"))
        names = [f"m{i + 1}" for i in range(len(places[0]))] if monitor_names is None else monitor_names
        if len(names) != len(places[0]):
            raise SettingError(f"there are {len(places[0])} monitors, but {len(names)} names")
        values = (*places, float(side), propagation or Propagation(), as_distinct_names(names, "a monitor"), corner)
        for field, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, field, value)

    @property
    def n_users(self) -> int:
        """How many users there are, including those whom no monitor hears."""
        return len(self.users)

    @property
    def user_names(self) -> tuple[str, ...]:
        """u1, u2, ..."""
        return tuple(f"u{j + 1}" for j in range(self.n_users))

    @property
    def reach(self) -> NDArray[np.bool_]:
        """Which monitor hears which user: (n_monitors, n_users).

        >>> Field([[0, 0], [200, 0]], [[100, 0], [400, 400]]).reach.astype(int)
        array([[1, 0],
               [1, 0]])
        """
        return within(self.monitors, self.users, self.propagation.radius)


def random_field(
    n_users: int,
    rng: np.random.Generator,
    *,
    n_monitors: int = 10,
    side: float = SIDE,
    propagation: Propagation | None = None,
) -> Field:
    """A field with monitors and users at random places on the square, independently of each other.

    >>> random_field(7, np.random.default_rng(1)).reach.shape
    (10, 7)
    """
    if n_users < 0 or n_monitors < 1 or not side > 0:
        raise SettingError("a field needs at least one monitor, users from 0 up and a side above 0")
    monitors = rng.uniform(0, side, (n_monitors, 2))
    return Field(monitors, rng.uniform(0, side, (n_users, 2)), side=side, propagation=propagation)


def _places(values: ArrayLike, what: str) -> NDArray[np.float64]:
    places = as_numbers(values, f"the places of {what}")
    places = places.reshape(0, 2) if not places.size else places
    if places.ndim != 2 or places.shape[1] != 2 or not np.isfinite(places).all():
        raise SettingError(f"the places of {what} are pairs of finite numbers, x and y")
    places.flags.writeable = False
    return places
