"""A field with monitors and users at known places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.applications.spectrum.propagation import Propagation, within
from bica.errors import SettingError
from bica.model.checks import as_numbers
from bica.model.names import as_distinct_names

SIDE = 500.0


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
        """How many users there are, also those whom no monitor hears."""
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
    """Monitors and users anywhere on the square, independently of each other.

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
