"""Whether to trust a model: what its table shows before and after the fit, with a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.diagnose.goodness import (
    Confusion,
    OddPair,
    OddPattern,
    Splinters,
    both_on,
    complete_rows,
    confusions,
    find_odd_pair,
    find_odd_patterns,
    pattern_test,
    stretch_of,
)
from bica.diagnose.table import LISTED, TableCheck
from bica.model.files import as_json
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.text import VERDICTS, counted, folded, percent

Vector = NDArray[np.float64]

PATTERN_LIMIT = 16  # sensors up to which all patterns are checked
LEVEL, DOUBT = 0.01, 0.05  # p-values at or below which a fit is refuted, and in doubt
MISPLACED = 0.02  # a share of the rows that matters; with enough rows any model is refuted in some detail
ROWS_PER_NUMBER = 5  # fewer rows for each fitted number cannot refute it
RARELY = 0.001  # p-values below are called "hardly ever"


@dataclass(frozen=True, slots=True)
class FitCheck:
    """How well a model fits the table from which it was learned."""

    n_samples: float
    n_sources: int
    n_fitted: int  # numbers fitted by likelihood
    patterns_checked: bool
    n_impossible: float  # rows that are impossible under the model
    g2: float | None
    g2_expected: float | None  # of a true model, on average
    g2_p_value: float | None  # parametric bootstrap, without refits
    g2_draws: int
    misplaced: float  # a bound on the share of the rows that would have to change
    odd_pair: OddPair | None  # None if pairs were not checked
    odd_patterns: tuple[OddPattern, ...]  # the worst few of those that are significant
    n_odd_patterns: int
    confused: tuple[Confusion, ...]
    splinters: Splinters | None  # None unless most sources are parts of others

    @classmethod
    def of(cls, fit: Fit, data: PatternCounts) -> FitCheck:
        """The check of a fit by its table: all patterns up to 16 sensors, all pairs up to 2048. Nothing is fitted."""
        places, stretch = _varying(fit.model, data), stretch_of(fit)
        model, data = _named(fit.model).of_sensors(places), data.project(places.tolist())
        n_fitted, odd_pair, whole = (
            len(_fitted(fit)) + _fitted_noise(fit),
            find_odd_pair(model, data, stretch[places]),
            complete_rows(data),
        )
        size, split = (data.n_samples, fit.model.n_sources, n_fitted), Splinters.of(fit.model)
        unchecked = cls(*size, False, 0.0, None, None, None, 0, 0.0, odd_pair, (), 0, (), split)
        if places.size > PATTERN_LIMIT or not whole.weights.size:
            return unchecked
        probability, histogram = model.pattern_probability(), whole.histogram()
        longest = float(stretch.max(initial=1.0))
        test = pattern_test(probability, histogram / longest, n_fitted)
        odd = find_odd_patterns(probability, histogram, data.sensors, longest)
        return replace(
            unchecked,
            patterns_checked=True,
            n_impossible=float(histogram[probability <= 0].sum()),
            g2=test.g2 if np.isfinite(test.g2) else None,
            g2_expected=test.expected,
            g2_p_value=test.p_value,
            g2_draws=test.n_draws,
            misplaced=test.misplaced(whole.n_samples / longest),
            odd_patterns=tuple(odd[:LISTED]),
            n_odd_patterns=len(odd),
            confused=tuple(_confused(fit, model, whole)),
        )

    @property
    def p_value(self) -> float:
        """The p-value of both tests together."""
        pair = None if self.odd_pair is None else self.odd_pair.p_value
        values = [value for value in (self.g2_p_value, pair) if value is not None]
        return min(1.0, len(values) * min(values)) if values else 1.0

    @property
    def matters(self) -> bool:
        """Whether the difference is large enough to matter, however certain it is."""
        pair = 0.0 if self.odd_pair is None else abs(self.odd_pair.observed - self.odd_pair.expected) / self.n_samples
        return bool(self.n_impossible) or max(self.misplaced, pair) >= MISPLACED

    @property
    def has_too_few_rows(self) -> bool:
        """Whether the table is too short to refute anything."""
        return self.n_samples < ROWS_PER_NUMBER * max(1, self.n_fitted)

    def objections(self) -> list[str]:
        """What speaks against this model."""
        reasons = []
        if self.n_impossible:
            reasons.append(f"the model has {counted(self.n_impossible, 'row')} as impossible; fit with noise")
        elif self.p_value <= DOUBT:
            reasons.append(self._difference())
        if not self.n_sources and self.p_value <= DOUBT:
            reasons.append("no source was found: those rarer than min_probability are left out; give a smaller one")
        if self.splinters is not None:
            reasons.append(self.splinters.words())
        if self.has_too_few_rows:
            reasons.append(f"too few rows, {self.n_samples:.15g}, to judge {counted(self.n_fitted, 'fitted number')}")
        return reasons

    def _difference(self) -> str:
        """The difference in words, by whichever test shows it."""
        pair, rarity = self.odd_pair, f"chance alone does as much {_how_often(self.p_value)}"
        if self.g2 is not None and self.g2_p_value is not None and (pair is None or self.g2_p_value <= pair.p_value):
            share = f"at most {percent(self.misplaced)} of the rows would have to change"
            return f"the rows are not as the model has them: {share}; {rarity}"
        assert pair is not None
        who = pair.sensors[0] if pair.sensors[0] == pair.sensors[1] else " and ".join(pair.sensors)
        return f"{who}: on in {pair.observed:.5g} rows, not in {pair.expected:.5g} as the model has it; {rarity}"

    def sentences(self) -> list[str]:
        """What the comparison shows, objections left out."""
        lines = []
        if not self.patterns_checked:
            lines.append(f"patterns were not checked: more than {PATTERN_LIMIT} sensors vary, or every row has gaps")
        if self.odd_pair is None:
            lines.append("pairs of sensors were not checked against the model")
        if self.g2 is not None and self.p_value > DOUBT:
            lines.append(f"G² is {self.g2:.4g}; on average, a true model has {self.g2_expected:.4g}")
        if self.odd_patterns:
            words = folded([pattern.words() for pattern in self.odd_patterns], 2, self.n_odd_patterns)
            lines.append(f"{counted(self.n_odd_patterns, 'pattern')} unexplained: {words}")
        lines += [f"{' and '.join(pair.names)} can hardly be told apart" for pair in self.confused[:LISTED]]
        return lines


def _how_often(p_value: float) -> str:
    return "hardly ever" if p_value < RARELY else f"in at most {percent(p_value)} of cases"


def _varying(model: OrMixture, data: PatternCounts) -> NDArray[np.int64]:
    """The sensors that change in the data or, noise aside, in the model; the others say nothing about the noise."""
    hidden = np.diag(both_on(model.with_noise(Noise())))
    return np.union1d(data.varying(), np.flatnonzero((hidden > 0) & (hidden < 1)))


def _named(model: OrMixture) -> OrMixture:
    """The model with a name for every source, so that sources keep their names when sensors are left out."""
    return OrMixture(model.mixing, model.probability, model.noise, sensors=model.sensors, names=model.source_names())


def _fitted(fit: Fit) -> set[str]:
    """The names of sources whose probability was fitted by likelihood, which are those with a standard error."""
    errors = np.zeros(fit.model.n_sources) if fit.probability_error is None else fit.probability_error
    return {name for name, error in zip(fit.model.source_names(), errors, strict=True) if error > 0}


def _fitted_noise(fit: Fit) -> int:
    noise = fit.diagnostics.get("noise")
    if not isinstance(noise, dict) or not noise.get("estimated") or not noise.get("error", noise.get("n_unknown")):
        return 0
    return int(noise.get("n_unknown", 1))


def _confused(fit: Fit, model: OrMixture, data: PatternCounts) -> list[Confusion]:
    fitted, noise = _fitted(fit), _fitted_noise(fit) == 1
    sources = np.array([j for j, name in enumerate(model.names) if name in fitted], np.int64)
    return confusions(model, data, sources, noise=noise) if sources.size + noise > 1 else []


Verdict = Literal["fits", "doubtful", "misfit", "open"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict on a table and, if there is one, on a model learned from it.

    >>> exclusive = PatternCounts.of([[1, 0], [0, 1]] * 20, sensors=["a", "b"])
    >>> diagnosis = Diagnosis.of(exclusive)
    >>> diagnosis.verdict
    'misfit'
    >>> print(diagnosis.reasons[0][:43])
    in 1 of 1 pair, sensors exclude each other,
    """

    verdict: Verdict  # "open" before a fit, if nothing speaks against one
    reasons: tuple[str, ...]  # what speaks against the model
    table: TableCheck
    fit: FitCheck | None

    @classmethod
    def of(cls, data: PatternCounts, fit: Fit | None = None) -> Diagnosis:
        """The diagnosis of a table, and of a fit to it if there is one. Nothing is fitted, and the seed is fixed.

        Time grows with the pairs of sensors; up to 16 sensors, some hundred random tables are drawn. Fits take longer.
        """
        table = TableCheck.of(data, None if fit is None else stretch_of(fit))
        fit_check = None if fit is None else FitCheck.of(fit, data)
        reasons = table.objections() + ([] if fit_check is None else fit_check.objections())
        return cls(_verdict(table, fit_check), tuple(reasons), table, fit_check)

    def as_dict(self) -> dict[str, Any]:
        """The diagnosis as plain values that JSON can hold."""
        return dict(as_json(asdict(self)))

    def sentences(self) -> list[str]:
        """The diagnosis in plain English, one line per finding: the verdict, its reasons, everything else."""
        return [VERDICTS[self.verdict], *self.reasons, *self.findings()]

    def findings(self) -> list[str]:
        """The size of the table and what it shows, apart from what speaks against the model."""
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
