"""What a table shows beside what a model expects: patterns, pairs, sensors, activity over time. Counts, never rows.

Counts of a few rows could point at somebody, so patterns and bins of fewer than ``SMALL`` rows are not told apart
unless rows are asked for.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import Binarize
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows, Trend, places_of
from bica.data.slots.store import as_dates
from bica.data.tables import OPENED, is_weighted, open_table
from bica.diagnose.goodness import binomial_tails, both_on, signed_deviance
from bica.diagnose.table import PAIR_LIMIT, stretch_of
from bica.errors import DataError, SettingError
from bica.invert.decode import decode
from bica.invert.elimination import Elimination
from bica.invert.groups import groups_of
from bica.invert.posterior import log_probability
from bica.invert.temporal.decode import decode_in_time
from bica.kernels.bits import Words, all_observed, n_words, packed, unpacked
from bica.model.fit import Fit
from bica.model.or_mixture import OrMixture

Vector = NDArray[np.float64]
SMALL = 5  # rows; smaller counts of patterns are not told apart
TOP = 24  # patterns and pairs that are listed
LATTICE = 16  # sensors up to which the patterns that the model expects most are found among all
CHEAP_CELLS, CHEAP_STATES = 250_000, 1 << 15  # of a mixing matrix and of a sum, up to which it takes a moment
FEWEST_DRAWS, MOST_DRAWS, DRAWN_CELLS, DRAWN_AT_ONCE, SEED = 4000, 100_000, 20_000_000, 4000, 0  # of a simulation
LEVEL = 0.05  # of a pair that differs by more than chance, corrected for all of them
MOST_BINS = 160  # of activity over time
ROWS_LISTED = 500
LARGEST_Z = 99.0  # of a pair that is impossible under the model


def counts_for(model: OrMixture, table: PatternCounts) -> PatternCounts:
    """The counts with their columns in the order of the model's sensors, and with its names.

    >>> model = OrMixture([[1], [1]], [0.5], sensors=["door", "yard"])
    >>> counts_for(model, PatternCounts.of([[1, 0]], sensors=["yard", "door"])).rows().astype(int)
    array([[0, 1]])
    """
    matched = table.project(places_of(model.sensors, table.sensors).tolist())
    return PatternCounts(matched.patterns, matched.weights, model.sensors, matched.observed)


@dataclass(frozen=True, slots=True, eq=False)
class PatternView:
    """The most frequent patterns, observed or expected, and all others together."""

    on: NDArray[np.bool_]  # (n_patterns, n_sensors)
    observed: Vector  # (n_patterns,), rows
    expected: Vector  # (n_patterns,), rows
    n_rows: float  # without missing cells
    n_others: int  # distinct patterns that were observed and are not listed
    n_draws: int  # simulated rows from which the expected ones were estimated; 0 if they are exact
    masked: bool  # whether patterns of few rows were left among the others

    @property
    def other_observed(self) -> float:
        """Rows whose pattern is not listed."""
        return max(0.0, self.n_rows - float(self.observed.sum()))

    @property
    def other_expected(self) -> float:
        """Rows that the model expects to have other patterns."""
        return max(0.0, self.n_rows - float(self.expected.sum()))

    @classmethod
    def of(cls, model: OrMixture, counts: PatternCounts, *, top: int = TOP, small: int = SMALL) -> PatternView:
        """The ``top`` patterns by rows, observed or expected; those of fewer than ``small`` rows stay among the others.

        Beyond 16 sensors, of the patterns that nobody observed only that of silence is considered. Where the sum over
        all activities takes long, what is expected is estimated from simulated rows.

        >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
        >>> view = PatternView.of(model, PatternCounts.of([[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 49 + [[0, 1]]))
        >>> view.observed, view.expected, view.other_observed
        (array([49., 40., 10.]), array([50., 40., 10.]), 1.0)
        """
        whole = _complete(counts)
        words = np.unique(np.vstack([_frequent(whole, top, small), _expected_words(model, top)]), axis=0)
        n_draws = 0 if _sums_quickly(model) else max(FEWEST_DRAWS, min(MOST_DRAWS, DRAWN_CELLS // model.n_sensors))
        probability = _simulated(model, words, n_draws) if n_draws else _summed(model, words)
        expected, observed = whole.n_samples * probability, _weights_of(whole, words)
        listed = (observed >= small) | ((observed == 0) & (expected >= small))
        order = np.lexsort([*words.T, -expected, -np.maximum(observed, expected)])
        chosen = order[listed[order]][:top]
        n_seen = int((observed[chosen] > 0).sum())
        few = bool((whole.weights < small).any())
        return cls(
            unpacked(words[chosen], model.n_sensors),
            observed[chosen],
            expected[chosen],
            whole.n_samples,
            len(whole.weights) - n_seen,
            n_draws,
            few and small > 1,
        )


def _complete(counts: PatternCounts) -> PatternCounts:
    """The rows without missing cells."""
    if counts.observed is None:
        return counts
    whole = (counts.observed == all_observed(counts.n_sensors)).all(axis=1)
    return PatternCounts(counts.patterns[whole], counts.weights[whole], counts.sensors)


def _sums_quickly(model: OrMixture) -> bool:
    """Whether the probability of a row can be summed over all activities in a moment."""
    if model.mixing.size > CHEAP_CELLS:
        return False
    groups = [group for group in groups_of(model) if group.sensors.size > LATTICE and group.mixing.any()]
    return all(group.reach is None and Elimination(group).n_states(CHEAP_STATES) is not None for group in groups)


def _summed(model: OrMixture, words: Words) -> Vector:
    observed = np.broadcast_to(all_observed(model.n_sensors), words.shape)
    probability: Vector = np.exp(log_probability(model, words, observed).value)
    return probability


def _simulated(model: OrMixture, words: Words, n_draws: int) -> Vector:
    """The share of ``n_draws`` simulated rows with each pattern; the seed is fixed."""
    rng, found, left = np.random.default_rng(SEED), np.zeros(len(words)), n_draws
    while left > 0:
        drawn = packed(np.ascontiguousarray(model.sample(min(left, DRAWN_AT_ONCE), rng)))
        found += [(drawn == word).all(axis=1).sum() for word in words]
        left -= len(drawn)
    return found / n_draws


def _frequent(counts: PatternCounts, n: int, small: int) -> Words:
    order = np.argsort(-counts.weights, kind="stable")[:n]
    return counts.patterns[order[counts.weights[order] >= small]]


def _expected_words(model: OrMixture, n: int) -> Words:
    """Patterns that the model expects often: all of them are looked at up to 16 sensors, else silence alone."""
    if model.n_sensors <= LATTICE:
        best = np.argsort(-model.pattern_probability(), kind="stable")[:n]
        return best.astype(np.uint64)[:, None]
    return np.zeros((1, n_words(model.n_sensors)), np.uint64)


def _weights_of(counts: PatternCounts, words: Words) -> Vector:
    known = {row.tobytes(): weight for row, weight in zip(counts.patterns, counts.weights, strict=True)}
    return np.array([known.get(row.tobytes(), 0.0) for row in words])


@dataclass(frozen=True, slots=True, eq=False)
class PairView:
    """The pairs of sensors, and single ones, whose counts are furthest from the model; and every sensor by itself."""

    first: NDArray[np.int64]  # (n_listed,), places of sensors; the same as ``second`` for a single one
    second: NDArray[np.int64]
    observed: Vector
    expected: Vector
    z: Vector  # the deviation in standard errors
    odd: NDArray[np.bool_]  # whether it is more than chance, corrected for all pairs
    n_tests: int
    n_odd: int
    on: Vector  # (n_sensors,), the share of rows in which each sensor was on
    on_expected: Vector
    on_z: Vector

    @classmethod
    def of(cls, fit: Fit, counts: PatternCounts, *, top: int = TOP) -> PairView:
        """All pairs up to 2048 sensors; beyond, none are listed.

        >>> fit = Fit(OrMixture([[1, 0], [0, 1]], [0.5, 0.5]))
        >>> view = PairView.of(fit, PatternCounts.of([[1, 1], [0, 0]] * 200))
        >>> view.first, view.second, view.observed, view.expected, view.odd
        (array([0]), array([1]), array([200.]), array([100.]), array([ True]))
        """
        model, n = fit.model, fit.model.n_sensors
        times, ones, together = counts.times_observed(), counts.ones(), both_on(model)
        alone = np.diag(together)
        singles = (ones / np.maximum(times, 1), alone, _deviance(ones, times * alone, alone))
        if not 1 <= n <= PAIR_LIMIT:
            none, nowhere = np.zeros(0), np.zeros(0, np.int64)
            return cls(nowhere, nowhere, none, none, none, np.zeros(0, bool), 0, 0, *singles)
        pairs = counts.pair_counts()
        first, second = np.triu_indices(n)
        thinned = pairs.thinned(stretch_of(fit))
        p_values = binomial_tails(
            np.rint(thinned.both[first, second]), np.rint(thinned.observed[first, second]), together[first, second]
        )
        odd = p_values * p_values.size <= LEVEL
        best = np.lexsort([np.arange(odd.size), p_values])[:top]
        best = best[p_values[best] < LEVEL]
        i, k = first[best], second[best]
        observed, expected = pairs.both[i, k], pairs.observed[i, k] * together[i, k]
        z = _deviance(observed, expected, together[i, k])
        return cls(i, k, observed, expected, z, odd[best], odd.size, int(odd.sum()), *singles)


def _deviance(observed: Vector, expected: Vector, probability: Vector) -> Vector:
    spread = np.sqrt(np.maximum(1 - probability, 1e-12))
    with np.errstate(invalid="ignore", divide="ignore"):
        z = signed_deviance(observed, expected) / spread
    return np.clip(np.nan_to_num(z, posinf=LARGEST_Z, neginf=-LARGEST_Z), -LARGEST_Z, LARGEST_Z)


def decoded(fit: Fit, rows: Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The most probable activity behind each row, in its order where the model knows how long sources stay on.

    Returns the activity (n_rows, n_sources), and which rows some set of sources can produce (n_rows,).
    """
    given, stays = rows.matched(fit.model.sensors), fit.persistence()
    if stays is not None and len(given.words):
        finite = np.where(np.isinf(stays), 1e6, stays)
        course = decode_in_time(fit.model, given.words, given.observed, persistence=finite)
        return course.activity, course.feasible
    found = decode(fit.model, given.words, given.observed, nearest=True)
    return found.activity, found.feasible


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What was read from the table: its counts, and the decoded rows where they are wanted."""

    counts: PatternCounts | None = None
    rows: Rows | None = None
    activity: NDArray[np.bool_] | None = None  # (n_rows, n_sources)
    feasible: NDArray[np.bool_] | None = None  # (n_rows,)
    times: Sequence[Any] | NDArray[Any] | None = None

    def renamed(self, sensors: tuple[str, ...]) -> Evidence:
        """The same with other names for the sensors."""
        if self.counts is None:
            return self
        counts = PatternCounts(self.counts.patterns, self.counts.weights, sensors, self.counts.observed)
        return replace(self, counts=counts)


def evidence_in(
    fit: Fit, table: Any, times: Any, binarize: Binarize, sample_weight: Any, *, with_rows: bool
) -> Evidence:
    """Read a table as far as a report needs it: counts, and the rows if times, a list or a model in time need them."""
    if table is None:
        return Evidence()
    given: Any = table
    if not isinstance(table, (PatternCounts, Rows, *OPENED)):
        given = open_table(table, binarize=binarize, sample_weight=sample_weight)
    own = None if isinstance(given, PatternCounts) else given.time if isinstance(given, Rows) else given.columns.time
    has_order = isinstance(given, Rows) or not (isinstance(given, PatternCounts) or is_weighted(given))
    if not has_order and (with_rows or times is not None):
        raise SettingError("weighted or counted rows have no order; leave out the weights, or with_rows and times")
    has_time = times is not None or own is not None or fit.persistence() is not None or saved_trend(fit) is not None
    wanted = with_rows or has_time
    if not (has_order and wanted):
        counts = given.counts() if isinstance(given, Rows) else PatternCounts.of(given)
        return Evidence(counts_for(fit.model, counts))
    rows = replace(Rows.of(given).matched(fit.model.sensors), sensors=fit.model.sensors)
    return Evidence(rows.counts(), rows, *decoded(fit, rows), readable(rows.times) if times is None else times)


def saved_trend(fit: Fit) -> Trend | None:
    """The trend of the rows that the model was learned from, as its diagnosis says; None: there was none."""
    diagnosis = fit.diagnostics.get("diagnosis")
    saved = diagnosis.get("trend") if isinstance(diagnosis, Mapping) else None
    if not isinstance(saved, Mapping) or saved.get("sensor") not in fit.model.sensors:
        return None
    numbers = [saved.get(key) for key in ("first", "last", "n_sensors")]
    if not all(isinstance(number, int | float) for number in numbers):
        return None
    first, last, n_sensors = (float(number) for number in numbers if number is not None)
    return Trend(str(saved["sensor"]), first, last, int(n_sensors))


def readable(times: Sequence[Any] | NDArray[Any] | None) -> NDArray[Any] | None:
    """The times that a table itself holds, as dates or numbers; None where they are neither, or some are missing."""
    if times is None or not len(times):
        return None
    with suppress(ValueError):
        return np.array([float(time) for time in times])
    return as_dates([str(time) for time in times])


@dataclass(frozen=True, slots=True, eq=False)
class ActivityView:
    """How often each source was active in equal stretches of time, or of rows."""

    share: Vector  # (n_sources, n_bins); 0 where there are too few rows
    n_rows: NDArray[np.int64]  # (n_bins,); 0 where there are too few rows to show
    labels: tuple[str, ...]  # (n_bins,), where each begins
    in_time: bool  # whether the bins are times, not numbers of rows

    @classmethod
    def of(
        cls, activity: NDArray[np.bool_], times: Sequence[Any] | NDArray[Any] | None = None, *, small: int = SMALL
    ) -> ActivityView:
        """Bins of at least ``small`` rows on average, 160 at most; bins of fewer rows than that are left empty.

        ``times`` are dates, in any form that NumPy reads, or numbers; without them the rows are numbered.

        >>> view = ActivityView.of(np.array([[True]] * 10 + [[False]] * 10), small=5)
        >>> view.share.round(2).tolist(), view.labels
        ([[1.0, 1.0, 0.0, 0.0]], ('row 1', 'row 6', 'row 11', 'row 16'))
        """
        n = len(activity)
        moments, is_date = _moments(times, n)
        n_bins = max(1, min(MOST_BINS, n // max(1, small)))
        low, high = (float(moments.min()), float(moments.max())) if n else (0.0, 0.0)
        width = (high - low) / n_bins if high > low else 1.0
        if times is None:
            low, width = 0.0, max(1.0, n / n_bins)
        place = np.minimum((moments - low) // width, n_bins - 1).astype(np.int64)
        n_rows = np.bincount(place, minlength=n_bins)
        sums = np.array([np.bincount(place, weights=column, minlength=n_bins) for column in activity.T.astype(float)])
        sums = sums.reshape(activity.shape[1], n_bins)
        shown = n_rows >= min(small, max(1, n))
        share = np.where(shown, sums / np.maximum(n_rows, 1), 0.0)
        starts = np.array([low + width * place for place in range(n_bins)])
        labels = _labels(starts, width, is_date, times is None)
        return cls(share, np.where(shown, n_rows, 0), tuple(labels), times is not None)

    def order(self) -> list[int]:
        """The sources, those whose activity changes most first."""
        spread = self.share[:, self.n_rows > 0]
        change = np.ptp(spread, axis=1) if spread.size else np.zeros(len(self.share))
        return [int(j) for j in np.argsort(-change, kind="stable")]

    def content(self) -> dict[str, Any]:
        """The view as plain values, the shares as bytes in base 64."""
        n_bins = len(self.labels)
        ticks = [self.labels[i] for i in sorted({0, n_bins // 2, n_bins - 1})]
        return {
            "n_bins": n_bins,
            "n_rows": self.n_rows.tolist(),
            "shares": base64.b64encode(np.rint(255 * self.share).astype(np.uint8).tobytes()).decode("ascii"),
            "labels": list(self.labels),
            "ticks": ticks,
            "order": self.order(),
        }


def _moments(times: Sequence[Any] | NDArray[Any] | None, n: int) -> tuple[Vector, bool]:
    """The times as numbers, and whether they are dates: then in seconds since 1970."""
    if times is None:
        return np.arange(n, dtype=float), False
    found = readable(times) if len(times) and all(isinstance(time, str) for time in times) else None
    values = np.asarray(times) if found is None else found
    if values.shape != (n,):
        raise DataError(f"there are {n} rows, but times has shape {values.shape}; give one time per row")
    try:
        if values.dtype.kind in "iuf" or _are_numbers(values):
            return values.astype(float), False
        dates = values.astype("datetime64[us]")
    except (TypeError, ValueError) as error:
        raise DataError(f"the times cannot be read as dates or numbers: {error}") from None
    if np.isnat(dates).any():
        raise DataError("some times are missing; give one time per row")
    return dates.astype(np.int64) / 1e6, True


def _are_numbers(values: NDArray[Any]) -> bool:
    """Whether texts are numbers; a year alone counts as one."""
    try:
        values.astype(float)
    except (TypeError, ValueError):
        return False
    return values.dtype.kind == "U"


MINUTE, DAY = 60.0, 86400.0  # seconds


def _labels(starts: Vector, width: float, is_date: bool, is_row: bool) -> list[str]:
    if is_row:
        return [f"row {int(np.ceil(start)) + 1}" for start in starts]
    if not is_date:
        return [f"{start:.6g}" for start in starts]
    unit = "D" if width >= DAY else "m" if width >= MINUTE else "s"
    dates = np.rint(starts * 1e6).astype(np.int64).astype("datetime64[us]").astype(f"datetime64[{unit}]")
    return [str(date).replace("T", " ") for date in dates]
