"""Pictures of both applications: sniffers and the channels they should watch; users of a spectrum on a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

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


SIZE, BESIDE, LINE_HEIGHT = 460, 400, 24.0  # pixels: side of the map, width of the charts beside it, a line of them
CIRCLE_ANGLES = np.linspace(0, 2 * np.pi, 49)  # corners of the polygon that stands for a circle
NOBODY = "nobody"
GREEN = "#009E73"
OVERLAP = 1.08  # of a cell: neighbours overlap a little, so that no pale lines show between them
SHADES = ["#FFFFFF", "#FBE3BF", "#E69F00"]  # the darker, the busier


@dataclass(frozen=True, slots=True)
class FoundUser:
    """A source of the model, and where it seems to be."""

    name: str
    place: tuple[float, float]
    spread: float  # metres
    probability: float


@dataclass(frozen=True, slots=True)
class SpectrumMap:
    """The contents of the map, with all places in metres."""

    side: float
    radius: float
    monitors: Sequence[tuple[str, float, float]]
    users: Sequence[FoundUser]
    busy: Sequence[Sequence[float]]  # share of slots in which a place is reached, line by line from the least y upwards
    true_users: Sequence[tuple[float, float]] = ()
    quiet: Sequence[float] = ()  # share of slots in which each monitor hears nobody
    activity: NDArray[np.bool_] | None = None  # (n_slots, n_users), a stretch of slots
    first_slot: int = 0
    corner: tuple[float, float] = (0.0, 0.0)  # where x and y are least


def spectrum_map_chart(drawn: SpectrumMap) -> alt.HConcatChart:
    """The map; beside it how often each monitor hears nobody and, if the activity is known, a stretch of slots.

    >>> user = FoundUser("source1", (100.0, 100.0), 30.0, 0.02)
    >>> drawn = SpectrumMap(500.0, 126.0, [("m1", 80.0, 90.0)], [user], [[0.02]])
    >>> len(spectrum_map_chart(drawn).to_dict()["hconcat"])
    2
    """
    beside = [] if drawn.activity is None else [_times(drawn, drawn.activity)]
    beside.append(_quiet(drawn))
    parts = (_MapOf(drawn).chart(), alt.vconcat(*beside, spacing=24))
    both: alt.HConcatChart = alt.hconcat(*parts, spacing=36).resolve_scale(color="independent")
    return styled(both)


class _MapOf:
    """The layers of the map, on one pair of axes."""

    def __init__(self, drawn: SpectrumMap) -> None:
        self.drawn = drawn
        left, bottom = (alt.Scale(domain=[least, least + drawn.side], nice=False) for least in drawn.corner)
        axis = alt.Axis(grid=False, domain=False, ticks=False, tickCount=5)
        self.x = alt.X("x:Q", scale=left, axis=axis, title="metres")
        self.y = alt.Y("y:Q", scale=bottom, axis=axis, title=None)
        self.found: Values = [
            {"name": name, "x": user.place[0], "y": user.place[1], "label": f"{name} · {100 * user.probability:.1f} %"}
            for name, user in zip(_names(drawn), drawn.users, strict=True)
        ]

    def chart(self) -> alt.LayerChart:
        """All layers, the shades of busy places at the bottom."""
        drawn = self.drawn
        truth = ", true users as orange crosses" if drawn.true_users else ""
        key = f"found users in blue: reach (circle), uncertainty (disc){truth}"
        return layers(
            self._busy(),
            self._circles([user.spread for user in drawn.users]).mark_line(
                fill=look.BLUE, fillOpacity=0.2, strokeWidth=0, clip=True
            ),
            self._circles([drawn.radius for _ in drawn.users]).mark_line(
                color=look.BLUE, strokeWidth=1.2, opacity=0.5, clip=True
            ),
            *self._monitors(),
            self._at([{"x": x, "y": y} for x, y in drawn.true_users]).mark_point(
                shape="cross", angle=45, size=90, filled=True, color=look.ORANGE, opacity=1
            ),
            *self._labels(),
            width=SIZE,
            height=SIZE,
            title=heading("Who is there, and roughly where", key),
        )

    def _at(self, values: Values) -> alt.Chart:
        return marks_at(values).encode(x=self.x, y=self.y)

    def _monitors(self) -> list[alt.Chart]:
        base = self._at([{"name": harmless(name), "x": x, "y": y} for name, x, y in self.drawn.monitors])
        return [
            base.mark_point(shape="triangle-up", size=80, filled=True, color=look.INK, opacity=1),
            base.mark_text(dy=13, fontSize=11, color=look.INK).encode(text="name:N"),
        ]

    def _labels(self) -> list[alt.Chart]:
        """The names of the users, with a white rim so that they can be read on any background."""
        base = self._at(self.found).encode(text="label:N")
        font: dict[str, Any] = {"dy": -8, "fontSize": 12, "fontWeight": "bold"}
        rim = base.mark_text(**font, color="white", stroke="white", strokeWidth=4, opacity=0.8)
        return [rim, base.mark_text(**font, color=look.BLUE)]

    def _circles(self, radii: Sequence[float]) -> alt.Chart:
        points: Values = [
            {"name": c["name"], "x": c["x"] + r * np.cos(angle), "y": c["y"] + r * np.sin(angle), "angle": float(angle)}
            for c, r in zip(self.found, radii, strict=True)
            for angle in CIRCLE_ANGLES
        ]
        return self._at(points).encode(detail="name:N", order="angle:Q")

    def _busy(self) -> alt.Chart:
        step = self.drawn.side / max(len(self.drawn.busy), 1)
        x, y = self.drawn.corner
        cells: Values = [
            {
                "x": x + column * step,
                "x2": x + (column + OVERLAP) * step,
                "y": y + line * step,
                "y2": y + (line + OVERLAP) * step,
                "busy": share,
            }
            for line, row in enumerate(self.drawn.busy)
            for column, share in enumerate(row)
        ]
        legend = alt.Legend(title="share of slots in which a place is busy", format=".0%", orient="bottom")
        legend.gradientLength, legend.gradientThickness, legend.tickCount, legend.titleLimit = 300, 8, 4, 400
        scale = alt.Scale(range=SHADES, domainMin=0, interpolate="rgb")
        color = alt.Color("busy:Q", scale=scale, legend=legend)
        shaded: alt.Chart = self._at(cells).mark_rect(strokeWidth=0, clip=True)
        return shaded.encode(x2="x2:Q", y2="y2:Q", color=color)


def _names(drawn: SpectrumMap) -> tuple[str, ...]:
    return told_apart(harmless(user.name) for user in drawn.users)


def _times(drawn: SpectrumMap, activity: NDArray[np.bool_]) -> alt.LayerChart:
    """When each user transmitted, and in the last line when nobody did."""
    silent = ~activity.any(axis=1)
    lines = {**dict(zip(_names(drawn), activity.T, strict=True)), NOBODY: silent}
    spans: Values = [
        {"line": name, "from": drawn.first_slot + begin, "to": drawn.first_slot + end, "free": name == NOBODY}
        for name, on in lines.items()
        for begin, end in _spans(on)
    ]
    last = drawn.first_slot + len(activity)
    height = min(LINE_HEIGHT, SIZE / len(lines))
    scale = alt.Scale(domain=[drawn.first_slot, last], nice=False)
    x = alt.X("from:Q", scale=scale, title="slot", axis=alt.Axis(gridColor=look.FAINT, tickCount=5, domain=False))
    color = alt.condition(alt.datum.free, alt.value(GREEN), alt.value(look.BLUE))
    y = Grid(list(lines), [], 22.0, height).y(labelled=True)
    bars = marks_at(spans).mark_bar(height=alt.RelativeBandSize(0.7)).encode(x=x, x2="to:Q", y=y, color=color)
    title = heading("When each transmits", f"green: nobody does, in {100 * silent.mean():.0f} % of these slots")
    return layers(bars, width=BESIDE, height=alt.Step(height), title=title)


def _quiet(drawn: SpectrumMap) -> alt.LayerChart:
    """One bar per monitor: how often the spectrum is free where it stands."""
    names = told_apart(harmless(name) for name, _, _ in drawn.monitors)
    values: Values = [
        {"line": name, "share": share, "label": f"{100 * share:.1f} %"}
        for name, share in zip(names, drawn.quiet, strict=False)
    ]
    height = min(18.0, SIZE / max(len(names), 1))
    y = Grid(list(names), [], 22.0, height).y(labelled=True)
    base = marks_at(values).encode(x=alt.X("share:Q", scale=alt.Scale(domain=[0, 1.12]), axis=None), y=y)
    bars = base.mark_bar(color=GREEN, opacity=0.75, height=alt.RelativeBandSize(0.7))
    labels = base.mark_text(align="left", dx=5, color=look.INK, fontSize=look.font_size(height - 6)).encode(
        text="label:N"
    )
    title = heading("Spectrum holes", "share of slots in which each monitor hears nobody")
    return layers(bars, labels, width=BESIDE, height=alt.Step(height), title=title)


def _spans(on: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where each stretch of True begins and ends.

    >>> _spans(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    changes = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]])))
    return [(int(begin), int(end)) for begin, end in changes.reshape(-1, 2)]
