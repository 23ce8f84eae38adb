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
from bica.data.rows import Order, Rows, order_in, trend_of
from bica.data.tables import open_table
from bica.diagnose.verdicts import Diagnosis
from bica.errors import BicaWarning, DataError, SettingError
from bica.model.fit import Fit, Method
from bica.progress import ctrl_c_beside_loops, report

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
) -> Order:
    """What the order of the first rows of a table shows: whether they persist, and whether they change on the way.

    Counts, weighted rows and streams show nothing.
    """
    is_stream = isinstance(x, str) and x == "-"
    if isinstance(x, PatternCounts | Rows) or is_stream or reading.get("baskets") or reading.get("long"):
        return Order()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicaWarning)  # which the user heard when the table was read
        table = open_table(x, sensors=sensors, binarize=binarize, **reading)
        return order_in(table)


@ctrl_c_beside_loops()
def learn(data: Data, method: Method, rng: np.random.Generator, order: Order | None = None) -> Learned:
    """Learn a model and diagnose it.

    Rows in order are learned in order if the method can (``fit_in_order``), otherwise as counts. Where counted rows
    persist (``order``), such a method learns from them, and is judged, as if there were only so many independent ones.
    Rows that change along the table make any model of all of them doubtful.

    >>> from bica.methods import method_named
    >>> found = learn(read([[0, 0], [1, 0], [1, 1]] * 40), method_named("likelihood"), np.random.default_rng(0))
    >>> found.fit.model.mixing.astype(int).tolist(), found.diagnosis.verdict
    ([[1, 1], [0, 1]], 'fits')
    """
    if order is None:
        order = Order(trend=trend_of(data.words, data.observed, data.sensors)) if isinstance(data, Rows) else Order()
    if order.persistence is not None and isinstance(data, PatternCounts) and hasattr(method, "fit_in_order"):
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
    diagnosis = Diagnosis.of(counts, fit, order.trend)
    return Learned(counts, diagnosis.added_to(fit), diagnosis)


def _learn_from_fewer(counts: PatternCounts, method: Method, rng: np.random.Generator, order: Order) -> Learned:
    """The same from the effective number of rows, so that errors, evidence and tests of fit hold."""
    assert order.persistence is not None
    stretch = order.persistence.stretch
    found = learn(replace(counts, weights=counts.weights / stretch), method, rng, replace(order, persistence=None))
    height = found.fit.log_likelihood
    fit = replace(
        found.fit,
        n_samples=counts.n_samples,
        log_likelihood=None if height is None else height * stretch,
        diagnostics={**found.fit.diagnostics, "order": asdict(order.persistence)},
    )
    return Learned(counts, fit, found.diagnosis)
