"""Hidden states of a row from the definition: all activities of the sources, with the probability of what they show."""

from collections import defaultdict
from itertools import product
from math import log, prod

Source = tuple[frozenset[int], float]  # its sensors, its probability
Row = tuple[int | None, ...]  # a cell for every sensor; None was not observed


def unions(sources: list[Source]) -> dict[frozenset[int], float]:
    """The probability of every set of sensors that the active sources reach together."""
    total: dict[frozenset[int], float] = defaultdict(float)
    for activity in product((False, True), repeat=len(sources)):
        reached = frozenset().union(*(sensors for on, (sensors, _) in zip(activity, sources, strict=True) if on))
        total[reached] += prod(p if on else 1 - p for on, (_, p) in zip(activity, sources, strict=True))
    return total


def shown(row: Row, hidden: frozenset[int], false_alarm: list[float], miss: list[float]) -> float:
    """The probability that sensors that err show this row when ``hidden`` is there."""
    total = 1.0
    for sensor, cell in enumerate(row):
        if cell is not None:
            error = miss[sensor] if sensor in hidden else false_alarm[sensor]
            total *= 1 - error if cell == (sensor in hidden) else error
    return total


def chance(row: Row, sources: list[Source], false_alarm: list[float], miss: list[float]) -> float:
    """The probability of the row."""
    return sum(p * shown(row, hidden, false_alarm, miss) for hidden, p in unions(sources).items())


def chance_with(
    row: Row, new: frozenset[int], sources: list[Source], false_alarm: list[float], miss: list[float]
) -> float:
    """The probability of the row when one more source is on."""
    return sum(p * shown(row, hidden | new, false_alarm, miss) for hidden, p in unions(sources).items())


def states(row: Row, sources: list[Source], false_alarm: list[float], miss: list[float]) -> dict[frozenset[int], float]:
    """Unions as far as they are observed, with their probability and what they show too much against the row.

    The weight is relative to a row without errors, and leaves out the cells of the row that the union does not reach.
    """
    seen = {sensor for sensor, cell in enumerate(row) if cell is not None}
    total: dict[frozenset[int], float] = defaultdict(float)
    for hidden, p in unions(sources).items():
        total[hidden & seen] += p
    return {
        hidden: p * prod(miss[i] / (1 - false_alarm[i]) for i in hidden if row[i] == 0) for hidden, p in total.items()
    }


def wrong(row: Row, sensor: int, sources: list[Source], false_alarm: list[float], miss: list[float]) -> float:
    """The probability, given the row, that this cell is not what is there."""
    terms = [(hidden, p * shown(row, hidden, false_alarm, miss)) for hidden, p in unions(sources).items()]
    return sum(term for hidden, term in terms if row[sensor] != (sensor in hidden)) / sum(term for _, term in terms)


def gain(
    rows: list[Row],
    weights: list[float],
    new: Source,
    sources: list[Source],
    false_alarm: list[float],
    miss: list[float],
) -> float:
    """By how much one more source of this probability raises the log-likelihood of all rows."""
    total = 0.0
    for row, weight in zip(rows, weights, strict=True):
        after = chance(row, [*sources, new], false_alarm, miss)
        total += weight * log(after / chance(row, sources, false_alarm, miss))
    return total
