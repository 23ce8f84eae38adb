"""Which found source stands for which true one, so that both can be shown side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from bica.metrics.matching import aligned, matching_cost
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True)
class Pair:
    """A true source and the found one that stands for it; either may be missing."""

    true: int | None
    found: int | None
    exact: bool  # both reach the same sensors


def paired_sources(found: OrMixture, truth: OrMixture) -> list[Pair]:
    """True sources in their order, then the found ones that stand for none; a pair shares at least one sensor.

    Equal sources are paired first, then those with the fewest wrong cells. The published matching (``match_columns``)
    prefers to leave over narrow sources and may pair a true source with a wide wrong one although an equal one exists.

    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> paired_sources(truth.pick([1]), truth)
    [Pair(true=0, found=None, exact=False), Pair(true=1, found=0, exact=True)]
    """
    ordered = aligned(found, truth)
    equal = _equal_sources(ordered, truth)
    partner = equal | _similar_sources(ordered, truth, equal)
    pairs = [Pair(j, partner.get(j), j in equal) for j in range(truth.n_sources)]
    return pairs + [Pair(None, k, False) for k in range(ordered.n_sources) if k not in set(partner.values())]


def _equal_sources(found: OrMixture, truth: OrMixture) -> dict[int, int]:
    """The found source with exactly the sensors of each true one, where there is one."""
    place = {column.tobytes(): k for k, column in enumerate(found.columns)}
    wanted = [column.tobytes() for column in truth.columns]
    return {j: place[column] for j, column in enumerate(wanted) if column in place}


def _similar_sources(found: OrMixture, truth: OrMixture, equal: dict[int, int]) -> dict[int, int]:
    """Pairs of the sources without an equal one, with the fewest wrong cells in all; they share at least one sensor."""
    true_left = np.array([j for j in range(truth.n_sources) if j not in equal], dtype=int)
    found_left = np.array([k for k in range(found.n_sources) if k not in set(equal.values())], dtype=int)
    cost = matching_cost(found.mixing[:, found_left], truth.mixing[:, true_left])[: true_left.size, : found_left.size]
    chosen = zip(*linear_sum_assignment(cost), strict=True)
    pairs = [(int(true_left[j]), int(found_left[k])) for j, k in chosen]
    return {j: k for j, k in pairs if (found.mixing[:, k] & truth.mixing[:, j]).any()}
