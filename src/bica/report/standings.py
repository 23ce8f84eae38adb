"""A contest of methods as a table, in Markdown and as a page, and as a picture with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

from bica.compare.summary import Mean, Standing, paired_difference
from bica.text import harmless
from bica.version import __version__

if TYPE_CHECKING:
    import altair as alt

COLUMNS = {  # measure: title, how it is written
    "n_found": ("sources", "{:.1f}"),
    "f1": ("F1", "{:.3f}"),
    "similarity": ("similar", "{:.3f}"),
    "held_out": ("held-out", "{:.3f}"),
    "wrong_cells": ("wrong", "{:.2%}"),
    "gain": ("gain", "{:.3f}"),
    "stability": ("stable", "{:.3f}"),
    "cpu_seconds": ("CPU s", "{:.2f}"),
}
BEST: dict[str, Callable[..., Standing]] = {
    "f1": max,
    "similarity": max,
    "held_out": max,
    "wrong_cells": min,
    "gain": max,
    "stability": max,
}
ENOUGH_RUNS = 5  # for an interval
MEANING = {
    "sources": "how many were found, on average; *: the method was told the number",
    "F1": "sources with exactly the true sensors, 1 at best; missed and invented ones count against it",
    "similar": "similarity of every true source to the nearest one found (Jaccard index), 1 at best",
    "held-out": "log-likelihood of rows that were not learned from, nats per row, higher is better; - where the model "
    "rules one out",
    "wrong": "cells of the table that decoded activities rebuild wrongly, lower is better",
    "gain": "information gain: 1 at best, below 0 for sources that explain less than they cost",
    "stable": "similarity of the sources found with different seeds, that is, from other rows, 1 at best",
    "CPU s": "of one fit",
    "verdict": "whether the rows fit the model, and in how many runs",
}


def measures_of(standings: Sequence[Standing]) -> list[str]:
    """The columns of a table: measures that somebody has."""
    return [name for name in COLUMNS if any(name in standing.means for standing in standings)]


def cells_of(standing: Standing, measures: Sequence[str]) -> list[str]:
    """The means of one contender as text, a dash where there is none."""
    told = "*" if standing.told is not None else ""
    return [
        COLUMNS[name][1].format(standing.means[name].mean) + (told if name == "n_found" else "")
        if name in standing.means
        else "-"
        for name in measures
    ]


def verdicts_of(standing: Standing) -> str:
    """How often each verdict was given, or why the contender refused.

    >>> verdicts_of(Standing("p", "mac", None, {}, {}, {"fits": 3, "misfit": 1}, None, 0))
    'fits 3, misfit 1'
    """
    if standing.failure is not None:
        return f"refused {standing.n_failed}: {harmless(standing.failure)}"
    return ", ".join(f"{verdict} {count}" for verdict, count in sorted(standing.verdicts.items()))


def winners(standings: Sequence[Standing], measure: str) -> set[str]:
    """The contender with the best mean, and those whose paired difference to it is within its 99 % interval.

    With fewer than five runs an interval says next to nothing, so only equal means share the first place.
    """
    known = [standing for standing in standings if measure in standing.means]
    if measure not in BEST or len(known) < 2:
        return set()
    best = BEST[measure](known, key=lambda standing: standing.means[measure].mean)
    return {standing.contender for standing in known if _is_level(standing, best, measure)}


def _is_level(one: Standing, best: Standing, measure: str) -> bool:
    if one.means[measure].mean == best.means[measure].mean:
        return True
    difference = paired_difference(one, best, measure)
    return difference.n_runs >= ENOUGH_RUNS and abs(difference.mean) <= difference.half_width


def by_problem(standings: Sequence[Standing]) -> dict[str, list[Standing]]:
    """The standings of every problem."""
    problems: dict[str, list[Standing]] = {}
    for standing in standings:
        problems.setdefault(standing.problem, []).append(standing)
    return problems


def standings_markdown(standings: Sequence[Standing]) -> str:
    """One table per problem, one line per method; the best of a column, and who is level with it, in bold."""
    parts = []
    for problem, members in by_problem(standings).items():
        measures = measures_of(members)
        titles = ["method", *(COLUMNS[name][0] for name in measures), "verdict"]
        lines = [f"## {_in_cell(problem)}", "", _line(titles), _line(["---"] * len(titles))]
        best = {name: winners(members, name) for name in measures}
        for member in members:
            values = zip(measures, cells_of(member, measures), strict=True)
            shown = [f"**{value}**" if member.contender in best[name] else value for name, value in values]
            lines.append(_line([member.contender, *shown, _in_cell(verdicts_of(member))]))
        parts.append("\n".join(lines))
    meanings = "\n".join(f"- {title}: {meaning}" for title, meaning in MEANING.items())
    return "\n\n".join([*parts, meanings])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _in_cell(text: str) -> str:
    return harmless(text).replace("|", "\\|")


STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 2rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
td.best { font-weight: 700; background: color-mix(in srgb, #0072B2 16%, transparent); }
dt { font-weight: 600; } dd { margin: 0 0 .4rem; }
footer { opacity: .7; }
"""


def standings_page(standings: Sequence[Standing], title: str = "Methods compared") -> str:
    """The same tables as one page without scripts that needs no network."""
    tables = "".join(_page_table(problem, members) for problem, members in by_problem(standings).items())
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(meaning)}</dd>" for name, meaning in MEANING.items())
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>\n'
        f"<body><main><h1>{escape(title)}</h1>{tables}<h2>What the columns mean</h2><dl>{terms}</dl></main>"
        f"<footer>bica {escape(__version__)}; shaded: the best of a problem, and who is level with it</footer>"
        "</body></html>\n"
    )


def _page_table(problem: str, members: Sequence[Standing]) -> str:
    measures = measures_of(members)
    best = {name: winners(members, name) for name in measures}
    heads = "".join(f'<th scope="col">{escape(COLUMNS[name][0])}</th>' for name in measures)
    lines = "".join(_page_line(member, measures, best) for member in members)
    return (
        f'<section><h2>{escape(harmless(problem))}</h2><div class="wide" tabindex="0"><table><thead><tr>'
        f'<th scope="col">method</th>{heads}<th scope="col">verdict</th></tr></thead>'
        f"<tbody>{lines}</tbody></table></div></section>\n"
    )


def _page_line(member: Standing, measures: Sequence[str], best: dict[str, set[str]]) -> str:
    values = zip(measures, cells_of(member, measures), strict=True)
    shown = "".join(
        f'<td class="best">{escape(value)}</td>' if member.contender in best[name] else f"<td>{escape(value)}</td>"
        for name, value in values
    )
    return f'<tr><th scope="row">{escape(member.contender)}</th>{shown}<td>{escape(verdicts_of(member))}</td></tr>'


def standings_chart(standings: Sequence[Standing]) -> alt.VConcatChart:
    """Means, with 99 % intervals from five runs on: one line of panels per problem, one panel per measure."""
    from bica.report.look import heading, styled  # first: it says what to install

    import altair as alt  # isort: skip

    rows = []
    for problem, members in by_problem(standings).items():
        measures = [name for name in measures_of(members) if name != "n_found"]
        panels = [_panel(members, measure, first=not place) for place, measure in enumerate(measures)]
        title = heading(harmless(problem), "mean over seeds, with 99 % intervals from five on")
        rows.append(alt.hconcat(*panels, spacing=14).properties(title=title))
    figure: alt.VConcatChart = alt.vconcat(*rows, spacing=26)
    return styled(figure)


PADDING = 6  # pixels beside the outermost dots
AXIS_FORMAT = {"held_out": "~f", "wrong_cells": "%", "cpu_seconds": "~g"}
BOUNDED = ("f1", "similarity", "wrong_cells", "stability")  # shares: intervals end at 0 and 1


def _interval(mean: Mean, measure: str) -> dict[str, float]:
    ends = mean.ends()
    return {name: min(max(value, 0.0), 1.0) for name, value in ends.items()} if measure in BOUNDED else ends


def _panel(members: Sequence[Standing], measure: str, *, first: bool) -> alt.LayerChart:
    """One dot per method, and its interval; the methods are named in the first panel only."""
    import altair as alt

    from bica.report.look import BLUE, FAINT, GREY, layers, marks_at

    known = [member for member in members if measure in member.means]
    values = [{"method": member.contender, **_interval(member.means[measure], measure)} for member in known]
    enough = [member.means[measure].n_runs >= ENOUGH_RUNS and measure in BEST for member in known]
    spans = [value for value, shown in zip(values, enough, strict=True) if shown and measure != "stability"]
    methods = alt.Scale(domain=[member.contender for member in members])
    y = alt.Y("method:N", scale=methods, sort=None, title=None, axis=alt.Axis(labels=first, ticks=False))
    scale = alt.Scale(type="log") if measure == "cpu_seconds" else alt.Scale(zero=False, padding=PADDING)
    better = "" if measure not in BEST else " (more is better)" if BEST[measure] is max else " (less is better)"
    axis = alt.Axis(tickCount=3, gridColor=FAINT, labelOverlap=True, format=AXIS_FORMAT.get(measure, ""))
    x = alt.X("mean:Q", scale=scale, title=COLUMNS[measure][0] + better, axis=axis)
    rules = marks_at(spans).mark_rule(color=GREY).encode(x=alt.X("low:Q"), x2="high:Q", y=y)
    dots = marks_at(values).mark_point(filled=True, size=60, opacity=1, color=BLUE).encode(x=x, y=y)
    return layers(*([rules] if spans else []), dots, width=120, height=alt.Step(18))
