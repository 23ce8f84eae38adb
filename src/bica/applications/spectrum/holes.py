"""Spectrum holes: how often nobody is heard, at any place and at the monitors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bica.applications.spectrum.locating import Points, Region
from bica.applications.spectrum.propagation import within
from bica.model.or_mixture import OrMixture


def free_share(
    places: Points, regions: Sequence[Region], probability: NDArray[np.float64], radius: float
) -> NDArray[np.float64]:
    """The expected share of slots in which no located user reaches a place: (n_places,).

    A user reaches a place with the share of its region that lies within the radius. Users whom no monitor hears are
    not known, so the true share can only be smaller.

    >>> here = Region(np.array([[0.0, 0.0]]), 1.0, 0)
    >>> free_share(np.array([[10.0, 0.0], [500.0, 0.0]]), [here], np.array([0.2]), 100.0)
    array([0.8, 1. ])
    """
    free = np.ones(len(places))
    for region, chance in zip(regions, probability, strict=True):
        free *= 1 - chance * within(places, region.points, radius).mean(axis=1)
    return free


def quiet_share(model: OrMixture) -> NDArray[np.float64]:
    """The share of slots in which no source reaches each monitor: (n_sensors,).

    >>> quiet_share(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]))
    array([0.4, 0.5])
    """
    return np.asarray(np.where(model.mixing, 1 - model.probability, 1.0).prod(axis=1))
