"""How often users transmit, and for how long: the two readings of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bica.errors import SettingError
from bica.simulate import markov_activity

Reading = Literal["rare", "uniform"]
READINGS: tuple[Reading, ...] = get_args(Reading)
RARE, RARE_STAY = (0.005, 0.035), 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Users as two-state Markov chains."""

    probability: NDArray[np.float64]  # (n_users,), share of slots in which each is active
    stay: NDArray[np.float64]  # (n_users,), mean number of slots that it then stays so

    def draw(self, n_slots: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Who is active in each slot: (n_slots, n_users)."""
        return markov_activity(self.probability, self.stay, n_slots, rng)


def random_traffic(n_users: int, rng: np.random.Generator, reading: Reading = "rare") -> Traffic:
    """One user after the other, by one of two readings of the paper, which cannot both hold.

    "rare": an activity of 2 % on average, drawn from U(0.005, 0.035), in stays of 5 slots on average. "uniform":
    both chances of a change drawn from U(0, 1), which makes users active in half of the slots.

    >>> random_traffic(1000, np.random.default_rng(1), "uniform").probability.mean().round(1)
    np.float64(0.5)
    """
    if reading == "rare":
        return Traffic(rng.uniform(*RARE, n_users), np.full(n_users, RARE_STAY))
    if reading == "uniform":
        begin, end = 1 - rng.random((2, n_users))  # in (0, 1]
        return Traffic(begin / (begin + end), 1 / end)
    raise SettingError(f"there is no reading {reading!r}; choose {' or '.join(READINGS)}")
