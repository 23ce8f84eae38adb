"""What a table shows before any fit: whether OR mixtures can explain it, and what makes learning hard.

Also what of the table tells for or against a fit: the sensors that vary, their complete rows, their pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bica.data.observations import Observations
from bica.data.pairs import PairCounts, dependent_pairs
from bica.data.partitions import QuietCount
from bica.data.patterns import PatternCounts
from bica.kernels.bits import all_observed
from bica.model.fit import Fit
from bica.text import counted, folded, percent

PATTERN_LIMIT = 16  # sensors up to which all patterns are checked
PAIR_LIMIT = 2048  # the same for all pairs
LEVEL = 0.003  # of the test for negative pairs, corrected for all of them; with the tests of a fit, less than 1 %
LINKED = 0.05  # level of the test by which two sensors are connected
FEW_COINCIDENCES = 0.9  # share of those expected: with more, a pair is negative, but only just
LISTED = 5  # entries in a sentence

Verdict = Literal["fits", "too few rows", "doubtful", "misfit", "open"]


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Some sensors of a table with all that is counted of them: gathered once, for all tests."""

    places: NDArray[np.int64]  # of these sensors in the table
    counts: Observations  # of these sensors
    stretch: NDArray[np.float64]  # (n_watched,), how many consecutive rows count as one independent row
    quiet: QuietCount  # rows in which none of them is on
    complete: PatternCounts | None  # the distinct rows without missing cells; None beyond 16 sensors
    histogram: NDArray[np.float64]  # the weight of every pattern in these; empty beyond 16 sensors
    pairs: PairTests | None  # None if there are no sensors, or too many
    duplicates: tuple[tuple[str, ...], ...] = ()  # those with equal columns

    @classmethod
    def of(cls, data: Observations, places: NDArray[np.int64], stretch: NDArray[np.float64]) -> Watched:
        """Count and test them; ``stretch`` is for all sensors of the table."""
        counts = data if places.size == data.n_sensors else data.project(places.tolist())
        complete = complete_rows(counts.counts()) if places.size <= PATTERN_LIMIT else None
        histogram = np.zeros(0) if complete is None else complete.histogram()
        gathered = places, counts, stretch[places], counts.quiet_rows(), complete, histogram
        if not 1 <= places.size <= PAIR_LIMIT:
            return cls(*gathered, None, counts.equal_columns())
        pairs = counts.pair_counts()
        thinned = pairs.thinned(stretch[places])
        apart = thinned.apart()
        together = thinned.together()
        tests = apart, dependent_pairs(apart, LEVEL), dependent_pairs(together, LINKED)
        clear = bool(dependent_pairs(together, LEVEL).any())
        found = PairTests(pairs, thinned, pairs.expected(), *tests, clear)
        return cls(*gathered, found, counts.equal_columns())


def complete_rows(counts: PatternCounts) -> PatternCounts:
    """The distinct rows without missing cells."""
    if counts.observed is None:
        return counts
    rows = (counts.observed == all_observed(counts.n_sensors)).all(axis=1)
    return PatternCounts(counts.patterns[rows], counts.weights[rows], counts.sensors)


@dataclass(frozen=True, slots=True, eq=False)
class PairTests:
    """How often each two sensors were on together, and whether that is too seldom or too often for unrelated ones."""

    counted: PairCounts
    thinned: PairCounts  # the same in independent rows
    expected: NDArray[np.float64]  # rows with both on, if sensors were unrelated
    apart: NDArray[np.float64]  # p-values of being on together so seldom
    is_apart: NDArray[np.bool_]
    is_linked: NDArray[np.bool_]
    has_clear_link: bool  # whether any two sensors depend on each other beyond doubt

    def negative(self, sensors: tuple[str, ...]) -> list[NegativePair]:
        """The pairs that are on together significantly too seldom, the clearest first."""
        both, expected, apart = self.counted.both, self.expected, self.apart
        found = np.argwhere(np.triu(self.is_apart, 1))
        order = np.lexsort((both[*found.T] - expected[*found.T], apart[*found.T]))
        return [
            NegativePair((sensors[i], sensors[k]), float(both[i, k]), float(expected[i, k]), float(apart[i, k]))
            for i, k in found[order]
        ]

    def groups(self) -> tuple[int, ...]:
        """The sizes of the groups of connected sensors."""
        _, group = connected_components(self.is_linked, directed=False)
        return tuple(sorted(np.bincount(group).tolist(), reverse=True))


def stretch_of(fit: Fit) -> NDArray[np.float64]:
    """How many consecutive rows count as one independent row, at most: (n_sensors,); 1 where the order was not used.

    A chain of probability p that stays on for L slots forgets its state by the factor d = 1 - 1 / (L (1 - p)) per slot.
    The autocovariance of anything that depends on several independent chains is a sum of positive parts that decay with
    products of their d, so none is slower than the slowest chain: a mean over slots varies at most (1 + d) / (1 - d) =
    2 L (1 - p) - 1 times as much as one over independent rows. Noise, which is independent, only lowers that.

    >>> from bica import OrMixture
    >>> fit = Fit(OrMixture([[1, 0], [0, 1]], [0.2, 0.5]), diagnostics={"persistence": [10, 2]})
    >>> stretch_of(fit)
    array([15.,  1.])
    """
    model, stays = fit.model, fit.persistence()
    if stays is None or not stays.size:
        order = fit.diagnostics.get("order")  # where rows that persist were counted as fewer
        stretch = order.get("stretch") if isinstance(order, Mapping) else None
        return np.full(len(model.sensors), max(1.0, float(stretch)) if isinstance(stretch, int | float) else 1.0)
    moving = (model.probability > 0) & (model.probability < 1)
    of_source = np.ones(stays.size)
    of_source[moving] = np.maximum(1.0, 2 * stays[moving] * (1 - model.probability[moving]) - 1)
    longest: NDArray[np.float64] = np.where(model.mixing, of_source, 1.0).max(axis=1)
    return longest


@dataclass(frozen=True, slots=True)
class NegativePair:
    """Two sensors that are on together less often than independent sensors would be."""

    sensors: tuple[str, str]
    observed: float  # rows with both on
    expected: float  # the same if they were independent
    p_value: float  # of this pair alone

    def words(self) -> str:
        """The pair and its counts."""
        first, second = self.sensors
        return f"{first} and {second} ({counted(self.observed, 'row')} with both, {self.expected:.4g} expected)"


@dataclass(frozen=True, slots=True)
class TableCheck:
    """What a table shows before any fit."""

    n_samples: float
    n_sensors: int
    n_distinct: int | None  # None: they were not counted
    quiet_share: float  # of all rows: those in which no sensor was on
    missing_share: float  # of all cells
    always_on: tuple[str, ...]
    always_off: tuple[str, ...]
    duplicates: tuple[tuple[str, ...], ...]  # sensors with equal columns
    n_pairs: int  # pairs of varying sensors that were checked; 0 if there are too many
    n_negative_pairs: int
    negative_pairs: tuple[NegativePair, ...]  # the worst few
    groups: tuple[int, ...]  # sizes of the groups of connected sensors, of those that vary

    @classmethod
    def of(cls, data: Observations, varying: Watched | None = None) -> TableCheck:
        """The check of a table: time linear in the distinct rows, and quadratic in the sensors (up to 2048 of them).

        ``varying`` has the sensors that vary, if they were gathered before; None: they are now, rows independent.

        >>> check = TableCheck.of(PatternCounts.of([[1, 0, 0], [0, 1, 0]] * 20, sensors=["a", "b", "c"]))
        >>> check.always_off, check.negative_pairs[0].sensors, check.quiet_share
        (('c',), ('a', 'b'), 0.0)
        """
        ones, n_observed = data.ones(), data.times_observed()
        if varying is None:
            varying = Watched.of(data, data.varying(), np.ones(data.n_sensors))
        quiet, pairs = varying.quiet if varying.counts is data else data.quiet_rows(), varying.pairs
        negative = [] if pairs is None else pairs.negative(varying.counts.sensors)
        return cls(
            n_samples=data.n_samples,
            n_sensors=data.n_sensors,
            n_distinct=data.n_distinct,
            quiet_share=quiet.quiet / data.n_samples,
            missing_share=max(0.0, 1.0 - float(n_observed.mean()) / data.n_samples),
            always_on=_named(data, (ones > 0) & (ones >= n_observed)),
            always_off=_named(data, ones <= 0),
            duplicates=varying.duplicates,
            n_pairs=0 if pairs is None else varying.places.size * (varying.places.size - 1) // 2,
            n_negative_pairs=len(negative),
            negative_pairs=tuple(negative[:LISTED]),
            groups=() if pairs is None else pairs.groups(),
        )

    @property
    def most_distinct(self) -> float:
        """How many distinct rows there are, or at most if they were not counted."""
        return self.n_samples if self.n_distinct is None else self.n_distinct

    @property
    def n_varying(self) -> int:
        """How many sensors are neither always on nor always off."""
        return self.n_sensors - len(self.always_on) - len(self.always_off)

    @property
    def is_refuted(self) -> bool:
        """Whether some pair is on together far too seldom for any OR mixture."""
        return any(pair.observed < FEW_COINCIDENCES * pair.expected for pair in self.negative_pairs)

    @property
    def verdict(self) -> Verdict:
        """What the table alone says: "open" unless something speaks against any OR mixture."""
        if self.is_refuted:
            return "misfit"
        return "doubtful" if self.negative_pairs else "open"

    def objections(self) -> list[str]:
        """What speaks against any OR mixture."""
        if not self.negative_pairs:
            return []
        many = f"in {self.n_negative_pairs} of {counted(self.n_pairs, 'pair')}, sensors exclude each other"
        which = folded([pair.words() for pair in self.negative_pairs], 2, self.n_negative_pairs)
        return [f"{many}, which independent sources never bring about: {which}"]

    def sentences(self) -> list[str]:
        """What the table shows, objections left out."""
        lines = [f"in {percent(self.quiet_share)} of the rows every sensor is quiet"]
        if not self.quiet_share:
            lines = ["no row is all quiet: a source or a noisy sensor is nearly always on, which is hard to learn from"]
        if self.missing_share:
            lines.append(f"{percent(self.missing_share)} of the cells are missing")
        for names, words in ((self.always_on, "always on"), (self.always_off, "never on")):
            if names:
                lines.append(f"{counted(len(names), 'sensor')} {words}: {folded(names, LISTED)}")
        if self.duplicates:
            lines.append(f"equal columns: {folded([' = '.join(names) for names in self.duplicates], LISTED)}")
        return lines + self._pair_sentences()

    def _pair_sentences(self) -> list[str]:
        if self.n_varying > PAIR_LIMIT:
            return [f"pairs of sensors were not checked: more than {PAIR_LIMIT} sensors vary"]
        lines = ["no pair of sensors excludes each other"] if self.n_pairs and not self.negative_pairs else []
        if len(self.groups) > 1:
            sizes = folded([str(size) for size in self.groups], LISTED)
            lines.append(f"the sensors fall into {len(self.groups)} unconnected groups, of {sizes} sensors")
        elif self.n_pairs:
            lines.append("all sensors that vary are connected")
        return lines


def _named(data: Observations, which: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(data.sensors[i] for i in np.flatnonzero(which))
