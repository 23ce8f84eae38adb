"""The one way from a table to a judged fit: open it, count its rows, learn, put the sources in order, diagnose."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from os import PathLike
from typing import Any, Unpack, cast

import numpy as np

from bica.data.columns import GROUPED_SENSORS, Binarize, Reading
from bica.data.engines import engine_of
from bica.data.observations import TableSums, observations_of
from bica.data.patterns import PatternCounts
from bica.data.rows import Order, Rows, order_in, trend_of
from bica.data.tables import open_table
from bica.diagnose.verdicts import Diagnosis
from bica.errors import BicaWarning, DataError, SettingError
from bica.model.fit import Fit, Method
from bica.progress import ctrl_c_beside_loops, memory_left, report

Data = PatternCounts | TableSums | Rows  # counted rows, a large table by its sums, or rows in order
NO_ORDER = Order()


class How(Reading, total=False):
    """How a table is to be read."""

    sensors: Sequence[str] | None  # names in place of those that the table has
    sample_weight: Any  # one weight per row, or the name of the column that holds them
    binarize: Binarize  # above this a number counts as 1


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The rows of a table, and what their order shows."""

    data: Data
    order: Order = NO_ORDER  # nothing, where rows were counted elsewhere


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The fit to a table, and its diagnosis."""

    counts: PatternCounts | TableSums
    fit: Fit  # sources by falling probability, then by columns; the diagnosis is among its diagnostics
    diagnosis: Diagnosis
    order: Order


@ctrl_c_beside_loops()
def learn(x: Any, method: Method, rng: np.random.Generator, *, temporal: bool = False, **how: Unpack[How]) -> Learned:
    """Learn a model from a table of any kind, or from what ``observe`` made of it, and diagnose the model.

    Rows in order are learned in order if the method can (``fit_in_order``), otherwise as counts. Where counted rows
    persist, such a method learns from them, and is judged, as if there were only so many independent ones. Rows that
    change along the table make any model of all of them doubtful.

    >>> from bica.methods import method_named
    >>> found = learn([[0, 0], [1, 0], [1, 1]] * 40, method_named("likelihood"), np.random.default_rng(0))
    >>> found.fit.model.mixing.astype(int).tolist(), found.diagnosis.verdict
    ([[1, 1], [0, 1]], 'fits')
    """
    observed = x if isinstance(x, Observed) else observe(x, temporal=temporal, **how)
    data, order = observed.data, observed.order
    if order.persistence is not None and isinstance(data, PatternCounts) and hasattr(method, "fit_in_order"):
        return _learn_from_fewer(data, method, rng, order)
    counts: PatternCounts | TableSums = data.counts() if isinstance(data, Rows) else data
    if not getattr(method, "learns_from_sums", False):
        counts = counts.counts()
    if memory_left() < inf and getattr(method, "learns_from_sums", False):
        from bica.estimate.forecast import check_memory  # only then

        check_memory(counts)
    size = f"{len(counts.weights)} distinct" if isinstance(counts, PatternCounts) else f"{counts.n_samples:.0f}"
    report(f"learning from {size} rows", 0, None)
    if isinstance(data, Rows) and hasattr(method, "fit_in_order"):
        fit = method.fit_in_order(data, rng).in_order()
    else:
        fit = method.fit(cast(PatternCounts, counts), rng).in_order()  # or sums, if it said so
    diagnosis = Diagnosis.of(counts, fit, order.trend)
    return Learned(counts, diagnosis.added_to(fit), diagnosis, order)


def observe(x: Any, *, temporal: bool = False, **how: Unpack[How]) -> Observed:
    """The rows of a table of any kind, counted or, with ``temporal``, in order, where each row counts once.

    The table is opened once. What the order of its first rows shows is looked at where it tells something: not in
    counts, weighted rows, baskets and lists of cells; and not in a stream or on a cluster, which cannot be read again.

    >>> observe([[0, 1], [1, 1], [0, 1]]).data.weights
    array([2., 1.])
    """
    if temporal or isinstance(x, Rows):
        rows = x if isinstance(x, Rows) else read_in_order(x, **how)
        return Observed(rows, Order(trend=trend_of(rows.words, rows.observed, rows.sensors)))
    if isinstance(x, TableSums):
        return Observed(x)
    if isinstance(x, PatternCounts):  # which takes no settings any more
        return Observed(PatternCounts.of(x, **how))
    table = open_table(x, **how)
    wide = len(table.sensors) > GROUPED_SENSORS
    data = observations_of(table) if wide else PatternCounts.of_distinct(table.distinct(), table.sensors)
    elsewhere = x == "-" if isinstance(x, str | PathLike) else engine_of(x) is not None
    if elsewhere or how.get("baskets") or how.get("long"):
        return Observed(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicaWarning)  # which the user heard when the rows were counted
        return Observed(data, order_in(table))


def read_in_order(
    x: Any,
    *,
    sensors: Sequence[str] | None = None,
    sample_weight: Any = None,
    binarize: Binarize = None,
    **reading: Unpack[Reading],
) -> Rows:
    """The rows of a table of any kind in their order; at least one, each of which counts once."""
    if sample_weight is not None:
        raise SettingError("consecutive rows count once each; leave out the weights or the order")
    rows = Rows.of(x, sensors=sensors, binarize=binarize, **reading)
    if not len(rows.words):
        raise DataError("the table has no rows, so there is nothing to learn from")
    return rows


def _learn_from_fewer(counts: PatternCounts, method: Method, rng: np.random.Generator, order: Order) -> Learned:
    """The same from the effective number of rows, so that errors, evidence and tests of fit hold."""
    assert order.persistence is not None
    stretch = order.persistence.stretch
    fewer = replace(counts, weights=counts.weights / stretch)
    found = learn(Observed(fewer, replace(order, persistence=None)), method, rng)
    height = found.fit.log_likelihood
    fit = replace(
        found.fit,
        n_samples=counts.n_samples,
        log_likelihood=None if height is None else height * stretch,
        diagnostics={**found.fit.diagnostics, "order": asdict(order.persistence)},
    )
    return Learned(counts, fit, found.diagnosis, order)
