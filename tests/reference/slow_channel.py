"""Sensor noise as it is defined: the chance to see ``shown`` where ``there`` is, sensor by sensor."""

from math import prod

Table = list[float]


def chance(shown: int, there: int, false_alarm: Table, miss: Table) -> float:
    def of_sensor(i: int) -> float:
        wrong = miss[i] if there >> i & 1 else false_alarm[i]
        return wrong if (shown ^ there) >> i & 1 else 1 - wrong

    return prod(of_sensor(i) for i in range(len(miss)))


def channel(values: Table, false_alarm: Table, miss: Table) -> Table:
    size = len(values)
    return [sum(chance(o, x, false_alarm, miss) * values[x] for x in range(size)) for o in range(size)]


def channel_transposed(values: Table, false_alarm: Table, miss: Table) -> Table:
    size = len(values)
    return [sum(chance(o, x, false_alarm, miss) * values[o] for o in range(size)) for x in range(size)]
