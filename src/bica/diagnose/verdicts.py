"""Whether to trust a model: what its table shows before and after the fit, with a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.data.observations import Observations
from bica.data.rows import Trend
from bica.diagnose.blocks import LEVEL, OVERLOOKED, WIDTH, BlockTests, block_tests
from bica.diagnose.goodness import (
    Confusion,
    OddPair,
    OddPattern,
    QuietRows,
    Splinters,
    confusions,
    find_odd_pair,
    find_odd_patterns,
    pattern_test,
)
from bica.diagnose.table import LISTED, TableCheck, Verdict, Watched, stretch_of
from bica.model.files import as_json
from bica.model.fit import Fit
from bica.model.noise import pattern_table
from bica.model.or_mixture import OrMixture
from bica.text import BEFORE_A_FIT, VERDICTS, counted, folded, percent

Vector = NDArray[np.float64]

DOUBT = 0.05  # p-value at or below which a fit is in doubt; it is refuted at LEVEL
MISPLACED = 0.02  # a share of the rows that matters; with enough rows any model is refuted in some detail
ROWS_PER_NUMBER = 5  # fewer rows for each fitted number cannot refute it
WORSE: tuple[Verdict, ...] = (
    "open",
    "fits",
    "too few rows",
    "doubtful",
    "misfit",
)  # of two verdicts on one model the later counts
CLEAR_LEAD = 10.0  # nats by which another kind of edges must lead to be preferred to the one that was asked for
TRIED = 16  # sensors up to which misses of every sensor are tried before lossy edges are the answer
RARELY = 0.001  # p-values below are called "hardly ever"
HARDLY_ANY = 2e-5  # a leak below is at its bound: its interval is one-sided, and it counts as no fitted number


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
    splinters: Splinters | None  # None unless many sources are parts of others
    blocks: BlockTests | None  # None if there are no sources, or no complete rows
    quiet: QuietRows
    n_shared: int  # sources that reach two sensors or more
    is_related: bool  # whether any two sensors depend on each other
    state: str  # how learning ended: "settled", "interrupted", "out of time" or "not settled"
    lead_of_lossy: float = 0.0  # nats by which lossy edges explain the rows better than these sure ones, if known
    may_miss: bool = False  # whether sensors that miss were left untried beside lossy edges

    @classmethod
    def of(cls, fit: Fit, watched: Watched) -> FitCheck:
        """The check of a fit by its table: patterns of all sensors up to 16, else of blocks, and pairs up to 2048."""
        model, fitted, noise = _watched_model(fit.model, watched.places), _fitted(fit), _fitted_noise(fit)
        sources, whole = _named(model, fit.model, fitted), watched.complete
        n_fitted = int(fitted.sum()) + noise + _fitted_edges(fit)
        checked = whole is not None and whole.weights.size > 0
        histogram = watched.histogram if checked else np.zeros(0)
        rates = model.noise.rates(len(model.sensors))
        shown = (model.mixing, model.probability, *rates)
        probability = pattern_table(*shown, lossy_reach=model.lossy_reach) if checked else np.zeros(0)
        longest = float(watched.stretch.max(initial=1.0))
        test = pattern_test(probability, histogram / longest, n_fitted) if checked else None
        misplaced = 0.0 if test is None or whole is None else test.misplaced(whole.n_samples / longest)
        odd = find_odd_patterns(probability, histogram, watched.counts.sensors, longest) if checked else []
        odd_pair, quiet, splinters = (
            find_odd_pair(model, watched),
            QuietRows.of(model, watched),
            Splinters.of(fit.model),
        )
        confused = (
            [] if whole is None or not checked else confusions(model, whole, sources, probability, noise=noise == 1)
        )
        blocks = block_tests(model, watched)
        return cls(
            n_samples=watched.counts.n_samples,
            n_sources=fit.model.n_sources,
            n_fitted=n_fitted,
            patterns_checked=checked,
            n_impossible=float(histogram[probability <= 0].sum()) if blocks is None or checked else blocks.n_impossible,
            g2=test.g2 if test is not None and np.isfinite(test.g2) else None,
            g2_expected=None if test is None else test.expected,
            g2_p_value=None if test is None else test.p_value,
            g2_draws=0 if test is None else test.n_draws,
            misplaced=misplaced,
            odd_pair=odd_pair,
            odd_patterns=tuple(odd[:LISTED]),
            n_odd_patterns=len(odd),
            confused=tuple(confused),
            splinters=splinters,
            blocks=blocks,
            quiet=quiet,
            n_shared=int((fit.model.mixing.sum(axis=0) > 1).sum()),
            is_related=watched.pairs is None or watched.pairs.has_clear_link,
            state=_state(fit),
            lead_of_lossy=_lead_of_lossy(fit),
            may_miss=fit.model.n_sensors > TRIED and fit.model.has_lossy_edges and "other_edges" in fit.diagnostics,
        )

    @property
    def p_value(self) -> float:
        """The p-value of all tests together."""
        values = [value for value in self._p_values() if value is not None]
        return min(1.0, len(values) * min(values))

    def _p_values(self) -> tuple[float | None, ...]:
        """Of patterns, pairs, blocks and quiet rows; None where they were not tested."""
        pair = None if self.odd_pair is None else self.odd_pair.p_value
        return self.g2_p_value, pair, None if self.blocks is None else self.blocks.odd.p_value, self.quiet.p_value

    @property
    def matters(self) -> bool:
        """Whether the difference is large enough to matter, however certain it is."""
        pair = 0.0 if self.odd_pair is None else abs(self.odd_pair.observed - self.odd_pair.expected) / self.n_samples
        block = 0.0 if self.blocks is None else self.blocks.misplaced
        quiet = (self.quiet.expected - self.quiet.observed) / max(1.0, self.n_samples)
        return bool(self.n_impossible) or max(self.misplaced, pair, block, quiet) >= MISPLACED

    @property
    def has_too_few_rows(self) -> bool:
        """Whether the table is too short to refute anything."""
        return self.n_samples < self.rows_needed

    @property
    def rows_needed(self) -> float:
        """To judge the model: five for each fitted number, and enough to notice that a source was overlooked."""
        shown = None if self.blocks is None else self.blocks.rows_needed
        return max(ROWS_PER_NUMBER * max(1, self.n_fitted), shown or 0.0)

    @property
    def verdict(self) -> Verdict:
        """What the comparison says."""
        if self.p_value <= LEVEL and self.matters:
            return "misfit"
        if self.objections():
            return "doubtful"
        return "too few rows" if self.has_too_few_rows else "fits"

    def objections(self) -> list[str]:
        """What speaks against this model."""
        reasons = [UNFINISHED[self.state]] if self.state in UNFINISHED else []
        if self.n_impossible:
            reasons.append(f"the model has {counted(self.n_impossible, 'row')} as impossible; fit with noise")
        elif self.p_value <= DOUBT:
            reasons.append(self._difference())
        if not self.n_sources and self.p_value <= DOUBT:
            reasons.append("no source was found: those rarer than min_probability are left out; give a smaller one")
        elif not self.n_shared or not self.is_related:
            reasons.append(
                "nothing was learned: no two sensors clearly depend on each other, so nothing shows a source of both"
            )
        if self.splinters is not None:
            reasons.append(self.splinters.words())
        if self.lead_of_lossy > CLEAR_LEAD:
            reasons.append(f"edges that fail at times explain the rows better, by {self.lead_of_lossy:.0f} nats")
        return reasons

    def next_steps(self) -> list[str]:
        """What to do about each kind of trouble, as a person would type it."""
        steps = []
        if self.state == "interrupted":
            steps.append("run it again and let it come to its end")
        if self.state == "out of time":
            steps.append("give it more time, or watch fewer sensors")
        if self.n_impossible:
            steps.append("learn with noise: leave out --noise 0")
        if self.quiet.p_value <= DOUBT and self.quiet.p_value == min(p for p in self._p_values() if p is not None):
            steps.append(
                "add the rows in which nothing was on, for instance once with their number in a column for --weights"
            )
        if self.splinters is not None or self.lead_of_lossy > CLEAR_LEAD:
            steps.append(
                "let edges fail at times with --edges lossy, or give each sensor misses with --noise per-sensor"
            )
        if self.may_miss and self.p_value <= DOUBT:
            steps.append("let every sensor miss at a rate of its own instead, with --noise per-sensor")
        if not self.n_shared or not self.is_related:
            steps.append("choose other columns, longer slots or more rows: these columns tell nothing of each other")
        elif self.has_too_few_rows:
            steps.append(f"watch for longer: some {self.rows_needed:.2g} rows would do")
        return steps

    def remarks(self) -> list[str]:
        """What keeps the rows from speaking for this model, though nothing speaks against it."""
        if not self.has_too_few_rows:
            return []
        overlooked = f"that a source which is on in {percent(OVERLOOKED)} of the rows was overlooked"
        return [f"{counted(self.n_samples, 'row')} would hardly show {overlooked}; some {self.rows_needed:.2g} would"]

    def _difference(self) -> str:
        """The difference in words, by whichever test shows it."""
        pair, rarity = self.odd_pair, f"chance alone does as much {_how_often(self.p_value)}"
        clearest = min(value for value in self._p_values() if value is not None)
        if self.quiet.p_value == clearest:
            return f"{self.quiet.words()}; {rarity}"
        if self.blocks is not None and self.blocks.odd.p_value == clearest:
            return f"{self.blocks.odd.words()}; {rarity}"
        if self.g2 is not None and self.g2_p_value == clearest:
            share = f"at most {percent(self.misplaced)} of the rows would have to change"
            return f"the rows are not as the model expects: {share}; {rarity}"
        assert pair is not None
        return f"{pair.words()}; {rarity}"

    def sentences(self) -> list[str]:
        """What the comparison shows, objections left out."""
        lines = []
        if self.blocks is None:
            lines.append("patterns were not checked: there is no source, or every row has gaps")
        elif not self.patterns_checked:
            lines.append(f"patterns were checked in {counted(self.blocks.n_blocks, 'block')} of up to {WIDTH} sensors")
        if self.odd_pair is None:
            lines.append("pairs of sensors were not checked against the model")
        if self.g2 is not None and self.p_value > DOUBT:
            lines.append(f"G² is {self.g2:.4g}; on average, a true model has {self.g2_expected:.4g}")
        if self.odd_patterns:
            words = folded([pattern.words() for pattern in self.odd_patterns], 2, self.n_odd_patterns)
            lines.append(f"{counted(self.n_odd_patterns, 'pattern')} unexplained: {words}")
        lines += [f"{' and '.join(pair.names)} can hardly be told apart" for pair in self.confused[:LISTED]]
        return lines


ABOUT_A_TREND = (
    "if the rows are in order of time, learn from the earlier and the later ones apart, and compare the two models "
    "with `bica score early.json late.json --sources`"
)
ABOUT_PARTS = (
    "if the rows come from different times or places, learn from each part apart and compare; if they follow each "
    "other, add --temporal"
)
WHERE_THEY_DIFFER = "see where the rows differ from the model: `bica report MODEL TABLE -o report.html`"
UNFINISHED = {
    "interrupted": "learning was interrupted: this is the best model so far, not the final one",
    "out of time": "the time limit was over before learning was: this is the best model so far, not the final one",
    "not settled": "learning had not settled when it stopped",
}


def _state(fit: Fit) -> str:
    if fit.diagnostics.get("interrupted"):
        return "out of time" if "time_limit" in fit.diagnostics else "interrupted"
    return "settled" if fit.converged else "not settled"


def _lead_of_lossy(fit: Fit) -> float:
    other = fit.diagnostics.get("other_edges")
    if not isinstance(other, dict) or other.get("edges") != "lossy":
        return 0.0
    return max(0.0, -float(other.get("score_behind") or 0.0))


def _how_often(p_value: float) -> str:
    return "hardly ever" if p_value < RARELY else f"in at most {percent(p_value)} of cases"


def _places(model: OrMixture, data: Observations) -> NDArray[np.int64]:
    """The sensors that change in the data or, noise aside, in the model; the others say nothing about the noise."""
    sure = model.mixing if model.lossy_reach is None else model.lossy_reach >= 1
    always = sure[:, model.probability >= 1].any(axis=1)
    changing = model.mixing[:, model.probability > 0].any(axis=1) & ~always
    return np.union1d(data.varying(), np.flatnonzero(changing))


def _watched_model(model: OrMixture, places: NDArray[np.int64]) -> OrMixture:
    """The model of these sensors; where some are left out, sources keep their names, but not their places."""
    if places.size == len(model.sensors):
        return model
    return model.with_names(model.source_names()).of_sensors(places)


def _fitted(fit: Fit) -> NDArray[np.bool_]:
    """Which sources have a probability that was fitted by likelihood: those with a standard error."""
    errors = np.zeros(len(fit.model.names)) if fit.probability_error is None else fit.probability_error
    return np.asarray(errors > 0)


def _fitted_edges(fit: Fit) -> int:
    """How many reaches of lossy edges were fitted by likelihood: those with a standard error."""
    return 0 if fit.reach_error is None else int((fit.reach_error > 0).sum())


def _fitted_noise(fit: Fit) -> int:
    if fit.leak_error is not None:
        leaks = fit.model.noise.rates(fit.model.n_sensors)[0]
        return int(((fit.leak_error > 0) & (leaks > HARDLY_ANY)).sum())
    noise = fit.diagnostics.get("noise")
    if not isinstance(noise, dict) or not noise.get("estimated") or not noise.get("error", noise.get("n_unknown")):
        return 0
    return int(noise.get("n_unknown", 1))


def _named(model: OrMixture, whole: OrMixture, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The places of the chosen sources in the model of fewer sensors."""
    if model is whole:
        return np.flatnonzero(chosen)
    names = {name for name, is_chosen in zip(whole.source_names(), chosen, strict=True) if is_chosen}
    return np.array([j for j, name in enumerate(model.names) if name in names], np.int64)


OTHER_MIXTURES = {  # methods whose models are no ORs: only their sources can be compared
    "xor": "XOR",
    "linear": "sums of levels",
    "beta": "sums of graded factors",
    "aspect": "sums of shares",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict on a table and, if there is one, on a model learned from it.

    >>> from bica.data.patterns import PatternCounts
    >>> exclusive = PatternCounts.of([[1, 0], [0, 1]] * 20, sensors=["a", "b"])
    >>> diagnosis = Diagnosis.of(exclusive)
    >>> diagnosis.verdict
    'misfit'
    >>> print(diagnosis.reasons[0][:43])
    in 1 of 1 pair, sensors exclude each other,
    """

    verdict: Verdict  # "open" before a fit, if nothing speaks against one
    reasons: tuple[str, ...]  # what speaks against the model, or keeps the rows from speaking for it
    table: TableCheck
    fit: FitCheck | None
    trend: Trend | None = None  # of the rows in their order, where it is known
    mixed_by: str | None = None  # what is in place of ORs, which is not judged

    @classmethod
    def of(cls, data: Observations, fit: Fit | None = None, trend: Trend | None = None) -> Diagnosis:
        """The diagnosis of a table, and of a fit to it if there is one. Nothing is fitted, and the seed is fixed.

        A ``trend`` of the rows makes any fit doubtful: sources that come on more often together look dependent, which
        further sources then explain. Time grows with the pairs of sensors; up to 16 sensors, some hundred random
        tables are drawn. Fits take longer.
        """
        stretch = np.ones(len(data.sensors)) if fit is None else stretch_of(fit)
        varying = Watched.of(data, data.varying(), stretch)
        table = TableCheck.of(data, varying)
        verdict, reasons = table.verdict, table.objections()
        if trend is not None:
            verdict, reasons = max(verdict, "doubtful", key=WORSE.index), [*reasons, trend.words()]
        if fit is None:
            return cls(verdict, tuple(reasons), table, None, trend)
        if fit.method in OTHER_MIXTURES:
            mixed_by = OTHER_MIXTURES[fit.method]
            reasons = [f"sources are mixed by {mixed_by}; tests of fit are for ORs only"]
            reasons += [] if trend is None else [trend.words()]
            return cls("doubtful", tuple(reasons), table, None, trend, mixed_by)
        places = _places(fit.model, data)
        check = FitCheck.of(fit, varying if places.size == varying.places.size else Watched.of(data, places, stretch))
        verdict, reasons = max(verdict, check.verdict, key=WORSE.index), reasons + check.objections()
        return cls(verdict, tuple(reasons + check.remarks()), table, check, trend)

    @property
    def has_model(self) -> bool:
        """Whether a model was there to be judged."""
        return self.fit is not None or self.mixed_by is not None

    def as_dict(self) -> dict[str, Any]:
        """The diagnosis as plain values that JSON can hold, with what is most wrong and what to do next in words."""
        words = {"worst": self.worst(), "next": self.next_steps()}
        values: dict[str, Any] = as_json(asdict(self))
        if not self.mixed_by:
            del values["mixed_by"]
        return values | words

    def worst(self) -> str | None:
        """The pattern or the pair that is furthest from what the model has, in words; None where nothing is odd."""
        if self.verdict in ("fits", "open") or self.fit is None:
            return None
        if self.fit.odd_patterns:
            return self.fit.odd_patterns[0].words()
        pair = self.fit.odd_pair
        return pair.words() if pair is not None and pair.p_value <= DOUBT else None

    def next_steps(self) -> list[str]:
        """What to do about each kind of trouble, as a person would type it."""
        if self.mixed_by:
            return [] if self.trend is None else [ABOUT_A_TREND]
        if self.verdict in ("fits", "open"):
            return []
        steps = [] if self.trend is None else [ABOUT_A_TREND]
        steps += [] if self.fit is None else self.fit.next_steps()
        missing = not self.table.quiet_share  # rows that, left out, make sensors look as if they excluded each other
        steps = steps + self._about_columns() if missing else self._about_columns() + steps
        if not steps and self.fit is not None and (self.verdict == "misfit" or self.fit.p_value <= DOUBT):
            steps = [WHERE_THEY_DIFFER, ABOUT_PARTS]
            if self.verdict == "doubtful":
                steps.append("learn again from more rows: if this is chance, it goes away")
        return steps

    def _about_columns(self) -> list[str]:
        if not self.table.negative_pairs:
            return []
        first, second = self.table.negative_pairs[0].sensors
        apart = f"{first} and {second} exclude each other, as two values of one variable do"
        steps = [f"{apart}: leave one of them out with --drop, or learn from the rows of each kind apart"]
        if self.fit is None and not self.table.quiet_share:
            steps.insert(
                0,
                "no row is all quiet: if the rows in which nothing was on were left out, as in a list of what was on, "
                "add them; without these, independent sensors look as if they excluded each other",
            )
        return steps

    def sentences(self) -> list[str]:
        """The diagnosis in plain English, one line per finding: the verdict, its reasons, everything else."""
        return [(VERDICTS if self.has_model else BEFORE_A_FIT)[self.verdict], *self.reasons, *self.findings()]

    def findings(self) -> list[str]:
        """The size of the table and what it shows, apart from what speaks against the model."""
        table = self.table
        size = f"{counted(table.n_samples, 'row')} of {counted(table.n_sensors, 'sensor')}"
        size += "" if table.n_distinct is None else f", {table.n_distinct} distinct"
        return [size, *table.sentences(), *([] if self.fit is None else self.fit.sentences())]

    def added_to(self, fit: Fit) -> Fit:
        """The fit with this diagnosis among its diagnostics."""
        return replace(fit, diagnostics={**fit.diagnostics, "diagnosis": self.as_dict()})
