"""The one way from a table to a judged fit: open it, count its rows, learn, put the sources in order, diagnose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from bica.data.columns import Binarize, Reading
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.diagnose.verdicts import Diagnosis
from bica.errors import DataError, SettingError
from bica.model.fit import Fit, Method
from bica.progress import report

Data = PatternCounts | Rows  # counted rows, or rows in order


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The fit to a table, and its diagnosis."""

    counts: PatternCounts
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
    if not temporal:
        return PatternCounts.of(x, sensors=sensors, sample_weight=sample_weight, binarize=binarize, **reading)
    if sample_weight is not None:
        raise SettingError("consecutive rows count once each; leave out the weights or the order")
    return read_in_order(x, sensors=sensors, binarize=binarize, **reading)


def read_in_order(
    x: Any, *, sensors: Sequence[str] | None = None, binarize: Binarize = None, **reading: Unpack[Reading]
) -> Rows:
    """The rows of a table of any kind in their order; at least one."""
    rows = Rows.of(x, sensors=sensors, binarize=binarize, **reading)
    if not len(rows.words):
        raise DataError("the table has no rows, so there is nothing to learn from")
    return rows


def learn(data: Data, method: Method, rng: np.random.Generator) -> Learned:
    """Learn a model and diagnose it.

    Rows in order are learned in order if the method can (``fit_in_order``), otherwise as counts.

    >>> from bica.methods import method_named
    >>> found = learn(read([[0, 0], [1, 0], [1, 1]] * 40), method_named("likelihood"), np.random.default_rng(0))
    >>> found.fit.model.mixing.astype(int).tolist(), found.diagnosis.verdict
    ([[1, 1], [0, 1]], 'fits')
    """
    counts = data if isinstance(data, PatternCounts) else data.counts()
    report(f"learning from {len(counts.weights)} distinct rows", 0, None)
    if isinstance(data, Rows) and hasattr(method, "fit_in_order"):
        fit = method.fit_in_order(data, rng).in_order()
    else:
        fit = method.fit(counts, rng).in_order()
    diagnosis = Diagnosis.of(counts, fit)
    return Learned(counts, diagnosis.added_to(fit), diagnosis)
