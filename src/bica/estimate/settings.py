"""The settings of a method, what the user knows in advance, and the sensors of the table that vary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.observations import Observations
from bica.errors import LimitError, SettingError
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture, in_order
from bica.progress import checked_n_jobs, checked_time_limit

MOST_EDGES = 200_000_000  # sensors times sources, a byte each; copies take several times that


def check_size(n_sensors: int, n_sources: int) -> None:
    """Refuse a model that would fill the memory, as where most of a hundred thousand sensors are always on."""
    if n_sensors * n_sources > MOST_EDGES:
        raise LimitError(
            f"{n_sources} sources behind {n_sensors} sensors are more than a model holds; sensors that are always on "
            "have a source each: leave them out with `drop`"
        )


Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

WORD = 64  # sensors of a bit set


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A source known to be there: the sensors that it switches on and, if known, its probability and its name.

    ``reach`` says how often it switches on each of them while it is active, as one number or one per sensor.

    >>> KnownSource(["door", "window"], probability=0.1, name="burglar").sensors
    ('door', 'window')
    >>> KnownSource(["door", "window"], reach=0.9).reach
    (0.9, 0.9)
    """

    sensors: tuple[str, ...]
    probability: float | None = None
    name: str | None = None
    reach: tuple[float, ...] | None = None

    def __init__(
        self,
        sensors: Iterable[str],
        probability: float | None = None,
        name: str | None = None,
        reach: float | Sequence[float] | None = None,
    ) -> None:
        object.__setattr__(self, "sensors", (sensors,) if isinstance(sensors, str) else tuple(sensors))
        object.__setattr__(self, "probability", probability)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "reach", None if reach is None else _one_per_sensor(reach, len(self.sensors)))
        if not self.sensors:
            raise SettingError("a known source needs at least one sensor")
        if probability is not None and not (isinstance(probability, Real) and 0 < probability < 1):
            raise SettingError(f"the probability of a known source must lie in (0, 1), but {probability!r} was given")

    @classmethod
    def of(cls, given: Any) -> KnownSource:
        """A known source: given as one, or as a mapping or tuple of its sensors, its probability and its name.

        >>> KnownSource.of((["door", "window"], 0.1))
        KnownSource(sensors=('door', 'window'), probability=0.1, name=None, reach=None)
        >>> KnownSource.of({"sensors": ["door"], "name": "cat"})
        KnownSource(sensors=('door',), probability=None, name='cat', reach=None)
        """
        if isinstance(given, KnownSource):
            return given
        try:
            return cls(**given) if isinstance(given, Mapping) else cls(*given)
        except TypeError:
            raise SettingError(
                f"{given!r} is not a known source; give KnownSource(sensors), (sensors, probability) or a mapping"
            ) from None


def _one_per_sensor(reach: Any, n_sensors: int) -> tuple[float, ...]:
    values = (reach,) * n_sensors if isinstance(reach, Real) else tuple(reach)
    if len(values) != n_sensors or not all(isinstance(value, Real) and 0 < float(value) <= 1 for value in values):
        raise SettingError(
            f"the reach of a known source is one number in (0, 1], or one for each of its {n_sensors} sensors, "
            f"but {reach!r} was given"
        )
    return tuple(float(value) for value in values)


def known_sources(given: Iterable[Any]) -> tuple[KnownSource, ...]:
    """The known sources, of which no two have the same sensors."""
    known = tuple(map(KnownSource.of, given))
    columns = [frozenset(source.sensors) for source in known]
    for place, source in enumerate(known):
        if columns[place] in columns[:place]:
            raise SettingError(
                f"two known sources have the same sensors, {', '.join(source.sensors)}; give one of them"
            )
    return known


def forbidden_sets(given: Iterable[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Sets of sensors; a single name is a set of one."""
    return tuple((names,) if isinstance(names, str) else tuple(names) for names in given)


def bit_set(names: Iterable[str], sensors: Sequence[str], what: str) -> int:
    """The sensors with these names as a bit set; ``what`` names the setting in errors.

    >>> bit_set(["c", "a"], ["a", "b", "c"], "example")
    5
    """
    place = {name: i for i, name in enumerate(sensors)}
    unknown = [name for name in names if name not in place]
    if unknown:
        raise SettingError(f"{what} names the sensor {unknown[0]!r}, which the table does not have")
    return sum(1 << place[name] for name in set(names))


def as_sets(columns: Iterable[Iterable[int]]) -> NDArray[np.int64]:
    """Columns, each the numbers of its sensors, as bit sets of up to 64 sensors; that of sensor 63 is negative.

    >>> as_sets([(0, 2), (63,)]).tolist()
    [5, -9223372036854775808]
    """
    return np.array([sum(1 << sensor for sensor in column) for column in columns], np.uint64).view(np.int64)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Noise, prior knowledge and a least probability, checked.

    >>> Settings(forbidden=["door", ("door", "window")]).forbidden
    (('door',), ('door', 'window'))
    """

    noise: Noise | Literal["auto", "estimate", "two-rates", "per-sensor"] = "estimate"  # one flip rate for all sensors
    min_probability: float | None = None  # rarer sources are dropped; None leaves the choice to the likelihood
    known: Sequence[KnownSource] = ()  # tuples and mappings are accepted, too
    forbidden: Sequence[str | Sequence[str]] = ()  # sensors that are never all driven by one unknown source
    prior: tuple[float, float] | None = None  # a Beta prior on every probability
    n_sources: int | None = None  # how many there are, where that is known; None leaves the choice to the likelihood
    edges: Literal["auto", "sure", "lossy"] = "sure"  # whether a source always switches its sensors on; auto: compared
    n_jobs: int | None = None  # threads for tables of many sensors, counted as scikit-learn does
    time_limit: float | None = None  # seconds after which the best model so far is the answer, marked as such
    start: OrMixture | None = field(default=None, compare=False, repr=False)  # an earlier model, to search from

    def __post_init__(self) -> None:
        if self.min_probability is not None and not 0 <= self.min_probability < 1:
            raise SettingError(f"min_probability must lie in [0, 1), but {self.min_probability:g} was given")
        if self.prior is not None and not (len(self.prior) == 2 and min(self.prior) >= 1):
            raise SettingError(
                f"a Beta prior is two numbers of at least 1 (they count rows), but {self.prior} was given"
            )
        if self.n_sources is not None and not (isinstance(self.n_sources, int) and self.n_sources >= 1):
            raise SettingError(f"n_sources must be a whole number from 1 on, but {self.n_sources!r} was given")
        if self.edges not in ("auto", "sure", "lossy"):
            raise SettingError(f"edges is {self.edges!r}; it can be 'auto', 'sure' or 'lossy'")
        object.__setattr__(self, "known", known_sources(self.known))
        if self.n_sources is not None and self.n_sources < len(self.known):
            raise SettingError(f"{len(self.known)} sources are known, more than n_sources = {self.n_sources}")
        object.__setattr__(self, "forbidden", forbidden_sets(self.forbidden))
        checked_n_jobs(self.n_jobs)
        checked_time_limit(self.time_limit)

    def edges_to_learn(self) -> str:
        """The edges that were asked for: "sure", "lossy", or "auto" where both may be compared.

        Misses and lossy edges explain nearly the same, so they are never estimated together: where the noise was given
        or a kind of it asked for, "auto" means sure edges; so it does where the number of sources was given.
        """
        given = [source for source in self.known if source.reach is not None]
        if given and self.edges == "sure":
            raise SettingError("a known source has a reach, but the edges are to be sure; leave out one of them")
        if self.edges == "sure":
            return "sure"
        if self.noise == "auto" and self.prior is None and self.n_sources is None:
            return "lossy" if given else self.edges
        if self.edges == "lossy" or given:
            raise SettingError(
                "lossy edges come with a false-alarm rate of every sensor, without a prior or a number of sources; "
                "leave these out, and the noise, or ask for sure edges"
            )
        return "sure"


def columns_of(model: OrMixture | None, sensors: Sequence[str]) -> dict[tuple[int, ...], float]:
    """The rates of the sources of an earlier model, cut down to these sensors; those that become equal add up.

    Nothing where its edges are lossy: such sources are learned in another way, and anew.

    >>> columns_of(OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["door", "window"]), ["window"])
    {(0,): 0.6931471805599453}
    """
    if model is None or model.has_lossy_edges:
        return {}
    place = {name: number for number, name in enumerate(sensors)}
    rates: dict[tuple[int, ...], float] = {}
    for reached, probability in zip(model.mixing.T, model.probability.tolist(), strict=True):
        names = (model.sensors[i] for i in np.flatnonzero(reached).tolist())
        column = tuple(sorted(place[name] for name in names if name in place))
        if column and 0 < probability < 1:
            rates[column] = rates.get(column, 0.0) - float(np.log1p(-probability))
    return rates


def flip_rate_of(model: OrMixture) -> float:
    """One flip rate in place of the noise of an earlier model."""
    return float(np.mean(model.noise.rates(model.n_sensors)))


@dataclass(frozen=True, slots=True, eq=False)
class Varying:
    """A table without the sensors that never change: their sources are obvious, and would bring logarithms of 0."""

    whole: Observations
    data: Observations  # the sensors that vary
    places: NDArray[np.int64]  # their places in the whole table
    always: NDArray[np.int64]  # sensors of the whole table that are always on
    known: Sequence[KnownSource]
    forbidden: tuple[tuple[str, ...], ...]  # only those whose sensors all vary
    known_sets: NDArray[np.int64]  # the known sources, cut down to sensors that vary, as bit sets if these are few
    forbidden_sets: NDArray[np.int64]  # what is forbidden, as bit sets if few sensors vary

    @classmethod
    def of(cls, whole: Observations, known: Sequence[KnownSource], forbidden: Sequence[str | Sequence[str]]) -> Varying:
        """The table split; names of unknown sensors in ``known`` or ``forbidden`` are errors."""
        ones, n_observed = whole.ones(), whole.times_observed()
        places = whole.varying()
        data = whole.project(places.tolist()) if places.size < whole.n_sensors else whole
        for names in forbidden:
            bit_set(names, whole.sensors, "forbidden")
        _check_known(known, whole, data.sensors, ones)
        inside = tuple(tuple(names) for names in forbidden if set(names) <= set(data.sensors))
        always = np.flatnonzero((ones >= n_observed) & (ones > 0))
        check_size(whole.n_sensors, always.size)
        place = {name: i for i, name in enumerate(data.sensors if places.size <= WORD else ())}
        sets = [
            as_sets([place[name] for name in set(names) if name in place] for names in group)
            for group in ([source.sensors for source in known], inside)
        ]
        return cls(whole, data, places, always, known, inside, *sets)

    def model(
        self, mixing: NDArray[np.bool_], probability: NDArray[np.float64], error: NDArray[np.float64], noise: Noise
    ) -> tuple[OrMixture, NDArray[np.float64]]:
        """The model of all sensors with its errors, from those that vary; the known sources come first.

        A sensor that is always on has a source of its own, always on, whose error is not known.
        The sources are put in order.
        """
        n_sources, n_always = probability.size, self.always.size
        whole = np.zeros((self.whole.n_sensors, n_sources + n_always), dtype=bool)
        whole[self.places, :n_sources] = mixing
        for column, source in enumerate(self.known):  # which may reach constant sensors
            whole[:, column] = np.isin(self.whole.sensors, source.sensors)
        whole[self.always, np.arange(n_sources, n_sources + n_always)] = True
        names = [source.name for source in self.known]
        names += [None] * (n_sources + n_always - len(names))
        every = np.concatenate([probability, np.ones(n_always)])
        model = OrMixture(whole, every, noise, sensors=self.whole.sensors, names=names)
        return in_order(model, np.concatenate([error, np.full(n_always, np.nan)]))


def _check_known(
    known: Sequence[KnownSource], whole: Observations, varying: tuple[str, ...], ones: NDArray[np.float64]
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
