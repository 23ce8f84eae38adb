"""The campus experiment: how many active users are monitored when users are known, learned, or not looked at.

Whoever decides, the value counts the true users with their true activity. Learners see nothing but the binary
observations of the sniffers that take part, and so does Max.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.applications.assignment import Assignment, assign
from bica.applications.campus import N_SNIFFERS, ROOMS, Campus, draw_campus
from bica.applications.learning import learn_channels
from bica.applications.monitoring import MonitoringProblem
from bica.applications.relaxation import relax
from bica.compare.records import Record
from bica.data.patterns import PatternCounts
from bica.errors import SettingError
from bica.methods import method_named
from bica.model.fit import Method
from bica.model.noise import Noise
from bica.version import __version__

Tables = Mapping[str, NDArray[np.bool_]]  # what each sniffer showed, by channel
USERS, MAX = "users", "max"  # everything is known; every sniffer on its busiest channel
LEARNERS: dict[str, dict[str, Any]] = {
    "likelihood": {"noise": Noise(), "n_jobs": 1},  # the sniffers of this experiment make no errors
    "findbica": {"noise": Noise(), "min_probability": 0.0002},  # the rarest users are active that often
}
CONTENDERS = (USERS, *LEARNERS, MAX)
SIZES = (5, 7, 9, 11, 13, 15, 17, N_SNIFFERS)  # Likelihood takes minutes a campus with 19, seconds with 21
N_SLOTS = 21600  # six hours of seconds
N_DRAWS = 2000  # so many that the luck of rounding hardly counts
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
        """What tells this run from all others: also the settings, so that changed ones are run anew."""
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
        """Draw the campus and six hours on it, decide, and count; CPU seconds are those of deciding.

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
        chance = np.random.default_rng([self.seed, self.n_sniffers, 1])
        return learn_channels(counts, _learner(self.contender), chance).problem(list(sniffers))


def monitoring_plan(n_campuses: int, sizes: Iterable[int] = SIZES) -> list[MonitoringRun]:
    """Every contender with every number of sniffers on campuses 0 to ``n_campuses`` - 1.

    >>> len(monitoring_plan(20))
    640
    """
    wanted = list(sizes)
    return [
        MonitoringRun(contender=contender, seed=seed, n_sniffers=size)
        for seed in range(n_campuses)  # last to change, so that an early end leaves all balanced
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
    """Which sniffers take part; a larger number of them includes the smaller ones."""
    return sorted(np.random.default_rng([seed, 3]).permutation(N_SNIFFERS)[:n_sniffers].tolist())


def _learner(contender: str) -> Method:
    return method_named(contender, **LEARNERS[contender])


def _measured(truth: MonitoringProblem, tables: Tables) -> MonitoringProblem:
    """What Max looks at: how often each sniffer was on, and no user."""
    busy = np.column_stack([rows.mean(axis=0) for rows in tables.values()])
    nobody = np.zeros((truth.n_sniffers, 0), bool)
    return MonitoringProblem(nobody, [], [], sniffers=truth.sniffers, channels=truth.channels, busy=busy)


def _n_distinct(problem: MonitoringProblem) -> int:
    """Users that can be told apart: on one channel and heard by the same sniffers, they are one."""
    heard = problem.reach.any(axis=0)
    return len(np.unique(np.vstack([problem.channel, problem.reach])[:, heard], axis=1).T)
