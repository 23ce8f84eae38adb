"""A survey: how users transmit, what monitors report, which sources could at best be found, and which are.

Fields in files are JSON with everything that is known, or CSV with the places of the monitors.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bica.applications.spectrum.field import Field, Propagation
from bica.data.rows import Rows
from bica.errors import BicaError, DataError, SettingError
from bica.estimate.likelihood import Likelihood
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import Problem, markov_activity

Reading = Literal["rare", "uniform"]
READINGS: tuple[Reading, ...] = get_args(Reading)
RARE, RARE_STAY = (0.005, 0.035), 5.0  # range of probabilities, and mean slots per stay


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Users as two-state Markov chains."""

    probability: NDArray[np.float64]  # (n_users,), share of slots in which each is active
    stay: NDArray[np.float64]  # (n_users,), mean number of slots for which it then stays active

    def draw(self, n_slots: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Who is active in each slot: (n_slots, n_users)."""
        return markov_activity(self.probability, self.stay, n_slots, rng)


def random_traffic(n_users: int, rng: np.random.Generator, reading: Reading = "rare") -> Traffic:
    """The traffic of each user, by one of two readings of the paper, which cannot both hold.

    "rare": an activity of 2 % on average, drawn from U(0.005, 0.035), in stays of 5 slots on average. "uniform":
    both transition probabilities drawn from U(0, 1), which makes users active in half of the slots.

    >>> random_traffic(1000, np.random.default_rng(1), "uniform").probability.mean().round(1)
    np.float64(0.5)
    """
    if reading == "rare":
        return Traffic(rng.uniform(*RARE, n_users), np.full(n_users, RARE_STAY))
    if reading == "uniform":
        begin, end = 1 - rng.random((2, n_users))  # in (0, 1]
        return Traffic(begin / (begin + end), 1 / end)
    raise SettingError(f"there is no reading {reading!r}; choose {' or '.join(READINGS)}")


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """A field, its users' traffic, and the problem that the monitors' reports pose.

    Users whom the same monitors hear cannot be told apart: they are one source, active when any of them is. Users whom
    no monitor hears are left out.
    """

    field: Field
    traffic: Traffic
    members: tuple[tuple[int, ...], ...]  # the users of each source
    problem: Problem


def draw_survey(field: Field, traffic: Traffic, n_slots: int, flip_rate: float, rng: np.random.Generator) -> Survey:
    """Let the users transmit and the monitors report, each report flipped with probability ``flip_rate``.

    Where signals fade, a user is heard by each monitor in a share of the slots, and only silence is flipped.

    >>> field = Field([[0, 0], [100, 0]], [[50, 0], [60, 0], [0, 100], [400, 400]])
    >>> survey = draw_survey(field, Traffic(np.full(4, 0.1), np.full(4, 5.0)), 100, 0.0, np.random.default_rng(1))
    >>> survey.members, survey.problem.model.names, survey.problem.model.probability.round(2)
    (((0, 1), (2,)), ('u1+u2', 'u3'), array([0.19, 0.1 ]))
    """
    activity = traffic.draw(n_slots, rng)
    fades = field.propagation.fading_db > 0
    members = _heard_alike(field.heard_share if fades else field.reach)
    share = field.heard_share[:, [users[0] for users in members]]
    model = OrMixture(
        share > 0,
        [-np.expm1(np.log1p(-traffic.probability[list(users)]).sum()) for users in members],
        Noise(flip_rate, 0.0) if fades else Noise.flips(flip_rate),
        share if fades else None,
        sensors=field.monitor_names,
        names=["+".join(field.user_names[j] for j in users) for users in members],
    )
    merged = _merged(activity, members)
    return Survey(field, traffic, members, Problem(model, merged, model.draw_rows(merged, rng)))


def _heard_alike(reach: NDArray[Any]) -> tuple[tuple[int, ...], ...]:
    """Groups of users whom the same monitors hear, in the order of their first users; unheard users are left out."""
    groups: dict[bytes, list[int]] = {}
    for user in np.flatnonzero(reach.any(axis=0)).tolist():
        groups.setdefault(reach[:, user].tobytes(), []).append(user)
    return tuple(map(tuple, groups.values()))


def _merged(activity: NDArray[np.bool_], members: tuple[tuple[int, ...], ...]) -> NDArray[np.bool_]:
    columns = [activity[:, list(users)].any(axis=1) for users in members]
    return np.array(columns, bool).reshape(len(members), len(activity)).T.copy()


def learn_users(slots: Rows, *, noise: Noise | None = None, n_jobs: int | None = None) -> Fit:
    """Learn users from consecutive slots; ``noise`` None: one flip rate is found with them.

    ``diagnostics["persistence"]`` says for how many slots on average each user stays active. Ctrl-C keeps the best so
    far, marked as interrupted.

    >>> rows = [[0, 0]] * 50 + [[1, 1]] * 5 + [[0, 0]] * 40 + [[1, 0]] * 10 + [[0, 0]] * 60 + [[1, 1]] * 5
    >>> learn_users(Rows.of(rows)).model.mixing.astype(int).tolist()
    [[1, 1], [1, 0]]
    """
    method = Likelihood(noise="estimate" if noise is None else noise, n_jobs=n_jobs)
    return method.fit_in_order(slots, np.random.default_rng(0))


SCHEMA, VERSION = "bica-field", 1
REASON = 200  # characters of what Python says, which may quote all of a file
COLUMNS = ("monitor", "x", "y")
MARGIN_IN_RADII = 1.0  # how far the square of a CSV file reaches beyond the outermost monitors


def field_text(field: Field, traffic: Traffic | None = None) -> str:
    """The field as JSON text, with the users' traffic if it is known.

    >>> json.loads(field_text(Field([[1, 2]])))["monitors"]
    [{'name': 'm1', 'x': 1.0, 'y': 2.0}]
    """
    users: list[dict[str, Any]] = [
        {"name": name, "x": x, "y": y} for name, (x, y) in zip(field.user_names, field.users.tolist(), strict=True)
    ]
    if traffic is not None:
        numbers = zip(users, traffic.probability.tolist(), traffic.stay.tolist(), strict=True)
        users = [user | {"probability": probability, "stay": stay} for user, probability, stay in numbers]
    places = zip(field.monitor_names, field.monitors.tolist(), strict=True)
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "side": field.side,
        "corner": list(field.corner),
        "propagation": asdict(field.propagation),
        "monitors": [{"name": name, "x": x, "y": y} for name, (x, y) in places],
        "users": users,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def read_field(path: str | Path, propagation: Propagation | None = None) -> Field:
    """A field from JSON as ``field_text`` writes it, or monitors from CSV with the columns monitor, x and y.

    ``propagation`` replaces that of the file; a CSV file has none, so the default is used. Its square reaches one
    radius beyond the outermost monitors.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a field: {error}") from None
    try:
        return _of_json(text, propagation) if Path(path).suffix.lower() == ".json" else _of_csv(text, propagation)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError, csv.Error) as error:
        reason = str(error) if isinstance(error, BicaError) else f"{type(error).__name__} {str(error)[:REASON]}"
        raise DataError(
            f"{path} is no field: {reason}; it holds the JSON of `bica spectrum simulate --field`, or CSV with the "
            f"columns {', '.join(COLUMNS)}"
        ) from None


def _of_json(text: str, propagation: Propagation | None) -> Field:
    content = json.loads(text)
    if not isinstance(content, Mapping) or (content.get("schema"), content.get("version")) != (SCHEMA, VERSION):
        raise DataError(f"it is not {SCHEMA} version {VERSION}")
    known = {entry.name for entry in fields(Propagation)}
    given = Propagation(**{name: float(value) for name, value in content["propagation"].items() if name in known})
    x, y = content["corner"]
    return Field(
        [(float(entry["x"]), float(entry["y"])) for entry in content["monitors"]],
        [(float(entry["x"]), float(entry["y"])) for entry in content["users"]],
        side=float(content["side"]),
        propagation=propagation or given,
        monitor_names=[entry["name"] for entry in content["monitors"]],
        corner=(float(x), float(y)),
    )


def _of_csv(text: str, propagation: Propagation | None) -> Field:
    rows = list(csv.DictReader(text.splitlines()))
    if not rows:
        raise DataError("it names no monitor")
    used = propagation or Propagation()
    places = np.array([(float(row["x"]), float(row["y"])) for row in rows])
    least, most = places.min(axis=0) - MARGIN_IN_RADII * used.radius, places.max(axis=0) + MARGIN_IN_RADII * used.radius
    return Field(
        places,
        side=float((most - least).max()),
        propagation=used,
        monitor_names=[row["monitor"] for row in rows],
        corner=(float(least[0]), float(least[1])),
    )
