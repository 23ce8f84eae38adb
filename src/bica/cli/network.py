"""The network that ``bica simulate`` draws from, as the options describe it."""

from dataclasses import dataclass

import click
import numpy as np

import bica.simulate
from bica.cli.files import read_model
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """A model file, a fixed topology, or a random network; None where the user said nothing."""

    model: str | None = None
    topology: str | None = None
    sensors: int | None = None
    sources: int | None = None
    column_weight: tuple[int, int] | None = None
    probability: tuple[float, float] | None = None
    flip_rate: float | None = None
    false_alarm: float | None = None
    miss: float | None = None

    def __post_init__(self) -> None:
        random = any(
            setting is not None for setting in (self.sensors, self.sources, self.column_weight, self.probability)
        )
        if (self.model is not None) + (self.topology is not None) + random > 1:
            raise click.UsageError("Give one network: --model, --topology, or the settings of a random one.")
        if self.flip_rate is not None and (self.false_alarm is not None or self.miss is not None):
            raise click.UsageError("Give --flip-rate, or --false-alarm and --miss, not both.")

    def build(self, rng: np.random.Generator) -> OrMixture:
        """The network with its noise."""
        given, noise = self._without_noise(rng), self._noise()
        return given if noise is None else given.with_noise(noise)

    def _without_noise(self, rng: np.random.Generator) -> OrMixture:
        if self.model is not None:
            return OrMixture.of_document(read_model(self.model))
        if self.topology is not None:
            return bica.simulate.topology(self.topology)
        return bica.simulate.random_network(
            self.sensors or 10,
            self.sources or 10,
            column_weight=self.column_weight or (2, 4),
            probability=self.probability or (0.05, 0.3),
            rng=rng,
        )

    def _noise(self) -> Noise | None:
        if self.flip_rate is not None:
            return Noise.flips(self.flip_rate)
        if self.false_alarm is None and self.miss is None:
            return None
        return Noise(self.false_alarm or 0.0, self.miss or 0.0)
