"""The model as a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from bica.data.columns import numbered
from bica.data.engines import engine_of, framed, mapped
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.errors import LimitError, ModelError
from bica.kernels.bits import Words, packed
from bica.model.export import to_networkx
from bica.model.files import ModelDocument, SourceEntry, known_numbers, read_document, write_document
from bica.model.names import kept_names, renamed, source_id
from bica.model.noise import Noise, as_numbers, as_probabilities, log_probability, pattern_table
from bica.text import USUAL_NOUN, as_distinct_names, as_name, shown_names

if TYPE_CHECKING:
    import altair
    import networkx

    from bica.invert.decode import Decoded
    from bica.invert.explain import Explanations
    from bica.invert.posterior import Posterior
    from bica.invert.solvers import Solver
    from bica.report.page import Report

Names = tuple[str | None, ...]
Number = TypeVar("Number", np.float64, np.int64)


def twins(mixing: NDArray[np.bool_], lossy: NDArray[np.bool_]) -> list[list[int]]:
    """The columns to be merged into one source each; empty columns are left out, and ``lossy`` ones stay alone.

    >>> twins(np.array([[True, False, True, True]]), np.array([False, False, False, True]))
    [[0, 2], [3]]
    """
    groups: dict[bytes | int, list[int]] = {}
    for j, column in enumerate(mixing.T):
        if column.any():
            groups.setdefault(j if lossy[j] else np.packbits(column).tobytes(), []).append(j)
    return list(groups.values())


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

    Edges may be lossy: an active source then switches a sensor on with probability ``reach`` only, on its own for every
    row and sensor. With false-alarm rate a and miss rate b, sensor i is quiet with probability
    ``b + (1 - a - b) prod_j (1 - reach[i, j])`` over the active sources j.

    Columns of ``mixing`` are not empty, and those of sources with sure edges are distinct: such sources with the same
    column are merged by adding their rates ``-log(1 - probability)``, and a source that reaches no sensor is left out.

    >>> OrMixture([[1, 1, 1], [0, 1, 1]], [0.2, 0.5, 0.5]).probability
    array([0.2 , 0.75])
    >>> OrMixture([[1], [1]], [0.5], Noise(0.01), reach=[[0.9], [0.4]]).pattern_probability()[3].round(4)
    np.float64(0.183)
    """

    mixing: NDArray[np.bool_]  # (n_sensors, n_sources)
    probability: NDArray[np.float64]  # (n_sources,), that each source is on
    noise: Noise  # what the sensors add on top
    lossy_reach: NDArray[np.float64] | None  # (n_sensors, n_sources), see ``reach``; None where all edges are sure
    sensors: tuple[str, ...]  # (n_sensors,)
    names: tuple[str | None, ...]  # (n_sources,), where the user gave the source a name

    def __init__(
        self,
        mixing: ArrayLike,
        probability: ArrayLike,
        noise: Noise | None = None,
        reach: ArrayLike | None = None,
        *,
        sensors: Sequence[str] | None = None,
        names: Sequence[str | None] | None = None,
    ) -> None:
        bits, probabilities = as_bits(mixing, "mixing"), as_probabilities(probability, "probability")
        sensors = numbered(bits.shape[0]) if sensors is None else as_distinct_names(sensors, "a sensor name")
        names = (None,) * bits.shape[1] if names is None else tuple(map(_source_name, names))
        check_shapes(bits, probabilities, sensors, names)
        noise = checked_noise(noise, bits.shape[0])
        lossy = checked_reach(reach, bits)
        groups = twins(bits, lossy_columns(lossy, bits))
        if len(groups) < bits.shape[1]:
            first = [group[0] for group in groups]
            bits, lossy = bits[:, first], None if lossy is None else lossy[:, first]
            probabilities = np.array([_either(probabilities[group]) for group in groups], dtype=np.float64)
            names = tuple(next((names[j] for j in group if names[j] is not None), None) for group in groups)
        for part in (bits, probabilities, lossy):
            if part is not None:
                part.flags.writeable = False
        for field, value in zip(self.__slots__, (bits, probabilities, noise, lossy, sensors, names), strict=True):
            object.__setattr__(self, field, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and unpickled models go through the door again, so that their arrays are read-only too."""
        return _rebuilt, (self.mixing, self.probability, self.noise, self.sensors, self.names, self.lossy_reach)

    @property
    def reach(self) -> NDArray[np.float64]:
        """The probability that a source switches a sensor on while it is active: (n_sensors, n_sources).

        It is 0 where there is no edge and 1 where the edge is sure.

        >>> OrMixture([[1, 0], [1, 1]], [0.2, 0.5], reach=[[0.5, 0], [1, 1]]).reach
        array([[0.5, 0. ],
               [1. , 1. ]])
        """
        return self.mixing.astype(np.float64) if self.lossy_reach is None else self.lossy_reach

    @property
    def has_lossy_edges(self) -> bool:
        """Whether some source does not always switch on a sensor that it reaches."""
        return self.lossy_reach is not None

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
            and self.has_lossy_edges == other.has_lossy_edges
            and (self.lossy_reach is None or np.array_equal(self.reach, other.reach))
        )

    __hash__ = None  # type: ignore[assignment]

    def edges(self) -> Iterator[tuple[int, str]]:
        """Pairs of a source's number and the name of a sensor that it switches on."""
        for source, sensor in np.argwhere(self.mixing.T):
            yield int(source), self.sensors[sensor]

    def source_names(self, noun: str = USUAL_NOUN) -> tuple[str, ...]:
        """A name for every source, no two alike: the user's, or ``source1``, ``source2``, ... by place."""
        return shown_names(self.names, noun)

    def pick(self, sources: Sequence[int] | NDArray[np.int64]) -> OrMixture:
        """The model with these sources only, in this order."""
        chosen = as_places(sources, self.n_sources, "source")
        names = tuple(self.names[j] for j in chosen)
        reach = None if self.lossy_reach is None else self.lossy_reach[:, chosen]
        return OrMixture(
            self.mixing[:, chosen], self.probability[chosen], self.noise, reach, sensors=self.sensors, names=names
        )

    def in_order(self) -> OrMixture:
        """The same sources by falling probability, then by their sensors: never at random."""
        return in_order(self, self.probability)[0]

    def of_sensors(self, sensors: Sequence[int] | NDArray[np.int64]) -> OrMixture:
        """What is left of the model when only these sensors are watched."""
        chosen = as_places(sensors, self.n_sensors, "sensor")
        names = [self.sensors[i] for i in chosen]
        noise = self.noise.of_sensors(chosen)
        reach = None if self.lossy_reach is None else self.lossy_reach[chosen]
        return OrMixture(self.mixing[chosen], self.probability, noise, reach, sensors=names, names=self.names)

    def with_noise(self, noise: Noise) -> OrMixture:
        """The same sources behind other sensors."""
        return OrMixture(self.mixing, self.probability, noise, self.lossy_reach, sensors=self.sensors, names=self.names)

    def with_probability(self, probability: ArrayLike) -> OrMixture:
        """The same sources, on with other probabilities."""
        return OrMixture(self.mixing, probability, self.noise, self.lossy_reach, sensors=self.sensors, names=self.names)

    def with_labels(self, sensors: Sequence[str], names: Sequence[str | None]) -> OrMixture:
        """The same model with other names of its sensors and its sources."""
        return OrMixture(self.mixing, self.probability, self.noise, self.lossy_reach, sensors=sensors, names=names)

    @staticmethod
    def without_sources(sensors: Sequence[str]) -> OrMixture:
        """The model of sensors that nothing ever switches on."""
        return OrMixture(np.zeros((len(sensors), 0), bool), [], sensors=sensors)

    def observe(self, activity: ArrayLike) -> NDArray[np.bool_]:
        """What noise-free sensors show of ``activity`` (n_samples, n_sources) if no edge fails.

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
        return self.draw_rows(self.draw_activity(n_samples, rng), rng)

    def draw_rows(self, activity: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """What the sensors show of ``activity``, with edges that fail and noise drawn anew: (n_samples, n_sensors).

        >>> model = OrMixture([[1], [1]], [0.5], reach=[[1], [0.25]])
        >>> model.draw_rows(np.ones((10_000, 1), dtype=bool), np.random.default_rng(7)).mean(axis=0).round(2)
        array([1.  , 0.26])
        """
        if self.lossy_reach is None:
            return self.noise.apply(self.observe(activity), rng)
        with np.errstate(divide="ignore"):
            log_loss = np.log1p(-self.lossy_reach)
        quiet = np.exp((csr_array(activity) @ csr_array(log_loss.T)).toarray())  # sparse: no 0 times infinity
        return self.noise.apply(rng.random(quiet.shape) >= quiet, rng)

    def pattern_probability(self) -> NDArray[np.float64]:
        """The probability of every possible row, indexed by bit set: length 2^n_sensors, for up to 24 sensors.

        >>> OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).pattern_probability()
        array([0.4, 0.1, 0. , 0.5])
        """
        return pattern_table(
            self.mixing, self.probability, *self.noise.rates(self.n_sensors), lossy_reach=self.lossy_reach
        )

    def log_probability(self, data: PatternCounts) -> NDArray[np.float64]:
        """The log of the probability of each distinct row of ``data``; missing cells may be anything."""
        rows = Rows(data.patterns, data.observed_cells(), data.sensors).matched(self.sensors)
        return log_probability(
            self.mixing,
            self.probability,
            self.noise.rates(self.n_sensors),
            rows.words,
            rows.observed,
            lossy_reach=self.lossy_reach,
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
        A frame of Dask is decoded by its workers: the result is one of Dask, too, with a column per source.

        >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
        >>> model.decode([[1, 1], [1, None], [0, 0]]).activity.astype(int)
        array([[0, 1],
               [0, 1],
               [0, 0]])
        """
        from bica.invert.decode import decode

        if engine_of(rows) is not None:
            return cast("Decoded", mapped(rows, partial(_activity, self), self.source_names(), bool))
        given = Rows.of(rows).matched(self.sensors)
        return decode(self, given.words, given.observed, solver=solver, nearest=nearest)

    def posterior(self, rows: Any) -> Posterior:
        """The probability that each source was on, given its row; ``rows`` are as in ``decode``.

        >>> OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).posterior([[1, 0], [1, 1]]).probability
        array([[1. , 0. ],
               [0.2, 1. ]])
        """
        from bica.invert.posterior import posterior

        if engine_of(rows) is not None:
            return cast("Posterior", mapped(rows, partial(_probability, self), self.source_names(), float))
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
        self,
        errors: Sequence[float | None] | None = None,
        fitted: Mapping[str, Any] | None = None,
        reach_errors: NDArray[np.float64] | None = None,
    ) -> ModelDocument:
        """The model in the plain values of a model file, with the errors and the story of a fit if there are any."""
        errors = [None] * self.n_sources if errors is None else errors
        each = zip(self.mixing.T, self.probability, errors, self.names, strict=True)
        sources = []
        for j, (column, probability, error, name) in enumerate(each):
            sensors = np.flatnonzero(column)
            reach = None if self.lossy_reach is None else tuple(self.lossy_reach[sensors, j].tolist())
            lost = None if reach is None or reach_errors is None else known_numbers(reach_errors[sensors, j])
            sources.append(SourceEntry(tuple(sensors.tolist()), float(probability), error, name, reach, lost))
        return ModelDocument(self.sensors, tuple(sources), self.noise.false_alarm, self.noise.miss, fitted or {})

    @staticmethod
    def of_document(document: ModelDocument) -> OrMixture:
        """The model that a model file describes."""
        reach = np.zeros((len(document.sensors), len(document.sources)))
        for j, source in enumerate(document.sources):
            reach[list(source.sensors), j] = 1.0 if source.reach is None else source.reach
        probability = np.array([source.probability for source in document.sources])
        names = [source.name for source in document.sources]
        noise = Noise(document.false_alarm, document.miss)
        return OrMixture(reach > 0, probability, noise, reach, sensors=document.sensors, names=names)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as one JSON file, which ``load`` reads."""
        write_document(self.document(), path, overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> OrMixture:
        """Read a model file."""
        return OrMixture.of_document(read_document(path))

    def source_ids(self) -> tuple[str, ...]:
        """A short id of every source, which depends on nothing but its sensors; lossy twins are numbered by place.

        >>> OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["door", "hall"]).source_ids()
        ('7f66ade6', '2afc0207')
        """
        plain = list(map(source_id, self._sensor_sets()))
        return tuple(f"{own}-{n + 1}" if (n := plain[:j].count(own)) else own for j, own in enumerate(plain))

    def _sensor_sets(self) -> list[frozenset[str]]:
        return [frozenset(self.sensors[i] for i in np.flatnonzero(column)) for column in self.mixing.T]

    def named(self, names: Mapping[str, str | None]) -> OrMixture:
        """The same model with some sources named: by their present name, ``source3``, number or id; None unnames.

        >>> OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).named({"source2": "printer on floor 2"}).source_names()
        ('source1', 'printer on floor 2')
        """
        return self.with_names(renamed(self.names, self.source_ids(), names))

    def with_names(self, names: Sequence[str | None]) -> OrMixture:
        """The same model with these names, None where a source has none."""
        return self.with_labels(self.sensors, names)

    def with_names_of(self, earlier: OrMixture) -> OrMixture:
        """The same model, where nameless sources take the names of those in ``earlier`` with nearly the same sensors.

        >>> earlier = OrMixture([[1, 0], [1, 0], [1, 1]], [0.2, 0.5], names=["printer", None])
        >>> OrMixture([[0, 1], [1, 1], [0, 1]], [0.5, 0.2]).with_names_of(earlier).source_names()
        ('source1', 'printer')
        """
        free = [None if name in self.names else name for name in earlier.names]
        kept = kept_names(self._sensor_sets(), earlier._sensor_sets(), free)
        return self.with_names([own or old for own, old in zip(self.names, kept, strict=True)])

    def __repr__(self) -> str:
        return f"<OrMixture: {self.n_sources} sources behind {self.n_sensors} sensors>"

    def _repr_html_(self) -> str:
        from bica.report import model_table

        return model_table(self)

    def report(self, table: Any = None, **settings: Any) -> Report:
        """A report to send: one HTML file with the sources, pictures of them, and how well they describe ``table``.

        ``settings`` are those of ``bica.report.report_of``: ``with_rows``, ``anonymise``, ``times``, ``sensors_are``,
        ``sources_are``, ``rows_are``, ``title``, ``binarize``, ``sample_weight``.

        >>> OrMixture([[1, 1], [0, 1]], [0.2, 0.5]).report([[0, 0], [1, 0], [1, 1]]).html[:15]
        '<!doctype html>'
        """
        from bica.report import report_of

        return report_of(self, table, **settings)

    def plot_matrix(self) -> altair.HConcatChart:
        """The mixing matrix with the probability of each source, as a chart (needs "bica[report]")."""
        from bica.report import mixing_chart

        return mixing_chart(self)

    def plot_network(self, near: str | None = None) -> altair.LayerChart:
        """Sources on the left, the sensors that they reach on the right, as a chart (needs "bica[report]").

        ``near`` names a sensor or a source to draw with its neighbours alone. Of more than 30 sources the likeliest are
        drawn.
        """
        from bica.report import network_chart

        return network_chart(self, near)

    def plot_patterns(self, table: Any) -> altair.HConcatChart:
        """The most frequent patterns of a table, as observed and as the model expects (needs "bica[report]")."""
        from bica.report import patterns_chart

        return patterns_chart(self, PatternCounts.of(table))

    def plot_activity(self, rows: Any, times: Sequence[Any] | None = None) -> altair.LayerChart:
        """How often each source was active over time, or from row to row (needs "bica[report]")."""
        from bica.report import decoded_activity_chart

        return decoded_activity_chart(self, Rows.of(rows), times)

    def to_networkx(self) -> networkx.Graph:
        """The model as a bipartite graph: one node per sensor and source, one edge where a source reaches a sensor."""
        return to_networkx(self)


def in_order(model: OrMixture, value: NDArray[Number]) -> tuple[OrMixture, NDArray[Number]]:
    """The model with its sources by falling probability, then by sensors (and reach), and the value of each source.

    >>> model, error = in_order(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]), np.array([0.1, 0.3]))
    >>> model.probability, error
    (array([0.5, 0.2]), array([0.3, 0.1]))
    """
    # the last key counts first: the probability, then the first sensor, and so on; lossy twins by their reach
    by_reach: list[NDArray[np.float64]] = [] if model.lossy_reach is None else list(-model.lossy_reach[::-1])
    order = np.lexsort([*by_reach, *~model.mixing[::-1], -model.probability])
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


def _rebuilt(mixing: Any, probability: Any, noise: Noise, sensors: Any, names: Any, reach: Any = None) -> OrMixture:
    return OrMixture(mixing, probability, noise, reach, sensors=sensors, names=names)


def _source_name(name: str | None) -> str | None:
    return None if name is None else as_name(name, "a source name") or None


def _activity(model: OrMixture, frame: Any) -> Any:
    """Which sources were on in the rows of a pandas frame, on the worker that has it."""
    return framed(frame, model.decode(frame).activity, model.source_names())


def _probability(model: OrMixture, frame: Any) -> Any:
    """The probability that each source was on, likewise."""
    return framed(frame, model.posterior(frame).probability, model.source_names())


def check_shapes(
    mixing: NDArray[np.bool_],
    probability: NDArray[np.float64],
    sensors: tuple[str, ...],
    names: tuple[str | None, ...],
) -> None:
    """Refuse parts of a model that do not belong together."""
    if probability.shape != (mixing.shape[1],):
        raise ModelError(f"mixing has {mixing.shape[1]} columns, but probability has shape {probability.shape}")
    if (len(sensors), len(names)) != mixing.shape:
        raise ModelError(
            f"mixing is {mixing.shape[0]} by {mixing.shape[1]}, but there are {len(sensors)} sensor "
            f"names and {len(names)} source names"
        )


def checked_reach(reach: ArrayLike | None, mixing: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """The reach of every edge; None where all edges are sure."""
    if reach is None:
        return None
    values = as_probabilities(reach, "reach")
    if values.shape != mixing.shape:
        raise ModelError(f"mixing is {mixing.shape[0]} by {mixing.shape[1]}, but reach has shape {values.shape}")
    wrong = np.argwhere((values > 0) != mixing)
    if wrong.size:
        sensor, source = wrong[0]
        raise ModelError(
            f"source {source} and sensor {sensor} have an edge in only one of mixing and reach; reach is above 0 "
            "exactly where mixing is 1"
        )
    return None if np.array_equal(values, mixing) else values


def lossy_columns(reach: NDArray[np.float64] | None, mixing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which sources have an edge that may fail: (n_sources,)."""
    lossy: NDArray[np.bool_] = np.zeros(mixing.shape[1], bool) if reach is None else (reach != mixing).any(axis=0)
    return lossy


def checked_noise(noise: Noise | None, n_sensors: int) -> Noise:
    """The noise, provided that it is of so many sensors; None is no noise."""
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
