"""A simulated survey: what monitors report of users, and what could at best be found behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.applications.spectrum.field import Field
from bica.applications.spectrum.traffic import Traffic
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """A field, its users' traffic, and the problem that the monitors' reports pose.

    Users whom the same monitors hear cannot be told apart: they are one source, active when one of them is. Users whom
    nobody hears are left out.
    """

    field: Field
    traffic: Traffic
    members: tuple[tuple[int, ...], ...]  # the users of each source
    problem: Problem


def draw_survey(field: Field, traffic: Traffic, n_slots: int, flip_rate: float, rng: np.random.Generator) -> Survey:
    """Let the users transmit and the monitors report, each report flipped with chance ``flip_rate``.

    >>> field = Field([[0, 0], [100, 0]], [[50, 0], [60, 0], [0, 100], [400, 400]])
    >>> survey = draw_survey(field, Traffic(np.full(4, 0.1), np.full(4, 5.0)), 100, 0.0, np.random.default_rng(1))
    >>> survey.members, survey.problem.model.names, survey.problem.model.probability.round(2)
    (((0, 1), (2,)), ('u1+u2', 'u3'), array([0.19, 0.1 ]))
    """
    activity = traffic.draw(n_slots, rng)
    members = _heard_alike(field.reach)
    model = OrMixture(
        np.array([field.reach[:, users[0]] for users in members], bool).reshape(len(members), len(field.monitors)).T,
        [-np.expm1(np.log1p(-traffic.probability[list(users)]).sum()) for users in members],
        Noise.flips(flip_rate),
        sensors=field.monitor_names,
        names=["+".join(field.user_names[j] for j in users) for users in members],
    )
    merged = _merged(activity, members)
    return Survey(field, traffic, members, Problem(model, merged, model.noise.apply(model.observe(merged), rng)))


def _heard_alike(reach: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Users by the monitors that hear them, in the order of the first of each set; those that nobody hears are out."""
    groups: dict[bytes, list[int]] = {}
    for user in np.flatnonzero(reach.any(axis=0)).tolist():
        groups.setdefault(reach[:, user].tobytes(), []).append(user)
    return tuple(map(tuple, groups.values()))


def _merged(activity: NDArray[np.bool_], members: tuple[tuple[int, ...], ...]) -> NDArray[np.bool_]:
    columns = [activity[:, list(users)].any(axis=1) for users in members]
    return np.array(columns, bool).reshape(len(members), len(activity)).T.copy()
