"""The campus experiment in numbers and as a picture: means over campuses, compared with all users known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from bica.compare.run import Record
from bica.compare.summary import LEVEL, mean_of
from bica.experiments.campus import CONTENDERS, LEARNERS, MAX, USERS
from bica.report import look
from bica.report.look import BAND_RUNS, Values, band_of, heading, layers, marks_at, styled

TITLES = {
    USERS: "LPR, users known",
    "likelihood": "LPR, Likelihood",
    "findbica": "LPR, FindBICA",
    MAX: "Max",
}
BOUND = "upper bound"
ByCampus = dict[tuple[str, int], float]  # by contender and campus


def monitoring_means(records: Iterable[Record], level: float = LEVEL) -> list[Record]:
    """One row for every contender and number of sniffers, with intervals over campuses as ``low`` and ``high``.

    ``mean`` is the expected number of active users monitored, ``share_mean`` its share of what is monitored on the same
    campus with all users known, and ``above_max_mean`` by how much it exceeds Max there. The last contender is the
    upper bound. Campuses on which a contender is missing do not count.
    """
    by_size: dict[int, ByCampus] = {}
    for record in records:
        values = by_size.setdefault(record["n_sniffers"], {})
        values[record["contender"], record["seed"]] = record["value"]
        values[BOUND, record["seed"]] = record["bound"]
    return [
        {"contender": TITLES.get(name, name), "n_sniffers": size} | _row(by_size[size], name, campuses, level)
        for size in sorted(by_size)
        if (campuses := _finished(by_size[size]))
        for name in (*CONTENDERS, BOUND)
    ]


def _finished(values: ByCampus) -> list[int]:
    return [seed for seed in sorted({seed for _, seed in values}) if all((who, seed) in values for who in CONTENDERS)]


def _row(values: ByCampus, name: str, campuses: list[int], level: float) -> Record:
    own = [values[name, seed] for seed in campuses]
    shares = [value / values[USERS, seed] for value, seed in zip(own, campuses, strict=True)]
    above = [value - values[MAX, seed] for value, seed in zip(own, campuses, strict=True)]
    parts = {"": mean_of(own, level), "share_": mean_of(shares, level), "above_max_": mean_of(above, level)}
    row = {f"{part}{end}": value for part, mean in parts.items() for end, value in mean.ends().items()}
    return row | {"n_runs": len(campuses)}


def markdown_of_monitoring(means: Sequence[Record]) -> str:
    """The means as a Markdown table, one line per number of sniffers; each mean ± half the width of its interval."""
    learners = [TITLES[name] for name in LEARNERS]
    columns = ["sniffers", BOUND, TITLES[USERS]]
    for title in learners:
        columns += [title, "of users known", "above Max"]
    lines = [f"| {' | '.join([*columns, TITLES[MAX], 'campuses'])} |", "| ---: " * (len(columns) + 2) + "|"]
    for size in dict.fromkeys(row["n_sniffers"] for row in means):
        row = {mean["contender"]: mean for mean in means if mean["n_sniffers"] == size}
        cells = [str(size), f"{row[BOUND]['mean']:.3f}", _cell(row[TITLES[USERS]])]
        for title in learners:
            cells += [_cell(row[title]), _cell(row[title], "share_", PERCENT), _cell(row[title], "above_max_")]
        lines.append(f"| {' | '.join([*cells, _cell(row[TITLES[MAX]]), str(row[BOUND]['n_runs'])])} |")
    return "\n".join(lines)


def _cell(row: Record, part: str = "", factor: int = 1) -> str:
    mean, width = factor * row[f"{part}mean"], factor * (row[f"{part}high"] - row[f"{part}mean"])
    return f"{mean:.1f} ± {width:.1f} %" if factor == PERCENT else f"{mean:.3f} ± {width:.3f}"


LINES = {  # colour, width and dashes; the widest lies below, since the first three nearly coincide
    TITLES["users"]: (look.SKY, 9, [1, 0]),
    TITLES["likelihood"]: (look.BLUE, 2.5, [1, 0]),
    TITLES["findbica"]: (look.ORANGE, 2.5, [6, 5]),
    TITLES[MAX]: (look.INK, 2.5, [1, 0]),
}
PERCENT = 100
WIDTH, HEIGHT = 400, 280


def campus_chart(means: Values) -> alt.HConcatChart:
    """The paper's figure and, beside it, how much more is monitored than by Max on the same campus, with intervals.

    Rows of ``means`` have ``contender``, ``n_sniffers``, ``n_runs``, and ``mean``, ``low`` and ``high``, plain and with
    the prefix ``above_max_``.
    """
    values: Values = [_drawn(row, "") for row in means if row["contender"] in LINES]
    above: Values = [
        _drawn(row, "above_max_") for row in means if row["contender"] in LINES and row["contender"] != TITLES[MAX]
    ]
    top = max([1.0, *(row["high"] for row in values)])
    first = _panel(values, (0.0, top)).properties(title=heading("Active users monitored", _runs(means)))
    ends = min([0.0, *(row["low"] for row in above)]), max([0.3, *(row["high"] for row in above)])
    second = _panel(above, ends).properties(title=heading("More than by Max", "on the same campus"))
    return styled(alt.hconcat(first, second, spacing=44))


def _runs(means: Values) -> str:
    """How many campuses there were, and what the bands are, if there are any."""
    runs = sorted({row["n_runs"] for row in means}) or [0]
    number = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return f"means of {number} campuses" + (" with 99 % intervals" if runs[-1] >= BAND_RUNS else "")


def _drawn(row: dict[str, Any], part: str) -> dict[str, Any]:
    ends = {end: row[f"{part}{end}"] for end in ("mean", "low", "high")}
    return {"contender": row["contender"], "n_sniffers": row["n_sniffers"], "n_runs": row["n_runs"], **ends}


def _panel(values: Values, ends: tuple[float, float]) -> alt.LayerChart:
    """Lines on their bands; no bands where campuses are few."""
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
        bands.append(band_of(own, x=x, y=low, color=alt.value(color)))
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
