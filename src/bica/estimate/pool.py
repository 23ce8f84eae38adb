"""Candidate sources of a wide table: which blocks found each, and at what rate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Column = tuple[int, ...]  # the sensors of a source, rising


@dataclass(frozen=True, slots=True)
class Estimate:
    """The rate of a source, -log(1 - probability), with its standard error."""

    rate: float
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Sources by their columns, with a list of those that reach each sensor."""

    sources: Mapping[Column, Estimate]
    reaching: Mapping[int, list[Column]] = field(init=False)

    def __post_init__(self) -> None:
        reaching: dict[int, list[Column]] = defaultdict(list)
        for column in self.sources:
            for sensor in column:
                reaching[sensor].append(column)
        object.__setattr__(self, "reaching", dict(reaching))

    def touching(self, sensors: Iterable[int]) -> list[Column]:
        """The sources that reach any of these sensors, each once."""
        return list(dict.fromkeys(column for sensor in sensors for column in self.reaching.get(sensor, ())))

    def seen_by(self, sensors: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """What a block sees of the pool: bit sets over its sensors, rising, and their rates; equal ones add up.

        >>> pool = Pool({(0, 1): Estimate(0.1, 0.0), (1, 2): Estimate(0.2, 0.0)})
        >>> [part.tolist() for part in pool.seen_by(np.array([0, 2]))]
        [[1, 2], [0.1, 0.2]]
        """
        place = {sensor: 1 << bit for bit, sensor in enumerate(sensors.tolist())}
        rates: dict[int, float] = defaultdict(float)
        for column in self.touching(place):
            rates[sum(place.get(sensor, 0) for sensor in column)] += self.sources[column].rate
        masks = sorted(rates)
        return np.array(masks, np.int64), np.array([rates[mask] for mask in masks], float)
