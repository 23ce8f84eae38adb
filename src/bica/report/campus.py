"""The campus experiment as a picture: active users monitored against the number of sniffers, as in the paper."""

from __future__ import annotations

from typing import Any

from bica.report import look
from bica.report.look import Values, heading, layers, marks_at, styled

import altair as alt  # isort: skip (look.py says first what to install)

LEARNED = ("LPR, Likelihood", "LPR, FindBICA")
LINES = {  # colour, width and dashes; the widest lies below, since the first three nearly coincide
    "LPR, users known": (look.LINE, 9, [1, 0]),
    LEARNED[0]: (look.BLUE, 2.5, [1, 0]),
    LEARNED[1]: (look.ORANGE, 2.5, [6, 5]),
    "Max": (look.INK, 2.5, [1, 0]),
}
BAND_RUNS = 5  # of fewer campuses an interval says next to nothing
WIDTH, HEIGHT = 400, 280
SHARES = (0.9, 1.01)


def campus_chart(means: Values) -> alt.HConcatChart:
    """The paper's figure and, beside it, what learned users are worth as a share of known ones; bands are intervals.

    ``means`` has ``contender``, ``n_sniffers``, ``n_runs``, and ``mean``, ``low`` and ``high``, plain and with
    ``share_`` before it.
    """
    n_runs = min((row["n_runs"] for row in means), default=0)
    runs = f"mean of {n_runs} campuses" + (", 99 % intervals" if n_runs >= BAND_RUNS else "")
    values = [_drawn(row, "") for row in means if row["contender"] in LINES]
    top = max([1.0, *(row["high"] for row in values)])
    first = _panel(values, (0.0, top), tickCount=6).properties(title=heading("Active users monitored", runs))
    shares = [_drawn(row, "share_") for row in means if row["contender"] in LEARNED]
    least = min([SHARES[0], *(row["low"] for row in shares)])
    most = max([SHARES[1], *(row["high"] for row in shares)])
    second = _panel(shares, (least, most), tickCount=6, format=".0%").properties(
        title=heading("Users learned from on and off", "share of what is monitored with users known")
    )
    return styled(alt.hconcat(first, second, spacing=44))


def _drawn(row: dict[str, Any], part: str) -> dict[str, Any]:
    ends = {end: row[f"{part}{end}"] for end in ("mean", "low", "high")}
    return {"contender": row["contender"], "n_sniffers": row["n_sniffers"], "n_runs": row["n_runs"], **ends}


def _panel(values: Values, ends: tuple[float, float], **ticks: Any) -> alt.LayerChart:
    """Lines on their bands; no bands for a few campuses."""
    sizes = sorted({row["n_sniffers"] for row in values})
    x = alt.X(
        "n_sniffers:Q",
        scale=alt.Scale(zero=False, nice=False, padding=8),
        title="sniffers",
        axis=alt.Axis(values=sizes, grid=False),
    )
    axis = alt.Axis(gridColor=look.FAINT, domain=False, ticks=False, **ticks)
    scale = alt.Scale(domain=list(ends), nice=False)
    y, low = (alt.Y(f"{field}:Q", scale=scale, title=None, axis=axis) for field in ("mean", "low"))
    bands, lines = [], []
    for name, (color, width, _) in LINES.items():
        own: Values = [row for row in values if row["contender"] == name]
        known: Values = [row for row in own if row["n_runs"] >= BAND_RUNS]
        bands.append(marks_at(known).mark_area(opacity=0.14, color=color).encode(x=x, y=low, y2="high:Q"))
        lines.append(marks_at(own).mark_line(strokeWidth=width).encode(x=x, y=y, **_strokes()))
    return layers(*bands, *lines, width=WIDTH, height=HEIGHT)


def _strokes() -> dict[str, Any]:
    """One legend for colours and dashes."""
    legend = alt.Legend(title=None, orient="bottom", symbolType="stroke", symbolSize=900, symbolStrokeWidth=3)
    colors, _, dashes = zip(*LINES.values(), strict=True)
    return {
        "color": alt.Color("contender:N", scale=alt.Scale(domain=list(LINES), range=list(colors)), legend=legend),
        "strokeDash": alt.StrokeDash(
            "contender:N", scale=alt.Scale(domain=list(LINES), range=list(dashes)), legend=legend
        ),
    }
