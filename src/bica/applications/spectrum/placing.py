"""A model on a field: where each user must be, and how often the spectrum is free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.applications.spectrum.field import Field, within
from bica.errors import DataError
from bica.model.or_mixture import OrMixture

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


def locate(field: Field, heard_by: NDArray[np.bool_], n_steps: int = GRID_STEPS) -> Region:
    """Where on the field a user can be whom exactly the monitors in ``heard_by`` (n_monitors,) hear.

    If no place fits, those that contradict the fewest monitors are taken. Time and memory grow with the grid's points
    times monitors.

    >>> field = Field([[100, 100], [200, 100], [400, 400]])
    >>> region = locate(field, np.array([True, True, False]))
    >>> region.centre.round(), round(region.spread), region.n_contradictions
    (array([150., 102.]), 65, 0)
    """
    points = grid_of(field, n_steps)
    wrong = (within(points, field.monitors, field.propagation.radius) != heard_by).sum(axis=1)
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
        return PlacedUsers(known, model, tuple(locate(known, column) for column in model.mixing.T))

    def busy(self, n_steps: int) -> NDArray[np.float64]:
        """The expected share of slots in which each square of the field is reached: (n_steps, n_steps)."""
        places, radius = grid_of(self.field, n_steps), self.field.propagation.radius
        return (1 - free_share(places, self.regions, self.model.probability, radius)).reshape(n_steps, n_steps)

    def quiet(self) -> NDArray[np.float64]:
        """The share of slots in which each monitor hears nobody."""
        return quiet_share(self.model)
