"""The two sides of a measure, checked at the door."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.errors import BicaError, ModelError
from bica.model.or_mixture import OrMixture, default_sensors


def mixing_pair(found: ArrayLike, truth: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Two mixing matrices of the same sensors, each (n_sensors, its n_sources)."""
    left, right = binary_table(found, "the found mixing"), binary_table(truth, "the true mixing")
    if len(left) != len(right):
        raise ModelError(
            f"the found mixing has {len(left)} sensors and the true one {len(right)}; "
            "compare models of the same sensors"
        )
    return left, right


def binary_table(values: ArrayLike, what: str, error: type[BicaError] = ModelError) -> NDArray[np.bool_]:
    """A two-dimensional array of zeros and ones, as booleans."""
    table = np.asarray(values)
    if table.ndim != 2:
        raise error(f"{what} has {table.ndim} dimensions; it needs two")
    if table.dtype != bool and not ((table == 0) | (table == 1)).all():
        raise error(f"{what} may hold 0 and 1 only")
    return table.astype(bool)


def probabilities(values: ArrayLike, n_sources: int, what: str) -> NDArray[np.float64]:
    """One probability a source."""
    chance = np.asarray(values, dtype=float)
    if chance.shape != (n_sources,):
        raise ModelError(f"{what} has shape {chance.shape}, but there are {n_sources} sources; give one value for each")
    if not ((chance >= 0) & (chance <= 1)).all():
        raise ModelError(f"{what} must lie in [0, 1]")
    return chance


def aligned(found: OrMixture, truth: OrMixture) -> OrMixture:
    """``found`` with its sensors in the order of ``truth``.

    Sensors are matched by name; where one side never had names of its own (x0, x1, ...), by place.

    >>> found = OrMixture([[1], [0]], [0.3], sensors=["door", "window"])
    >>> truth = OrMixture([[1], [1]], [0.3], sensors=["window", "door"])
    >>> aligned(found, truth).mixing.ravel()
    array([False,  True])
    """
    if set(found.sensors) == set(truth.sensors):
        place = {name: i for i, name in enumerate(found.sensors)}
        return found.of_sensors([place[name] for name in truth.sensors])
    if _may_go_by_place(found.sensors, truth.sensors):
        return found
    only = sorted(set(found.sensors) ^ set(truth.sensors))
    raise ModelError(
        f"the found model has {found.n_sensors} sensors and the true one {truth.n_sensors}, and {only[0]!r} is in one "
        "of them only; compare models of the same sensors"
    )


def _may_go_by_place(found: tuple[str, ...], truth: tuple[str, ...]) -> bool:
    """Names in common would say that the sensors are others, not that one side has no names."""
    unnamed = default_sensors(len(found))
    return len(found) == len(truth) and unnamed in (found, truth) and set(found).isdisjoint(truth)
