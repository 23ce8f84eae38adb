"""Sniffers and channels as a picture: what each could hear, which channel it should watch, and what that monitors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from bica.report import look
from bica.report.look import Grid, Values, cell_size, heading, layers, marks_at, short_number, styled
from bica.text import harmless, told_apart

BOUND = "upper bound"


@dataclass(frozen=True, slots=True)
class MonitoringPicture:
    """The numbers of the picture."""

    sniffers: Sequence[str]
    channels: Sequence[str]
    worth: Sequence[Sequence[float]]  # active users that each sniffer reaches on each channel, on average
    watched: Sequence[int]  # the place of the channel of each sniffer; -1 for none
    values: Mapping[str, float]  # active users monitored, by solver
    bound: float


def monitoring_chart(picture: MonitoringPicture) -> alt.HConcatChart:
    """Darker where a sniffer reaches more active users, a dot on the channel it watches; beside it the solvers.

    >>> picture = MonitoringPicture(["a"], ["1", "6"], [[0.2, 0.5]], [1], {"exact": 0.5}, 0.5)
    >>> len(monitoring_chart(picture).to_dict()["hconcat"])
    2
    """
    board = _board(picture).properties(title=heading("Who watches what", "a dot on the channel watched"))
    bars = _bars(picture).properties(title=heading("Active users monitored", "on average, by each way to decide"))
    return styled(alt.hconcat(board, bars, spacing=30))


def _board(picture: MonitoringPicture) -> alt.LayerChart:
    sniffers, channels = (told_apart(map(harmless, names)) for names in (picture.sniffers, picture.channels))
    height = cell_size(len(sniffers), 1)
    grid = Grid(sniffers, channels, max(46.0, height), height)
    cells: Values = [
        {"line": line, "column": column, "worth": worth}
        for line, row in zip(sniffers, picture.worth, strict=True)
        for column, worth in zip(channels, row, strict=True)
        if worth > 0
    ]
    dots: Values = [{"line": sniffers[s], "column": channels[k]} for s, k in enumerate(picture.watched) if k >= 0]
    shades = alt.Scale(range=["#E3EEF7", look.BLUE], domainMin=0)
    legend = alt.Legend(title="active users in reach", orient="bottom", gradientLength=140, tickCount=3)
    filled = grid.cells(cells).mark_rect(stroke="white", strokeWidth=1)
    shaded = grid.layer(filled.encode(color=alt.Color("worth:Q", scale=shades, legend=legend)))
    marks = grid.cells(dots).mark_point(
        shape="circle", size=0.22 * height**2, filled=True, opacity=1, color=look.ORANGE, stroke="white", strokeWidth=1
    )
    return alt.LayerChart(
        layer=[*shaded.layer, marks], width=alt.Step(grid.cell_width), height=alt.Step(grid.cell_height)
    )


def _bars(picture: MonitoringPicture) -> alt.LayerChart:
    shown = {**picture.values, BOUND: picture.bound}
    values: Values = [{"line": name, "value": value, "label": short_number(value)} for name, value in shown.items()]
    x = alt.X("value:Q", scale=alt.Scale(domainMin=0), axis=None)
    base = marks_at(values).encode(x=x, y=Grid(list(shown), [], 22.0, 26.0).y(labelled=True))
    color = alt.condition(alt.datum.line == BOUND, alt.value(look.LINE), alt.value(look.SKY))
    bars = base.mark_bar(height=alt.RelativeBandSize(0.6)).encode(color=color)
    labels = base.mark_text(align="left", dx=5, color=look.INK, fontSize=12).encode(text="label:N")
    return layers(bars, labels, width=180, height=alt.Step(26))
