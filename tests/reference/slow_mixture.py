"""The rows of an OR mixture, by going through all 2^n activities of its n sources."""

from itertools import product
from math import prod

from tests.reference import slow_channel


def pattern_probability(sources: list[tuple[int, float]], n_sensors: int) -> list[float]:
    """The chance of every noise-free row; a source is the bit set of its sensors and its probability."""
    table = [0.0] * 2**n_sensors
    for activity in product((False, True), repeat=len(sources)):
        row = 0
        for on, (sensors, _) in zip(activity, sources, strict=True):
            row |= sensors if on else 0
        table[row] += prod(p if on else 1 - p for on, (_, p) in zip(activity, sources, strict=True))
    return table


def shown_probability(sources: list[tuple[int, float]], false_alarm: list[float], miss: list[float]) -> list[float]:
    """The chance of every row as noisy sensors show it."""
    return slow_channel.channel(pattern_probability(sources, len(miss)), false_alarm, miss)


def row_probability(table: list[float], cells: list[bool | None]) -> float:
    """The chance of one row, from the table of all rows; None is a cell that was not observed."""
    return sum(
        chance
        for row, chance in enumerate(table)
        if all(cell is None or bool(row >> i & 1) == cell for i, cell in enumerate(cells))
    )
