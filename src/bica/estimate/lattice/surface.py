"""The exact likelihood as a surface: its height, slope and curvature at any set of sources, rates and noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.kernels.lattice.channel import apply_channel_transposed, apply_matrices, channel_matrices
from bica.kernels.lattice.likelihood import (
    CellGroups,
    best_additions,
    candidate_gradient,
    mix_sources,
    noise_gradient,
    probability_derivatives,
    read_cells,
    source_gradient,
    spread_cells,
)
from bica.model.noise import Noise

HIGHEST = 0.45  # flip rate: at one half a sensor says nothing


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """The error rates of all sensors: a known part plus a linear map of a few unknown numbers."""

    false_alarm: NDArray[np.float64]  # (n_sensors,), the known part
    miss: NDArray[np.float64]  # (n_sensors,), the known part
    false_alarm_of: NDArray[np.float64]  # (n_sensors, n_unknown)
    miss_of: NDArray[np.float64]  # (n_sensors, n_unknown)
    lowest: float = 0.0  # of every unknown: never exactly 0, so that every pattern stays possible

    @classmethod
    def known(cls, noise: Noise, n_sensors: int) -> NoiseShape:
        """Known noise, with nothing to estimate."""
        none = np.zeros((n_sensors, 0))
        return cls(*noise.rates(n_sensors), none, none)

    @classmethod
    def shared_flips(cls, n_sensors: int, lowest: float) -> NoiseShape:
        """One unknown flip rate for all sensors."""
        zeros, ones = np.zeros(n_sensors), np.ones((n_sensors, 1))
        return cls(zeros, zeros, ones, ones, lowest)

    @classmethod
    def own_flips(cls, n_sensors: int, lowest: float) -> NoiseShape:
        """An unknown flip rate for every sensor."""
        zeros, each = np.zeros(n_sensors), np.eye(n_sensors)
        return cls(zeros, zeros, each, each, lowest)

    @property
    def n_unknown(self) -> int:
        """How many numbers are to be estimated."""
        return int(self.false_alarm_of.shape[1])

    def rates(self, unknown: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """False-alarm and miss rates, one value per sensor."""
        return self.false_alarm + self.false_alarm_of @ unknown, self.miss + self.miss_of @ unknown

    def matrices(self, unknown: NDArray[np.float64]) -> NDArray[np.float64]:
        """The channel of every sensor: (n_sensors, 2, 2)."""
        return channel_matrices(*self.rates(unknown))


Sets = NDArray[np.int64]
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cells:
    """The observed rows as cells of the lattice with their weights, grouped by the sensors that were not observed."""

    unobserved: Sets  # (n_groups,), bit sets
    starts: Sets  # (n_groups + 1,), where each group's cells begin
    cells: Sets  # (n_cells,), patterns as bit sets, 0 where unobserved
    weights: Vector  # (n_cells,)
    n_sensors: int

    @classmethod
    def of(cls, data: PatternCounts) -> Cells:
        """The cells of a table of up to 20 sensors."""
        patterns, observed = data.patterns[:, 0].astype(np.int64), data.observed_cells()[:, 0].astype(np.int64)
        order = np.lexsort((patterns, -observed))
        unobserved, starts = np.unique((2**data.n_sensors - 1) ^ observed[order], return_index=True)
        return cls(unobserved, np.append(starts, order.size), patterns[order], data.weights[order], data.n_sensors)

    @property
    def n_samples(self) -> float:
        """The total weight of all rows."""
        return float(self.weights.sum())

    def times_observed(self) -> Vector:
        """The weight of the rows in which each sensor was observed: (n_sensors,)."""
        gaps = np.repeat(self.unobserved, np.diff(self.starts))
        observed: Vector = self.weights @ ((gaps[:, None] >> np.arange(self.n_sensors)) & 1 == 0)
        return observed

    def read(self, table: Vector) -> Vector:
        """The value of every cell in a table over the lattice, unobserved sensors summed out."""
        values = np.empty(self.cells.size)
        read_cells(table, self.unobserved, self.starts, self.cells, values)
        return values

    def spread(self, values: Vector) -> Vector:
        """A table over the lattice from values of the cells: the transpose of ``read``."""
        table = np.empty(2**self.n_sensors)
        spread_cells(values, self.unobserved, self.starts, self.cells, table)
        return table


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One set of sources with rates and noise, and the likelihood there."""

    sources: Sets  # (n_sources,), bit sets
    rate: Vector  # (n_sources,), -log(1 - probability)
    noise: Vector  # (n_unknown,), the unknown noise rates
    log_likelihood: float
    hidden: Vector  # (2^n_sensors,), probability of every set of sensors being switched on by the sources
    cell_probability: Vector  # (n_cells,), of what was observed

    @property
    def probability(self) -> Vector:
        """The probability that each source is on."""
        return -np.expm1(-self.rate)


class Surface:
    """The log-likelihood of counted rows over all OR mixtures of up to 20 sensors."""

    def __init__(self, cells: Cells, noise: NoiseShape) -> None:
        self.cells = cells
        self.noise = noise
        self.work = 0.0  # a search on the lattice of so few sensors is never too long

    def at(self, sources: Sets, rate: Vector, noise: Vector) -> Point:
        """The point with its likelihood: n + m passes over the lattice for n sources and m sensors."""
        hidden = np.empty(2**self.cells.n_sensors)
        mix_sources(sources, -np.expm1(-rate), hidden)
        probability = self.cells.read(self._shown(hidden, noise))
        with np.errstate(divide="ignore"):
            log_likelihood = float(self.cells.weights @ np.log(probability))
        return Point(sources, rate, noise, log_likelihood, hidden, probability)

    def _shown(self, hidden: Vector, noise: Vector) -> Vector:
        shown = hidden.copy()
        apply_matrices(shown, self.noise.matrices(noise))
        return shown

    def _by_shown(self, point: Point) -> Vector:
        return self.cells.spread(self.cells.weights / point.cell_probability)

    def _by_hidden(self, point: Point, by_shown: Vector) -> Vector:
        by_hidden = by_shown.copy()
        apply_channel_transposed(by_hidden, *self.noise.rates(point.noise))
        return by_hidden

    def candidate_gradient(self, point: Point) -> Vector:
        """The slope by the rate of every set of sensors, present or not: (2^n_sensors,)."""
        gradient = np.empty_like(point.hidden)
        candidate_gradient(point.hidden, self._by_hidden(point, self._by_shown(point)), gradient)
        return gradient

    def gradient(self, point: Point) -> Vector:
        """The slope by the rates of the point's own sources, then by the unknown noise: (n_parameters,)."""
        by_shown = self._by_shown(point)
        by_rate = source_gradient(point.hidden, self._by_hidden(point, by_shown), point.sources)
        if not self.noise.n_unknown:
            return by_rate
        by_channel = noise_gradient(self._shown(point.hidden, point.noise), by_shown, *self.noise.rates(point.noise))
        by_noise = by_channel[:, 0] @ self.noise.false_alarm_of + by_channel[:, 1] @ self.noise.miss_of
        return np.concatenate([by_rate, by_noise])

    def derivatives(self, point: Point) -> NDArray[np.float64]:
        """Derivatives of each cell's log probability, by rates, then by unknown noise: (n_parameters, n_cells)."""
        derivatives = np.empty((point.sources.size + self.noise.n_unknown, point.cell_probability.size))
        probability_derivatives(
            point.hidden,
            self._shown(point.hidden, point.noise),
            point.sources,
            self.noise.rates(point.noise),
            (self.noise.false_alarm_of, self.noise.miss_of),
            self.noise.matrices(point.noise),
            self._groups(),
            derivatives,
        )
        return derivatives / point.cell_probability

    def _groups(self) -> CellGroups:
        return CellGroups(self.cells.unobserved, self.cells.starts, self.cells.cells)

    def additions(self, point: Point, candidates: Sets) -> tuple[Vector, Vector]:
        """By how much each candidate alone would raise the log-likelihood, and its best probability."""
        gain, probability = np.empty(candidates.size), np.empty(candidates.size)
        matrices = self.noise.matrices(point.noise)
        best_additions(
            point.hidden,
            matrices,
            candidates,
            self._groups(),
            point.cell_probability,
            self.cells.weights,
            gain,
            probability,
        )
        return gain, probability
