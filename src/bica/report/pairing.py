"""Which found source stands for which true one, so that people can see both side by side."""

from __future__ import annotations

from dataclasses import dataclass

from bica.metrics import match_columns
from bica.metrics.matching import NONE
from bica.metrics.pairs import aligned
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True)
class Pair:
    """A true source and the found one that stands for it; either may be missing."""

    true: int | None
    found: int | None
    exact: bool  # both reach the same sensors


def paired_sources(found: OrMixture, truth: OrMixture) -> list[Pair]:
    """True sources in their order, then the found ones that stand for none; a pair shares at least one sensor.

    Equal sources come first. The published matching alone may give a true source to a wide wrong one instead, since it
    would rather leave narrow columns over than wide ones.

    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> paired_sources(truth.pick([1]), truth)
    [Pair(true=0, found=None, exact=False), Pair(true=1, found=0, exact=True)]
    """
    seen = aligned(found, truth)
    partner = _equal_sources(seen, truth)
    true_left = [j for j in range(truth.n_sources) if j not in partner]
    found_left = [k for k in range(seen.n_sources) if k not in partner.values()]
    match = match_columns(seen.mixing[:, found_left], truth.mixing[:, true_left], seen.probability[found_left])
    for j, k in zip(true_left, match.order.tolist(), strict=True):
        if k != NONE and (seen.mixing[:, found_left[k]] & truth.mixing[:, j]).any():
            partner[j] = found_left[k]
    pairs = [Pair(j, partner.get(j), j in partner and j not in true_left) for j in range(truth.n_sources)]
    return pairs + [Pair(None, k, False) for k in found_left if k not in partner.values()]


def _equal_sources(found: OrMixture, truth: OrMixture) -> dict[int, int]:
    """The found source with the very sensors of each true one, where there is one."""
    place = {column.tobytes(): k for k, column in enumerate(found.columns)}
    equal = {j: place.get(column.tobytes()) for j, column in enumerate(truth.columns)}
    return {j: k for j, k in equal.items() if k is not None}
