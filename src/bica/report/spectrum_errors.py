"""The spectrum experiment as one picture: errors of the mixing and of the activity, a panel a noise level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bica.report import look
from bica.report.look import Values, heading, layers, marks_at, styled

import altair as alt  # isort: skip (look.py says first what to install)

ROWS = {
    "hamming_distance": "distance of the mixing",
    "exact": "share of exact mixings",
    "activity_error": "activity error, row by row",
    "activity_error_in_time": "activity error, in time",
}
COLORS = (look.INK, look.BLUE, look.ORANGE, look.GREY, look.SKY, look.YELLOW)
EXACT = "exact model"
WIDTH, HEIGHT = 200, 125
ROOM = 1.1  # above the highest mean; wider bands are cut off there
BAND_RUNS = 5  # of fewer runs an interval says next to nothing


def spectrum_errors_chart(by_users: Values, by_distinct: Values) -> alt.VConcatChart:
    """Means with 99 % bands against the number of users, and below against how many of them can be told apart.

    Both have ``contender``, ``flip_rate``, ``number``, ``measure``, ``mean``, ``low``, ``high`` and ``n_runs``.
    """
    contenders = list(dict.fromkeys(row["contender"] for row in by_users))
    scale = alt.Scale(domain=contenders, range=[COLORS[place % len(COLORS)] for place in range(len(contenders))])
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", symbolOpacity=1, symbolType="stroke")
    color = alt.Color("contender:N", scale=scale, legend=legend)
    parts = [
        _part(by_users, "users on the field", color, list(ROWS)),
        _part(by_distinct, "distinct users that are heard", color, list(ROWS)[::2]),
    ]
    figure: alt.VConcatChart = alt.vconcat(*parts, spacing=30)
    return styled(figure)


def _part(means: Values, x_title: str, color: alt.Color, measures: Sequence[str]) -> alt.VConcatChart:
    part: alt.VConcatChart = alt.vconcat(*(_row(means, m, x_title, color, measures) for m in measures), spacing=12)
    return part


def _row(means: Values, measure: str, x_title: str, color: alt.Color, measures: Sequence[str]) -> alt.HConcatChart:
    rows: Values = [row for row in means if row["measure"] == measure and not _trivial(row)]
    rates = sorted({row["flip_rate"] for row in rows})
    highest = 1.0 if measure == "exact" else ROOM * max((row["mean"] for row in rows), default=1.0) or 1.0
    panels = []
    for place, rate in enumerate(rates):
        values: Values = [row for row in rows if row["flip_rate"] == rate]
        panel = _panel(values, highest, ROWS[measure] if place == 0 else None, color, last=measure == measures[-1])
        if measure == measures[0]:
            panel = panel.properties(title=heading(f"{100 * rate:g} % flipped", f"by {x_title}"))
        panels.append(panel)
    row: alt.HConcatChart = alt.hconcat(*panels, spacing=24)
    return row


def _trivial(row: dict[str, Any]) -> bool:
    """The exact model makes no errors in the mixing; it shows what decoding alone gets wrong."""
    return bool(row["contender"] == EXACT and row["measure"] in ("hamming_distance", "exact"))


def _panel(values: Values, highest: float, title: str | None, color: alt.Color, *, last: bool) -> alt.LayerChart:
    axis = alt.Axis(grid=False, tickMinStep=1, labels=last, ticks=last, format="d")
    x = alt.X("number:Q", title=None, axis=axis, scale=alt.Scale(zero=False, nice=False, padding=6))
    scale = alt.Scale(domain=[0, highest], nice=False)
    axis = alt.Axis(gridColor=look.FAINT, tickCount=4, minExtent=34, titleFontSize=10, titleFontWeight="normal")
    y = alt.Y("mean:Q", scale=scale, title=title, axis=axis)
    low = alt.Y("low:Q", scale=scale, title=title)
    known: Values = [row for row in values if row["n_runs"] >= BAND_RUNS]
    band = marks_at(known).mark_area(opacity=0.12, clip=True).encode(x=x, y=low, y2="high:Q", color=color)
    base = marks_at(values).encode(x=x, y=y, color=color)
    line = base.mark_line(strokeWidth=1.8, clip=True)
    dots = base.mark_point(filled=True, size=16, clip=True, opacity=1)
    return layers(band, line, dots, width=WIDTH, height=HEIGHT)
