"""A random campus: sniffers in a building, users in its rooms on three channels, and who hears whom.

The numbers of sniffers and users, their channels and their mean activity are the paper's; its trace is not public, so
the places are drawn at random:

- The building is 120 m by 60 m and has 12 by 4 rooms. The 21 sniffers stand in a grid of 7 by 3, each shifted at random
  by up to a quarter of the distance to the next. Every user is in a room by lot, whatever the channel.
- A sniffer hears a room whose centre is within 25 m, where walls shorten or lengthen that for every pair by a normal
  number of decibels (standard deviation 4 dB, path loss exponent 3.5). All users of a room are heard by the same
  sniffers, 4.8 of the 21 on average. Rooms that nobody hears stay empty: the paper counts users who were observed.
- Activity follows Zipf's law with a mean of 0.0014: the user of rank r is active 1 / r as often as the busiest, who is
  active 13 % of the time. Twelve users are active more than 1 % of the time, half of all less than 0.04 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.applications.monitoring import MonitoringProblem
from bica.errors import SettingError
from bica.model.or_mixture import OrMixture

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
MEAN_ACTIVITY = 0.0014


@dataclass(frozen=True, slots=True, eq=False)
class Campus:
    """Where everybody is, who hears whom, and how often each user is active."""

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
        """What all sniffers show on every channel, (n_slots, n_sniffers) each: on if anybody in reach is active."""
        return {name: model.sample(n_slots, rng) for name, model in self.models().items()}


def draw_campus(rng: np.random.Generator, rooms: tuple[int, int] = ROOMS) -> Campus:
    """A campus by lot; with many ``rooms`` hardly two users are heard by the same sniffers.

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
    """Sniffers are called by their number.

    >>> sniffer_name(0)
    'sniffer01'
    """
    return f"sniffer{place + 1:02d}"


def _grid(shape: tuple[int, int], shift: NDArray[np.float64] | float = 0.0) -> NDArray[np.float64]:
    """The middles of equal fields of the building, shifted by some share of a field."""
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
