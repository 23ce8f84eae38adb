"""What the user knows in advance: sources, and what may not be a source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.errors import SettingError


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A source that is there: which sensors it switches on, and how often it is on where that is known too.

    >>> KnownSource(["door", "window"], probability=0.1, name="burglar").sensors
    ('door', 'window')
    """

    sensors: tuple[str, ...]
    probability: float | None = None
    name: str | None = None

    def __init__(self, sensors: Iterable[str], probability: float | None = None, name: str | None = None) -> None:
        object.__setattr__(self, "sensors", (sensors,) if isinstance(sensors, str) else tuple(sensors))
        object.__setattr__(self, "probability", probability)
        object.__setattr__(self, "name", name)
        if not self.sensors:
            raise SettingError("a known source needs at least one sensor")
        if probability is not None and not (isinstance(probability, Real) and 0 < probability < 1):
            raise SettingError(f"the probability of a known source must lie in (0, 1), but {probability!r} was given")

    @classmethod
    def of(cls, given: Any) -> KnownSource:
        """A known source as it is, or from a mapping or a tuple of its sensors, its probability and its name.

        >>> KnownSource.of((["door", "window"], 0.1))
        KnownSource(sensors=('door', 'window'), probability=0.1, name=None)
        >>> KnownSource.of({"sensors": ["door"], "name": "cat"})
        KnownSource(sensors=('door',), probability=None, name='cat')
        """
        if isinstance(given, KnownSource):
            return given
        try:
            return cls(**given) if isinstance(given, Mapping) else cls(*given)
        except TypeError:
            raise SettingError(
                f"{given!r} is no known source; give KnownSource(sensors), (sensors, probability) or a mapping"
            ) from None


def known_sources(given: Iterable[Any]) -> tuple[KnownSource, ...]:
    """All that are known, no two with the same sensors."""
    known = tuple(map(KnownSource.of, given))
    columns = [frozenset(source.sensors) for source in known]
    for place, source in enumerate(known):
        if columns[place] in columns[:place]:
            raise SettingError(
                f"two known sources have the same sensors, {', '.join(source.sensors)}; give one of them"
            )
    return known


def forbidden_sets(given: Iterable[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Sets of sensors; a name alone is a set of one."""
    return tuple((names,) if isinstance(names, str) else tuple(names) for names in given)


def bit_set(names: Iterable[str], sensors: Sequence[str], what: str) -> int:
    """The sensors of these names as a bit set.

    >>> bit_set(["c", "a"], ["a", "b", "c"], "example")
    5
    """
    place = {name: i for i, name in enumerate(sensors)}
    unknown = [name for name in names if name not in place]
    if unknown:
        raise SettingError(f"{what} names the sensor {unknown[0]!r}, which the table does not have")
    return sum(1 << place[name] for name in set(names))


def allowed_sets(forbidden: Iterable[Sequence[str]], sensors: Sequence[str]) -> NDArray[np.bool_]:
    """Which of the 2^n_sensors sets may be an unknown source: none that contains a forbidden set."""
    sets = np.arange(2 ** len(sensors))
    allowed = sets > 0
    for names in forbidden:
        together = bit_set(names, sensors, "forbidden")
        allowed &= sets & together != together
    return allowed
