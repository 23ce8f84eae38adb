"""Sources that the data hardly tell apart: one can be more frequent if the other is rarer, at nearly no cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.kernels.channel import apply_channel
from bica.kernels.mixture import mix_source
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
