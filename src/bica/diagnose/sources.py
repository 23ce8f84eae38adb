"""Sources to be wary of: those the data hardly tell apart, and those that look like parts of fewer ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.kernels.lattice.channel import apply_channel, mix_source
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

CONFUSED = -0.9  # correlation of two estimates from which on they stand for each other
NOISE_STEP = 1e-6


@dataclass(frozen=True, slots=True)
class Confusion:
    """Two sources, or a source and the noise, whose estimates can hardly be separated."""

    names: tuple[str, str]
    correlation: float  # of the two estimates, close to -1


def confusions(model: OrMixture, data: PatternCounts, sources: NDArray[np.int64], *, noise: bool) -> list[Confusion]:
    """Pairs among these ``sources``, and one shared flip rate if ``noise``, whose estimates are correlated below -0.9.

    From the empirical information of the likelihood: time (n_sensors 2^n_sensors) for each source. ``data`` has no
    missing cells, and the model no more sensors than a table of all patterns may have.
    """
    names = [*(model.source_names()[j] for j in sources), *(["the noise"] if noise else [])]
    correlation = _correlation(_slopes(model, data, sources, noise=noise), data.weights)
    found = np.argwhere(np.triu(correlation <= CONFUSED, 1))
    order = np.argsort(correlation[*found.T], kind="stable")
    return [Confusion((names[i], names[k]), float(correlation[i, k])) for i, k in found[order]]


def _slopes(model: OrMixture, data: PatternCounts, sources: NDArray[np.int64], *, noise: bool) -> NDArray[np.float64]:
    """Derivatives of the log chance of every distinct row by the rates, then by the flip rate."""
    places, shown = data.patterns[:, 0].astype(np.int64), model.pattern_probability()
    hidden = model.with_noise(Noise()).pattern_probability()
    tables = [_grown(hidden, model, int(j)) - shown for j in sources]
    if noise:  # flips only ever blur, so a small step more of them is the same as blurring once more
        blurred = shown.copy()
        apply_channel(blurred, *Noise.flips(NOISE_STEP).rates(model.n_sensors))
        tables.append((blurred - shown) / NOISE_STEP)
    chance = shown[places]
    possible = np.where(chance > 0, chance, np.inf)
    return np.array([table[places] / possible for table in tables]).reshape(len(tables), places.size)


def _grown(hidden: NDArray[np.float64], model: OrMixture, source: int) -> NDArray[np.float64]:
    """What is shown if the source is on for certain: the chances move towards that as its rate grows."""
    table = hidden.copy()
    mix_source(table, int((1 << np.arange(model.n_sensors)) @ model.mixing[:, source]), 1.0)
    apply_channel(table, *model.noise.rates(model.n_sensors))
    return table


def _correlation(slopes: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    information = (slopes * weights) @ slopes.T
    scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
    spread = np.linalg.inv(information / np.outer(scale, scale) + 1e-9 * np.eye(len(scale)))
    error = np.sqrt(np.diag(spread))
    correlation: NDArray[np.float64] = spread / np.outer(error, error)
    return correlation


SOURCES_A_SENSOR = 2  # more than this, and most of them parts of others, is what lossy edges leave behind
MOST = 0.75  # 0.79 to 0.97 in lossy tables, real and simulated; 0.35 to 0.55 in exact ones of 20 sources and 8 sensors


@dataclass(frozen=True, slots=True)
class Splinters:
    """Many sources, most of which drive some of the sensors of another one and no others."""

    n_sources: int
    n_parts: int

    @classmethod
    def of(cls, model: OrMixture) -> Splinters | None:
        """The count of parts, or None if they are few; time goes with the pairs of sources.

        >>> subsets = np.array([[s >> i & 1 for s in range(1, 16)] for i in range(4)])
        >>> Splinters.of(OrMixture(subsets, np.full(15, 0.1)))
        Splinters(n_sources=15, n_parts=14)
        """
        if model.n_sources <= SOURCES_A_SENSOR * model.mixing.any(axis=1).sum():
            return None
        n_parts = int(_is_part(model.mixing).sum())
        return cls(model.n_sources, n_parts) if n_parts >= MOST * model.n_sources else None

    def words(self) -> str:
        """What this points to, and what helps."""
        return (
            f"{self.n_parts} of {self.n_sources} sources are parts of others, as if a few sources reached their "
            "sensors only at times; give the sensors' miss rates if they are known"
        )


def _is_part(mixing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which columns have all their ones in another, wider column."""
    reach = mixing.astype(np.float32)  # counts up to 2^24 stay exact
    size = reach.sum(axis=0)
    inside: NDArray[np.bool_] = (reach.T @ reach == size[:, None]) & (size > size[:, None])
    return np.asarray(inside.any(axis=1))
