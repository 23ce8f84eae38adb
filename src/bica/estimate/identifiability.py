"""Which sensors' own noise the data tell apart from sources."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bica.estimate.lattice import Point, Surface
from bica.estimate.refit import AT_BOUND

VAGUE = 0.1  # a standard error of a flip rate, which lies below one half, that leaves the rate open
SURE = 4.0  # a fall of the log-likelihood that rules a rate out
RIDGE = 1e-10  # of a correlation matrix: what is singular becomes very uncertain instead


def vague_sensors(surface: Surface, point: Point) -> list[int]:
    """Sensors whose flip rate could be almost anything if every sensor may have a source of its own.

    The flips of a sensor that shares no source with another one look exactly like a source of that sensor alone.
    """
    n_sensors = surface.cells.n_sensors
    lone = np.setdiff1d(1 << np.arange(n_sensors), point.sources)
    wider = surface.at(np.append(point.sources, lone), np.append(point.rate, np.zeros(lone.size)), point.noise)
    derivatives = surface.derivatives(wider)
    information = (derivatives * surface.cells.weights) @ derivatives.T
    scale = np.sqrt(np.maximum(np.diag(information), 1e-12))
    correlation = information / np.outer(scale, scale) + RIDGE * np.eye(scale.size)
    error = np.sqrt(np.abs(np.diag(np.linalg.inv(correlation)))) / scale
    vague = (error[wider.rate.size :] > VAGUE) & ~_clearly_zero(surface, point)
    return np.flatnonzero(vague).tolist()


def _clearly_zero(surface: Surface, point: Point) -> NDArray[np.bool_]:
    """Rates at their bound that the slope keeps there: a higher one would make rows likely that were not seen."""
    fall = -VAGUE * surface.gradient(point)[point.rate.size :]
    return (point.noise <= surface.noise.lowest + AT_BOUND) & (fall > SURE)
