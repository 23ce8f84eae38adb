"""Which sources were on in consecutive slots, if each of them stays on or off for a while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.errors import InfeasibleError, SettingError
from bica.invert.chains import Chains, checked_persistence
from bica.invert.courses import Course
from bica.invert.decode import decode
from bica.invert.groups import groups_of
from bica.invert.persistence import estimated_persistence
from bica.invert.posterior import checked_rows
from bica.invert.rows import Rows
from bica.kernels.bits import Words
from bica.model.or_mixture import OrMixture
from bica.progress import tracked

Persistence = ArrayLike | Literal["estimate"]


@dataclass(frozen=True, slots=True)
class DecodedInTime:
    """The most probable course of all sources through consecutive rows."""

    activity: NDArray[np.bool_]  # (n_rows, n_sources)
    cost: float  # -log of the chance of that course and the rows together; rows that are impossible do not count
    exact: NDArray[np.bool_]  # (n_sources,), whether no course of the source's part of the model is likelier
    feasible: NDArray[np.bool_]  # (n_rows,), which rows the model can produce; others are passed over
    persistence: NDArray[np.float64]  # (n_sources,), the mean number of slots that each source stays on


def decode_in_time(
    model: OrMixture, words: Words, observed: Words | None = None, *, persistence: Persistence = "estimate"
) -> DecodedInTime:
    """Find the most probable course of the sources through rows that are consecutive slots, in order.

    Each source is a chain of its own: on with its probability, for ``persistence`` slots on average at a time (one
    number, one a source, or estimated from the rows). Parts of the model of up to 12 sources are solved exactly, in
    time (m + n) 2^n for each row. In larger parts the row-wise answer is improved, a few neighbouring sources at a
    time, until no such change makes it likelier; so it is never less likely than the row-wise answer.

    >>> from bica import Noise
    >>> model = OrMixture([[1]], [0.3], Noise.flips(0.2))
    >>> rows = np.array([[0], [0], [1], [0], [0], [1], [1], [0], [1], [1]], dtype=np.uint64)
    >>> decode_in_time(model, rows, persistence=5).activity[:, 0].astype(int)
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    courses, feasible = _row_wise(model, checked_rows(model, words, observed))
    stay = _persistence(model, courses, persistence)
    chains = Chains.of(model.probability, stay)
    cost, exact = 0.0, np.ones(model.n_sources, dtype=bool)
    activity = np.repeat(model.probability[None] == 1, len(words), axis=0)
    for course in tracked(courses, "decoding parts of the model", len(courses)):
        sources = course.group.sources
        course.improve(chains.pick(sources))
        activity[:, sources], exact[sources] = course.activity, course.exact
        cost += course.cost(chains.pick(sources))
    if np.isinf(cost):
        raise InfeasibleError("with this persistence no course of the sources produces the rows; let it be estimated")
    return DecodedInTime(activity, cost, exact, feasible, stay)


def learn_persistence(model: OrMixture, words: Words, observed: Words | None = None) -> NDArray[np.float64]:
    """Estimate from consecutive rows for how many slots on average each source stays on: (n_sources,)."""
    courses, _ = _row_wise(model, checked_rows(model, words, observed))
    return _persistence(model, courses, "estimate")


def _row_wise(model: OrMixture, rows: Rows) -> tuple[list[Course], NDArray[np.bool_]]:
    """Where every search begins: each row decoded alone. Rows that the model cannot produce tell nothing."""
    alone = decode(model, rows.words, rows.seen)
    rows = Rows(rows.words, np.where(alone.feasible[:, None], rows.seen, np.uint64(0)))
    courses = [
        Course(group, rows.of_sensors(group.sensors).cells(group.sensors.size), alone.activity[:, group.sources])
        for group in groups_of(model)
    ]
    return courses, alone.feasible


def _persistence(model: OrMixture, courses: list[Course], persistence: Persistence) -> NDArray[np.float64]:
    if not isinstance(persistence, str):
        return checked_persistence(persistence, model.probability)
    if persistence != "estimate":
        raise SettingError(f"persistence is {persistence!r}; it can be 'estimate', a number of slots, or one a source")
    return estimated_persistence(courses, model.probability)
