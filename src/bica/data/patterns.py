"""The data as a value: distinct rows with how often each occurred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.data.chunks import Chunk, all_observed, packed, unpacked
from bica.data.counting import count_rows
from bica.data.tables import Binarize, open_table
from bica.errors import DataError, LimitError
from bica.kernels.bits import Words, add_to_histogram

HISTOGRAM_LIMIT = 24


@dataclass(frozen=True, slots=True, eq=False)
class PatternCounts:
    """Distinct rows of a binary table, as bit sets, with how often each occurred.

    >>> data = PatternCounts.of([[0, 1], [1, 1], [0, 1]])
    >>> data.rows(), data.weights
    (array([[False,  True],
           [ True,  True]]), array([2., 1.]))
    """

    patterns: Words  # (n_patterns, n_words); bit i of the words is sensor i, 0 where it was not observed
    weights: NDArray[np.float64]  # (n_patterns,), how often each was seen
    sensors: tuple[str, ...]
    observed: Words | None = None  # like patterns, the cells that were seen; None: all were

    @classmethod
    def of(
        cls,
        x: Any,
        *,
        sensors: Sequence[str] | None = None,
        sample_weight: Any = None,
        binarize: Binarize = None,
    ) -> PatternCounts:
        """Count the rows of an array, a data frame, a sparse matrix, a DuckDB relation or a file."""
        if isinstance(x, PatternCounts):
            return x
        table = open_table(x, sensors=sensors, sample_weight=sample_weight, binarize=binarize)
        counts = cls._of_chunks(table.distinct(), table.sensors)
        if not counts.weights.size:
            raise DataError("the table has no rows, or their weights are all zero, so there is nothing to learn from")
        return counts

    @classmethod
    def _of_chunks(cls, chunks: Any, sensors: tuple[str, ...]) -> PatternCounts:
        patterns, observed, weights = count_rows(chunks, len(sensors))
        complete = bool((observed == all_observed(len(sensors))).all())
        return cls(patterns, weights, sensors, None if complete else observed)

    @property
    def n_sensors(self) -> int:
        """How many columns the table has."""
        return len(self.sensors)

    @property
    def n_samples(self) -> float:
        """The number of rows, or the sum of their weights."""
        return float(self.weights.sum())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PatternCounts):
            return NotImplemented
        return (
            self.sensors == other.sensors
            and np.array_equal(self.patterns, other.patterns)
            and np.array_equal(self.weights, other.weights)
            and np.array_equal(self.seen(), other.seen())
        )

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: PatternCounts) -> PatternCounts:
        """The counts of both tables together; they must have the same columns."""
        if not isinstance(other, PatternCounts):
            return NotImplemented
        if self.sensors != other.sensors:
            raise DataError(
                f"tables with different columns cannot be added: {_first_difference(self.sensors, other.sensors)}"
            )
        return PatternCounts._of_chunks([self._chunk(), other._chunk()], self.sensors)

    def _chunk(self) -> Chunk:
        return Chunk(self.patterns, self.observed, self.weights)

    def seen(self) -> Words:
        """Which cells of each pattern were observed, as bit sets."""
        if self.observed is not None:
            return self.observed
        return np.broadcast_to(all_observed(self.n_sensors), self.patterns.shape)

    def rows(self) -> NDArray[np.bool_]:
        """The distinct rows, unpacked: (n_patterns, n_sensors); False where a cell was not observed."""
        return unpacked(self.patterns, self.n_sensors)

    def ones(self) -> NDArray[np.float64]:
        """How often each sensor was on: (n_sensors,)."""
        return self.weights @ self.rows()

    def times_seen(self) -> NDArray[np.float64]:
        """In how many rows each sensor was observed: (n_sensors,)."""
        return self.weights @ unpacked(self.seen(), self.n_sensors)

    def project(self, sensors: Sequence[str] | Sequence[int]) -> PatternCounts:
        """The table with these columns only, by name or by number, in this order."""
        columns = [self.sensors.index(s) if isinstance(s, str) else int(s) for s in sensors]
        names = tuple(self.sensors[column] for column in columns)
        observed = None
        if self.observed is not None:
            observed = packed(np.ascontiguousarray(unpacked(self.observed, self.n_sensors)[:, columns]))
        chunk = Chunk(packed(np.ascontiguousarray(self.rows()[:, columns])), observed, self.weights)
        return PatternCounts._of_chunks([chunk], names)

    def complete(self, method: str) -> PatternCounts:
        """These counts if no cell is missing; otherwise one sentence on what ``method`` needs."""
        if self.observed is None:
            return self
        gaps = self.weights[(self.observed != all_observed(self.n_sensors)).any(axis=1)].sum()
        raise DataError(
            f"{gaps:g} of {self.n_samples:g} rows have missing cells, which {method} cannot use; "
            "drop those rows or the sensors with gaps"
        )

    def histogram(self) -> NDArray[np.float64]:
        """The weight of every possible pattern, indexed by bit set: length 2^n_sensors.

        >>> PatternCounts.of([[0, 1], [1, 1], [0, 1]]).histogram()
        array([0., 0., 2., 1.])
        """
        if self.n_sensors > HISTOGRAM_LIMIT:
            raise LimitError(
                f"a full histogram of {self.n_sensors} sensors needs 2^{self.n_sensors} cells; "
                f"the limit is {HISTOGRAM_LIMIT} sensors"
            )
        table = np.zeros(2**self.n_sensors)
        add_to_histogram(self.complete("a full histogram").patterns[:, 0], self.weights, table)
        return table


def _first_difference(left: tuple[str, ...], right: tuple[str, ...]) -> str:
    if len(left) != len(right):
        return f"one has {len(left)} columns, the other {len(right)}"
    i = next(i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
    return f"column {i} is {left[i]!r} in one and {right[i]!r} in the other"
