"""The story of a model as plain values, in the order in which a reader wants it; ``templates/report.js`` draws them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.data.columns import Binarize
from bica.data.rows import Trend
from bica.diagnose.verdicts import WHERE_THEY_DIFFER, Diagnosis
from bica.errors import SettingError
from bica.metrics.matching import matrix_order
from bica.model.files import HARDLY_IN_DOUBT, Rate
from bica.model.fit import Fit
from bica.model.identified import determined_by, leak_words, reach_words, source_note
from bica.model.or_mixture import OrMixture
from bica.report.observed import (
    ROWS_LISTED,
    SMALL,
    ActivityView,
    Evidence,
    PairView,
    PatternView,
    evidence_in,
    saved_trend,
)
from bica.report.page import Parts, Report, anonymous, entry_of, page_of, with_plain_names
from bica.text import Nouns, counted_as, harmless, in_words_of
from bica.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """What a report tells, and in whose words."""

    with_rows: bool
    anonymise: bool
    nouns: Nouns
    title: str | None
    origin: str


def report_of(
    model: OrMixture | Fit,
    table: Any = None,
    *,
    with_rows: bool = False,
    anonymise: bool = False,
    times: Sequence[Any] | NDArray[Any] | None = None,
    sensors_are: str | None = None,
    sources_are: str | None = None,
    rows_are: str | None = None,
    title: str | None = None,
    binarize: Binarize = None,
    sample_weight: Any = None,
    origin: str = "",
) -> Report:
    """The report of a model or a fit and, if a ``table`` is given, of how well it describes the rows of that table.

    The page has counts only, and no pattern of fewer than five rows; ``with_rows`` also lists the first 500 rows with
    the sources behind them. ``anonymise`` puts numbers in place of the names of sensors and sources. ``times``, one per
    row, add the activity over time; so does a model that was learned in the order of its rows. ``sensors_are``,
    ``sources_are`` and ``rows_are`` are the user's words, as in "symptoms", or "mouse/mice" for both forms. ``origin``
    names the files.

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["door", "yard"])
    >>> page = report_of(model, [[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50, rows_are="nights")
    >>> "The model fits: the nights look as it expects." in page.html
    True
    """
    return page_of(
        parts_of(
            model,
            table,
            with_rows=with_rows,
            anonymise=anonymise,
            times=times,
            words={"sensors": sensors_are, "sources": sources_are, "rows": rows_are},
            title=title,
            binarize=binarize,
            sample_weight=sample_weight,
            origin=origin,
        )
    )


def parts_of(
    model: OrMixture | Fit,
    table: Any = None,
    *,
    with_rows: bool = False,
    anonymise: bool = False,
    times: Sequence[Any] | NDArray[Any] | None = None,
    words: Mapping[str, str | None] | None = None,
    title: str | None = None,
    binarize: Binarize = None,
    sample_weight: Any = None,
    origin: str = "",
) -> Parts:
    """What the report of ``report_of`` says, as plain values; ``words`` are the user's for sensors, sources, rows."""
    fit = model if isinstance(model, Fit) else Fit(model)
    nouns = fit.nouns.with_changes(words or {})
    settings = _Settings(with_rows=with_rows, anonymise=anonymise, nouns=nouns, title=title, origin=origin)
    if table is None and (times is not None or with_rows):
        raise SettingError("times and rows belong to a table; give the table, too")
    evidence = evidence_in(fit, table, times, binarize, sample_weight, with_rows=with_rows)
    renamed = anonymous(fit, nouns) if anonymise else with_plain_names(fit, nouns)
    trend = saved_trend(fit)
    if trend is not None:
        trend = replace(trend, sensor=renamed.model.sensors[fit.model.sensors.index(trend.sensor)])
    story = _Story(renamed, evidence.renamed(renamed.model.sensors), settings, trend)
    headline = story.headline() if title is None else harmless(title)
    return Parts(story.content(), headline, story.eyebrow(), headline, story.sentence())


KINDS = ("fits", "too few rows", "doubtful", "misfit")


class _Story:
    """Puts the parts of a report together."""

    def __init__(self, fit: Fit, evidence: Evidence, settings: _Settings, trend: Trend | None) -> None:
        self.fit, self.evidence, self.settings, self.nouns = fit, evidence, settings, settings.nouns
        self.trend = trend
        self.small = 1 if settings.with_rows else SMALL
        counts = evidence.counts
        judged = None if counts is None or not counts.weights.size else Diagnosis.of(counts, fit, trend)
        saved = fit.diagnostics.get("diagnosis")
        self.diagnosis: Mapping[str, Any] = (
            judged.as_dict() if judged is not None else saved if isinstance(saved, Mapping) else {}
        )
        self.fit_facts = (
            []
            if judged is None or judged.fit is None
            else [_big(self._in_their_words(line)) for line in judged.fit.sentences()]
        )
        self.unfinished = "interrupted" in fit.diagnostics or not fit.converged

    @property
    def kind(self) -> str:
        verdict = self.diagnosis.get("verdict")
        if verdict == "fits" and self.unfinished:
            return "doubtful"
        return str(verdict) if verdict in KINDS else "unjudged"

    def headline(self) -> str:
        model, nouns = self.fit.model, self.nouns
        sensors = counted_as(model.n_sensors, nouns.sensor)
        return f"{counted_as(model.n_sources, nouns.source)} behind {sensors}"

    def eyebrow(self) -> str:
        rows = "" if self.fit.n_samples is None else f" from {counted_as(self.fit.n_samples, self.nouns.row)}"
        learned = "given, not learned" if self.fit.method == "given" else f"learned{rows} by {self.fit.method}"
        origin = "" if self.settings.anonymise else self.settings.origin
        return " · ".join(part for part in ("Report", harmless(origin), learned) if part)

    def sentence(self) -> str:
        rows = self.nouns.rows.partition("/")[2] or self.nouns.rows
        if self.kind == "doubtful" and self.unfinished:
            return "The search was stopped before it had settled, so take the model with care."
        return {
            "fits": f"The model fits: the {rows} look as it expects.",
            "too few rows": f"There are too few {rows} to tell whether the model is right.",
            "doubtful": "Take the model with care: something speaks against it.",
            "misfit": f"The {rows} contradict the model, so do not rely on it before you know why.",
            "unjudged": f"This model has not been compared with any {rows} yet.",
        }[self.kind]

    def content(self) -> dict[str, Any]:
        model, nouns = self.fit.model, self.nouns
        lines, columns = matrix_order(model.mixing)
        content: dict[str, Any] = {
            "words": {"sensor": nouns.sensor, "source": nouns.source, "row": nouns.row},
            "small": SMALL,
            "verdict": {"kind": self.kind, "reasons": self._reasons(), "next": self._next_steps()},
            "figures": self._figures(),
            "sensors": list(model.sensors),
            "sources": self._sources(),
            "order": {"sources": lines, "sensors": columns},
            "noise": self._noise(),
            "fit_facts": self.fit_facts if self.settings.with_rows else [],
            "odd_patterns": [],
            "patterns": None,
            "pairs": None,
            "observed": None,
            "activity": self._activity(),
            "rows": self._rows(),
            "settings": self._settings(),
            "commands": self._commands(),
        }
        return content | self._observed()

    def _reasons(self) -> list[str]:
        reasons = self.diagnosis.get("reasons")
        listed = reasons if isinstance(reasons, list | tuple) else []
        sentences = [_big(harmless(self._in_their_words(str(reason)))) for reason in listed]
        if self.unfinished:
            sentences.insert(0, "The search had not settled when it stopped; a longer one may find other sources.")
        return sentences

    def _in_their_words(self, sentence: str) -> str:
        return in_words_of(self.nouns, sentence, self.fit.model.sensors if not self.settings.anonymise else ())

    def _next_steps(self) -> list[tuple[str, str]]:
        """What to do next, each step with the command that takes it, if there is one."""
        sources, rows = self.nouns.source[1], self.nouns.row[1]
        first = shlex.quote(f"{self.nouns.source[0]}1")
        advice = self.diagnosis.get("next")
        if isinstance(advice, list | tuple) and advice:
            here = "Look at the pairs and patterns under “Fit”: they show where the model goes wrong."
            return [
                (here if step == WHERE_THEY_DIFFER else _big(harmless(self._in_their_words(str(step)))), "")
                for step in advice
            ]
        return {
            "fits": [
                (
                    f"Look through the {sources} below, and name those you recognise:",
                    f"bica name MODEL {first}=NAME",
                ),
                (f"See which {sources} were behind each of the {rows}:", "bica decode MODEL TABLE -o activity.csv"),
            ],
            "too few rows": [(f"Watch for longer, then learn again from all {rows} together.", "")],
            "doubtful": [
                (f"Read what speaks against it; trust {sources} with narrow intervals and high support first.", ""),
                (f"See which {sources} return when the {rows} are drawn again:", "bica fit TABLE --bootstrap 100"),
            ],
            "misfit": [
                ("Look at the pairs and patterns under “Fit”: they show where the model goes wrong.", ""),
                (
                    f"If some {self.nouns.sensor[1]} err more than others, let each have its own rates:",
                    "--noise per-sensor",
                ),
                (f"If the {rows} follow each other in time:", "bica fit TABLE --temporal"),
            ],
            "unjudged": [(f"See how well it describes {rows}:", "bica report MODEL TABLE -o report.html")],
        }[self.kind]

    def _figures(self) -> list[tuple[str, str, str]]:
        model, nouns = self.fit.model, self.nouns
        counts = self.evidence.counts
        n_rows = self.fit.n_samples if counts is None else counts.n_samples
        return [
            (_big(nouns.source[1]), f"{model.n_sources:,}", ""),
            (_big(nouns.sensor[1]), f"{model.n_sensors:,}", self._unreached()),
            *([] if n_rows is None else [(_big(nouns.row[1]), f"{n_rows:,.10g}", self._distinct())]),
            ("Active at a time", f"{model.probability.sum():.2g}", f"{nouns.source[1]} on average"),
            ("Noise", *_noise_figure(model.noise.false_alarm, model.noise.miss)),
        ]

    def _unreached(self) -> str:
        n = int((~self.fit.model.mixing.any(axis=1)).sum())
        return f"{n} not reached by any" if n else ""

    def _distinct(self) -> str:
        counts = self.evidence.counts
        return "" if counts is None else f"{len(counts.weights):,} distinct"

    def _sources(self) -> list[dict[str, Any]]:
        model, ends, stays = self.fit.model, self.fit.interval(), self.fit.persistence()
        ids, support = model.source_ids(), entry_of(self.fit.diagnostics, "bootstrap", "support")
        resampled = isinstance(support, list) and len(support) == model.n_sources
        averaged = self.fit.support
        if resampled:
            supports = support
        elif averaged is not None and averaged.min(initial=1.0) < HARDLY_IN_DOUBT:
            supports = averaged.tolist()
        else:
            supports = [None] * model.n_sources
        lossy = self._lossy_edges() if model.has_lossy_edges else [{}] * model.n_sources
        return [
            {
                "name": name,
                "id": ids[j],
                "p": _rounded(p),
                "lo": _rounded(low),
                "hi": _rounded(high),
                "support": _rounded(share) if isinstance(share, int | float) else None,
                "resampled": resampled,
                "stay": None if stays is None or np.isinf(stays[j]) else _rounded(stays[j]),
                "on": np.flatnonzero(column).tolist(),
                **lossy[j],
            }
            for j, (name, column, p, (low, high), share) in enumerate(
                zip(model.source_names(), model.mixing.T, model.probability, ends, supports, strict=True)
            )
        ]

    def _lossy_edges(self) -> list[dict[str, Any]]:
        """How often each source reaches each of its sensors, as numbers and in words, and what rows leave open."""
        document = replace(self.fit.document(), nouns=self.nouns)
        determined = determined_by(document)
        return [
            {
                "reach": [_rounded(share) for share in source.reach or ()],
                "reach_words": reach_words(source, is_identified=determined.is_identified[j]),
                "note": _big(source_note(document, j, determined)),
            }
            for j, source in enumerate(document.sources)
        ]

    def _noise(self) -> dict[str, Any]:
        noise = self.fit.model.noise
        false_alarm, miss = _rates(noise.false_alarm), _rates(noise.miss)
        ends = entry_of(self.fit.diagnostics, "noise", "interval")
        known = isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, int | float) for end in ends)
        interval = f" (95 % interval {100 * ends[0]:.3g} to {100 * ends[1]:.3g} %)" if known else ""
        words = _noise_words(false_alarm, miss, self.nouns, interval)
        if self.fit.model.has_lossy_edges:
            words = f"{_big(leak_words(replace(self.fit.document(), nouns=self.nouns)))}."
        return {"false_alarm": false_alarm, "miss": miss, "words": words}

    def _observed(self) -> dict[str, Any]:
        counts = self.evidence.counts
        if counts is None or not counts.weights.size:
            return {}
        pairs = PairView.of(self.fit, counts)
        view = PatternView.of(self.fit.model, counts, small=self.small)
        patterns = [
            {"on": np.flatnonzero(on).tolist(), "observed": _rounded(observed), "expected": _rounded(expected)}
            for on, observed, expected in zip(view.on, view.observed, view.expected, strict=True)
        ]
        return {
            "patterns": {
                "list": patterns,
                "other": {
                    "observed": _rounded(view.other_observed),
                    "expected": _rounded(view.other_expected),
                    "n_patterns": view.n_others,
                },
                "n_rows": view.n_rows,
                "n_draws": view.n_draws,
                "masked": view.masked,
            },
            "pairs": _pair_content(pairs, self.small),
            "odd_patterns": self._odd_patterns(),
            "observed": {
                "on": [_rounded(share) for share in pairs.on],
                "expected": [_rounded(share) for share in pairs.on_expected],
                "z": [_rounded(z) for z in pairs.on_z],
            },
        }

    def _odd_patterns(self) -> list[dict[str, Any]]:
        """The clearest misfits among whole patterns, from the diagnosis; those of a few rows without their number."""
        place = {name: i for i, name in enumerate(self.fit.model.sensors)}
        odd = entry_of(self.diagnosis, "fit", "odd_patterns")
        found = []
        for pattern in odd if isinstance(odd, list) else []:
            observed = float(pattern["observed"])
            if 0 < observed < self.small:
                continue
            found.append(
                {
                    "on": [place[name] for name in pattern["sensors"]],
                    "observed": _rounded(observed),
                    "expected": _rounded(pattern["expected"]),
                    "z": None if pattern["z"] is None else _rounded(pattern["z"]),
                    "odd": True,
                }
            )
        return found

    def _activity(self) -> dict[str, Any] | None:
        evidence = self.evidence
        in_order = evidence.times is not None or self.fit.persistence() is not None or self.trend is not None
        if evidence.activity is None or not in_order or not self.fit.model.n_sources:
            return None
        view = ActivityView.of(evidence.activity, evidence.times, small=self.small)
        few = bool((view.n_rows == 0).any())
        note = f"Stretches with too few {self.nouns.row[1]} are left empty." if few else ""
        return view.content() | {"note": note}

    def _rows(self) -> dict[str, Any] | None:
        evidence = self.evidence
        if not self.settings.with_rows or evidence.rows is None:
            return None
        assert evidence.activity is not None
        assert evidence.feasible is not None
        n_rows = len(evidence.rows.words)
        cells = evidence.rows.pick(np.arange(min(ROWS_LISTED, n_rows))).cells(self.fit.model.n_sensors)
        times = None if evidence.times is None else np.asarray(evidence.times)
        listed = [
            {
                "label": str(i + 1) if times is None else harmless(str(times[i])).replace("T", " "),
                "on": np.flatnonzero(row == 1).tolist(),
                "sources": np.flatnonzero(evidence.activity[i]).tolist() if evidence.feasible[i] else None,
            }
            for i, row in enumerate(cells)
        ]
        return {"list": listed, "n_rows": n_rows}

    def _settings(self) -> list[tuple[str, str]]:
        fit = self.fit
        facts: list[tuple[str, str]] = [("Method", fit.method), ("Made with", f"bica {__version__}")]
        if fit.n_samples is not None:
            facts.append(("Learned from", counted_as(fit.n_samples, self.nouns.row)))
        if fit.method != "given":
            facts.append(("Steps", f"{fit.n_iter}{'' if fit.converged else ', not settled'}"))
        if fit.log_likelihood is not None:
            facts.append(("Log-likelihood", f"{fit.log_likelihood:.10g}"))
        resamples = entry_of(fit.diagnostics, "bootstrap", "n_resamples")
        if isinstance(resamples, int):
            facts.append(("Resamples", str(resamples)))
        for key, value in self._chosen().items():
            facts.append((_big(key.replace("_", " ")), harmless(_setting_words(value))))
        facts.append(
            (
                f"{_big(self.nouns.row[1])} in this page",
                "yes" if self.settings.with_rows else f"no; and no pattern of fewer than {SMALL}",
            )
        )
        return facts

    def _commands(self) -> list[str]:
        if self.fit.method == "given":
            return []
        chosen = [(key, _argument(value)) for key, value in self._chosen().items()]
        flags = [f"--{OPTIONS.get(key, key.replace('_', '-'))}{text}" for key, text in chosen if text is not None]
        method = self.fit.method.partition(" ")[0]  # "likelihood in time" is likelihood with --temporal
        words = ["bica fit TABLE", f"--method {method}", *flags, "-o MODEL"]
        return [harmless(" ".join(words)), "bica report MODEL TABLE -o report.html"]

    def _chosen(self) -> Mapping[str, Any]:
        chosen = self.fit.diagnostics.get("settings")
        return chosen if isinstance(chosen, Mapping) else {}


OPTIONS = {"n_sources": "sources", "n_resamples": "bootstrap"}  # where they differ from the settings


def _setting_words(value: Any) -> str:
    """A setting as a person reads it: lists of names instead of brackets.

    >>> _setting_words([{"sensors": ["door", "hall"], "name": None}, ["yard"]]), _setting_words({"a": 0.5})
    ('door, hall; yard', 'a: 0.5')
    """
    if isinstance(value, Mapping):
        return ", ".join(value["sensors"]) if "sensors" in value else ", ".join(f"{k}: {v}" for k, v in value.items())
    if isinstance(value, list | tuple):
        sign = "; " if any(isinstance(part, Mapping | list | tuple) for part in value) else ", "
        return sign.join(map(_setting_words, value))
    return str(value)


def _argument(value: Any) -> str | None:
    """What follows an option with this value; None where it cannot be typed as one word."""
    if value is True:
        return ""
    if isinstance(value, list) and value and all(isinstance(part, int | float) for part in value):
        return f" {','.join(map(str, value))}"
    return f" {shlex.quote(str(value))}" if isinstance(value, int | float | str) else None


def _pair_content(pairs: PairView, small: int) -> dict[str, Any] | None:
    if not pairs.n_tests:
        return None
    keys = zip(pairs.first, pairs.second, pairs.observed, pairs.expected, pairs.z, pairs.odd, strict=True)
    return {
        "n_tests": pairs.n_tests,
        "n_odd": pairs.n_odd,
        "list": [
            {"a": int(i), "b": int(k), "odd": bool(odd), "expected": _rounded(expected)}
            | (
                {"observed": None, "z": None}
                if 0 < observed < small
                else {"observed": _rounded(observed), "z": _rounded(z)}
            )
            for i, k, observed, expected, z, odd in keys
        ],
    }


def _rates(rate: Rate) -> float | list[float]:
    return [float(f"{value:.6g}") for value in rate] if isinstance(rate, tuple) else float(f"{rate:.6g}")


def _noise_figure(false_alarm: Rate, miss: Rate) -> tuple[str, str]:
    """The noise as one number, and what it is."""
    rates = [np.mean(rate) for rate in (false_alarm, miss)]
    mean = f"{100 * max(rates):.2g} %" if max(rates) >= 0.0001 else "none"
    if max(rates) < 0.0001:
        return mean, ""
    if false_alarm == miss:
        return mean, "of cells flipped" if not isinstance(miss, tuple) else "of cells flipped on average"
    alarms, misses = (f"{100 * rate:.2g} %" for rate in rates)
    if rates[0] > rates[1]:
        return alarms, f"false alarms, {misses} missed"
    return misses, f"missed, {alarms} false alarms"


def _noise_words(false_alarm: Any, miss: Any, nouns: Nouns, interval: str) -> str:
    several, one = nouns.sensor[1], nouns.sensor[0]
    if isinstance(false_alarm, list) or isinstance(miss, list):
        return f"Every {one} has rates of its own."
    if false_alarm == miss:
        if miss < 1e-6:
            return f"The {several} do not err{interval}."
        return f"Every {one} shows the wrong state in {100 * miss:.3g} % of its cells{interval}."
    return f"Every {one} gives a false alarm at rate {false_alarm:.3g} and misses at rate {miss:.3g}{interval}."


def _rounded(value: Any) -> float | None:
    """A number with six digits, which is what a page can show; None where there is none."""
    number = float(value)
    if not np.isfinite(number):
        return None
    short = float(f"{number:.6g}")
    return int(short) if short.is_integer() else short


def _big(text: str) -> str:
    return text[:1].upper() + text[1:]
