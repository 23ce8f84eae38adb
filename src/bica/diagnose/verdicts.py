"""Whether to believe a model: what the table showed before the fit and says of the fit, with a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from bica.data.patterns import PatternCounts
from bica.diagnose.fit import LEVEL, FitCheck
from bica.diagnose.table import TableCheck
from bica.model.files import as_json
from bica.model.fit import Fit
from bica.text import counted, verdict_words

Verdict = Literal["fits", "doubtful", "misfit", "open"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A table, and a model that was learned from it, judged.

    >>> exclusive = PatternCounts.of([[1, 0], [0, 1]] * 20, sensors=["a", "b"])
    >>> diagnosis = Diagnosis.of(exclusive)
    >>> diagnosis.verdict
    'misfit'
    >>> print(diagnosis.reasons[0][:43])
    in 1 of 1 pair, sensors exclude each other,
    """

    verdict: Verdict  # "open" before a fit that nothing speaks against
    reasons: tuple[str, ...]  # what speaks against the model
    table: TableCheck
    fit: FitCheck | None

    @classmethod
    def of(cls, data: PatternCounts, fit: Fit | None = None) -> Diagnosis:
        """Judge a table, and a fit to it if there is one. Nothing is fitted, and nothing is left to chance.

        Time: the pairs of sensors, and up to 16 of them some hundred random tables; less than a fit takes.
        """
        table, fit_check = TableCheck.of(data), None if fit is None else FitCheck.of(fit, data)
        reasons = table.objections() + ([] if fit_check is None else fit_check.objections())
        return cls(_verdict(table, fit_check), tuple(reasons), table, fit_check)

    def as_dict(self) -> dict[str, Any]:
        """The diagnosis in the plain values that JSON can hold."""
        return dict(as_json(asdict(self)))

    def sentences(self) -> list[str]:
        """The diagnosis in plain English, a line a finding: the verdict, its reasons, all else that was seen."""
        return [verdict_words(self.verdict), *self.reasons, *self.findings()]

    def findings(self) -> list[str]:
        """What was seen, apart from what speaks against the model."""
        table = self.table
        size = f"{counted(table.n_samples, 'row')} of {counted(table.n_sensors, 'sensor')}, {table.n_distinct} distinct"
        return [size, *table.sentences(), *([] if self.fit is None else self.fit.sentences())]

    def added_to(self, fit: Fit) -> Fit:
        """The fit with this diagnosis among its diagnostics."""
        return replace(fit, diagnostics={**fit.diagnostics, "diagnosis": self.as_dict()})


def _verdict(table: TableCheck, fit: FitCheck | None) -> Verdict:
    if table.is_refuted or (fit is not None and fit.p_value <= LEVEL and fit.matters):
        return "misfit"
    if table.negative_pairs or (fit is not None and fit.objections()):
        return "doubtful"
    return "open" if fit is None else "fits"
