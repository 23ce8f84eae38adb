"""How all pictures look: colours, fonts, and the parts that several pictures share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bica.report.pictures import need_drawing

need_drawing()
import altair as alt  # noqa: E402 (the error that says what to install comes first)

# Okabe and Ito's colours, which every kind of colour vision can tell apart
INK, GREY, BLUE, SKY, ORANGE, YELLOW = "#333333", "#767676", "#0072B2", "#56B4E9", "#D55E00", "#E69F00"
EMPTY, FAINT, LINE = "#F1F3F5", "#E3E7EB", "#C3CAD1"
FONT = "Helvetica, Arial, Roboto, 'DejaVu Sans', sans-serif"
Some = TypeVar("Some", bound=alt.TopLevelMixin)
Values = list[dict[str, Any]]


def marks_at(values: Values) -> alt.Chart:
    """A chart of these values and no other data."""
    return alt.Chart(alt.InlineData(values=values))


BAND_RUNS = 5  # an interval over fewer runs says next to nothing


def band_of(values: Values, **encoding: Any) -> alt.Chart:
    """A pale band from ``low`` (the encoding's y) to ``high``, where there are enough runs for an interval."""
    known: Values = [row for row in values if row["n_runs"] >= BAND_RUNS]
    band: alt.Chart = marks_at(known).mark_area(opacity=0.12, clip=True).encode(y2="high:Q", **encoding)
    return band


def layers(*charts: alt.Chart, **properties: Any) -> alt.LayerChart:
    """Charts on top of each other."""
    return alt.LayerChart(layer=list(charts), **properties)


MOST_CELLS = 10_000  # that are drawn one by one; beyond, the board is one rectangle


@dataclass(frozen=True, slots=True)
class Grid:
    """A board of cells: named lines by named columns, with the size of a cell in pixels."""

    lines: Sequence[str]
    columns: Sequence[str]
    cell_width: float
    cell_height: float
    show_lines: bool = True

    def filled(self, cells: Values, color: str) -> alt.LayerChart:
        """The board with some cells filled in one colour, paler where their ``reach`` is lower."""
        marks = self.cells(cells).mark_rect(fill=color, **self._gap())
        if any("reach" in cell for cell in cells):
            shade = alt.Scale(domain=[0, 1], range=[0.15, 1])
            marks = marks.encode(opacity=alt.Opacity("reach:Q", scale=shade, legend=None))
        return self.layer(marks)

    def layer(self, marks: alt.Chart) -> alt.LayerChart:
        """Marks on top of the board of empty cells."""
        if len(self.lines) * len(self.columns) > MOST_CELLS:
            board: alt.Chart = marks_at([{}]).mark_rect(fill=EMPTY)
        else:
            everywhere: Values = [{"line": line, "column": column} for line in self.lines for column in self.columns]
            board = self.cells(everywhere).mark_rect(fill=EMPTY, **self._gap())
        return layers(board, marks, width=alt.Step(self.cell_width), height=alt.Step(self.cell_height))

    def cells(self, cells: Values) -> alt.Chart:
        """Values with a ``line`` and a ``column``, each at its place."""
        scale = alt.Scale(domain=list(self.columns))
        axis = _axis(self.cell_width, labelAngle=-90)
        x = alt.X("column:N", scale=scale, title=None, axis=axis)
        return marks_at(cells).encode(x=x, y=self.y(labelled=self.show_lines))

    def y(self, *, labelled: bool) -> alt.Y:
        """The lines from top to bottom, in their order."""
        axis = _axis(self.cell_height) if labelled else None
        return alt.Y("line:N", scale=alt.Scale(domain=list(self.lines)), title=None, axis=axis)

    def _gap(self) -> dict[str, Any]:
        return {"stroke": "white", "strokeWidth": 1.0 if min(self.cell_width, self.cell_height) > 6 else 0.25}


def font_size(room: float) -> float:
    """The font size that fills a line of this height, within what can be read."""
    return min(12.0, max(room, 6.0))


def cell_size(n_lines: int, n_columns: int) -> float:
    """Pixels per cell: comfortable for a few, never so large that the picture leaves the page.

    >>> cell_size(7, 10), cell_size(100, 20), cell_size(1000, 1000)
    (22.0, 7.2, 2.0)
    """
    return float(max(2.0, min(22.0, 720 / max(n_lines, n_columns, 1))))


def short_number(probability: float) -> str:
    """A probability as a label.

    >>> short_number(0.0751), short_number(0.00002)
    ('0.075', '2e-05')
    """
    return f"{probability:.3f}" if probability >= 0.0005 or not probability else f"{probability:.1g}"


def heading(text: str, subtitle: str = "") -> alt.TitleParams:
    """A title at the left edge, with a line of explanation; a blank title keeps neighbouring charts level."""
    return alt.TitleParams(text or "\u00a0", subtitle=subtitle or "\u00a0", anchor="start", frame="group", offset=10)


def styled(chart: Some) -> Some:
    """The chart with the fonts and colours of all pictures."""
    finished: Some = (
        chart.configure(font=FONT, background="white", padding=16)
        .configure_view(stroke=None)
        .configure_axis(labelColor=INK)
        .configure_title(fontSize=16, subtitleFontSize=12, color=INK, subtitleColor=GREY)
        .configure_legend(labelFontSize=12, labelColor=INK, symbolSize=140)
    )
    return finished


def _axis(room: float, **settings: Any) -> alt.Axis:
    size = font_size(room)
    return alt.Axis(
        domain=False, ticks=False, labelPadding=6, labelOverlap=True, labelLimit=200, labelFontSize=size, **settings
    )
