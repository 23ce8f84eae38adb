"""The paper's evaluation: its contenders, its problems and its figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from bica.compare.summary import CELL_FIELDS, mean_of, with_best_variant
from bica.compare.task import CONTENDERS, MEASURES, Setting, Task, tasks, topology_settings
from bica.model.or_mixture import OrMixture
from bica.report import look
from bica.report.figures import drawable
from bica.report.look import Grid, Values, band_of, cell_size, layers, marks_at, styled

Record = dict[str, Any]
FINDBICA = tuple(name for name, contender in CONTENDERS.items() if contender.method == "findbica")
TRUTH = "truth"
EVALUATED = (*FINDBICA, "likelihood sure", "mac", TRUTH)
TITLES = {"likelihood": "Likelihood", "likelihood sure": "Likelihood", "mac": "MAC", TRUTH: "exact model"}
BEST_FINDBICA = "FindBICA"
QUICK_SAMPLES, QUICK_RUNS = (50, 100, 200), 1


def evaluation_plan(n_runs: int, contenders: Iterable[str] = EVALUATED, *, quick: bool = False) -> list[Task]:
    """Seeds 0 to ``n_runs`` - 1 of every topology, size and noise level; ``quick`` takes three sizes.

    >>> len(evaluation_plan(50, ["mac"]))
    2000
    """
    settings: list[Setting] = topology_settings(QUICK_SAMPLES) if quick else topology_settings()
    return tasks(contenders, settings, range(n_runs))


def with_best_findbica(records: Sequence[Record]) -> list[Record]:
    """The records with one FindBICA: for each network and noise level the setting with the lowest mean distance.

    Other contenders get their titles; of the true model only the errors of decoding are kept.
    """
    return [_titled(record) for record in with_best_variant(records, FINDBICA, ("network", "flip_rate"), BEST_FINDBICA)]


def _titled(record: Record) -> Record:
    name = record["contender"]
    trivial = dict.fromkeys(measure for measure in MEASURES if not measure.startswith("activity"))
    return record | {"contender": TITLES.get(name, name)} | (trivial if name == TRUTH else {})


def mean_times(records: Iterable[Record]) -> list[Record]:
    """The table of computation times: mean CPU seconds of each contender on each network, over all its runs."""
    times: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if record["cpu_seconds"] is not None:
            times.setdefault((record["contender"], record["network"]), []).append(record["cpu_seconds"])
    return [{"contender": name, "network": network, **_times(values)} for (name, network), values in times.items()]


def _times(values: list[float]) -> Record:
    found = mean_of(values)
    return {"mean": found.mean, "half_width": found.half_width, "n_runs": found.n_runs}


def markdown_of_times(times: Iterable[Record]) -> str:
    """The table of computation times as Markdown.

    >>> print(markdown_of_times([{"contender": "MAC", "network": "topology one", "mean": 0.5}]))
    | CPU seconds per fit | topology one |
    | --- | ---: |
    | MAC | 0.500 |
    """
    rows: dict[str, dict[str, float]] = {}
    for time in times:
        rows.setdefault(time["contender"], {})[time["network"]] = time["mean"]
    networks = list(dict.fromkeys(network for row in rows.values() for network in row))
    lines = ["| CPU seconds per fit | " + " | ".join(networks) + " |", "| --- |" + " ---: |" * len(networks)]
    lines += [f"| {name} | " + " | ".join(_cell(row.get(n)) for n in networks) + " |" for name, row in rows.items()]
    return "\n".join(lines)


def markdown_of_means(means: Iterable[Record]) -> str:
    """Every mean of the evaluation figure as Markdown, one line per cell."""
    lines = ["| contender | network | rows | flips | measure | mean | 99 % interval | runs |"]
    lines.append("| --- " * 8 + "|")
    for row in means:
        cell = " | ".join(f"{row[part]}" for part in CELL_FIELDS)
        interval = f"{max(0.0, row['low']):.4f} to {row['high']:.4f}"
        lines.append(f"| {cell} | {row['measure']} | {row['mean']:.4f} | {interval} | {row['n_runs']} |")
    return "\n".join(lines)


def _cell(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3f}"


ROWS = {
    "hamming_distance": "distance of the mixing",
    "transmission_probability_error": "probability error",
    "in_degree_error": "in-degree error",
    "structure_error": "structure error",
    "activity_error": "activity error ratio",
    "activity_error_true_noise": "the same, noise told",
    "cpu_seconds": "CPU seconds",
}
COLORS = (look.INK, look.BLUE, look.ORANGE, look.SKY, look.YELLOW, look.GREY)
DASHES = [[1, 0], [5, 3], [2, 2], [8, 2, 2, 2]]
WIDTH, HEIGHT = 190, 110
ROOM = 1.15  # above the highest mean; wider bands are cut off there
LEAST_SECONDS = 1e-4  # a logarithmic axis has no 0
DECADES = [10.0**power for power in range(-4, 5)]
_TIMES = look.heading("Time of a fit", "mean over all runs")


def evaluation_chart(means: Values, networks: Mapping[str, OrMixture]) -> alt.VConcatChart:
    """Means over runs with their intervals as bands, against the number of rows; the networks stand above.

    There are no bands for fewer than five runs. Rows of ``means`` have ``contender``, ``network``, ``n_samples``,
    ``flip_rate``, ``measure``, ``mean``, ``low``, ``high`` and ``n_runs``.
    """
    contenders = list(dict.fromkeys(row["contender"] for row in means))
    rates = sorted({row["flip_rate"] for row in means})
    scales = _Scales(contenders, rates)
    measures = [measure for measure in ROWS if any(row["measure"] == measure for row in means)]
    grids = alt.hconcat(*(_network(name, model) for name, model in networks.items()), spacing=56)
    rows = [_row(measure, means, list(networks), scales) for measure in measures]
    figure: alt.VConcatChart = alt.vconcat(grids, *rows, spacing=14)
    return styled(figure)


class _Scales:
    """One colour per method and one dash per noise level, in all panels."""

    def __init__(self, contenders: Sequence[str], rates: Sequence[float]) -> None:
        colors = [COLORS[place % len(COLORS)] for place in range(len(contenders))]
        shades = alt.Scale(domain=list(contenders), range=colors)
        dashes = alt.Scale(domain=[_percent(rate) for rate in rates], range=DASHES[: len(rates)])
        self.color = alt.Color("contender:N", scale=shades, legend=_legend(symbolOpacity=1))
        self.dash = alt.StrokeDash("noise:N", scale=dashes, legend=_legend(symbolStrokeColor=look.INK))


def _legend(**settings: Any) -> alt.Legend:
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", **settings)
    legend.symbolType, legend.symbolStrokeWidth, legend.symbolSize = "stroke", 2.5, 400
    return legend


def _percent(rate: float) -> str:
    return f"{100 * rate:g} % of the cells flipped"


def _row(measure: str, means: Values, networks: Sequence[str], scales: _Scales) -> alt.HConcatChart:
    values: Values = [_drawn(row) for row in means if row["measure"] == measure]
    panels = [
        _panel(
            [row for row in values if row["network"] == network],
            (_y("mean", measure, values, place), _y("low", measure, values, place)),
            scales,
            measure,
        )
        for place, network in enumerate(networks)
    ]
    row: alt.HConcatChart = alt.hconcat(*panels, spacing=24)
    return row


def _drawn(row: dict[str, Any]) -> dict[str, Any]:
    least = LEAST_SECONDS if row["measure"] == "cpu_seconds" else 0.0
    ends = {end: max(row[end], least) for end in ("low", "mean", "high")}
    return row | ends | {"noise": _percent(row["flip_rate"]), "line": f"{row['contender']} {row['flip_rate']}"}


def _y(field: str, measure: str, values: Values, place: int) -> alt.Y:
    """One axis for a whole row; the means decide how far it reaches, not the bands of a few runs."""
    highest = max((row["mean"] for row in values), default=0.0) or 1.0
    if measure == "cpu_seconds":
        lowest = min((row["mean"] for row in values), default=LEAST_SECONDS)
        scale = alt.Scale(type="log", domain=[lowest / 2, highest * 2])
    else:
        scale = alt.Scale(domain=[0, ROOM * highest], nice=False)
    title = ROWS[measure] if place == 0 else None
    ticks: dict[str, Any] = {"values": DECADES} if measure == "cpu_seconds" else {"tickCount": 4}
    axis = alt.Axis(gridColor=look.FAINT, minExtent=34, **ticks)
    return alt.Y(f"{field}:Q", scale=scale, title=title, axis=axis)


def _panel(values: Values, y: tuple[alt.Y, alt.Y], scales: _Scales, measure: str) -> alt.LayerChart:
    last = measure == list(ROWS)[-1]
    sizes = sorted({row["n_samples"] for row in values})
    axis = alt.Axis(values=sizes, grid=False, labelOverlap=True, labels=last, ticks=last)
    x = alt.X("n_samples:Q", scale=alt.Scale(type="log", nice=False), title="rows" if last else None, axis=axis)
    band = band_of(values, x=x, y=y[1], color=scales.color, detail="line:N")
    base = marks_at(values).encode(x=x, detail="line:N")
    line = base.mark_line(strokeWidth=1.8, clip=True).encode(y=y[0], color=scales.color, strokeDash=scales.dash)
    return layers(band, line, width=WIDTH, height=HEIGHT)


def _network(name: str, model: OrMixture) -> alt.LayerChart:
    """The true mixing, one line per source, small enough for the top of its column."""
    model = drawable(model)
    size = min(cell_size(model.n_sources, model.n_sensors), WIDTH / model.n_sensors, 130 / model.n_sources)
    names = [str(place) for place in range(model.n_sources)]
    grid = Grid(names, model.sensors, WIDTH / model.n_sensors, size, show_lines=False)
    cells: Values = [{"line": names[source], "column": sensor} for source, sensor in model.edges()]
    title = look.heading(name, f"{model.n_sources} sources, {model.n_sensors} sensors")
    drawn: alt.LayerChart = grid.filled(cells, look.INK).properties(title=title)
    return drawn


def times_chart(times: Values) -> alt.Chart:
    """Mean CPU seconds of every method on every network, on a logarithmic axis."""
    contenders = list(dict.fromkeys(row["contender"] for row in times))
    networks = list(dict.fromkeys(row["network"] for row in times))
    base = marks_at(times).mark_point(filled=True, size=110, opacity=1)
    colors = alt.Scale(domain=contenders, range=[COLORS[place % len(COLORS)] for place in range(len(contenders))])
    chart = base.encode(
        x=alt.X(
            "mean:Q",
            scale=alt.Scale(type="log"),
            title="CPU seconds per fit",
            axis=alt.Axis(gridColor=look.FAINT, values=DECADES),
        ),
        y=alt.Y("network:N", scale=alt.Scale(domain=networks), title=None),
        color=alt.Color("contender:N", scale=colors, legend=alt.Legend(title=None, orient="bottom")),
    )
    titled: alt.Chart = chart.properties(width=420, height=alt.Step(34), title=_TIMES)
    return styled(titled)
