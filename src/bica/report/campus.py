"""The campus experiment as a picture: active users monitored against the number of sniffers, as in the paper."""

from __future__ import annotations

from typing import Any

from bica.applications.campus_summary import TITLES
from bica.report import look
from bica.report.look import Values, heading, layers, marks_at, styled

import altair as alt  # isort: skip (look.py says first what to install)

MAX = TITLES["max"]
LINES = {  # colour, width and dashes; the widest lies below, since the first three nearly coincide
    TITLES["users"]: (look.SKY, 9, [1, 0]),
    TITLES["likelihood"]: (look.BLUE, 2.5, [1, 0]),
    TITLES["findbica"]: (look.ORANGE, 2.5, [6, 5]),
    MAX: (look.INK, 2.5, [1, 0]),
}
BAND_RUNS = 5  # of fewer campuses an interval says next to nothing
WIDTH, HEIGHT = 400, 280


def campus_chart(means: Values) -> alt.HConcatChart:
    """The paper's figure and, beside it, how much more is monitored than by Max on the same campus, with intervals.

    ``means`` has ``contender``, ``n_sniffers``, ``n_runs``, and ``mean``, ``low`` and ``high``, plain and with
    ``above_max_`` before it.
    """
    values: Values = [_drawn(row, "") for row in means if row["contender"] in LINES]
    above: Values = [
        _drawn(row, "above_max_") for row in means if row["contender"] in LINES and row["contender"] != MAX
    ]
    top = max([1.0, *(row["high"] for row in values)])
    first = _panel(values, (0.0, top)).properties(title=heading("Active users monitored", _runs(means)))
    ends = min([0.0, *(row["low"] for row in above)]), max([0.3, *(row["high"] for row in above)])
    second = _panel(above, ends).properties(title=heading("More than by Max", "on the same campus"))
    return styled(alt.hconcat(first, second, spacing=44))


def _runs(means: Values) -> str:
    """How many campuses there were, and what the bands are if there are any."""
    runs = sorted({row["n_runs"] for row in means}) or [0]
    number = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return f"means of {number} campuses" + (" with 99 % intervals" if runs[-1] >= BAND_RUNS else "")


def _drawn(row: dict[str, Any], part: str) -> dict[str, Any]:
    ends = {end: row[f"{part}{end}"] for end in ("mean", "low", "high")}
    return {"contender": row["contender"], "n_sniffers": row["n_sniffers"], "n_runs": row["n_runs"], **ends}


def _panel(values: Values, ends: tuple[float, float]) -> alt.LayerChart:
    """Lines on their bands; no bands for a few campuses."""
    sizes = sorted({row["n_sniffers"] for row in values})
    x = alt.X(
        "n_sniffers:Q",
        scale=alt.Scale(zero=False, nice=False, padding=8),
        title="sniffers",
        axis=alt.Axis(values=sizes, grid=False),
    )
    axis = alt.Axis(gridColor=look.FAINT, domain=False, ticks=False, tickCount=6)
    scale = alt.Scale(domain=list(ends), nice=False)
    y, low = (alt.Y(f"{field}:Q", scale=scale, title=None, axis=axis) for field in ("mean", "low"))
    bands, lines = [], []
    for name, (color, width, _) in LINES.items():
        own: Values = [row for row in values if row["contender"] == name]
        known: Values = [row for row in own if row["n_runs"] >= BAND_RUNS]
        bands.append(marks_at(known).mark_area(opacity=0.1, color=color).encode(x=x, y=low, y2="high:Q"))
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
