"""What is to be solved: networks by name, one entry each, sampled at several sizes and noise levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import numpy as np

from bica.errors import SettingError
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.simulate import EVALUATION, TOPOLOGIES, Problem, random_network, simulate, topology

Network = Callable[[np.random.Generator], OrMixture]  # a fixed network, or a new one for each seed


def _fixed(name: str, _: np.random.Generator) -> OrMixture:
    return topology(name)


def _random(n_sensors: int, n_sources: int, rng: np.random.Generator) -> OrMixture:
    return random_network(n_sensors, n_sources, rng=rng)


NETWORKS: dict[str, Network] = {
    **{f"topology {name}": partial(_fixed, name) for name in TOPOLOGIES},
    "random 10 x 10": partial(_random, 10, 10),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A network, how many rows are drawn from it, and how often a cell is flipped."""

    network: str
    n_samples: int
    flip_rate: float

    def draw(self, seed: int) -> Problem:
        """The problem of this seed; every contender gets the same.

        >>> Setting(network="topology one", n_samples=50, flip_rate=0.1).draw(0).rows.shape
        (50, 10)
        """
        if self.network not in NETWORKS:
            raise SettingError(f"there is no network {self.network!r}; choose from {', '.join(map(repr, NETWORKS))}")
        name = crc32(self.network.encode())
        rng = np.random.default_rng([seed, name, self.n_samples, round(1e6 * self.flip_rate)])
        model = NETWORKS[self.network](rng).with_noise(Noise.flips(self.flip_rate))
        return simulate(model, self.n_samples, rng)


def topology_settings(
    n_samples: Iterable[int] = EVALUATION.n_samples, flip_rates: Iterable[float] = EVALUATION.flip_rates
) -> list[Setting]:
    """The paper's evaluation: the four topologies at every number of rows and both noise levels.

    >>> len(topology_settings())
    40
    """
    rates = list(flip_rates)
    return [
        Setting(network=f"topology {name}", n_samples=rows, flip_rate=rate)
        for rows in n_samples
        for name in TOPOLOGIES
        for rate in rates
    ]
