"""The one way from a table to a judged fit: open it, count its rows, learn, put the sources in order, diagnose."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack, cast

import numpy as np

from bica.data.chunks import GROUPED_SENSORS
from bica.data.columns import Binarize, Reading
from bica.data.observations import TableSums, observations_of
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.data.tables import open_table
from bica.diagnose.verdicts import Diagnosis
from bica.errors import BicaWarning, DataError, SettingError
from bica.kernels.bits import Words, unpacked
from bica.model.fit import Fit, Method
from bica.progress import report

Data = PatternCounts | TableSums | Rows  # counted rows, a large table by its sums, or rows in order


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The fit to a table, and its diagnosis."""

    counts: PatternCounts | TableSums
    fit: Fit  # sources by falling probability, then by columns; the diagnosis is among its diagnostics
    diagnosis: Diagnosis


def read(
    x: Any,
    *,
    sensors: Sequence[str] | None = None,
    sample_weight: Any = None,
    binarize: Binarize = None,
    temporal: bool = False,
    **reading: Unpack[Reading],
) -> Data:
    """The rows of a table of any kind: counted or, with ``temporal``, in order, where each row counts once.

    >>> read([[0, 1], [1, 1], [0, 1]]).weights
    array([2., 1.])
    """
    if temporal:
        if sample_weight is not None:
            raise SettingError("consecutive rows count once each; leave out the weights or the order")
        return read_in_order(x, sensors=sensors, binarize=binarize, **reading)
    if isinstance(x, PatternCounts):  # which takes no settings any more
        return PatternCounts.of(x, sensors=sensors, sample_weight=sample_weight, binarize=binarize, **reading)
    table = open_table(x, sensors=sensors, sample_weight=sample_weight, binarize=binarize, **reading)
    if len(table.sensors) > GROUPED_SENSORS:
        return observations_of(table)
    return PatternCounts.of_distinct(table.distinct(), table.sensors)


def read_in_order(
    x: Any, *, sensors: Sequence[str] | None = None, binarize: Binarize = None, **reading: Unpack[Reading]
) -> Rows:
    """The rows of a table of any kind in their order; at least one."""
    rows = Rows.of(x, sensors=sensors, binarize=binarize, **reading)
    if not len(rows.words):
        raise DataError("the table has no rows, so there is nothing to learn from")
    return rows


def order_of(
    x: Any, *, sensors: Sequence[str] | None = None, binarize: Binarize = None, **reading: Unpack[Reading]
) -> Persistence | None:
    """Whether the first rows of a table persist, so that their order matters; None for counts and for a stream."""
    is_stream = isinstance(x, str) and x == "-"
    if isinstance(x, PatternCounts | Rows) or is_stream or reading.get("baskets") or reading.get("long"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicaWarning)  # which the user heard when the table was read
        table = open_table(x, sensors=sensors, binarize=binarize, **reading)
        first = next(iter(table.chunks()), None)
    if first is None or first.weights is not None:
        return None
    return persistence_of(first.words, first.observed, table.sensors)


ALIKE = 0.3  # correlation of a sensor with itself one row later that matters
CLEARLY = 8.0  # standard errors from 0, so that none of thousands of sensors of independent rows is that far
ROWS_COMPARED, LEAST_ROWS = 20_000, 100  # the first rows of a table are enough, and fewer show nothing
RUNS_PER_ROW = 2.0  # a table that is sorted or grouped has hardly more runs of equal rows than distinct rows
LEAST_STRETCH = 4.0  # rows that count as one: with fewer, rows may be entered two or three times, or one column sorted
LEAST_STRETCHES = 50.0  # independent rows that a table must be worth, or there are too few runs
SLOWEST = 0.999  # a sensor forgets its state at least this fast


@dataclass(frozen=True, slots=True)
class Persistence:
    """Consecutive rows that are alike: each tells less than an independent row would."""

    sensor: str  # the one that persists most
    correlation: float  # with itself one row later
    stretch: float  # rows that tell as much about a sensor as one independent row: the median of all sensors

    def words(self) -> str:
        """What was observed."""
        return (
            f"rows that follow each other are alike: {self.sensor} has a correlation of {self.correlation:.2f} with "
            f"itself one row later, and {self.stretch:.2g} rows count as one"
        )


def persistence_of(words: Words, observed: Words | None, sensors: Sequence[str]) -> Persistence | None:
    """Whether consecutive rows are alike, by the runs of every sensor; None if not, and for sorted or grouped tables.

    In any order of the same rows, a sensor that is on in the share p of T rows is on in two consecutive rows T p^2
    times, give or take sqrt(T) p (1 - p). With the correlations r1 and r2 one and two rows later, a state that is
    forgotten by the factor d = r2 / r1 per row makes the mean of T rows vary as that of T / (1 + 2 r1 / (1 - d))
    independent ones; noise lowers r1, but not d.

    >>> slots = np.repeat(np.random.default_rng(0).random((200, 1)) < 0.3, 6, axis=0).astype(np.uint64)
    >>> found = persistence_of(slots, None, ["door"])
    >>> found.sensor, round(found.correlation, 1)
    ('door', 0.8)
    """
    words = words[:ROWS_COMPARED]
    n_rows = len(words)
    if n_rows < LEAST_ROWS or (observed is not None and not (observed[:n_rows] == observed[0]).all()):
        return None
    cells = unpacked(words, len(sensors))
    share = cells.mean(axis=0)
    spread = np.maximum(share * (1.0 - share), 1.0 / n_rows**2)
    one, two = (((cells[lag:] & cells[:-lag]).mean(axis=0) - share**2) / spread for lag in (1, 2))
    most = int(np.argmax(one))
    if one[most] < max(ALIKE, CLEARLY / np.sqrt(n_rows)):
        return None
    forgets = np.clip(two / np.where(one > 0, one, 1.0), 0.0, SLOWEST)
    stretch = float(np.median(1.0 + 2.0 * np.maximum(one, 0.0) / (1.0 - forgets)))
    n_runs = 1 + int((words[1:] != words[:-1]).any(axis=1).sum())
    is_sorted = n_runs <= RUNS_PER_ROW * len(np.unique(words, axis=0))
    if is_sorted or not LEAST_STRETCH <= stretch <= n_rows / LEAST_STRETCHES:
        return None
    return Persistence(sensors[most], float(one[most]), stretch)


def learn(data: Data, method: Method, rng: np.random.Generator, order: Persistence | None = None) -> Learned:
    """Learn a model and diagnose it.

    Rows in order are learned in order if the method can (``fit_in_order``), otherwise as counts. Where counted rows
    persist (``order``), such a method learns from them, and is judged, as if there were only so many independent ones.

    >>> from bica.methods import method_named
    >>> found = learn(read([[0, 0], [1, 0], [1, 1]] * 40), method_named("likelihood"), np.random.default_rng(0))
    >>> found.fit.model.mixing.astype(int).tolist(), found.diagnosis.verdict
    ([[1, 1], [0, 1]], 'fits')
    """
    if order is not None and isinstance(data, PatternCounts) and hasattr(method, "fit_in_order"):
        return _learn_from_fewer(data, method, rng, order)
    counts: PatternCounts | TableSums = data.counts() if isinstance(data, Rows) else data
    if not getattr(method, "learns_from_sums", False):
        counts = counts.counts()
    size = f"{len(counts.weights)} distinct" if isinstance(counts, PatternCounts) else f"{counts.n_samples:.0f}"
    report(f"learning from {size} rows", 0, None)
    if isinstance(data, Rows) and hasattr(method, "fit_in_order"):
        fit = method.fit_in_order(data, rng).in_order()
    else:
        fit = method.fit(cast(PatternCounts, counts), rng).in_order()  # or sums, if it said so
    diagnosis = Diagnosis.of(counts, fit)
    return Learned(counts, diagnosis.added_to(fit), diagnosis)


def _learn_from_fewer(counts: PatternCounts, method: Method, rng: np.random.Generator, order: Persistence) -> Learned:
    """The same from the effective number of rows, so that errors, evidence and tests of fit hold."""
    fewer = replace(counts, weights=counts.weights / order.stretch)
    found = learn(fewer, method, rng)
    height = found.fit.log_likelihood
    fit = replace(
        found.fit,
        n_samples=counts.n_samples,
        log_likelihood=None if height is None else height * order.stretch,
        diagnostics={**found.fit.diagnostics, "order": asdict(order)},
    )
    return Learned(counts, fit, found.diagnosis)
