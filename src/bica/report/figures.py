"""Pictures of models as Altair charts: pure functions of values, so a test can read what they draw.

Each source is a line and each sensor a column, as in the table that the sources explain.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import altair as alt
import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.data.rows import Rows
from bica.errors import SettingError
from bica.metrics import match_columns
from bica.metrics.matching import Pair, aligned, paired_sources
from bica.model.fit import Fit
from bica.model.or_mixture import OrMixture
from bica.report import look
from bica.report.look import Grid, Values, cell_size, font_size, heading, layers, marks_at, short_number, styled
from bica.report.observed import ActivityView, PatternView, counts_for, decoded
from bica.text import USUAL_NOUNS, Nouns, harmless, told_apart

LEGEND = alt.Legend(title=None, orient="bottom", direction="horizontal")


def mixing_chart(model: OrMixture, nouns: Nouns = USUAL_NOUNS) -> alt.HConcatChart:
    """The mixing matrix: a filled cell where a source reaches a sensor, and the probability of each source as a bar.

    ``nouns`` are the user's words for both.

    >>> chart = mixing_chart(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]))
    >>> len(chart.to_dict()["hconcat"])
    2
    """
    model = drawable(model)
    size = cell_size(model.n_sources, model.n_sensors)
    grid = Grid(model.source_names(), model.sensors, size, size)
    sources = harmless(nouns.source[1])
    title = heading(sources[:1].upper() + sources[1:], f"and the {harmless(nouns.sensor[1])} they reach")
    cells = grid.filled(_cells(model), look.BLUE).properties(title=title)
    bars = _bars(model, grid).properties(title=heading("", "probability"))
    return styled(alt.hconcat(cells, bars, spacing=20))


def overview_chart(rows: NDArray[np.bool_], model: OrMixture, n_samples: int | None = None) -> alt.HConcatChart:
    """Some rows of an on/off table (of ``n_samples`` in all), and beside them the sources found behind it.

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> len(overview_chart(np.array([[True, False], [True, True]]), model, 500).to_dict()["hconcat"])
    4
    """
    model = drawable(model)
    height = 26.0 * min(max(model.n_sources, 6), 20)
    sources = Grid(model.source_names(), model.sensors, cell_size(1, model.n_sensors), height / max(model.n_sources, 1))
    cells = sources.filled(_cells(model), look.BLUE)
    return styled(
        alt.hconcat(
            _table(rows, model, height, n_samples),
            _arrow(height),
            cells.properties(title=heading("What bica finds", "hidden sources and their sensors")),
            _bars(model, sources).properties(title=heading("", "how often each is on")),
            spacing=24,
        )
    )


def found_and_true_chart(found: OrMixture, truth: OrMixture) -> alt.HConcatChart:
    """Every true source with the found one that stands for it: which cells agree, and both probabilities.

    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> chart = found_and_true_chart(OrMixture([[1], [1]], [0.5]), truth).to_dict()
    >>> chart["hconcat"][0]["title"]["subtitle"]
    '1 of 2 sources found exactly, 1 found in all'
    """
    pairs = paired_sources(found, truth)
    found, truth = drawable(aligned(found, truth)), drawable(truth)
    size = cell_size(len(pairs), truth.n_sensors)
    grid = Grid(told_apart(_pair_name(pair, found, truth) for pair in pairs), truth.sensors, size, size)
    kinds = alt.Scale(domain=["found", "missed", "wrong"], range=[look.BLUE, look.YELLOW, look.ORANGE])
    marks = grid.cells(_compared_cells(pairs, grid, found, truth)).mark_rect(stroke="white", strokeWidth=1)
    cells = grid.layer(marks.encode(color=alt.Color("kind:N", scale=kinds, legend=LEGEND)))
    cells = cells.properties(title=heading("Found against true", _verdict(pairs, found, truth)))
    dots = _probability_dots(pairs, grid, found, truth).properties(title=heading("", "probability"))
    both: alt.HConcatChart = alt.hconcat(cells, dots, spacing=20).resolve_scale(
        color="independent", shape="independent"
    )
    return styled(both)


MOST_DRAWN = 30  # sources in a network; more lines cross too often to be followed


def network_chart(model: OrMixture, near: str | None = None) -> alt.LayerChart:
    """Sources on the left, sensors on the right, a line where a source reaches a sensor.

    ``near`` names a sensor or a source: only the sources that reach it, or share a sensor with it, are drawn. Of more
    than 30 sources the likeliest are.

    >>> network_chart(OrMixture([[1, 1], [0, 1]], [0.2, 0.5])).to_dict()["layer"][0]["mark"]["type"]
    'rule'
    """
    model, left_out = _part(model, near)
    model = drawable(model)
    n_lines = max(model.n_sources, model.n_sensors, 2)
    gap = min(34.0, max(1600 / n_lines, 6.0))
    source_place, sensor_place = _spread(_places(model)), _spread(np.arange(model.n_sensors))
    sensor_of = dict(zip(model.sensors, sensor_place, strict=True))
    values: Values = [{"x": 0, "y": source_place[j], "x2": 1, "y2": sensor_of[sensor]} for j, sensor in model.edges()]
    lines = _placed(values).encode(x2="x2:Q", y2="y2:Q").mark_rule(color=look.LINE, strokeWidth=1.5)
    labels = [f"{name} · {short_number(p)}" for name, p in zip(model.source_names(), model.probability, strict=True)]
    sources = _nodes(labels, 0, source_place, gap)
    sensors = _nodes(model.sensors, 1, sensor_place, gap)
    title = heading("Sources and sensors", left_out or "with the probability of each source")
    return styled(layers(lines, *sources, *sensors, width=260, height=gap * n_lines, title=title))


def _part(model: OrMixture, near: str | None) -> tuple[OrMixture, str]:
    """The part of a model that is drawn, and in words what is left out."""
    chosen, where = np.arange(model.n_sources), ""
    if near is not None:
        chosen, where = _near(model, near), f" near {harmless(near)}"
    elif chosen.size <= MOST_DRAWN:
        return model, ""
    shown = np.sort(chosen[np.argsort(-model.probability[chosen], kind="stable")[:MOST_DRAWN]])
    what = f"the {shown.size} likeliest" if shown.size < chosen.size else str(shown.size)
    names = model.with_names(model.source_names())
    part = OrMixture(
        names.mixing[:, shown],
        names.probability[shown],
        names.noise,
        sensors=names.sensors,
        names=[names.names[j] for j in shown],
    )
    sensors = np.flatnonzero(part.mixing.any(axis=1))
    return part.of_sensors(sensors), f"{what} of {model.n_sources} sources{where}, with their probabilities"


def _near(model: OrMixture, name: str) -> NDArray[np.int64]:
    """The sources that reach a sensor, or share a sensor with a source, which is one of them."""
    names = model.source_names()
    if name in model.sensors:
        return np.flatnonzero(model.mixing[model.sensors.index(name)])
    if name in names:
        own = names.index(name)
        shared = model.mixing[model.mixing[:, own]].any(axis=0)
        return np.union1d(own, np.flatnonzero(shared))
    raise SettingError(f"the model has no sensor or source {name!r}; near takes the name of one")


def drawable(model: OrMixture) -> OrMixture:
    """The model with names that can be drawn; control characters in a name would crash the drawing program."""
    sensors, names = (told_apart(map(harmless, given)) for given in (model.sensors, model.source_names()))
    return model.with_labels(sensors, names)


def _cells(model: OrMixture) -> Values:
    names = model.source_names()
    cells: Values = [{"line": names[source], "column": sensor} for source, sensor in model.edges()]
    if model.has_lossy_edges:
        for cell, reach in zip(cells, model.reach.T[model.mixing.T].tolist(), strict=True):
            cell["reach"] = reach
    return cells


def _bars(model: OrMixture, grid: Grid) -> alt.LayerChart:
    values: Values = [
        {"line": line, "probability": float(probability), "label": short_number(probability)}
        for line, probability in zip(grid.lines, model.probability, strict=True)
    ]
    x = alt.X("probability:Q", scale=alt.Scale(domainMin=0), axis=None)
    base = marks_at(values).encode(x=x, y=grid.y(labelled=False))
    bars = base.mark_bar(color=look.SKY, height=alt.RelativeBandSize(0.55))
    size = font_size(grid.cell_height)
    labels = base.mark_text(align="left", dx=5, color=look.INK, fontSize=size).encode(text="label:N")
    if grid.cell_height < size:  # the numbers would lie on each other
        return layers(bars, width=120, height=alt.Step(grid.cell_height))
    return layers(bars, labels, width=120, height=alt.Step(grid.cell_height))


def _table(rows: NDArray[np.bool_], model: OrMixture, height: float, n_samples: int | None) -> alt.LayerChart:
    lines = [str(i + 1) for i in range(len(rows))]
    grid = Grid(lines, model.sensors, cell_size(1, model.n_sensors), height / max(len(rows), 1), show_lines=False)
    on: Values = [{"line": lines[i], "column": model.sensors[j]} for i, j in np.argwhere(rows)]
    shown = f"{len(rows)} rows" if n_samples is None else f"{len(rows)} of {n_samples} rows"
    title = heading("What the sensors show", f"{shown}, dark where a sensor is on")
    return grid.filled(on, look.INK).properties(title=title)


def _arrow(height: float) -> alt.Chart:
    arrow = marks_at([{}]).mark_point(shape="triangle-right", size=420, filled=True, opacity=1, color=look.LINE)
    placed: alt.Chart = arrow.properties(width=16, height=height)
    return placed


def _pair_name(pair: Pair, found: OrMixture, truth: OrMixture) -> str:
    if pair.true is not None:
        return truth.source_names()[pair.true]
    assert pair.found is not None
    return f"{found.source_names()[pair.found]} (found)"


def _compared_cells(pairs: list[Pair], grid: Grid, found: OrMixture, truth: OrMixture) -> Values:
    nothing = np.zeros(truth.n_sensors, dtype=bool)
    cells: Values = []
    for line, pair in zip(grid.lines, pairs, strict=True):
        true = nothing if pair.true is None else truth.mixing[:, pair.true]
        present = nothing if pair.found is None else found.mixing[:, pair.found]
        for kind, where in (("found", true & present), ("missed", true & ~present), ("wrong", present & ~true)):
            cells += [{"line": line, "column": truth.sensors[i], "kind": kind} for i in np.flatnonzero(where)]
    return cells


def _verdict(pairs: list[Pair], found: OrMixture, truth: OrMixture) -> str:
    exact = sum(pair.exact for pair in pairs)
    return f"{exact} of {truth.n_sources} sources found exactly, {found.n_sources} found in all"


def _probability_dots(pairs: list[Pair], grid: Grid, found: OrMixture, truth: OrMixture) -> alt.LayerChart:
    dots: Values = []
    for line, pair in zip(grid.lines, pairs, strict=True):
        for which, model, source in (("true", truth, pair.true), ("found", found, pair.found)):
            if source is not None:
                dots.append({"line": line, "probability": float(model.probability[source]), "which": which})
    axis = alt.Axis(tickCount=4, gridColor=look.FAINT, labelFontSize=12, labelFlush=False)
    marks = marks_at(dots).mark_point(size=70, strokeWidth=1.8, opacity=1)
    marks = marks.encode(
        x=alt.X("probability:Q", scale=alt.Scale(domainMin=0, nice=True), title=None, axis=axis),
        y=grid.y(labelled=False),
        shape=alt.Shape("which:N", scale=_two("circle", "cross"), legend=LEGEND),
        color=alt.Color("which:N", scale=_two(look.INK, look.ORANGE), legend=LEGEND),
    )
    return layers(marks, width=180, height=alt.Step(grid.cell_height))


def _two(true: str, found: str) -> alt.Scale:
    return alt.Scale(domain=["true", "found"], range=[true, found])


def _spread(places: NDArray[np.int64]) -> list[float]:
    """How far down each item stands, from 0 to 1, evenly spaced."""
    return [float((place + 0.5) / len(places)) for place in places]


def _places(model: OrMixture) -> NDArray[np.int64]:
    """The place of each source in an order with few crossing lines: each near the middle of its sensors."""
    middle = [np.flatnonzero(column).mean() if column.any() else model.n_sensors for column in model.mixing.T]
    places = np.empty(model.n_sources, dtype=int)
    places[np.argsort(middle, kind="stable")] = np.arange(model.n_sources)
    return places


def _placed(values: Values) -> alt.Chart:
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, 1], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[1, 0], nice=False))
    return marks_at(values).encode(x=x, y=y)


def _nodes(names: list[str] | tuple[str, ...], x: Literal[0, 1], places: list[float], gap: float) -> list[alt.Chart]:
    base = _placed([{"name": name, "x": x, "y": y} for name, y in zip(names, places, strict=True)])
    shape, color = ("circle", look.BLUE) if x == 0 else ("square", look.GREY)
    points = base.mark_point(shape=shape, size=min(180, 6 * gap), filled=True, opacity=1, color=color)
    side: Literal["left", "right"] = "right" if x == 0 else "left"
    dx = -12 if x == 0 else 12
    text = base.mark_text(align=side, dx=dx, limit=200, color=look.INK, fontSize=font_size(gap))
    return [points, text.encode(text="name:N")]


def matching_chart(found: OrMixture, truth: OrMixture) -> alt.HConcatChart:
    """Four boards of sources by sensors: all found ones, the found ones as matched, the true ones, the difference.

    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> len(matching_chart(OrMixture([[1], [1]], [0.5]), truth).to_dict()["hconcat"])
    4
    """
    found, truth = drawable(aligned(found, truth)), drawable(truth)
    match = match_columns(found.mixing, truth.mixing, found.probability)
    wrong = match.mixing != truth.mixing
    dropped = found.n_sources - int((match.order >= 0).sum())
    size = cell_size(max(found.n_sources, truth.n_sources), 4 * truth.n_sensors)
    panels = [
        _board(found.mixing, truth.sensors, size, look.INK, "Inferred", f"{found.n_sources} sources"),
        _board(match.mixing, truth.sensors, size, look.INK, "Matched", f"{dropped} left over"),
        _board(truth.mixing, truth.sensors, size, look.INK, "True", f"{truth.n_sources} sources"),
        _board(wrong, truth.sensors, size, look.ORANGE, "Difference", f"{match.n_wrong} of {wrong.size} cells"),
    ]
    return styled(alt.hconcat(*panels, spacing=28))


def _board(
    mixing: NDArray[np.bool_], sensors: tuple[str, ...], size: float, color: str, title: str, subtitle: str
) -> alt.LayerChart:
    lines = [str(place + 1) for place in range(mixing.shape[1])]
    cells: Values = [{"line": lines[source], "column": sensors[sensor]} for sensor, source in np.argwhere(mixing)]
    board: alt.LayerChart = Grid(lines, sensors, size, size).filled(cells, color)
    named: alt.LayerChart = board.properties(title=heading(title, subtitle))
    return named


def patterns_chart(model: OrMixture, counts: PatternCounts) -> alt.HConcatChart:
    """The most frequent patterns of a table, as dots, with how often each was observed and how often it is expected.

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> chart = patterns_chart(model, PatternCounts.of([[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50))
    >>> len(chart.to_dict()["hconcat"])
    2
    """
    view = PatternView.of(model, counts_for(model, counts))
    model = drawable(model)
    used = np.flatnonzero(view.on.any(axis=0))
    sensors = [model.sensors[i] for i in used]
    lines = [str(place + 1) for place in range(len(view.on))]
    size = min(20.0, cell_size(len(lines), max(len(sensors), 12)))
    grid = Grid(lines, sensors or [""], size, size, show_lines=False)
    dots: Values = [{"line": lines[i], "column": sensors[k]} for i, k in np.argwhere(view.on[:, used])]
    cells = grid.layer(
        grid.cells(dots).mark_point(shape="circle", filled=True, size=6 * size, color=look.BLUE, opacity=1)
    )
    title = heading("Patterns", "sensors on together")
    other = f"all others: {view.other_observed:g}, expected {view.other_expected:.3g}"
    bars = _observed_bars(view, grid).properties(title=heading("", f"rows observed, ticks expected; {other}"))
    return styled(alt.hconcat(cells.properties(title=title), bars, spacing=20))


def _observed_bars(view: PatternView, grid: Grid) -> alt.LayerChart:
    values: Values = [
        {"line": line, "observed": float(observed), "expected": float(expected), "label": f"{observed:g}"}
        for line, observed, expected in zip(grid.lines, view.observed, view.expected, strict=True)
    ]
    base = marks_at(values).encode(y=grid.y(labelled=False))
    scale = alt.Scale(domainMin=0)
    bars = base.mark_bar(color=look.SKY, height=alt.RelativeBandSize(0.55)).encode(
        x=alt.X("observed:Q", scale=scale, axis=None)
    )
    ticks = base.mark_tick(color=look.INK, thickness=2, height=grid.cell_height * 0.9).encode(x="expected:Q")
    far = marks_at([row | {"end": max(row["observed"], row["expected"])} for row in values])
    labels = far.mark_text(align="left", dx=6, color=look.INK, fontSize=font_size(grid.cell_height))
    labels = labels.encode(x="end:Q", y=grid.y(labelled=False), text="label:N")
    return layers(bars, ticks, labels, width=260, height=alt.Step(grid.cell_height))


def decoded_activity_chart(model: OrMixture | Fit, rows: Rows, times: Sequence[Any] | None = None) -> alt.LayerChart:
    """The chart of the most probable activity behind these rows."""
    fit = model if isinstance(model, Fit) else Fit(model)
    return activity_chart(fit.source_names(), decoded(fit, rows)[0], times, fit.nouns)


STRIPS = 40  # sources in a picture of their activity, those that change most


def activity_chart(
    names: Sequence[str],
    activity: NDArray[np.bool_],
    times: Sequence[Any] | None = None,
    nouns: Nouns = USUAL_NOUNS,
) -> alt.LayerChart:
    """How often each source was active over time, or from row to row: the darker, the more often.

    ``nouns`` are the user's words for sources and rows.

    >>> chart = activity_chart(["lift"], np.array([[True], [False]] * 50))
    >>> chart.to_dict()["layer"][0]["mark"]["type"]
    'rect'
    """
    view = ActivityView.of(activity, times, small=1)
    chosen = view.order()[:STRIPS]
    lines = told_apart(harmless(names[j]) for j in chosen)
    values: Values = [
        {"line": line, "bin": place, "start": view.labels[place], "share": float(view.share[j, place])}
        for line, j in zip(lines, chosen, strict=True)
        for place in np.flatnonzero(view.n_rows).tolist()
    ]
    n_bins, axis = len(view.labels), alt.Axis(domain=False, ticks=False, labelPadding=6, labelLimit=200)
    legend = alt.Legend(title=f"share of {harmless(nouns.row[1])}", orient="bottom")
    cells = marks_at(values).mark_rect()
    cells = cells.encode(
        x=alt.X("bin:O", scale=alt.Scale(domain=list(range(n_bins)), padding=0), title=None, axis=_marked(view.labels)),
        y=alt.Y("line:N", scale=alt.Scale(domain=list(lines)), title=None, axis=axis),
        color=alt.Color("share:Q", scale=alt.Scale(range=[look.EMPTY, look.BLUE], domainMin=0), legend=legend),
        tooltip=["line:N", "start:N", "share:Q"],
    )
    left = f"; {len(names) - len(chosen)} steadier {nouns.source[1]} are left out" if len(names) > len(chosen) else ""
    title = heading("Activity", f"{view.labels[0]} to {view.labels[-1]}{harmless(left)}")
    return styled(layers(cells, width=max(240, min(800, 5 * n_bins)), height=alt.Step(20), title=title))


MARKS = 5  # along the time of an activity chart


def _marked(labels: Sequence[str]) -> alt.Axis:
    """An axis of bins that says where some of them begin; by their days alone where these differ."""
    places = sorted({round(k * (len(labels) - 1) / (MARKS - 1)) for k in range(MARKS)})
    days = {place: labels[place].partition(" ")[0] for place in places}
    is_short = len(set(days.values())) == len(places)
    texts = {str(place): days[place] if is_short else labels[place] for place in places}
    said = f"{json.dumps(texts)}[datum.value]"
    return alt.Axis(values=places, labelExpr=said, labelAngle=0, labelFlush=True, domain=False, ticks=True, tickSize=4)
