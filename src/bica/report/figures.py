"""Pictures of models as Altair charts: pure functions of values, so a test can read what they draw.

A source is always a line and a sensor always a column, as in the table that the sources explain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.model.or_mixture import OrMixture
from bica.report.extra import need_drawing

need_drawing()
import altair as alt  # noqa: E402 (the sentence comes first)

# Okabe and Ito's colours, which stay apart for every kind of colour vision
INK, BLUE, ORANGE, SKY = "#333333", "#0072B2", "#D55E00", "#56B4E9"
EMPTY, LINE = "#F1F3F5", "#C9CED3"
FONT = "Helvetica, Arial, Roboto, 'DejaVu Sans', sans-serif"
Figure = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart


def mixing_chart(model: OrMixture) -> alt.HConcatChart:
    """The mixing matrix: a filled cell where a source reaches a sensor, its probability as a bar beside.

    >>> chart = mixing_chart(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]))
    >>> len(chart.to_dict()["hconcat"])
    2
    """
    return _styled(alt.hconcat(_cells(model), _probability_bars(model), spacing=18))


def overview_chart(rows: NDArray[np.bool_], model: OrMixture) -> alt.HConcatChart:
    """Some rows of an on/off table, and beside them the sources found behind it."""
    table = _table(rows, model).properties(title=_title("What the sensors show", f"{len(rows)} rows, dark where on"))
    sources = _cells(model).properties(title=_title("What bica finds", "the sensors that each hidden source switches on"))
    bars = _probability_bars(model).properties(title=_title("", "how often it is on"))
    return _styled(alt.hconcat(table, alt.hconcat(sources, bars, spacing=18), spacing=48))


def _cells(model: OrMixture) -> alt.LayerChart:
    names = distinct_names(model.source_names())
    cells = [{"source": names[source], "sensor": sensor} for source, sensor in model.edges()]
    return _grid(cells, "source", names, model.sensors, BLUE, step=cell_size(model))


def _table(rows: NDArray[np.bool_], model: OrMixture) -> alt.LayerChart:
    numbers = [str(i + 1) for i in range(len(rows))]
    cells = [{"row": numbers[i], "sensor": model.sensors[j]} for i, j in np.argwhere(rows)]
    return _grid(cells, "row", numbers, model.sensors, INK, step=cell_size(model))


def _grid(
    cells: list[dict[str, str]], line: str, lines: Sequence[str], sensors: Sequence[str], color: str, step: float
) -> alt.LayerChart:
    x = alt.X("sensor:N", scale=alt.Scale(domain=list(sensors)), title=None, axis=_axis(labelAngle=-90))
    y = alt.Y(f"{line}:N", scale=alt.Scale(domain=list(lines)), title=None, axis=_axis())
    empty = [{line: a, "sensor": b} for a in lines for b in sensors]
    size = {"width": alt.Step(step), "height": alt.Step(step)}
    background = alt.Chart(alt.Data(values=empty)).mark_rect(fill=EMPTY, stroke="white", strokeWidth=1).encode(x=x, y=y)
    filled = alt.Chart(alt.Data(values=cells)).mark_rect(fill=color, stroke="white", strokeWidth=1).encode(x=x, y=y)
    return alt.layer(background, filled).properties(**size)


def _probability_bars(model: OrMixture) -> alt.LayerChart:
    names = distinct_names(model.source_names())
    values = [
        {"source": name, "probability": float(chance), "label": f"{chance:.3g}"}
        for name, chance in zip(names, model.probability, strict=True)
    ]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("probability:Q", scale=alt.Scale(domainMin=0), axis=None),
        y=alt.Y("source:N", scale=alt.Scale(domain=list(names)), axis=None),
    )
    bars = base.mark_bar(color=SKY, height=alt.RelativeBandSize(0.6))
    labels = base.mark_text(align="left", dx=4, color=INK).encode(text="label:N")
    return alt.layer(bars, labels).properties(width=110, height=alt.Step(cell_size(model)))


def cell_size(model: OrMixture) -> float:
    """Pixels a cell: comfortable for small models, never so large that the picture leaves the page."""
    return float(np.clip(720 / max(model.n_sensors, model.n_sources, 1), 3, 20))


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, told apart where a user gave the same one twice.

    >>> distinct_names(["link", "link", "other"])
    ['link', 'link (2)', 'other']
    """
    seen: dict[str, int] = {}
    told: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told


def _axis(**settings: Any) -> alt.Axis:
    return alt.Axis(domain=False, ticks=False, labelPadding=6, labelOverlap=True, labelLimit=180, **settings)


def _title(text: str, subtitle: str) -> alt.TitleParams:
    return alt.TitleParams(text, subtitle=subtitle, anchor="start", offset=12)


def _styled(chart: Any) -> Any:
    return (
        chart.configure(font=FONT, background="white", padding=16)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, labelColor=INK, titleColor=INK)
        .configure_title(fontSize=16, subtitleFontSize=12, color=INK, subtitleColor="#666666")
        .configure_text(fontSize=12)
        .configure_legend(labelFontSize=12, labelColor=INK, title=None)
    )
