"""HTML: the report as one self-contained file, and small tables for notebooks. No name can break out of either."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from bica.estimate.bootstrap import Bootstrap
from bica.invert.explain import Explanations
from bica.model.fit import Fit
from bica.model.identified import determined_by, reach_words
from bica.model.or_mixture import OrMixture
from bica.output import write_whole
from bica.text import VERDICTS, Nouns, counted, counted_as, folded, harmless, in_a_list, told_apart
from bica.version import __version__

FRAME_HEIGHT = 720  # pixels of the report in a notebook


@dataclass(frozen=True, slots=True)
class Report:
    """A finished report: ``html`` is the whole page, ``save`` writes it; a notebook shows it."""

    html: str

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the page, whole or not at all."""
        write_whole(path, self.html, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"<Report of {len(self.html) / 1000:.0f} kB; .save('report.html') writes it>"

    def _repr_html_(self) -> str:
        frame = f'width="100%" height="{FRAME_HEIGHT}" style="border:1px solid #ddd;border-radius:8px"'
        return f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.html)}" {frame}></iframe>'


@dataclass(frozen=True, slots=True)
class Parts:
    """What a report says: the words at its top, and the values that are drawn below them."""

    content: dict[str, Any]
    title: str
    eyebrow: str
    headline: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Looks:
    """The tags that bring style and script into a page, and the policy that admits these alone."""

    style: str
    script: str
    policy: str

    @staticmethod
    def inside() -> Looks:
        """All in the page itself, which then is one file."""
        style, script = template("report.css"), template("report.js")
        policy = (
            "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
            f"style-src '{_fingerprint(style)}'; script-src '{_fingerprint(script)}'"
        )
        return Looks(f"<style>{style}</style>", f"<script>{script}</script>", policy)


FOOTER = f"Made by bica {__version__}. This page is one file: it loads nothing and sends nothing."


def page_of(parts: Parts, *, looks: Looks | None = None, footer: str = FOOTER) -> Report:
    """The report of these parts; the words at its top are in the page itself, so they show at once.

    >>> page = page_of(Parts({"verdict": {"kind": "fits"}}, "</title>", "", "", ""))
    >>> "<title>&lt;/title&gt;</title>" in page.html
    True
    """
    looks = Looks.inside() if looks is None else looks
    words = {key: getattr(parts, key) for key in ("title", "eyebrow", "headline", "sentence")}
    html = Template(template("report.html")).substitute(
        {key: escape(value) for key, value in (words | {"footer": footer}).items()},
        kind=escape(parts.content["verdict"]["kind"].replace(" ", "-")),
        version=escape(__version__),
        policy=looks.policy,
        style=looks.style,
        script=looks.script,
        data=data_block(parts.content),
    )
    return Report(html)


def data_block(content: dict[str, Any]) -> str:
    r"""The values as JSON in plain ASCII that no HTML parser mistakes for markup.

    >>> data_block({"name": "</script><!--"})
    '{"name":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def template(name: str) -> str:
    """A file of ``templates`` as text."""
    return files("bica.report").joinpath("templates", name).read_text("utf-8")


def _fingerprint(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


NAME_LENGTH = 120  # characters of a name that are shown
KEPT = (
    "persistence",
    "noise",
    "bootstrap",
    "averaging",
)  # diagnostics that name no sensor, or whose named parts are not used


def with_plain_names(fit: Fit, nouns: Nouns) -> Fit:
    """The fit with names that can be shown: without control characters, of a bearable length, no two alike."""
    model = fit.model
    sensors = told_apart(map(shown_name, model.sensors))
    names = told_apart(shown_name(name) for name in model.source_names(nouns.source[0]))
    return replace(fit, model=model.with_labels(sensors, names))


def shown_name(name: str) -> str:
    r"""A name for a page: escapes in place of control characters, and never too long.

    >>> shown_name("back\u202ewards"), len(shown_name("x" * 1000))
    ('back\\u202ewards', 120)
    """
    plain = harmless(name) or "(empty)"
    return plain if len(plain) <= NAME_LENGTH else f"{plain[: NAME_LENGTH - 1]}…"


def anonymous(fit: Fit, nouns: Nouns) -> Fit:
    """The fit with numbers in place of all names; what was noted about it is dropped where it may hold a name."""
    model = fit.model
    known = {*model.sensors, *model.source_names()}
    words = (shown_name(nouns.sensor[0]), "column", "input", "observable")
    word = next((w for w in words if not any(f"{w} {i + 1}" in known for i in range(model.n_sensors))), words[-1])
    sensors = [f"{word} {i + 1}" for i in range(model.n_sensors)]
    names = [f"{shown_name(nouns.source[0])} {j + 1}" for j in range(model.n_sources)]
    diagnostics = {key: fit.diagnostics[key] for key in KEPT if key in fit.diagnostics}
    verdict = entry_of(fit.diagnostics, "diagnosis", "verdict")
    if isinstance(verdict, str):
        diagnostics["diagnosis"] = {"verdict": verdict, "reasons": []}
    if "interrupted" in fit.diagnostics:
        diagnostics["interrupted"] = True
    stretch = entry_of(fit.diagnostics, "order", "stretch")
    if isinstance(stretch, int | float):
        diagnostics["order"] = {"stretch": stretch}
    chosen = fit.diagnostics.get("settings")
    if isinstance(chosen, Mapping):  # texts and lists may hold names
        diagnostics["settings"] = {key: value for key, value in chosen.items() if isinstance(value, bool | int | float)}
    return replace(fit, model=model.with_labels(sensors, names), diagnostics=diagnostics)


def entry_of(value: Any, *path: str) -> Any:
    """What a nested mapping holds at the end of this path; None where it goes nowhere."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


ROWS_SHOWN = 15  # of a small table
SMALLEST = 0.0001  # number in it


def small_table(title: str, headings: Sequence[str], lines: Sequence[Sequence[str | float]], note: str = "") -> str:
    """A small table for a notebook: texts, and numbers from 0 to 1 as bars.

    >>> small_table("1 source", ["source", "probability"], [["a<b", 0.5]])[:20]
    '<div style="font:14p'
    >>> "a&lt;b" in small_table("1 source", ["source", "probability"], [["a<b", 0.5]])
    True
    """
    most = max((cell for line in lines for cell in line if isinstance(cell, float)), default=1.0) or 1.0
    cell_style = "padding:3px 14px 3px 0;text-align:left;border-bottom:1px solid rgba(128,128,128,.25)"
    head = "".join(f'<th style="{cell_style};font-weight:500;opacity:.7">{escape(name)}</th>' for name in headings)
    whole = f"{cell_style};white-space:nowrap"  # the last column alone may take several lines
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{cell_style if k and k == len(line) - 1 and isinstance(cell, str) else whole}">'
            f"{_small_cell(cell, most)}</td>"
            for k, cell in enumerate(line)
        )
        + "</tr>"
        for line in lines[:ROWS_SHOWN]
    )
    left = len(lines) - ROWS_SHOWN
    more = " · ".join(part for part in (f"{left} more" if left > 0 else "", note) if part)
    foot = f'<div style="opacity:.7;margin-top:4px">{escape(more)}</div>' if more else ""
    return (
        f'<div style="font:14px/1.5 system-ui,sans-serif"><div style="font-weight:600;margin-bottom:4px">'
        f'{escape(title)}</div><table style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{foot}</div>"
    )


def _small_cell(cell: str | float, most: float) -> str:
    if isinstance(cell, str):
        return escape(harmless(cell))
    if math.isnan(cell):
        return ""
    bar = "display:inline-block;height:8px;border-radius:3px;background:#0b62b8"
    space = "display:inline-block;width:80px;margin-right:8px"  # so that the numbers stand below each other
    shown = f"{cell:#.3g}" if cell >= SMALLEST or not cell else f"&lt; {SMALLEST:g}"
    return f'<span style="{space}"><span style="{bar};width:{80 * cell / most:.0f}px"></span></span>{shown}'


def model_table(given: OrMixture | Fit) -> str:
    """The sources of a model or a fit, for a notebook."""
    fit = given if isinstance(given, Fit) else Fit(given)
    model, nouns, ends = fit.model, fit.nouns, fit.interval()
    has_ends = not np.isnan(ends).all()
    headings = [nouns.source[0], "probability", *(["95 % interval"] if has_ends else []), nouns.sensor[1]]
    lines: list[list[str | float]] = []
    reached = reached_sensors(fit)
    for name, p, (low, high), sensors in zip(
        fit.source_names(), model.probability.tolist(), ends.tolist(), reached, strict=True
    ):
        between = [] if not has_ends else ["" if low != low else f"{low:#.3g} to {high:#.3g}"]
        lines.append([name, float(p), *between, folded(sensors, SENSORS_SHOWN)])
    verdict = fit.diagnostics.get("diagnosis")
    note = VERDICTS.get(str(verdict.get("verdict")), "") if isinstance(verdict, Mapping) else ""
    return small_table(model_words(fit), headings, lines, note)


SENSORS_SHOWN = 6  # of a source in a small table


def reached_sensors(fit: Fit) -> list[list[str]]:
    """The names of the sensors of every source, with how often it reaches each where edges may fail.

    >>> reached_sensors(Fit(OrMixture([[1], [1], [1]], [0.2], reach=[[0.9], [1], [0.5]], sensors=["a", "b", "c"])))
    [['a 90 %', 'b 100 %', 'c 50 %']]
    """
    names = [[in_a_list(fit.model.sensors[i]) for i in np.flatnonzero(column)] for column in fit.model.mixing.T]
    if not fit.model.has_lossy_edges:
        return names
    document = fit.document()
    is_identified = determined_by(document).is_identified
    words = [
        reach_words(source, is_identified=own) for source, own in zip(document.sources, is_identified, strict=True)
    ]
    return [
        [f"{name} {word}".rstrip() for name, word in zip(*each, strict=True)] for each in zip(names, words, strict=True)
    ]


def model_words(fit: Fit) -> str:
    """A model in one line.

    >>> model_words(Fit(OrMixture([[1, 1], [0, 1]], [0.2, 0.5])))
    '2 sources behind 2 sensors'
    """
    model, nouns = fit.model, fit.nouns
    return f"{counted_as(model.n_sources, nouns.source)} behind {counted_as(model.n_sensors, nouns.sensor)}"


def bootstrap_table(found: Bootstrap) -> str:
    """What came back when the sources were learned again, for a notebook."""
    ends = [["" if low != low else f"{low:#.3g} to {high:#.3g}"] for low, high in found.interval().tolist()]
    names = found.model.source_names()
    lines: list[list[str | float]] = [
        [name, float(share), *between] for name, share, between in zip(names, found.support, ends, strict=True)
    ]
    title = f"{counted(found.n_resamples, 'resample')} of {counted(len(names), 'source')}"
    return small_table(title, ["source", "support", "95 % interval of its probability"], lines)


def explanation_table(found: Explanations) -> str:
    """The likeliest explanations of one row, for a notebook."""
    names = found.names or tuple(f"source{j + 1}" for j in range(found.activity.shape[1]))
    lines: list[list[str | float]] = [
        [str(rank), ", ".join(in_a_list(names[j]) for j in np.flatnonzero(active)) or "no source", float(p)]
        for rank, active, p in zip(found.rank.tolist(), found.activity, found.probability.tolist(), strict=True)
    ]
    notes = [] if found.exact else ["the probabilities are approximate"]
    note = "; ".join(notes + ([] if found.proven else ["a likelier explanation may be missing"]))
    return small_table("Likeliest explanations", ["rank", "active", "probability"], lines, note)
