"""The paper's spectrum experiment: 10 monitors, 5 to 20 users, flipped reports; which method separates users best."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import process_time
from typing import Any, Literal

import altair as alt
import numpy as np
from numpy.typing import NDArray

from bica.applications.spectrum.field import random_field
from bica.applications.spectrum.survey import READINGS, Reading, Survey, draw_survey, learn_users, random_traffic
from bica.compare.run import Record
from bica.compare.summary import mean_of, with_best_variant
from bica.compare.task import Contender
from bica.data.rows import Rows
from bica.errors import SettingError
from bica.estimate.temporal import stays_in_time
from bica.estimate.temporal.learn import IN_TIME
from bica.experiments.evaluation import BEST_FINDBICA
from bica.invert.decode import decode
from bica.invert.temporal.decode import decode_in_time
from bica.metrics import Match, activity_error_ratio, compare_models
from bica.model.fit import Fit
from bica.model.or_mixture import OrMixture
from bica.report import look
from bica.report.look import Values, band_of, heading, layers, marks_at, styled
from bica.version import __version__

N_SLOTS, FLIP_RATES, N_RUNS = 10_000, (0.0, 0.02, 0.05), 50
N_USERS = (5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20)
QUICK_USERS, QUICK_RUNS = (5, 10, 15), 2
ENDLESS = 1e6  # slots, for a user who never stops
FINDBICA = {f"findbica {e:g}": Contender("findbica", {"min_probability": e}) for e in (0.002, 0.005, 0.01, 0.02)}
CONTENDERS: Mapping[str, Contender] = {
    **FINDBICA,
    "likelihood": Contender("likelihood", {"edges": "sure"}),  # as in the paper, a user in reach is always heard
    IN_TIME: Contender("likelihood", {"edges": "sure"}),  # revised with the order of the slots
    "truth": Contender(None),
}
NOT_IN_TIME = FINDBICA.keys() - {"findbica 0.005"}  # decoding their many sources in time would take most of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectrumJob:
    """One contender on the reports of one random field."""

    contender: str
    n_users: int
    flip_rate: float
    seed: int
    reading: Reading = "rare"
    n_samples: int = N_SLOTS

    def __post_init__(self) -> None:
        if self.contender not in CONTENDERS:
            raise SettingError(f"there is no contender {self.contender!r}; choose from {', '.join(CONTENDERS)}")

    def key(self) -> Record:
        """What distinguishes this job from all others."""
        settings = json.dumps(dict(CONTENDERS[self.contender].settings), sort_keys=True)
        return asdict(self) | {"settings": settings}

    def survey(self) -> Survey:
        """The survey of this job; field, traffic and activity depend on seed, number of users and reading alone."""
        rng = np.random.default_rng([self.seed, self.n_users, READINGS.index(self.reading)])
        field = random_field(self.n_users, rng)
        return draw_survey(field, random_traffic(self.n_users, rng, self.reading), self.n_samples, self.flip_rate, rng)

    def perform(self) -> Record:
        """Draw the field, learn, decode and measure; CPU seconds are those of learning alone.

        >>> SpectrumJob(contender="truth", n_users=5, flip_rate=0.0, seed=0, n_samples=500).perform()["exact"]
        1.0
        """
        problem = self.survey().problem
        slots = Rows.of(np.ascontiguousarray(problem.rows), sensors=problem.model.sensors)
        begin = process_time()
        fit = _fit(self.contender, slots, problem.model)
        seconds = process_time() - begin
        compared = compare_models(fit.model, problem.model, problem.n_samples)
        row_wise = decode(fit.model, slots.words).activity
        return self.key() | {
            "version": __version__,
            **compared.as_dict(),
            "exact": float(compared.columns.f1 == 1),
            "activity_error": activity_error_ratio(row_wise, problem.activity, compared.match),
            "activity_error_in_time": self._error_in_time(fit, slots, problem.activity, compared.match),
            "found_flip_rate": float(np.mean(fit.model.noise.rates(fit.model.n_sensors))),
            "cpu_seconds": seconds,
        }

    def _error_in_time(self, fit: Fit, slots: Rows, activity: NDArray[np.bool_], match: Match) -> float | None:
        if self.contender in NOT_IN_TIME:
            return None
        found = decode_in_time(fit.model, slots.words, persistence=_stays(fit, slots)).activity
        return activity_error_ratio(found, activity, match)


def _fit(name: str, slots: Rows, truth: OrMixture) -> Fit:
    if name == IN_TIME:
        return learn_users(slots, n_jobs=1)
    method = CONTENDERS[name].prepared(truth.n_sources)
    if method is None or not slots.words.any():
        return Fit(truth if method is None else truth.pick([]))
    return method.fit(slots.counts(), np.random.default_rng(0))


def _stays(fit: Fit, slots: Rows) -> Any:
    """For how many slots each user stays active, as learned with the users or, otherwise, estimated afterwards."""
    known = fit.diagnostics.get("persistence")
    return stays_in_time(fit.model, slots.words) if known is None else [stay or ENDLESS for stay in known]


def spectrum_plan(
    contenders: Iterable[str] = CONTENDERS,
    *,
    n_users: Sequence[int] = N_USERS,
    flip_rates: Sequence[float] = FLIP_RATES,
    n_runs: int = N_RUNS,
    reading: Reading = "rare",
) -> list[SpectrumJob]:
    """Every contender on every field and noise level; the seed changes last, so that an early end stays balanced.

    >>> len(spectrum_plan(["likelihood"]))
    1650
    """
    names = list(contenders)
    return [
        SpectrumJob(contender=name, n_users=users, flip_rate=rate, seed=seed, reading=reading)
        for seed in range(n_runs)
        for users in n_users
        for rate in flip_rates
        for name in names
    ]


# The results of the spectrum experiment: means over fields, and one picture of the errors.

By = Literal["n_users", "n_true"]
MEASURES = ("hamming_distance", "exact", "activity_error", "activity_error_in_time", "n_found", "f1", "cpu_seconds")
TITLES = {"likelihood": "Likelihood", IN_TIME: "Likelihood in time", "truth": "exact model"}
CELL_FIELDS = ("reading", "n_users", "flip_rate")


def with_best_findbica(records: Sequence[Record]) -> list[Record]:
    """The records with one FindBICA: for each number of users and noise level the one with the lowest mean distance.

    Its activity in time is that of the one setting for which it was decoded. Other contenders get their titles.
    """
    in_time = {_run(record): record["activity_error_in_time"] for record in records if _decoded_findbica(record)}
    return [
        record | {"activity_error_in_time": in_time.get(_run(record))}
        if record["contender"] == BEST_FINDBICA
        else record | {"contender": TITLES.get(record["contender"], record["contender"])}
        for record in with_best_variant(records, FINDBICA, CELL_FIELDS, BEST_FINDBICA)
    ]


def _run(record: Record) -> tuple[Any, ...]:
    return *(record[part] for part in CELL_FIELDS), record["seed"]


def _decoded_findbica(record: Record) -> bool:
    return record["contender"] in FINDBICA and record["activity_error_in_time"] is not None


def means_by(records: Iterable[Record], by: By) -> list[Record]:
    """Means with 99 % intervals for every contender, noise level and number of users (all, or as can be told apart).

    >>> record = {"contender": "a", "flip_rate": 0.0, "n_users": 5, **dict.fromkeys(MEASURES, 0.5)}
    >>> means_by([record, record], "n_users")[0]["mean"]
    0.5
    """
    cells: dict[tuple[str, float, int], list[Record]] = {}
    for record in records:
        cells.setdefault((record["contender"], record["flip_rate"], record[by]), []).append(record)
    return [
        {
            "contender": contender,
            "flip_rate": rate,
            "number": number,
            "measure": measure,
            **mean_of(values).ends(),
            "n_runs": len(values),
        }
        for (contender, rate, number), members in sorted(cells.items())
        for measure in MEASURES
        if (values := [record[measure] for record in members if record[measure] is not None])
    ]


def markdown_of_users(means: Sequence[Record], measure: str, digits: int = 4) -> str:
    """One measure as Markdown: one line per method and noise level, one column per number of users.

    >>> row = {"contender": "FindBICA", "flip_rate": 0.05, "number": 5, "measure": "exact", "mean": 0.5}
    >>> print(markdown_of_users([row], "exact", 2))
    | method | flips | 5 |
    | --- | --- | ---: |
    | FindBICA | 5 % | 0.50 |
    """
    rows = [row for row in means if row["measure"] == measure]
    numbers = sorted({row["number"] for row in rows})
    lines: dict[tuple[str, float], dict[int, float]] = {}
    for row in rows:
        lines.setdefault((row["contender"], row["flip_rate"]), {})[row["number"]] = row["mean"]
    text = ["| method | flips | " + " | ".join(map(str, numbers)) + " |", "| --- | --- |" + " ---: |" * len(numbers)]
    for (contender, rate), found in sorted(lines.items(), key=lambda line: (line[0][1], line[0][0])):
        cells = [f"{found[n]:.{digits}f}" if n in found else "-" for n in numbers]
        text.append(f"| {contender} | {100 * rate:g} % | " + " | ".join(cells) + " |")
    return "\n".join(text)


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


def spectrum_errors_chart(by_users: Values, by_distinct: Values) -> alt.VConcatChart:
    """Means with 99 % bands against the number of users, and below against how many of them can be told apart.

    Rows of both have ``contender``, ``flip_rate``, ``number``, ``measure``, ``mean``, ``low``, ``high`` and ``n_runs``.
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
    """Whether the row says nothing: the exact model, there to show decoding errors, makes none in the mixing."""
    return bool(row["contender"] == EXACT and row["measure"] in ("hamming_distance", "exact"))


def _panel(values: Values, highest: float, title: str | None, color: alt.Color, *, last: bool) -> alt.LayerChart:
    axis = alt.Axis(grid=False, tickMinStep=1, labels=last, ticks=last, format="d")
    x = alt.X("number:Q", title=None, axis=axis, scale=alt.Scale(zero=False, nice=False, padding=6))
    scale = alt.Scale(domain=[0, highest], nice=False)
    axis = alt.Axis(gridColor=look.FAINT, tickCount=4, minExtent=34, titleFontSize=10, titleFontWeight="normal")
    y = alt.Y("mean:Q", scale=scale, title=title, axis=axis)
    low = alt.Y("low:Q", scale=scale, title=title)
    band = band_of(values, x=x, y=low, color=color)
    base = marks_at(values).encode(x=x, y=y, color=color)
    line = base.mark_line(strokeWidth=1.8, clip=True)
    dots = base.mark_point(filled=True, size=16, clip=True, opacity=1)
    return layers(band, line, dots, width=WIDTH, height=HEIGHT)
