"""The model as a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from bica.data.chunks import numbered
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.errors import LimitError, ModelError
from bica.kernels.bits import Words, packed
from bica.model.distribution import log_probability, pattern_table
from bica.model.export import to_networkx
from bica.model.files import ModelDocument, SourceEntry, read_document, write_document
from bica.model.noise import Noise, as_numbers, as_probabilities
from bica.text import as_distinct_names, as_name, told_apart

if TYPE_CHECKING:
    import networkx

    from bica.invert.decode import Decoded
    from bica.invert.explain import Explanations
    from bica.invert.posterior import Posterior
    from bica.invert.solvers import Solver

Names = tuple[str | None, ...]
Number = TypeVar("Number", np.float64, np.int64)


def merged_twins(
    mixing: NDArray[np.bool_], probability: NDArray[np.float64], names: Names
) -> tuple[NDArray[np.bool_], NDArray[np.float64], Names]:
    """Drop empty columns and merge equal ones, keeping the place of the first and the first name.

    >>> merged_twins(np.array([[True, False, True]]), np.array([0.5, 0.3, 0.5]), (None, "b", "c"))
    (array([[ True]]), array([0.75]), ('c',))
    """
    twins: dict[bytes, list[int]] = {}
    for j, column in enumerate(mixing.T):
        if column.any():
            twins.setdefault(np.packbits(column).tobytes(), []).append(j)
    if len(twins) == mixing.shape[1]:
        return mixing, probability, names
    groups = list(twins.values())
    first_name = tuple(next((names[j] for j in group if names[j] is not None), None) for group in groups)
    merged = np.array([_either(probability[group]) for group in groups], dtype=np.float64)
    return mixing[:, [group[0] for group in groups]], merged, first_name


def _either(probability: NDArray[np.float64]) -> float:
    """The probability that at least one of these sources is on; their rates add up."""
    if probability.size == 1:
        return float(probability[0])
    with np.errstate(divide="ignore"):  # a source that is always on has an infinite rate
        return float(-np.expm1(np.log1p(-probability).sum())) + 0.0  # never -0.0


SPARSE_SIZE = 4096  # cells of a mixing matrix from which on it pays to look at its ones only


@dataclass(frozen=True, slots=True, eq=False)
class OrMixture:
    """Independent binary sources seen through ORs: x_i = OR_j (mixing[i, j] AND y_j).

    Columns of ``mixing`` are distinct and not empty: sources with the same column are merged by adding their
    rates ``-log(1 - probability)``, and a source that reaches no sensor is left out.

    >>> OrMixture([[1, 1, 1], [0, 1, 1]], [0.2, 0.5, 0.5]).probability
    array([0.2 , 0.75])
    """

    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    probability: NDArray[np.float64]  # (n_sources,), that each source is on
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
        bits, chances = as_bits(mixing, "mixing"), as_probabilities(probability, "probability")
        sensors = numbered(bits.shape[0]) if sensors is None else as_distinct_names(sensors, "a sensor name")
        names = (None,) * bits.shape[1] if names is None else tuple(map(_source_name, names))
        _check_shapes(bits, chances, sensors, names)
        noise = _checked_noise(noise, bits.shape[0])
        bits, chances, names = merged_twins(bits, chances, names)
        bits.flags.writeable = chances.flags.writeable = False
        for field, value in zip(self.__slots__, (bits, chances, noise, sensors, names), strict=True):
            object.__setattr__(self, field, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and unpickled models go through the door again, so that their arrays are read-only too."""
        return _rebuilt, (self.mixing, self.probability, self.noise, self.sensors, self.names)

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
        """A name for every source, no two alike: the user's, or ``source1``, ``source2``, ... by place."""
        return told_apart(name or f"source{j + 1}" for j, name in enumerate(self.names))

    def pick(self, sources: Sequence[int] | NDArray[np.int64]) -> OrMixture:
        """The model with these sources only, in this order."""
        chosen = as_places(sources, self.n_sources, "source")
        names = tuple(self.names[j] for j in chosen)
        return OrMixture(
            self.mixing[:, chosen], self.probability[chosen], self.noise, sensors=self.sensors, names=names
        )

    def in_order(self) -> OrMixture:
        """The same sources by falling probability, then by their sensors: never at random."""
        return in_order(self, self.probability)[0]

    def of_sensors(self, sensors: Sequence[int] | NDArray[np.int64]) -> OrMixture:
        """What is left of the model when only these sensors are watched."""
        chosen = as_places(sensors, self.n_sensors, "sensor")
        names = [self.sensors[i] for i in chosen]
        noise = self.noise.of_sensors(chosen)
        return OrMixture(self.mixing[chosen], self.probability, noise, sensors=names, names=self.names)

    def with_noise(self, noise: Noise) -> OrMixture:
        """The same sources behind other sensors."""
        return OrMixture(self.mixing, self.probability, noise, sensors=self.sensors, names=self.names)

    @staticmethod
    def without_sources(sensors: Sequence[str]) -> OrMixture:
        """The model of sensors that nothing ever switches on."""
        return OrMixture(np.zeros((len(sensors), 0), bool), [], sensors=sensors)

    def observe(self, activity: ArrayLike) -> NDArray[np.bool_]:
        """What noise-free sensors show of ``activity`` (n_samples, n_sources).

        >>> OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).observe([[1, 0], [1, 1]])
        array([[ True, False],
               [ True,  True]])
        """
        on = as_bits(activity, "activity")
        if on.shape[1] != self.n_sources:
            raise ModelError(f"the model has {self.n_sources} sources, but activity has {on.shape[1]} columns")
        if self.mixing.size < SPARSE_SIZE:
            return on @ self.mixing.T  # on booleans, @ is exactly OR over ANDs
        shown: NDArray[np.bool_] = (csr_array(on) @ csr_array(self.mixing.T)).toarray()
        return shown

    def draw_activity(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Which sources are on, row by row, each on its own: (n_samples, n_sources)."""
        return rng.random((n_samples, self.n_sources)) < self.probability

    def sample(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Rows as the sensors would show them: (n_samples, n_sensors)."""
        return self.noise.apply(self.observe(self.draw_activity(n_samples, rng)), rng)

    def pattern_probability(self) -> NDArray[np.float64]:
        """The probability of every possible row, indexed by bit set: length 2^n_sensors, for up to 24 sensors.

        >>> OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).pattern_probability()
        array([0.4, 0.1, 0. , 0.5])
        """
        return pattern_table(self.mixing, self.probability, *self.noise.rates(self.n_sensors))

    def log_probability(self, data: PatternCounts) -> NDArray[np.float64]:
        """The log of the probability of each distinct row of ``data``; missing cells may be anything."""
        rows = Rows(data.patterns, data.observed_cells(), data.sensors).matched(self.sensors)
        return log_probability(
            self.mixing, self.probability, self.noise.rates(self.n_sensors), rows.words, rows.observed
        )

    def log_likelihood(self, rows: Any) -> float:
        """The log of the probability of all rows together; each group of connected sensors may have up to 24.

        ``rows`` are a table of any kind, or ``PatternCounts``; missing cells may be anything. Columns are matched with
        the sensors by name, or taken in order where they have no names.

        >>> OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).log_likelihood([[0, 1]])  # the second sensor is never on alone
        -inf
        """
        counts = rows.counts() if isinstance(rows, Rows) else PatternCounts.of(rows)
        return float(counts.weights @ self.log_probability(counts))

    def log_likelihood_if_exact(self, data: PatternCounts) -> float | None:
        """The log-likelihood, or None where a connected group is too large for exact probabilities."""
        try:
            return self.log_likelihood(data)
        except LimitError:
            return None

    def decode(self, rows: Any, *, solver: Solver = "auto", nearest: bool = False) -> Decoded:
        """The most probable activity behind each row; missing cells may be anything.

        ``rows`` are a table of any kind, in memory or in a file. Columns are matched with the sensors by name, or taken
        in order where they have no names. ``solver`` and ``nearest`` are those of ``bica.invert.decode``.

        >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
        >>> model.decode([[1, 1], [1, None], [0, 0]]).activity.astype(int)
        array([[0, 1],
               [0, 1],
               [0, 0]])
        """
        from bica.invert.decode import decode

        given = Rows.of(rows).matched(self.sensors)
        return decode(self, given.words, given.observed, solver=solver, nearest=nearest)

    def posterior(self, rows: Any) -> Posterior:
        """The probability that each source was on, given its row; ``rows`` are as in ``decode``.

        >>> OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).posterior([[1, 0], [1, 1]]).probability
        array([[1. , 0. ],
               [0.2, 1. ]])
        """
        from bica.invert.posterior import posterior

        given = Rows.of(rows).matched(self.sensors)
        return posterior(self, given.words, given.observed)

    def explain(self, row: Any, *, k: int = 5) -> Explanations:
        """The ``k`` most probable activities behind one row: its cells in order or by name, or a table of one row.

        >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["door", "yard"])
        >>> found = model.explain({"yard": 1, "door": 1})
        >>> found.activity.astype(int), found.probability
        (array([[0, 1],
               [1, 1]]), array([0.8, 0.2]))
        """
        from bica.invert.explain import explain

        given = Rows.of_one(row).matched(self.sensors)
        return explain(self, given.words, given.observed, k=k)

    def document(
        self, errors: Sequence[float | None] | None = None, fitted: Mapping[str, Any] | None = None
    ) -> ModelDocument:
        """The model in the plain values of a model file, with the errors and the story of a fit if there are any."""
        errors = [None] * self.n_sources if errors is None else errors
        sources = tuple(
            SourceEntry(tuple(np.flatnonzero(column).tolist()), float(chance), error, name)
            for column, chance, error, name in zip(self.mixing.T, self.probability, errors, self.names, strict=True)
        )
        return ModelDocument(self.sensors, sources, self.noise.false_alarm, self.noise.miss, fitted or {})

    @staticmethod
    def of_document(document: ModelDocument) -> OrMixture:
        """The model that a model file describes."""
        mixing = np.zeros((len(document.sensors), len(document.sources)), dtype=bool)
        for j, source in enumerate(document.sources):
            mixing[list(source.sensors), j] = True
        probability = np.array([source.probability for source in document.sources])
        names = [source.name for source in document.sources]
        noise = Noise(document.false_alarm, document.miss)
        return OrMixture(mixing, probability, noise, sensors=document.sensors, names=names)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as one JSON file, which ``load`` reads."""
        write_document(self.document(), path, overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> OrMixture:
        """Read a model file."""
        return OrMixture.of_document(read_document(path))

    def to_networkx(self) -> networkx.Graph:
        """The model as a bipartite graph: one node per sensor and source, one edge where a source reaches a sensor."""
        return to_networkx(self)


def in_order(model: OrMixture, value: NDArray[Number]) -> tuple[OrMixture, NDArray[Number]]:
    """The model with its sources by falling probability, then by their sensors, and the value of each source.

    >>> model, error = in_order(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]), np.array([0.1, 0.3]))
    >>> model.probability, error
    (array([0.5, 0.2]), array([0.3, 0.1]))
    """
    keys = [*~model.mixing[::-1], -model.probability]  # the last key counts first; then the first sensor, and so on
    order = np.lexsort(keys)
    return model.pick(order), value[order]


def load(path: str | Path) -> OrMixture:
    """Read a model file that ``BICA.save``, ``OrMixture.save`` or ``bica fit`` wrote; the model can decode rows.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).save(f"{folder}/model.json")
    ...     load(f"{folder}/model.json").decode([[1, 0]]).activity
    array([[ True, False]])
    """
    return OrMixture.load(path)


def _rebuilt(mixing: Any, probability: Any, noise: Noise, sensors: Any, names: Any) -> OrMixture:
    return OrMixture(mixing, probability, noise, sensors=sensors, names=names)


def _source_name(name: str | None) -> str | None:
    return None if name is None else as_name(name, "a source name") or None


def _check_shapes(
    mixing: NDArray[np.bool_],
    probability: NDArray[np.float64],
    sensors: tuple[str, ...],
    names: tuple[str | None, ...],
) -> None:
    if probability.shape != (mixing.shape[1],):
        raise ModelError(f"mixing has {mixing.shape[1]} columns, but probability has shape {probability.shape}")
    if (len(sensors), len(names)) != mixing.shape:
        raise ModelError(
            f"mixing is {mixing.shape[0]} by {mixing.shape[1]}, but there are {len(sensors)} sensor "
            f"names and {len(names)} source names"
        )


def _checked_noise(noise: Noise | None, n_sensors: int) -> Noise:
    if noise is None:
        return Noise()
    if not isinstance(noise, Noise):
        raise ModelError(f"noise is {noise!r}; give `Noise.flips(rate)` or `Noise(false_alarm, miss)`")
    noise.rates(n_sensors)
    return noise


def as_bits(values: ArrayLike, what: str) -> NDArray[np.bool_]:
    """A fresh two-dimensional array of truth values, from zeros and ones."""
    if isinstance(values, np.ndarray) and values.dtype == np.bool_ and values.ndim == 2:
        return values.astype(np.bool_)
    numbers = as_numbers(values, what)
    if numbers.ndim != 2:
        raise ModelError(f"{what} needs two dimensions, but has {numbers.ndim}")
    strange = numbers[(numbers != 0) & (numbers != 1)]
    if strange.size:
        raise ModelError(f"{what} may hold 0 and 1 only, but {strange[0]:g} was given")
    return numbers.astype(np.bool_)


def as_places(chosen: Sequence[int] | NDArray[np.int64], count: int, what: str) -> NDArray[np.int64]:
    """Distinct whole numbers from 0 to ``count - 1``, in the order given.

    >>> as_places([2, 2], 3, "source")
    Traceback (most recent call last):
    bica.errors.ModelError: source 2 was chosen twice
    """
    places = np.asarray(chosen)
    if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
        raise ModelError(f"choose each {what} by its number, counted from 0")
    outside = places[(places < 0) | (places >= count)]
    if outside.size:
        raise ModelError(f"there is no {what} {outside[0]}; they are numbered from 0 to {count - 1}")
    if np.unique(places).size < places.size:
        raise ModelError(f"{what} {np.flatnonzero(np.bincount(places) > 1)[0]} was chosen twice")
    return places.astype(np.int64)
