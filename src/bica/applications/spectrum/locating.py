"""Where a user is, roughly: near every monitor that hears it, and away from those that do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.applications.spectrum.field import Field
from bica.applications.spectrum.propagation import within

STEPS = 100  # of the grid along a side
Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """All places of the field that fit what was heard, on a grid."""

    points: Points  # (n_points, 2)
    cell: float  # square metres that a point stands for
    n_contradictions: int  # monitors that should hear a user at these places and do not, or the other way round

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


def locate(field: Field, heard_by: NDArray[np.bool_], n_steps: int = STEPS) -> Region:
    """Where on the field a user is whom just these monitors hear: (n_monitors,).

    Where no place fits, those are taken that contradict the fewest monitors. Time and memory go with the grid's
    points times monitors.

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
    """The middles of so many by so many squares that make up the field: (n_steps², 2)."""
    middles = (np.arange(n_steps) + 0.5) * field.side / n_steps
    x, y = np.meshgrid(middles, middles)
    return np.stack([x.ravel(), y.ravel()], axis=1) + field.corner
