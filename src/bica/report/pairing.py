"""Which found source stands for which true one, so that people can see both side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from bica.errors import ModelError
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True)
class Pair:
    """A true source and the found one that stands for it; either may be missing."""

    true: int | None
    found: int | None
    exact: bool  # both reach the same sensors


def paired_sources(found: OrMixture, truth: OrMixture) -> list[Pair]:
    """True sources in their order, then the found ones that stand for none; a pair shares at least one sensor.

    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> paired_sources(truth.pick([1]), truth)
    [Pair(true=0, found=None, exact=False), Pair(true=1, found=0, exact=True)]
    """
    found = aligned(found, truth)
    partner = _partners(found.mixing, truth.mixing)
    pairs = [Pair(j, k, _same(found, k, truth, j)) for j, k in ((j, partner.get(j)) for j in range(truth.n_sources))]
    spurious = sorted(set(range(found.n_sources)) - set(partner.values()))
    return pairs + [Pair(None, k, False) for k in spurious]


def aligned(found: OrMixture, truth: OrMixture) -> OrMixture:
    """The found model with its sensors in the order of the true ones; both must name the same sensors."""
    if set(found.sensors) != set(truth.sensors):
        strange = sorted(set(found.sensors) ^ set(truth.sensors))[0]
        raise ModelError(f"the two models watch different sensors: only one of them has {strange!r}")
    place = {name: i for i, name in enumerate(found.sensors)}
    return found.of_sensors([place[name] for name in truth.sensors])


def _partners(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> dict[int, int]:
    """The assignment with the fewest differing cells, without pairs that have nothing in common."""
    shared = truth.T.astype(int) @ found
    differing = truth.sum(axis=0)[:, None] + found.sum(axis=0) - 2 * shared
    left, right = linear_sum_assignment(differing)
    return {int(j): int(k) for j, k in zip(left, right, strict=True) if shared[j, k]}


def _same(found: OrMixture, k: int | None, truth: OrMixture, j: int) -> bool:
    return k is not None and bool(np.array_equal(found.mixing[:, k], truth.mixing[:, j]))
