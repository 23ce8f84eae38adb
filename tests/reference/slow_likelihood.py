"""The likelihood of an OR mixture, by going through all activities of its sources and all errors of its sensors."""

from itertools import product
from math import inf, log, prod

Source = tuple[int, float]  # the bit set of its sensors, its probability
Row = tuple[int | None, ...]  # a cell a sensor; None was not observed


def chance(row: Row, sources: list[Source], false_alarm: list[float], miss: list[float]) -> float:
    """The chance of one row: the sum over all that can happen and looks like it."""
    total = 0.0
    for activity in product((False, True), repeat=len(sources)):
        weight = prod(p if on else 1 - p for on, (_, p) in zip(activity, sources, strict=True))
        there = [any(on and g >> i & 1 for on, (g, _) in zip(activity, sources, strict=True)) for i in range(len(row))]
        for wrong in product((False, True), repeat=len(row)):
            shown = [t != w for t, w in zip(there, wrong, strict=True)]
            if all(cell is None or bool(cell) == s for cell, s in zip(row, shown, strict=True)):
                rates = [b if t else a for t, a, b in zip(there, false_alarm, miss, strict=True)]
                total += weight * prod(r if w else 1 - r for r, w in zip(rates, wrong, strict=True))
    return total


def log_likelihood(
    rows: list[Row], weights: list[float], sources: list[Source], false_alarm: list[float], miss: list[float]
) -> float:
    """Of all rows together; minus infinity if one is impossible."""
    chances = [chance(row, sources, false_alarm, miss) for row in rows]
    return sum(w * log(c) if c > 0 else -inf for w, c in zip(weights, chances, strict=True))
