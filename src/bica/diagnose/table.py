"""What a table shows before any fit: whether OR mixtures can explain it, and what makes learning hard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bica.data.pairs import ColumnBits, PairCounts, dependent_pairs
from bica.data.patterns import PatternCounts
from bica.text import counted, folded, percent

PAIR_LIMIT = 2048  # sensors up to which all pairs are checked
LEVEL = 0.01  # of the test for negative pairs, corrected for all of them
LINKED = 0.05  # level of the test by which two sensors are connected
FEW_COINCIDENCES = 0.9  # share of those expected: with more, a pair is negative, but only just
LISTED = 5  # entries in a sentence


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
    n_distinct: int
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
    def of(cls, data: PatternCounts, stretch: NDArray[np.float64] | None = None) -> TableCheck:
        """The check of a table: time linear in the distinct rows, and quadratic in the sensors (up to 2048 of them).

        ``stretch`` says, sensor by sensor, how many consecutive rows count as one; None: rows are independent.

        >>> check = TableCheck.of(PatternCounts.of([[1, 0, 0], [0, 1, 0]] * 20, sensors=["a", "b", "c"]))
        >>> check.always_off, check.negative_pairs[0].sensors, check.quiet_share
        (('c',), ('a', 'b'), 0.0)
        """
        ones, n_observed = data.ones(), data.times_observed()
        varying = data.project(data.varying().tolist())
        pairs = PairCounts.of(varying) if 2 <= varying.n_sensors <= PAIR_LIMIT else None
        thinned = pairs if pairs is None or stretch is None else pairs.thinned(stretch[data.varying()])
        negative = _negative_pairs(varying, pairs, thinned)
        return cls(
            n_samples=data.n_samples,
            n_sensors=data.n_sensors,
            n_distinct=len(data.weights),
            quiet_share=float(data.weights[~data.patterns.any(axis=1)].sum()) / data.n_samples,
            missing_share=max(0.0, 1.0 - float(n_observed.mean()) / data.n_samples),
            always_on=_named(data, (ones > 0) & (ones >= n_observed)),
            always_off=_named(data, ones <= 0),
            duplicates=_duplicates(varying),
            n_pairs=0 if pairs is None else varying.n_sensors * (varying.n_sensors - 1) // 2,
            n_negative_pairs=len(negative),
            negative_pairs=tuple(negative[:LISTED]),
            groups=_groups(varying.n_sensors, thinned),
        )

    @property
    def n_varying(self) -> int:
        """How many sensors are neither always on nor always off."""
        return self.n_sensors - len(self.always_on) - len(self.always_off)

    @property
    def is_refuted(self) -> bool:
        """Whether some pair is on together far too seldom for any OR mixture."""
        return any(pair.observed < FEW_COINCIDENCES * pair.expected for pair in self.negative_pairs)

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


def _named(data: PatternCounts, which: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(data.sensors[i] for i in np.flatnonzero(which))


def _duplicates(data: PatternCounts) -> tuple[tuple[str, ...], ...]:
    """Groups of sensors that were observed in the same rows and showed the same in them."""
    columns = ColumnBits.of(data)
    equal: dict[tuple[bytes, ...], list[str]] = {}
    for place, name in enumerate(data.sensors):
        parts = (columns.on,) if columns.observed is None else (columns.on, columns.observed)
        equal.setdefault(tuple(part[place].tobytes() for part in parts), []).append(name)
    return tuple(tuple(names) for names in equal.values() if len(names) > 1)


def _negative_pairs(data: PatternCounts, pairs: PairCounts | None, thinned: PairCounts | None) -> list[NegativePair]:
    """The pairs that are on together significantly too seldom, the clearest first."""
    if pairs is None or thinned is None:
        return []
    p_values, expected = thinned.apart(), pairs.expected()
    found = np.argwhere(np.triu(dependent_pairs(p_values, LEVEL), 1))
    order = np.lexsort((pairs.both[*found.T] - expected[*found.T], p_values[*found.T]))
    return [
        NegativePair(
            (data.sensors[i], data.sensors[k]), float(pairs.both[i, k]), float(expected[i, k]), float(p_values[i, k])
        )
        for i, k in found[order]
    ]


def _groups(n_sensors: int, pairs: PairCounts | None) -> tuple[int, ...]:
    if pairs is None:
        return (1,) if n_sensors == 1 else ()
    _, group = connected_components(dependent_pairs(pairs.together(), LINKED), directed=False)
    return tuple(sorted(np.bincount(group).tolist(), reverse=True))
