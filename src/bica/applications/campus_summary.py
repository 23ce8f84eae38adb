"""The campus experiment in numbers: means over campuses, also against those who know everything and against Max."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bica.applications.campus_experiment import CONTENDERS, LEARNERS, MAX, USERS
from bica.compare.records import Record
from bica.compare.summary import LEVEL, mean_of

TITLES = {
    USERS: "LPR, users known",
    "likelihood": "LPR, Likelihood",
    "findbica": "LPR, FindBICA",
    MAX: "Max",
}
BOUND = "upper bound"
Values = dict[tuple[str, int], float]  # by contender and campus


def monitoring_means(records: Iterable[Record], level: float = LEVEL) -> list[Record]:
    """One row for every contender and number of sniffers, with intervals over campuses as ``low`` and ``high``.

    ``mean`` is the expected number of active users monitored, ``share`` its share of what is monitored on the same
    campus with all users known, and ``above_max`` what it is more than by Max there. The last contender is the upper
    bound. Campuses on which a contender is missing do not count.
    """
    by_size: dict[int, Values] = {}
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


def _finished(values: Values) -> list[int]:
    return [seed for seed in sorted({seed for _, seed in values}) if all((who, seed) in values for who in CONTENDERS)]


def _row(values: Values, name: str, campuses: list[int], level: float) -> Record:
    own = [values[name, seed] for seed in campuses]
    shares = [value / values[USERS, seed] for value, seed in zip(own, campuses, strict=True)]
    above = [value - values[MAX, seed] for value, seed in zip(own, campuses, strict=True)]
    parts = {"": mean_of(own, level), "share_": mean_of(shares, level), "above_max_": mean_of(above, level)}
    row = {f"{part}{end}": value for part, mean in parts.items() for end, value in mean.ends().items()}
    return row | {"n_runs": len(campuses)}


def markdown_of_monitoring(means: Sequence[Record]) -> str:
    """The means as text, a line a number of sniffers; behind each mean half the width of its interval."""
    learners = [TITLES[name] for name in LEARNERS]
    columns = ["sniffers", BOUND, TITLES[USERS]]
    for title in learners:
        columns += [title, "of users known", "above Max"]
    lines = [f"| {' | '.join([*columns, TITLES[MAX], 'campuses'])} |", "| ---: " * (len(columns) + 2) + "|"]
    for size in dict.fromkeys(row["n_sniffers"] for row in means):
        row = {mean["contender"]: mean for mean in means if mean["n_sniffers"] == size}
        cells = [str(size), f"{row[BOUND]['mean']:.3f}", _cell(row[TITLES[USERS]])]
        for title in learners:
            cells += [_cell(row[title]), _cell(row[title], "share_", 100), _cell(row[title], "above_max_")]
        lines.append(f"| {' | '.join([*cells, _cell(row[TITLES[MAX]]), str(row[BOUND]['n_runs'])])} |")
    return "\n".join(lines)


def _cell(row: Record, part: str = "", factor: int = 1) -> str:
    mean, width = factor * row[f"{part}mean"], factor * (row[f"{part}high"] - row[f"{part}mean"])
    return f"{mean:.1f} ± {width:.1f} %" if factor == 100 else f"{mean:.3f} ± {width:.3f}"
