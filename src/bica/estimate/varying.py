"""The sensors of a table that vary, and the way back to the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.estimate.prior_knowledge import KnownSource, bit_set
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True, eq=False)
class Varying:
    """A table without the sensors that never change: their sources are plain, and logarithms of 0 help nobody."""

    whole: PatternCounts
    data: PatternCounts  # the sensors that vary
    places: NDArray[np.int64]  # where they stand in the whole table
    always: NDArray[np.int64]  # sensors of the whole table that are always on
    known: Sequence[KnownSource]
    forbidden: tuple[tuple[str, ...], ...]  # as far as all their sensors vary

    @classmethod
    def of(
        cls, whole: PatternCounts, known: Sequence[KnownSource], forbidden: Sequence[str | Sequence[str]]
    ) -> Varying:
        """Split the table, and check that what the user knows is about its sensors."""
        ones, seen = whole.ones(), whole.times_seen()
        places = np.flatnonzero((ones > 0) & (ones < seen))
        data = whole.project(places.tolist()) if places.size < whole.n_sensors else whole
        for names in forbidden:
            bit_set(names, whole.sensors, "forbidden")
        _check_known(known, whole, data.sensors, ones)
        varying = set(data.sensors)
        inside = tuple(tuple(names) for names in forbidden if set(names) <= varying)
        return cls(whole, data, places, np.flatnonzero((ones >= seen) & (ones > 0)), known, inside)

    def model(
        self, mixing: NDArray[np.bool_], probability: NDArray[np.float64], error: NDArray[np.float64], noise: Noise
    ) -> tuple[OrMixture, NDArray[np.float64]]:
        """The model of all sensors with its errors, from that of those that vary; the known sources come first.

        A sensor that is always on has a source of its own, always on. The sources are put in order.
        """
        n_sources, n_always = probability.size, self.always.size
        whole = np.zeros((self.whole.n_sensors, n_sources + n_always), dtype=bool)
        whole[self.places, :n_sources] = mixing
        for column, source in enumerate(self.known):  # they may reach constant sensors
            whole[:, column] = np.isin(self.whole.sensors, source.sensors)
        whole[self.always, np.arange(n_sources, n_sources + n_always)] = True
        names = [source.name for source in self.known]
        names += [None] * (n_sources + n_always - len(names))
        every = np.concatenate([probability, np.ones(n_always)])
        model = OrMixture(whole, every, noise, sensors=self.whole.sensors, names=names)
        order = model.order()
        return model.pick(order), np.concatenate([error, np.zeros(n_always)])[order]


def _check_known(
    known: Sequence[KnownSource], whole: PatternCounts, varying: tuple[str, ...], ones: NDArray[np.float64]
) -> None:
    silent = {sensor for sensor, count in zip(whole.sensors, ones, strict=True) if not count}
    for source in known:
        bit_set(source.sensors, whole.sensors, "known")
        for sensor in source.sensors:
            if sensor in silent:
                raise SettingError(
                    f"a known source switches on {sensor!r}, which is never on in the table; leave it out"
                )
        if not set(source.sensors) & set(varying):
            raise SettingError(
                f"the known source of {', '.join(map(repr, source.sensors))} reaches only sensors that are always on, "
                "so nothing can be learned about it; leave it out"
            )
