"""A model on a field: every source with the region it must be in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.applications.spectrum.field import Field
from bica.applications.spectrum.holes import free_share, quiet_share
from bica.applications.spectrum.locating import Region, grid_of, locate
from bica.errors import DataError
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True, eq=False)
class PlacedUsers:
    """The sources of a model as users of a field."""

    field: Field
    model: OrMixture  # its sensors are monitors of the field, perhaps not all of them
    regions: tuple[Region, ...]  # one a source

    @staticmethod
    def of(model: OrMixture, field: Field) -> PlacedUsers:
        """Locate every source; monitors that the model does not know tell nothing.

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
