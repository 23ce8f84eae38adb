"""A field with monitors and users at known places, and how far a user is heard; a model on a field.

Of a model follow where each user must be, and how often the spectrum is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from bica.errors import DataError, SettingError
from bica.model.noise import as_numbers
from bica.model.or_mixture import OrMixture
from bica.text import as_distinct_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Propagation:
    """Log-distance path loss; the defaults are the paper's, which leaves the loss at 1 m open and knows no fading.

    40 dB at 1 m is free space at 2.4 GHz. With 0 dB every user would be heard all over the field. With fading, the
    signal is stronger or weaker in every slot, by a normal number of decibels.

    >>> round(Propagation().radius, 1), round(Propagation(reference_loss_db=0).radius)
    (126.0, 2714)
    >>> Propagation(fading_db=6).heard_share(np.array([50.0, 126.0, 200.0])).round(2)
    array([0.98, 0.5 , 0.16])
    """

    power_mw: float = 20.0
    noise_dbm: float = -95.0
    threshold_db: float = 5.0  # how far above the noise a signal must be
    exponent: float = 3.0
    reference_loss_db: float = 40.0  # at 1 m
    fading_db: float = 0.0  # standard deviation of the signal from slot to slot

    def __post_init__(self) -> None:
        values = (self.power_mw, self.noise_dbm, self.threshold_db, self.exponent, self.reference_loss_db)
        fine = all(map(isfinite, (*values, self.fading_db))) and self.fading_db >= 0
        if not (fine and self.power_mw > 0 and self.exponent > 0):
            raise SettingError("propagation needs finite numbers, with a power and an exponent above 0")

    @property
    def radius(self) -> float:
        """Metres within which a user is heard: at this distance the signal falls to the threshold above the noise."""
        margin = 10 * log10(self.power_mw) - (self.noise_dbm + self.threshold_db) - self.reference_loss_db
        return float(10 ** (margin / (10 * self.exponent)))

    def heard_share(self, metres: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of slots in which a user that far away is heard; 0 where that is next to never."""
        if not self.fading_db:
            return np.asarray(metres <= self.radius, np.float64)
        above = 10 * self.exponent * np.log10(self.radius / np.maximum(metres, AT_LEAST_AWAY))  # the threshold, in dB
        share = ndtr(above / self.fading_db)
        return np.where(share < NEXT_TO_NEVER, 0.0, share)


def distances(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far the points of ``left`` (n, 2) are from those of ``right`` (k, 2): (n, k)."""
    apart: NDArray[np.float64] = np.linalg.norm(left[:, None] - right[None], axis=2)
    return apart


def within(left: NDArray[np.float64], right: NDArray[np.float64], radius: float) -> NDArray[np.bool_]:
    """Which points of ``left`` (n, 2) are within ``radius`` of which of ``right`` (k, 2): (n, k)."""
    apart = left[:, None] - right[None]
    near: NDArray[np.bool_] = (apart**2).sum(axis=2) <= radius**2
    return near


AT_LEAST_AWAY = 1.0  # metres
NEXT_TO_NEVER = 0.02  # of the slots: whom a monitor hears less often counts as not heard
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
        return self.heard_share > 0 if self.propagation.fading_db else within(*self._places, self.propagation.radius)

    @property
    def heard_share(self) -> NDArray[np.float64]:
        """How often each monitor hears each user that is active: (n_monitors, n_users)."""
        return self.propagation.heard_share(distances(*self._places))

    @property
    def _places(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.monitors, self.users


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


NEARLY_AS_OFTEN = 0.15  # of the slots: how often a user is heard may differ by that much from what its place says
GRID_STEPS = 100  # squares along a side of the field
Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """All places of the field, on a grid, at which a user would be heard by just the monitors that hear it."""

    points: Points  # (n_points, 2)
    cell: float  # square metres that a point stands for
    n_contradictions: int  # monitors that should hear a user at these places and do not, or do and should not

    @property
    def centre(self) -> NDArray[np.float64]:
        """The middle of the region: (2,)."""
        middle: NDArray[np.float64] = self.points.mean(axis=0)
        return middle

    @property
    def spread(self) -> float:
        """How far off the centre a user is, as the root of the mean square over the region, in metres."""
        return float(np.sqrt(((self.points - self.centre) ** 2).sum(axis=1).mean()))

    @property
    def area(self) -> float:
        """Square metres."""
        return self.cell * len(self.points)


def locate(field: Field, heard_by: NDArray[Any], n_steps: int = GRID_STEPS) -> Region:
    """Where on the field a user can be whom exactly the monitors in ``heard_by`` (n_monitors,) hear.

    If no place fits, those that contradict the fewest monitors are taken. Where signals fade, ``heard_by`` may say how
    often each monitor hears the user, which tells how far away it is. Time and memory grow with the grid's points times
    monitors.

    >>> field = Field([[100, 100], [200, 100], [400, 400]])
    >>> region = locate(field, np.array([True, True, False]))
    >>> region.centre.round(), round(region.spread), region.n_contradictions
    (array([150., 102.]), 65, 0)
    """
    points = grid_of(field, n_steps)
    if field.propagation.fading_db:
        expected = field.propagation.heard_share(distances(points, field.monitors))
        wrong = (np.abs(expected - heard_by) > NEARLY_AS_OFTEN).sum(axis=1)
    else:
        wrong = (within(points, field.monitors, field.propagation.radius) != (heard_by > 0)).sum(axis=1)
    fewest = int(wrong.min())
    return Region(points[wrong == fewest], (field.side / n_steps) ** 2, fewest)


def grid_of(field: Field, n_steps: int) -> Points:
    """The middles of the ``n_steps`` by ``n_steps`` squares that make up the field: (n_steps², 2)."""
    middles = (np.arange(n_steps) + 0.5) * field.side / n_steps
    x, y = np.meshgrid(middles, middles)
    return np.stack([x.ravel(), y.ravel()], axis=1) + field.corner


def free_share(
    places: Points, regions: Sequence[Region], probability: NDArray[np.float64], radius: float
) -> NDArray[np.float64]:
    """The expected share of slots in which no located user reaches a place: (n_places,).

    A user reaches a place with a probability equal to the share of its region within the radius. Users whom no monitor
    hears are unknown, so the true share can only be smaller.

    >>> here = Region(np.array([[0.0, 0.0]]), 1.0, 0)
    >>> free_share(np.array([[10.0, 0.0], [500.0, 0.0]]), [here], np.array([0.2]), 100.0)
    array([0.8, 1. ])
    """
    free = np.ones(len(places))
    for region, p in zip(regions, probability, strict=True):
        free *= 1 - p * within(places, region.points, radius).mean(axis=1)
    return free


def quiet_share(model: OrMixture) -> NDArray[np.float64]:
    """The share of slots in which no source reaches each monitor: (n_sensors,).

    >>> quiet_share(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]))
    array([0.4, 0.5])
    >>> quiet_share(OrMixture([[1, 1], [0, 1]], [0.2, 0.5], reach=[[1, 0.5], [0, 1]]))
    array([0.6, 0.5])
    """
    if model.lossy_reach is not None:
        return np.asarray((1 - model.lossy_reach * model.probability).prod(axis=1))
    return np.asarray(np.where(model.mixing, 1 - model.probability, 1.0).prod(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class PlacedUsers:
    """The sources of a model as users of a field."""

    field: Field
    model: OrMixture  # its sensors are monitors of the field, perhaps not all of them
    regions: tuple[Region, ...]  # one per source

    @staticmethod
    def of(model: OrMixture, field: Field) -> PlacedUsers:
        """Locate every source of the model, using only the monitors that the model knows.

        >>> model = OrMixture([[1], [1], [0]], [0.1], sensors=["m1", "m2", "m3"])
        >>> placed = PlacedUsers.of(model, Field([[100, 100], [200, 100], [400, 400]]))
        >>> placed.regions[0].centre.round()
        array([150., 102.])
        """
        places = dict(zip(field.monitor_names, field.monitors, strict=True))
        for name in model.sensors:
            if name not in places:
                raise DataError(f"the field has no monitor {name!r}; there are {', '.join(field.monitor_names)}")
        known = Field(
            [places[name] for name in model.sensors],
            field.users,
            side=field.side,
            propagation=field.propagation,
            monitor_names=model.sensors,
            corner=field.corner,
        )
        return PlacedUsers(known, model, tuple(locate(known, column) for column in model.reach.T))

    def busy(self, n_steps: int) -> NDArray[np.float64]:
        """The expected share of slots in which each square of the field is reached: (n_steps, n_steps)."""
        places, radius = grid_of(self.field, n_steps), self.field.propagation.radius
        return (1 - free_share(places, self.regions, self.model.probability, radius)).reshape(n_steps, n_steps)

    def quiet(self) -> NDArray[np.float64]:
        """The share of slots in which each monitor hears nobody."""
        return quiet_share(self.model)
