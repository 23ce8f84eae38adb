"""Which found source stands for which true one, so that people can see both side by side."""

from __future__ import annotations

from dataclasses import dataclass

from bica.metrics import match_columns
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

    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> paired_sources(truth.pick([1]), truth)
    [Pair(true=0, found=None, exact=False), Pair(true=1, found=0, exact=True)]
    """
    seen = aligned(found, truth)
    match = match_columns(seen.mixing, truth.mixing, seen.probability)
    columns = zip(match.order.tolist(), match.mixing.T, truth.mixing.T, strict=True)
    pairs = [
        Pair(j, k if (seen_there & there).any() else None, bool((seen_there == there).all()))
        for j, (k, seen_there, there) in enumerate(columns)
    ]
    spurious = sorted(set(range(found.n_sources)) - {pair.found for pair in pairs})
    return pairs + [Pair(None, k, False) for k in spurious]
