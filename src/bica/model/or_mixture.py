"""The model as a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.data.chunks import packed
from bica.data.patterns import PatternCounts
from bica.errors import ModelError
from bica.kernels.bits import Words
from bica.model.distribution import log_probability, pattern_table
from bica.model.export import to_networkx
from bica.model.files import ModelDocument, SourceEntry, read_document, write_document
from bica.model.noise import Noise

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, slots=True, eq=False)
class OrMixture:
    """Independent binary sources seen through ORs: x_i = OR_j (mixing[i, j] AND y_j).

    Columns of ``mixing`` are distinct and not empty: sources with the same column are merged by adding their
    rates ``-log(1 - probability)``, and a source that reaches no sensor is left out.

    >>> OrMixture([[1, 1, 1], [0, 1, 1]], [0.2, 0.5, 0.5]).probability
    array([0.2 , 0.75])
    """

    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    probability: NDArray[np.float64]  # (n_sources,), the chance that each source is on
    noise: Noise  # what the sensors add on top
    sensors: tuple[str, ...]  # (n_sensors,)
    names: tuple[str | None, ...]  # (n_sources,), where the user gave the source a name

    def __init__(
        self,
        mixing: ArrayLike,
        probability: ArrayLike,
        noise: Noise | None = None,
        *,
        sensors: Sequence[str] | None = None,
        names: Sequence[str | None] | None = None,
    ) -> None:
        mixing, probability = _checked_mixing(mixing), np.array(probability, dtype=float)
        _check_probability(probability, mixing.shape[1])
        sensors = tuple(sensors) if sensors is not None else default_sensors(mixing.shape[0])
        names = tuple(names) if names is not None else (None,) * mixing.shape[1]
        _check_names(sensors, names, mixing)
        noise = noise or Noise()
        noise.rates(mixing.shape[0])
        mixing, probability, names = _merged(mixing, probability, names)
        mixing.flags.writeable = probability.flags.writeable = False
        for field, value in zip(self.__slots__, (mixing, probability, noise, sensors, names), strict=True):
            object.__setattr__(self, field, value)

    @property
    def n_sensors(self) -> int:
        """How many sensors there are."""
        return len(self.sensors)

    @property
    def n_sources(self) -> int:
        """How many sources there are."""
        return len(self.names)

    @property
    def rate(self) -> NDArray[np.float64]:
        """``-log(1 - probability)``, which adds up where sources coincide; infinite for a source that is always on."""
        with np.errstate(divide="ignore"):
            return -np.log1p(-self.probability)

    @property
    def columns(self) -> Words:
        """The sensors of each source as a bit set: (n_sources, n_words)."""
        return packed(np.ascontiguousarray(self.mixing.T))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OrMixture):
            return NotImplemented
        return (
            np.array_equal(self.mixing, other.mixing)
            and np.array_equal(self.probability, other.probability)
            and (self.noise, self.sensors, self.names) == (other.noise, other.sensors, other.names)
        )

    __hash__ = None  # type: ignore[assignment]

    def edges(self) -> Iterator[tuple[int, str]]:
        """Pairs of a source's number and the name of a sensor that it switches on."""
        for source, sensor in np.argwhere(self.mixing.T):
            yield int(source), self.sensors[sensor]

    def source_names(self) -> tuple[str, ...]:
        """The name of every source: the user's, or ``source1``, ``source2``, ... by place."""
        return tuple(name or f"source{j + 1}" for j, name in enumerate(self.names))

    def pick(self, sources: Sequence[int] | NDArray[np.int64]) -> OrMixture:
        """The model with these sources only, in this order."""
        chosen = np.asarray(sources, dtype=int)
        names = tuple(self.names[j] for j in chosen)
        return OrMixture(
            self.mixing[:, chosen], self.probability[chosen], self.noise, sensors=self.sensors, names=names
        )

    def order(self) -> NDArray[np.int64]:
        """Sources by falling probability, then by their sensors: never at random."""
        by_column = np.lexsort(self.mixing[::-1])[::-1]  # sources that reach the first sensors come first
        return by_column[np.argsort(-self.probability[by_column], kind="stable")]

    def of_sensors(self, sensors: Sequence[int] | NDArray[np.int64]) -> OrMixture:
        """What is left of the model when only these sensors are watched."""
        chosen = np.asarray(sensors, dtype=int)
        names = [self.sensors[i] for i in chosen]
        noise = self.noise.of_sensors(chosen)
        return OrMixture(self.mixing[chosen], self.probability, noise, sensors=names, names=self.names)

    def with_noise(self, noise: Noise) -> OrMixture:
        """The same sources behind other sensors."""
        return OrMixture(self.mixing, self.probability, noise, sensors=self.sensors, names=self.names)

    def observe(self, activity: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """What noise-free sensors show of ``activity`` (n_samples, n_sources)."""
        return activity @ self.mixing.T  # on booleans, @ is exactly OR over ANDs

    def draw_activity(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Which sources are on, row by row, each on its own: (n_samples, n_sources)."""
        return rng.random((n_samples, self.n_sources)) < self.probability

    def sample(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Rows as the sensors would show them: (n_samples, n_sensors)."""
        return self.noise.apply(self.observe(self.draw_activity(n_samples, rng)), rng)

    def pattern_probability(self) -> NDArray[np.float64]:
        """The chance of every possible row, indexed by bit set: length 2^n_sensors, for up to 24 sensors.

        >>> OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).pattern_probability()
        array([0.4, 0.1, 0. , 0.5])
        """
        return pattern_table(self.mixing, self.probability, *self.noise.rates(self.n_sensors))

    def log_probability(self, data: PatternCounts) -> NDArray[np.float64]:
        """The log of the chance of each distinct row of ``data``; missing cells may be anything."""
        if data.n_sensors != self.n_sensors:
            raise ModelError(f"the model has {self.n_sensors} sensors, but the data have {data.n_sensors}")
        return log_probability(
            self.mixing, self.probability, self.noise.rates(self.n_sensors), data.patterns, data.seen()
        )

    def log_likelihood(self, data: Any) -> float:
        """The log of the chance of all rows of ``data`` together; each group of connected sensors may have up to 24."""
        counts = PatternCounts.of(data)
        return float(counts.weights @ self.log_probability(counts))

    def document(self) -> ModelDocument:
        """The model in the plain values of a model file."""
        sources = tuple(
            SourceEntry(tuple(np.flatnonzero(column).tolist()), float(chance), name=name)
            for column, chance, name in zip(self.mixing.T, self.probability, self.names, strict=True)
        )
        return ModelDocument(self.sensors, sources, self.noise.false_alarm, self.noise.miss)

    @staticmethod
    def of_document(document: ModelDocument) -> OrMixture:
        """The model that a model file describes."""
        mixing = np.zeros((len(document.sensors), len(document.sources)), dtype=bool)
        for j, source in enumerate(document.sources):
            mixing[list(source.sensors), j] = True
        probability = [source.probability for source in document.sources]
        noise = Noise(document.false_alarm, document.miss)
        names = [source.name for source in document.sources]
        return OrMixture(mixing, probability, noise, sensors=document.sensors, names=names)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as one JSON file, which ``load`` reads."""
        write_document(self.document(), path, overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> OrMixture:
        """Read a model file."""
        return OrMixture.of_document(read_document(path))

    def to_networkx(self) -> networkx.Graph:
        """The model as a bipartite graph: one node a sensor, one a source, one edge where a source reaches a sensor."""
        return to_networkx(self)


def load(path: str | Path) -> OrMixture:
    """Read a model file that ``BICA.save``, ``OrMixture.save`` or ``bica fit`` wrote."""
    return OrMixture.load(path)


def default_sensors(n_sensors: int) -> tuple[str, ...]:
    """Names for sensors that came without: x0, x1, ..."""
    return tuple(f"x{i}" for i in range(n_sensors))


def _checked_mixing(mixing: ArrayLike) -> NDArray[np.bool_]:
    values = np.array(mixing)
    if values.ndim != 2:
        raise ModelError(f"mixing has {values.ndim} dimensions; it needs two, sensors by sources")
    if values.size and not np.isin(values, (0, 1)).all():
        raise ModelError("mixing may hold 0 and 1 only")
    return values.astype(bool)


def _check_probability(probability: NDArray[np.float64], n_sources: int) -> None:
    if probability.shape != (n_sources,):
        raise ModelError(f"mixing has {n_sources} columns, but probability has shape {probability.shape}")
    outside = probability[~((probability >= 0) & (probability <= 1))]
    if outside.size:
        raise ModelError(f"a probability must lie in [0, 1], but {outside[0]:g} was given")


def _check_names(sensors: tuple[str, ...], names: tuple[str | None, ...], mixing: NDArray[np.bool_]) -> None:
    if (len(sensors), len(names)) != mixing.shape:
        raise ModelError(
            f"mixing is {mixing.shape[0]} by {mixing.shape[1]}, but there are {len(sensors)} sensor "
            f"names and {len(names)} source names"
        )
    if len(set(sensors)) < len(sensors):
        raise ModelError("sensor names must differ from each other")


def _either(probability: NDArray[np.float64]) -> float:
    """The chance that at least one of these sources is on."""
    return float(probability[0]) if probability.size == 1 else float(1 - np.prod(1 - probability))


def _merged(
    mixing: NDArray[np.bool_], probability: NDArray[np.float64], names: tuple[str | None, ...]
) -> tuple[NDArray[np.bool_], NDArray[np.float64], tuple[str | None, ...]]:
    """Drop empty columns and merge equal ones, keeping the place and the name of the first."""
    place: dict[bytes, int] = {}
    twins: list[list[int]] = []
    for j, column in enumerate(mixing.T):
        if column.any():
            key = np.packbits(column).tobytes()
            if key not in place:
                place[key] = len(twins)
                twins.append([])
            twins[place[key]].append(j)
    if len(twins) == mixing.shape[1]:
        return mixing, probability, names
    first = [group[0] for group in twins]
    merged = np.array([_either(probability[group]) for group in twins])
    return mixing[:, first], merged, tuple(next((names[j] for j in g if names[j]), None) for g in twins)
