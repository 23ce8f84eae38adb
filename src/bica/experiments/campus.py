"""The campus experiment: how many active users are monitored when users are known, learned, or not looked at.

The numbers of sniffers and users, their channels and their mean activity are the paper's. Its trace is not public, so
places are drawn at random:

- The building is 120 m by 60 m and has 12 by 4 rooms. The 21 sniffers stand in a grid of 7 by 3, each shifted at random
  by up to a quarter of the distance to the next. Every user is in a random room, whatever the channel.
- A sniffer hears a room whose centre is within 25 m, where walls shorten or lengthen that for every pair by a normal
  number of decibels (standard deviation 4 dB, path loss exponent 3.5). All users of a room are heard by the same
  sniffers, 4.8 of the 21 on average. Rooms that no sniffer hears stay empty: the paper counts users who were observed.
- Activity follows Zipf's law with a mean of 0.0014: the user of rank r is active 1 / r as often as the busiest, who is
  active 13 % of the time. Twelve users are active more than 1 % of the time, half of all less than 0.04 %.

Whoever decides, the value counts the true users with their true activity. Learners get nothing but the binary
observations of the sniffers that take part, and so does Max.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import process_time
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from bica.applications.monitoring.assignment import Assignment, assign, relax
from bica.applications.monitoring.problem import MonitoringProblem, learn_channels
from bica.compare.run import Record
from bica.compare.summary import LEVEL, mean_of
from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.methods import method_named
from bica.model.fit import Method
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.report import look
from bica.report.look import BAND_RUNS, Values, band_of, heading, layers, marks_at, styled
from bica.version import __version__

USERS_ON = {"1": 382, "6": 118, "11": 155}  # users by channel
N_USERS = sum(USERS_ON.values())
BUILDING = (120.0, 60.0)  # metres
ROOMS = (12, 4)
SNIFFER_GRID = (7, 3)
N_SNIFFERS = SNIFFER_GRID[0] * SNIFFER_GRID[1]
SHIFT = 0.25  # of the distance between sniffers
HEARING_RANGE = 25.0  # metres, without walls
PATH_LOSS_EXPONENT = 3.5
SHADOWING = 4.0  # decibels, the standard deviation of what walls add and take
MEAN_ACTIVITY = 0.0014  # share of the time


@dataclass(frozen=True, slots=True, eq=False)
class Campus:
    """Where sniffers and users are, who hears whom, and how often each user is active."""

    sniffer_places: NDArray[np.float64]  # (n_sniffers, 2), metres
    room_places: NDArray[np.float64]  # (n_rooms, 2), metres
    room: NDArray[np.int64]  # (n_users,), the room of each user
    reach: NDArray[np.bool_]  # (n_sniffers, n_users)
    channel: NDArray[np.int64]  # (n_users,), the place of each user's channel among the three
    probability: NDArray[np.float64]  # (n_users,), how often each user is active

    def problem(self, sniffers: Sequence[int]) -> MonitoringProblem:
        """What these sniffers could monitor, with everything known."""
        return MonitoringProblem(
            self.reach[list(sniffers)],
            self.channel,
            self.probability,
            sniffers=[sniffer_name(s) for s in sniffers],
            channels=list(USERS_ON),
        )

    def models(self) -> dict[str, OrMixture]:
        """The users of every channel as the sources of a model, whose sensors are all sniffers."""
        names = [sniffer_name(s) for s in range(len(self.reach))]
        return {
            name: OrMixture(self.reach[:, self.channel == k], self.probability[self.channel == k], sensors=names)
            for k, name in enumerate(USERS_ON)
        }

    def observe(self, n_slots: int, rng: np.random.Generator) -> dict[str, NDArray[np.bool_]]:
        """What all sniffers show on every channel, (n_slots, n_sniffers) each: on if any user in reach is active."""
        return {name: model.sample(n_slots, rng) for name, model in self.models().items()}


def draw_campus(rng: np.random.Generator, rooms: tuple[int, int] = ROOMS) -> Campus:
    """A random campus; with many ``rooms``, hardly any two users are heard by the same sniffers.

    >>> campus = draw_campus(np.random.default_rng(7))
    >>> campus.reach.shape, round(float(campus.probability.mean()), 6)
    ((21, 655), 0.0014)
    """
    if min(rooms) < 1:
        raise SettingError(f"a building has at least one room, but {rooms[0]} by {rooms[1]} were asked for")
    shift = rng.uniform(-SHIFT, SHIFT, (N_SNIFFERS, 2))
    sniffer_places, room_places = _grid(SNIFFER_GRID, shift), _grid(rooms)
    hears = _hears(sniffer_places, room_places, rng)
    room = rng.choice(np.flatnonzero(hears.any(axis=0)), N_USERS)
    channel = rng.permutation(np.repeat(np.arange(len(USERS_ON)), list(USERS_ON.values())))
    return Campus(sniffer_places, room_places, room, hears[:, room], channel, rng.permutation(_zipf_activity()))


def sniffer_name(place: int) -> str:
    """The name of a sniffer, by its number.

    >>> sniffer_name(0)
    'sniffer01'
    """
    return f"sniffer{place + 1:02d}"


def _grid(shape: tuple[int, int], shift: NDArray[np.float64] | float = 0.0) -> NDArray[np.float64]:
    """The middles of equal rectangles that divide the building, shifted by shares of their sides."""
    columns, lines = shape
    middles = np.array([(column, line) for line in range(lines) for column in range(columns)]) + 0.5
    places: NDArray[np.float64] = (middles + shift) * BUILDING / shape
    return places


def _hears(sniffers: NDArray[np.float64], rooms: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.bool_]:
    distance = np.linalg.norm(sniffers[:, None] - rooms, axis=2)
    decibels = SHADOWING * rng.standard_normal(distance.shape)
    hears: NDArray[np.bool_] = distance <= HEARING_RANGE * 10 ** (decibels / (10 * PATH_LOSS_EXPONENT))
    return hears


def _zipf_activity() -> NDArray[np.float64]:
    share = 1.0 / np.arange(1, N_USERS + 1)
    activity: NDArray[np.float64] = MEAN_ACTIVITY * share / share.mean()
    return activity


Tables = Mapping[str, NDArray[np.bool_]]  # what each sniffer showed, by channel
USERS, MAX = "users", "max"  # everything is known; every sniffer on its busiest channel
LEARNERS: dict[str, dict[str, Any]] = {
    "likelihood": {"noise": Noise(), "n_jobs": 1},  # the sniffers of this experiment make no errors
    "findbica": {"noise": Noise(), "min_probability": 0.0002},  # the rarest users are active that often
}
CONTENDERS = (USERS, *LEARNERS, MAX)
SIZES = (5, 7, 9, 11, 13, 15, 17, 19, N_SNIFFERS)
N_SLOTS = 21600  # six hours, one slot per second
N_DRAWS = 2000  # roundings, so many that luck hardly matters
N_CAMPUSES = 20
QUICK_SIZES, QUICK_CAMPUSES = (5, 13, 21), 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringRun:
    """One contender with some of the sniffers of one campus."""

    contender: str
    seed: int
    n_sniffers: int
    n_slots: int = N_SLOTS
    rooms: tuple[int, int] = ROOMS

    def __post_init__(self) -> None:
        if self.contender not in CONTENDERS:
            raise SettingError(f"there is no contender {self.contender!r}; choose from {', '.join(CONTENDERS)}")
        if not 1 <= self.n_sniffers <= N_SNIFFERS:
            raise SettingError(f"a campus has {N_SNIFFERS} sniffers; {self.n_sniffers} of them cannot take part")

    def key(self) -> Record:
        """What distinguishes this run from all others, the settings included, so that changed ones are run anew."""
        settings = repr(_learner(self.contender)) if self.contender in LEARNERS else ""
        return {
            "contender": self.contender,
            "settings": settings,
            "seed": self.seed,
            "n_sniffers": self.n_sniffers,
            "n_slots": self.n_slots,
            "rooms": f"{self.rooms[0]} x {self.rooms[1]}",
        }

    def perform(self) -> Record:
        """Draw a campus and six hours of activity, decide, and count; CPU seconds are those of deciding.

        >>> run = MonitoringRun(contender="users", seed=7, n_sniffers=5, n_slots=100).perform()
        >>> round(run["value"], 3), round(run["bound"], 3)
        (0.435, 0.435)
        """
        campus, tables = _six_hours(self.seed, self.n_slots, self.rooms)
        sniffers = _subset(self.seed, self.n_sniffers)
        truth = campus.problem(sniffers)
        begin = process_time()
        decided = self._decide(truth, {name: rows[:, sniffers] for name, rows in tables.items()})
        seconds = process_time() - begin
        return self.key() | {
            "version": __version__,
            "value": truth.value(decided.channel),
            "bound": relax(truth).bound,
            "expected": None if self.contender == MAX else decided.value,
            "n_heard": int(truth.reach.any(axis=0).sum()),
            "n_distinct": _n_distinct(truth),
            "n_found": decided.problem.n_users if self.contender in LEARNERS else None,
            "cpu_seconds": seconds,
        }

    def _decide(self, truth: MonitoringProblem, tables: Tables) -> Assignment:
        if self.contender == MAX:
            return assign(_measured(truth, tables), "max")
        known = self._learned(truth.sniffers, tables) if self.contender in LEARNERS else truth
        return assign(known, "rounding", n_draws=N_DRAWS, rng=np.random.default_rng([self.seed, self.n_sniffers, 2]))

    def _learned(self, sniffers: tuple[str, ...], tables: Tables) -> MonitoringProblem:
        counts = {name: PatternCounts.of(rows, sensors=sniffers) for name, rows in tables.items()}
        generator = np.random.default_rng([self.seed, self.n_sniffers, 1])
        return learn_channels(counts, _learner(self.contender), generator).problem(list(sniffers))


def monitoring_plan(n_campuses: int, sizes: Iterable[int] = SIZES) -> list[MonitoringRun]:
    """Every contender with every number of sniffers on campuses 0 to ``n_campuses`` - 1.

    >>> len(monitoring_plan(20))
    720
    """
    wanted = list(sizes)
    return [
        MonitoringRun(contender=contender, seed=seed, n_sniffers=size)
        for seed in range(n_campuses)  # changes last, so that an early end stays balanced
        for size in wanted
        for contender in CONTENDERS
    ]


@lru_cache(maxsize=1)
def _six_hours(seed: int, n_slots: int, rooms: tuple[int, int]) -> tuple[Campus, Tables]:
    """The campus of this seed and what its sniffers showed; the same for all contenders and numbers of sniffers."""
    rng = np.random.default_rng([seed, 0])
    campus = draw_campus(rng, rooms)
    return campus, campus.observe(n_slots, rng)


def _subset(seed: int, n_sniffers: int) -> list[int]:
    """Which sniffers take part; larger subsets include the smaller ones."""
    return sorted(np.random.default_rng([seed, 3]).permutation(N_SNIFFERS)[:n_sniffers].tolist())


def _learner(contender: str) -> Method:
    return method_named(contender, **LEARNERS[contender])


def _measured(truth: MonitoringProblem, tables: Tables) -> MonitoringProblem:
    """The problem as Max knows it: how often each sniffer was on, and no user."""
    busy = np.column_stack([rows.mean(axis=0) for rows in tables.values()])
    nobody = np.zeros((truth.n_sniffers, 0), bool)
    return MonitoringProblem(nobody, [], [], sniffers=truth.sniffers, channels=truth.channels, busy=busy)


def _n_distinct(problem: MonitoringProblem) -> int:
    """How many users can be told apart: those on one channel whom the same sniffers hear count as one."""
    heard = problem.reach.any(axis=0)
    return len(np.unique(np.vstack([problem.channel, problem.reach > 0])[:, heard], axis=1).T)


# The campus experiment in numbers and as a picture: means over campuses, compared with all users known.

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
